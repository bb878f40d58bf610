-- What readers ask, and what a writer asks that goes on with a file. A place in braces has the
-- columns that rows declare (storage/rundb/rows.h, storage/rundb/detail/sql_texts.h).

-- name: meta
SELECT {columns meta} FROM meta ORDER BY key;

-- name: written_by
SELECT value FROM meta WHERE key = 'written_by';

-- name: strings
SELECT {columns string} FROM string;

-- name: tracks
SELECT {columns track} FROM track;

-- name: steps
SELECT {columns step} FROM step ORDER BY id;

-- name: steps_after
SELECT {columns step} FROM step WHERE id > ? ORDER BY id;

-- name: validations
SELECT {columns validation} FROM validation ORDER BY step_id, rowid;

-- Spans that ended after the first time and no later than the second.
-- name: spans_ended
SELECT {columns span}, string.value
FROM span
JOIN string ON string.id = span.name_id
WHERE span.ts + span.dur > ? AND span.ts + span.dur <= ? AND span.status = 0
ORDER BY span.id;

-- Spans that were under way at some time in between; the reader puts them in order. CROSS JOIN here
-- and below: the few rows of span_batch first, then the runs in them, whatever the planner thinks
-- of tables without statistics.
-- name: spans_between
SELECT {columns span}
FROM span_batch
CROSS JOIN span_run ON span_run.first_id BETWEEN span_batch.first_id AND span_batch.last_id
CROSS JOIN span ON span.id BETWEEN span_run.first_id AND span_run.last_id
WHERE span_batch.end_ts >= ?1 AND span_batch.ts <= ?2
  AND span_run.end_ts >= ?1 AND span_run.ts <= ?2
  AND span.ts + span.dur >= ?1 AND span.ts <= ?2;

-- name: spans_of_ids
SELECT {columns span}
FROM span
WHERE id BETWEEN ?1 AND ?2 AND ts >= ?3 AND ts < ?4
ORDER BY id;

-- Into those spans.
-- name: flows_between
SELECT {columns flow}
FROM span_batch
CROSS JOIN span_run ON span_run.first_id BETWEEN span_batch.first_id AND span_batch.last_id
CROSS JOIN flow ON flow.to_span BETWEEN span_run.first_id AND span_run.last_id
WHERE span_batch.end_ts >= ?1 AND span_batch.ts <= ?2
  AND span_run.end_ts >= ?1 AND span_run.ts <= ?2;

-- name: causes_of_span
SELECT {columns span}
FROM flow
CROSS JOIN span ON span.id = flow.from_span
WHERE flow.to_span = ?
LIMIT ?;

-- Table flow is ordered by effect: the range says where to look.
-- name: effects_of_span
SELECT {columns span}
FROM flow
CROSS JOIN span ON span.id = flow.to_span
WHERE flow.to_span BETWEEN ?2 AND ?3 AND flow.from_span = ?1
LIMIT ?4;

-- Columns beside max() are of the row that has it.
-- name: counters_between
SELECT {columns counter} FROM counter WHERE ts BETWEEN ?1 AND ?2
UNION ALL
SELECT {columns counter}
FROM (SELECT *, max(ts) FROM counter WHERE ts < ?1 GROUP BY track_id) AS counter
ORDER BY 1, 2;

-- From one chunk that there is to the next; ?5 and ?6 are those of the bins ?3 and ?4.
-- name: lod
WITH RECURSIVE piece(chunk) AS (
  SELECT min(chunk) FROM lod WHERE level = ?2 AND chunk >= ?5
  UNION ALL
  SELECT (SELECT min(next.chunk) FROM lod AS next WHERE level = ?2 AND next.chunk > piece.chunk)
  FROM piece
  WHERE piece.chunk < ?6
)
SELECT {columns lod}
FROM piece
CROSS JOIN lod USING (chunk)
WHERE level = ?2 AND track_id = ?1 AND bin BETWEEN ?3 AND ?4
ORDER BY bin;

-- Spans that have no rows in lod of level ?1: of all tracks, or of ?4.
-- name: spans_without_lod
SELECT {columns span}
FROM span_batch
CROSS JOIN span_run ON span_run.first_id BETWEEN span_batch.first_id AND span_batch.last_id
CROSS JOIN span ON span.id BETWEEN span_run.first_id AND span_run.last_id
WHERE span_batch.end_ts >= ?2 AND span_batch.ts <= ?3
  AND span_run.lod_level > ?1 AND span_run.end_ts >= ?2 AND span_run.ts <= ?3
  AND (?4 IS NULL OR +span_run.track_id = ?4)
  AND span.ts + span.dur >= ?2 AND span.ts <= ?3;

