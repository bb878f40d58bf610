#!/usr/bin/env python3
"""The package under Hugging Face's Trainer as it stands: the losses of torch's optimizer, and a
program that is killed, after a save or at any instant, goes on to the bit."""

import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from python_package import (PACKAGE, package_test, python_with_transformers, require_close,
                            require_same, torch)
from sluice_run import LIMIT_S, Skip, main, only_with_all, require, require_equal

KILLS = 20
PROGRAM = pathlib.Path(__file__).with_name("trainer_program.py")
WHY = "transformers takes ten seconds to start"


def command(kind, folder, stop=0):
    return [python_with_transformers(), PROGRAM, PACKAGE, kind, folder, str(stop)]


def trained(kind, folder, stop=0):
    """(loss, norm, rate) of each step of a run and those before it; nothing if it was killed."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(command(kind, folder, stop), capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    require_equal(done.returncode, -signal.SIGKILL if stop else 0, f"exit code: {done.stderr}")
    return [tuple(map(float, line.split()[1:])) for line in done.stdout.splitlines()
            if line.startswith("step ")]


@package_test
@only_with_all(WHY)
def trainer_learns_and_goes_on(place):
    wanted = trained("torch", place / "torch")
    through = trained("sluice", place / "through")
    require_equal(len(wanted), 18, "steps")
    for column, what in enumerate(("loss", "gradient norm", "learning rate")):
        require_close([row[column] for row in through], [row[column] for row in wanted], what)
    require_equal(trained("sluice", place / "parts", stop=5), [], "what it said")
    trained("sluice", place / "parts", stop=10)
    parts = trained("sluice", place / "parts")
    require_equal(parts[-8:], through[-8:], "killed twice")


EVENTS = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in ("train/loss", "train/sluice/step", "train/sluice/grad_norm"):
    print(tag, *(event.value for event in events.Scalars(tag)))
"""


@package_test
@only_with_all(WHY)
def tensorboards_file_has_the_figures(place):
    python = python_with_transformers()
    if subprocess.run([python, "-c", "import tensorboard"], capture_output=True,
                      check=False).returncode != 0:
        raise Skip("tensorboard is not installed")
    norms = [norm for _, norm, _ in trained("sluice", place / "run")]
    read = subprocess.run([python, "-c", EVENTS, place / "run/events"], capture_output=True,
                          text=True, timeout=LIMIT_S, check=True)
    rows = {tag: list(map(float, values)) for tag, *values in
            (line.split() for line in read.stdout.splitlines())}
    require_equal(rows["train/sluice/step"], list(map(float, range(1, 19))), "steps")
    require_equal(len(rows["train/loss"]), 18, "losses")
    # Trainer rounds its own for the log.
    require_close(rows["train/sluice/grad_norm"], norms, "norms before clipping")


@package_test
@only_with_all(WHY)
def trainer_killed_at_any_instant_goes_on_to_the_bit(place):
    begin = time.monotonic()
    trained("sluice", place / "through")
    took = time.monotonic() - begin
    wanted = torch.load(place / "through/weights.pt", weights_only=True)
    killed = place / "killed"
    instants = random.Random(7)
    killed.mkdir()
    for _ in range(KILLS):
        with subprocess.Popen(command("sluice", killed), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as program:
            try:
                program.wait(timeout=took * instants.uniform(0.6, 1.0))
            except subprocess.TimeoutExpired:
                program.kill()
            said = program.communicate(timeout=LIMIT_S)[1]
        require(program.returncode in (0, -signal.SIGKILL), f"a killed program: {said}")
        if program.returncode == 0:  # it had ended: once more from the beginning
            require_same(torch.load(killed / "weights.pt", weights_only=True), wanted, "weights")
            shutil.rmtree(killed)
            killed.mkdir()
    trained("sluice", killed)
    require_same(torch.load(killed / "weights.pt", weights_only=True), wanted, "weights at the end")


if __name__ == "__main__":
    sys.exit(main())
