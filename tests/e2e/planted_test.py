#!/usr/bin/env python3
"""Planted bottlenecks are what `sluice show` points at, with the operations that were planted as
evidence; healthy runs have no finding, and say what was looked for."""

import csv
import os
import subprocess

from sluice_run import BUILD, SAMPLES, database, main, require, require_equal, sluice, test

NAMES = """SELECT DISTINCT string.value FROM span JOIN string ON string.id = name_id
WHERE span.id IN ({})"""


def planted_runs(place):
    """Rows of name, kind, what is never to be found, and names of operations."""
    program = next(BUILD.glob("**/profiler_analyze_test"))
    subprocess.run([program, "planted bottlenecks*"], check=True, capture_output=True, timeout=120,
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
