#!/usr/bin/env python3
"""Models of transformers under its Trainer, 50 steps each: the losses of torch's optimizer, and the
same bits by every way of ours."""

import subprocess
import sys
import pathlib

from python_package import (PACKAGE, STEPS, package_test, python_with_transformers, require_close)
from sluice_run import LIMIT_S, TESTBED, main, only_with_all, require, require_equal

PROGRAM = pathlib.Path(__file__).with_name("families_program.py")
WHY = "transformers takes ten seconds to start, twenty times"


def trained(family, case, folder):
    """By way of training: (digest of the weights, losses, norms of the gradients)."""
    done = subprocess.run(
        [python_with_transformers(), PROGRAM, PACKAGE, family, case, folder, TESTBED],
        capture_output=True, text=True, timeout=LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"{family}, {case}: {done.stderr[-3000:]}")
    ways, rows = {}, None
    for line in done.stdout.splitlines():
        kind, *values = line.split()
        if kind == "way":
            rows = [], []
            ways[values[0]] = values[1], *rows
        elif kind == "step":
            for column, value in zip(rows, values):
                column.append(float(value))
    return ways


@package_test
@only_with_all(WHY)
def families_learn_as_by_torchs_optimizer(place):
    for family in ("llama", "qwen3", "t5", "bert"):
        for case in ("plain", "clipped", "checkpointing", "lora", "bf16"):
            what = f"{family}, {case}"
            ways = trained(family, case, place / f"{family}-{case}")
            _, losses, norms = ways.pop("torch")
            require_equal(len(losses), STEPS, f"{what}: steps")
            require(losses[-1] < losses[0], f"{what}: it learns: {losses[0]} to {losses[-1]}")
            ours = ways["sluice"]
            if case != "bf16":
                require_close(ours[1], losses, what)
                require_close(ours[2], norms, f"{what}, norms")
            else:  # of 8 bits, from fp32 masters that differ in a last bit: within a few of the 8th
                require(all(abs(a - b) < 0.02 * b for a, b in zip(ours[1], losses)),
                        f"{what}: {ours[1]} beside {losses}")
            for way, found in ways.items():
                require_equal(found, ours, f"{what}, {way}: weights, losses, norms")


if __name__ == "__main__":
    sys.exit(main())
