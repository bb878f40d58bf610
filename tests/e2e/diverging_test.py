#!/usr/bin/env python3
"""Runs that learn nothing say so: by their end, in their advice, and on every surface that shows
them. Learning rates and validations are in the record, and a schedule goes on as it was begun."""

import csv
import json
import math
import re
import shlex
import sys

from sluice_run import (committed_step, main, require, require_equal, require_words, sluice, test)

RUINOUS = {"lr": "1e30", "max_grad_norm": 0}


def shown(run):
    return sluice("show", run, "--json", "--no-predict").json()


def words_of(text):
    return " ".join(text.split())


@test
def a_run_that_skips_all_of_its_steps_ends_and_the_record_says_how_many(place):
    settings = {"precision": "fp16", "lr": "1e4", "max_grad_norm": 0, "max_skipped_steps": 4}
    reply = place.train("--steps", 40, **settings)
    require_equal(reply.code, 1, "exit code")
    require_words(reply.err, ["steps in a row were skipped", "begin again"], "the error")
    require("go on with --resume" not in reply.err, f"a resume is advised: {reply.err}")
    require("Go on:" not in reply.out, "a command to go on with")
    said = shown(place / "out/run.db")
    skipped = said["skipped_steps"]
    require(4 <= skipped == sum(step["skipped"] for step in said["steps"]) < 40, f"{skipped}")
    text = words_of(sluice("show", place / "out/run.db", "--no-predict").done().out)
    require_words(text, [f"{skipped} of {len(said['steps'])} steps were skipped for overflow"],
                  "show")
    page = place / "page.html"
    sluice("report", place / "out/run.db", "-o", page, "--no-predict").done()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    require_equal(data["curves"]["skipped_count"], skipped, "skipped steps of the page")
    require(any("skipped for overflow" in json.dumps(one) for one in data["verdict"]["findings"]),
            f"findings of the page: {data['verdict']['findings']}")
    place.train("--steps", 6, output="good").done()
    compared = sluice("compare", place / "good/run.db", place / "out/run.db", "--json").json()
    require(any("for overflow" in one for one in compared["comparability"]["cautions"]),
            f"cautions: {compared['comparability']['cautions']}")


@test
def weights_that_are_ruined_are_told_and_no_resume_moves_the_run_on(place):
    first = place.train("--steps", 40, output="b", **RUINOUS)
    require_equal(first.code, 1, "exit code")
    require_words(first.err, ["gradients of step 2 are not finite", "no snapshot",
                              "committed at step 1 are ruined"], "the error")
    for _ in range(2):
        again = place.train("--steps", 40, "--resume", output="b", lr="1e-3")
        require_equal(again.code, 1, "exit code of a resume")
        require_words(again.err, ["gradients of step 2 are not finite", "no resume goes on"],
                      "the error of a resume")
        require("(go on with --resume)" not in again.err, f"a resume is advised: {again.err}")
        require_equal(committed_step(place / "b/state"), 1, "committed step")
    # The step that failed has its row, which says so.
    steps = shown(place / "b/run.db")["steps"]
    require_equal([(step["step"], step["skipped"]) for step in steps], [(1, False), (2, True)],
                  "steps of the record")


@test
def a_run_whose_last_update_ruined_it_is_not_done(place):
    reply = place.train("--json", "--steps", 1, **RUINOUS)
    require_equal(reply.code, 1, "exit code")
    require_words(reply.err, ["no further step can help after step 1"], "the error")
    report = json.loads(reply.out)
    require(report["resume"] is None and report["validation_loss"] is None, f"{report['resume']}")


@test
def rates_and_validations_are_in_the_record_and_in_what_is_made_of_it(place):
    place.train("--steps", 6, lr=1e-3, warmup_steps=2, schedule_steps=6, validation_every=2).done()
    run = place / "out/run.db"
    said = shown(run)
    rates = [step["lr"] for step in said["steps"]]
    wanted = [0.5e-3, 1e-3] + [1e-3 * 0.5 * (1 + math.cos(math.pi * done / 3)) for done in range(4)]
    require(all(math.isclose(a, b, abs_tol=1e-12) for a, b in zip(rates, wanted, strict=True)),
            f"rates {rates}, expected {wanted}")
    require_equal([row["step"] for row in said["validations"]], [2, 4, 6], "validated steps")
    require(all(3 < row["loss"] < 8 and row["tokens"] == 64 for row in said["validations"]),
            f"{said['validations']}")
    text = words_of(sluice("show", run, "--no-predict").done().out)
    require_words(text, [" lr ", f"Validation loss: {said['validations'][0]['loss']:.4f} (step 2)"],
                  "show")
    sluice("export", run, "--format", "csv", "-o", place / "csv").done()
    with open(place / "csv/validation.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    require_equal([(int(row["step_id"]) + 1, float(row["loss"])) for row in rows],
                  [(row["step"], row["loss"]) for row in said["validations"]], "validations as CSV")
    # A step that was not committed runs again: its validation goes with it.
    place.train("--steps", 8, "--resume", lr=1e-3, warmup_steps=2, schedule_steps=6,
                validation_every=2).done()
    require_equal([row["step"] for row in shown(run)["validations"]], [2, 4, 6, 8],
                  "validated steps after a resume")


@test
def the_command_to_go_on_with_says_what_becomes_of_the_schedule(place):
    def proposed(*flags, **settings):
        reply = place.train(*flags, **settings).done()
        one_line = reply.out.replace(" \\\n", "")
        command = re.search(r"^Go on: +\S*sluice (.*)$", one_line, re.MULTILINE)
        return words_of(reply.out), shlex.split(command.group(1))
    text, command = proposed("--steps", 4, output="within", schedule_steps=100)
    require("schedule" not in text.split("Look:")[0], f"a schedule that goes on: {text}")
    require_equal(command[-2:], ["--steps", "8"], "command within the schedule")
    text, command = proposed("--steps", 4, output="kept", schedule_steps=0, min_lr=1e-4)
    require_words(text, ["The schedule has ended", "stays at min_lr=0.0001"], "the report")
    require("schedule_steps=4" in command, f"command: {command}")
    text, _ = proposed("--steps", 4, output="short", schedule_steps=0, min_lr=1e-4, warmup_steps=9)
    require_words(text, ["shorter than its warm-up", "rising to step 9", "at min_lr=0.0001"],
                  "the report of a run that ended in its warm-up")
    text, command = proposed("--steps", 4, output="longer", schedule_steps=0)
    require_words(text, ["The schedule has ended", "rises again, to"], "the report")
    require("schedule_steps=8" in command and "schedule_steps=0" not in command, f"{command}")
    rate = re.search(r"rises again, to (\S+) in step 5", text).group(1)
    reply = sluice(*command, cwd=place.path).done()
    require_words(reply.out, [f"The learning rate of step 5 is {rate}"], "the resume")
    steps = shown(place / "longer/run.db")["steps"]
    require(math.isclose(steps[4]["lr"], float(rate), rel_tol=1e-3), f"{steps[4]}, {rate}")
    require(steps[3]["lr"] == 0 and steps[7]["lr"] == 0, f"{steps}")


if __name__ == "__main__":
    sys.exit(main())
