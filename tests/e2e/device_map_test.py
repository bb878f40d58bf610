#!/usr/bin/env python3
"""Subgroups that change devices in a live run: they move with their next version, a share of
0 drains a device, what does not fit is refused before anything moves, and a kill at any instant
resumes from the last commit."""

import random
import shutil
import signal
import sqlite3
import sys
import time

from live_run import MANY_STEPS, require_as_untouched, started, stopped
from sluice_run import (SAMPLES, check_database, committed_step, main, require, require_equal,
                        require_words, sluice, test)
from state_files import PAGE, StateFiles
from volume import fill, free_bytes, small_volume

def wait_for_commit(run, state_dir):
    """Until a step that began after this call is committed."""
    step = committed_step(state_dir)
    run.wait_for(lambda: committed_step(state_dir) >= step + 2, "two more steps")


def devices_of(state_dir):
    """On which devices the last commit has subgroups."""
    files = StateFiles(state_dir)
    return {int(files.place(subgroup, 0)[0].parent.name[3:])
            for subgroup in range(files.subgroup_count)}


@test
def a_share_of_0_drains_a_device_with_the_next_commit(place):
    state = place / "out/state"
    for method, pipeline in (("host", "nbuffer"), ("csd", "serial"), ("csd", "handover"),
                             ("csd", "nbuffer")):
        run, database = started(place, method=method, pipeline=pipeline)
        sluice("set", database, "device_map=1,0").done()
        wait_for_commit(run, state)
        require_equal((state / "dev1/state.slc").stat().st_size, PAGE, "what is left on device 1")
        tuned = stopped(run, database)
        require_equal(devices_of(state), {0}, f"devices with {method}, {pipeline}")
        require_equal((state / "dev1/gradients.slc").stat().st_size, 0, "gradients on device 1")
        place.state("--verify").done()
        require_as_untouched(place, tuned)
        for folder in ("out", "plain"):
            shutil.rmtree(place / folder)


@test
def what_moves_is_counted_as_bytes_of_the_host_link_once(place):
    run, database = started(place, method="csd")
    files = StateFiles(place / "out/state")
    on_device_1 = [s for s in range(files.subgroup_count)
                   if files.place(s, 0)[0].parent.name == "dev1"]
    elements = sum(min(files.subgroup_elements,
                       files.parameter_count - s * files.subgroup_elements) for s in on_device_1)
    sluice("set", database, "device_map=1,0").done()
    wait_for_commit(run, place / "out/state")
    stopped(run, database)
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        moved = dict(((link, direction), size) for link, direction, size in connection.execute(
            "SELECT link.name, direction, sum(bytes) FROM span "
            "JOIN string ON string.id = name_id JOIN track_link USING (track_id) "
            "JOIN link ON link.id = link_id WHERE value = 'move_state' "
            "GROUP BY link.name, direction"))
        kernels = connection.execute("SELECT count(*) FROM kernel WHERE name = 'move_state'")
        kernel_count = kernels.fetchone()[0]
    # Out of the drive of device 1 and into the memory of device 0, each once over the host link.
    size = 12 * elements
    require_equal(moved, {("host", "read"): size, ("csd1.drive", "read"): size,
                          ("host", "write"): size}, "bytes by link")
    require_equal(kernel_count, 0, "transfers that the record calls kernels")


@test
def a_drain_that_does_not_fit_is_refused_with_the_numbers(place):
    # Device 1 is a drive of its own, with room for what it has and little more.
    with small_volume(place, 8 << 20) as volume:
        state = place / "out/state"
        state.mkdir(parents=True)
        (volume / "dev1").mkdir()
        (state / "dev1").symlink_to(volume / "dev1")
        filler = fill(volume, leave=700 << 10)
        run, database = started(place)
        before = (state / "dev1/state.slc").stat().st_size
        refused = sluice("set", database, "device_map=0,1").refused(
            2, ["device_map", "csd1", "would take", "has", "free"])
        require_words(refused.err, [f"({free_bytes(volume)} bytes)"], "what is free")
        require_equal((state / "dev1/state.slc").stat().st_size, before, "size of the file")
        # The other way there is room, and it is the run that was refused that goes on.
        sluice("set", database, "device_map=1,0").done()
        filler.unlink()
        sluice("set", database, "device_map=0,1").done()
        wait_for_commit(run, state)
        require_equal((state / "dev0/state.slc").stat().st_size, PAGE, "what is left on device 0")
        tuned = stopped(run, database)
        require_equal(devices_of(state), {1}, "devices")
        place.state("--verify").done()
        require_as_untouched(place, tuned)


@test
def a_share_above_the_platform_s_capacity_is_refused(place):
    text = (SAMPLES / "platforms/smartssd-a5000.toml").read_text()
    require('capacity = "4 TB"' in text, "the platform states no such capacity")
    (place / "small.toml").write_text(text.replace('capacity = "4 TB"', 'capacity = "800 KB"'))
    run, database = started(place, platform=place / "small.toml")
    sluice("set", database, "device_map=1,0").refused(
        2, ["device_map", "csd0", "holds 800 kB", "its share would take", "smaller share"])
    sluice("set", database, "device_map=3,2").done()
    stopped(run, database)


@test
def a_run_that_is_killed_while_subgroups_move_goes_on_from_its_last_commit(place):
    chance = random.Random(23)
    state = place / "out/state"
    moves = kills = 0
    run, database = started(place, durability="every_commit", subgroup_elements=1500, devices=3)
    for kill in range(12):
        for _ in range(chance.randint(1, 6)):
            shares = chance.choice(["1,0,0", "0,1,0", "0,0,1", "1,2,3", "3,0,1", "even"])
            settings = [f"device_map={shares}", f"method={chance.choice(['host', 'csd'])}",
                        f"pipeline={chance.choice(['serial', 'handover', 'nbuffer'])}"]
            sluice("set", database, "--no-wait", *settings).done()
            moves += 1
            time.sleep(chance.uniform(0, 0.03))
        run.signal(signal.SIGKILL)
        run.wait()
        kills += 1
        check_database(database)
        place.state("--verify").done()
        run, database = started(place, "--resume", durability="every_commit",
                                subgroup_elements=1500, devices=3)
    tuned = stopped(run, database)
    print(f"  {moves} changes of the map, {kills} kills, {tuned['steps']} steps", file=sys.stderr)
    require_as_untouched(place, tuned, subgroup_elements=1500, devices=3)


@test
def a_drained_device_leaves_with_the_next_resume(place):
    state = place / "out/state"
    run, database = started(place)
    stopped(run, database)
    place.train("--resume", devices=1, steps=MANY_STEPS).refused(
        2, ["subgroups lie on the last of 2 devices", "drain it first", "share 0"])
    run, database = started(place, "--resume")
    sluice("set", database, "device_map=1,0").done()
    wait_for_commit(run, state)
    first = stopped(run, database)["steps"]
    last = place.train("--json", "--resume", devices=1, steps=first + 5,
                       durability="never").json()
    require_equal((last["first_step"], last["steps"]), (first, first + 5), "steps")
    require(not (state / "dev1/state.slc").exists(), "the file of device 1 is still there")
    require_equal(len(place.state("--json", "--verify").json()["devices"]), 1,
                  "devices of the state")
    require_as_untouched(place, last)


if __name__ == "__main__":
    sys.exit(main())
