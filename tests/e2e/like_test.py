#!/usr/bin/env python3
"""`--like`: a run, trained or simulated, with the settings of a recorded one; knobs of that."""

import sys

from sluice_run import SAMPLES, TESTBED, database, main, require, require_equal, require_words
from sluice_run import setting_arguments, sluice, test

MODEL = SAMPLES / "models/gpt2-1.7b.toml"
# Where it lies, and what this machine had free then.
OWN = {"started_utc", "output", "state_dir", "db", "host_memory_cap", "host_memory_limit"}


def meta(path):
    with database(path) as connection:
        return {key: value for key, value in connection.execute("SELECT key, value FROM meta")
                if key not in OWN}


@test
def a_run_like_another_has_its_settings_and_learns_the_same(place):
    first = place.train("--json", "--at", "2:buffers=5", steps=4, density=0.5, seed=11).json()
    recorded, like = place / "out/run.db", place / "out-2/run.db"
    sluice("train", "--like", recorded, "--set", "output=out-2", "--json", cwd=place.path).done()
    was, now = meta(recorded), meta(like)
    # A knob is as it was last.
    require_equal(now.pop("buffers"), "5", "buffers")
    require_equal(was.pop("buffers"), "3", "buffers before")
    require_equal(now, was, "settings")
    third = sluice("train", "--like", like, "--set", "output=out-3", "--set", "density=1", "--json",
                   cwd=place.path).json()
    require_equal(meta(place / "out-3/run.db")["density"], "1", "density")
    require(third["losses"][0] == first["losses"][0], "the first step is another one")


@test
def a_run_like_another_writes_beside_it_and_says_where(place):
    place.train(steps=2).done()
    for name in ("out-2", "out-3"):
        report = sluice("train", "--like", "out", cwd=place.path).done().out
        require_words(report, [f"A run like out/run.db, written to {name}",
                               f"--set output={name}"], "the report")
        require((place / name / "run.db").exists(), f"there is no {name}/run.db")
    sluice("report", "out", "out-2", "-o", "page.html", cwd=place.path).done()
    # Beside the run, not where the program was started; a third is no out-2-2.
    (place / "elsewhere").mkdir()
    sluice("train", "--like", place / "out-2", "--json", cwd=place / "elsewhere").json()
    require((place / "out-4/run.db").exists(), "there is no out-4/run.db")
    sluice("train", "--like", place / "out", "--resume").refused(2, ["which run goes on?"])


@test
def a_simulated_run_is_simulated_again_without_its_files(place):
    words = setting_arguments({"devices": 4, "wire": "fp32"})
    model = place / "model.toml"
    model.write_text(MODEL.read_text())
    sluice("simulate", model, "--platform", TESTBED, "--db", place / "sim.db", *words).done()
    model.unlink()
    again = sluice("simulate", "--like", place / "sim.db", "--json").json()
    said = sluice("simulate", "--like", place / "sim.db", "--set", "wire=native", "--db",
                  place / "sim-2.db", "--json").json()
    then = sluice("simulate", MODEL, "--platform", TESTBED, *setting_arguments(
        {"devices": 4, "wire": "native"}), "--json").json()
    require_equal(said["seconds"], then["seconds"], "seconds")
    require(again["seconds"] != said["seconds"], "the setting changed nothing")
    third = sluice("simulate", "--like", place / "sim-2.db", "--json").json()
    require_equal(third["seconds"], then["seconds"], "of the one like it")


@test
def a_recorded_run_is_simulated_on_another_machine(place):
    words = setting_arguments({"devices": 4})
    sluice("simulate", MODEL, "--platform", TESTBED, "--db", place / "sim.db", *words).done()
    for name in ("smartssd-a100.toml", "smartssd-a4000-switch.toml"):
        other = SAMPLES / "platforms" / name
        said = sluice("simulate", "--like", place / "sim.db", "--platform", other, "--db",
                      place / "other.db", "--json").json()
        then = sluice("simulate", MODEL, "--platform", other, *words, "--json").json()
        require_equal(said["seconds"], then["seconds"], f"seconds on {name}")
        require_equal(said["settings"]["platform"], str(other), "its platform")
        again = sluice("simulate", "--like", place / "other.db", "--json").json()
        require_equal(again["seconds"], then["seconds"], "of the one like it")


@test
def the_knobs_of_a_run_that_is_over_are_listed(place):
    place.train("--at", "2:pipeline=serial", steps=3).done()
    db = place / "out/run.db"
    sluice("knobs", db).refused(2, ["no run listens there"])
    require_words(sluice("knobs", "--recorded", db).done().out,
                  ["as they were last", "pipeline", "serial", "1 to 64"], "knobs")
    listed = sluice("knobs", "--recorded", "--json", db).json()["knobs"]
    knobs = {knob["key"]: knob for knob in listed}
    require_equal(knobs["pipeline"]["value"], "serial", "pipeline")
    require_equal((knobs["buffers"]["min"], knobs["buffers"]["max"]), (1, 64), "bounds")


@test
def what_no_run_can_be_like_is_refused(place):
    sluice("train", "--like", place / "none.db").refused(2, ["none.db"])
    place.train(steps=2).done()
    db = place / "out/run.db"
    sluice("train", "--like", db, "--set", "output=out-2", "--set", "bufers=4").refused(
        2, ["did you mean 'buffers'?"])
    sluice("train", place / "run.toml", "--like", db).refused(2, ["excludes"])
    sluice("simulate").refused(2, ["--like RUN.db"])


if __name__ == "__main__":
    sys.exit(main())
