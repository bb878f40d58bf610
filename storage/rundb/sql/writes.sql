-- What the writer prepares. Parameters are bound in the order in which rows declare their columns
-- (storage/rundb/rows.h); a place in braces has those columns (storage/rundb/detail/sql_texts.h).

-- name: insert_meta
INSERT OR REPLACE INTO {row meta};

-- name: insert_clock_snapshot
INSERT INTO {row clock_snapshot};

-- name: insert_clock_offset
INSERT INTO {row clock_offset};

-- name: add_to_stat
INSERT INTO {row stat}
ON CONFLICT (name) DO UPDATE SET
  value = value + excluded.value,
  severity = excluded.severity,
  description = excluded.description;

-- name: insert_string
INSERT INTO {row string};

-- name: insert_track
INSERT INTO {row track};

-- name: insert_step
INSERT OR REPLACE INTO {row step};

-- name: insert_validation
INSERT INTO {row validation};

-- name: insert_first_span
INSERT INTO {row span};

-- name: insert_next_span
INSERT INTO {row span but id};

-- name: insert_span_run
INSERT INTO {row span_run};

-- name: insert_span_batch
INSERT INTO {row span_batch};

-- The chunk is that of the bin: a place in the file, no part of the row.
-- name: add_to_lod
INSERT INTO lod ({names lod}, chunk)
VALUES ({marks lod}, ?)
ON CONFLICT (level, chunk, track_id, bin) DO UPDATE SET
  count = count + excluded.count,
  busy = busy + excluded.busy,
  longest_name_id = iif(excluded.longest > longest, excluded.longest_name_id, longest_name_id),
  longest = max(longest, excluded.longest);

-- name: insert_long_span
INSERT INTO {row long_span};

-- name: insert_flow
INSERT OR IGNORE INTO {row flow};

-- name: insert_counter
INSERT INTO {row counter};

-- name: insert_device
INSERT OR REPLACE INTO {row device};

-- A link that the file knows keeps its id; one of other figures is another link, for what crossed
-- the old one did so at its rates.
-- name: insert_link
INSERT INTO link ({names link})
SELECT
  iif(?1 IN (SELECT id FROM link), (SELECT max(id) + 1 FROM link), ?1), ?2, ?3, ?4, ?5, ?6
WHERE NOT EXISTS (
  SELECT 1 FROM link
  WHERE name = ?2 AND read_bytes_per_s = ?3 AND write_bytes_per_s = ?4 AND latency = ?5
    AND duplex = ?6);

-- name: insert_track_link
INSERT INTO {row track_link};

-- name: insert_stage
INSERT OR REPLACE INTO {row stage};

-- A mode that already holds is no news.
-- name: insert_mode
INSERT INTO mode ({names mode})
SELECT ?1, ?2, ?3
WHERE ?3 IS NOT (SELECT line FROM mode ORDER BY rowid DESC LIMIT 1);

-- name: insert_subgroup
INSERT OR REPLACE INTO {row subgroup};

-- A knob that the file knows keeps its id, whichever Sluice goes on with the file.
-- name: insert_knob
INSERT INTO {row knob}
ON CONFLICT (name) DO UPDATE SET {updates knob};

-- The knob comes by its name.
-- name: insert_knob_change
INSERT INTO knob_change (ts, step_id, knob_id, old, new, who)
VALUES (?1, ?2, (SELECT id FROM knob WHERE name = ?3), ?4, ?5, ?6);

-- The stage comes by its name, which the file has as a string already.
-- name: add_to_lateness
INSERT INTO lateness (step_id, name_id, operations, late, modelled_dur, late_dur)
VALUES (?1, (SELECT id FROM string WHERE value = ?2), ?3, ?4, ?5, ?6)
ON CONFLICT (step_id, name_id) DO UPDATE SET
  operations = operations + excluded.operations,
  late = late + excluded.late,
  modelled_dur = modelled_dur + excluded.modelled_dur,
  late_dur = late_dur + excluded.late_dur;

-- name: insert_verdict
INSERT OR REPLACE INTO {row verdict};

-- name: insert_sampled_thread
INSERT OR REPLACE INTO {row sampled_thread};

-- name: insert_sampled_function
INSERT INTO {row sampled_function};

-- name: insert_call
INSERT INTO {row call};

-- name: insert_call_sample
INSERT INTO {row call_sample};

-- name: insert_processor_time
INSERT INTO {row processor_time};

-- name: delete_call_samples_before
DELETE FROM call_sample WHERE ts < ?1;

-- name: delete_processor_times_before
DELETE FROM processor_time WHERE ts + dur < ?1;

-- What ended before a step that is still kept in full, by the runs of spans that ended as a whole.
-- name: delete_flows_before
DELETE FROM flow WHERE to_span <= ?1;

-- name: delete_spans_before
DELETE FROM span WHERE id <= ?1;

-- name: delete_runs_before
DELETE FROM span_run WHERE last_id <= ?1;

-- name: delete_batches_before
DELETE FROM span_batch WHERE last_id <= ?1;

-- name: delete_long_spans_before
DELETE FROM long_span WHERE end_ts < ?1;

-- The last sample of a counter before then still holds.
-- name: delete_counters_before
DELETE FROM counter
WHERE ts < ?1
  AND rowid NOT IN (SELECT max(rowid) FROM counter WHERE ts < ?1 GROUP BY track_id);

-- Bins of level n are 2^(20 + 3 n) ns wide.
-- name: delete_lod_before
DELETE FROM lod WHERE level < ?2 AND (bin + 1) << (20 + 3 * level) <= ?1;

-- Steps that ran before but were not committed run again after a resume. Their transfers did
-- happen and keep their rows, but belong to no step: a step's bytes are those of the step that
-- counted.
-- name: detach_spans_from_step
UPDATE span SET step_id = NULL WHERE step_id >= ?;

-- name: delete_steps_from
DELETE FROM step WHERE id >= ?;

-- name: delete_knob_changes_from
DELETE FROM knob_change WHERE step_id >= ?;

-- name: delete_modes_from
DELETE FROM mode WHERE step_id >= ?;

-- name: delete_lateness_from
DELETE FROM lateness WHERE step_id >= ?;

-- name: delete_verdicts_from
DELETE FROM verdict WHERE step_id >= ?;

-- name: delete_validations_from
DELETE FROM validation WHERE step_id >= ?;
