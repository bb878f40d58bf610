#!/usr/bin/env python3
"""`sluice predict`: what settings would do to a run, by itself and together, beside what simulation
and the emulated clock make of them; what cannot be predicted, and what is refused."""
# Runs alone: it compares times of the emulated clock with simulated ones.

import json
import os
import shutil
import signal
import sys

from sluice_run import (SAMPLES, TESTBED, database, main, require, require_equal, require_words,
                        setting_arguments, sluice, test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"


def simulated(place, name="sim.db", **settings):
    words = setting_arguments({"devices": 4, **settings})
    return sluice("simulate", MODEL, "--platform", TESTBED, "--db", place / name, *words,
                  "--json").json()["seconds"]["total"]


def emulated(place, name="out", **settings):
    """A run whose steps take what the platform says, thirty times over."""
    chosen = {"output": name, "steps": 6, "clock": "emulated", "time_scale": 30, **settings}
    place.train(**chosen).done()
    return place / name / "run.db"


@test
def settings_together_are_predicted_to_take_what_a_run_with_them_takes(place):
    now = simulated(place, pipeline="serial", buffers=1)
    then = simulated(place, "then.db", pipeline="nbuffer", buffers=2)
    said = sluice("predict", place / "sim.db", "pipeline=nbuffer", "buffers=2", "--json").json()
    require_equal(set(said), {"run", "fit_error", "recorded_seconds", "simulated_seconds",
                              "predictions", "unavailable"}, "keys")
    require_equal((said["unavailable"], len(said["predictions"])), ("", 1), "predictions")
    one = said["predictions"][0]
    require_equal((one["settings"], one["from"], one["why"]),
                  (["pipeline=nbuffer", "buffers=2"], ["pipeline=serial", "buffers=1"], ""),
                  "settings")
    require(abs(said["recorded_seconds"] / now - 1) < 1e-6, f"recorded {said}, simulated {now}")
    require(abs(one["seconds"] / then - 1) < 0.03, f"predicted {one}, simulated {then}")
    require(abs(one["change"] - (one["seconds"] / said["simulated_seconds"] - 1)) < 1e-6,
            f"the change is not that of the seconds: {said}")
    # Also what makes it longer is said.
    worse = sluice("predict", place / "then.db", "pipeline=serial", "--json").json()
    require(worse["predictions"][0]["change"] > 0.02, f"serial is no longer: {worse}")


@test
def without_settings_each_suggestion_is_predicted_by_itself(place):
    simulated(place, pipeline="serial")
    said = sluice("predict", place / "sim.db", "--json").json()
    shown = sluice("show", place / "sim.db", "--json").json()["verdict"]["predicted"]
    require(shown, "nothing is suggested, so nothing is tested")
    require_equal([(one["settings"], one["why"]) for one in said["predictions"]],
                  [([one["setting"]], one["why"]) for one in shown], "suggestions")
    text = sluice("predict", place / "sim.db").done().out
    require_words(text, ["PREDICTED", "recorded", "a step; simulated", "settings", "change",
                         "pipeline=nbuffer", "pipeline=serial", shown[0]["why"]], "the table")


@test
def seconds_are_those_of_the_recording_also_where_its_clock_is_scaled(place):
    serial = emulated(place, pipeline="serial")
    said = sluice("predict", serial, "pipeline=nbuffer", "--json").json()
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
        reply = sluice("predict", run_database, "buffers=4", "--json")
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
    said = sluice("predict", short, "buffers=4", "--json").json()
    require_equal((said["run"], said["predictions"]), ("run", []), "what is said")
    require_words(said["unavailable"], ["steady", "record more"], "unavailable")
    require_words(sluice("predict", short).done().out, ["Nothing is predicted", "record more"],
                  "predict")
    bare = emulated(place, "bare", record="steps")
    said = sluice("predict", bare, "--json").json()
    require_words(said["unavailable"], ["record=all"], "unavailable")
    # Also then a setting that is none is refused.
    sluice("predict", short, "bufers=4").refused(2, ["did you mean 'buffers'?"])


@test
def what_is_no_setting_or_no_run_is_refused(place):
    simulated(place)
    run = place / "sim.db"
    for settings, words in (
            (["bufers=4"], ["predict bufers=4", "did you mean 'buffers'?"]),
            (["buffers"], ["expected key=value"]),
            (["buffers=0"], ["predict buffers=0", "1 to 64"]),
            (["density=nan"], ["density"]),
            (["device_map=1,2,3"], ["predict device_map=1,2,3", "3 shares but devices = 4"]),
            (["devices=64"], ["64"]),
            (["gradient_tier=memory"], ["needs method"]),
            (["platform=other.toml"], ["the run's own is used", "sluice simulate"]),
            (["time_scale=2"], ["the run's own is used"])):
        reply = sluice("predict", run, *settings, "--json").refused(2, words)
        require_equal(reply.out, "", f"stdout of {settings}")
    sluice("predict", place / "nowhere.db").refused(2, ["nowhere.db"])
    sluice("predict", place.run_file).refused(2, ["run.toml"])
    cut = shutil.copy(run, place / "cut.db")
    os.truncate(cut, 3000)
    sluice("predict", cut).refused(2, ["cut.db"])


if __name__ == "__main__":
    sys.exit(main())
