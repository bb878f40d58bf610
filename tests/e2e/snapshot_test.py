#!/usr/bin/env python3
"""`sluice snapshot`: the last commit of a live run, kept as a state of its own: a resume
from it has the losses that the run had, and a disk without room leaves the run unharmed."""

import os
import sys

from live_run import require_as_untouched, started, stopped
from sluice_run import (committed_step, main, require, require_equal, require_words, sluice, test)
from state_files import PAGE, StateFiles
from volume import fill, free_bytes, small_volume

def resumed(place, kept, steps, **settings):
    return place.train("--json", "--resume", "--steps", steps, output="again",
                       state_dir=kept["path"], durability="never", **settings).json()


@test
def a_resume_from_a_snapshot_has_the_losses_that_the_run_had(place):
    for i, settings in enumerate(({}, {"method": "host", "pipeline": "serial", "devices": 3},
                                  {"commit_every": 3, "state_cache": "auto"},
                                  {"density": "0.1", "error_feedback": "true",
                                   "pipeline": "handover"})):
        run, database = started(place, **settings)
        kept = sluice("snapshot", database, "--json").json()
        more = sluice("snapshot", database).done().out
        require_words(more, ["Kept step", "snapshots/step-", "--resume --set state_dir="], "text")
        step = kept["step"]
        run.wait_for(lambda: committed_step(place / "out/state") > step + 5, "five more steps")
        whole = stopped(run, database)
        require_equal(kept["path"], str(place / f"out/snapshots/step-{step:06}"), "path")
        state = sluice("state", kept["path"], "--verify", "--json").json()
        require_equal(state["step"], step, "step of the snapshot")
        require(not list((place / "out/snapshots").glob("*.new")), "something unfinished is left")
        again = resumed(place, kept, whole["steps"], **settings)
        require_equal(again["first_step"], step, "first step after the snapshot")
        require_equal(again["losses"], whole["losses"][step:], f"losses with {settings}")
        require_equal(again["state_digest"], whole["state_digest"], f"digest with {settings}")
        for folder in ("out", "again"):
            (place / folder).rename(place / f"{folder}-{i}")


@test
def a_snapshot_has_one_version_of_each_subgroup(place):
    run, database = started(place)
    kept = sluice("snapshot", database, "--json").json()
    stopped(run, database)
    state = StateFiles(place / "out/state")
    slot_bytes = state.variable_count * (-(-4 * state.subgroup_elements // PAGE) * PAGE)
    sizes = [os.path.getsize(f"{kept['path']}/dev{d}/state.slc") for d in range(2)]
    require_equal(sum(sizes), 2 * PAGE + state.subgroup_count * slot_bytes, "bytes of the files")


@test
def a_disk_without_room_refuses_it_and_the_run_goes_on(place):
    whole = None
    with small_volume(place, 16 << 20) as volume:
        run, database = started(place, output=str(volume / "run"), state_dir=place / "out/state",
                                db=place / "out/run.db")
        filler = fill(volume, leave=300 << 10)
        before = free_bytes(volume)
        reply = sluice("snapshot", database).refused(1, ["no snapshot was kept",
                                                         "the run goes on", "free"])
        require_words(reply.err, ["step-"], "the refusal")
        require(free_bytes(volume) >= before - (8 << 10), "what was written was not given back")
        require(not list((volume / "run/snapshots").iterdir()), "something was left")
        filler.unlink()
        kept = sluice("snapshot", database, "--json").json()
        sluice("state", kept["path"], "--verify").done()
        whole = stopped(run, database)
    require_as_untouched(place, whole)


@test
def what_is_there_is_never_written_over(place):
    run, database = started(place, clock="emulated", time_scale=3000)
    kept = sluice("snapshot", database, "--json").json()
    folders = [place / f"out/snapshots/step-{kept['step'] + more:06}" for more in range(1, 3000)]
    for folder in folders:
        folder.mkdir()
    sluice("snapshot", database).refused(1, ["is there already", "the run goes on"])
    require(not any(list(folder.iterdir()) for folder in folders), "a folder was written to")
    stopped(run, database)
    sluice("snapshot", database).refused(2, ["no run listens there"])


if __name__ == "__main__":
    sys.exit(main())
