#!/usr/bin/env python3
"""What goes wrong outside the program: full and read-only file systems, damaged state files, a
second run, Ctrl-C. Each time: a named error, the last commit intact, a database that opens."""

import contextlib
import re
import shlex
import signal
import sqlite3
import sys

from sluice_run import (check_database, committed_step, main, require, require_equal,
                        require_words, sluice, step_losses, test)
from state_files import StateFiles, cut, flipped
from volume import fill, mounted, small_volume

# One step takes seconds on drives this slow: long enough to be interrupted in the middle.
SLOW = {"clock": "emulated", "time_scale": 20_000, "subgroup_elements": 20_000, "devices": 1}


def require_commit(place, step, digest=None):
    state = place.state("--json").json()
    require_equal(state["step"], step, "committed step")
    if digest is not None:
        require_equal(state["digest"], digest, "digest of the committed state")


# Drives -------------------------------------------------------------------------------------------


@test
def a_drive_too_small_for_the_state_is_known_before_the_first_step(place):
    with small_volume(place, 16 << 20) as volume:
        filler = fill(volume, leave=400 << 10)
        state_dir = volume / "state"
        reply = place.train(state_dir=state_dir)
        reply.refused(1, [str(volume), "No space left", "free"])
        left = [path for path in state_dir.rglob("*.slc*")]
        require(not left, f"files were left behind: {left}")
        filler.unlink()
        place.train(state_dir=state_dir).done()


@test
def a_database_on_a_full_drive_ends_and_opens_and_the_training_goes_on(place):
    whole = place.train("--json", "--steps", 400, output="whole").json()
    with small_volume(place, 16 << 20) as volume:
        filler = fill(volume, leave=2400 << 10)
        reply = place.train("--json", "--steps", 400, "--db", volume / "run.db")
        require_words(reply.err, ["recording stopped", "full"], "the warning")
        require_equal(reply.json()["state_digest"], whole["state_digest"], "digest")
        check_database(volume / "run.db")
        losses = step_losses(volume / "run.db")
        require(0 < len(losses) < 400, f"{len(losses)} steps fit")
        for step, loss in losses.items():
            require_equal(loss, whole["losses"][step], f"recorded loss of step {step + 1}")
        shown = sluice("show", volume / "run.db").done()
        require_words(shown.out, ["LOST", "recording_stopped"], "sluice show")
        filler.unlink()


def is_recording(database):
    """Not before it is whole: where that does not fit, the run is refused."""
    with contextlib.suppress(sqlite3.Error):
        return bool(step_losses(database))
    return False


