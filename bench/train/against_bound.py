#!/usr/bin/env python3
"""How near a step comes to the bound that its bytes and the drives' bandwidth set.

    bench/train/against_bound.py [--sluice build/release/bin/sluice] [--dir /tmp/sluice-drives]

Trains gpt2-124m on loop devices that the kernel throttles (bench/throttle/throttled_devices.sh;
needs root and cgroup v1), real clock, and prints for each case the medians of the steps after the
first two:

  update  four drives of 100 MB/s, method csd and host, no prefetch: the update phase beside
          bytes / bandwidth of the busier direction
  step    one drive of 200 MB/s, method host, sequence 256, batch 1: the whole step beside its
          bound, and the peak of resident memory
  format  the same with gradients in memory, in each state_format: compact state gives other
          numbers. The mean of steps in which reading and writing are in balance: behind the first
          ones, which only begin to write, and before the last, which waits for all

Bytes are those that the block layer counted (/sys/block/*/stat), not those Sluice says it moved;
for `format` they are those that the record has for each step.
"""
import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import sys

from bench_run import ROOT, THROTTLE, sh


def loop_stats(drives):
    """Bytes read and written so far by the loop device below each drive."""
    stats = []
    for drive in drives:
        device = os.stat(drive).st_dev
        path = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat"
        fields = pathlib.Path(path).read_text().split()
        stats.append((int(fields[2]) * 512, int(fields[6]) * 512))
    return stats


def train(arguments, drives_dir, steps, resume, settings):
    command = [THROTTLE, "run", drives_dir, arguments.sluice, "train",
               ROOT / "sample_models/runs/gpt2-124m.toml", "--json", "--steps", steps,
               "--set", f"output={arguments.dir}/out", "--set", f"state_dir={drives_dir}"]
    if resume:
        command.append("--resume")
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return json.loads(sh(*command))


def phases(database):
    """Seconds of each step, whole and of its update. The run's first step waits for all of its
    update, so that only the third has the one before it to wait for."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    rows = connection.execute("SELECT dur, update_dur FROM step_phase JOIN step "
                              "ON step.id = step_id ORDER BY step_id").fetchall()
    return [(total / 1e9, update / 1e9) for total, update in rows[2:]]


def state_bytes(database, steps):
    """Bytes read and written of a step, in the mean of the last ones."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    last, = connection.execute("SELECT max(id) FROM step").fetchone()
    moved = dict(connection.execute(
        "SELECT direction, sum(bytes) FROM link_bytes WHERE link = 'host' AND step_id > ? "
        "GROUP BY direction", (last - steps,)))
    return moved["read"] / steps, moved["write"] / steps


