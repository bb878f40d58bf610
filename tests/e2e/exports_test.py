#!/usr/bin/env python3
"""`sluice export` as programs of others read it: nsys-ai and Perfetto's trace processor compute
from our files the figures that `sluice show` gives. What is cut to some steps holds those, whole.

Both programs are in the environment that scripts/setup makes beside the build's own, or in the one
that SLUICE_READERS names. Perfetto's package fetches its trace processor when it is first used;
SLUICE_TRACE_PROCESSOR names one that is here already."""

import collections
import concurrent.futures
import contextlib
import csv
import decimal
import gzip
import json
import os
import re
import sqlite3
import subprocess

from readers import NSYS_AI, PERFETTO, READER_LIMIT_S, reader
from sluice_run import (SAMPLES, Skip, database, main, require, require_equal, require_words,
                        sluice, test)

FETCH_LIMIT_S = 120
SCHEMA = "3.25.0"
MS = 1_000_000


def simulated_run(place, name, pipeline):
    return place.simulate(SAMPLES / "models/gpt2-1.7b.toml", name=name, devices=4,
                          pipeline=pipeline)


def exported(run, form, name, *flags):
    path = run.parent / name
    sluice("export", run, "--format", form, "-o", path, *flags).done()
    return path


def shown(run):
    """What `sluice show` says of each stage, and of each step."""
    said = sluice("show", run, "--json", "--no-predict", "--last", 1000).json()
    return {stage["name"]: stage for stage in said["stages"]}, said["steps"]


def names_of(run, view):
    with database(run) as db:
        return {row[0] for row in db.execute(f"SELECT DISTINCT name FROM {view}")}


# nsys-ai ------------------------------------------------------------------------------------------


_answers = {}  # by command, of those that were asked together


def run_nsys_ai(words):
    """It looks for an extension of DuckDB's outside, and says where it cannot have it and goes on
    with SQLite; nothing of what it prints depends on that."""
    program = reader("nsys-ai", NSYS_AI).parent / "nsys-ai"
    env = dict(os.environ, NSYS_AI_CACHE_MODE="direct")  # nothing is written beside the export
    return subprocess.run([program, *map(str, words)], env=env, capture_output=True, text=True,
                          timeout=READER_LIMIT_S, check=False)


def ask_together(*commands):
    """Side by side, since without a network each waits half a minute for the extension."""
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        _answers.update(zip(commands, pool.map(run_nsys_ai, commands)))


