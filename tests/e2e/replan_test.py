#!/usr/bin/env python3
"""A run whose drive becomes slow plans again by itself: a throttled loop device, whose limit is
lowered meanwhile. Takes root."""

import sys

from live_run import step_of
from sluice_run import database, main, require_equal, require_words, sluice, step_losses, test
from throttled import throttle, throttled_drives

# 0.9 million parameters: a step moves 25 MB over the drive.
MODEL = """\
name = "small"
layers = 4
hidden = 128
heads = 2
sequence = 32
vocabulary = 256
"""
# A plan turns some of these once the drive is what a step waits for.
SETTINGS = {"method": "host", "devices": 1, "clock": "real", "subgroup_elements": 100_000,
            "pipeline": "serial", "buffers": 1, "steps": 400, "validation_every": 0,
            "validation_batches": 1, "sample_tokens": 0}


def replans(path):
    with database(path) as db:
        return db.execute("SELECT step_id, name, new, who FROM knob_change JOIN knob ON "
                          "knob.id = knob_id WHERE who LIKE 'replan%'").fetchall()


@test
def a_drive_that_slows_down_sets_off_a_plan_that_is_recorded_and_changes_no_number(place):
    (place / "small.toml").write_text(MODEL)
    settings = {**SETTINGS, "model": "small.toml"}
    with throttled_drives(place, 1) as drives:
        run = place.start(replan="true", state_dir=drives / "dev0/state", **settings)
        run_db = str(place / "out/run.db")
        run.wait_for(lambda: step_of(run_db) >= 20, "20 steps")
        throttle("limit", drives, 60)
        run.wait_for(lambda: replans(run_db), "another plan")
        throttle("limit", drives, 0)
        sluice("stop", run_db).done()
        said = run.wait().done()
    changed = replans(run_db)
    require_words(changed[0][3], ["drives do", "% of what they did", "predicted"], "reason")
    require_words(said.err, ["replan: drives do"], "terminal")
    # In the same learning rates as if the run had gone on to its end.
    untouched = place.train("--json", output="plain", **settings).json()
    losses = list(step_losses(run_db).values())
    require_equal(losses, untouched["losses"][:len(losses)], "losses")


if __name__ == "__main__":
    sys.exit(main())
