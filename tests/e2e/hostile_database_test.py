#!/usr/bin/env python3
"""Run databases that were made to do harm, through every command that reads one: each ends, with
an answer or with one message; nothing of theirs runs, and nothing of theirs reaches the terminal or
the page as anything but text."""

import concurrent.futures
import contextlib
import re
import sqlite3
import sys

from hostile_databases import ADDED, CHANGED_SCHEMA, changed
from sluice_run import main, require, require_equal, sluice, test

# Sums and differences of these do not fit.
EXTREME = {f"{column} of a {table} at its {end}": f"UPDATE {table} SET {column} = {value}"
           for table, columns in {"span": ("submit_ts", "ts", "dur", "step_id", "device_id",
                                           "bytes"),
                                  "step": ("ts", "dur", "tokens"), "lod": ("busy",),
                                  "device": ("memory_bytes",), "link": ("latency",)}.items()
           for column in columns
           for end, value in (("most", "9223372036854775807"), ("least", "-9223372036854775808"))}


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
