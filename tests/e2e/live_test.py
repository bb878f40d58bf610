#!/usr/bin/env python3
"""A run that is changed while it is live: `sluice knobs`, `set` and `stop` from another process,
exactness under tuning, changes that take themselves back, and what is refused."""
# Runs alone: a change is taken back for the time of a step, by the emulated clock.

import os
import random
import signal
import sys

from live_run import (Line, require_as_untouched, started, step_of, stopped, wait_for_next_step)
from sluice_run import database as open_database
from sluice_run import main, require, require_equal, require_words, sluice, test


def changes_of(database):
    with open_database(database) as connection:
        return connection.execute(
            "SELECT step_id, name, old, new, who FROM knob_change JOIN knob ON knob.id = knob_id "
            "ORDER BY knob_change.rowid").fetchall()


@test
def a_change_takes_effect_at_a_step_and_is_in_the_database(place):
    run, database = started(place)
    listed = sluice("knobs", database).done().out
    require_words(listed, ["buffers", "device_map", "queue_depth", "record", "1 to 64"], "knobs")
    said = sluice("set", database, "buffers=5", "pipeline=serial").done().out
    require_words(said, ["In force after step", "buffers=5 pipeline=serial"], "set")
    values = {knob["key"]: knob["value"]
              for knob in sluice("knobs", database, "--json").json()["knobs"]}
    require_equal((values["buffers"], values["pipeline"]), ("5", "serial"), "values in force")
    at = int(said.split("step ")[1].split(":")[0])
    stopped(run, database)
    require(not os.path.exists(f"{database}.socket"), "the socket outlived the run")
    rows = changes_of(database)
    require_equal([row[1:] for row in rows],
                  [("pipeline", "nbuffer", "serial", "user"), ("buffers", "3", "5", "user")],
                  "knob_change")
    require_equal({row[0] for row in rows}, {at}, "steps of knob_change")


@test
def what_cannot_be_is_refused_and_changes_nothing(place):
    run, database = started(place)
    for settings, words in (
            (["bufers=4"], ["bufers", "did you mean 'buffers'?"]),
            (["buffers=0"], ["buffers", "1 to 64"]),
            (["buffers=4", "density=7"], ["density"]),
            (["density=nan"], ["density"]),
            (["steps=4"], ["steps cannot change in a live run", "buffers"]),
            (["device_map=1,2,3"], ["device_map has 3 shares but devices = 2"]),
            (["gradient_tier=memory"], ["needs method"]),
            (["bounce_memory=900GB"], ["memory plan needs"])):
        sluice("set", database, *settings).refused(2, words)
    sluice("set", database, "buffers").refused(2, ["expected key=value"])
    sluice("set", database, "buffers=4", "--revert-if", "steptime>5%").refused(
        2, ["did you mean 'step_time'?"])
    stopped(run, database)
    require_equal(changes_of(database), [], "knob_change")
    sluice("set", database, "buffers=4").refused(2, ["no run listens there"])
    sluice("knobs", place / "nowhere.db").refused(2, ["no run listens there"])


def dense_knobs():
    """Values of every knob that leaves a run dense; those that go together are one set."""
    return {"pipeline": ["serial", "handover", "nbuffer"], "method": ["host", "csd"],
             "buffers": [1, 2, 3, 5, 8], "device_map": ["even", "3,1", "1,4", "1,0"],
             "wire": ["fp32", "native"], "error_feedback": ["true", "false"],
             "prefetch": ["true", "false"], "overlap": ["off", "exact"],
             "queue_depth": [1, 4, 64, 200],
             "io_bytes": ["4KiB", "64KiB", "1MiB"], "bounce_memory": ["8MiB", "32MiB"],
             "activations": ["keep", "recompute", "offload", "offload:1-2,recompute:3,keep"],
             "activation_buffer": ["0", "4KiB", "1MiB"], "commit_every": [1, 2, 5],
             "state_cache": ["0", "70KB", "auto"],
             "record": ["steps", "transfers", "all"]}


def random_settings(chance):
    knobs = dense_knobs()
    if chance.random() < 0.1:  # gradients in memory go with method=host
        return {"gradient_tier": "memory", "method": "host"}
    keys = chance.sample(sorted(knobs), chance.randint(1, 3))
    chosen = {key: chance.choice(knobs[key]) for key in keys}
    return {**chosen, **({"gradient_tier": "storage"} if "method" in chosen else {})}


@test
def a_hundred_live_changes_move_no_bit_of_a_dense_run(place):
    chance = random.Random(6)
    run, database = started(place)
    line = Line(database)
    knobs = {knob["key"] for knob in line.ask(id=0, do="knobs")["knobs"]}
    # activation_host needs an accelerator.
    require_equal(set(dense_knobs()) | {"density", "gradient_tier", "activation_host"}, knobs,
                  "knobs that are tried")
    for i in range(100):
        answer = line.ask(id=i, do="set", knobs=random_settings(chance), who="test")
        require(answer["ok"], f"refused: {answer}")
        if i % 5 == 0:
            wait_for_next_step(database)
    line.close()
    tuned = stopped(run, database)
    # The last change of a knob within a step counts; some are to the value in force.
    require(len(changes_of(database)) > 60, "fewer changes than asked for")
    require_as_untouched(place, tuned)


