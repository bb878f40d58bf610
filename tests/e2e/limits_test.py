#!/usr/bin/env python3
"""Runs under small limits and beside other programs: few open files, no locked memory, names in any
alphabet, many readers at once, and a lock on the database of a live run. Each ends with what was
asked for, or with one message."""

import concurrent.futures
import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from sluice_run import (LIMIT_S, SLUICE, Reply, Skip, check_database, committed_step, database,
                        main, require, require_equal, require_words, sluice, step_losses, test)

STRANGE = "ein Öl & <b>\n層 \"q\" 'a' $HOME;"


def sluice_under(limits, *arguments, cwd, before=()):
    """The command with resource limits of its own."""
    def limited():
        for which, value in limits.items():
            resource.setrlimit(which, (value, value))
    done = subprocess.run([*before, SLUICE, *map(str, arguments)], cwd=cwd, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", check=False, preexec_fn=limited)
    return Reply(arguments, done.returncode, done.stdout, done.stderr)


@test
def few_open_files_are_enough_or_said_to_be_too_few(place):
    whole = place.train("--json", output="whole").json()
    ended = set()
    for count in (*range(4, 40, 2), 64):
        arguments = place.arguments("--json", output=f"n{count}")
        reply = sluice_under({resource.RLIMIT_NOFILE: count}, *arguments, cwd=place.path)
        ended.add(reply.code)
        if reply.code == 0:
            require_equal(reply.json()["state_digest"], whole["state_digest"], f"{count} files")
        elif reply.code == 127:  # the dynamic linker, before there is a program
            require_words(reply.err, ["error while loading shared libraries"], f"{count} files")
        else:
            reply.refused(reply.code, ["Too many open files"])
            require(reply.code in (1, 2), f"{count} files: exit code {reply.code}")
    require({0, 1} & ended == {0, 1}, f"with all those limits: exit codes {ended}")


@test
def no_locked_memory_is_no_hindrance_or_said_to_be_too_little(place):
    whole = place.train("--json", output="whole").json()
    before = ()
    if os.geteuid() == 0:  # root may lock as much as there is, but for this
        if shutil.which("setpriv") is None:
            raise Skip("root is not limited without setpriv")
        before = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")
    for io_engine in ("io_uring", "posix"):
        reply = sluice_under({resource.RLIMIT_MEMLOCK: 0},
                             *place.arguments("--json", io_engine=io_engine, output=io_engine),
                             cwd=place.path, before=before)
        if io_engine == "io_uring" and reply.code != 0:  # as the kernel counts its queues
            reply.refused(2, ["locked memory", "ulimit -l", "io_engine=posix"])
        else:
            require_equal(reply.json()["state_digest"], whole["state_digest"], io_engine)


@test
def names_may_be_in_any_alphabet(place):
    strange = place / STRANGE
    strange.mkdir()
    place.run_file.rename(strange / "r u\nn.toml")
    for name in ("nano.toml", "text.txt"):
        (place / name).rename(strange / name)
    run = strange / "r u\nn.toml"
    arguments = ("train", run, "--set", f"output={STRANGE}/out", "--set", f"name={STRANGE}")
    for more in (("--steps", 3), ("--steps", 12, "--resume")):
        said = sluice(*arguments, *more, cwd=place.path).done()
        require("\n層" not in said.err, f"a name ended a line: {said.err!r}")
    recorded = strange / "out/run.db"
    require_equal(len(step_losses(recorded)), 12, "steps")
    require_words(sluice("show", recorded).done().out, ["Öl", "層", "\\x0a"], "show")
    sluice("state", strange / "out/state", "--verify").done()
    for command in (("report", "-o", strange / "p\n.html"),
                    ("export", "--format", "csv", "-o", strange / "c\n層"),
                    ("export", "--format", "nsys", "-o", strange / "n\n.sqlite"),
                    ("tune",)):
        sluice(command[0], recorded, *command[1:], cwd=place.path).done()
    sluice("simulate", "--fit", "--like", recorded, cwd=place.path).done()
    page = (strange / "p\n.html").read_text()
    require("<b>" not in page.split("<style")[0], "the page's title holds the name as markup")


@test
def a_live_run_of_any_name_is_turned_and_stopped(place):
    running = place.start("--steps", 100_000, output=STRANGE)
    recorded = place / STRANGE / "run.db"
    running.wait_for(lambda: (committed_step(place / STRANGE / "state") or 0) >= 1, "first step")
    sluice("set", recorded, "buffers=3").done()
    sluice("knobs", recorded).done()
    sluice("stop", recorded).done()
    running.wait().done()


@test
def twenty_readers_at_once_see_whole_batches_and_harm_no_run(place):
    whole = place.train("--json", "--steps", 200, output="whole").json()
    running = place.start("--json", "--steps", 200)
    recorded = place / "out/run.db"
    running.wait_for(lambda: (committed_step(place / "out/state") or 0) >= 2, "two steps")

    def read(number):
        if number % 2 == 0:
            return sluice("show", recorded, "--json", "--no-predict")
        return sluice("report", recorded, "-o", place / f"{number}.html")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for reply in pool.map(read, range(20)):
            reply.done()
    report = running.wait().json()
    require_equal(report["state_digest"], whole["state_digest"], "digest")
    require_equal(report["losses"], whole["losses"], "losses")
    check_database(recorded)


def lock(recorded):
    """Another program's exclusive lock on the database of a live run."""
    other = sqlite3.connect(recorded, timeout=60, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return contextlib.closing(other)


@test
def a_lock_on_the_database_holds_up_the_recording_and_not_the_run(place):
    running = place.start("--json", "--steps", 100_000)
    recorded = place / "out/run.db"
    state = place / "out/state"
    running.wait_for(lambda: (committed_step(state) or 0) >= 2 and recorded.exists(), "two steps")
    with lock(recorded):
        held_from = time.monotonic()
        step = committed_step(state)
        # Longer than SQLite's usual patience, and until the run has gone on well beyond the lock.
        running.wait_for(lambda: time.monotonic() - held_from > 4
                         and committed_step(state) > step + 20, "steps during the lock")
    step = committed_step(state)
    running.wait_for(lambda: committed_step(state) > step + 20, "steps after the lock")
    running.signal(signal.SIGINT)
    reply = running.wait()
    report = reply.json()
    require("recording stopped" not in reply.err, reply.err)
    check_database(recorded)
    with database(recorded) as db:
        last = db.execute("SELECT max(id) FROM step").fetchone()[0]
        lost = dict(db.execute("SELECT name, value FROM stat WHERE severity != 'info'"))
        count = db.execute("SELECT count(*) FROM step").fetchone()[0]
    require_equal(last + 1, report["last_step"] if "last_step" in report else last + 1, "last step")
    require(count == last + 1 or sum(lost.values()) > 0,
            f"{last + 1 - count} steps have no row, and nothing says so")


@test
def a_lock_that_stays_ends_the_recording_and_not_the_run(place):
    running = place.start("--json", "--steps", 200)
    recorded = place / "out/run.db"
    running.wait_for(lambda: (committed_step(place / "out/state") or 0) >= 2, "two steps")
    with lock(recorded):
        reply = running.wait()  # the lock is held until after the run
    require(len(reply.json()["losses"]) == 200, "the run did not end")
    require_words(reply.err, ["recording stopped", "another program holds it"], "the warning")
    check_database(recorded)


if __name__ == "__main__":
    sys.exit(main())
