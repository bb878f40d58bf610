#!/usr/bin/env python3
"""`sluice predict`: what settings would do to a run, by itself and together, beside what simulation
makes of them; what is refused. Of runs by the emulated clock: predict_times_test.py."""

import os
import shutil
import sys

from sluice_run import (SAMPLES, TESTBED, main, require, require_equal, require_words,
                        setting_arguments, sluice, test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"


def simulated(place, name="sim.db", **settings):
    words = setting_arguments({"devices": 4, **settings})
    return sluice("simulate", MODEL, "--platform", TESTBED, "--db", place / name, *words,
                  "--json").json()["seconds"]["total"]


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
