#!/usr/bin/env python3
"""`sluice simulate --like RUN.db --fit` on runs by the emulated clock: live ones, scaled ones, and
those of which nothing can be predicted."""
# Runs alone: a busy machine holds up what is recorded, and then nothing is predicted.

import json
import os
import signal
import sys

from sluice_run import database, main, require, require_equal, require_words, sluice, test


def fitted(run, *settings):
    """`sluice simulate` of a run as its steps show it, with settings."""
    words = [word for setting in settings for word in ("--set", setting)]
    return sluice("simulate", "--like", run, "--fit", *words, "--json")


def emulated(place, name="out", **settings):
    """A run whose steps take what the platform says, thirty times over."""
    chosen = {"output": name, "steps": 6, "clock": "emulated", "time_scale": 30, **settings}
    place.train(**chosen).done()
    return place / name / "run.db"


@test
def a_live_runs_knobs_come_before_what_needs_another_run(place):
    run = place.start(steps=100_000, durability="never", clock="emulated", time_scale=30,
                      pipeline="serial")
    database = place / "out/run.db"
    said = {}

    def is_predicted():
        reply = fitted(database)
        said.update(json.loads(reply.out) if reply.code == 0 else {})
        return said.get("unavailable") == ""

    run.wait_for(lambda: os.path.exists(f"{database}.socket"), "first step")
    run.wait_for(is_predicted, "four recorded steps")
    needs = {one["settings"][0].split("=")[0]: one["needs_new_run"]
             for one in said["predictions"]}
    require_equal({key for key, new in needs.items() if new}, {"devices", "subgroup_elements"},
                  "what needs a new run")
    knobs = {knob["key"] for knob in sluice("knobs", database, "--json").json()["knobs"]}
    require_equal({key for key, new in needs.items() if not new} - knobs, set(), "no knobs")
    run.signal(signal.SIGTERM)
    run.wait()


@test
def seconds_are_those_of_the_recording_also_where_its_clock_is_scaled(place):
    serial = emulated(place, pipeline="serial")
    said = fitted(serial, "pipeline=nbuffer").json()
    with database(serial) as connection:
        recorded = sorted(dur for dur, in connection.execute("SELECT dur FROM step WHERE id >= 2"))
    low, high = recorded[0] / 1e9, recorded[-1] / 1e9
    require(low <= said["recorded_seconds"] <= high, f"{said}, recorded {recorded}")
    require(0.5 < said["simulated_seconds"] / said["recorded_seconds"] < 2, f"{said}")


@test
def a_live_run_is_predicted_while_it_goes_on(place):
    run = place.start(steps=100_000, durability="never", clock="emulated", time_scale=30)
    run_database = place / "out/run.db"

    def said():
        reply = fitted(run_database, "buffers=4")
        return json.loads(reply.out) if reply.code == 0 else {}

    run.wait_for(lambda: os.path.exists(f"{run_database}.socket"), "first step")
    run.wait_for(lambda: said().get("unavailable") == "", "four recorded steps")
    require_equal(said()["predictions"][0]["from"], ["buffers=3"], "before the change")
    sluice("set", run_database, "buffers=2").done()
    run.wait_for(lambda: said().get("unavailable") == "" and
                 said()["predictions"][0]["from"] == ["buffers=2"], "steps with two buffers")
    run.signal(signal.SIGTERM)
    run.wait()


@test
def a_run_that_cannot_be_predicted_says_why_and_is_no_error(place):
    short = emulated(place, steps=2)
    said = fitted(short, "buffers=4").json()
    require_equal((said["run"], said["predictions"]), ("run", []), "what is said")
    require_words(said["unavailable"], ["steady", "record more"], "unavailable")
    text = sluice("simulate", "--like", short, "--fit").done().out
    require_words(text, ["Nothing is predicted", "record more"], "the fit")
    bare = emulated(place, "bare", record="steps")
    said = fitted(bare).json()
    require_words(said["unavailable"], ["record=all"], "unavailable")
    # Also then a setting that is none is refused.
    fitted(short, "bufers=4").refused(2, ["did you mean 'buffers'?"])


if __name__ == "__main__":
    sys.exit(main())
