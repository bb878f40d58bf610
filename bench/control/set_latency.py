#!/usr/bin/env python3
"""How long a run takes to answer a set over its control socket, and when it is in force.

    bench/control/set_latency.py [--sluice build/release/bin/sluice] [--text out/data/kjv.txt]

Trains sample_models/runs/tiny.toml twice: by the emulated clock on drives so slow that the machine
is idle while a step runs, and by the real clock, when every processor computes. Each time
`--sets` sets of `buffers` are sent, at random times of a step, and the time from sending the line
to having read its answer is taken; then that to the event that the change is in force, beside the
length of a step.
"""
import argparse
import pathlib
import random
import shutil
import signal
import statistics
import time

from live_line import ROOT, started

CASES = [("idle (emulated clock)", {"clock": "emulated", "time_scale": 24}),
         ("computing (real clock)", {"clock": "real"})]


def measure(line, sets):
    chance = random.Random(1)
    answers, effects, steps = [], [], []
    for _ in range(4):  # the first steps take memory
        steps.append(line.next_step_seconds())
    for i in range(1, sets + 1):
        time.sleep(chance.uniform(0, statistics.median(steps)))
        begin = time.monotonic()
        line.send(id=i, do="set", knobs={"buffers": 2 + i % 2})
        answer = line.next(lambda m: m.get("id") == i)
        answers.append(time.monotonic() - begin)
        if not answer["ok"]:
            sys.exit(f"refused: {answer['error']}")
        line.next(lambda m: m.get("event") == "change" and m["change"] == answer["change"])
        effects.append(time.monotonic() - begin)
        steps.append(line.next_step_seconds())
    return sorted(answers), sorted(effects), statistics.median(steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice")
    parser.add_argument("--text", default=ROOT / "out/data/kjv.txt")
    parser.add_argument("--dir", default=ROOT / "out/bench-control", help="what it writes; removed")
    parser.add_argument("--sets", type=int, default=40)
    arguments = parser.parse_args()
    print(f"{'':24} {'step':>9} {'answer, median':>15} {'p90':>9} {'longest':>9} "
          f"{'in force, longest':>18}")
    for name, settings in CASES:
        folder = pathlib.Path(arguments.dir).resolve()
        shutil.rmtree(folder, ignore_errors=True)
        process, line = started(arguments.sluice, folder, arguments.text, **settings)
        answers, effects, step = measure(line, arguments.sets)
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(f"{name:24} {1e3 * step:7.1f}ms {1e3 * statistics.median(answers):13.2f}ms "
              f"{1e3 * answers[len(answers) * 9 // 10]:7.2f}ms {1e3 * answers[-1]:7.2f}ms "
              f"{1e3 * effects[-1]:16.1f}ms", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
