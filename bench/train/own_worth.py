#!/usr/bin/env python3
"""What compressed updates on CSDs are worth against the host's own update, pipelined as well.

    bench/train/own_worth.py [--sluice build/release/bin/sluice] [--text out/data/kjv.txt]
    bench/train/own_worth.py --search

Trains gpt2-124m by the emulated clock on ten modelled SmartSSDs and an A100, each method with what
is simulated to be its best of 17 subgroup sizes (0.3 to 4.2 million elements) and 18 buffer counts
(2 to 32); csd has fewer buffers, at 0.2 % more. --search prints the best. Prints the medians of
steps and of their update phases after the first three steps (only then does a step begin with all
that the one before leaves) beside the simulated ones. Modelled times, so a busy machine does not
change them as long as the emulation keeps up; it says how many operations were late. `host` is
stated twice: with the gradients on the drives, as a model that does not fit asks for, and in
memory. Compact state has other numbers.
"""
import argparse
import json
import pathlib
import shutil
import sqlite3
import statistics
import sys

from bench_run import ROOT, setting_arguments, sh

PLATFORM = ROOT / "sample_models/platforms/smartssd-a100.toml"
MODEL = {"devices": 10, "batch": 1, "sequence": 256, "bounce_memory": "256MiB",
         "activations": "keep", "wire": "native"}
CASES = [
    ("host", {"method": "host", "gradient_tier": "storage", "subgroup_elements": 500000,
              "buffers": 15}),
    ("host, gradients in memory", {"method": "host", "gradient_tier": "memory",
                                   "subgroup_elements": 2080000, "buffers": 5}),
    ("csd, density 0.01", {"method": "csd", "density": 0.01, "subgroup_elements": 1250000,
                           "buffers": 10}),
    ("the same, compact state", {"method": "csd", "density": 0.01, "subgroup_elements": 1250048,
                                 "buffers": 10, "state_format": "compact"}),
]


def emulated(arguments, settings):
    """Modelled seconds of a step and of its update, and the share of operations that ended late."""
    folder = pathlib.Path(arguments.dir)
    shutil.rmtree(folder, ignore_errors=True)
    files = {"output": folder, "platform": PLATFORM, "text": pathlib.Path(arguments.text).resolve(),
             "clock": "emulated", "time_scale": arguments.time_scale, "host_memory": 0,
             "sample_tokens": 0, "validation_batches": 1}
    report = json.loads(sh(arguments.sluice, "train", ROOT / "sample_models/runs/gpt2-124m.toml",
                           "--json", "--steps", 3 + arguments.steps,
                           *setting_arguments(files | settings)))
    with sqlite3.connect(f"file:{folder}/run.db?mode=ro", uri=True) as database:
        steps = database.execute("SELECT dur, update_dur FROM step_phase JOIN step "
                                 "ON step.id = step_id ORDER BY step.id").fetchall()[3:]
    shutil.rmtree(folder)
    late = report["emulation"]["late"] / report["emulation"]["operations"]
    step, update = (statistics.median(column) / 1e9 / arguments.time_scale
                    for column in zip(*steps))
    return step, update, late


def simulated(arguments, settings):
    """Modelled seconds of a step and of its update."""
    seconds = json.loads(sh(arguments.sluice, "simulate",
                            ROOT / "sample_models/models/gpt2-124m.toml", "--platform", PLATFORM,
                            "--json", *setting_arguments(settings)))["seconds"]
    return seconds["total"], seconds["update"]


SIZES = [300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000, 1_000_000, 1_100_000,
         1_250_000, 1_400_000, 1_560_000, 1_800_000, 2_080_000, 2_500_000, 3_120_000, 4_194_304]
BUFFERS = [*range(2, 17), 20, 24, 32]


def search(arguments):
    """The shortest simulated step of each method, and its settings."""
    for name, case in CASES:
        found = []
        for size in SIZES:
            settings = {key: value for key, value in (MODEL | case).items() if key != "buffers"}
            settings["subgroup_elements"] = size
            report = json.loads(sh(
                arguments.sluice, "simulate", ROOT / "sample_models/models/gpt2-124m.toml",
                "--platform", PLATFORM, "--json", "--sweep",
                f"buffers={','.join(map(str, BUFFERS))}", *setting_arguments(settings)))
            found += [(row["seconds"]["total"], size, int(row["value"]))
                      for row in report["rows"] if "seconds" in row]
        seconds, size, buffers = min(found)
        print(f"{name:<28} SIMULATED {seconds * 1e3:6.1f} ms   subgroup_elements={size} "
              f"buffers={buffers}   best of {len(found)}", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(ROOT / "build/release/bin/sluice"))
    parser.add_argument("--text", default=str(ROOT / "out/data/kjv.txt"))
    parser.add_argument("--dir", default="/tmp/sluice-own-worth")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--time-scale", type=float, default=60)
    parser.add_argument("--search", action="store_true", help="simulate the grid; train nothing")
    arguments = parser.parse_args()
    if arguments.search:
        return search(arguments)
    print("EMULATED CLOCK: modelled milliseconds a step, gpt2-124m, ten SmartSSDs, A100")
    times = []
    for name, case in CASES:
        settings = MODEL | case
        step, update, late = emulated(arguments, settings)
        times.append(step)
        beside_step, beside_update = simulated(arguments, settings)
        print(f"{name:<28} step: emulated {step * 1e3:6.1f}, simulated {beside_step * 1e3:6.1f} "
              f"({step / beside_step - 1:+.1%})   update: {update * 1e3:6.1f}, "
              f"{beside_update * 1e3:6.1f} ({update / beside_update - 1:+.1%})   "
              f"late operations {late:.1%}", flush=True)
    for (name, _), seconds in zip(CASES[2:], times[2:]):
        print(f"{name}: speed-up {times[0] / seconds:.2f}, with the host's gradients in memory "
              f"{times[1] / seconds:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
