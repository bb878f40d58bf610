#!/usr/bin/env python3
"""`sluice calibrate`: what it writes is what simulate and train take, and what it refuses leaves
nothing behind."""
# Runs alone: it measures the machine.

import os
import pathlib
import sys
import time
import tomllib

from sluice_run import (ROOT, SAMPLES, SLUICE, Running, Skip, main, only_with_all, require,
                        require_equal, require_words, sluice, test)
from volume import fill, mounted, small_volume

TINY = SAMPLES / "models/tiny.toml"
QUICK = ("--quick", "--size", "128MiB", "--threads", "1")


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


@test
def a_calibrated_platform_simulates_and_trains(place):
    for name in ("a", "b"):
        (place / name).mkdir()
    report = sluice("calibrate", *QUICK, "--json", "--emulated-csds", "--model", TINY, place / "a",
                    place / "b", "-o", place / "mine.toml").json()
    require_equal(len(report["drives"]), 2, "drives")
    require(report["compute"]["matmul_flop_per_s"] > 0, f"{report['compute']}")
    toll = report["transfer_toll"]
    require(toll["bytes_per_s"] > 0 and toll["longer"]["repeats"] > 1, f"{toll}")
    require_words(" ".join(report["notes"]), ["one file system"], "the notes")
    require_equal(left_in(place / "a") + left_in(place / "b"), [], "files left")
    text = (place / "mine.toml").read_text()
    require_words(text, ["repeats", "EMULATED", "# drive1:", "processor_bandwidth"], "the file")
    for method in ("host", "csd"):
        step = sluice("simulate", TINY, "--platform", place / "mine.toml", "--json", "--set",
                      "devices=2", "--set", f"method={method}").json()
        require(step["seconds"]["total"] > 0, f"{step['seconds']}")
    place.train("--json", "--steps", 2, platform=place / "mine.toml", clock="real").json()


@test
@only_with_all("it measures the drive once more")
def without_engines_the_report_says_what_is_possible(place):
    said = sluice("calibrate", *QUICK, "--model", TINY, place.path, "-o", place / "mine.toml")
    require_words(said.done().out, ["No update engines", "method=host"], "the report")
    require_words(said.err, ["left", "forward and backward"], "the progress")


RATE = 200e6  # bytes a second, each way


@test
def an_accelerator_is_measured_as_slow_as_it_is_set_up(place):
    library = SLUICE.parent.parent / "lib/libsluice_soft_accelerator.so"
    if not library.exists():
        raise Skip("the software accelerator is not built")
    environment = {**os.environ,
                   "SLUICE_SOFT_ACCELERATOR": f"in_rate={RATE:.0f};out_rate={RATE:.0f}"}
    report = sluice("calibrate", *QUICK, "--json", "--device", "soft", place.path, "-o",
                    place / "mine.toml", env=environment).json()
    accelerator = report["accelerator"]
    require_words(accelerator["device"], ["SOFTWARE ACCELERATOR"], "the device")
    require_equal([(of["size_bytes"] >> 20, of["pinned"]) for of in accelerator["copies"]],
                  [(1, True), (1, False), (16, True), (16, False), (64, True), (64, False)],
                  "copies")
    text = (place / "mine.toml").read_text()
    file = tomllib.loads(text)
    for way in ("read", "write"):
        rate, unit = file["compute"]["link"][way].split()
        found = float(rate) * {"MB/s": 1e6, "GB/s": 1e9, "kB/s": 1e3}[unit]
        require(0.85 * RATE <= found <= RATE, f"{way}: {found / 1e6:.1f} MB/s")
    require_words(text, ["# products of 1024 x 1024 in bf16", "1 MiB, pinned: in",
                         "64 MiB, pageable: out", "repeats"], "the file")
    step = sluice("simulate", TINY, "--platform", place / "mine.toml", "--json", "--set",
                  "devices=1", "--set", "method=host").json()
    require(step["seconds"]["total"] > 0, f"{step['seconds']}")
    sluice("simulate", TINY, "--platform", place / "mine.toml", "--set", "method=csd").refused(
        2, ["update engine", "method=host"])


def refused(place, words, *arguments):
    before = left_in(place.path)
    reply = sluice("calibrate", "--quick", *arguments).refused(2, words)
    require_equal(reply.out, "", "standard output")
    require_equal(left_in(place.path), before, "files")


@test
def what_cannot_be_measured_is_refused_and_leaves_nothing(place):
    output = ("-o", place / "mine.toml")
    (place / "there.toml").write_text("precious")
    (place / "a").mkdir()
    refused(place, ["none", "No such file"], place / "none", *output)
    refused(place, ["text.txt", "not a folder"], place / "text.txt", *output)
    refused(place, ["same folder"], place / "a", place / "a/../a", *output)
    refused(place, ["cpu", "no memory of its own"], "--device", "cpu", place / "a", *output)
    refused(place, ["device", "sofa"], "--device", "sofa", place / "a", *output)
    refused(place, ["free", "--size"], "--size", "900TiB", place / "a", *output)
    refused(place, ["--size", "128 MiB"], "--size", "1MiB", place / "a", *output)
    refused(place, ["there.toml", "--force"], place / "a", "-o", place / "there.toml")
    require_equal((place / "there.toml").read_text(), "precious", "the file that was there")
    refused(place, ["cannot be written"], place / "a", "-o", place / "none/mine.toml")
    refused(place, ["none.toml"], place / "a", "--model", place / "none.toml", *output)
    refused(place, ["Name a folder on each drive"], *output)


@test
def memory_is_no_drive(place):
    memory = pathlib.Path("/dev/shm")
    if not memory.is_dir() or "tmpfs /dev/shm tmpfs" not in pathlib.Path(
            "/proc/mounts").read_text():
        raise Skip("there is no tmpfs on /dev/shm")
    refused(place, ["lies in memory (tmpfs)"], memory, "-o", place / "mine.toml")


@test
def full_and_read_only_drives_are_refused(place):
    with small_volume(place, 200 << 20) as volume:
        fill(volume, 60 << 20)
        refused(place, ["free", "--size"], "--size", "128MiB", volume, "-o", place / "mine.toml")
        require_equal(left_in(volume), ["filler", "lost+found"], "files on the full drive")
        with mounted(place / "fixed", "--bind", volume):
            os.system(f"mount -o remount,bind,ro {place / 'fixed'}")
            refused(place, ["Read-only"], "--size", "128MiB", place / "fixed", "-o",
                    place / "mine.toml")


@test
def an_interrupted_calibration_leaves_nothing(place):
    (place / "a").mkdir()
    run = Running(["calibrate", "--size", "256MiB", place / "a", "-o", place / "mine.toml"], ROOT)
    run.wait_for(lambda: "in flight" in run.heard(), "measurement of the drive")
    time.sleep(0.1)
    run.signal(2)
    require(run.wait().code != 0, "an interrupted calibration ended with 0")
    require_equal(left_in(place / "a"), [], "files left")
    require(not (place / "mine.toml").exists(), "a platform file was written")


if __name__ == "__main__":
    sys.exit(main())
