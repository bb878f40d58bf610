#!/usr/bin/env python3
"""`sluice tune RUN.db`: the platform is fitted to the run; what cannot be used is refused.

Simulated and emulated runs only: what they recorded does not depend on how fast this machine is.
"""
# Runs alone: it compares times of the emulated clock with simulated ones.

import os
import re
import shutil
import signal
import sqlite3
import sys

from sluice_run import (SAMPLES, TESTBED, database, main, require, require_equal, require_words,
                        sluice, test)

MODEL = SAMPLES / "models/gpt2-4.0b.toml"
PHASES = ("forward", "backward", "update", "total")


def simulated_run(place, platform=TESTBED):
    return place.simulate(MODEL, platform=platform, devices=4)


def wrong_platform(place):
    """The testbed with drives twice as fast, a slower update and slower products."""
    text = TESTBED.read_text()
    for key, wrong in (("2.77 GB/s", "5.54 GB/s"), ("2.48 GB/s", "4.96 GB/s"),
                       ("1.62 GB/s", "3.16 GB/s"), ("0.51 Gelem/s", "0.34 Gelem/s"),
                       ("55 TFLOP/s", "38.5 TFLOP/s")):
        require(key in text, f"the testbed has no {key}")
        text = text.replace(key, wrong)
    (place / "wrong.toml").write_text(text)
    return place / "wrong.toml"


def emulated_run(place, *flags, **settings):
    chosen = {"steps": 6, "clock": "emulated", "time_scale": 60, "record": "all", **settings}
    place.train(*flags, **chosen).done()
    return place / "out/run.db"


def rate(fit, owner, key):
    return next(rate for rate in fit["rates"] if (rate["owner"], rate["key"]) == (owner, key))


@test
def a_wrong_platform_is_fitted_to_the_steps_recorded_on_the_right_one(place):
    run = simulated_run(place)
    fit = sluice("tune", run, "--platform", wrong_platform(place), "--json").json()["fit"]
    for phase in PHASES:
        require(abs(fit["seconds"][phase]["error"]) < 0.03, f"{phase}: {fit['seconds'][phase]}")
    before = fit["seconds"]["update"]["before"] / fit["seconds"]["update"]["recorded"]
    require(before < 0.9, f"the wrong platform was not wrong: {fit['seconds']['update']}")
    for owner, key, true_rate in (("compute", "matmul", 55e12), ("csd0.engine", "adamw", 0.51e9),
                                  ("csd0.internal", "write", 1.62e9)):
        found = rate(fit, owner, key)
        require(found["is_fitted"] and abs(found["fitted"] / true_rate - 1) < 0.1, f"{found}")
    require(fit["is_good"], "the fit is called bad")


@test
def the_right_platform_is_left_as_it_is_and_the_search_is_that_of_the_model(place):
    run = simulated_run(place)
    report = sluice("tune", run, "--json").json()
    require(report["fit"]["rates"], "the fit has no rates")
    for found in report["fit"]["rates"]:
        require(abs(found["fitted"] / found["file"] - 1) < 1e-3, f"{found}")
    plain = sluice("tune", MODEL, "--platform", TESTBED, "--set", "devices=4", "--json").json()
    require_equal([change["to"] for change in report["changes"]],
                  [change["to"] for change in plain["changes"]], "changes")
    require(abs(report["seconds"]["after"] / plain["seconds"]["after"] - 1) < 1e-3, f"{report}")
    require_equal(report["fit"]["seconds"]["total"]["recorded"],
                  report["fit"]["seconds"]["total"]["low"], "the spread of one step")


@test
def the_text_begins_with_the_fit_and_goes_on_with_what_to_change(place):
    text = sluice("tune", simulated_run(place), "--platform", wrong_platform(place)).done().out
    words = ["RECORDED", "SIMULATED CLOCK", "simulated, fitted", "engine adamw (4)",
             "Not measured by this run", "off in a whole step", "as fitted", "--set",
             "combinations were simulated"]
    require_words(text, words, "the text")
    require_equal(sorted(words, key=text.find), words, "the order")