def measure(arguments, name, count, rate, settings, what):
    drives_dir = f"{arguments.dir}/{name}"
    sh(THROTTLE, "up", drives_dir, count, rate, 4096 // count + 512)
    try:
        drives = [f"{drives_dir}/dev{i}" for i in range(count)]
        shutil.rmtree(f"{arguments.dir}/out", ignore_errors=True)
        train(arguments, drives_dir, 1, False, settings)  # makes the state, and warms up
        before = loop_stats(drives)
        report = train(arguments, drives_dir, 3 + arguments.steps, True, settings)
        after = loop_stats(drives)
    finally:
        sh(THROTTLE, "down", drives_dir)
        shutil.rmtree(drives_dir, ignore_errors=True)  # the commit log, which lies on no drive
    rows = phases(f"{arguments.dir}/out/run.db")
    total = statistics.median(row[0] for row in rows)
    update = statistics.median(row[1] for row in rows)
    parameters = report["parameters"]
    # Resuming reads the master weights once (4 bytes a parameter), and --json the whole state for
    # its digest (12); neither is of the steps.
    steps = 2 + arguments.steps
    moved = [((r1 - r0 - 16 * parameters / count) / steps, (w1 - w0) / steps)
             for (r0, w0), (r1, w1) in zip(before, after)]
    bytes_bound = max(max(read, written) for read, written in moved) / (rate * 1e6)
    # Both methods read 16 bytes a parameter of a drive in the update, and write 12.
    link_bound = 16 * parameters / count / (rate * 1e6)
    seconds = update if what == "update" else total
    print(f"{name:<12} {what:<6} {seconds:7.2f} s   bound {link_bound:6.2f} s   ratio "
          f"{seconds / link_bound:5.3f}   (block layer: {bytes_bound:.2f} s)   forward "
          f"{report['seconds']['forward']:.2f} s, backward {report['seconds']['backward']:.2f} s, "
          f"peak {report['host_memory_peak_bytes'] / 1e9:.2f} GB", flush=True)


# Settings; bytes of a parameter with AdamW that are read, and written between commits; those of the
# copy, written in a commit; steps between commits. Buffers of compact state take a third of the
# memory, so that there may be more.
COMPACT = {"state_format": "compact", "buffers": 44}
FORMATS = {
    "fp32": ({}, 12, 12, 0, 1),
    "exact, commit_every=8": ({"state_format": "exact"}, 10, 10, 2, 8),
    "compact": (COMPACT, 4 + 5 / 64, 4 + 5 / 64, 2, 1),
    "compact, commit_every=8": (COMPACT, 4 + 5 / 64, 4 + 5 / 64, 2, 8),
    "compact, remainders of 8 bits, commit_every=8": (
        COMPACT | {"remainder_bits": 8}, 3 + 5 / 64, 3 + 5 / 64, 2, 8),
}
FILLING = 4  # steps that begin to write what later ones wait for


def measure_format(arguments, name):
    settings, read, written, copy, commit_every = FORMATS[name]
    settings = settings | {"gradient_tier": "memory", "commit_every": commit_every}
    drives_dir = f"{arguments.dir}/format"
    steps = max(arguments.steps, 2 * commit_every if commit_every > 1 else 0)
    sh(THROTTLE, "up", drives_dir, 1, 200, 4608)
    try:
        shutil.rmtree(f"{arguments.dir}/out", ignore_errors=True)
        train(arguments, drives_dir, commit_every, False, settings)
        report = train(arguments, drives_dir, commit_every + FILLING + steps + 1, True, settings)
    finally:
        sh(THROTTLE, "down", drives_dir)
        shutil.rmtree(drives_dir, ignore_errors=True)
    rows = phases(f"{arguments.dir}/out/run.db")[-steps - 1:-1]
    seconds = statistics.fmean(row[0] for row in rows)
    moved = state_bytes(f"{arguments.dir}/out/run.db", steps)
    bound = max(read, written + copy / commit_every) * report["parameters"] / 200e6
    print(f"{name}: {seconds:.2f} s   bound {bound:.2f} s   ratio {seconds / bound:.3f}   "
          f"{moved[0] / 1e6:.0f} MB read, {moved[1] / 1e6:.0f} written a step   peak "
          f"{report['host_memory_peak_bytes'] / 1e9:.2f} GB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(ROOT / "build/release/bin/sluice"))
    parser.add_argument("--dir", default="/tmp/sluice-drives")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    arguments = parser.parse_args()
    os.makedirs(arguments.dir, exist_ok=True)
    cases = [
        ("csd-4x100", 4, 100, {"method": "csd", "devices": 4, "sequence": 64, "prefetch": "false",
                               "subgroup_elements": 1 << 20, "buffers": 3}, "update"),
        ("host-4x100", 4, 100, {"method": "host", "devices": 4, "sequence": 64, "prefetch": "false",
                                "subgroup_elements": 1 << 20, "buffers": 3}, "update"),
        ("host-1x200", 1, 200, {}, "step"),
    ]
    print(f"{sh('uname', '-sr').strip()}, {os.cpu_count()} processors, load "
          f"{os.getloadavg()[0]:.1f}; medians of {arguments.steps} steps")
    for case in cases:
        if arguments.only in case[0]:
            measure(arguments, *case)
    for name in FORMATS:
        if arguments.only in f"format {name}":
            measure_format(arguments, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
