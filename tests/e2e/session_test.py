#!/usr/bin/env python3
"""A program that computes its own gradients (examples/own_gradients.cpp) has a run like any other:
it is shown, turned while it runs, stopped, killed, and goes on to the bit."""

import os
import signal
import subprocess
import sys
import tempfile
import time

from sluice_run import (BUILD, LIMIT_S, TESTBED, database, main, require, require_equal,
                        require_words, sluice, test, _end_with_the_test)

PROGRAM = BUILD / "bin/own_gradients"
SETTINGS = ["subgroup_elements=2048", "devices=2"]
FOREVER = 10_000_000


def run(place, folder, steps, *settings):
    return subprocess.run([PROGRAM, place / folder, TESTBED, str(steps), *SETTINGS, *settings],
                          timeout=LIMIT_S, capture_output=True, text=True, check=False)


class Started:
    """The program under way; killed with the test."""

    def __init__(self, place, folder, *settings):
        self.out = tempfile.TemporaryFile()
        self.state = place / folder / "state"
        self.process = subprocess.Popen(
            [PROGRAM, place / folder, TESTBED, str(FOREVER), *SETTINGS, *settings],
            stdout=self.out, stderr=self.out, preexec_fn=_end_with_the_test)

    def said(self):
        # Not by seek(): the program writes where the place that both share is.
        return os.pread(self.out.fileno(), 1 << 24, 0).decode()

    def wait_for_steps(self, count):
        until = time.monotonic() + LIMIT_S
        while self.said().count("step ") < count:
            require(self.process.poll() is None, f"the program ended: {self.said()}")
            require(time.monotonic() < until, f"no {count} steps within {LIMIT_S} s")
            time.sleep(0.01)


def state_of(place, folder):
    return sluice("state", place / folder / "state", "--json").json()


@test
def a_session_is_turned_live_killed_and_goes_on_to_the_bit(place):
    for settings in ([], ["density=0.1"], ["method=host", "commit_every=3"]):
        name = f"killed-{len(settings)}-{'-'.join(settings)}"
        program = Started(place, name, *settings)
        program.wait_for_steps(5)
        said = sluice("set", place / name / "run.db", "pipeline=serial", "record=steps").done()
        require_words(said.out, ["pipeline"], "sluice set")
        program.wait_for_steps(program.said().count("step ") + 5)
        program.process.send_signal(signal.SIGKILL)
        program.process.wait()
        killed = state_of(place, name)
        require(killed["step"] >= 5, f"killed at step {killed['step']}")
        until = killed["step"] + 7
        done = run(place, name, until, *settings)
        require_equal(done.returncode, 0, f"the program that goes on: {done.stderr}")
        require_words(done.stdout, [f"step {killed['step'] + 1}:", f"step {until}:"], "its steps")
        through = run(place, f"through-{name}", until, *settings)
        require_equal(through.returncode, 0, f"the program in one go: {through.stderr}")
        require_equal(state_of(place, name)["digest"],
                      state_of(place, f"through-{name}")["digest"], f"digest with {settings}")


@test
def a_session_is_recorded_and_stopped_as_any_run_is(place):
    program = Started(place, "stopped")
    program.wait_for_steps(5)
    # A wish that a session cannot have ends no session.
    refused = sluice("set", place / "stopped/run.db", "overlap=local")
    require(refused.code != 0, f"overlap=local was taken: {refused.out}")
    require_words(refused.out + refused.err, ["overlap=exact or off"], "sluice set overlap=local")
    sluice("set", place / "stopped/run.db", "overlap=exact").done()
    program.wait_for_steps(program.said().count("step ") + 2)
    sluice("stop", place / "stopped/run.db").done()
    require_equal(program.process.wait(timeout=LIMIT_S), 0, f"its exit code: {program.said()}")
    steps = program.said().count("step ")
    require_equal(state_of(place, "stopped")["step"], steps, "steps that are committed")
    with database(place / "stopped/run.db") as db:
        require_equal(db.execute("SELECT count(*) FROM step").fetchone()[0], steps, "table step")
        stages = {row[0] for row in db.execute(
            "SELECT DISTINCT value FROM span JOIN string ON string.id = name_id")}
    require({"gradient_down", "state_read", "update", "state_write"} <= stages,
            f"stages recorded: {stages}")
    shown = sluice("show", place / "stopped").done().out
    require_words(shown, ["stopped", "update", "did not record its forward and backward"],
                  "sluice show")
    require("loss 0" not in shown, f"a loss that nobody knows: {shown}")


@test
def the_program_refuses_what_cannot_be(place):
    for settings, words in ((["overlap=local"], ["overlap=exact or off"]),
                            (["bufers=3"], ["buffers"]),
                            (["subgroup_elements=0"], ["subgroup_elements"])):
        refused = run(place, "refused", 3, *settings)
        require_equal(refused.returncode, 1, f"exit code with {settings}")
        require_words(refused.stderr, words, f"with {settings}")
    require(not (place / "refused").exists(), "a refused session has made its folder")


if __name__ == "__main__":
    sys.exit(main())
