#!/usr/bin/env python3
"""Run databases that were made to do harm, through every command that reads one: each ends, with
an answer or with one message; nothing of theirs runs, and nothing of theirs reaches the terminal or
the page as anything but text."""

import concurrent.futures
import contextlib
import pathlib
import re
import shutil
import sqlite3
import sys
import tempfile

from sluice_run import main, require, require_equal, sluice, test

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
# Sums and differences of these do not fit.
EXTREME = {f"{column} of a {table} at its {end}": f"UPDATE {table} SET {column} = {value}"
           for table, columns in {"span": ("submit_ts", "ts", "dur", "step_id", "device_id",
                                           "bytes"),
                                  "step": ("ts", "dur", "tokens"), "lod": ("busy",),
                                  "device": ("memory_bytes",), "link": ("latency",)}.items()
           for column in columns
           for end, value in (("most", "9223372036854775807"), ("least", "-9223372036854775808"))}


def changed(run, place, statements):
    """A copy of a run in a folder of its own, with something done to it."""
    copy = pathlib.Path(tempfile.mkdtemp(dir=place.path)) / "hostile.db"
    shutil.copy(run, copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        db.executescript(statements)
        db.commit()
    return copy


def some_commands_on(database, run):
    """One command of each way to read a run database."""
    yield ("show", database)
    yield ("compare", database, run)
    yield ("replay", database, "--link", "host=x2")
    yield ("report", database, "-o", database.with_name("page.html"))
    yield ("export", database, "--format", "chrome", "-o", database.with_name("run.json"))


def commands_on(database, run):
    """Each command that reads a run database."""
    yield ("show", database)
    yield ("show", database, "--json", "--last", 1000)
    yield ("compare", database, run)
    yield ("compare", run, database, "--json")
    yield ("replay", database, "--drives", 3)
    yield ("simulate", "--fit", "--like", database)
    yield ("simulate", "--fit", "--like", database, "--json")
    yield ("tune", database)
    yield ("knobs", database)
    yield ("report", database, "-o", database.with_name("page.html"))
    for form in ("chrome", "csv", "nsys"):
        yield ("export", database, "--format", form, "-o", database.with_name(f"run.{form}"))


def require_harmless(reply, what):
    require(reply.code in (0, 1, 2), f"{what}: `{reply.line}` ended with {reply.code}")
    text = reply.out + reply.err
    acted_on = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    require(acted_on is None, f"{what}: `{reply.line}` printed {acted_on and acted_on[0]!r}")
    forged = [line for line in text.splitlines() if line.startswith("sluice: error: forged")]
    require(not forged, f"{what}: `{reply.line}` printed a line of the file's own")


def each_of(cases, check):
    """Side by side, since each command takes a while to begin."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda case: check(*case), cases.items()):
            pass  # an exception of a check comes out here


@test
def tables_and_views_of_others_are_refused(place):
    place.train("--steps", 6, clock="real").done()
    run = place / "out/run.db"

    def check(what, statements):
        database = changed(run, place, statements)
        before = database.read_bytes()
        for command in commands_on(database, run):
            reply = sluice(*command)
            require_harmless(reply, what)
            require(reply.code == 2, f"{what}: `{reply.line}` ended with {reply.code}")
        require(database.read_bytes() == before, f"{what}: the file was written to")
        beside = {path.name for path in database.parent.iterdir()} - {"hostile.db", "run.csv"}
        require(not beside, f"{what}: {beside} was written")
    each_of(CHANGED_SCHEMA, check)


@test
def whatever_stands_in_the_rows_is_shown_or_refused(place):
    place.train("--steps", 6, clock="real").done()
    run = place / "out/run.db"

    def check(what, statements):
        database = changed(run, place, statements)
        for command in commands_on(database, run):
            require_harmless(sluice(*command), what)
        require(not database.with_name("up.csv").exists(),
                f"{what}: a table was written beside the folder")
    each_of(ADDED, check)


@test
def numbers_at_the_ends_of_what_a_column_holds_are_shown_or_refused(place):
    place.train("--steps", 6, clock="real").done()
    run = place / "out/run.db"

    def check(what, statements):
        for command in some_commands_on(changed(run, place, statements), run):
            require_harmless(sluice(*command), what)
    each_of(EXTREME, check)


@test
def a_name_is_text_in_the_page_and_in_each_export(place):
    place.train("--steps", 6, clock="real").done()
    database = changed(place / "out/run.db", place,
                       ADDED["names that a terminal and a page act on"])
    sluice("report", database, "-o", place / "page.html").done()
    page = (place / "page.html").read_bytes().decode("utf-8")
    for words in ("<script>alert(1)", "<img src=x"):
        require(words not in page, f"the page holds {words!r}")
    require_equal(page.count("</script>"), 2, "ends of scripts in the page")
    sluice("export", database, "--format", "chrome", "-o", place / "run.json").done()
    (place / "run.json").read_bytes().decode("utf-8")


@test
def a_run_goes_on_with_no_file_of_others(place):
    place.train("--steps", 2, clock="real").done()
    whole = place.digest()
    database = place / "out/run.db"
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.executescript(CHANGED_SCHEMA["a trigger"])
        db.commit()
    spans = "SELECT count(*) FROM span"
    with contextlib.closing(sqlite3.connect(database)) as db:
        before = db.execute(spans).fetchone()
    place.train("--resume", "--steps", 4, clock="real").refused(2, ["trigger 'evil'", "run.db"])
    require_equal(place.digest(), whole, "digest")
    with contextlib.closing(sqlite3.connect(database)) as db:
        require_equal(db.execute(spans).fetchone(), before, "spans")


if __name__ == "__main__":
    sys.exit(main())
