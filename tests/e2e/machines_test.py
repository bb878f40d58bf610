#!/usr/bin/env python3
"""Ranks on two machines (docs/more_than_one_machine.md), which are two network namespaces of this
one and share its file system: the bits of one machine, what happens when a rank dies on the other
one, what takes the place of a machine that is gone, and the sample run of four ranks."""

import os
import shutil
import signal
import sys
import time

from launched import Launched, mpirun
from sluice_run import LIMIT_S, SAMPLES, committed_step, main, require, require_equal, test
from two_nodes import two_nodes

RANKS = 4
# `tiny`, with steps as short as it has them.
SETTINGS = {"model": SAMPLES / "models/tiny.toml", "steps": 4, "batch": 1, "sequence": 32,
            "subgroup_elements": 400_000, "schedule_steps": 100, "clock": "real", "threads": 1}


def on_one(place, *flags, **settings):
    return Launched(place, [*mpirun(), "-n", str(RANKS)], *flags, **{**SETTINGS, **settings})


def on_two(nodes, place, *flags, **settings):
    launcher = [*nodes.mpirun(RANKS // 2), "-n", str(RANKS)]
    return Launched(place, launcher, *flags, **{**SETTINGS, **settings})


def outcome(report):
    return report["losses"], report["state_digest"]


@test
def two_machines_have_the_bits_of_one(place):
    with two_nodes(place) as nodes:
        found = on_two(nodes, place, "--json", output="two").json()
    plain = on_one(place, "--json", output="one").json()
    require_equal(outcome(found), outcome(plain), "losses and digest")
    for rank in range(RANKS):
        require_equal(committed_step(place / f"two/rank-{rank}/state"), SETTINGS["steps"],
                      f"committed step of rank {rank}")


def kill_on_the_second(nodes, run, place):
    """Once a step is committed: SIGKILL to one of its ranks. How many were there."""
    until = time.monotonic() + LIMIT_S
    while (committed_step(place / "killed/rank-3/state") or 0) < 1:
        require(run.process.poll() is None, "it ended before a step was committed")
        require(time.monotonic() < until, "no step is committed")
        time.sleep(0.005)
    there = sorted(nodes.processes_of(1) & set(run.ranks()))
    os.kill(there[0], signal.SIGKILL)
    return len(there)


@test
def a_rank_killed_on_the_second_machine_ends_all_and_a_resume_goes_on(place):
    settings = {"steps": 40}
    with two_nodes(place) as nodes:
        run = on_two(nodes, place, output="killed", **settings)
        require_equal(kill_on_the_second(nodes, run, place), RANKS // 2,
                      "ranks on the second machine")
        code, _, err = run.done()
        require(code != 0, f"a killed rank goes unnoticed: {err}")
        found = on_two(nodes, place, "--json", "--resume", output="killed", **settings).json()
    plain = on_one(place, "--json", output="plain", **settings).json()
    require_equal(found["state_digest"], plain["state_digest"], "digest after the resume")


@test
def a_machine_that_is_gone_is_replaced_by_one_with_a_copy_of_another_rank_s_state(place):
    on_one(place, output="run", steps=4).done()
    state = place / "run/rank-3/state"
    shutil.rmtree(state)
    shutil.copytree(place / "run/rank-0/state", state)
    found = on_one(place, "--json", "--resume", output="run", steps=8).json()
    plain = on_one(place, "--json", output="plain", steps=8).json()
    require_equal(found["state_digest"], plain["state_digest"], "digest after the resume")


@test
def the_sample_run_of_four_ranks_trains(place):
    launcher = [*mpirun(), "-n", str(RANKS)]
    report = Launched(place, launcher, "--json", run=SAMPLES / "runs/four-ranks.toml",
                      text=place / "text.txt", output=place / "out", steps=3, validation_every=0,
                      validation_batches=1, sample_tokens=0, time_scale=0.1).json()
    require_equal(len(report["losses"]), 3, "steps")
    require("4 ranks, communication EMULATED as 2x2" in report["mode"], f"mode: {report['mode']}")


if __name__ == "__main__":
    sys.exit(main())
