#!/usr/bin/env python3
"""How far copies hide behind computing on the software accelerator.

    bench/accelerator/overlap.py [--share 0.8] [--layers 24] [--steps 6] [--time-scale 20]

Trains tiny, with that many blocks, on device=soft with the emulated clock. The link is as fast as
makes a block's parameters take `--share` of its forward, and the software accelerator copies at
that rate. Prints the medians of the steps: forward and backward as the schedule ran them, from the
first layer's parameters on their way to the last gradients on the host (pipeline=serial, so no
update is among it); computing alone (the sum of the forward and backward operations); copies; and
the ratio of the first two.

A step is steered by the model, so the machine may do other things beside it, as long as it is no
later than the modelled times: the printed lateness says so.
"""
import argparse
import os
import pathlib
import re
import sqlite3
import statistics
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(BENCH / "train"))
from bench_run import ROOT, setting_arguments, sh  # noqa: E402  (the line above finds it)

SLUICE = ROOT / "build/release/bin/sluice"
BLOCK_BYTES = 2 * 789_760  # a block of tiny: 12 h^2 + 13 h parameters, h = 256
FORWARD_FLOP = 2 * 1024 * 12 * 256**2 + 2 * 1024 * 128 * 256  # of a block (core/model/flop.h)
FLOP_PER_S = 420e9  # laptop.toml


def platform_file(folder, share):
    """laptop.toml with an accelerator behind a link of that rate; the path and the rate."""
    bytes_per_s = BLOCK_BYTES / (share * FORWARD_FLOP / FLOP_PER_S)
    text = (ROOT / "sample_models/platforms/laptop.toml").read_text()
    link = (f'\n[compute.link]\nread = "{bytes_per_s / 1e6:.3f} MB/s"\n'
            f'write = "{bytes_per_s / 1e6:.3f} MB/s"\nduplex = "full"\nlatency = "5 us"\n')
    path = folder / "platform.toml"
    path.write_text(re.sub(r"\n\[\[device\]\]", link + "\n[[device]]", text, count=1))
    return path, bytes_per_s


def times_of(database, first_step):
    """By step: from the first operation of forward to the last of backward, and sums by stage."""
    query = ("SELECT span.step_id, s.value, min(span.ts), max(span.ts + span.dur), sum(span.dur) "
             "FROM span JOIN string s ON s.id = span.name_id WHERE s.value IN "
             "('forward', 'backward', 'layer_in', 'gradient_out') AND span.step_id >= ? "
             "GROUP BY 1, 2")
    steps = {}
    with sqlite3.connect(database) as db:
        for step, stage, begin, end, total in db.execute(query, (first_step,)):
            steps.setdefault(step, {})[stage] = (begin, end, total)
    return list(steps.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.8)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--time-scale", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "out") as folder:
        folder = pathlib.Path(folder)
        platform, bytes_per_s = platform_file(folder, options.share)
        model = folder / "model.toml"
        tiny = (ROOT / "sample_models/models/tiny.toml").read_text()
        model.write_text(re.sub(r"(?m)^layers = \d+", f"layers = {options.layers}", tiny))
        rate = bytes_per_s / options.time_scale * 1.25  # the model's latency is not its own
        os.environ["SLUICE_SOFT_ACCELERATOR"] = f"in_rate={rate:.0f};out_rate={rate:.0f}"
        settings = {"platform": platform, "model": model, "device": "soft", "pipeline": "serial",
                    "time_scale": options.time_scale, "output": folder / "run",
                    "validation_every": 0, "validation_batches": 1, "sample_tokens": 0}
        said = sh(SLUICE, "train", ROOT / "sample_models/runs/tiny.toml", "--steps", options.steps,
                  *setting_arguments(settings))
        steps = times_of(folder / "run/run.db", first_step=2)[:-1]  # a validation is in the last
    passes = [max(s["backward"][1], s["gradient_out"][1]) - s["layer_in"][0]
              for s in steps]
    computing = [s["forward"][2] + s["backward"][2] for s in steps]
    copies = [s["layer_in"][2] + s["gradient_out"][2] for s in steps]
    ratios = [p / c for p, c in zip(passes, computing)]
    print(f"a block's copy: {options.share:.0%} of its forward; {options.layers} blocks, "
          f"{len(steps)} steps")
    for name, values in (("forward and backward", passes), ("computing alone", computing),
                         ("copies", copies)):
        print(f"{name:22} {statistics.median(values) / 1e6:9.1f} ms")
    print(f"{'ratio':22} {statistics.median(ratios):9.3f}  ({min(ratios):.3f} to "
          f"{max(ratios):.3f})")
    for line in said.splitlines():
        if re.search(r"(layer_in|gradient_out|forward|backward) .*late", line):
            print("late:", line.strip())


if __name__ == "__main__":
    main()
