#!/usr/bin/env python3
"""A window that follows a live run: how far its picture is behind, and what that costs the run.

    bench/gui/following.py behind   [--rate 20000] [--seconds 30]
    bench/gui/following.py slowdown [--clock real] [--pairs 40] [--steps 6] [--without-rasteriser]
                                    [--set KEY=VALUE]...

`behind` follows a made-up recording of that many spans a second (bench_record ingest) with
bench_follow, which is sluice-gui's window beside a stopwatch. `slowdown` trains tiny with
sluice-gui beside it, which is held (SIGSTOP) and let go in turns, some steps each; it prints the
median of what a block of steps beside the window takes more than the two blocks around it, and
three standard errors. Without a display one is made by Xvfb; there the picture is rasterised by
llvmpipe on the same processors that train, which a graphics card would do otherwise. That is part
of the figure; --without-rasteriser leaves it out: Mesa drops what the window draws (GALLIUM_NOOP).

Needs a machine that does nothing else.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(BENCH / "train"), str(BENCH / "control")]
from bench_run import ROOT, sh  # noqa: E402  (the line above finds it)
from live_line import block_medians, cost_of, started  # noqa: E402


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


def processor_seconds(pid):
    ticks = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(int(one) for one in ticks) / os.sysconf("SC_CLK_TCK")


def spans_a_second(database):
    """The rate of all steps after the first ten, and of the last ten: a lower second rate says that
    from some step on less was recorded."""
    def rate(steps):
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
            (rate,) = db.execute(
                "SELECT 1e9 * (SELECT count(*) FROM span WHERE ts >= begin AND ts < end) "
                "/ (end - begin) FROM (SELECT min(ts) AS begin, max(ts + dur) AS end FROM "
                f"({steps}))").fetchone()
        return rate
    return (rate("SELECT ts, dur FROM step WHERE id >= 10"),
            rate("SELECT ts, dur FROM step ORDER BY id DESC LIMIT 10"))


def recorded_less(database):
    """What the recorder says of that: levels it lowered, and when, and what it lost."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        levels = db.execute(
            "SELECT (ts - (SELECT min(ts) FROM step)) / 1e9, value FROM span JOIN string "
            "ON string.id = name_id WHERE value LIKE 'level % (from %' ORDER BY ts").fetchall()
        losses = db.execute(
            "SELECT value, description FROM stat WHERE severity <> 'info' AND value > 0").fetchall()
    return ([f"after {seconds:.1f} s: {text}" for seconds, text in levels] +
            [f"{value} {description}" for value, description in losses])


def slowdown(arguments):
    folder = pathlib.Path(arguments.dir) / "run"
    shutil.rmtree(folder, ignore_errors=True)
    run, line = started(arguments.bin / "sluice", folder, arguments.text, clock=arguments.clock,
                        record="all", host_memory=0,
                        **dict(one.split("=", 1) for one in arguments.set))
    drawn = {"GALLIUM_NOOP": "1"} if arguments.without_rasteriser else {}
    window = subprocess.Popen([arguments.bin / "sluice-gui", folder / "run.db", "--settings", "-",
                               "--size", arguments.size], stderr=subprocess.DEVNULL,
                              env={**os.environ, **drawn})
    for _ in range(10):
        line.next_step_seconds()
    used, since = [], [time.monotonic(), 0.0]

    def switch(is_on):
        if window.poll() is not None:
            sys.exit("the window was gone before the run ended")
        now, seconds = time.monotonic(), processor_seconds(window.pid)
        if not is_on:
            used.append((seconds - since[1]) / (now - since[0]))
        since[:] = now, seconds
        window.send_signal(signal.SIGCONT if is_on else signal.SIGSTOP)

    base, more, noise = cost_of(block_medians(line, arguments.pairs, arguments.steps, switch))
    line.send(id=1, do="stop")
    window.kill()
    window.wait()
    run.wait()
    all_spans, last_spans = spans_a_second(folder / "run.db")
    mode = " without the rasteriser (GALLIUM_NOOP)" if arguments.without_rasteriser else ""
    print(f"tiny, clock={arguments.clock} {' '.join(arguments.set)}, {arguments.size}, "
          f"{arguments.pairs} pairs of {arguments.steps} steps, {base * 1e3:.2f} ms a step without "
          f"a window, {all_spans:.0f} spans a second, {last_spans:.0f} in the last ten steps\n"
          f"  with one{mode}  {100 * more:+.2f} %, noise {100 * noise:.2f} %; it and its driver "
          f"took {100 * statistics.median(used[1:]):.1f} % of a processor")
    for line in recorded_less(folder / "run.db"):
        print(f"  {line}")


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
    parser.add_argument("--pairs", type=int, default=40, help="of blocks of steps (slowdown)")
    parser.add_argument("--steps", type=int, default=6, help="of a block (slowdown)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of the run, such as subgroup_elements=1024 (slowdown)")
    parser.add_argument("--without-rasteriser", action="store_true",
                        help="what the window draws is dropped (slowdown)")
    arguments = parser.parse_args()
    pathlib.Path(arguments.dir).mkdir(parents=True, exist_ok=True)
    with Display():
        behind(arguments) if arguments.what == "behind" else slowdown(arguments)
    shutil.rmtree(arguments.dir)


if __name__ == "__main__":
    main()
