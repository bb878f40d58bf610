-- The tables of the processor samples, made with the first rows of a run that is sampled. They are
-- no part of the schema version: who does not know them leaves them unread.

CREATE TABLE sampled_thread (
  id INTEGER PRIMARY KEY,
  tid INTEGER NOT NULL,
  name TEXT NOT NULL
) STRICT;

CREATE TABLE sampled_function (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  library TEXT NOT NULL
) STRICT;

CREATE TABLE call (
  id INTEGER PRIMARY KEY,
  caller_id INTEGER,
  function_id INTEGER NOT NULL
) STRICT;

CREATE TABLE call_sample (
  thread_id INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  cpu INTEGER NOT NULL,
  call_id INTEGER NOT NULL
) STRICT;

CREATE TABLE processor_time (
  thread_id INTEGER NOT NULL,
  ts INTEGER NOT NULL,
  dur INTEGER NOT NULL,
  running INTEGER NOT NULL,
  preempted INTEGER NOT NULL,
  waiting INTEGER NOT NULL
) STRICT;
