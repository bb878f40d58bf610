#!/usr/bin/env python3
"""A step planned by `sluice tune --placement` takes what it says by the emulated clock, in the
memory that it says."""
# Runs alone: it compares times of the emulated clock with simulated ones.

import shlex
import sys

from sluice_run import (DEEP_MODEL, SAMPLES, database, main, only_with_all, require, require_equal,
                        setting_arguments, sluice, test)

PLACEMENT = ("tune", "--placement")
# Models whose steps the modelled machine sets the pace of, slow as it is made here.
SLOW = {"clock": "emulated", "batch": 8, "sequence": 128, "subgroup_elements": 65536, "devices": 2,
        "platform": SAMPLES / "platforms/laptop.toml", "steps": 6, "time_scale": 40,
        "durability": "never"}


def ran(place, plan, name):
    """A run by the command that a plan prints: its report, and the seconds of a step."""
    words = shlex.split(plan["command"])[1:]
    report = sluice(*words, "--set", f"output={name}", "--json", cwd=place.path).json()
    return report, shortest_step(place / name / "run.db")


def shortest_step(path):
    """Seconds. No step is shorter than the modelled machine's; others this computer held up."""
    with database(path) as db:
        return db.execute("SELECT min(dur) FROM step WHERE id >= 2").fetchone()[0] / 1e9


def smallest_cap(message, setting):
    return message.split(f"the smallest {setting} that would do is ")[1].split(".")[0]


def require_kept_promises(place, name, **settings):
    """A plan under a cap that keeping everything exceeds, and the run that it leads to."""
    words = (*PLACEMENT, place.run_file, *setting_arguments({**SLOW, **settings}))
    free = sluice(*words, "--json", cwd=place.path).json()
    peak = free["memory"]["host"]["peak_bytes"]
    refused = sluice(*words, "--set", "host_memory=100MiB", cwd=place.path).refused(
        2, ["no plan fits", "the smallest host_memory that would do is"])
    least = int(smallest_cap(refused.err, "host_memory").removesuffix("MiB")) << 20
    cap = (2 * least + peak) // 3
    plan = sluice(*words, "--set", f"host_memory={cap}", "--json", cwd=place.path).json()
    require(plan["memory"]["host"]["peak_bytes"] <= cap, f"{name}: more than its cap: {plan}")
    report, seconds = ran(place, plan, name)
    said = plan["seconds"]["planned"]
    require(abs(said / seconds - 1) < 0.15, f"{name}: planned {said} s, a step took {seconds} s")
    require(plan["seconds"]["bound"] <= said, f"{name}: below its bound: {plan['seconds']}")
    require_equal(report["host_memory_plan_bytes"], plan["memory"]["host"]["peak_bytes"],
                  f"{name}: the run's memory plan")
    require(report["host_memory_peak_bytes"] <= plan["memory"]["host"]["peak_bytes"],
            f"{name}: more was resident than planned")
    return plan, report


@test
def a_step_and_its_memory_are_as_planned_by_the_emulated_clock(place):
    (place / "deep.toml").write_text(DEEP_MODEL)
    require_kept_promises(place, "deep", model=place / "deep.toml")
    require_kept_promises(place, "tiny", model=SAMPLES / "models/tiny.toml")


@test
@only_with_all("half a minute of the emulated clock, as the test before it")
def activations_that_leave_take_the_memory_that_is_planned(place):
    (place / "deep.toml").write_text(DEEP_MODEL)
    for mix in ("offload", "offload_inputs:1-4,offload:5-6,keep"):
        plan = sluice(*PLACEMENT, place.run_file, "--hold", "activations", *setting_arguments(
            {**SLOW, "model": place / "deep.toml", "activations": mix}),
            "--json", cwd=place.path).json()
        report, _ = ran(place, plan, "out-" + mix[:9])
        said = plan["activations"]["resident_bytes"]
        peak = report["activations"]["resident_peak_bytes"]
        require(abs(said / peak - 1) < 0.05, f"{mix}: planned {said}, {peak} were in memory")


@test
@only_with_all("half a minute of the emulated clock, as the test before it")
def the_next_run_after_a_recorded_one_takes_what_is_planned_for_it(place):
    settings = {**SLOW, "model": SAMPLES / "models/tiny.toml", "steps": 8,
                "pipeline": "serial", "activations": "recompute"}
    place.train(**settings).done()
    plan = sluice(*PLACEMENT, place / "out", "--json", cwd=place.path).json()
    require(plan["seconds"]["planned"] < plan["seconds"]["start"], f"{plan['seconds']}")
    sluice(*shlex.split(plan["command"])[1:], cwd=place.path).done()
    seconds = shortest_step(place / "out-planned/run.db")
    said = plan["seconds"]["planned"]
    require(abs(said / seconds - 1) < 0.15, f"planned {said} s, a step took {seconds} s")


if __name__ == "__main__":
    sys.exit(main())
