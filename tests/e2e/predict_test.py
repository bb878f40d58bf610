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
                              "simulated_count", "caution", "predictions", "unavailable",
                              "answers"}, "keys")
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
def without_settings_every_setting_is_predicted_by_itself(place):
    now = simulated(place, pipeline="serial")
    said = sluice("predict", place / "sim.db", "--json").json()
    found = {one["settings"][0].split("=")[0]: one for one in said["predictions"]}
    require(found.keys() >= {"method", "pipeline", "wire", "buffers", "prefetch", "devices",
                             "subgroup_elements", "device_map", "density"} - {"device_map"},
            f"not simulated: {sorted(found)}")
    require_equal(len(found), len(said["predictions"]), "one value a setting")
    require(said["simulated_count"] > len(found), f"only {said['simulated_count']} simulated")
    for one in said["predictions"]:
        key, value = one["settings"][0].split("=")
        if key in ("method", "density"):  # another fit of rates than this run's may lie behind them
            continue
        then = simulated(place, "then.db", **{"pipeline": "serial", key: value})
        require(abs(one["change"] - (then / now - 1)) < 0.02,
                f"{one['settings']}: predicted {one['change']}, simulated {then / now - 1}")
    shown = sluice("show", place / "sim.db", "--json").json()["verdict"]["predicted"]
    require_equal({one["setting"] for one in shown},
                  {one["settings"][0] for one in said["predictions"] if one["change"] <= -0.02},
                  "worth saying")
    text = sluice("predict", place / "sim.db").done().out
    require_words(text, ["PREDICTED", "recorded", "a step; simulated", "Turn next:",
                         "pipeline serial -> nbuffer", shown[0]["why"].split()[0]], "the list")


@test
def the_wire_is_tried_also_where_the_host_link_bounds_nothing(place):
    """GPT-2 4.0B on ten SmartSSDs is bound by the host's kernels: 16 bits on the wire spare them a
    conversion, which `tune` finds."""
    database = place / "sim.db"
    sluice("simulate", SAMPLES / "models/gpt2-4.0b.toml", "--platform", TESTBED, "--set",
           "devices=10", "--db", database).done()
    asked = sluice("predict", database, "wire=native", "--json").json()["predictions"][0]
    require(asked["change"] < -0.05, f"wire=native gains nothing here: {asked}")
    text = sluice("show", database).done().out
    require_words(text, ["Turn next: wire fp32 -> native, predicted"], "show")


@test
def that_nothing_helps_is_said_only_of_all(place):
    best = {"pipeline": "nbuffer", "wire": "native", "density": 0.01, "devices": 10,
            "buffers": 2, "subgroup_elements": 40_000_000}
    for _ in range(8):
        simulated(place, **best)
        said = sluice("predict", place / "sim.db", "--json").json()
        better = [one["settings"][0].split("=") for one in said["predictions"]
                  if one["change"] <= -0.02]
        if not better:
            break
        best.update({better[0][0]: better[0][1]})
    require(not better, f"no end of better settings: {better}")
    text = sluice("predict", place / "sim.db").done().out
    require_words(text, [f"No single change gains 2 % ({said['simulated_count']} simulated)"],
                  "predict")


@test
def a_live_runs_knobs_come_before_what_needs_another_run(place):
    run = place.start(steps=100_000, durability="never", clock="emulated", time_scale=30,
                      pipeline="serial")
    database = place / "out/run.db"
    said = {}

    def is_predicted():
        reply = sluice("predict", database, "--json")
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