-- As they stand in the file: by chunk, track and bin.
-- name: lod_of_all_tracks
SELECT {columns lod}
FROM lod
WHERE level = ?1 AND chunk BETWEEN ?4 AND ?5 AND bin BETWEEN ?2 AND ?3
ORDER BY level, chunk, track_id, bin;

-- A long span begins at most the longest one's length before what it reaches into.
-- name: long_spans
SELECT {columns long_span}
FROM long_span
WHERE track_id = ?1 AND ts <= ?4 AND end_ts >= ?3 AND level >= ?2
ORDER BY ts;

-- The same as rows of table span, which has their names and bytes.
-- name: spans_long_at_level
SELECT {columns span}
FROM long_span
CROSS JOIN span ON span.id = long_span.span_id
WHERE long_span.track_id = ?1 AND long_span.ts <= ?4 AND long_span.end_ts >= ?3
  AND long_span.level >= ?2
ORDER BY long_span.ts;

-- name: span_runs_after
SELECT {columns span_run} FROM span_run WHERE first_id > ? ORDER BY first_id;

-- The + keeps SQLite from making an index of all of span_run first.
-- name: spans_of_track
SELECT {columns span}
FROM span_batch
CROSS JOIN span_run ON span_run.first_id BETWEEN span_batch.first_id AND span_batch.last_id
CROSS JOIN span ON span.id BETWEEN span_run.first_id AND span_run.last_id
WHERE span_batch.end_ts >= ?2 AND span_batch.ts <= ?3
  AND +span_run.track_id = ?1 AND span_run.end_ts >= ?2 AND span_run.ts <= ?3
  AND span.ts + span.dur >= ?2 AND span.ts <= ?3;

-- The last span before which all ended by that time: runs lie in the order of batches.
-- name: last_span_ended_before
SELECT coalesce(min(first_id) - 1, (SELECT coalesce(max(last_id), 0) FROM span_run))
FROM span_run
WHERE end_ts >= ?;

-- name: step_begin
SELECT ts FROM step ORDER BY id DESC LIMIT 1 OFFSET ?;

-- name: last_span_id
SELECT coalesce(max(id), 0) FROM span;

-- name: links
SELECT {columns link} FROM link ORDER BY id;

-- name: devices
SELECT {columns device} FROM device ORDER BY id;

-- name: track_links
SELECT {columns track_link} FROM track_link ORDER BY track_id, link_id;

-- Parameters are those of a row; its own id, ?1, is what the caller calls the link.
-- name: link_id_of
SELECT id FROM link
WHERE name = ?2 AND read_bytes_per_s = ?3 AND write_bytes_per_s = ?4 AND latency = ?5
  AND duplex = ?6;

-- name: stages
SELECT {columns stage} FROM stage ORDER BY name_id;

-- name: modes
SELECT {columns mode} FROM mode ORDER BY rowid;

-- name: last_clock_snapshot
SELECT {columns clock_snapshot}
FROM clock_snapshot
WHERE clock = 'monotonic'
ORDER BY rowid DESC
LIMIT 1;

-- name: clock_offsets
SELECT {columns clock_offset} FROM clock_offset ORDER BY rowid;

-- name: knobs
SELECT {columns knob} FROM knob ORDER BY id;

-- name: knob_changes
SELECT {columns knob_change}
FROM knob_change
JOIN knob ON knob.id = knob_change.knob_id
ORDER BY knob_change.step_id, knob_change.rowid;

-- name: lateness
SELECT {columns lateness}
FROM lateness
JOIN string ON string.id = lateness.name_id
ORDER BY lateness.step_id, lateness.name_id;

-- name: verdicts
SELECT {columns verdict} FROM verdict WHERE step_id >= ? ORDER BY step_id, share DESC;

-- name: span_totals
SELECT
  string.value,
  count(*),
  sum(span.dur),
  max(span.dur),
  sum(span.bytes),
  sum(span.padding_bytes)
FROM span
JOIN string ON string.id = span.name_id
GROUP BY span.name_id
ORDER BY sum(span.dur) DESC, string.value;

-- The mean is over the steps that ended: a step still running would pull it down.
-- name: link_totals
SELECT
  link,
  direction,
  sum(bytes),
  sum(padding_bytes),
  coalesce(sum(bytes) FILTER (WHERE step_id IN (SELECT id FROM step)), 0),
  (SELECT count(*) FROM step)
FROM link_bytes
GROUP BY link, direction
ORDER BY link, direction;