def nsys_ai(*words, codes=(0,)):
    """What it prints."""
    done = _answers.pop(words, None) or run_nsys_ai(words)
    require(done.returncode in codes,
            f"nsys-ai {words[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    failed = re.findall(r"^Analyzer .* failed: .*$", done.stderr, re.MULTILINE)
    require(not failed, f"nsys-ai {words[0]}: {failed}")
    return done


def check_doctor(path, device_names):
    said = json.loads(nsys_ai("doctor", path, "--format", "json").stdout)
    health = {check["name"]: check for section in said["sections"]
              if section["name"] == "Profile health" for check in section["checks"]}
    for name, check in health.items():
        require(check["status"] in ("ok", "skipped", "not_configured"), f"{name}: {check}")
    require_equal(health["Schema compatibility"]["detail"], f"export schema {SCHEMA}", "schema")
    require_words(health["GPU model"]["detail"], device_names, "nsys-ai's devices")


def check_summary(path, run, stages):
    """Times of kernels by name over all devices; it rounds each to a tenth of a millisecond."""
    counts = collections.Counter()
    totals = collections.Counter()
    lines = collections.Counter()
    for total, count, name in re.findall(r"^ +[\d.]+% +([\d.]+)ms +×(\d+) +(\w+)$",
                                         nsys_ai("summary", path).stdout, re.MULTILINE):
        counts[name] += int(count)
        totals[name] += float(total)
        lines[name] += 1
    kernels = names_of(run, "kernel")
    require_equal(set(counts), kernels, "kernels in nsys-ai's summary")
    for name in kernels - names_of(run, "transfer"):  # a name that is both is in two tables there
        require_equal(counts[name], stages[name]["count"], f"count of {name}")
        difference = abs(totals[name] - stages[name]["dur_total"] / MS)
        require(difference <= 0.051 * lines[name],
                f"{name}: nsys-ai says {totals[name]} ms, show {stages[name]['dur_total'] / MS}")


def operation_totals(run, stages):
    """Count and nanoseconds of kernels and transfers together, as `show` has them."""
    names = names_of(run, "kernel") | names_of(run, "transfer")
    return (sum(stages[name]["count"] for name in names),
            sum(stages[name]["dur_total"] for name in names))


def check_totals(path, run, stages):
    said = json.loads(nsys_ai("diff", path, path, "--no-ai", "--format", "json").stdout)
    copies = json.loads(
        nsys_ai("skill", "run", "memory_transfers", path, "--format", "json").stdout)
    count = said["overlap"]["after"]["compute_kernels"] + sum(c["count"] for c in copies)
    total_ns = said["after"]["total_gpu_ns"] + sum(c["total_ms"] for c in copies) * MS
    wanted_count, wanted_ns = operation_totals(run, stages)
    require_equal(count, wanted_count, "operations")
    require(abs(total_ns - wanted_ns) <= 0.0051 * MS * len(copies),
            f"operations: nsys-ai says {total_ns} ns, show {wanted_ns}")
    copied = sum(stages[name]["bytes"] for name in names_of(run, "transfer"))
    require(abs(sum(c["total_mb"] for c in copies) * 1e6 - copied) <= 5100 * len(copies),
            f"bytes: nsys-ai says {copies}, show {copied}")


@test
def nsys_ai_reads_the_export_and_has_the_figures_of_show(place):
    reader("nsys-ai", NSYS_AI)
    place.train("--steps", "6").done()
    run = place / "out/run.db"
    stages, _ = shown(run)
    path = exported(run, "nsys", "run.sqlite")
    as_json = ("--format", "json")
    ask_together(("doctor", path, *as_json), ("info", path), ("summary", path),
                 ("diff", path, path, "--no-ai", *as_json),
                 ("skill", "run", "memory_transfers", path, *as_json), ("analyze", path, *as_json))
    check_doctor(path, ["csd0", "csd1"])
    kernel_count = int(re.search(r"Kernels: (\d+)", nsys_ai("info", path).stdout)[1])
    with database(run) as db:
        require_equal(kernel_count, db.execute("SELECT count(*) FROM kernel").fetchone()[0],
                      "kernels in nsys-ai's info")
    check_summary(path, run, stages)
    check_totals(path, run, stages)
    analysis = json.loads(nsys_ai("analyze", path, "--format", "json").stdout)
    require(analysis["findings"], "nsys-ai finds nothing")
    require_equal(analysis["skipped"], [], "analyses that nsys-ai could not make")


@test
def nsys_ai_gates_a_slower_run_by_its_export(place):
    reader("nsys-ai", NSYS_AI)
    runs = {name: simulated_run(place, f"{name}.db", name) for name in ("nbuffer", "serial")}
    paths = {name: exported(run, "nsys", f"{name}.sqlite") for name, run in runs.items()}
    gate = ("--exit-on-regression", "--no-ai", "--format", "json")
    ask_together(("diff", paths["nbuffer"], paths["serial"], *gate),
                 ("diff", paths["serial"], paths["nbuffer"], *gate))
    worse = json.loads(
        nsys_ai("diff", paths["nbuffer"], paths["serial"], *gate, codes=(1,)).stdout)
    require_equal(worse["verdict"], "regression_likely", "verdict")
    require_equal(worse["warnings"], [], "what nsys-ai warns of")
    nsys_ai("diff", paths["serial"], paths["nbuffer"], *gate)
    for side, name in (("before", "nbuffer"), ("after", "serial")):
        stages, _ = shown(runs[name])
        kernels = sum(stages[kernel]["dur_total"] for kernel in names_of(runs[name], "kernel"))
        require_equal(worse[side]["total_gpu_ns"], kernels, f"kernels of {name}")


# Perfetto -----------------------------------------------------------------------------------------

# An operation has the id of its span among its arguments. Instants have no length.
PERFETTO_QUERIES = {
    "errors": "SELECT name, value FROM stats WHERE severity = 'error' AND value > 0",
    "times": """
        SELECT name, count(*), sum(dur) FROM slice
        WHERE extract_arg(arg_set_id, 'args.span') IS NOT NULL GROUP BY name""",
    "bytes": """
        SELECT name, sum(extract_arg(arg_set_id, 'args.bytes')) FROM slice
        WHERE extract_arg(arg_set_id, 'args.bytes') > 0 GROUP BY name""",
    "steps": """
        SELECT extract_arg(arg_set_id, 'args.step'), dur FROM slice
        WHERE category = 'step' AND dur > 0 ORDER BY ts""",
    "losses": """
        SELECT extract_arg(arg_set_id, 'args.step'), extract_arg(arg_set_id, 'args.loss')
        FROM slice WHERE category = 'step' AND dur > 0 ORDER BY ts""",
    "flows": "SELECT count(*) FROM flow",
}
ASK_PERFETTO = """
import json, sys
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
trace, binary, queries = sys.argv[1], sys.argv[2] or None, json.loads(sys.argv[3])
processor = TraceProcessor(trace=trace, config=TraceProcessorConfig(bin_path=binary))
answers = {}
for what, query in queries.items():
    rows = processor.query(query)
    answers[what] = [[getattr(row, name) for name in rows.column_names] for row in rows]
processor.close()
print(json.dumps(answers))
"""


def trace_processor():
    """Its program: named, or what the package fetches."""
    python = reader("perfetto", PERFETTO)
    named = os.environ.get("SLUICE_TRACE_PROCESSOR")
    if named:
        return python, named
    fetch = ("from perfetto.trace_processor.platform import PlatformDelegate as P; "
             "print(P().get_shell_path(None))")
    try:
        done = subprocess.run([python, "-c", fetch], capture_output=True, text=True,
                              timeout=FETCH_LIMIT_S, check=False)
        why = done.stderr.strip()[-60:]
    except subprocess.TimeoutExpired:
        done, why = None, f"no answer in {FETCH_LIMIT_S} s"
    if done is None or done.returncode != 0:
        raise Skip(f"perfetto {PERFETTO} cannot fetch its trace processor ({why}); "
                   "SLUICE_TRACE_PROCESSOR may name one")
    return python, done.stdout.split()[-1]


@test
def perfetto_reads_the_trace_and_has_the_figures_of_show(place):
    python, binary = trace_processor()
    place.train("--steps", "6").done()
    run = place / "out/run.db"
    path = exported(run, "chrome", "run.json.gz")
    done = subprocess.run([python, "-c", ASK_PERFETTO, path, binary, json.dumps(PERFETTO_QUERIES)],
                          capture_output=True, text=True, timeout=READER_LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"trace processor: {done.stderr.strip()[-400:]}")
    said = json.loads(done.stdout)
    stages, steps = shown(run)
    require_equal(said["errors"], [], "errors of the import")
    require_equal(said["times"], sorted([s["name"], s["count"], s["dur_total"]]
                                        for s in stages.values()), "times of stages")
    require_equal(said["bytes"], sorted([s["name"], s["bytes"]] for s in stages.values()
                                        if s["bytes"] > 0), "bytes of stages")
    require_equal(said["steps"], [[s["step"], s["dur"]] for s in steps], "steps")
    require_equal(said["losses"], [[s["step"], s["loss"]] for s in steps], "losses")
    with database(run) as db:
        require_equal(said["flows"], [list(db.execute("SELECT count(*) FROM flow").fetchone())],
                      "flows")


# A part of a run ----------------------------------------------------------------------------------

FIRST, LAST = 4, 7  # of 10 steps, with a change before each of 2 and 6


def turned_run(place):
    place.train("--steps", "10", "--at", "1:buffers=1", "--at", "5:buffers=2").done()
    return place / "out/run.db"


def wanted_part(run):
    """By the rule of docs/recording.md: what was under way between the begin of the first step and
    the end of the last, and the samples and flows within."""
    with database(run) as db:
        begin = db.execute("SELECT ts FROM step WHERE id = ?", (FIRST - 1,)).fetchone()[0]
        end = db.execute("SELECT ts + dur FROM step WHERE id = ?", (LAST - 1,)).fetchone()[0]
        spans = {row[0] for row in db.execute("SELECT id, ts, ts + dur FROM span")
                 if row[1] < end and (row[2] > begin or row[1] >= begin)}
        flows = {row for row in db.execute("SELECT from_span, to_span FROM flow")
                 if set(row) <= spans}
        samples = [row for row in db.execute("SELECT ts FROM counter WHERE value IS NOT NULL")
                   if begin <= row[0] < end]
        require(len(spans) < db.execute("SELECT count(*) FROM span").fetchone()[0], "no part")
        changes = db.execute("SELECT count(*) FROM knob_change").fetchone()[0]
    require(spans and flows and samples and changes > 1, "nothing to cut")
    return spans, flows, len(samples)


def check_cut_trace(path, spans, flows, sample_count):
    events = json.loads(gzip.decompress(path.read_bytes()),
                        parse_float=decimal.Decimal)["traceEvents"]
    phases = collections.Counter(event["ph"] for event in events)
    require_equal({e["args"]["span"] for e in events if "span" in e.get("args", {})}, spans,
                  "spans of the trace")
    require_equal([e["name"] for e in events if e.get("cat") == "step" and e["ph"] == "X"],
                  [f"step {n}" for n in range(FIRST, LAST + 1)], "steps of the trace")
    require_equal((phases["s"], phases["f"], phases["C"]),
                  (len(flows), len(flows), sample_count), "flows and samples of the trace")
    require_equal([e["name"] for e in events if e.get("cat") == "knob"], ["buffers 1 -> 2"],
                  "changes in the trace")


def check_cut_tables(folder, spans, flows, sample_count):
    def rows(name):
        with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    require_equal({int(row["id"]) for row in rows("span")}, spans, "spans of the tables")
    require_equal({(int(row["from_span"]), int(row["to_span"])) for row in rows("flow")}, flows,
                  "flows of the tables")
    require_equal(sum(row["value"] != "" for row in rows("counter")), sample_count,
                  "samples of the tables")
    require_equal([int(row["id"]) + 1 for row in rows("step")], list(range(FIRST, LAST + 1)),
                  "steps of the tables")
    require_equal([row["new"] for row in rows("knob_change")], ["2"], "changes of the tables")
    require(not (folder / "lod.csv").exists(), "a table of the whole run is among those of a part")
    require(rows("track") and rows("string"), "tables that others point into are not whole")


def check_cut_database(path, spans):
    with contextlib.closing(sqlite3.connect(path)) as db:
        found = {row[0] for table in ("KERNEL", "MEMCPY") for row in
                 db.execute(f"SELECT correlationId FROM CUPTI_ACTIVITY_KIND_{table}")}
        submitted = {row[0] for row in
                     db.execute("SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME")}
        texts = [row[0] for row in db.execute(
            "SELECT text FROM NVTX_EVENTS WHERE text IS NOT NULL ORDER BY eventType DESC, start")]
    require(found and found <= spans, "operations from outside of the part")
    require_equal(submitted, found, "operations that were submitted")
    require_equal(texts, [f"step {n}" for n in range(FIRST, LAST + 1)] + ["buffers 1 -> 2"],
                  "ranges and marks")


@test
def a_part_of_a_run_holds_its_steps_whole_in_each_form(place):
    run = turned_run(place)
    part = wanted_part(run)
    steps = ("--steps", f"{FIRST}..{LAST}")
    check_cut_trace(exported(run, "chrome", "part.json.gz", *steps), *part)
    check_cut_tables(exported(run, "csv", "part", *steps), *part)
    check_cut_database(exported(run, "nsys", "part.sqlite", *steps), part[0])


@test
def the_last_steps_are_those_of_their_numbers(place):
    run = turned_run(place)
    for name, flags in (("a.json", ("--last", 3)), ("b.json", ("--steps", "8..10"))):
        exported(run, "chrome", name, *flags)
    a, b = ((run.parent / name).read_bytes() for name in ("a.json", "b.json"))
    require_equal(a, b, "the last three steps")
    whole = exported(run, "chrome", "all.json")
    packed = exported(run, "chrome", "all.json.gz")
    require_equal(gzip.decompress(packed.read_bytes()), whole.read_bytes(), "the packed trace")
    require(packed.stat().st_size * 5 < whole.stat().st_size, "it is hardly packed")
    exported(run, "chrome", "more.json", "--last", 1000)  # than there are: all of them


@test
def steps_that_are_not_there_are_refused(place):
    run = turned_run(place)
    for flags, said in ((("--steps", "8..11"), ["8 to 11", "it has 1 to 10"]),
                        (("--steps", "5..4"), ["--steps 5..4", "A..B"]),
                        (("--steps", "0..4"), ["the first step is 1"]),
                        (("--steps", "a..b"), ["A..B"]),
                        (("--steps", "1..2", "--last", "2"), ["--last"]),
                        (("--last", "0"), ["--last"])):
        sluice("export", run, "--format", "chrome", "-o", place / "x.json", *flags).refused(2, said)
    require(not (place / "x.json").exists(), "a refused export left a file")


if __name__ == "__main__":
    raise SystemExit(main())
