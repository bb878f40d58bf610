#!/usr/bin/env python3
"""Planted bottlenecks are what `sluice show` points at, with the operations that were planted as
evidence; healthy runs have no finding, and say what was looked for."""

import csv
import os
import subprocess

from mcp_client import client
from sluice_run import BUILD, SAMPLES, database, main, require, require_equal, sluice, test

NAMES = """SELECT DISTINCT string.value FROM span JOIN string ON string.id = name_id
WHERE span.id IN ({})"""


def planted_runs(place):
    """Rows of name, kind, what is never to be found, and names of operations."""
    program = next(BUILD.glob("**/profiler_analyze_test"))
    subprocess.run([program, "planted bottlenecks*,a rank that the others*"], check=True,
                   capture_output=True, timeout=120,
                   env={**os.environ, "SLUICE_PLANTED_FOLDER": str(place.path)})
    with open(place / "planted.csv", encoding="utf-8") as file:
        return list(csv.reader(file))


def names_of(path, spans):
    with database(path) as db:
        return {name for name, in db.execute(NAMES.format(",".join(map(str, spans))))}


@test
def each_planted_run_has_its_finding_and_healthy_ones_have_none(place):
    runs = [run for run in planted_runs(place) if not run[2]]
    require(len(runs) >= 22, f"{len(runs)} runs")
    for name, kind, _, names in runs:
        path = place / f"{name}.db"
        said = sluice("show", path, "--json", "--no-predict").json()
        kinds = [finding["kind"] for finding in said["findings"]]
        looked = [answer for answer in said["answers"] if answer["why"]]
        require(len(looked) >= 20, f"{name} says too little of what was looked for")
        if not kind:
            require_equal(kinds, [], name)
            continue
        require(kind in kinds[:2], f"{name}: {kinds}")
        found = said["findings"][kinds.index(kind)]
        require_equal(names_of(path, found["evidence"]["spans"]) - set(names.split()) -
                      {names.strip()}, set(), f"evidence of {name}")
        require(found["evidence"]["steps"] and found["words"].endswith("."), f"{name}: {found}")


def found_by_an_agent(asks, run):
    """What an agent concludes of a run that it knows nothing of, and its number of calls: the first
    findings, and the operations that they name."""
    before = asks.count
    overview = asks.found("overview", run=run)
    conclusions = []
    for finding in overview["findings"][:2]:
        spans = ",".join(map(str, finding["evidence"]["spans"]))
        sql = f"SELECT DISTINCT value FROM span JOIN string ON string.id = name_id " \
              f"WHERE span.id IN ({spans})"
        rows = asks.found("query_sql", run=run, sql=sql)["rows"] if spans else []
        conclusions.append((finding["kind"], {row[0] for row in rows}))
    return conclusions, overview, asks.count - before


@test
def an_agent_finds_each_planted_bottleneck_in_at_most_six_calls(place):
    found = 0
    runs = planted_runs(place)
    with client("--runs", place.path) as asks:
        for name, kind, never, names in runs:
            conclusions, overview, calls = found_by_an_agent(asks, f"{name}.db")
            require(calls <= 6, f"{name}: {calls} calls")
            kinds = [one for one, _ in conclusions]
            require(not never or never not in kinds, f"{name}: {kinds}")
            if not kind and not never:  # healthy
                require_equal(conclusions, [], name)
                looked = [one for one in overview["answers"] if one["outcome"] == "nothing found"]
                require(len(looked) >= 5, f"{name}: too little of what was looked for: {looked}")
            if not kind:
                continue
            found += 1
            require(kind in kinds, f"{name}: {kinds}")
            require_equal(conclusions[kinds.index(kind)][1] - {*names.split(), names.strip()},
                          set(), f"evidence of {name}")
        overview = asks.found("overview", run="ranks")
        require("straggling rank" in [one["kind"] for one in overview["findings"][:2]],
                f"ranks: {overview['findings']}")
    require_equal(found + 1, 20, "planted bottlenecks")


@test
def the_terminal_has_findings_where_there_are_some(place):
    planted_runs(place)
    text = sluice("show", place / "slow_drive.db", "--no-predict").done().out
    require("Findings:" in text and "slow drive:" in text, text)
    text = sluice("show", place / "healthy_compute.db", "--no-predict").done().out
    require("Findings:\n" not in text and "Findings: nothing found" in text, text)


def simulated(place, **settings):
    arguments = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    sluice("simulate", SAMPLES / "models/gpt2-4.0b.toml", "--platform",
           SAMPLES / "platforms/smartssd-a5000.toml", *arguments, "--db", place / "s.db").done()
    said = sluice("show", place / "s.db", "--json", "--no-predict").json()
    (place / "s.db").unlink()
    return [finding["kind"] for finding in said["findings"]]


@test
def simulated_runs_bound_by_computing_are_healthy_and_one_drive_is_a_full_link(place):
    for batch in (64, 1024):
        require_equal(simulated(place, devices=10, method="csd", batch=batch), [], f"{batch}")
    kinds = simulated(place, devices=1, method="host", buffers=1)
    require("full link" in kinds[:2], f"{kinds}")


if __name__ == "__main__":
    main()