-- First, last and number of ids, for storage/rundb/completeness.h.
-- name: ids_of_runs
SELECT min(first_id), max(last_id), sum(last_id - first_id + 1) FROM span_run;

-- name: ids_of_batches
SELECT min(first_id), max(last_id), sum(last_id - first_id + 1) FROM span_batch;

-- Their number is asked apart, since it reads the whole table.
-- name: ids_of_spans
SELECT (SELECT min(id) FROM span), (SELECT max(id) FROM span), 0;

-- name: span_count
SELECT count(*) FROM span;

-- name: ids_of_steps
SELECT min(id), max(id), count(*) FROM step;

-- Missing ones that the file knows of.
-- name: steps_counted
SELECT coalesce(sum(value), 0) FROM stat WHERE name = 'steps_not_recorded';

-- The first and the last step that the outermost operations name.
-- name: steps_named
SELECT
  (SELECT min(step_id) FROM (SELECT step_id FROM span ORDER BY id LIMIT 4096)),
  (SELECT max(step_id) FROM (SELECT step_id FROM span ORDER BY id DESC LIMIT 4096));

-- name: stats
SELECT {columns stat} FROM stat ORDER BY name;

-- name: losses
SELECT {columns stat}
FROM stat
WHERE severity IN ('loss', 'error') AND value > 0
ORDER BY name;

-- name: columns
SELECT name FROM pragma_table_info(?) ORDER BY cid;

-- An ordinary table, since a view or a virtual table would run what others wrote.
-- name: has_meta_table
SELECT count(*) FROM sqlite_schema
WHERE type = 'table' AND name = 'meta' AND sql LIKE 'CREATE TABLE%';

-- Without what SQLite makes for itself, such as the index of a primary key.
-- name: schema
SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY name;

-- name: sampled_threads
SELECT {columns sampled_thread} FROM sampled_thread ORDER BY id;

-- name: sampled_functions
SELECT {columns sampled_function} FROM sampled_function ORDER BY id;

-- name: calls
SELECT {columns call} FROM call ORDER BY id;

-- name: call_samples_between
SELECT {columns call_sample} FROM call_sample WHERE ts >= ?1 AND ts < ?2;

-- name: processor_times_between
SELECT {columns processor_time} FROM processor_time WHERE ts + dur > ?1 AND ts < ?2;

-- name: last_sample_ids
SELECT
  (SELECT coalesce(max(id), 0) FROM sampled_thread),
  (SELECT coalesce(max(id), 0) FROM sampled_function),
  (SELECT coalesce(max(id), 0) FROM call);

-- What a copy asks that follows (storage/rundb/record_tail.h).
-- name: clock_snapshots
SELECT {columns clock_snapshot} FROM clock_snapshot ORDER BY rowid;

-- name: stretch_count
SELECT count(*) FROM clock_snapshot WHERE clock = 'monotonic';

-- name: subgroups
SELECT {columns subgroup} FROM subgroup ORDER BY id;

-- name: strings_after
SELECT {columns string} FROM string WHERE id > ? ORDER BY id LIMIT ?;

-- name: tracks_after
SELECT {columns track} FROM track WHERE id > ? ORDER BY id LIMIT ?;

-- name: steps_after_at_most
SELECT {columns step} FROM step WHERE id > ? ORDER BY id LIMIT ?;

-- Their number, and a fingerprint of their times: a step may be written again.
-- name: steps_until
SELECT count(*), coalesce(sum((ts + dur) & 16777215), 0) FROM step WHERE id <= ?;

-- name: spans_after
SELECT {columns span} FROM span WHERE id > ? ORDER BY id LIMIT ?;

-- name: flows_into
SELECT {columns flow} FROM flow WHERE to_span > ? AND to_span <= ? ORDER BY to_span, from_span;

-- name: flow_count_into
SELECT count(*) FROM flow WHERE to_span > ? AND to_span <= ?;

-- name: counters_after
SELECT {columns counter}, counter.rowid FROM counter WHERE rowid > ? ORDER BY rowid LIMIT ?;

-- name: sampled_functions_after
SELECT {columns sampled_function} FROM sampled_function WHERE id > ? ORDER BY id LIMIT ?;

-- name: calls_after
SELECT {columns call} FROM call WHERE id > ? ORDER BY id LIMIT ?;

-- name: call_samples_after
SELECT {columns call_sample}, call_sample.rowid FROM call_sample WHERE rowid > ?
ORDER BY rowid LIMIT ?;

-- name: processor_times_after
SELECT {columns processor_time}, processor_time.rowid FROM processor_time WHERE rowid > ?
ORDER BY rowid LIMIT ?;
