#!/usr/bin/env python3
"""Every `sluice ...` line of the README and of the guide works as it is typed: each runs in a
folder of its own that looks like a checkout after ./run, with fewer steps and a small model where
the page has a large one. A line that needs more than that is named here with the reason; a new one
fails until it runs or is named."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from sluice_run import (LIMIT_S, ROOT, SLUICE, main, require, require_equal, sample_text,
                        step_losses, test)

# What a line has in place of what stands in it; {} is the test's folder.
STAND_INS = (
    ("sample_models/runs/gpt2-124m.toml", "sample_models/runs/tiny.toml"),
    ("/mnt/nvme", "{}/nvme"),
)
PAGES = ("README.md", "docs/guide.md")
FEWER_STEPS = 6
ONE_STEP = "over-memory"  # each takes a minute, and less with one window
NOT_RUN = {
    "calibrate": "takes minutes; tests/e2e/calibrate_test.py has it",
}
MAY_END_WITH = {"compare": {0, 3}}


def command_lines():
    """Those of code blocks, without a prompt's `$` and with a backslash's next line joined, then
    those of sentences."""
    text = "\n".join((ROOT / page).read_text() for page in PAGES)
    blocks = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    blocks = re.sub(r"\s*\\\n\s*", " ", blocks)
    lines = [re.sub(r"^\$ ", "", line) for line in blocks.splitlines()]
    # Within a sentence only whole commands, not names of them such as `sluice show`.
    lines += [line.replace("\n", " ") for line in re.findall(r"`(sluice [^`]+)`", text)
              if "out/" in line or "--settings" in line]
    return [line for line in lines if re.match(r"(sluice|mkdir|ln) ", line)]


def as_run(place, line):
    for named, stand_in in STAND_INS:
        line = line.replace(named, stand_in.format(place.path))
    words = shlex.split(line, comments=True)
    if words[:2] == ["sluice", "train"]:
        words = [word for i, word in enumerate(words)
                 if word != "--steps" and words[i - 1] != "--steps"]
        steps = 1 if ONE_STEP in line else FEWER_STEPS
        words += ["--steps", str(steps), "--set", "sample_tokens=0"]
        if ONE_STEP in line:
            words += ["--set", "batch=1"]
    return [str(SLUICE), *words[1:]] if words[0] == "sluice" else words


def looks_like_a_checkout(place):
    sample_text()
    (place / "sample_models").symlink_to(ROOT / "sample_models")
    (place / "out/data").mkdir(parents=True)
    (place / "out/data/kjv.txt").symlink_to(ROOT / "out/data/kjv.txt")
    # `./run`, whose run is live while the lines that turn it are typed.
    return subprocess.Popen(
        [SLUICE, "train", "sample_models/runs/tour.toml", "--set", "output=out/tour", "--set",
         "method=csd", "--set", "pipeline=nbuffer", "--set", "steps=100000", "--set",
         "time_scale=3"], cwd=place.path, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_line(place, line):
    done = subprocess.run(as_run(place, line), cwd=place.path, stdin=subprocess.DEVNULL,
                          timeout=LIMIT_S, capture_output=True, text=True, errors="replace",
                          check=False)
    name = line.split()[1]
    allowed = MAY_END_WITH.get(name, {0})
    if "bufers" in line:  # the guide shows how a wrong key is answered
        allowed = {2}
    if "--revert-if" in line:  # or the run took it back
        allowed = {0, 5}
    require(done.returncode in allowed, f"`{line}` ended with {done.returncode}: "
            f"{done.stderr.strip()[-400:]}")


@test
def every_line_works_as_it_is_typed(place):
    lines = command_lines()
    require(len(lines) >= 12, f"only {len(lines)} lines were found: {lines}")
    live = looks_like_a_checkout(place)
    try:
        wait_for_steps(place, live, 8)
        for line in lines:
            if line.split()[1] in NOT_RUN:
                require(NOT_RUN[line.split()[1]], line)
                if " -o mine.toml" in line:  # what it would have written
                    shutil.copy(ROOT / "sample_models/platforms/laptop.toml",
                                place / "mine.toml")
                continue
            if "tune out/tour/run.db" in line:  # the knobs were turned some lines before
                wait_for_steps(place, live, 10)
            run_line(place, line)
    finally:
        live.send_signal(signal.SIGTERM)
        require_equal(live.wait(timeout=LIMIT_S), 0, "exit code of the live run")


def wait_for_steps(place, live, count):
    """Until the live run has recorded `count` more."""
    database = place / "out/tour/run.db"

    def steps():
        ready = os.path.exists(f"{database}.socket")
        return len(step_losses(database)) if ready else 0

    before = steps()
    until = time.monotonic() + LIMIT_S
    while steps() < before + count:
        require(live.poll() is None, f"the live run ended with {live.returncode}")
        require(time.monotonic() < until, f"no {count} steps within {LIMIT_S} s")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
