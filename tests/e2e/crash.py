"""Kills a run at random instants until it is through, and compares what is left with a run that
was left alone. Used by crash_test.py (20 kills) and scripts/soak/crash_soak.py (as many as asked).
"""

import random
import signal
import time

from sluice_run import (check_database, committed_step, require, require_equal, step_losses)

# Small pieces, so that much of a run is creating, reading, writing and committing.
SETTINGS = {"subgroup_elements": 1500, "devices": 3, "buffers": 2}


class Killer:
    """When to kill: while the state is created, in the first step, or some steps on."""

    KINDS = ("start", "creation", "first steps", "steps", "steps", "steps")

    def __init__(self, source, startup_s):
        self.source = source
        self.next_kinds = []
        self.startup_s = startup_s  # from the start of the program to its first commit
        self.counts = {}

    def kill(self, run, state_dir):
        """Kills the run, unless it ends before; says which it was."""
        if not self.next_kinds:
            self.next_kinds = self.source.sample(self.KINDS, len(self.KINDS))
        kind = self.next_kinds.pop()
        if kind == "start":
            time.sleep(self.source.uniform(0, self.startup_s))
        elif kind == "creation":
            self.wait_while(run, lambda: not (state_dir / "dev0").exists())
            time.sleep(self.source.uniform(0, 0.03))
        else:
            begin = committed_step(state_dir) or 0
            wanted = begin + (1 if kind == "first steps" else self.source.randint(1, 8))
            self.wait_while(run, lambda: (committed_step(state_dir) or 0) < wanted)
            time.sleep(self.source.uniform(0, 0.01))
        run.signal(signal.SIGKILL)
        reply = run.wait()
        killed = reply.code == -signal.SIGKILL
        if killed:
            self.counts[kind] = self.counts.get(kind, 0) + 1
        else:
            require_equal(reply.code, 0, f"exit code of a run that nobody killed ({reply.err})")
        return killed

    @staticmethod
    def wait_while(run, condition):
        while run.is_running() and condition():
            time.sleep(0.0005)


class Undisturbed:
    """The run that nobody kills."""

    def __init__(self, place, steps):
        begin = time.monotonic()
        self.steps = steps
        self.report = place.train("--json", "--steps", steps, output="whole", **SETTINGS).json()
        self.seconds = time.monotonic() - begin
        self.startup_s = max(0.05, self.seconds - steps * self.report["seconds"]["total"])


def look_at(place, output, last_step):
    """After a kill: the state is whole or was never committed, the database opens, and nothing
    that was committed is lost. Says the committed step, or None."""
    database = place / output / "run.db"
    if database.exists():
        check_database(database)
    reply = place.state("--json", state_dir=f"{output}/state")
    if reply.code != 0:
        require(last_step is None, f"step {last_step} was committed before, and now: {reply.err}")
        reply.refused(2, ["state"])
        return None
    step = reply.json()["step"]
    require(step >= (last_step or 0), f"step {last_step} was committed before, now it is {step}")
    return step


def crash_and_resume(place, killer, whole, kills, output="crash"):
    """A run that is killed `kills` times at most and then left to end; how often it was."""
    state_dir = place / output / "state"
    step = None
    killed = 0
    seen_losses = {}
    while killed < kills and (step is None or step < whole.steps):
        flags = ["--resume"] if step is not None else []
        run = place.start("--json", "--steps", whole.steps, *flags, output=output, **SETTINGS)
        killed += killer.kill(run, state_dir)
        step = look_at(place, output, step)
        if step is not None and (place / output / "run.db").exists():
            losses = step_losses(place / output / "run.db")
            seen_losses.update({s: loss for s, loss in losses.items() if s < step})
    flags = ["--resume"] if step is not None else []
    report = place.train("--json", "--steps", whole.steps, *flags, output=output,
                         **SETTINGS).json()
    compare(place, output, whole, report, seen_losses)
    return killed


def compare(place, output, whole, report, seen_losses):
    require_equal(report["state_digest"], whole.report["state_digest"], "digest after the crashes")
    require_equal(place.digest(f"{output}/state"), whole.report["state_digest"], "digest on disk")
    first = report["first_step"]
    require_equal(report["losses"], whole.report["losses"][first:], "losses of the last piece")
    recorded = step_losses(place / output / "run.db")
    for losses in (seen_losses, recorded):
        for step, loss in losses.items():
            require_equal(loss, whole.report["losses"][step], f"recorded loss of step {step + 1}")
    check_database(place / output / "run.db")


def killed_with(place, seed, kills, **settings):
    """Runs of 40 steps with these settings beside those above, killed so many times; says the one
    that nobody kills."""
    others = dict(SETTINGS)
    SETTINGS.update(settings)
    try:
        whole = Undisturbed(place, steps=40)
        killer = Killer(random.Random(seed), whole.startup_s)
        killed = 0
        while killed < kills:
            killed += crash_and_resume(place, killer, whole, kills - killed,
                                       output=f"crash-{killed}")
        return whole
    finally:
        SETTINGS.clear()
        SETTINGS.update(others)
