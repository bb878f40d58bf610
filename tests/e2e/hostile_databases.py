"""Run databases that were made to do harm: what is done to a good one, and the copy it is done
to."""

import contextlib
import pathlib
import shutil
import sqlite3
import tempfile

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
# What a terminal acts on, what a page acts on, what is no UTF-8, and what ends a line.
EVIL = ("x'1b5b324a1b5d303b6576696c07' || '</script><script>alert(1)</script>' || "
        "'<img src=x onerror=alert(1)>\" autofocus onfocus=''alert(1)' || char(10) || "
        "'sluice: error: forged' || char(13) || char(0x9b) || char(0x202e) || x'ff80c3'")

CHANGED_SCHEMA = {
    "a view in place of the steps": "DROP TABLE step; CREATE VIEW step AS SELECT 1 AS id",
    "a view without an end in place of the facts":
        f"DROP TABLE meta; CREATE VIEW meta AS {ENDLESS} i AS key, i AS value FROM n",
    "another version, and a view without an end in place of the facts":
        f"PRAGMA user_version = 99; DROP TABLE meta; "
        f"CREATE VIEW meta AS {ENDLESS} i AS key, i AS value FROM n",
    "blobs in place of numbers":
        "DROP TABLE step; CREATE TABLE step (id, ts, dur, loss, grad_norm, loss_scale, tokens, "
        "skipped); INSERT INTO step VALUES (x'00', x'01', zeroblob(9), x'ff', 'a', 'b', 1, 2)",
    "a trigger": "CREATE TRIGGER evil AFTER INSERT ON step BEGIN DELETE FROM span; END",
}
ADDED = {
    "a view without an end": f"CREATE VIEW endless AS {ENDLESS} i FROM n",
    "a view of itself": "CREATE VIEW circle AS SELECT * FROM circle",
    "a table that names a path": "CREATE TABLE \"../up\" (x); INSERT INTO \"../up\" VALUES (1)",
    "tracks that are their own parents": "UPDATE track SET parent_id = id",
    "tracks in a circle": "UPDATE track SET parent_id = (SELECT max(id) FROM track) + 1 - id",
    "names that a terminal and a page act on":
        f"UPDATE string SET value = value || {EVIL}; UPDATE track SET name = name || {EVIL}; "
        f"UPDATE link SET name = name || {EVIL}; UPDATE device SET name = name || {EVIL}; "
        f"UPDATE meta SET value = value || {EVIL} WHERE key IN ('name', 'mode', 'machine', "
        f"'started_utc', 'state_dir', 'processor'); "
        f"INSERT INTO stat VALUES ({EVIL}, 'loss', 7, {EVIL}); "
        f"INSERT INTO meta VALUES ({EVIL}, {EVIL})",
    "spans of nothing": "UPDATE span SET track_id = -9, name_id = 1 << 62",
    "no names": "DELETE FROM string",
    "no tracks": "DELETE FROM track",
    "no index of spans": "DELETE FROM span_run",
    "an index of spans of all time": "UPDATE span_run SET ts = 0, end_ts = 9223372036854775807",
    "losses that are no numbers": "UPDATE step SET loss = 9e999, grad_norm = -9e999",
    "rates of nothing": "UPDATE link SET read_bytes_per_s = 0, write_bytes_per_s = -9e999",
    "counters without bounds": "UPDATE counter SET value = 9e999",
    "steps far apart": "UPDATE step SET id = id * 100000000",
    "steps out of order": "UPDATE step SET ts = -ts",
    "flows in a circle": "INSERT OR IGNORE INTO flow SELECT from_span, to_span FROM flow",
    "facts that are no numbers": "UPDATE meta SET value = '9e999' WHERE value GLOB '[0-9]*'",
    "facts that are huge": "UPDATE meta SET value = '99999999999' WHERE value GLOB '[0-9]*'",
    "facts that are negative": "UPDATE meta SET value = '-7' WHERE value GLOB '[0-9]*'",
    "a model without an end": "UPDATE meta SET value = replace(hex(zeroblob(50000)), '00', 'a.') "
                              "|| 'a = 1' WHERE key IN ('model_text', 'platform_text')",
    "facts gone": "DELETE FROM meta",
    "causes that are none": "UPDATE verdict SET cause = cause || 'x', share = 9e999",
}


def changed(run, place, statements):
    """A copy of a run in a folder of its own, with something done to it."""
    copy = pathlib.Path(tempfile.mkdtemp(dir=place.path)) / "hostile.db"
    shutil.copy(run, copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        db.executescript(statements)
        db.commit()
    return copy
