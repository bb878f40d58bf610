-- The views people and reports read. A change here raises kSchemaVersion, too: a reader takes only
-- files that have these very tables and views.
--
-- A track that crosses links (table track_link) carries transfers; other tracks of an engine carry
-- kernels. What a name means stands in table stage.

CREATE VIEW transfer AS
SELECT
  span.id,
  track.name AS track,
  string.value AS name,
  span.submit_ts,
  span.ts,
  span.dur,
  span.step_id,
  span.subgroup_id,
  span.device_id,
  span.layer_id,
  span.bytes,
  span.padding_bytes,
  iif(span.dur > 0, span.bytes * 1e9 / span.dur, NULL) AS bytes_per_s,
  span.status
FROM span
JOIN track ON track.id = span.track_id
JOIN string ON string.id = span.name_id
WHERE span.track_id IN (SELECT track_id FROM track_link);

CREATE VIEW kernel AS
SELECT
  span.id,
  track.name AS track,
  string.value AS name,
  span.submit_ts,
  span.ts,
  span.dur,
  span.step_id,
  span.subgroup_id,
  span.device_id,
  span.layer_id,
  span.status
FROM span
JOIN track ON track.id = span.track_id
JOIN string ON string.id = span.name_id
WHERE track.kind IN ('compute', 'host', 'device')
  AND span.track_id NOT IN (SELECT track_id FROM track_link);

-- A transfer over a route of three links counts on each of the three.
CREATE VIEW link_bytes AS
SELECT
  span.step_id,
  link.name AS link,
  track_link.direction,
  sum(span.bytes) AS bytes,
  sum(span.padding_bytes) AS padding_bytes
FROM span
JOIN track_link ON track_link.track_id = span.track_id
JOIN link ON link.id = track_link.link_id
GROUP BY span.step_id, link.id, track_link.direction;

-- Operations overlap: the durations of one step add up to more than the step.
CREATE VIEW step_breakdown AS
SELECT
  span.step_id,
  string.value AS name,
  count(*) AS count,
  sum(span.dur) AS dur,
  sum(span.bytes) AS bytes,
  sum(span.padding_bytes) AS padding_bytes
FROM span
JOIN string ON string.id = span.name_id
GROUP BY span.step_id, span.name_id;

-- How the time of each step divides, as core/simulate/phases.h does it: an update that goes on
-- in the next step, where that waits for parameters, is counted there.
CREATE VIEW step_phase AS
WITH
  finish AS (
    SELECT
      span.step_id,
      max(iif(stage.phase = 'forward', span.ts + span.dur, NULL)) AS forward,
      max(iif(stage.phase = 'backward', span.ts + span.dur, NULL)) AS backward,
      max(iif(stage.phase = 'parameters', span.ts + span.dur, NULL)) AS parameters
    FROM span
    LEFT JOIN stage ON stage.name_id = span.name_id
    GROUP BY span.step_id),
  part AS (
    SELECT
      step.id,
      step.ts,
      step.dur,
      finish.forward,
      finish.backward,
      -- A simulated step stands alone: what it waits for has its own number.
      max(step.ts,
          ifnull(lag(finish.parameters) OVER (ORDER BY step.id), step.ts),
          iif(finish.parameters <= finish.forward, finish.parameters, step.ts)) AS parameters_up
    FROM step
    JOIN finish ON finish.step_id = step.id)
SELECT
  id AS step_id,
  forward - parameters_up AS forward_dur,
  backward - forward AS backward_dur,
  parameters_up + dur - backward AS update_dur
FROM part;
