#!/usr/bin/env python3
"""What terminal, page and JSON say of a run whose tables, and kinds of rows, were deleted in
turn: each analysis has an answer, found nothing, or could not look, the same on every surface, and
a loss of records is said."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import sys
import tempfile

from sluice_run import database, main, require, require_equal, sluice, test

ANSWER, NOTHING, BLIND = "answer", "nothing found", "could not look"
OPERATIONS = ("time by cause", "what set operations off", "links", "overlap", "balance of devices")
STEPS = ("lasting change of step time", "slow steps", "skipped steps")
# What these find depends on how the machine went, and on which steps are looked at.
MEASURED = ("balance of devices", *STEPS)
ALL = ("lost records", "mode", *OPERATIONS, *STEPS, "what changes of knobs brought", "counters")
LOST = {"lost records": ANSWER}
BLIND_TO_OPERATIONS = dict.fromkeys(OPERATIONS, BLIND)

# Expected where a whole table is empty; analyses that are not named are as in the whole run.
TABLES = {
    "meta": {"mode": BLIND, "balance of devices": BLIND},
    "clock_snapshot": {},
    "clock_offset": {},
    "stat": {"lost records": BLIND},
    "string": BLIND_TO_OPERATIONS,
    "track": BLIND_TO_OPERATIONS | {"counters": BLIND},
    "step": LOST | BLIND_TO_OPERATIONS | dict.fromkeys(STEPS, BLIND) |
            {"what changes of knobs brought": BLIND},
    "validation": {},
    "span": LOST | BLIND_TO_OPERATIONS,
    "counter": {"counters": BLIND},
    "span_run": LOST | BLIND_TO_OPERATIONS,
    "span_batch": LOST | BLIND_TO_OPERATIONS,
    "lod": {},
    "long_span": {},
    "flow": {"what set operations off": BLIND},
    "device": {"balance of devices": BLIND},
    "link": BLIND_TO_OPERATIONS,
    "track_link": BLIND_TO_OPERATIONS,
    "stage": {},
    "mode": {"mode": BLIND},
    "subgroup": {},
    "knob": {"what changes of knobs brought": BLIND},
    "knob_change": {"what changes of knobs brought": NOTHING},
    "lateness": {},  # of a run by the emulated clock alone
    "verdict": {},
}


def trained(place):
    place.train("--steps", 24, "--at", "12:buffers=2", clock="real").done()
    return place / "out/run.db"


def changed(run, statement):
    copy = pathlib.Path(tempfile.mkdtemp(dir=run.parent)) / "run.db"
    shutil.copy(run, copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        db.execute(statement)
        db.commit()
    return copy


# Detectors of findings share a line, and planted_test.py has their outcomes.
FINDINGS = {"slow drive", "hot drive", "small operations", "lock-step queue", "buffered files",
            "full link", "idle internal links", "missing overlap", "reads and writes in turns",
            "too few buffers", "straggling rank", "synchronous flush", "starved forward",
            "late activations", "host kernel", "costly compression", "costly recording",
            "unrecorded time", "periodic slow steps", "lasting slowdown"}


def answers(run, *flags):
    """What each analysis says, after all three surfaces were found to say the same."""
    listed = sluice("show", run, "--json", *flags).json()["answers"]
    text = " ".join(sluice("show", run, *flags).done().out.split())
    page = run.with_name("page.html")
    sluice("report", run, "-o", page, "--force", *flags).done()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    require_equal(data["answers"], listed, "what the page says beside the terminal's JSON")
    lines = " ".join(line["words"] for line in data["looked"]["lines"]) + data["looked"]["answered"]
    for one in listed:
        require(one["outcome"] in (ANSWER, NOTHING, BLIND) and one["why"], f"{one}")
        words = one["of"][0].upper() + one["of"][1:] + f": {one['outcome']} ({one['why']})."
        for place, said in (("show", text), ("the page", lines)):
            if one["of"] in FINDINGS:
                require(one["of"] in said.lower(), f"{place} passes over {one}: {said}")
                continue
            require((one["of"] if one["outcome"] == ANSWER else " ".join(words.split())) in said,
                    f"{place} passes over {one}: {said}")
    nothing_lost = listed[0]["outcome"] == NOTHING
    require_equal("Nothing was lost while recording." in text, nothing_lost, "show: nothing lost")
    require_equal(data["is_whole"], nothing_lost, "the page: nothing lost")
    blind = [one for one in listed if one["of"] == "time by cause" and one["outcome"] == BLIND]
    require_equal(bool(data["verdict"]["why_empty"]), bool(blind), "the page: a reason for no bars")
    require_equal(bool(data["verdict"]["causes"]), not blind, "the page: bars")
    require(FINDINGS <= {one["of"] for one in listed}, "not every detector has an outcome")
    return {one["of"]: one["outcome"] for one in listed if one["of"] not in FINDINGS}


def check_all(run, cases):
    """Side by side, since each command takes a while to begin."""
    whole = answers(run, "--no-predict")
    require_equal(set(whole), set(ALL), "analyses")

    def check(what, statement, wanted):
        try:
            found = answers(changed(run, statement), "--no-predict")
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error
        for of in set(whole) - set(wanted):
            if of in MEASURED:
                require_equal(found[of] == BLIND, whole[of] == BLIND, f"{what}: {of} is blind")
            else:
                require_equal(found[of], whole[of], f"{what}: {of}")
        for of, outcome in wanted.items():
            require_equal(found[of], outcome, f"{what}: {of}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(check, *case) for case in cases]:
            done.result()


def names(run, sql):
    with database(run) as connection:
        return [row[0] for row in connection.execute(sql)]


@test
def each_table_in_turn(place):
    run = trained(place)
    tables = names(run, "SELECT name FROM sqlite_master WHERE type = 'table'")
    require_equal(set(tables), set(TABLES), "tables with an expectation")
    check_all(run, [(f"no rows in {table}", f"DELETE FROM {table}", TABLES[table])
                    for table in tables])


@test
def the_operations_of_each_stage_in_turn(place):
    run = trained(place)
    stages = names(run, "SELECT DISTINCT value FROM span JOIN string ON string.id = name_id")
    require(len(stages) > 10, f"stages: {stages}")
    check_all(run, [(f"no spans of {stage}",
                     "DELETE FROM span WHERE name_id = (SELECT id FROM string WHERE value = "
                     f"'{stage}')", LOST | BLIND_TO_OPERATIONS) for stage in stages])


@test
def each_count_and_each_kind_of_counter_in_turn(place):
    run = trained(place)
    counts = names(run, "SELECT name FROM stat")
    counters = names(run, "SELECT id FROM track WHERE kind = 'counter'")
    check_all(run, [(f"no count {name}", f"DELETE FROM stat WHERE name = '{name}'",
                     {"lost records": BLIND}) for name in counts] +
              [(f"{name} is not 0", f"UPDATE stat SET value = 7 WHERE name = '{name}'", LOST)
               for name in counts] +
              [(f"no samples of {track}", f"DELETE FROM counter WHERE track_id = {track}",
                {"counters": BLIND}) for track in counters[::7]])


@test
def steps_and_facts_in_turn(place):
    run = trained(place)
    gone = {"the first": "id < 3", "some": "id IN (5, 6, 7)", "the last": "id > 19"}
    cases = [(f"no rows of steps: {which}", f"DELETE FROM step WHERE {where}", LOST)
             for which, where in gone.items()]
    cases += [("no clock", "DELETE FROM meta WHERE key = 'clock'", {"mode": BLIND}),
              ("one device", "DELETE FROM device WHERE id = 1", {"balance of devices": BLIND}),
              ("one link", "DELETE FROM link WHERE id = 0", BLIND_TO_OPERATIONS)]
    whole = answers(run, "--no-predict")
    for what, statement, wanted in cases:
        found = answers(changed(run, statement), "--no-predict")
        for of, outcome in wanted.items():
            require_equal(found[of], outcome, f"{what}: {of}")
        if "steps" in what:
            require(NOTHING not in (found[of] for of in STEPS), f"{what}: {found}, {whole}")


@test
def what_cannot_be_simulated_is_not_predicted(place):
    run = trained(place)
    require(answers(run)["what to turn next"] in (ANSWER, NOTHING), "the whole run is predicted")
    for what in ("meta WHERE key = 'platform_text'", "meta WHERE key = 'model_text'", "step",
                 "span WHERE track_id IN (SELECT track_id FROM track_link)", "span_run"):
        damaged = changed(run, f"DELETE FROM {what}")
        require_equal(answers(damaged)["what to turn next"], BLIND, f"without {what}")
        said = sluice("simulate", "--fit", "--like", damaged, "--json").json()
        require_equal(said["answers"][0]["outcome"], BLIND, f"predicted without {what}")
        require(said["unavailable"] and not said["predictions"],
                f"predicted without {what}: {said}")


@test
def a_comparison_names_what_one_of_two_lacks(place):
    run = trained(place)
    for statement, of, outcome in (
            ("DELETE FROM knob", "phases and links", ANSWER),
            ("DELETE FROM stat", "lost records of B", BLIND),
            ("DELETE FROM span WHERE id % 3 = 0", "lost records of B", ANSWER),
            ("DELETE FROM span WHERE id % 3 = 0", "phases and links", BLIND),
            ("DELETE FROM stage", "phases and links", BLIND),
            ("DELETE FROM track_link", "phases and links", BLIND),
            ("DELETE FROM step WHERE id > 0", "noise", BLIND),
            ("DELETE FROM meta", "settings that differ", BLIND),
            ("DELETE FROM subgroup", "settings that differ", NOTHING)):
        damaged = changed(run, statement)
        listed = sluice("compare", run, damaged, "--json").json()["answers"]
        found = {one["of"]: one["outcome"] for one in listed}
        require_equal(found[of], outcome, f"{statement}: {of}")
        text = " ".join(sluice("compare", run, damaged).done().out.split())
        for one in listed:
            require(one["outcome"] == ANSWER or " ".join(one["why"].split()) in text,
                    f"compare passes over {one}: {text}")
        if found["settings that differ"] == BLIND:
            require("the same settings" not in text, f"compare without settings: {text}")


if __name__ == "__main__":
    sys.exit(main())