@test
def a_drive_that_others_fill_to_the_last_byte_ends_the_recording_and_not_the_training(place):
    whole = place.train("--json", "--steps", 400, output="whole").json()
    with small_volume(place, 32 << 20) as volume:
        run = place.start("--json", "--steps", 400, "--db", volume / "run.db")
        run.wait_for(lambda: is_recording(volume / "run.db"), "recording")
        for size in (1 << 20, 4096, 512):  # down to what the file system rounds off
            with open(volume / "filler", "ab", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
        reply = run.wait()
        require_words(reply.err, ["recording stopped", "full"], "the warning")
        require_equal(reply.json()["state_digest"], whole["state_digest"], "digest")
        require_equal(reply.json()["losses"], whole["losses"], "losses")
        (volume / "filler").unlink()  # without space another reader's SQLite may die of SIGBUS
        check_database(volume / "run.db")
        require_words(sluice("show", volume / "run.db").done().out, ["LOST", "recording_stopped"],
                      "sluice show")


@test
def a_record_that_a_full_drive_has_no_room_to_index_is_refused_until_it_has(place):
    """The index of the log is a mapped file: without blocks for it an access is a SIGBUS."""
    with small_volume(place, 16 << 20) as volume:
        run = place.start("--steps", 100_000, "--db", volume / "run.db")
        run.wait_for(lambda: is_recording(volume / "run.db"), "recording")
        run.signal(signal.SIGKILL)
        run.wait()
        # Some of the blocks of an index, and not all.
        for leave in range(4 << 10, 32 << 10, 4 << 10):
            (volume / "run.db-shm").unlink(missing_ok=True)
            filler = fill(volume, leave)
            sluice("show", volume / "run.db").refused(1, ["run.db", "free space"])
            filler.unlink()
        shown = sluice("show", volume / "run.db").done()
        require_words(shown.out, ["ended before its last: ", "Nothing was lost while recording"],
                      "sluice show")


@test
def a_read_only_folder_is_refused_for_each_thing_that_is_written(place):
    with mounted(place / "read-only", "-t", "tmpfs", "-o", "ro", "none") as folder:
        for key in ("output", "state_dir", "db"):
            target = folder / ("run.db" if key == "db" else "new")
            reply = place.train(**{key: target, **({} if key == "output" else {"output": key})})
            reply.refused(1, [str(folder), "Read-only"])
            require(not (place / key / "state/commit.slc").exists() or key == "db",
                    f"a state was made although {key} is read-only")
    place.train(output="db").done()


@test
def a_state_on_a_read_only_drive_can_be_looked_at_and_not_gone_on_with(place):
    digest = place.train("--json").json()["state_digest"]
    with mounted(place / "view", "-o", "bind,ro", place / "out"):
        require_equal(place.digest("view/state"), digest, "digest from a read-only drive")
        reply = place.train("--resume", "--steps", 8, state_dir="view/state")
        reply.refused(1, ["view/state", "Read-only"])
    require_commit(place, 4, digest)


# Damage -------------------------------------------------------------------------------------------


@test
def a_flipped_bit_in_an_array_is_named_and_nothing_is_committed_on_top(place):
    whole = place.train("--json", "--steps", 6, output="whole").json()
    place.train("--steps", 3).done()
    digest = place.digest()
    files = StateFiles(place / "out/state")
    for variable, name in enumerate(("master_weights", "exp_avg", "exp_avg_sq")):
        subgroup = (2 + 3 * variable) % files.subgroup_count
        path, offset = files.place(subgroup, variable)
        words = [f"dev{path.parent.name[3:]}/state.slc", str(offset), f"subgroup {subgroup}", name]
        with flipped(path, offset + 1234):
            place.state("--verify").refused(1, [words[0], "1 of 21 arrays"])
            require_words(place.state("--verify").err, words, "state --verify")
            place.train("--resume", "--steps", 6).refused(1, words)
            require_equal(committed_step(place / "out/state"), 3, f"commit over damaged {name}")
            check_database(place / "out/run.db")
        require_commit(place, 3, digest)
    again = place.train("--json", "--resume", "--steps", 6).json()
    require_equal(again["state_digest"], whole["state_digest"], "digest once the bits are right")


@test
def every_damaged_array_is_named(place):
    place.train().done()
    files = StateFiles(place / "out/state")
    with contextlib.ExitStack() as damages:
        for subgroup, variable in ((0, 0), (3, 1), (6, 2)):
            path, offset = files.place(subgroup, variable)
            damages.enter_context(flipped(path, offset))
        reply = place.state("--verify").refused(1, ["3 of 21 arrays"])
        require_words(reply.err, ["subgroup 0", "subgroup 3", "subgroup 6"], "state --verify")


@test
def damaged_and_cut_files_are_refused_with_file_and_offset(place):
    place.train("--steps", 3).done()
    digest = place.digest()
    state = place / "out/state"
    device_file = state / "dev1/state.slc"
    size = device_file.stat().st_size
    damages = {
        "header of a device": (flipped(device_file, 40), [str(device_file.name), "offset 0"]),
        "header of the log": (flipped(state / "commit.slc", 600), ["commit.slc", "offset 0"]),
        "a device file cut": (cut(device_file, size // 2), ["dev1/state.slc", f"{size // 2}"]),
        "a device file without header": (cut(device_file, 100), ["dev1/state.slc", "offset 100"]),
        "the log cut": (cut(state / "commit.slc", 8192), ["commit.slc", "8192"]),
    }
    for what, (damage, words) in damages.items():
        with damage:
            for reply in (place.state(), place.train("--resume", "--steps", 6)):
                require(reply.code == 1, f"{what}: exit code {reply.code}")
                reply.refused(1, words)
    device_file.rename(place / "kept")
    place.train("--resume", "--steps", 6).refused(2, ["dev1/state.slc", "missing", "mounted"])
    (place / "kept").rename(device_file)
    require_commit(place, 3, digest)


@test
def one_damaged_commit_record_leaves_the_commit_before_it(place):
    place.train("--steps", 3).done()
    files = StateFiles(place / "out/state")
    newest = files.log.read_bytes().index(files.record[:24])
    with flipped(files.log, newest + 50):
        # That commit's slots are still what step 2 left: step 3 wrote into the others.
        require_commit(place, 2)


# A second run -------------------------------------------------------------------------------------


@test
def a_second_run_on_a_state_is_refused_and_the_first_goes_on(place):
    first = place.start("--steps", 100_000)
    first.wait_for(lambda: committed_step(place / "out/state") is not None, "first commit")
    pid = str(first.process.pid)
    place.train("--resume").refused(1, ["out/state", pid])
    place.train().refused(1, ["out/state", pid])
    first.signal(signal.SIGINT)
    first.wait().done()
    steps = place.state("--json").json()["step"]
    check_database(place / "out/run.db")
    require_equal(len(step_losses(place / "out/run.db")), steps,
                  "steps in the first run's database")


@test
def a_state_can_be_looked_at_while_its_run_goes_on(place):
    run = place.start("--steps", 100_000)
    run.wait_for(lambda: (committed_step(place / "out/state") or 0) >= 2, "two steps")
    digests = []
    for _ in range(5):
        state = place.state("--json").json()
        require(state["step"] >= 2, f"step {state['step']}")
        digests.append(state["digest"])
        sluice("show", place / "out/run.db").done()
    run.signal(signal.SIGINT)
    run.wait().done()
    # Read whole between two commits, or not at all; what was read is never half of each.
    require(all(digest is None or re.fullmatch("[0-9a-f]{32}", digest) for digest in digests),
            f"digests of a live state: {digests}")
    require(place.digest() is not None, "no digest after the run")


# Ctrl-C -------------------------------------------------------------------------------------------


@test
def ctrl_c_finishes_the_step_and_the_command_it_prints_goes_on(place):
    settings = {"devices": 3, "method": "host", "output": "a folder", "subgroup_elements": 3000}
    whole = place.train("--json", "--steps", 400, **{**settings, "output": "whole"}).json()
    run = place.start("--steps", 400, **settings)
    run.wait_for(lambda: (committed_step(place / "a folder/state") or 0) >= 3, "third step")
    run.signal(signal.SIGINT)
    reply = run.wait().done()
    require_words(reply.err, ["finishing this step"], "stderr")
    require_words(reply.out, ["Stopped", "--resume"], "stdout")
    step = place.state("--json", state_dir="a folder/state").json()["step"]
    require(3 <= step < 400, f"stopped after step {step}")
    command = re.search(r"^Go on: +sluice (.*)$", reply.out.replace(" \\\n", ""), re.MULTILINE)
    require(command is not None, f"no command to go on with in {reply.out!r}")
    again = sluice(*shlex.split(command.group(1)), "--json", cwd=place.path).json()
    require_equal(again["first_step"], step, "first step of the resumed run")
    require_equal(again["losses"], whole["losses"][step:], "losses after the resume")
    require_equal(again["state_digest"], whole["state_digest"], "digest after the resume")
    losses = step_losses(place / "a folder/run.db")
    require_equal(list(losses.values()), whole["losses"], "losses in the database")


@test
def ctrl_c_with_json_still_prints_one_object(place):
    run = place.start("--json", "--steps", 100_000)
    run.wait_for(lambda: (committed_step(place / "out/state") or 0) >= 1, "first step")
    run.signal(signal.SIGINT)
    report = run.wait().json()
    require_equal(report["stopped"], True, "stopped")
    require_equal(len(report["losses"]), report["steps"], "losses of all steps")
    require_words(report["resume"], ["--resume"], "resume")
    require_equal(place.digest(), report["state_digest"], "digest")


@test
def a_second_ctrl_c_leaves_at_once_and_the_state_is_good(place):
    fast = {**SLOW, "time_scale": 0.01}
    whole = place.train("--json", "--steps", 5, output="whole", **fast).json()
    place.train("--steps", 2, **fast).done()
    run = place.start("--resume", "--steps", 5, **SLOW)
    # Its gradients are on the drive: it is inside the third step, which takes seconds.
    run.wait_for(lambda: (place / "out/run.db-wal").exists(), "recording of the third step")
    run.signal(signal.SIGINT)
    run.wait_for(lambda: "finishing this step" in run.heard(), "answer to the first Ctrl-C")
    run.signal(signal.SIGINT)
    reply = run.wait()
    require_equal(reply.code, 130, "exit code")
    require_words(reply.err, ["left at once", "--resume"], "stderr")
    require_commit(place, 2)
    check_database(place / "out/run.db")
    again = place.train("--json", "--resume", "--steps", 5, **fast).json()
    require_equal(again["state_digest"], whole["state_digest"], "digest after the resume")


if __name__ == "__main__":
    sys.exit(main())