@test
def an_emulated_run_fits_the_platform_that_it_was_emulated_on(place):
    # So slow a machine is modelled that this one, busy or not, is in time for most operations; what
    # ends late all the same is recorded as it was.
    report = sluice("tune", emulated_run(place, time_scale=400), "--json").json()
    fit = report["fit"]
    require_equal((fit["steps"], fit["steps_recorded"], fit["time_scale"]), (4, 6, 400), "steps")
    require(abs(fit["seconds"]["total"]["error"]) < 0.25, f"{fit['seconds']}")
    # Seconds are those of the run's own clock, as its steps are recorded.
    with database(place / "out/run.db") as db:
        steps = sorted(dur for dur, in db.execute("SELECT dur FROM step WHERE id >= 2"))
    recorded = fit["seconds"]["total"]["recorded"] * 1e9
    require(steps[0] <= recorded <= steps[-1], f"{recorded} ns, recorded {steps}")
    ratio = report["seconds"]["before"] * 1e9 / recorded
    require(0.75 < ratio < 1.25, f"a step is {ratio} of what was recorded")
    require(report["seconds"]["after"] <= report["seconds"]["before"], f"{report['seconds']}")


@test
def a_real_run_computed_without_the_platforms_accelerators(place):
    place.train(steps=5, clock="real", platform=TESTBED, accelerators=1, record="all").done()
    fit = sluice("tune", place / "out/run.db", "--json").json()["fit"]
    owners = {rate["owner"] for rate in fit["rates"]}
    require("csd0.drive" in owners, f"{owners}")
    require(not any(owner.startswith("accelerator") for owner in owners), f"{owners}")


@test
def steps_before_a_change_of_a_knob_do_not_count(place):
    run = emulated_run(place, "--at", "3:pipeline=serial", steps=8)
    report = sluice("tune", run, "--hold", "pipeline", "--json").json()
    require_equal(report["fit"]["steps"], 3, "steady steps")
    text = sluice("tune", run).done().out
    require_words(text, ["3 of 8 steps"], "the text")


@test
def the_files_of_the_run_may_be_gone_and_others_may_be_named(place):
    run = simulated_run(place, platform=shutil.copy(TESTBED, place / "mine.toml"))
    (place / "mine.toml").unlink()
    sluice("tune", run, "--json").json()
    with sqlite3.connect(run) as db:
        db.execute("DELETE FROM meta WHERE key IN ('platform_text', 'model_text')")
    sluice("tune", run).refused(2, ["--model", "older Sluice"])
    sluice("tune", run, "--model", MODEL).refused(2, ["--platform", "older Sluice"])
    sluice("tune", run, "--model", MODEL, "--platform", TESTBED, "--json").json()
    sluice("tune", run, "--model", SAMPLES / "models/tiny.toml", "--platform",
           TESTBED).refused(2, ["parameters"])


@test
def the_fitted_platform_is_written_and_simulates_as_fitted(place):
    run = simulated_run(place)
    words = ("--platform", wrong_platform(place), "--write-platform", place / "fitted.toml")
    fit = sluice("tune", run, *words, "--json").json()["fit"]
    again = sluice("simulate", MODEL, "--platform", place / "fitted.toml", "--set", "devices=4",
                   "--json").json()["seconds"]
    for phase in PHASES:
        require(abs(again[phase] / fit["seconds"][phase]["after"] - 1) < 0.01, f"{phase}: {again}")
    sluice("tune", run, *words).refused(2, ["fitted.toml", "--force"])
    sluice("tune", run, *words, "--force").done()
    sluice("tune", MODEL, "--platform", TESTBED, "--write-platform",
           place / "none.toml").refused(2, ["--write-platform", "recorded run"])


def database_of_version(place, run, version):
    copy = shutil.copy(run, place / f"version{version}.db")
    with sqlite3.connect(copy) as db:
        db.execute(f"PRAGMA user_version = {version}")
    return copy


