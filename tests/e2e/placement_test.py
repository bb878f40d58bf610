#!/usr/bin/env python3
"""`sluice tune --placement`: what it plans takes what it says when it is simulated; which caps it
keeps to, what it refuses, and how it is stopped; `plan`, its old name. By the emulated clock:
placement_times_test.py."""

import shlex
import signal
import sys

from sluice_run import (SAMPLES, TESTBED, Running, main, require, require_equal, require_words,
                        setting_arguments, sluice, test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"
PLACEMENT = ("tune", "--placement")


def on_testbed(**settings):
    return (*PLACEMENT, MODEL, "--platform", TESTBED,
            *setting_arguments({"devices": 4, "batch": 16, **settings}))


@test
def the_planned_settings_give_the_step_that_is_promised(place):
    plan = sluice(*on_testbed(accelerator_memory="8GB"), "--json").json()
    require(plan["memory"]["accelerator"]["peak_bytes"] <= 8e9, f"{plan['memory']}")
    words = shlex.split(plan["command"])[1:]
    require_equal(words[0], "simulate", "the command")
    found = sluice(*words, "--json").json()["seconds"]["total"]
    require(abs(found / plan["seconds"]["planned"] - 1) < 1e-9, f"{found}, {plan['seconds']}")
    require(plan["seconds"]["bound"] <= found, f"below the bound: {plan['seconds']}")
    for case in plan["special_cases"]:
        if case["fits"]:
            require(found <= 1.002 * case["seconds"], f"{case} is shorter than {found}")


@test
def with_room_for_everything_no_activation_moves(place):
    plan = sluice(*on_testbed(activations="offload"), "--json").json()
    require_equal(plan["activations"], {"moved_bytes": 0, "resident_bytes": 0}, "activations")


@test
def the_text_says_times_caps_bytes_and_a_command_on_eighty_columns(place):
    text = sluice(*on_testbed(accelerator_memory="8GB")).done().out
    require_words(text, ["PLANNED by simulated steps", "Lower bound with these settings:",
                         "above it.", "worth", "Memory:", "accelerator_memory", "Bytes of a step:",
                         "SSDTrain's cut", "Fuyou's amount", "steps simulated",
                         "sluice simulate", "--set activations="], "the text")
    longest = max(text.splitlines(), key=len)
    require(len(longest) <= 80, f"{len(longest)} columns: {longest}")
    durable = sluice(*on_testbed(), "--commit-every", 4, "--json").json()
    require("commit_every" in [row["key"] for row in durable["settings"]], f"{durable}")


@test
def a_command_with_a_setting_that_no_line_holds_is_pasted_as_it_stands(place):
    mix = ",".join(f"recompute:{layer}" for layer in range(1, 30, 2)) + ",keep"
    words = [*on_testbed(accelerator_memory="60GB", activations=mix), "--hold", "activations",
             "--simulations", 5]
    text = sluice(*words).done().out
    pasted = text[text.index("\n  sluice simulate "):].strip()
    require(len(mix) > 80 and mix in pasted, f"the mix is not whole: {pasted}")
    said = sluice(*words, "--json").json()["command"]
    require_equal(shlex.split(pasted.replace("\\\n", " ")), shlex.split(said), "the command")


@test
def a_recorded_run_is_planned_on_the_machine_that_it_shows(place):
    sluice("simulate", MODEL, "--platform", TESTBED, "--db", place / "sim.db",
           *setting_arguments({"devices": 4, "pipeline": "serial"})).done()
    plan = sluice(*PLACEMENT, place / "sim.db", "--json").json()
    require(plan["seconds"]["planned"] < plan["seconds"]["start"], f"{plan['seconds']}")
    words = shlex.split(plan["command"])[1:]
    require_equal(words[:3], ["simulate", "--like", str(place / "sim.db")], "the command")
    found = sluice(*words, "--json").json()["seconds"]["total"]
    require(abs(found / plan["seconds"]["planned"] - 1) < 0.03, f"{found}, {plan['seconds']}")


@test
def ctrl_c_ends_the_search_with_the_best_plan_so_far(place):
    run = Running([*PLACEMENT, SAMPLES / "models/gpt3-175b.toml", "--platform", TESTBED,
                   "--set", "devices=10", "--simulations", "100000", "--json"], place.path)
    try:
        run.process.wait(3)
    except Exception:  # it is still searching, as it should be
        run.signal(signal.SIGINT)
    plan = run.wait().json()
    require(plan["stopped"], "it was not stopped")
    require(plan["seconds"]["planned"] <= plan["seconds"]["start"], f"{plan['seconds']}")


@test
def the_old_name_plans_and_says_the_new_one(place):
    (place / "my model.toml").write_text(MODEL.read_text())
    words = ("--platform", TESTBED, "--set", "devices=4", "--simulations", 3, "--json")
    now = sluice(*PLACEMENT, "my model.toml", *words, cwd=place.path)
    then = sluice("--color", "never", "plan", "my model.toml", *words, cwd=place.path)
    require_equal(then.json(), now.json(), "the plan")
    said = then.err.strip().split(": ")
    require_equal(shlex.split(said[-1]), ["sluice", "--color", "never", *PLACEMENT,
                                          "my model.toml", *map(str, words)], "the new name")
    require_equal(len(said), 3, "one line on stderr")
    sluice("simulate", MODEL, "--platform", TESTBED, "--db", place / "sim.db").done()
    for run in (("--from", "sim.db"), ("--from=sim.db",)):
        then = sluice("plan", *run, "--simulations", 3, "--json", cwd=place.path)
        require_words(then.err, ["sluice tune --placement sim.db --simulations 3"], "the new name")
        require(then.json()["simulated"], "no plan")
    require(" plan" not in sluice("--help").done().out, "--help lists the old name")


@test
def what_only_the_other_search_has_is_refused_by_its_name(place):
    for option in ("--devices=1..2", "--density=0.1", "--apply", "--activations",
                   "--write-platform=p.toml", "--model=m.toml"):
        name = option.split("=")[0]
        sluice(*PLACEMENT, place / "run.db", option).refused(2, [name, "--placement"])
    for option in ("--ranks=2x1", "--commit-every=2", "--simulations=9"):
        name = option.split("=")[0]
        sluice("tune", MODEL, "--platform", TESTBED, option).refused(2, [name, "--placement"])
    sluice("tune", place.run_file).refused(2, ["run.toml", "--placement"])
    sluice("tune", MODEL, "--platfrom", TESTBED).refused(2, ["--platfrom", "'--platform'"])


@test
def what_cannot_be_planned_is_refused_with_exit_code_2(place):
    (place / "old.db").write_text("")
    for arguments, words in [
            ((), ["start is missing", "RUN.db"]),
            ((place.run_file, "--hold", "bufers"), ["bufers", "'buffers'", "activations"]),
            ((place / "none.toml",), ["none.toml"]),
            ((place / "old.db",), ["old.db"]),
            ((place / "old.db", "--platform", TESTBED), ["--platform", "brings its own"]),
            ((place.run_file, "--set", "host_memory=120MB"), ["no plan fits", "host_memory"]),
            ((place.run_file, "--commit-every", "0"), ["--commit-every"]),
            ((MODEL, "--platform", TESTBED, "--set", "devices=11"), ["11 devices", "has 10"])]:
        reply = sluice(*PLACEMENT, *arguments, cwd=place.path).refused(2, words)
        require_equal(reply.out, "", "standard output")


LLAMA = SAMPLES / "models/llama-13b.toml"
CLUSTER = ("--platform", SAMPLES / "platforms/a800-64.toml")


def plan_of_ranks(*arguments):
    return sluice(*PLACEMENT, LLAMA, *CLUSTER, *arguments, "--json").json()


@test
def ranks_are_planned_under_a_cap_and_simulated_as_planned(_):
    plan = plan_of_ranks("--ranks", "8x4", "--set", "batch=1")
    require_equal(plan["ranks"], "8x4", "ranks")
    require(plan["exhaustive"] and plan["fitting"] < plan["candidates"], f"{plan}")
    require(plan["seconds"]["bound"] <= plan["seconds"]["planned"] * 1.000001, f"{plan['seconds']}")
    memory = plan["memory"]
    parts = sum(memory[part] for part in ("parameters", "gradients", "state", "activations",
                                          "buffers"))
    require_equal(parts, memory["peak_bytes"], "the sum")
    require_equal(memory["cap_bytes"], 80_000_000_000, "the cluster's memory")
    require(memory["activations"] > 0 and parts <= memory["cap_bytes"], f"{memory}")
    step = sluice(*shlex.split(plan["command"])[1:], "--json").json()
    require_equal(step["seconds"]["total"], plan["seconds"]["planned"], "seconds, simulated again")
    require_equal(step["memory_bytes"], memory["peak_bytes"], "memory, simulated again")
    require(plan["others"], "runners-up")
    for other in plan["others"]:
        require(other["why"] and other["seconds"] >= plan["seconds"]["planned"], f"{other}")


@test
def a_cap_that_is_too_small_names_the_smallest_that_works(_):
    words = ("--ranks", "8x4", "--set", "batch=1", "--state", "memory")
    on = (*PLACEMENT, LLAMA, *CLUSTER, *words)
    refused = sluice(*on, "--set", "accelerator_memory=1GB").refused(
        2, ["no sharding over 8x4 ranks fits", "the smallest cap that works is"])
    least = int(refused.err.split("the smallest cap that works is ")[1].split(" bytes")[0])
    plan = plan_of_ranks(*words, "--set", f"accelerator_memory={least}B")
    require_equal(plan["memory"]["peak_bytes"], least, "memory")
    sluice(*on, "--set", f"accelerator_memory={least - 1}B").refused(2, [f"{least} bytes"])


@test
def the_page_of_ranks_is_for_people(_):
    text = sluice(*PLACEMENT, LLAMA, *CLUSTER, "--ranks", "8x8", "--set", "batch=1").done().out
    require_words(text, ["PLANNED by simulated steps: llama-13b", "8x8 ranks (in a node x nodes)",
                         "sharding=", "activations=", "Memory of a rank:", "Why no other:",
                         "no other choice is shorter", "sluice simulate", "--shard"], "the page")
    require(all(len(line) <= 80 for line in text.splitlines()), f"wide lines: {text}")


@test
def ranks_with_their_state_on_drives_are_simulated_as_planned(_):
    on = (*PLACEMENT, SAMPLES / "models/gpt2-1.6b.toml", "--platform",
          SAMPLES / "platforms/smartssd-2x4.toml", "--ranks", "2x4", "--set", "method=csd")
    for cap in ("24GB", "1500MB"):
        plan = sluice(*on, "--state", "drives", "--set", f"accelerator_memory={cap}",
                      "--json").json()
        require(plan["exhaustive"], f"{plan}")
        require_equal(plan["plan"]["state"], "drives", "state")
        leaves = "offload" in plan["plan"]["activations"]
        require(leaves or cap == "24GB", f"something leaves where memory is short: {plan['plan']}")
        step = sluice(*shlex.split(plan["command"])[1:], "--json").json()
        require_equal(step["seconds"]["total"], plan["seconds"]["planned"], "seconds again")
        require_equal(step["memory_bytes"], plan["memory"]["peak_bytes"], "memory again")
    text = sluice(*on).done().out
    require_words(text, ["PLANNED by simulated steps", "no other choice is shorter"], "the page")
    require(all(len(line) <= 80 for line in text.splitlines()), f"wide lines: {text}")


@test
def what_ranks_do_not_have_is_refused(_):
    on = (*PLACEMENT, LLAMA, *CLUSTER)
    for arguments, words in [(("--ranks", "16x8"), "more than the cluster's 8x8"),
                             (("--ranks", "8by8"), "is no scope"),
                             (("--ranks", "8x8", "--set", "buffers=3"), "--set buffers"),
                             (("--ranks", "8x8", "--hold", "buffers"), "--hold buffers"),
                             (("--ranks", "8x8", "--state", "drives"), "no [[device]]"),
                             (("--ranks", "8x8", "--state", "cloud"), "memory and drives"),
                             (("--ranks", "8x8", "--commit-every", "4"), "excludes")]:
        sluice(*on, *arguments).refused(2, [words])
    sluice(*PLACEMENT, LLAMA, "--ranks", "8x8").refused(2, ["--platform"])
    sluice(*PLACEMENT, MODEL, "--platform", TESTBED, "--ranks", "2x1").refused(
        2, ["needs [cluster]"])


if __name__ == "__main__":
    sys.exit(main())
