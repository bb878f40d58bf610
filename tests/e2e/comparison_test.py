#!/usr/bin/env python3
"""Comparing runs: whether they can be compared, what is judged of those that cannot, and the page
of a comparison."""

import contextlib
import shutil
import sqlite3
import sys

from sluice_run import (SAMPLES, database, main, require, require_equal, require_words, sluice,
                        test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"
# What a comparison rests on, each made another in a copy of a run: what it is called, and how.
FACTS = (
    ("model", "UPDATE meta SET value = replace(value, 'layers = 2', 'layers = 3') "
              "WHERE key = 'model_text'"),
    ("text", "UPDATE meta SET value = '/other/book.txt' WHERE key = 'text'"),
    ("batch", "UPDATE meta SET value = '64' WHERE key = 'batch'"),
    ("sequence", "UPDATE meta SET value = '16' WHERE key = 'sequence'"),
    ("micro-batches", "UPDATE meta SET value = '4' WHERE key = 'grad_accum_steps'"),
    ("optimizer", "UPDATE meta SET value = 'sgd' WHERE key = 'optimizer'"),
    ("precision", "UPDATE meta SET value = 'fp16' WHERE key = 'precision'"),
    ("platform", "UPDATE meta SET value = replace(value, 'adamw = ', 'adamw = 9') "
                 "WHERE key = 'platform_text'"),
    ("processor", "UPDATE meta SET value = 'Z80, 1 processors, CP/M 2.2' WHERE key = 'machine'"),
    ("devices' kind", "UPDATE meta SET value = 'xrt' WHERE key = 'backend'"),
    ("clock", "UPDATE meta SET value = 'real' WHERE key = 'clock'"),
    ("time scale", "UPDATE meta SET value = '2' WHERE key = 'time_scale'"),
    ("recording", "UPDATE meta SET value = 'transfers' WHERE key = 'record'"),
)
# What may differ: what somebody turns, comments and names, and where a run lay.
TURNED = (
    "UPDATE meta SET value = 'serial' WHERE key = 'pipeline'",
    "UPDATE meta SET value = '7' WHERE key = 'buffers'",
    "UPDATE meta SET value = '# another comment\n' || value WHERE key IN ('model_text', "
    "'platform_text')",
    "UPDATE meta SET value = replace(value, 'name = \"nano\"', 'name = \"mine\"') "
    "WHERE key = 'model_text'",
    "UPDATE meta SET value = replace(value, 'Linux', 'Other') WHERE key = 'machine'",
    "UPDATE meta SET value = 'another' WHERE key = 'host_name'",
)


def trained(place, output="out", **settings):
    place.train(**{"steps": 8, "output": output, "clock": "emulated", "time_scale": 30,
                   **settings}).done()
    return place / output / "run.db"


def changed(run, path, *statements):
    """A copy of a run in which some facts are others."""
    shutil.copy(run, path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        before = db.total_changes
        for statement in statements:
            db.execute(statement)
            require(db.total_changes > before, f"{statement} changed nothing")
        db.commit()
    return path


def comparability(a, b):
    return sluice("compare", a, b, "--json").json()["comparability"]


# Comparability ------------------------------------------------------------------------------------


@test
def each_fact_that_differs_is_said_first_and_no_condition_is_judged(place):
    run = trained(place)
    whole = comparability(run, run)
    require_equal((whole["comparable"], whole["unknown"]), (True, []), "a run and itself")
    require_equal(sorted(whole["same"]), sorted(what for what, _ in FACTS), "what is looked at")
    for what, statement in FACTS:
        other = changed(run, place / "other.db", statement)
        found = comparability(run, other)
        require_equal([one["what"] for one in found["mismatches"]], [what], f"after {statement}")
        require(found["mismatches"][0]["meaning"].endswith("."), f"{what} is not explained")
        reply = sluice("compare", run, other, "--fail-if", "step_time>+3%")
        require_equal(reply.code, 4, f"exit code, another {what}")
        require(reply.out.startswith("NOT COMPARABLE: "), f"{what} is not said first: {reply.out}")
        require_words(reply.out, [f"{what}: ", "NOT JUDGED: --fail-if 'step_time>+3%'"], what)
        judged = sluice("compare", run, other, "--fail-if", "step_time>+3%",
                        "--even-if-incomparable")
        require_equal(judged.code, 0, f"exit code with --even-if-incomparable, another {what}")
        require_words(judged.out, ["NOT COMPARABLE: ", "Held: --fail-if"], what)
        require_equal(sluice("compare", run, other).code, 0, "exit code without a condition")


@test
def what_somebody_turns_and_what_is_only_written_otherwise_can_be_compared(place):
    run = trained(place)
    for statement in TURNED:
        other = changed(run, place / "other.db", statement)
        require_equal(comparability(run, other)["mismatches"], [], f"after {statement}")
        reply = sluice("compare", run, other, "--fail-if", "step_time>+3%")
        require_equal(reply.code, 0, f"exit code after {statement}")
        require("NOT COMPARABLE" not in reply.out, f"after {statement}: {reply.out}")


@test
def what_a_database_does_not_say_is_not_taken_for_the_same(place):
    run = trained(place)
    without = changed(run, place / "without.db", "DELETE FROM meta WHERE key = 'precision'")
    found = comparability(run, without)["mismatches"]
    require_equal([(one["what"], one["b"]) for one in found], [("precision", "not recorded")],
                  "a fact that one lacks")
    both = comparability(without, without)
    require_equal((both["comparable"], both["unknown"]), (True, ["precision"]),
                  "a fact that both lack")
    require_words(sluice("compare", without, without).out, ["neither run says its precision"],
                  "compare")


@test
def a_simulated_run_needs_no_processor_and_no_text_to_be_compared(place):
    a = place.simulate(MODEL, "a.db", devices=4)
    b = changed(a, place / "b.db", "UPDATE meta SET value = 'Z80' WHERE key = 'machine'",
                "UPDATE meta SET value = 'a' WHERE key = 'text'")
    require_equal(comparability(a, b)["mismatches"], [], "simulated runs")
    live = trained(place)
    require_words(" ".join(one["what"] for one in comparability(a, live)["mismatches"]),
                  ["clock", "model"], "a simulated run and a real one")


@test
def figures_that_hold_for_less_than_they_seem_are_cautioned_about(place):
    run = trained(place)
    short = changed(run, place / "short.db", "DELETE FROM step WHERE id > 2")
    lossy = changed(run, place / "lossy.db", "UPDATE stat SET value = 17 "
                    "WHERE name = 'records_dropped_ring_full'")
    place.train("--at", "5:buffers=2", steps=8, output="turned", clock="emulated",
                time_scale=30).done()
    for other, words in ((short, ["B has one step to compare"]),
                         (lossy, ["B lacks records"]),
                         (place / "turned/run.db", ["B was changed while it ran (last: buffers=2"])):
        reply = sluice("compare", run, other).done()
        require_words(reply.out, words, other.name)
        require(comparability(run, other)["comparable"], f"{other.name} cannot be compared")


@test
def the_loss_is_that_of_the_last_step_that_both_have(place):
    a = trained(place, steps=8)
    b = trained(place, "longer", steps=10)
    found = sluice("compare", a, b, "--json").json()["figures"]["loss"]
    with database(b) as db:
        wanted = db.execute("SELECT loss FROM step WHERE id = 7").fetchone()[0]
    require_equal((found["a"], found["b"]), (wanted, wanted), "losses")


if __name__ == "__main__":
    sys.exit(main())
