#!/usr/bin/env python3
"""`show`, `report`, `export` and `compare` on files that are no run database, or one of another
version, cut or damaged, and on runs with little in them: one clear message and exit code 2, or
something useful, and never half a file."""

import contextlib
import shutil
import signal
import sqlite3
import sys

from sluice_run import main, require, require_equal, require_words, sluice, test

FORMATS = ("chrome", "csv", "nsys")


def trained(place, **settings):
    settings = {"steps": 6, "clock": "real", **settings}
    place.train(**settings).done()
    return place / "out/run.db"


def changed(run, name, *statements):
    """A copy of a run, with something done to it."""
    copy = run.with_name(name)
    shutil.copy(run, copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return copy


def readers_of(database, other, place):
    """Each command that reads this database, and what it would write."""
    yield ("show", database), None
    yield ("compare", database, other), None
    yield ("compare", other, database), None
    yield ("replay", database), None
    yield ("report", database, "-o", place / "new.html"), place / "new.html"
    for form in FORMATS:
        out = place / f"new.{form}"
        yield ("export", database, "--format", form, "-o", out), out


def bad_files(place, run):
    """Name, and the words that say what is wrong with it."""
    whole = run.read_bytes()
    (place / "text.db").write_text("no database at all, but long enough to look like one\n" * 99)
    (place / "empty.db").write_bytes(b"")
    (place / "cut.db").write_bytes(whole[: len(whole) // 2])
    (place / "head.db").write_bytes(whole[:1000])
    (place / "folder.db").mkdir()
    with contextlib.closing(sqlite3.connect(place / "foreign.db")) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
        db.commit()
    changed(run, "newer.db", "PRAGMA user_version = 99",
            "UPDATE meta SET value = 'Sluice 9.9.9' WHERE key = 'written_by'").rename(
                place / "newer.db")
    changed(run, "older.db", "PRAGMA user_version = 2").rename(place / "older.db")
    return {"text.db": ["not a database"], "empty.db": ["is empty"], "cut.db": ["damaged"],
            "head.db": ["head.db"], "foreign.db": ["not a run database of Sluice"],
            "newer.db": ["Sluice 9.9.9", "version 99"], "older.db": ["version 2"],
            "nowhere.db": ["there is no such run database"], "folder.db": ["folder.db"]}


@test
def what_is_no_run_database_is_one_message_and_exit_code_2(place):
    run = trained(place)
    for name, words in bad_files(place, run).items():
        for command, out in readers_of(place / name, run, place):
            reply = sluice(*command).refused(2, [name, *words])
            require_equal(reply.out, "", f"standard output of {reply.line}")
            require(out is None or not out.exists(), f"{reply.line} left {out}")


@test
def a_run_without_steps_is_shown_and_exported_and_not_compared(place):
    run = trained(place)
    none = changed(run, "none.db", "DELETE FROM step", "DELETE FROM verdict")
    for command, out in readers_of(none, run, place):
        if command[0] == "compare":
            sluice(*command).refused(2, ["none.db", "no step has ended"])
        else:
            text = sluice(*command).done().out
            require(out is None or out.exists(), f"{command}: nothing was written")
            require(command[0] != "show" or "No step has ended" in text, text)
    require_equal(sluice("show", none, "--json").json()["steps"], [], "steps")


@test
def one_step_is_enough_for_each_command(place):
    run = trained(place)
    one = changed(run, "one.db", "DELETE FROM step WHERE id > 0")
    for command, out in readers_of(one, run, place):
        reply = sluice(*command).done()
        require(out is None or out.exists(), f"{reply.line}: nothing was written")
    require_words(sluice("show", one).done().out, ["1 step,", "Why a step takes"], "show")
    figures = sluice("compare", one, one, "--json").json()["figures"]
    require_equal(figures["step_time"]["change"], 0, "change of a step's time")


@test
def losses_that_are_no_numbers_are_shown_as_none(place):
    run = trained(place)
    nan = changed(run, "nan.db", "UPDATE step SET loss = NULL, grad_norm = NULL")
    for command, _ in readers_of(nan, run, place):
        reply = sluice(*command).done()
        require("nan" not in reply.out.replace("nan.db", "").lower(), f"{reply.line}: {reply.out}")
    steps = sluice("show", nan, "--json").json()["steps"]
    require_equal({step["loss"] for step in steps}, {None}, "losses")
    require("loss" not in sluice("compare", nan, run, "--json").json()["figures"],
            "a loss that is none is compared")
    sluice("compare", run, nan, "--fail-if", "loss>0").refused(2, ["'loss' is no figure of both"])


@test
def steps_that_took_no_time_divide_nothing_by_it(place):
    run = trained(place)
    still = changed(run, "still.db", "UPDATE step SET dur = 0")
    for command, _ in readers_of(still, run, place):
        reply = sluice(*command).done()
        words = reply.out.replace("\n", " ").split()
        require(not {"inf", "nan", "-nan", "-inf"} & set(words), f"{reply.line}: {reply.out}")


@test
def a_run_that_was_killed_reads_as_far_as_it_came(place):
    running = place.start("--steps", "100000", clock="real")
    database = place / "out/run.db"

    def has_steps():
        reply = sluice("show", database, "--json", "--no-predict")  # of the live run
        return reply.code == 0 and len(reply.json()["steps"]) > 5

    running.wait_for(has_steps, "rows of steps")
    running.signal(signal.SIGKILL)
    running.wait()
    for command, out in readers_of(database, database, place):
        reply = sluice(*command).done()
        require(out is None or out.exists(), f"{reply.line}: nothing was written")


if __name__ == "__main__":
    sys.exit(main())
