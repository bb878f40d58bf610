#!/usr/bin/env python3
"""Drives that fill up, fail or turn read-only under each file that Sluice writes: one message, no
half file, the last commit whole. Mounting takes root."""

import contextlib
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys

from sluice_run import (Skip, committed_step, main, require, require_equal, require_words, sluice,
                        test)
from volume import fill, small_volume

EXT4_IOC_SHUTDOWN = 0x8004587D  # from here on the file system answers all with EIO
NOLOGFLUSH = 2


def shut_down(volume):
    descriptor = os.open(volume, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
    except OSError as error:
        raise Skip(f"the file system cannot be shut down: {error}") from None
    finally:
        os.close(descriptor)


def make_read_only(volume):
    """As the kernel does where it finds the file system damaged."""
    done = subprocess.run(["findmnt", "-n", "-o", "SOURCE", str(volume)], capture_output=True,
                          text=True, check=False)
    trigger = pathlib.Path("/sys/fs/ext4", pathlib.Path(done.stdout.strip()).name,
                           "trigger_fs_error")
    done = subprocess.run(["mount", "-o", "remount,errors=remount-ro", str(volume)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0 or not os.access(trigger, os.W_OK):
        raise Skip(f"this kernel has no {trigger}")
    trigger.write_text("made by a test\n")
    try:
        (volume / "probe").touch()
    except OSError:
        return
    raise Skip("the file system stayed writable")


def halves(folder):
    return [path for path in folder.rglob("*") if ".part" in path.name or ".new" in path.name]


def outputs(place, volume):
    """Each command that writes a file, and the file."""
    recorded = place / "out/run.db"
    yield ("report", recorded, "-o", volume / "page.html"), volume / "page.html"
    for form in ("chrome", "nsys", "csv"):
        out = volume / f"run.{form}"
        yield ("export", recorded, "--format", form, "-o", out), out
    yield ("tune", recorded, "--write-platform", volume / "p.toml"), volume / "p.toml"


@test
def what_finds_no_room_is_said_and_not_left_half_written(place):
    place.train("--steps", 30).done()
    with small_volume(place, 16 << 20) as volume:
        for command, out in outputs(place, volume):
            filler = fill(volume, leave=0)
            reply = sluice(*command)
            reply.refused(1, ["full" if "nsys" in command else "No space left", str(volume)])
            require(not halves(volume), f"`{reply.line}` left {halves(volume)}")
            require(out.is_dir() or not out.exists(), f"`{reply.line}` left {out}")
            filler.unlink()


@test
def a_run_that_finds_no_room_for_its_text_or_its_residual_says_so(place):
    settings = {"density": 0.1, "error_feedback": "true"}
    # Leaves room for ever more of what a run makes at its beginning.
    with small_volume(place, 16 << 20) as volume:
        refusals = 0
        for leave in (0, 8 << 10, 24 << 10, 200 << 10, 300 << 10, 500 << 10, 700 << 10):
            filler = fill(volume, leave=leave)
            reply = place.train(output=volume / "out", **settings)
            if reply.code != 0:
                reply.refused(1, [str(volume), "No space left"])
                left = list((volume / "out").rglob("*.slc*"))
                require(not left, f"{leave} bytes: {left} are left")
                refusals += 1
            else:
                sluice("state", volume / "out/state", "--verify").done()
            filler.unlink()
            subprocess.run(["rm", "-rf", volume / "out"], check=True)
        require(refusals >= 3, f"{refusals} refusals")
        place.train(output=volume / "out", **settings).done()


@contextlib.contextmanager
def on_a_volume(place, **settings):
    """A run whose state lies on a drive of its own, some steps old."""
    with small_volume(place, 32 << 20) as volume:
        run = place.start("--steps", 1_000_000, state_dir=volume / "state", **settings)
        run.wait_for(lambda: (committed_step(volume / "state") or 0) >= 3, "three steps")
        yield run, volume


def require_stopped_with(reply, words, volume):
    reply.refused(1, words)
    require_words(reply.err, [str(volume), "is committed"], "the error")


@test
def a_drive_that_fails_in_the_middle_ends_the_run_with_its_name(place):
    for settings in ({}, {"method": "host"}, {"density": 0.1, "error_feedback": "true"},
                     {"io_engine": "posix", "method": "host", "pipeline": "serial"}):
        with on_a_volume(place, **settings) as (run, volume):
            shut_down(volume)
            require_stopped_with(run.wait(), ["Input/output error"], volume)
        sluice("show", place / "out/run.db").done()
        subprocess.run(["rm", "-rf", place / "out"], check=True)


@test
def a_drive_that_turns_read_only_in_the_middle_leaves_the_last_commit_whole(place):
    whole = None
    for settings in ({}, {"method": "host"}, {"density": 0.1, "error_feedback": "true"}):
        with on_a_volume(place, **settings) as (run, volume):
            make_read_only(volume)
            reply = run.wait()
            require_stopped_with(reply, ["Read-only"], volume)
            state = sluice("state", volume / "state", "--verify", "--json").json()
            # A commit whose record was written and could not be made durable may be the next one.
            said = int(re.search(r"step (\d+) is committed", reply.err).group(1))
            require(state["step"] in (said, said + 1), f"{state['step']}: {reply.err}")
            require_words(sluice("state", volume / "state").done().out, ["every checksum holds"],
                          "state")
        sluice("show", place / "out/run.db").done()
        subprocess.run(["rm", "-rf", place / "out"], check=True)
        whole = whole or state
    require(whole is not None, "no run was looked at")


@test
def a_database_on_a_drive_that_fails_ends_the_recording_and_not_the_run(place):
    whole = place.train("--json", "--steps", 500, output="whole").json()
    for fault in (shut_down, make_read_only):
        with small_volume(place, 32 << 20) as volume:
            run = place.start("--json", "--steps", 500, "--db", volume / "run.db",
                              output=fault.__name__)
            run.wait_for(lambda: (committed_step(place / fault.__name__ / "state") or 0) >= 3,
                         "three steps")
            fault(volume)
            reply = run.wait()
            require_words(reply.err, ["recording stopped", str(volume)], "the warning")
            require_equal(reply.json()["state_digest"], whole["state_digest"], "digest")


if __name__ == "__main__":
    sys.exit(main())
