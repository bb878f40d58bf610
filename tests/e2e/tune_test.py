#!/usr/bin/env python3
"""`sluice tune`: what it advises is worth what it says, held knobs stay, what it refuses."""

import sys

from sluice_run import (SAMPLES, TESTBED, main, require, require_equal, require_words, sluice,
                        test)

MODEL = SAMPLES / "models/gpt2-4.0b.toml"
ON_TESTBED = ("--platform", TESTBED, "--set", "devices=4")


def simulated(settings):
    arguments = [word for setting in settings for word in ("--set", setting)]
    return sluice("simulate", MODEL, *ON_TESTBED, "--json", *arguments).json()["seconds"]["total"]


@test
def the_advised_changes_give_the_step_that_it_promises(place):
    start = ["method=host", "pipeline=serial"]
    words = [word for setting in start for word in ("--set", setting)]
    report = sluice("tune", MODEL, *ON_TESTBED, *words, "--json").json()
    require(report["changes"], "nothing advised for the slowest settings")
    advised = [f"{change['key']}={change['to']}" for change in report["changes"]]
    require_equal(simulated(start), report["seconds"]["before"], "before")
    require_equal(simulated(start + advised), report["seconds"]["after"], "after")
    require(report["seconds"]["after"] < report["seconds"]["before"], f"{report['seconds']}")
    require(report["evaluations"] * 10 <= report["combinations"], "too many evaluations")


@test
def a_held_knob_stays_and_the_text_says_what_each_change_is_worth(place):
    words = ("--set", "method=host", "--hold", "method")
    report = sluice("tune", MODEL, *ON_TESTBED, *words, "--json").json()
    require("method" not in [change["key"] for change in report["changes"]], f"{report}")
    text = sluice("tune", MODEL, *ON_TESTBED, *words).done().out
    require_words(text, ["SIMULATED", "worth", "combinations were simulated", "phase"], "the text")


@test
def activations_are_chosen_where_they_may_be_and_keep_to_the_cap(place):
    words = (*ON_TESTBED, "--set", "batch=16", "--set", "accelerator_memory=24GB")
    plain = sluice("tune", MODEL, *words, "--json").json()
    report = sluice("tune", MODEL, *words, "--activations", "--json").json()
    changes = {change["key"]: change["to"] for change in report["changes"]}
    require("activations" in changes, f"{report}")
    require("activations" not in [change["key"] for change in plain["changes"]], f"{plain}")
    require(report["seconds"]["after"] < plain["seconds"]["after"], f"{report} {plain}")
    held = sluice("tune", "--placement", MODEL, *words, "--hold", "activations", "--set",
                  f"activations={changes['activations']}", "--json").json()
    require(held["memory"]["accelerator"]["peak_bytes"] <= 24e9, f"{held['memory']}")
    sluice("tune", place / "run.db", "--activations", "--apply").refused(2, ["--activations"])


@test
def numbers_of_devices_are_compared_with_their_prices(place):
    words = ("--devices", "2,4", "--density", "0.01")
    rows = sluice("tune", MODEL, *ON_TESTBED[:2], *words, "--json").json()["rows"]
    require_equal([row["devices"] for row in rows], [2, 4], "devices")
    require(rows[1]["seconds"] < rows[0]["seconds"], "four are not faster than two")
    require_equal(rows[1]["price_usd"] - rows[0]["price_usd"], 2 * 2400, "two devices more")
    require(float(rows[1]["settings"]["density"]) >= 0.01, f"{rows[1]}")
    text = sluice("tune", MODEL, *ON_TESTBED[:2], *words).done().out
    require_words(text, ["SIMULATED", "USD", "<- cheapest"], "the table")


@test
def what_cannot_be_tuned_is_refused_with_exit_code_2(place):
    for arguments, words in [
            ((MODEL, *ON_TESTBED, "--hold", "bufers"), ["bufers", "'buffers'", "gradient_tier"]),
            ((MODEL, *ON_TESTBED, "--devices", "4..2"), ["backwards"]),
            ((MODEL, *ON_TESTBED, "--density", "0"), ["--density"]),
            ((MODEL, *ON_TESTBED, "--set", "devices=11"), ["11 devices", "has 10"]),
            ((place / "none.toml", *ON_TESTBED), ["none.toml"]),
            ((SAMPLES / "models/gpt3-175b.toml", *ON_TESTBED[:2]), ["use more devices"])]:
        reply = sluice("tune", *arguments).refused(2, words)
        require_equal(reply.out, "", "standard output")


if __name__ == "__main__":
    sys.exit(main())
