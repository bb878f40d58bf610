#!/usr/bin/env python3
"""A run that was ever emulated says so: in its database, in `show`, on the page and in exports,
with the steps that ran in each mode."""

import json
import re
import sys

from sluice_run import database, main, require, require_equal, require_words, sluice, test


def modes_of(run_db):
    with database(run_db) as db:
        return db.execute("SELECT step_id, line FROM mode ORDER BY step_id").fetchall()


def shown(place):
    """What `show` prints, without its line breaks."""
    return " ".join(sluice("show", place / "out/run.db").done().out.split())


def page_of(place):
    page = place / "page.html"
    sluice("report", place / "out/run.db", "-o", page, "--force").done()
    text = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL).group(1)
    return json.loads(text)


@test
def a_run_that_begins_on_the_host_and_is_turned_to_csd_says_emulated(place):
    place.train("--at", "2:method=csd", "--at", "4:method=host", method="host", steps=6).done()
    modes = modes_of(place / "out/run.db")
    require_equal([step for step, _ in modes], [0, 2, 4], "first steps of the modes")
    require_equal(["EMULATED CSDs" in line for _, line in modes], [False, True, False],
                  "modes that name the stand-in")
    require_words(shown(place), ["host · nbuffer", "EMULATED CSDs", "in steps 3 to 4",
                                 "steps 1 to 2", "from step 5 on"], "show")
    parsed = sluice("show", place / "out/run.db", "--json").json()
    require_equal([(mode["first_step"], mode["last_step"]) for mode in parsed["modes"]],
                  [(1, 2), (3, 4), (5, None)], "modes of show --json")
    page = page_of(place)
    require(page["is_stand_in"], "the page has no badge")
    require_words(page["mode"], ["EMULATED CSDs", "in steps 3 to 4"], "the page")
    trace = place / "trace.json"
    sluice("export", place / "out/run.db", "--format", "chrome", "-o", trace).done()
    require_words(trace.read_text(), ["EMULATED CSDs"], "the trace")


@test
def a_resume_by_the_real_clock_keeps_what_was_emulated(place):
    place.train(method="host", clock="emulated", time_scale=0.01, steps=3).done()
    place.train("--resume", method="host", clock="real", steps=5).done()
    require_equal([step for step, _ in modes_of(place / "out/run.db")], [0, 3], "first steps")
    require_words(shown(place), ["EMULATED CLOCK x0.01 in steps 1 to 3"], "show")
    # A resume in the same mode is no other.
    place.train("--resume", method="host", clock="real", steps=6).done()
    require_equal(len(modes_of(place / "out/run.db")), 2, "rows of table mode")


@test
def a_run_without_a_stand_in_has_no_badge(place):
    place.train(method="host", clock="real", steps=2).done()
    page = page_of(place)
    require(not page["is_stand_in"], "the page has a badge")
    require("EMULATED" not in shown(place), "show says EMULATED")


if __name__ == "__main__":
    sys.exit(main())
