#!/usr/bin/env python3
"""A window that follows a live run: how far its picture is behind, and what that costs the run.

    bench/gui/following.py behind   [--rate 20000] [--seconds 30]
    bench/gui/following.py slowdown [--clock real] [--pairs 9] [--steps 60] [--size 1920x1080]

`behind` follows a made-up recording of that many spans a second (bench_record ingest) with
bench_follow, which is sluice-gui's window beside a stopwatch. `slowdown` trains tiny in pairs with
and without sluice-gui beside it, the order within a pair in turns, and prints the median of the
pairs' differences with three standard errors of it, from the median absolute deviation. The window
has the priority that a program has. Without a display one is made by Xvfb; there the picture is
rasterised by llvmpipe on the same processors that train, which a graphics card would do otherwise.
That is part of the figure; a small window (--size 320x240) has little of it.

Needs a machine that does nothing else.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train"))
from bench_run import ROOT, setting_arguments, sh  # noqa: E402  (the line above finds it)


class Display:
    """The one that DISPLAY names, else an X server of its own."""

    def __enter__(self):
        self.server = None
        if "DISPLAY" not in os.environ:
            read, write = os.pipe()
            self.server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", "1920x1080x24", "-nolisten",
                 "tcp"], pass_fds=[write], stderr=subprocess.DEVNULL)
            os.close(write)
            with os.fdopen(read) as number:
                os.environ["DISPLAY"] = ":" + number.readline().strip()

    def __exit__(self, *_):
        if self.server is not None:
            self.server.terminate()
            self.server.wait()


def wait_for(path, process):
    while not path.exists():
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended before it wrote {path}")
        time.sleep(0.02)


def behind(arguments):
    database = pathlib.Path(arguments.dir) / "live.db"
    recorder = subprocess.Popen(
        [arguments.bin / "bench_record", "ingest", "--seconds", str(arguments.seconds + 15),
         "--rate", str(arguments.rate), "--database", database], stdout=subprocess.PIPE, text=True)
    wait_for(database, recorder)
    time.sleep(3)
    followed = json.loads(sh(arguments.bin / "bench_follow", database, arguments.seconds))
    recorder.terminate()
    recorder.wait()
    old, new = followed["behind_before_ms"], followed["behind_when_shown_ms"]
    used = followed["processors"]
    print(f"{arguments.rate} spans a second, {followed['pictures']} pictures of newer ones in "
          f"{arguments.seconds} s, {followed['frames_a_second']:.1f} frames a second\n"
          f"  behind when a picture appears   median {new['median']:.0f} ms, p99 {new['p99']:.0f}, "
          f"longest {new['worst']:.0f}\n"
          f"  just before the next one        median {old['median']:.0f} ms, p99 {old['p99']:.0f}, "
          f"longest {old['worst']:.0f}\n"
          f"  share of a processor            frames {100 * used['frames']:.1f} %, rasterising "
          f"{100 * used['rasteriser']:.1f} %, all of the process {100 * used['process']:.1f} %")


def step_seconds(arguments, with_window):
    """Median step of a run, and the processors that the window took beside it."""
    folder = pathlib.Path(arguments.dir) / "run"
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"output": folder, "text": pathlib.Path(arguments.text).resolve(),
                "clock": arguments.clock, "record": "all", "sample_tokens": 0,
                "validation_every": 0, "host_memory": 0}
    run = subprocess.Popen(
        [str(part) for part in (arguments.bin / "sluice", "train",
                                ROOT / "sample_models/runs/tiny.toml", "--json", "--steps",
                                arguments.steps, *setting_arguments(settings))],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    window, begin, used = None, time.monotonic(), 0.0
    if with_window:
        wait_for(folder / "run.db", run)
        window = subprocess.Popen([arguments.bin / "sluice-gui", folder / "run.db", "--settings",
                                   "-", "--size", arguments.size], stderr=subprocess.DEVNULL)
        begin = time.monotonic()
    report = json.loads(run.communicate()[0])
    if run.returncode != 0:
        sys.exit("the run failed")
    if window is not None:
        seconds = time.monotonic() - begin
        if window.poll() is not None:
            sys.exit("the window was gone before the run ended")
        window.terminate()
        _, _, usage = os.wait4(window.pid, 0)
        used = (usage.ru_utime + usage.ru_stime) / seconds
    return report["seconds"]["total"], used


def slowdown(arguments):
    step_seconds(argparse.Namespace(**{**vars(arguments), "steps": 5}), False)
    differences, bases, used = [], [], []
    for pair in range(arguments.pairs):
        seconds = {}
        for with_window in (False, True) if pair % 2 == 0 else (True, False):
            seconds[with_window], share = step_seconds(arguments, with_window)
            if with_window:
                used.append(share)
        bases.append(seconds[False])
        differences.append(seconds[True] - seconds[False])
        print(f"  pair {pair + 1}: {seconds[False] * 1e3:.2f} ms, with the window "
              f"{seconds[True] * 1e3:.2f} ms", file=sys.stderr)
    base, middle = statistics.median(bases), statistics.median(differences)
    spread = 1.4826 * statistics.median(abs(d - middle) for d in differences)
    noise = 3 * 1.2533 * spread / len(differences) ** 0.5
    print(f"tiny, clock={arguments.clock}, {arguments.size}, {arguments.pairs} pairs of "
          f"{arguments.steps} steps, {base * 1e3:.2f} ms a step without a window\n"
          f"  with one  {100 * middle / base:+.2f} %, noise {100 * noise / base:.2f} %; the window "
          f"and its driver took {100 * statistics.median(used):.1f} % of a processor")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["behind", "slowdown"])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--dir", default="/tmp/sluice-bench-following", help="removed in the end")
    parser.add_argument("--text", default=ROOT / "out/data/kjv.txt")
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--clock", default="real", choices=["real", "emulated"])
    parser.add_argument("--size", default="1920x1080", help="of the window (slowdown)")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    pathlib.Path(arguments.dir).mkdir(parents=True, exist_ok=True)
    with Display():
        behind(arguments) if arguments.what == "behind" else slowdown(arguments)
    shutil.rmtree(arguments.dir)


if __name__ == "__main__":
    main()