@test
def random_densities_live_are_the_same_as_planned_ones(place):
    """A hundred changes, some of them of the density, against a run that was given the densities
    alone."""
    chance = random.Random(7)
    run, database = started(place)
    line = Line(database)
    for i in range(100):
        settings = random_settings(chance)
        settings.pop("error_feedback", None)  # it changes what is sent
        settings.pop("wire", None)  # as does the wire of values that are selected
        if chance.random() < 0.3:
            settings["density"] = chance.choice([1, 0.5, 0.1, 0.02])
        if not settings:
            continue
        answer = line.ask(id=i, do="set", knobs=settings, who="test")
        require(answer["ok"], f"refused: {answer}")
        if i % 5 == 0:
            wait_for_next_step(database)
    line.close()
    live = stopped(run, database)
    densities = [(step, new) for step, knob, _, new, _ in changes_of(database)
                 if knob == "density"]
    require(len(densities) > 5, f"only {len(densities)} changes of the density")
    planned = [part for step, new in densities for part in ("--at", f"{step}:density={new}")]
    require_as_untouched(place, live, *planned)


@test
def live_densities_are_the_same_as_planned_ones(place):
    run, database = started(place, error_feedback="true")
    for density in ("0.1", "1", "0.02"):
        sluice("set", database, f"density={density}").done()
    live = stopped(run, database)
    planned = [part for step, knob, _, new, _ in changes_of(database)
               for part in ("--at", f"{step}:{knob}={new}")]
    require_as_untouched(place, live, *planned, error_feedback="true")


@test
def a_change_that_does_harm_takes_itself_back(place):
    # The emulated clock makes the platform's speed, not this machine's, decide.
    run, database = started(place, clock="emulated", time_scale=40)
    taken_back = sluice("set", database, "pipeline=serial", "--revert-if", "step_time>+5%",
                        "--watch-steps", 3)
    require_equal(taken_back.code, 5, "exit code of a change that was reverted")
    said = " ".join(taken_back.out.split())  # lines are wrapped
    require_words(said, ["In force after step", "Watching: step_time>+5%", "Reverted after step",
                         "Now pipeline=nbuffer"], "set --revert-if")
    said = sluice("set", database, "buffers=4", "--revert-if", "step_time>+500%").done().out
    require_words(said, ["Kept: step_time"], "set --revert-if")
    stopped(run, database)
    rows = changes_of(database)
    require_equal([row[1:4] for row in rows],
                  [("pipeline", "nbuffer", "serial"), ("pipeline", "serial", "nbuffer"),
                   ("buffers", "3", "4")], "knob_change")
    require_words(rows[1][4], ["revert: step_time", "limit +5 %"], "who took it back")


SETS = 20


@test
def a_set_is_answered_at_once_though_a_step_is_long(place):
    run, database = started(place, clock="emulated", time_scale=2000)
    line = Line(database)
    first = step_of(database)
    for i in range(SETS):
        require(line.ask(id=i, do="set", knobs={"buffers": 2 + i % 2})["ok"], "refused")
    passed = step_of(database) - first
    # Were each answered at the end of a step, as many steps would have passed.
    require(passed < SETS // 2, f"{SETS} sets, one after the other, took {passed} steps")
    line.close()
    run.signal(signal.SIGTERM)
    run.wait()


@test
def a_run_that_was_killed_leaves_a_socket_that_the_next_replaces(place):
    run, database = started(place)
    run.signal(signal.SIGKILL)
    run.wait()
    require(os.path.exists(f"{database}.socket"), "there is no stale socket to test with")
    sluice("knobs", database).refused(2, ["no run listens there"])
    run, database = started(place, "--resume")
    stopped(run, database)


@test
def who_subscribes_sees_steps_changes_and_the_end(place):
    run, database = started(place)
    line = Line(database)
    line.ask(id=1, do="subscribe")
    line.ask(id=2, do="set", knobs={"buffers": 2})
    wait_for_next_step(database)
    line.ask(id=3, do="stop")
    seen = list(line.events())
    run.wait().json()
    changes = [event for event in seen if event["event"] == "change"]
    require_equal([change["state"] for change in changes], ["in force"], "what became of it")
    require_equal(seen[-1]["event"], "end", "the last event")
    steps = [event["step"] for event in seen if event["event"] == "step"]
    require_equal(steps, list(range(steps[0], steps[0] + len(steps))), "steps in a row")
    line.close()


@test
def what_waits_when_a_run_stops_is_answered(place):
    """The change either came in time or not; whoever asked for it hears which."""
    for attempt in range(5):
        run, database = started(place, output=str(place / str(attempt)), clock="emulated",
                                state_dir=place / f"{attempt}/state", time_scale=100)
        line = Line(database)
        line.ask(id=1, do="subscribe")
        line.ask(id=2, do="set", knobs={"buffers": 2})
        line.ask(id=3, do="stop")
        changes = [event for event in line.events() if event["event"] == "change"]
        require_equal(len(changes), 1, "answers")
        require(changes[0]["state"] in ("in force", "refused"), f"{changes}")
        if changes[0]["state"] == "refused":
            require_equal(changes[0]["message"], "the run ended before its next step", "why")
        run.wait().json()
        line.close()


if __name__ == "__main__":
    sys.exit(main())
