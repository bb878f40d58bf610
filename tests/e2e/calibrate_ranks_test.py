#!/usr/bin/env python3
"""`mpirun -n N sluice calibrate --ranks`: `simulate --shard` and `plan --ranks` read what it adds
to a platform file, and what it refuses leaves the file as it is."""

import json
import subprocess
import sys
import tomllib
import uuid

from launched import environment, left_of, mpirun
from sluice_run import (LIMIT_S, SAMPLES, SLUICE, main, require, require_equal, require_words,
                        sluice, test)

TINY = SAMPLES / "models/tiny.toml"
MACHINE = """\
name = "here"  # and only here
[host]
[compute]
matmul = "50 GFLOP/s"
[[device]]
name = "drive"
via = []
drive = { read = "3 GB/s", write = "2 GB/s", duplex = "half" }
"""
# Bounded, so that the largest tensors are left out rather than waited for.
SHORT = ("--seconds", "3")


def calibrate(place, count, *arguments):
    """Exit code, what was printed, and what was said, of so many ranks."""
    mark = uuid.uuid4().hex
    command = [*mpirun(), "-n", str(count), SLUICE, "calibrate", "--ranks", "-o", "here.toml",
               *arguments]
    done = subprocess.run(command, cwd=place.path, env=environment(mark), capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)
    require_equal(left_of(mark), [], "processes that are left")
    return done.returncode, done.stdout, done.stderr


def require_as_measured(row, measured):
    """Rates of the file are bytes over the median time; none is shorter than one before it."""
    seconds = 0
    require_equal(len(row["bandwidth"]), len(measured["points"]), "points")
    for (size, rate), point in zip(row["bandwidth"], measured["points"], strict=True):
        seconds = max(seconds, point["seconds"])
        require_equal(size, f"{point['size_bytes']} B", "size")
        require(point["low"] <= point["seconds"] <= point["high"], f"{point}")
        number, unit = rate.split(" ")
        scale = {"B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}[unit]
        found = float(number) * scale
        require(abs(found * seconds / point["size_bytes"] - 1) < 1e-4, f"{rate}, {point}")


def require_read(place, count):
    """simulate --shard and plan --ranks take the file."""
    on = ("--platform", "here.toml", "--set", "batch=4")
    step = sluice("simulate", TINY, *on, "--shard", "zero3", "--json", cwd=place.path).json()
    require(step["seconds"]["total"] > step["seconds"]["compute"] > 0, f"{step}")
    require(step["collectives"]["all_gather"]["seconds"] > 0, f"{step['collectives']}")
    for ranks in (f"{count}x1", "1x1"):
        plan = sluice("tune", "--placement", TINY, *on, "--ranks", ranks, "--json",
                      cwd=place.path).json()
        require_equal((plan["ranks"], plan["exhaustive"]), (ranks, True), "the plan")
        # What it would cost is what the command that it prints says.
        again = sluice(*plan["command"].split()[1:], "--json", cwd=place.path).json()
        require_equal(again["seconds"]["total"], plan["seconds"]["planned"], "seconds")
        require_equal(again["memory_bytes"], plan["plan"]["memory_bytes"], "memory")


@test
def three_and_four_ranks_are_measured_and_planned_with(place):
    path = place / "here.toml"
    path.write_text(MACHINE)
    for count, groups in ((3, {"3x1"}), (4, {"2x1", "4x1"})):
        code, out, err = calibrate(place, count, *SHORT, "--json", "--force")
        require_equal(code, 0, f"exit code: {err}")
        report = json.loads(out)
        require_equal(report["ranks"], f"{count}x1", "ranks")
        require_words(err, ["left", "all_reduce in"], "the progress")
        text = path.read_text()
        require(text.startswith(MACHINE), f"the rest of the file: {text}")
        written = tomllib.loads(text)
        require_equal((written["cluster"]["ranks"], written["cluster"]["nodes"]), (count, 1),
                      "cluster")
        rows = {(row["operation"], row["group"]): row for row in written["collective"]}
        require_equal(set(rows), {(operation, group) for group in groups for operation in (
            "all_gather", "reduce_scatter", "all_reduce", "broadcast")}, "rows")
        for measured in report["collectives"]:
            require_as_measured(rows[measured["operation"], measured["group"]], measured)
        require_read(place, count)


@test
def a_second_measurement_is_asked_for_and_said_to_people(place):
    path = place / "here.toml"
    path.write_text(MACHINE)
    code, out, err = calibrate(place, 2, "--seconds", "1")
    require_equal(code, 0, f"exit code: {err}")
    require_words(out, ["collectives among 2x1 ranks", "all_gather", "2x1", "Written: here.toml"],
                  "the report")
    require_equal(out.count("Written"), 1, "who speaks")
    before = path.read_text()
    code, _, err = calibrate(place, 2, "--seconds", "1")
    require(code != 0, "replaced without being asked")
    require_words(err, ["has a [cluster] already", "--force"], "the error")
    require_equal(path.read_text(), before, "the file")


@test
def what_cannot_be_measured_is_refused(place):
    code, _, err = calibrate(place, 2)
    require(code != 0, "a file that is not there")
    require_words(err, ["here.toml", "sluice calibrate FOLDER"], "the error")
    (place / "here.toml").write_text(MACHINE)
    for arguments, words in [(("--ranks",), "begin several"),
                             (("--ranks", place.path), "excludes"),
                             (("--ranks", "--quick"), "excludes"),
                             (("--seconds", "5", place.path), "--ranks"),
                             ((), "what shall be measured")]:
        sluice("calibrate", "-o", "here.toml", *arguments, cwd=place.path).refused(2, [words])
    require_equal((place / "here.toml").read_text(), MACHINE, "the file")


if __name__ == "__main__":
    sys.exit(main())
