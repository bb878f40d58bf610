#!/usr/bin/env python3
"""State that stays in memory (state_cache) and commits every N steps (commit_every): the same
numbers for every size, method and N; the bytes that are saved, in the database; what a kill,
Ctrl-C and a change of knobs leave; refusals."""

import random
import signal
import sys
import time

from live_run import steps_in
from sluice_run import (NANO_PARAMETERS, committed_step, database, main, require, require_equal,
                        sluice, step_losses, test)

PAGE = 4096
ELEMENTS = 1024  # whole pages
SUBGROUP_BYTES = 3 * 4 * ELEMENTS
SUBGROUPS = -(-NANO_PARAMETERS // ELEMENTS)
COMMON = {"subgroup_elements": ELEMENTS, "devices": 2}


def half(method):
    """Bytes that hold half of the state: of the host, or of each of two devices."""
    kept = SUBGROUPS // 2
    return SUBGROUP_BYTES * (kept if method == "host" else kept // 2)


def numbers(reply):
    report = reply.json()
    return report["losses"], report["state_digest"]


def state_bytes(path):
    """{step: [bytes read, bytes written]} of the optimizer's state, and the steps with commits."""
    with database(path) as db:
        rows = db.execute("SELECT step_id, s.value, sum(bytes) FROM span "
                          "JOIN string s ON s.id = span.name_id WHERE step_id IS NOT NULL "
                          "GROUP BY step_id, s.value").fetchall()
        steps = [row[0] for row in db.execute("SELECT id FROM step ORDER BY id")]
    commits = sorted(step for step, name, _ in rows if name == "commit")
    moved = {step: [0, 0] for step in steps}
    for step, name, size in rows:
        if name in ("state_read", "state_write"):
            moved[step][name == "state_write"] += size
    return moved, commits


def largest_of(reply):
    return int(reply.err.split("the largest state_cache that fits is ")[1].split()[0].rstrip(","))


@test
def sizes_methods_and_commits_give_the_same_numbers(place):
    whole = numbers(place.train("--json", "--steps", 7, output="plain", **COMMON))
    for method in ("host", "csd"):
        for size in (0, half(method), "auto"):
            for every in (1, 3):
                output = f"{method}-{size}-{every}"
                found = numbers(place.train("--json", "--steps", 7, output=output, method=method,
                                            state_cache=size, commit_every=every, **COMMON))
                require_equal(found, whole, f"method={method} state_cache={size} every {every}")
                require_equal(place.digest(f"{output}/state"), whole[1], f"{output} on disk")


@test
def what_stays_is_not_moved_and_the_database_says_so(place):
    for clock in ({"clock": "real"}, {"clock": "emulated", "time_scale": 0.01}):
        for method in ("host", "csd"):
            kept = SUBGROUPS // 2 if method == "host" else SUBGROUPS // 2 // 2 * 2
            rest = NANO_PARAMETERS - kept * ELEMENTS  # parameters; the last subgroup is not kept
            output = f"{method}-{clock['clock']}"
            place.train("--steps", 7, output=output, method=method, state_cache=half(method),
                        commit_every=3, record="all", **COMMON, **clock).done()
            moved, commits = state_bytes(place / output / "run.db")
            require_equal(commits, [2, 5, 6], f"steps of {output} that committed")
            for step, (read, written) in moved.items():
                require_equal(read, 12 * (NANO_PARAMETERS if step == 0 else rest),
                              f"bytes of state read in step {step} of {output}")
                require_equal(written, 12 * (NANO_PARAMETERS if step in commits else rest),
                              f"bytes of state written in step {step} of {output}")


@test
def a_simulation_counts_the_same_bytes(place):
    """Means of the steps from one commit to the next."""
    count = NANO_PARAMETERS
    for method, link in (("host", "host"), ("csd", "csd0.internal")):
        for size, kept in ((0, 0), ("auto", count)):
            reply = sluice("simulate", place / "nano.toml", "--platform",
                           "sample_models/platforms/smartssd-a5000.toml", "--json", "--set",
                           f"method={method}", "--set", "pipeline=serial", "--set",
                           f"subgroup_elements={ELEMENTS}", "--set", f"state_cache={size}",
                           "--set", "commit_every=4", "--set", "host_memory=16GB", "--set",
                           "sequence=32")
            moved = reply.json()["bytes"][link]
            total = {way: sum(phase[way] for phase in moved.values()) if way not in moved
                     else moved[way] for way in ("read", "write")}
            gradient = 4 * count
            require_equal(total["read"], 12 * (count - kept) + gradient, f"{method} read {size}")
            require_equal(total["write"],
                          12 * (count - kept) + 12 * kept // 4 + (gradient if method == "host"
                                                                  else 0),
                          f"{method} written {size}")


@test
def a_kill_loses_fewer_steps_than_lie_between_commits(place):
    steps, every = 60, 4
    settings = {**COMMON, "commit_every": every, "state_cache": half("csd"), "record": "all"}
    whole = place.train("--json", "--steps", steps, output="whole", **settings).json()
    source = random.Random(3)
    for method in ("csd", "host"):
        output = f"killed-{method}"
        settings = {**settings, "method": method, "state_cache": half(method)}
        flags, kills, step = [], 0, 0
        while kills < 5:
            run = place.start("--json", "--steps", steps, *flags, output=output, **settings)
            wanted = step + source.randint(1, 3) * every
            while run.is_running() and (committed_step(place / output / "state") or 0) < wanted:
                time.sleep(0.0005)
            time.sleep(source.uniform(0, 0.02))
            run.signal(signal.SIGKILL)
            if run.wait().code == 0:
                break
            kills += 1
            flags = ["--resume"]
            after = place.state("--json", "--verify", state_dir=f"{output}/state").json()["step"]
            require(after >= step, f"step {step} was committed before, now it is {after}")
            require(after % every == 0, f"step {after} is committed, of every {every}")
            recorded = max(step_losses(place / output / "run.db"), default=-1) + 1
            # The step under way may be recorded before what it waits for is committed.
            require(recorded - after <= every, f"step {recorded} ended, and {after} is committed")
            step = after
        require(kills > 0, "the run was too fast to be killed")
        report = place.train("--json", "--steps", steps, *flags, output=output, **settings).json()
        require_equal(report["state_digest"], whole["state_digest"], f"digest after {kills} kills")
        require_equal(report["losses"], whole["losses"][report["first_step"]:], "losses")


@test
def ctrl_c_commits_the_step_under_way(place):
    settings = {**COMMON, "commit_every": 1000, "state_cache": "auto", "steps": 100_000}
    run = place.start("--json", **settings)
    run.wait_for(lambda: steps_in(place / "out/run.db") > 3, "four steps")
    require_equal(committed_step(place / "out/state"), 0, "committed step of a live run")
    run.signal(signal.SIGINT)
    stopped = run.wait().json()
    require_equal(committed_step(place / "out/state"), stopped["steps"], "committed step")
    last = stopped["steps"] + 3
    rest = place.train("--json", "--resume", **{**settings, "steps": last}).json()
    whole = place.train("--json", output="whole", **{**settings, "steps": last}).json()
    require_equal((stopped["losses"] + rest["losses"], rest["state_digest"]),
                  (whole["losses"], whole["state_digest"]), "the two pieces")


@test
def a_change_of_knobs_commits_first_and_moves_no_bit(place):
    whole = numbers(place.train("--json", "--steps", 9, output="plain", **COMMON))
    changed = place.train("--json", "--steps", 9, "--at", "2:method=host",
                          "--at", "2:state_cache=30KB", "--at", "4:device_map=0,1",
                          "--at", "7:state_cache=0", "--at", "8:state_cache=auto",
                          state_cache="auto", commit_every=5, record="all", **COMMON)
    require_equal(numbers(changed), whole, "with changes between commits")
    _, commits = state_bytes(place / "out/run.db")
    require_equal(commits, [1, 3, 4, 6, 7, 8], "steps that committed")
    require_equal((place / "out/state/dev0/state.slc").stat().st_size, PAGE, "a drained device")


@test
def a_cache_that_does_not_fit_the_host_is_refused_with_the_largest_that_does(place):
    state = SUBGROUPS * SUBGROUP_BYTES
    for method, each in (("host", state), ("csd", state // 2)):
        settings = {**COMMON, "method": method, "output": method}
        reply = place.train("--steps", 1, host_memory="1MB", **settings)
        reply.refused(2, ["the smallest host_memory that would do is"])
        cap = int(reply.err.split("host_memory that would do is ")[1].split("MiB")[0]) << 20
        # A cap between a run without a cache and one with all in memory.
        while (reply := place.train("--steps", 1, host_memory=cap, state_cache=each, **settings,
                                    state_dir=f"{method}-{cap}")).code == 0:
            cap -= SUBGROUP_BYTES
        reply.refused(2, ["for state_cache", "the largest state_cache that fits is"])
        largest = largest_of(reply)
        require(0 < largest < each and largest % SUBGROUP_BYTES == 0, f"the largest is {largest}")
        place.train("--steps", 1, host_memory=cap, state_cache=largest + SUBGROUP_BYTES,
                    **settings).refused(2, ["the largest state_cache that fits is"])
        for index, size in enumerate((largest, "auto")):
            report = place.train("--json", "--steps", 1, host_memory=cap, state_cache=size,
                                 **settings, state_dir=f"{method}-fits-{index}").json()
            require(report["host_memory_plan_bytes"] <= cap, f"planned above {cap}")
            require(report["host_memory_peak_bytes"] <= cap, f"resident above {cap}")


@test
def a_cache_that_does_not_fit_a_device_is_refused_with_the_largest_that_does(place):
    settings = {**COMMON, "device_memory": SUBGROUP_BYTES * 6, "buffers": 1}
    reply = place.train("--steps", 1, state_cache=SUBGROUP_BYTES * 9, **settings)
    reply.refused(2, ["the largest state_cache that fits is"])
    largest = largest_of(reply)
    require_equal(largest, SUBGROUP_BYTES * 4, "the largest beside a buffer set")
    for index, size in enumerate((largest, "auto")):
        place.train("--steps", 1, state_cache=size, output=f"fits-{index}", **settings).done()


@test
def settings_that_mean_nothing_are_refused(place):
    place.train(state_cache=100).refused(2, ["state_cache=100 keeps nothing", "give that at least"])
    place.train(state_cache="most").refused(2, ["state_cache", "most", "auto"])
    place.train(state_cache=-1).refused(2, ["state_cache", "auto"])
    place.train(commit_every=0).refused(2, ["commit_every", "1 to 1000"])


if __name__ == "__main__":
    sys.exit(main())
