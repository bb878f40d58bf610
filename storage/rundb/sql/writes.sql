-- What the writer prepares. Parameters are bound in the order of the columns named.

-- name: insert_meta
INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?);

-- name: insert_clock_snapshot
INSERT INTO clock_snapshot (clock, ts, realtime_ts) VALUES (?, ?, ?);

-- name: add_to_stat
INSERT INTO stat (name, severity, value, description) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
  value = value + excluded.value,
  severity = excluded.severity,
  description = excluded.description;

-- name: insert_string
INSERT INTO string (id, value) VALUES (?, ?);

-- name: insert_track
INSERT INTO track (id, parent_id, kind, name) VALUES (?, ?, ?, ?);

-- name: insert_step
INSERT OR REPLACE INTO step (id, ts, dur, loss, grad_norm, loss_scale, tokens, skipped)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_first_span
INSERT INTO span (
  track_id, name_id, submit_ts, ts, dur, step_id, subgroup_id, device_id, layer_id, bytes,
  padding_bytes, status, id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_next_span
INSERT INTO span (
  track_id, name_id, submit_ts, ts, dur, step_id, subgroup_id, device_id, layer_id, bytes,
  padding_bytes, status
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_span_run
INSERT INTO span_run (first_id, last_id, track_id, ts, end_ts, lod_level) VALUES (?, ?, ?, ?, ?, ?);

-- name: insert_span_batch
INSERT INTO span_batch (first_id, last_id, ts, end_ts) VALUES (?, ?, ?, ?);

-- name: add_to_lod
INSERT INTO lod (level, chunk, track_id, bin, count, busy, longest, longest_name_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (level, chunk, track_id, bin) DO UPDATE SET
  count = count + excluded.count,
  busy = busy + excluded.busy,
  longest_name_id = iif(excluded.longest > longest, excluded.longest_name_id, longest_name_id),
  longest = max(longest, excluded.longest);

-- name: insert_long_span
INSERT INTO long_span (track_id, ts, span_id, end_ts, level) VALUES (?, ?, ?, ?, ?);

-- name: insert_flow
INSERT OR IGNORE INTO flow (to_span, from_span) VALUES (?, ?);

-- name: insert_counter
INSERT INTO counter (track_id, ts, value) VALUES (?, ?, ?);

-- name: insert_device
INSERT OR REPLACE INTO device (id, name, kind, memory_bytes, capacity_bytes)
VALUES (?, ?, ?, ?, ?);

-- A link that the file knows keeps its id; one of other figures is another link, for what crossed
-- the old one did so at its rates.
-- name: insert_link
INSERT INTO link (id, name, read_bytes_per_s, write_bytes_per_s, latency, duplex)
SELECT
  iif(?6 IN (SELECT id FROM link), (SELECT max(id) + 1 FROM link), ?6), ?1, ?2, ?3, ?4, ?5
WHERE NOT EXISTS (
  SELECT 1 FROM link
  WHERE name = ?1 AND read_bytes_per_s = ?2 AND write_bytes_per_s = ?3 AND latency = ?4
    AND duplex = ?5);

-- name: insert_track_link
INSERT INTO track_link (track_id, link_id, direction) VALUES (?, ?, ?);

-- name: insert_stage
INSERT OR REPLACE INTO stage (
  name_id, kind, place, drive_file, phase, cause, set_off_by, every_step, colour
)
VALUES (?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?);

-- A mode that already holds is no news.
-- name: insert_mode
INSERT INTO mode (ts, step_id, line)
SELECT ?1, ?2, ?3
WHERE ?3 IS NOT (SELECT line FROM mode ORDER BY rowid DESC LIMIT 1);

-- name: insert_subgroup
INSERT OR REPLACE INTO subgroup (id, first, count, device_id) VALUES (?, ?, ?, ?);

-- A knob that the file knows keeps its id, whichever Sluice goes on with the file.
-- name: insert_knob
INSERT INTO knob (name, type, unit, minimum, maximum, default_value, safe_point)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
  type = excluded.type,
  unit = excluded.unit,
  minimum = excluded.minimum,
  maximum = excluded.maximum,
  default_value = excluded.default_value,
  safe_point = excluded.safe_point;

-- name: insert_knob_change
INSERT INTO knob_change (ts, step_id, knob_id, old, new, who)
VALUES (?1, ?2, (SELECT id FROM knob WHERE name = ?3), ?4, ?5, ?6);

-- name: insert_verdict
INSERT OR REPLACE INTO verdict (step_id, cause, share) VALUES (?, ?, ?);

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

-- name: delete_verdicts_from
DELETE FROM verdict WHERE step_id >= ?;
