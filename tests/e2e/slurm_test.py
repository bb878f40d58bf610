#!/usr/bin/env python3
"""Ranks that Slurm starts (docs/more_than_one_machine.md), on two nodes of this host: the batch
script of the page, with other paths; jobs that are cancelled and ranks that are killed, and the
same script once more."""

# Only with --all: it builds a cluster of two nodes, for one page of documentation.

import json
import os
import signal
import sys

from launched import Launched, mpirun
from slurm_cluster import NODES, slurm_cluster
from sluice_run import (ROOT, SAMPLES, SLUICE, committed_step, main, require, require_equal,
                        require_words, setting_arguments, test)

RANKS = 4
# `tiny`, with steps as short as it has them.
SETTINGS = {"model": SAMPLES / "models/tiny.toml", "steps": 4, "batch": 1, "sequence": 32,
            "subgroup_elements": 400_000, "schedule_steps": 100, "clock": "real",
            "validation_every": 0, "validation_batches": 1, "sample_tokens": 0}
MANY_STEPS = 24


def script_of_the_page():
    """The first block of its section on Slurm, as it stands there."""
    page = (ROOT / "docs/more_than_one_machine.md").read_text()
    section = page.split("\n## Slurm\n", 1)[1].split("\n## ", 1)[0]
    lines = section[section.index("    #!/bin/bash"):].splitlines()
    block = []
    for line in lines:
        if not line.startswith("    "):
            break
        block.append(line[4:])
    return "\n".join(block) + "\n"


def replaced(text, pairs):
    for old, new in pairs:
        require(old in text, f"the page's script has no {old!r}: {text}")
        text = text.replace(old, new)
    return text


def script(place, output, **settings):
    """That of the page for this place: other paths and a small run."""
    words = setting_arguments({"output": place / output, **SETTINGS, **settings})
    path = place / f"{output}.sh"
    path.write_text(replaced(script_of_the_page(), (
        ("--cpus-per-task=8", "--cpus-per-task=1"),
        ("/shared/runs/out", str(place / output)),
        ("10.0.0.0/24", "127.0.0.0/8"),
        ("cd /shared/sluice", f"cd {place.path}"),
        ("build/release/bin/sluice", str(SLUICE)),
        ("/shared/runs/four-ranks.toml", str(place.run_file)),
        ("/local/scratch/four-ranks", f"{place / output}-states --json " + " ".join(words)))))
    return path


class Job:
    def __init__(self, cluster, place, output, **settings):
        self.cluster = cluster
        self.states = [place / f"{output}-states/rank-{rank}" for rank in range(RANKS)]
        self.submitted = cluster.run("sbatch", "--parsable", script(place, output, **settings))
        require_equal(self.submitted.returncode, 0, f"sbatch: {self.submitted.stderr}")
        self.number = self.submitted.stdout.strip()
        self.said = cluster.folder / f"slurm-{self.number}.out"

    def committed(self):
        return min(committed_step(state) or 0 for state in self.states)

    def wait_for_step(self, step):
        def has_come():
            require(not self.is_over(), f"it ended before step {step}: {self.text()}")
            return self.committed() >= step
        self.cluster.wait_until(has_come, f"step {step} of job {self.number}")

    def is_over(self):
        return self.cluster.state_of(self.number) not in ("PENDING", "RUNNING", "COMPLETING")

    def text(self):
        return self.said.read_text() if self.said.exists() else ""

    def ends(self, how):
        """As Slurm counts it. What the job and its ranks have said."""
        self.cluster.wait_until(self.is_over, f"the end of job {self.number}")
        said = self.text()
        require_equal(self.cluster.state_of(self.number), how, f"end of the job: {said}")
        return said

    def json(self):
        said = self.ends("COMPLETED")
        return json.loads(said[said.index("{"):])


def with_mpirun(place, output, **settings):
    return Launched(place, [*mpirun(), "-n", str(RANKS)], "--json", output=output,
                    **{**SETTINGS, "threads": 1, **settings}).json()


def outcome(report):
    return report["losses"], report["state_digest"]


def ranks_of(place):
    """Process ids of the ranks that run in this place."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_rank = os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(SLUICE)
            if is_rank and str(place.run_file) in open(f"/proc/{pid}/cmdline").read():
                found.append(int(pid))
        except OSError:
            continue
    return sorted(found)


@test
def a_job_on_two_nodes_has_the_bits_of_mpirun_and_what_it_writes_is_where_the_page_says(place):
    plain = with_mpirun(place, "plain")
    with slurm_cluster(place) as cluster:
        job = Job(cluster, place, "run")
        require_equal(outcome(job.json()), outcome(plain), "losses and digest")
    for rank in range(RANKS):
        require((place / f"run/rank-{rank}/run.db").exists(), f"record of rank {rank}")
        require_equal(committed_step(place / f"run-states/rank-{rank}"), SETTINGS["steps"],
                      f"committed step of rank {rank}")


@test
def a_job_that_is_told_to_end_commits_and_the_same_script_goes_on(place):
    plain = with_mpirun(place, "plain", steps=MANY_STEPS)
    with slurm_cluster(place) as cluster:
        # What --signal=TERM@120 does before the time is up: the steps get it, the script does not.
        told = Job(cluster, place, "run", steps=MANY_STEPS)
        told.wait_for_step(1)
        cluster.run("scancel", "--signal=TERM", told.number)
        said = told.ends("COMPLETED")
        last = told.committed()
        require(1 <= last < MANY_STEPS, f"it ended after step {last}: {said}")
        cancelled = Job(cluster, place, "run", steps=MANY_STEPS)
        cancelled.wait_for_step(last + 1)
        cluster.run("scancel", cancelled.number)
        cancelled.ends("CANCELLED")
        found = Job(cluster, place, "run", steps=MANY_STEPS).json()
    require_equal(found["state_digest"], plain["state_digest"], "digest after both")


@test
def a_killed_rank_ends_the_job_and_the_same_script_goes_on(place):
    plain = with_mpirun(place, "plain", steps=MANY_STEPS)
    with slurm_cluster(place) as cluster:
        job = Job(cluster, place, "run", steps=MANY_STEPS)
        job.wait_for_step(1)
        there = ranks_of(place)
        require_equal(len(there), RANKS, "ranks that run")
        os.kill(there[-1], signal.SIGKILL)
        said = job.ends("FAILED")
        require_words(said, ["Killed"], "what srun says")
        require_equal(ranks_of(place), [], "ranks that are left")
        found = Job(cluster, place, "run", steps=MANY_STEPS).json()
    require_equal(found["state_digest"], plain["state_digest"], "digest after the resume")


@test
def tasks_without_pmix_are_refused(place):
    with slurm_cluster(place) as cluster:
        done = cluster.run("srun", "--nodes=2", "--ntasks=4", "--mpi=none", SLUICE,
                           *place.arguments(**SETTINGS))
    require(done.returncode != 0, "they train")
    require_words(done.stderr, ["srun has started 4 tasks", "--mpi=pmix"], "the error")
    require(not (place / "out").exists(), "something is written")


if __name__ == "__main__":
    sys.exit(main())