@test
def what_is_no_usable_recording_is_refused_with_exit_code_2(place):
    (place / "text.db").write_text("no database at all, but long enough to look like a page " * 99)
    (place / "empty.db").write_text("")
    with sqlite3.connect(place / "foreign.db") as db:
        db.execute("CREATE TABLE other (x)")
    run = simulated_run(place)
    without_steps = shutil.copy(run, place / "no_steps.db")
    with sqlite3.connect(without_steps) as db:
        db.execute("DELETE FROM step")
    short = shutil.copy(emulated_run(place, steps=3), place / "short.db")
    emulated_run(place, output="coarse", record="steps")
    for path, words in ((place / "nowhere.db", ["nowhere.db"]),
                        (place / "text.db", ["text.db", "not a database"]),
                        (place / "empty.db", ["empty.db"]),
                        (place / "foreign.db", ["foreign.db", "not a run database"]),
                        (database_of_version(place, run, 99), ["99", "newer"]),
                        (without_steps, ["no step has ended"]),
                        (short, ["short.db", "record more"]),
                        (place / "coarse/run.db", ["record=all"]),
                        (place / "run.toml", ["--platform"])):
        reply = sluice("tune", path).refused(2, words)
        require_equal(reply.out, "", "standard output")


@test
def help_shows_an_example_of_a_recorded_run(place):
    text = re.sub(r"\s+", " ", sluice("tune", "--help").done().out)
    require_words(text, ["RUN.db", "sluice tune out/tiny/run.db"], "--help")


def live_run(place, **settings):
    run = place.start("--json", steps=100_000, durability="never", clock="emulated",
                      time_scale=60, record="all", **settings)
    run_database = place / "out/run.db"

    def is_recorded():
        reply = sluice("tune", run_database, "--hold", "method", "--json")
        return reply.code == 0

    run.wait_for(lambda: os.path.exists(f"{run_database}.socket"), "first step")
    run.wait_for(is_recorded, "four recorded steps")
    return run, run_database


def knobs_of(run_database):
    return {knob["key"]: knob["value"]
            for knob in sluice("knobs", run_database, "--json").json()["knobs"]}


@test
def what_is_proposed_is_applied_to_a_live_run_all_at_once(place):
    run, run_database = live_run(place, pipeline="serial", buffers=1)
    said = sluice("tune", run_database, "--apply").done().out
    require_words(said, ["SIMULATED", "times as fast", "In force after step", "pipeline=nbuffer"],
                  "tune --apply")
    require("subgroup_elements=" not in said, f"what is no knob was tuned: {said}")
    require_equal(knobs_of(run_database)["pipeline"], "nbuffer", "pipeline in force")
    with database(run_database) as connection:
        rows = connection.execute("SELECT step_id, name, new, who FROM knob_change JOIN knob "
                                  "ON knob.id = knob_id").fetchall()
    require_equal({row[3] for row in rows}, {"tune"}, "who changed it")
    require_equal(len({row[0] for row in rows}), 1, "steps of the changes")
    in_force = int(said.split("In force after step ")[1].split(":")[0])
    require_equal(rows[0][0], in_force, "step of the changes")
    run.signal(signal.SIGTERM)
    run.wait()


@test
def a_proposal_that_holds_everything_changes_nothing(place):
    run, run_database = live_run(place)
    # The devices that a run was fitted to are never quite alike, so the map is among them.
    held = [word for key in ("method", "pipeline", "buffers", "wire", "overlap", "gradient_tier",
                             "device_map")
            for word in ("--hold", key)]
    report = sluice("tune", run_database, "--apply", "--json", *held).json()
    require_equal((report["changes"], report["applied_after_step"]), ([], None), "the report")
    run.signal(signal.SIGTERM)
    run.wait()


@test
def only_a_run_that_goes_on_takes_a_proposal(place):
    finished = emulated_run(place)
    sluice("tune", finished, "--apply").refused(2, ["no run listens there"])
    sluice("tune", MODEL, "--platform", TESTBED, "--apply").refused(2, ["RUN.db"])
    sluice("tune", finished, "--apply", "--devices", "1..2").refused(2, ["--devices"])
    sluice("tune", finished, "--apply", "--set", "buffers=2").refused(2, ["--set"])


if __name__ == "__main__":
    sys.exit(main())
