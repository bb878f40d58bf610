"""A run's control socket as a bench uses it, and steps with something switched on and off in turns.

What a run costs more with something beside it is less than what this machine's pace changes within
a minute. So both are measured in one run, some steps of each in turns, each block of steps beside
the two around it.
"""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "train"))
from bench_run import ROOT, setting_arguments  # noqa: E402  (the line above finds it)

POLL_SECONDS = 0.02
UNSETTLED = 2  # steps behind a switch: the one under way, and the one in which it takes effect


class Line:
    def __init__(self, path):
        here = os.getcwd()
        os.chdir(path.parent)  # the address of a socket is short
        try:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(path.name)
        finally:
            os.chdir(here)
        self.file = self.socket.makefile("rw")
        self.file.readline()  # the greeting
        self.follows = False
        self.step = 0

    def send(self, **request):
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()

    def next(self, wanted):
        while True:
            message = json.loads(self.file.readline())
            if wanted(message):
                return message

    def follow(self):
        self.send(id=0, do="subscribe")
        self.follows = True

    def next_step_seconds(self):
        """A run that nobody follows flushes its recording less often; it is asked instead."""
        if self.follows:
            return self.next(lambda m: m.get("event") == "step")["step_seconds"]
        while True:
            self.send(id=0, do="status")
            status = self.next(lambda m: "status" in m)["status"]
            if status["step"] != self.step:
                self.step = status["step"]
                return status["step_seconds"]
            time.sleep(POLL_SECONDS)


def connected(path, process):
    while process.poll() is None:
        try:
            return Line(path)
        except OSError:
            time.sleep(0.02)
    sys.exit(f"the run ended before it listened: {process.stderr.read().decode()}")


def started(sluice, folder, text, steps=1_000_000, follows=True, **settings):
    """Tiny, training into `folder`, and its control socket, which tells of steps or is asked."""
    settings = {"output": folder, "text": pathlib.Path(text).resolve(), "sample_tokens": 0,
                "validation_every": 0, **settings}
    command = (sluice, "train", ROOT / "sample_models/runs/tiny.toml", "--steps", steps,
               *setting_arguments(settings))
    run = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
    line = connected(folder / "run.db.socket", run)
    if follows:
        line.follow()
    return run, line


def block_medians(line, pairs, steps_a_block, switch):
    """The medians of 2 `pairs` + 1 blocks, off first and last; `switch(is_on)` is called before
    each."""
    medians = []
    for block in range(2 * pairs + 1):
        switch(block % 2 == 1)
        steps = [line.next_step_seconds() for _ in range(UNSETTLED + steps_a_block)]
        medians.append(statistics.median(steps[UNSETTLED:]))
        if block > 0 and block % 10 == 0:
            print(f"  {block} of {2 * pairs} blocks", file=sys.stderr)
    return medians


def cost_of(medians):
    """Median step when off; the median of what blocks that are on take more than those around
    them, and three standard errors of it, from the median absolute deviation: as shares of it."""
    base = statistics.median(medians[::2])
    more = [medians[b] - (medians[b - 1] + medians[b + 1]) / 2 for b in range(1, len(medians), 2)]
    middle = statistics.median(more)
    spread = 1.4826 * statistics.median(abs(one - middle) for one in more)
    return base, middle / base, 3 * 1.2533 * spread / len(more) ** 0.5 / base
