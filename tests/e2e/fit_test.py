#!/usr/bin/env python3
"""`sluice simulate --like RUN.db --fit`: what settings would do to a run, by itself and together,
beside what simulation makes of them; what is refused; `predict`, its old name. Of runs by the
emulated clock: fit_times_test.py."""

import os
import shutil
import sys

from sluice_run import (SAMPLES, TESTBED, main, require, require_equal, require_words,
                        setting_arguments, sluice, test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"


def fitted(run, *settings):
    """`sluice simulate` of a run as its steps show it, with settings."""
    words = [word for setting in settings for word in ("--set", setting)]
    return sluice("simulate", "--like", run, "--fit", *words, "--json")


def simulated(place, name="sim.db", **settings):
    words = setting_arguments({"devices": 4, **settings})
    return sluice("simulate", MODEL, "--platform", TESTBED, "--db", place / name, *words,
                  "--json").json()["seconds"]["total"]


@test
def settings_together_are_predicted_to_take_what_a_run_with_them_takes(place):
    now = simulated(place, pipeline="serial", buffers=1)
    then = simulated(place, "then.db", pipeline="nbuffer", buffers=2)
    said = fitted(place / "sim.db", "pipeline=nbuffer", "buffers=2").json()
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
    worse = fitted(place / "then.db", "pipeline=serial").json()
    require(worse["predictions"][0]["change"] > 0.02, f"serial is no longer: {worse}")


@test
def without_settings_every_setting_is_predicted_by_itself(place):
    now = simulated(place, pipeline="serial")
    said = fitted(place / "sim.db").json()
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
    text = sluice("simulate", "--like", place / "sim.db", "--fit").done().out
    require_words(text, ["PREDICTED", "recorded", "a step; simulated", "Turn next:",
                         "pipeline serial -> nbuffer", shown[0]["why"].split()[0]], "the list")


@test
def the_wire_is_tried_also_where_the_host_link_bounds_nothing(place):
    """GPT-2 4.0B on ten SmartSSDs is bound by the host's kernels: 16 bits on the wire spare them a
    conversion, which `tune` finds."""
    database = place / "sim.db"
    sluice("simulate", SAMPLES / "models/gpt2-4.0b.toml", "--platform", TESTBED, "--set",
           "devices=10", "--db", database).done()
    asked = fitted(database, "wire=native").json()["predictions"][0]
    require(asked["change"] < -0.05, f"wire=native gains nothing here: {asked}")
    text = sluice("show", database).done().out
    require_words(text, ["Turn next: wire fp32 -> native, predicted"], "show")


@test
def that_nothing_helps_is_said_only_of_all(place):
    best = {"pipeline": "nbuffer", "wire": "native", "density": 0.01, "devices": 10,
            "buffers": 2, "subgroup_elements": 40_000_000}
    for _ in range(8):
        simulated(place, **best)
        said = fitted(place / "sim.db").json()
        better = [one["settings"][0].split("=") for one in said["predictions"]
                  if one["change"] <= -0.02]
        if not better:
            break
        best.update({better[0][0]: better[0][1]})
    require(not better, f"no end of better settings: {better}")
    text = sluice("simulate", "--like", place / "sim.db", "--fit").done().out
    require_words(text, [f"No single change gains 2 % ({said['simulated_count']} simulated)"],
                  "the fit")


@test
def the_old_name_predicts_and_says_the_new_one(place):
    simulated(place, pipeline="serial")
    then = sluice("predict", "sim.db", "pipeline=nbuffer", "buffers=2", "--json", cwd=place.path)
    require_words(then.err, ["sluice simulate --fit --like sim.db --set pipeline=nbuffer --set "
                             "buffers=2 --json\n"], "the new name")
    require_equal(len(then.err.splitlines()), 1, "lines on stderr")
    now = fitted(place / "sim.db", "pipeline=nbuffer", "buffers=2").json()
    require_equal(then.json(), now, "the prediction")
    require(" predict" not in sluice("--help").done().out, "--help lists the old name")
    require_words(sluice("predict", "--help").done().out, ["sluice simulate --like"], "its help")


@test
def what_a_fit_does_not_have_is_refused_by_its_name(place):
    run = ("simulate", "--like", place / "sim.db", "--fit")
    for option in (("--platform", TESTBED), ("--platform-set", "link_scale=2"), ("--ranks", 2),
                   ("--db", place / "new.db"), ("--sweep", "devices=1..2")):
        sluice(*run, *option).refused(2, [option[0], "--fit"])
    sluice("simulate", "--fit").refused(2, ["--fit", "--like"])


@test
def what_is_no_setting_or_no_run_is_refused(place):
    simulated(place)
    run = place / "sim.db"
    for settings, words in (
            (["bufers=4"], ["--set bufers=4", "did you mean 'buffers'?"]),
            (["buffers"], ["expected key=value"]),
            (["buffers=0"], ["--set buffers=0", "1 to 64"]),
            (["density=nan"], ["density"]),
            (["device_map=1,2,3"], ["--set device_map=1,2,3", "3 shares but devices = 4"]),
            (["devices=64"], ["64"]),
            (["gradient_tier=memory"], ["needs method"]),
            (["platform=other.toml"], ["the run's own is used", "sluice simulate"]),
            (["time_scale=2"], ["the run's own is used"])):
        reply = fitted(run, *settings).refused(2, words)
        require_equal(reply.out, "", f"stdout of {settings}")
    fitted(place / "nowhere.db").refused(2, ["nowhere.db"])
    fitted(place.run_file).refused(2, ["run.toml"])
    cut = shutil.copy(run, place / "cut.db")
    os.truncate(cut, 3000)
    fitted(cut).refused(2, ["cut.db"])


if __name__ == "__main__":
    sys.exit(main())
