#!/usr/bin/env python3
"""overlap=local: each subgroup is clipped by its own norm. A run has other numbers than with
overlap=off and says so wherever its mode is said; without a limit it has the same; fp16 is
refused."""

import json
import re
import sys

from sluice_run import database, main, require, require_equal, require_words, sluice, test

SAYS = "clipped by subgroup: other numbers than overlap=off"
STEPS = 6


def numbers(reply):
    report = reply.json()
    return report["losses"], report["state_digest"]


def shown(place, output):
    return " ".join(sluice("show", place / output / "run.db").done().out.split())


def page_mode(place, output):
    page = place / "page.html"
    sluice("report", place / output / "run.db", "-o", page, "--force").done()
    text = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL).group(1)
    return json.loads(text)["mode"]


def modes(place, output):
    with database(place / output / "run.db") as db:
        return [line for (line,) in db.execute("SELECT line FROM mode ORDER BY step_id")]


@test
def it_differs_from_off_where_something_is_clipped_and_says_so(place):
    off = numbers(place.train("--json", steps=STEPS, output="off", max_grad_norm=0.5))
    reply = place.train("--json", steps=STEPS, output="local", max_grad_norm=0.5, overlap="local")
    require(numbers(reply) != off, "overlap=local has the numbers of overlap=off")
    report = reply.json()
    require(0 < report["overlap"]["clipped"] <= STEPS * report["overlap"]["subgroups"],
            f"clipped: {report['overlap']}")
    require(report["overlap"]["ahead"] > 0, "nothing was updated ahead")
    require_equal(report["overlap"]["refuted"], 0, "refuted")
    require_words(report["mode"], [SAYS], "--json")
    require_words(shown(place, "local"), [SAYS], "show")
    require_words(page_mode(place, "local"), [SAYS], "the page")
    require_words(modes(place, "local")[0], [SAYS], "table mode")
    require(SAYS not in shown(place, "off"), "show of overlap=off says that it clips by subgroup")
    said = place.train(steps=STEPS, output="said", max_grad_norm=0.5, overlap="local").done()
    require_words(" ".join((said.out + said.err).split()),
                  [SAYS, "Clipped by subgroup:", "other numbers than overlap=off"], "train")


@test
def the_way_to_offload_changes_no_number(place):
    common = {"max_grad_norm": 0.5, "overlap": "local", "steps": STEPS}
    whole = numbers(place.train("--json", output="plain", **common))
    for number, way in enumerate((
            {"method": "host", "commit_every": 3},
            {"method": "csd", "pipeline": "handover", "commit_every": 3, "devices": 3},
            {"method": "csd", "clock": "emulated", "time_scale": 0.01, "wire": "native"},
            {"method": "host", "pipeline": "serial", "gradient_tier": "memory"},
            {"method": "host", "parameter_tier": "storage", "state_cache": "70KB"})):
        found = numbers(place.train("--json", output=f"way{number}", **common, **way))
        require_equal(found, whole, f"numbers with {way}")


@test
def without_a_limit_the_numbers_are_those_of_off(place):
    off = numbers(place.train("--json", steps=STEPS, output="off", max_grad_norm=0))
    reply = place.train("--json", steps=STEPS, output="local", max_grad_norm=0, overlap="local")
    require_equal(numbers(reply), off, "numbers without a limit")
    require(SAYS not in shown(place, "local"), "show says that it clips by subgroup")


@test
def a_live_run_that_clipped_so_for_a_while_is_marked_with_the_steps(place):
    place.train("--at", "2:overlap=local", "--at", "4:overlap=off", max_grad_norm=0.5,
                steps=STEPS).done()
    require_words(shown(place, "out"), [SAYS + " in steps 3 to 4"], "show")
    whole = place.digest()
    place.train(output="parts", max_grad_norm=0.5, steps=2).done()
    place.train("--resume", output="parts", max_grad_norm=0.5, steps=4, overlap="local").done()
    place.train("--resume", output="parts", max_grad_norm=0.5, steps=STEPS).done()
    require_equal(place.digest("parts/state"), whole, "the state of three resumes")


@test
def a_loss_scale_that_may_overflow_is_refused(place):
    place.train(overlap="local", precision="fp16").refused(
        2, ['overlap = "local" needs precision = "bf16"', 'overlap = "exact"'])
    place.train(overlap="lokal").refused(2, ["off, exact, local"])


if __name__ == "__main__":
    sys.exit(main())
