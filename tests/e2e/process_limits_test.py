#!/usr/bin/env python3
"""What a container, a batch system or a shell lets a process have bounds what "all there is" means:
in plans, in records and in sentences, also where memory is refused in the end."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

from sluice_run import (LIMIT_S, SLUICE, Reply, Skip, committed_step, database, main, require,
                        require_equal, require_words, sluice, test)

SMALL_BYTES = 420_000_000 // 4096 * 4096
TOO_SMALL_BYTES = 100_000_000 // 4096 * 4096


def run_with(arguments, cwd, before=lambda: None):
    done = subprocess.run([SLUICE, *map(str, arguments)], cwd=cwd, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", check=False, preexec_fn=before)
    return Reply(arguments, done.returncode, done.stdout, done.stderr)


def mounted(controller):
    """(mount point, version) of the tree that has the controller."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        lines = [line.split() for line in mounts]
    for _, point, kind, options, *_ in lines:
        if kind == "cgroup" and controller in options.split(","):
            return pathlib.Path(point), 1
        if kind == "cgroup2":
            listed = pathlib.Path(point, "cgroup.subtree_control").read_text(encoding="ascii")
            if controller in listed.split():
                return pathlib.Path(point), 2
    raise Skip(f"no cgroup tree hands out {controller} here")


@contextlib.contextmanager
def group(controller, values):
    """A control group with these limits, a file's text each by version; its folder, and what puts a
    process into it."""
    point, version = mounted(controller)
    folder = point / f"sluice-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise Skip(f"no group can be made in {point}: {error.strerror}") from None
    try:
        for name, text in values[version].items():
            (folder / name).write_text(text)
        yield folder, lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        folder.rmdir()


def memory_group(size_bytes):
    return group("memory", {1: {"memory.limit_in_bytes": str(size_bytes)},
                            2: {"memory.max": str(size_bytes)}})


def meta(path):
    with database(path) as db:
        return dict(db.execute("SELECT key, value FROM meta"))


@test
def the_memory_of_a_control_group_caps_plan_cache_and_record(place):
    with memory_group(SMALL_BYTES) as (folder, enter):
        reply = run_with(place.arguments("--steps", 2, method="host", state_cache="auto"),
                         place.path, enter).done()
        plan = " ".join(reply.out.split())
        require(re.search(rf"of \d+ MB \(cgroup memory\.\w+ of {re.escape(str(folder))}\)", plan),
                f"the plan does not say the group: {reply.out}")
        facts = meta(place / "out/run.db")
        require(0 < int(facts["host_memory_cap"]) <= SMALL_BYTES, facts["host_memory_cap"])
        require_words(facts["host_memory_limit"], ["MB (cgroup memory.", str(folder)], "the record")
        said = run_with(["doctor", place.path], place.path, enter).done()
        require_words("".join(said.out.split()), ["(cgroupmemory.", str(folder)], "doctor")
        planned = run_with(["tune", "--placement", place.run_file, "--json"], place.path,
                           enter).json()
        require(planned["memory"]["host"]["cap_bytes"] <= SMALL_BYTES, f"{planned['memory']}")
        require_words(planned["memory"]["host"]["limit"], [str(folder)], "sluice tune --placement")


@test
def a_plan_that_a_control_group_has_no_room_for_is_refused_with_the_limit(place):
    with memory_group(TOO_SMALL_BYTES) as (folder, enter):
        for settings in ({}, {"host_memory": "4GiB"}):
            reply = run_with(place.arguments(**settings), place.path, enter)
            reply.refused(2, [f"of {folder})", "the smallest limit that would do is"])
    more = int(reply.err.split("limit that would do is ")[1].split("MiB more")[0]) << 20
    with memory_group(TOO_SMALL_BYTES + more + (8 << 20)) as (folder, enter):  # it varies a little
        run_with(place.arguments("--steps", 1), place.path, enter).done()


