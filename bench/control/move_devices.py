#!/usr/bin/env python3
"""What it costs a run that subgroups change their devices: steps before, during and after.

    bench/control/move_devices.py [--moves 12] [--clock emulated] [--text out/data/kjv.txt]

Trains tiny on four emulated devices and turns `device_map` from even to 2,1,1,1 and back, eight
steps apart. A subgroup moves with its next version: the step of the move reads it where it lay and
writes it where it belongs. Printed are medians of steps: those with the old map, the step of the
move, the step behind it, and further ones with the new map; and in how many of the moves the step
was longer than any of those around it. At last the losses are compared with those of a run in which
nothing was turned.
"""
import argparse
import json
import pathlib
import shutil
import sqlite3
import statistics
import sys

from live_line import ROOT, started

MAPS = ["2,1,1,1", "even"]
STEPS_APART = 8


def turned_run(arguments, folder, steps):
    """Steps by number, and the numbers of those in which each map was in force first."""
    run, line = started(arguments.sluice, folder, arguments.text, steps, clock=arguments.clock)
    seen, moves, due = {}, [], 2 * STEPS_APART
    while len(seen) == 0 or max(seen) < steps:
        message = line.next(lambda m: "event" in m)
        if message["event"] == "end":
            break
        if message["event"] == "change":
            if message["state"] != "in force":
                sys.exit(message["message"])
            moves.append(message["step"])
        if message["event"] != "step":
            continue
        seen[message["step"]] = (message["step_seconds"], message["loss"])
        if message["step"] >= due and len(moves) < arguments.moves:
            line.send(id=1, do="set", knobs={"device_map": MAPS[len(moves) % 2]})
            due = message["step"] + STEPS_APART
    run.wait()
    return seen, moves


def losses_of(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return dict(db.execute("SELECT id, loss FROM step"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice")
    parser.add_argument("--text", default=ROOT / "out/data/kjv.txt")
    parser.add_argument("--dir", default=ROOT / "out/bench-move", help="what it writes; removed")
    parser.add_argument("--clock", default="emulated", choices=["emulated", "real"])
    parser.add_argument("--moves", type=int, default=12)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.dir).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps = (arguments.moves + 4) * STEPS_APART
    seen, moves = turned_run(arguments, folder / "turned", steps)
    turned = losses_of(folder / "turned/run.db")
    run, _ = started(arguments.sluice, folder / "plain", arguments.text, steps,
                     clock=arguments.clock)
    run.wait()
    plain = losses_of(folder / "plain/run.db")
    for name in ("2,1,1,1", "even"):
        first = [m for i, m in enumerate(moves) if MAPS[i % 2] == name]
        parts = [[seen[m + o][0] for m in first for o in offsets if m + o in seen]
                 for offsets in (range(-5, 0), [0], [1], range(2, 6))]
        longer = sum(seen[m][0] > max(seen[m + o][0] for o in range(-5, 6) if o != 0)
                     for m in first if all(m + o in seen for o in range(-5, 6)))
        ms = [1e3 * statistics.median(part) for part in parts]
        print(f"to {name:8} {len(first)} moves: before {ms[0]:.1f} ms, step of the move "
              f"{ms[1]:.1f}, the one behind it {ms[2]:.1f}, further {ms[3]:.1f}; {longer} times "
              "the longest of the steps around it")
    same = turned == plain and len(plain) == steps
    print(f"losses of all {len(plain)} steps: {'exactly' if same else 'NOT'} those of a run in "
          "which nothing was turned")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
