#!/usr/bin/env python3
"""Why a step took as long as it did: `sluice show --step`, its JSON, the page and `sluice mcp` name
each planted slow step alike, and a trained run's, where a setting was planted for one step."""

import csv
import json
import os
import subprocess

from browser import in_browser
from mcp_client import client
from sluice_run import (BUILD, database, main, require, require_equal, require_words, sluice, test)

PROGRAM = "planted slow steps*,a step in which a rank*"


def slow_steps(place):
    """Rows of name, first and last step, cause, kind, operation, device, link."""
    program = next(BUILD.glob("**/profiler_analyze_test"))
    subprocess.run([program, PROGRAM], check=True, capture_output=True, timeout=120,
                   env={**os.environ, "SLUICE_SLOW_STEPS_FOLDER": str(place.path)})
    with open(place / "slow.csv", encoding="utf-8") as file:
        return list(csv.reader(file))


def explained(run, steps):
    return sluice("show", run, "--step", steps, "--json", "--no-predict").json()["explanation"]


def reasons_of(explanation):
    return [cause for cause in explanation["causes"] if cause.get("reason")]


def page_data(place, run, name):
    sluice("report", run, "-o", place / name, "--no-predict").done()
    return json.loads((place / name).read_text().split('id="data">')[1].split("</script>")[0])


def check_first(explanation, row):
    _, _, _, cause, kind, operation, device, link = row
    first = reasons_of(explanation)[0]
    require_equal((first["cause"], first["reason"]["kind"]), (cause, kind), row[0])
    for key, wanted in (("operation", operation), ("device", device), ("link", link)):
        if wanted:
            require_equal(first["reason"][key], wanted, f"{key} of {row[0]}")


@test
def each_planted_slow_step_is_named_alike_by_json_and_mcp(place):
    rows = slow_steps(place)
    require(len(rows) >= 20, f"{len(rows)} slow steps")
    with client("--runs", place.path) as asks:
        for row in rows:
            name, first, last = row[0], int(row[1]), int(row[2])
            explanation = explained(place / f"{name}.db", f"{first}..{last}")
            check_first(explanation, row)
            answer = asks.found("explain_step", run=f"{name}.db", step=first, last=last)
            require("left_off" not in answer, f"{name}: {answer.get('left_off')}")
            require_equal(answer["words"], explanation["words"], f"words of {name}")
            require_equal([cause["reason"]["words"] for cause in reasons_of(answer)],
                          [cause["reason"]["words"] for cause in reasons_of(explanation)],
                          f"reasons of {name}")
            spans = {span for cause in reasons_of(answer) for span in cause["reason"]["spans"]}
            require_equal(set(answer["evidence"]["spans"]), spans, f"evidence of {name}")
            with database(place / f"{name}.db") as db:
                steps = {step for step, in db.execute(
                    f"SELECT step_id FROM span WHERE id IN ({','.join(map(str, spans))})")}
            require(all(first - 1 <= step < last for step in steps), f"{name}: spans of {steps}")


@test
def the_terminal_says_the_same_words(place):
    for name, first, last, *_ in slow_steps(place):
        run = place / f"{name}.db"
        text = sluice("show", run, "--step", f"{first}..{last}").done().out
        explanation = explained(run, f"{first}..{last}")
        require_words(text, [explanation["words"], *explanation["notes"], "sluice-gui"] +
                      [cause["reason"]["words"] for cause in reasons_of(explanation)], name)
    text = sluice("show", place / "one_of_four.db", "--no-predict").done().out
    require_words(text, ["--step N explains a step", "the slowest is 21"], "show")


@test
def a_late_rank_is_named_by_the_records_of_all(place):
    slow_steps(place)
    explanation = explained(place / "ranks", 13)
    reason = reasons_of(explanation)[0]["reason"]
    require_equal((reason["kind"], reason["rank"]), ("late rank", 2), "reason")
    with client("--runs", place.path) as asks:
        answer = asks.found("explain_step", run="ranks", step=13)
        require_equal(reasons_of(answer)[0]["reason"]["words"], reason["words"], "words")


@test
def steps_that_are_not_there_are_refused_with_those_that_are(place):
    slow_steps(place)
    run = place / "one_of_four.db"
    for steps, said in (("31", "there is no step 31: the record has 1 to 30"),
                        ("29..40", "steps 29 to 40 are not all there"), ("0", "no range"),
                        ("9..3", "no range"), ("x", "no range")):
        reply = sluice("show", run, "--step", steps)
        require_equal(reply.code, 2, f"exit code of --step {steps}")
        require_words(reply.err, [said], f"--step {steps}")
    with client(run) as asks:
        asks.refused("explain_step", "the record has 1 to 30", step=31)
        asks.refused("explain_step", "not all there", step=9, last=3)
        require_equal(asks.found("explain_step")["first_step"], 30, "the step if none is named")


@test
def the_page_names_planted_slow_steps_alike(place):
    # The page has the slowest steps, and some to compare them with: not each one that is planted.
    named = 0
    for name, first, last, *_ in slow_steps(place):
        run = place / f"{name}.db"
        for one in page_data(place, run, f"{name}.html")["timeline"]["explanations"]:
            if int(first) <= one["first_step"] <= int(last):
                require_equal(one, explained(run, one["first_step"]), name)
                named += one["first_step"] == int(first)
    require(named >= 20, f"pages explain {named} of the planted steps")


@test
def the_page_has_it_above_the_timeline_of_each_chosen_step(place):
    slow_steps(place)
    timeline = page_data(place, place / "one_of_four.db", "page.html")["timeline"]
    require_equal([one["first_step"] for one in timeline["explanations"]],
                  [step["step"] + 1 for step in timeline["steps"]], "explained steps")
    slowest = next(one for one in timeline["explanations"] if one["first_step"] == 21)
    require_equal(slowest, explained(place / "one_of_four.db", 21), "the slowest step")
    after = in_browser(place, "page.html", """<script>
for (const button of document.querySelectorAll('#timeline-tools button')) {
  if (button.textContent.includes('slowest')) button.click();
}
</script>""")
    shown = after.split('id="timeline-explanation"')[1].split('id="timeline-legend"')[0]
    require_words(shown, ["Step 21 took", "csd2 state_read took 4.0 times as long",
                          "within the noise"], "the page")


@test
def a_trained_step_with_a_setting_of_its_own_names_the_setting(place):
    place.train("--steps", 24, "--at", "16:density=1", "--at", "17:density=0.05", density=0.05,
                clock="emulated").done()
    run = place / "out/run.db"
    explanation = explained(run, 17)
    require_words(" ".join(explanation["notes"]),
                  ["density 0.05 -> 1 from step 17 on", "which have others"], "notes")
    require(explanation["usual_dur"] > 0 and explanation["causes"], f"{explanation}")
    total = sum(cause["ns"] for cause in explanation["causes"])
    require(abs(total - explanation["dur"]) < 1000, f"causes of {total} in {explanation['dur']}")
    with client(run, cwd=place.path) as asks:
        require_equal(asks.found("explain_step", step=17)["words"], explanation["words"], "mcp")
    timeline = page_data(place, run, "page.html")["timeline"]
    for one in timeline["explanations"]:
        require_equal(one, explained(run, one["first_step"]), f"step {one['first_step']}")


if __name__ == "__main__":
    main()
