#!/usr/bin/env python3
"""What recording everything costs a step: steps with record=all beside steps with record=off, and
what the recorder says of itself.

    bench/profiler/against_off.py [--clock real] [--pairs 60] [--steps 6]

Trains tiny by the real clock (or the emulated one), and turns `record` in that run: some steps of
each level in turns. Prints

  by pairs    median of what a block of steps that are recorded takes more than the two blocks
              around it, as a share of the step without recording, with three standard errors
  by itself   of LAST steps behind the pairs, which are all recorded: the verdicts' share
              `recorder`, which is the collector's time that steps spent beside it; and what it
              takes of one processor, by its own counter
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

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(BENCH / "train"), str(BENCH / "control")]
from bench_run import ROOT, sh  # noqa: E402  (the line above finds it)
from live_line import UNSETTLED, block_medians, cost_of, started  # noqa: E402

LAST = 100
COST_WATCH_NS = 2_000_000_000  # what a sample of the share is of
PUSH_NS = 40  # at most, where reading the clock takes 15: what bench_record spans is held to


def cost_by_pairs(arguments, folder):
    run, line = started(arguments.sluice, folder, arguments.text, clock=arguments.clock,
                        record="all", host_memory=0, follows=arguments.followed)

    def switch(is_on):
        line.send(id=1, do="set", knobs={"record": "all" if is_on else "off"})

    cost = cost_of(block_medians(line, arguments.pairs, arguments.steps, switch))
    switch(True)
    for _ in range(UNSETTLED + LAST):
        line.next_step_seconds()
    line.send(id=2, do="stop")
    run.wait()
    return cost


def said_of_itself(arguments, path):
    """Share `recorder` of the steps, share of a processor, records a step: of the last steps."""
    steps = json.loads(sh(arguments.sluice, "show", path, "--json"))["steps"][-LAST:]
    shares = [step["share"]["recorder"] for step in steps if "share" in step]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        losses = db.execute("SELECT name, value FROM stat WHERE severity <> 'info' AND value > 0")
        lost = losses.fetchall()
        if lost:
            sys.exit(f"the recording is not whole, so its cost says nothing: {lost}")
        (begin,) = db.execute("SELECT ts FROM step ORDER BY id DESC LIMIT 1 OFFSET ?",
                              (LAST - 1,)).fetchone()
        (processor,) = db.execute(
            "SELECT avg(value) FROM counter JOIN track ON track.id = track_id "
            "WHERE name = 'recorder: share of a processor' AND ts > ? + ?",
            (begin, COST_WATCH_NS)).fetchone()
        (records,) = db.execute(
            "SELECT (SELECT count(*) FROM span WHERE ts > ?1) + "
            "(SELECT count(*) FROM flow JOIN span ON span.id = to_span WHERE ts > ?1) + "
            "(SELECT count(*) FROM counter WHERE ts > ?1)", (begin,)).fetchone()
    return shares, processor, records / LAST


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice")
    parser.add_argument("--text", default=ROOT / "out/data/kjv.txt")
    parser.add_argument("--dir", default="/tmp/sluice-bench-recording", help="removed in the end")
    parser.add_argument("--clock", choices=["real", "emulated"], default="real")
    parser.add_argument("--followed", action="store_true",
                        help="as if a window followed the run: it is flushed more often")
    parser.add_argument("--pairs", type=int, default=60, help="of blocks of steps")
    parser.add_argument("--steps", type=int, default=6, help="of a block")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.dir)
    shutil.rmtree(folder, ignore_errors=True)
    base, by_pairs, noise = cost_by_pairs(arguments, folder)
    shares, processor, records = said_of_itself(arguments, folder / "run.db")
    shutil.rmtree(folder)
    print(f"tiny, clock={arguments.clock}, {arguments.pairs} pairs of {arguments.steps} steps, "
          f"{base * 1e3:.2f} ms a step without recording\n"
          f"  by pairs   {100 * by_pairs:+.2f} % of a step, noise {100 * noise:.2f} %\n"
          f"  by itself  {100 * statistics.mean(shares):.2f} % of a step in the mean, "
          f"{100 * statistics.median(shares):.2f} % in the middle; "
          f"{100 * processor:.2f} % of one processor\n"
          f"  pushing    {records:.0f} records a step, {PUSH_NS} ns each at most: "
          f"{100 * records * PUSH_NS / 1e9 / base:.3f} % of a step")
    return 0


if __name__ == "__main__":
    sys.exit(main())
