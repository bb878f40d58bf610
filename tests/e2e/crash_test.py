#!/usr/bin/env python3
"""kill -9 at random instants, 20 times, and some more in fp32: the run resumes from its last commit
and ends with the numbers of a run that was left alone. scripts/soak/crash_soak.py does the same for
hours."""

import random
import signal
import sys

import crash
from family_models import FAMILIES
from sluice_run import check_database, committed_step, database, main, require_equal, test

KILLS = 20
SEED = 11


@test
def a_run_killed_20_times_ends_with_the_numbers_of_one_left_alone(place):
    whole = crash.Undisturbed(place, steps=60)
    killer = crash.Killer(random.Random(SEED), whole.startup_s)
    killed = 0
    while killed < KILLS:
        killed += crash.crash_and_resume(place, killer, whole, KILLS - killed,
                                         output=f"crash-{killed}")
    print("  kills:", ", ".join(f"{count} in {kind}" for kind, count in killer.counts.items()))


@test
def a_run_in_fp32_that_is_killed_ends_with_the_same_numbers(place):
    crash.killed_with(place, SEED + 1, kills=4, precision="fp32")


def killed_family(place, family, seed):
    text, settings = FAMILIES[family]
    (place / "family.toml").write_text(text)
    crash.killed_with(place, seed, kills=2, model="family.toml", **settings)


@test
def a_llama_that_is_killed_ends_with_the_same_numbers(place):
    killed_family(place, "llama", SEED + 2)


@test
def a_bert_under_dropout_that_is_killed_ends_with_the_same_numbers(place):
    killed_family(place, "bert", SEED + 3)


@test
def a_t5_that_is_killed_ends_with_the_same_numbers(place):
    killed_family(place, "t5", SEED + 4)


@test
def a_state_that_was_never_committed_is_begun_anew(place):
    # Slow emulated drives, so that the kill comes while the initial values are written.
    slow = {"clock": "emulated", "time_scale": 3000, "devices": 2}
    run = place.start(**slow)
    run.wait_for(lambda: (place / "out/state/commit.slc").exists(), "commit log")
    run.signal(signal.SIGKILL)
    run.wait()
    require_equal(committed_step(place / "out/state"), None, "committed step after the kill")
    place.state().refused(2, ["never committed", "out/state"])
    place.train("--resume").refused(2, ["never committed", "leave out --resume"])
    whole = place.train("--json", output="whole").json()
    again = place.train("--json").json()
    require_equal(again["state_digest"], whole["state_digest"], "digest of the second beginning")


@test
def steps_whose_rows_were_lost_in_a_kill_are_counted(place):
    steps = 400
    run = place.start("--steps", steps)
    run.wait_for(lambda: (committed_step(place / "out/state") or 0) >= 20, "20 steps")
    run.signal(signal.SIGKILL)
    run.wait()
    place.train("--resume", "--steps", steps).done()
    check_database(place / "out/run.db")
    with database(place / "out/run.db") as db:
        recorded = db.execute("SELECT count(*) FROM step").fetchone()[0]
        counted = db.execute("SELECT coalesce(sum(value), 0) FROM stat "
                             "WHERE name = 'steps_not_recorded'").fetchone()[0]
    require_equal(recorded + counted, steps, "recorded steps and steps counted as lost")


if __name__ == "__main__":
    sys.exit(main())