@test
def the_processors_of_a_control_group_are_those_that_compute(place):
    if os.cpu_count() < 2:
        raise Skip("there is one processor, which is the least")
    place.write_run(threads=0)
    with group("cpu", {1: {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "90000"},
                       2: {"cpu.max": "90000 100000"}}) as (folder, enter):
        run_with(place.arguments("--steps", 1), place.path, enter).done()
    facts = meta(place / "out/run.db")
    require_equal(facts["processors"], "1", "processors")
    require_words(facts["processor_limit"], ["1 (cgroup cpu.", str(folder)], "the record")
    require_words(facts["machine"], [f"1 of {os.cpu_count()} processors"], "machine")


@test
def a_run_asked_for_more_steps_than_memory_has_losses_for_begins(place):
    limit = 6_000_000_000  # less than 8 bytes for each of the steps

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with subprocess.Popen([SLUICE, *map(str, place.arguments("--steps", 1_000_000_000))],
                          cwd=place.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, preexec_fn=limited) as run:
        state = place / "out/state"
        while run.poll() is None and (committed_step(state) or 0) < 1:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(0.01)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=LIMIT_S)
    require_equal(run.returncode, 0, f"exit code ({said})")
    require((committed_step(state) or 0) >= 1, "no step was committed")


# What libraries say that end the process themselves.
LAST_WORDS = ("thread-local data: ABORT",          # glibc, elf/dl-tls.c, exit code 127
              "libgomp: Thread creation failed")   # after our own check that threads can begin


def is_ended_by_a_library(reply):
    return reply.code == -signal.SIGSEGV or any(words in reply.err for words in LAST_WORDS)


def under_limit(place, name, limited):
    """One start. At the edge about one start in fifty ends where no program can answer: within
    libtorch's attention oneDNN uses memory that it was refused (torch 2.13, ideep::matmul_forward)
    and ends by that signal; glibc and libgomp say a sentence of their own. A fault of ours would do
    so each time, and at more than two sizes."""
    for _ in range(4):
        shutil.rmtree(place / name, ignore_errors=True)
        reply = run_with(place.arguments("--json", output=name, threads=2, host_memory=0),
                         place.path, limited)
        if not is_ended_by_a_library(reply):
            break
    return reply


@test
def refused_memory_and_threads_end_in_one_sentence(place):
    whole = place.train("--json", output="whole", threads=2).json()
    ended = {}
    ended_by_libraries = []
    for megabytes in (*range(400, 720, 20), 800, 6000):
        def limited(size=megabytes * 1_000_000):
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        reply = under_limit(place, f"m{megabytes}", limited)
        begins = run_with(["--version"], place.path, limited).code == 0
        if not begins:  # the dynamic linker and libraries that it starts, before there is a program
            continue
        if is_ended_by_a_library(reply):
            ended_by_libraries.append(megabytes)
            continue
        ended[megabytes] = reply.code
        if reply.code == 0:
            require_equal(reply.json()["state_digest"], whole["state_digest"], f"{megabytes} MB")
        else:
            require(reply.code in (1, 2), f"{megabytes} MB: {reply.code}, {reply.err}")
            reply.refused(reply.code, ["memory"])
            require("terminate called" not in reply.err, reply.err)
        if (place / f"m{megabytes}/state/commit.slc").exists():
            sluice("state", place / f"m{megabytes}/state", "--verify").done()
    require(0 in ended.values() and len(set(ended.values())) > 1, f"exit codes {ended}")
    require(len(ended_by_libraries) <= 2, f"libraries ended it at {ended_by_libraries} MB")


@test
def threads_that_are_refused_are_named_whoever_wants_them(place):
    limit = 1_000_000_000  # 8 MB of address space for the stack of each

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for settings in ({"threads": 300, "worker_threads": 1}, {"threads": 1, "worker_threads": 300}):
        reply = run_with(place.arguments(**settings), place.path, limited)
        reply.refused(1, ["a thread was refused", "RLIMIT_AS, ulimit -v", "worker_threads"])


if __name__ == "__main__":
    sys.exit(main())
