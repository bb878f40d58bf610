-- The tables of a run database. docs/rundb_schema.md is their page; a test holds the two together.
-- A change here raises kSchemaVersion (storage/rundb/detail/schema.h).
--
-- No index and no foreign key: both are paid for by each row while the run records.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE clock_snapshot (
  clock TEXT NOT NULL,
  ts INTEGER NOT NULL,
  realtime_ts INTEGER NOT NULL
) STRICT;

CREATE TABLE clock_offset (
  at TEXT NOT NULL CHECK (at IN ('begin', 'end')),
  ts INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  bound INTEGER NOT NULL
) STRICT;

CREATE TABLE stat (
  name TEXT PRIMARY KEY,
  severity TEXT NOT NULL CHECK (severity IN ('info', 'loss', 'error')),
  value INTEGER NOT NULL,
  description TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE string (
  id INTEGER PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE track (
  id INTEGER PRIMARY KEY,
  parent_id INTEGER,
  kind TEXT NOT NULL,
  name TEXT NOT NULL
) STRICT;

CREATE TABLE step (
  id INTEGER PRIMARY KEY,
  ts INTEGER NOT NULL,
  dur INTEGER NOT NULL,
  loss REAL,
  grad_norm REAL,
  loss_scale REAL,
  lr REAL,
  tokens INTEGER NOT NULL,
  skipped INTEGER NOT NULL
) STRICT;

-- Losses of the text that is held out.
CREATE TABLE validation (
  ts INTEGER NOT NULL,
  step_id INTEGER NOT NULL,
  loss REAL,
  tokens INTEGER NOT NULL,
  accuracy REAL
) STRICT;

CREATE TABLE span (
  id INTEGER PRIMARY KEY,
  track_id INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  submit_ts INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  dur INTEGER NOT NULL,
  step_id INTEGER,
  subgroup_id INTEGER,
  device_id INTEGER,
  layer_id INTEGER,
  bytes INTEGER NOT NULL,
  padding_bytes INTEGER NOT NULL,
  parent_id INTEGER,
  status INTEGER NOT NULL
) STRICT;

CREATE TABLE counter (
  track_id INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  value REAL
) STRICT;

-- Where spans of one track stand side by side: the index of table span, a row for hundreds of them.
CREATE TABLE span_run (
  first_id INTEGER PRIMARY KEY,
  last_id INTEGER NOT NULL,
  track_id INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  end_ts INTEGER NOT NULL,
  lod_level INTEGER NOT NULL
) STRICT;

-- Where a batch's spans and their runs are: the index of table span_run, some rows a second.
CREATE TABLE span_batch (
  first_id INTEGER PRIMARY KEY,
  last_id INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  end_ts INTEGER NOT NULL
) STRICT;

-- Levels of detail of the timeline: storage/rundb/lod.h. By time before track: what a batch of all
-- tracks adds to is then on a few pages, and each page that a batch touches is written once more.
CREATE TABLE lod (
  level INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  track_id INTEGER NOT NULL,
  bin INTEGER NOT NULL,
  count INTEGER NOT NULL,
  busy INTEGER NOT NULL,
  longest INTEGER NOT NULL,
  longest_name_id INTEGER NOT NULL,
  PRIMARY KEY (level, chunk, track_id, bin)
) STRICT, WITHOUT ROWID;

CREATE TABLE long_span (
  track_id INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  span_id INTEGER NOT NULL,
  end_ts INTEGER NOT NULL,
  level INTEGER NOT NULL,
  PRIMARY KEY (track_id, ts, span_id)
) STRICT, WITHOUT ROWID;

-- In order of the effect, as batches bring them, so that appending is all there is to do.
CREATE TABLE flow (
  to_span INTEGER NOT NULL,
  from_span INTEGER NOT NULL,
  PRIMARY KEY (to_span, from_span)
) STRICT, WITHOUT ROWID;

CREATE TABLE device (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  memory_bytes INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE link (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  read_bytes_per_s REAL NOT NULL,
  write_bytes_per_s REAL NOT NULL,
  latency INTEGER NOT NULL,
  duplex TEXT NOT NULL CHECK (duplex IN ('full', 'half'))
) STRICT;

CREATE TABLE track_link (
  track_id INTEGER NOT NULL,
  link_id INTEGER NOT NULL,
  direction TEXT NOT NULL CHECK (direction IN ('read', 'write')),
  PRIMARY KEY (track_id, link_id, direction)
) STRICT, WITHOUT ROWID;

-- What a span's name means: the producer's table of stages. No reader knows one by its name.
CREATE TABLE stage (
  name_id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('transfer', 'kernel')),
  place TEXT NOT NULL
    CHECK (place IN ('compute', 'host', 'device', 'accelerator', 'peer', 'ranks')),
  drive_file TEXT,
  phase TEXT CHECK (phase IN ('forward', 'backward', 'parameters')),
  cause TEXT,
  set_off_by TEXT,
  every_step INTEGER NOT NULL,
  colour TEXT NOT NULL
) STRICT;

-- In which mode steps ran: a row holds from its step on, until the next.
CREATE TABLE mode (
  ts INTEGER NOT NULL,
  step_id INTEGER NOT NULL,
  line TEXT NOT NULL
) STRICT;

CREATE TABLE subgroup (
  id INTEGER PRIMARY KEY,
  first INTEGER NOT NULL,
  count INTEGER NOT NULL,
  device_id INTEGER
) STRICT;

CREATE TABLE knob (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  unit TEXT NOT NULL,
  minimum REAL,
  maximum REAL,
  default_value TEXT NOT NULL,
  safe_point TEXT NOT NULL
) STRICT;

CREATE TABLE knob_change (
  ts INTEGER NOT NULL,
  step_id INTEGER,
  knob_id INTEGER NOT NULL,
  old TEXT NOT NULL,
  new TEXT NOT NULL,
  who TEXT NOT NULL
) STRICT;

-- How well the emulated clock kept to the model, from a step on, until the next step with rows.
CREATE TABLE lateness (
  step_id INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  operations INTEGER NOT NULL,
  late INTEGER NOT NULL,
  modelled_dur INTEGER NOT NULL,
  late_dur INTEGER NOT NULL,
  PRIMARY KEY (step_id, name_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdict (
  step_id INTEGER NOT NULL,
  cause TEXT NOT NULL,
  share REAL NOT NULL,
  PRIMARY KEY (step_id, cause)
) STRICT, WITHOUT ROWID;
