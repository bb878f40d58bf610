"""Runs that are live while a test talks to them, and what they must have computed."""

import contextlib
import json
import os
import pathlib
import socket
import sqlite3
import time

from sluice_run import committed_step, require_equal, sluice, step_losses

# Steps take a few milliseconds; so many that a test is over before the run is.
MANY_STEPS = 100_000


class Line:
    """The control socket as any program would use it."""

    def __init__(self, database):
        self.socket = socket.socket(socket.AF_UNIX)
        folder = os.path.dirname(database)
        here = os.getcwd()
        os.chdir(folder)  # the address of a socket is short
        try:
            self.socket.connect(os.path.basename(f"{database}.socket"))
        finally:
            os.chdir(here)
        self.file = self.socket.makefile("rw")
        self.greeting = json.loads(self.file.readline())
        self.waiting = []  # events that came before an answer

    def ask(self, **request):
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "id" in answer:
                return answer
            self.waiting.append(answer)

    def events(self):
        while self.waiting:
            yield self.waiting.pop(0)
        for line in self.file:
            yield json.loads(line)

    def close(self):
        self.file.close()
        self.socket.close()


def step_of(database):
    try:
        line = Line(database)
    except OSError:
        return 0
    status = line.ask(id=1, do="status")["status"]
    line.close()
    return status["step"]


def steps_in(database):
    """Of a live run: 0 while its database is being made."""
    with contextlib.suppress(sqlite3.OperationalError):
        return len(step_losses(database))
    return 0


def started(place, *flags, **settings):
    """A run that listens and has committed a step."""
    run = place.start("--json", *flags, **{"steps": MANY_STEPS, "durability": "never", **settings})
    output = pathlib.Path(settings.get("output", place / "out"))
    database = settings.get("db", output / "run.db")
    state_dir = settings.get("state_dir", place / "out/state")
    run.wait_for(lambda: (committed_step(state_dir) or 0) > 0 and step_of(database) > 0,
                 "first step")
    return run, database


def stopped(run, database):
    sluice("stop", database).done()
    return run.wait().json()


def wait_for_next_step(database):
    before = step_of(database)
    while step_of(database) == before:
        time.sleep(0.001)


def require_same_numbers(tuned, plain):
    """The later steps of the longer of two reports of `train --json` against the other's."""
    require_equal(tuned["losses"], plain["losses"][-len(tuned["losses"]):], "losses")
    require_equal(tuned["state_digest"], plain["state_digest"], "digest")


def require_as_untouched(place, tuned, *flags, **settings):
    """The same as by a run of as many steps that nobody talked to."""
    plain = place.train("--json", *flags, "--steps", tuned["steps"], output="plain",
                        durability="never", **settings).json()
    require_same_numbers(tuned, plain)
