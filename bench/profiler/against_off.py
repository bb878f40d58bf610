#!/usr/bin/env python3
"""What recording everything costs a step: pairs of runs with record=all and record=off, and beside
it what the recorder says of itself.

    bench/profiler/against_off.py [--sluice build/release/bin/sluice] [--pairs 15] [--steps 60]

Trains tiny by the real clock, one run after the other, the order within a pair in turns, and
prints

  by pairs    median of the pairs' differences, as a share of the step without recording, with
              three standard errors of that median (from the median absolute deviation)
  by itself   the verdicts' share `recorder`: the collector's time that steps spent beside it, and
              what it takes of one processor, by the counter that it writes
  pushing     records a step, times what pushing one takes at most (bench_record spans)

The goal is 1 % at most by either, and that the two agree within the noise. Needs a machine that
does nothing else.
"""
import argparse
import json
import pathlib
import shutil
import sqlite3
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train"))
from bench_run import ROOT, setting_arguments, sh  # noqa: E402  (the line above finds it)

PUSH_NS = 40  # at most, where reading the clock takes 15: what bench_record spans is held to


def step_seconds(arguments, level, steps):
    folder = pathlib.Path(arguments.dir) / level
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"output": folder, "text": pathlib.Path(arguments.text).resolve(), "clock": "real",
                "record": level, "sample_tokens": 0, "validation_every": 0, "host_memory": 0}
    report = json.loads(sh(arguments.sluice, "train", ROOT / "sample_models/runs/tiny.toml",
                           "--json", "--steps", steps, *setting_arguments(settings)))
    return report["seconds"]["total"]


def said_of_itself(arguments):
    """Share `recorder` of the steps, share of a processor, records a step: of the last run."""
    path = pathlib.Path(arguments.dir) / "all/run.db"
    steps = json.loads(sh(arguments.sluice, "show", path, "--json"))["steps"]
    shares = [step["share"]["recorder"] for step in steps if "share" in step]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        losses = db.execute("SELECT name, value FROM stat WHERE severity <> 'info' AND value > 0")
        lost = losses.fetchall()
        if lost:
            sys.exit(f"the recording is not whole, so its cost says nothing: {lost}")
        (processor,) = db.execute(
            "SELECT avg(value) FROM counter JOIN track ON track.id = track_id "
            "WHERE name = 'recorder: share of a processor'").fetchone()
        (records,) = db.execute("SELECT (SELECT count(*) FROM span) + (SELECT count(*) FROM flow) "
                                "+ (SELECT count(*) FROM counter)").fetchone()
    return statistics.mean(shares), processor, records / len(steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice")
    parser.add_argument("--text", default=ROOT / "out/data/kjv.txt")
    parser.add_argument("--dir", default="/tmp/sluice-bench-recording")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    step_seconds(arguments, "off", 5)  # what is read for the first time is read now
    differences, bases, own = [], [], []
    for pair in range(arguments.pairs):
        seconds = {}
        for level in ("off", "all") if pair % 2 == 0 else ("all", "off"):
            seconds[level] = step_seconds(arguments, level, arguments.steps)
        own.append(said_of_itself(arguments))
        bases.append(seconds["off"])
        differences.append(seconds["all"] - seconds["off"])
        print(f"  pair {pair + 1}: off {seconds['off'] * 1e3:.2f} ms, "
              f"all {seconds['all'] * 1e3:.2f} ms", file=sys.stderr)
    shutil.rmtree(arguments.dir)
    base = statistics.median(bases)
    middle = statistics.median(differences)
    spread = 1.4826 * statistics.median(abs(d - middle) for d in differences)
    noise = 3 * 1.2533 * spread / len(differences) ** 0.5
    share, processor, records = (statistics.mean(column) for column in zip(*own))
    print(f"tiny, {arguments.pairs} pairs of {arguments.steps} steps, "
          f"{base * 1e3:.2f} ms a step without recording\n"
          f"  by pairs   {100 * middle / base:+.2f} % of a step, noise {100 * noise / base:.2f} %\n"
          f"  by itself  {100 * share:.2f} % of a step; {100 * processor:.2f} % of one processor\n"
          f"  pushing    {records:.0f} records a step, {PUSH_NS} ns each at most: "
          f"{100 * records * PUSH_NS / 1e9 / base:.3f} % of a step")
    return 0


if __name__ == "__main__":
    sys.exit(main())
