#!/usr/bin/env python3
"""Processor samples of a run, end to end: where its threads were, and how long each ran, waited and
was preempted. No check depends on how fast the machine is: a run goes on until it has samples."""

import contextlib
import ctypes
import html
import pathlib
import platform
import signal
import sqlite3
import struct
import subprocess
import sys

from browser import in_browser
from mcp_client import client
from sluice_run import (DEEP_MODEL, LIMIT_S, SLUICE, Reply, Skip, database, main, require,
                        require_equal, require_words, sluice, test)

TABLES = {"sampled_thread", "sampled_function", "call", "call_sample", "processor_time"}
SYSTEM_CALLS = {"x86_64": (298, 0xC000003E), "aarch64": (241, 0xC00000B7)}  # perf_event_open


def tables(db):
    return {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def sampled(place, **settings):
    """A run with samples; a machine that refuses them skips the test, with what it says."""
    (place / "nano.toml").write_text(DEEP_MODEL)
    reply = place.train(record_samples=997, steps=12, sequence=128, **settings)
    if reply.code != 0 and "perf_event_open" in reply.err:
        raise Skip(reply.err.strip())
    reply.done()
    return place / "out/run.db"


@test
def samples_lie_in_the_run_and_name_functions(place):
    path = sampled(place)
    with database(path) as db:
        require(TABLES <= tables(db), f"tables {TABLES - tables(db)} are missing")
        begin, end = db.execute("SELECT min(ts), max(ts + dur) FROM step").fetchone()
        count, first, last = db.execute(
            "SELECT count(*), min(ts), max(ts) FROM call_sample").fetchone()
        require(count > 0, "there are no samples")
        inside, = db.execute("SELECT count(*) FROM call_sample WHERE ts BETWEEN ? AND ?",
                             (begin, end)).fetchone()
        require(inside > 0, f"no sample lies in the steps: {begin} to {end}, {first} to {last}")
        orphans, = db.execute(
            "SELECT count(*) FROM call_sample WHERE call_id NOT IN (SELECT id FROM call) "
            "OR thread_id NOT IN (SELECT id FROM sampled_thread)").fetchone()
        require_equal(orphans, 0, "samples without a call or thread")
        libraries = {name for (name,) in db.execute("SELECT library FROM sampled_function")}
        require(any(name.startswith("libtorch_cpu.so") for name in libraries),
                f"no function of libtorch was seen, but of {sorted(libraries)}")
        names = [name for (name,) in db.execute("SELECT name FROM sampled_function")]
        require(any("at::" in name or "mkl" in name or "dnnl" in name for name in names),
                f"no function of libtorch has its name: {names[:20]}")
        threads = {name for (name,) in db.execute("SELECT name FROM sampled_thread")}
        require({"compute", "host", "collector", "sampler"} <= threads, f"threads: {threads}")


@test
def states_of_threads_add_up_to_their_time(place):
    path = sampled(place)
    with database(path) as db:
        wrong, = db.execute("SELECT count(*) FROM processor_time "
                            "WHERE running + preempted + waiting <> dur OR dur <= 0").fetchone()
        require_equal(wrong, 0, "rows whose states are not all of their time")
        # A thread's rows follow each other without a gap or an overlap.
        gaps, = db.execute(
            "SELECT count(*) FROM (SELECT ts, lag(ts + dur) OVER "
            "(PARTITION BY thread_id ORDER BY ts) AS before FROM processor_time) "
            "WHERE before IS NOT NULL AND before <> ts").fetchone()
        require_equal(gaps, 0, "gaps in threads' times")
        running, = db.execute("SELECT sum(running) FROM processor_time JOIN sampled_thread "
                              "ON id = thread_id WHERE name = 'compute'").fetchone()
        require(running > 0, "what computes did not run")


@test
def show_says_what_ran_and_how_sure_that_is(place):
    path = sampled(place)
    said = sluice("show", path, "--samples", "--json", "--no-predict").json()["samples"]
    with database(path) as db:
        count, = db.execute("SELECT count(*) FROM call_sample").fetchone()
    require_equal(said["sample_count"], count, "samples")
    require(abs(sum(said["shares"].values()) - 1) < 1e-9, f"shares: {said['shares']}")
    for thread in said["threads"]:
        require(abs(sum(thread["shares"].values()) - 1) < 1e-9, f"shares: {thread}")
    for function in said["by_self"]:
        require(0 < function["uncertainty"] < 1, f"uncertainty: {function}")
    stages = {stage["name"]: stage for stage in said["stages"]}
    require("backward" in stages, f"no samples in backward, but in {sorted(stages)}")
    require_equal(stages["backward"]["threads"], "compute", "who computes backward")

    of_steps = sluice("show", path, "--samples", "--step", "3..12", "--json",
                      "--no-predict").json()["samples"]
    require_equal((of_steps["first_step"], of_steps["last_step"]), (3, 12), "steps")
    require(0 < of_steps["sample_count"] <= count, f"samples of steps: {of_steps['sample_count']}")
    text = sluice("show", path, "--samples").done().out
    for words in ("Processor samples of the whole record", "compute", "While backward"):
        require(words in text, f"show --samples does not say {words!r}: {text}")
    all_of_it = sluice("show", path, "--no-predict").done().out
    require("--samples shows" in all_of_it, "show does not point to its samples")


@test
def a_program_asks_for_samples(place):
    path = sampled(place)
    place.train(output="unsampled").done()
    with client("--runs", place.path) as asks:
        said = asks.found("samples", run="out/run.db", max_bytes=262144)
        with database(path) as db:
            count, = db.execute("SELECT count(*) FROM call_sample").fetchone()
        require_equal(said["sample_count"], count, "samples")
        require(said["by_self"] and said["threads"] and said["stages"], f"lists: {said}")
        short = asks.found("samples", run="out/run.db", step=3, last=12)
        require_equal((short["first_step"], short["last_step"]), (3, 12), "steps")
        asks.refused("samples", "`step` has to name the first one", run="out/run.db", last=3)
        asks.refused("samples", "the run has steps 1 to 12", run="out/run.db", step=40)
        none = asks.call("samples", run="unsampled/run.db")
        require_equal(none["outcome"], "could not look", "outcome without samples")


@test
def a_copy_that_follows_says_the_same(place):
    path, copy = sampled(place), place / "copy.db"
    sluice("follow", "-o", copy, "--", SLUICE, "relay", path).done()
    with database(path) as run, database(copy) as copied:
        for table in sorted(TABLES):
            rows = [sorted(map(repr, db.execute(f"SELECT * FROM {table}"))) for db in (run, copied)]
            require(rows[0] == rows[1], f"table {table} has other rows in the copy")
    said = [sluice("show", db, "--samples", "--json", "--no-predict").json()["samples"]
            for db in (path, copy)]
    require(said[0]["sample_count"] > 0, "there are no samples")
    require_equal(said[1], said[0], "samples of the copy")


@test
def a_page_has_threads_and_functions(place):
    path = sampled(place)
    said = sluice("show", path, "--samples", "--json", "--no-predict").json()["samples"]
    sluice("report", path, "-o", place / "page.html").done()
    shown = html.unescape(in_browser(place, "page.html", ""))
    thread, function, stage = said["threads"][0], said["by_self"][0], said["stages"][0]
    require_words(shown, [f">{thread['name']} {thread['tid']}<", f">{function['short_name']}<",
                          f"While {stage['name']} was under way: "], "the page")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE call")
        db.commit()
    sluice("report", path, "-o", place / "damaged.html").done()
    require_words(html.unescape(in_browser(place, "damaged.html", "")),
                  ["has some of the tables of processor samples"], "the page of damaged samples")


# Its descriptors are closed, it forks, and each process works for a part of a second of processor
# time, however long that takes.
PROGRAM = """
import contextlib, hashlib, os, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 1000)
def events():
    names = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            names.append(os.readlink("/proc/self/fd/" + number))
    return sum("perf_event" in name for name in names)
file = os.open("file", os.O_RDONLY)
os.read(file, 100)
os.closerange(3, 1 << 16)
assert events() > 0
work(0.2)
file = os.open("file", os.O_RDONLY)
if os.fork() == 0:
    if events() > 0:
        os._exit(7)  # they are the parent's
    os.read(file, 1)
    work(0.3)
    os._exit(0)
for i in range(100):
    os.pread(file, 10, i)
work(0.3)
print(os.wait()[1])
"""


def sampled_functions(path):
    """Samples of the thread with the most, and the libraries that they lie in."""
    with database(path) as db:
        require(TABLES <= tables(db), f"{path}: tables {TABLES - tables(db)} are missing")
        rows = db.execute(
            "SELECT count(*), group_concat(DISTINCT library) FROM call_sample "
            "JOIN call ON call.id = call_id JOIN sampled_function f ON f.id = function_id "
            "GROUP BY thread_id ORDER BY 1 DESC").fetchall()
        return rows[0] if rows else (0, "")


def functions_of_threads(path):
    with database(path) as db:
        return set(db.execute(
            "SELECT tid, f.name, count(*) FROM call_sample JOIN call ON call.id = call_id "
            "JOIN sampled_function f ON f.id = function_id "
            "JOIN sampled_thread t ON t.id = thread_id GROUP BY 1, 2").fetchall())


@test
def a_program_of_anothers_is_sampled_with_what_it_forks(place):
    (place / "file").write_bytes(bytes(1000))
    done = subprocess.run(
        [SLUICE, "record", "--samples", "997", "--", pathlib.Path(sys.executable).resolve(), "-S",
         "-c", PROGRAM], cwd=place.path, capture_output=True, text=True, check=False,
        timeout=LIMIT_S)
    if "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())
    require_equal((done.returncode, done.stdout), (0, "0\n"), f"end and output: {done.stderr}")
    child, = (place / "run.db.processes").glob("*.db")
    for path in (place / "run.db", child):
        count, libraries = sampled_functions(path)
        require(count >= 100 and libraries, f"{path}: {count} samples, in {libraries}")
    sluice("merge", place / "run.db", "-o", place / "all.db").done()
    require_equal(functions_of_threads(place / "all.db"),
                  functions_of_threads(place / "run.db") | functions_of_threads(child),
                  "samples of the merged record")
    said = sluice("show", place / "run.db", "--samples", "--no-predict").done().out
    require_words(said, ["Functions by their own time", "sampler", "collector"], "show")
    require_words(said, ["Nothing was lost while recording."], "show")


@test
def a_run_is_not_sampled_unless_it_asks(place):
    place.train().done()
    with database(place / "out/run.db") as db:
        require(not TABLES & tables(db), f"tables {TABLES & tables(db)} are there")
    said = sluice("show", place / "out/run.db", "--samples", "--json",
                  "--no-predict").json()["samples"]
    require_equal(said["sample_count"], 0, "samples")
    require("not sampled" in said["why_none"], f"why: {said['why_none']}")


@test
def samples_change_no_number_and_go_on_after_a_resume(place):
    path = sampled(place)
    digest = place.digest()
    with database(path) as db:
        before, = db.execute("SELECT max(id) FROM sampled_thread").fetchone()
    place.train("--resume", record_samples=997, steps=16, sequence=128).done()
    with database(path) as db:
        after, = db.execute("SELECT max(id) FROM sampled_thread").fetchone()
        orphans, = db.execute("SELECT count(*) FROM call_sample "
                              "WHERE call_id NOT IN (SELECT id FROM call)").fetchone()
    require(after > before, f"threads {before} and {after}: the second run has none")
    require_equal(orphans, 0, "samples without a call")
    place.write_run(output="unsampled")
    place.train(steps=12, sequence=128).done()
    require_equal(place.digest("unsampled/state"), digest, "digest of a run without samples")


@test
def samples_need_a_database_and_a_sensible_number(place):
    place.train(record_samples=99, record="off").refused(
        2, ["record_samples = 99 needs a database"])
    place.train(record_samples=1001).refused(2, ["record_samples"])
    place.train(record_sample=99).refused(2, ["record_samples"])  # the nearest key


def _refuse_the_call():
    """perf_event_open fails with EPERM from here on, as in a container (seccomp(2))."""
    number, architecture = SYSTEM_CALLS[platform.machine()]
    program = b"".join(struct.pack("=HBBI", *line) for line in (
        (0x20, 0, 0, 4),                  # the architecture
        (0x15, 1, 0, architecture),
        (0x06, 0, 0, 0x7FFF0000),         # another: allowed
        (0x20, 0, 0, 0),                  # the call
        (0x15, 0, 1, number),
        (0x06, 0, 0, 0x00050000 | 1),     # EPERM
        (0x06, 0, 0, 0x7FFF0000)))
    library = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]

    described = Program(len(program) // 8, ctypes.cast(text, ctypes.c_void_p))
    if library.prctl(38, 1, 0, 0, 0) != 0 or library.prctl(22, 2, ctypes.byref(described)) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    library.prctl(1, signal.SIGKILL)


@test
def a_machine_that_refuses_samples_refuses_the_run_and_says_what_to_do(place):
    if platform.machine() not in SYSTEM_CALLS:
        raise Skip(f"the number of perf_event_open on {platform.machine()} is not known here")
    for arguments, way_out, written in (
            (place.arguments(record_samples=99), "record_samples=0", "out/run.db"),
            (["record", "--samples", "99", "--", "touch", "touched"], "without --samples",
             "touched")):
        try:
            done = subprocess.run([SLUICE, *map(str, arguments)], cwd=place.path, timeout=LIMIT_S,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False, preexec_fn=_refuse_the_call)
        except subprocess.SubprocessError as error:
            raise Skip(f"this machine installs no seccomp filter: {error}") from None
        reply = Reply(arguments, done.returncode, done.stdout, done.stderr)
        require(reply.code not in (0, None), f"it went on without samples: {reply.out}")
        for words in ("perf_event_open", "Operation not permitted", "perf_event_paranoid", way_out):
            require(words in " ".join(reply.err.split()), f"no {words!r} in: {reply.err}")
        require(not (place / written).exists(), f"there is {written}")


if __name__ == "__main__":
    sys.exit(main())
