#!/usr/bin/env python3
"""`mpirun -n N sluice train`: the losses of one rank with as many micro-batches, the same bits
again and on every rank, folders and databases of its own for each, and what is left when ranks are
killed."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import time

from launched import RANKS, SETTINGS, Launched, mpirun, three_ranks as launched
from sluice_run import (LIMIT_S, SLUICE, TESTBED, Failure, committed_step, database, main, require,
                        require_equal, require_words, sluice, test)


def one_rank(place, **settings):
    return place.train("--json", output="one", grad_accum_steps=RANKS,
                       **{**SETTINGS, **settings}).json()


def near(found, wanted):
    return all(abs(a - b) <= 1e-6 * abs(b) for a, b in zip(found, wanted, strict=True))


@test
def ranks_have_the_losses_of_one_with_as_many_micro_batches_and_the_same_bits_again(place):
    plain = one_rank(place)
    found = [launched(place, "--json", output=f"again{i}", **more).json()
             for i, more in enumerate(({}, {"method": "host", "devices": 1},
                                       {"overlap": "exact", "activations": "offload",
                                        "device": "soft"}))]
    # A table that embedding and head share is summed by rank first, and by micro-batch first with
    # one rank; the rest is the same to the bit (core_train_test).
    require(near(found[0]["losses"], plain["losses"]),
            f"losses: {found[0]['losses']} and {plain['losses']}")
    for other in found[1:]:
        require_equal((other["losses"], other["state_digest"]),
                      (found[0]["losses"], found[0]["state_digest"]), "other ways, same bits")
    for rank in range(RANKS):
        with database(place / f"again0/rank-{rank}/run.db") as db:
            meta = dict(db.execute("SELECT key, value FROM meta"))
            require_equal((meta["rank"], meta["ranks"]), (str(rank), str(RANKS)), "meta")
            sums = db.execute("SELECT count(*), sum(bytes) FROM span JOIN string s ON s.id = "
                              "span.name_id WHERE s.value = 'all_reduce'").fetchone()
            # Each layer's gradients in fp32, once a step.
            require_equal(sums, (SETTINGS["steps"] * 4, SETTINGS["steps"] * 4 *
                                 found[0]["parameters"]), "gradients summed")


@test
def one_rank_speaks_for_all(place):
    code, out, err = launched(place, steps=3).done()
    require_equal(code, 0, f"exit code: {err}")
    require_equal(out.count("Done: steps 1 to 3"), 1, "reports")
    require_words(out, [f"· {RANKS} ranks", f"mpirun -n {RANKS}",
                        "--mca mpi_yield_when_idle 1 sluice train"], "report")
    require_equal([str(path.relative_to(place.path)) for path in place.path.rglob("*.tokens*")],
                  ["out/text.tokens"], "files of tokens")
    code, out, err = launched(place, output="wrong", buffers=0).done()
    require_equal(code, 2, "exit code of a wrong setting")
    require_words(err, ["buffers"], "the error")
    require_equal(err.count("sluice: "), 1, f"sentences: {err}")


def two_that_differ(place, first, second):
    """A rank with each of two sets of settings."""
    words = [str(word) for word in place.arguments(**{**SETTINGS, **first})]
    return Launched(place, [*mpirun(), "-n", "1", str(SLUICE), *words, ":", "-n", "1"],
                    **{**SETTINGS, **second})


@test
def ranks_that_differ_make_nothing_and_the_first_says_in_what(place):
    (place / "other.txt").write_text("x" * (place / "text.txt").stat().st_size)
    for second, words in (({"seed": 1}, ["seed is 0 on rank 0 and 1 on rank 1"]),
                          ({"text": "other.txt"}, ["text is", "bytes", "on rank 1"]),
                          # What one of them alone cannot begin with.
                          ({"text": "gone.txt"}, ["rank 1: ", "gone.txt", "cannot read"])):
        code, out, err = two_that_differ(place, {}, second).done()
        require_equal(code, 2, f"exit code with {second}: {err}")
        require_words(err, words, "the error")
        require_equal((err.count("sluice: "), out), (1, ""), f"sentences: {err}")
        require(not (place / "out").exists(), "something was made")


def on_cluster(place, ranks, nodes):
    """The test bed, with a cluster of slow links."""
    path = place / "cluster.toml"
    path.write_text(TESTBED.read_text() + f"""
[cluster]
ranks = {ranks}
nodes = {nodes}
within = {{ bandwidth = "20 MB/s", latency = "1 ms" }}
between = {{ bandwidth = "10 MB/s", latency = "1 ms" }}
""")
    return path


@test
def communication_takes_what_the_cluster_says_under_the_emulated_clock(place):
    emulated = {"steps": 4, "clock": "emulated", "time_scale": 2}
    plain = launched(place, "--json", output="plain", **emulated).json()
    found = launched(place, "--json", output="cluster", platform=on_cluster(place, 3, 2),
                     **emulated).json()
    require_equal((found["losses"], found["state_digest"]),
                  (plain["losses"], plain["state_digest"]), "bits")
    require_words(found["mode"], ["3 ranks, communication EMULATED as 3x1", "EMULATED CLOCK x2"],
                  "mode")
    require("communication" not in plain["mode"], f"mode without a cluster: {plain['mode']}")
    with database(place / "cluster/rank-1/run.db") as db:
        sums = db.execute("SELECT s.bytes, s.dur, t.id FROM span s JOIN string n ON n.id = "
                          "s.name_id JOIN track t ON t.id = s.track_id "
                          "WHERE n.value = 'all_reduce'").fetchall()
        links = {name for name, in db.execute(
            "SELECT l.name FROM track_link t JOIN link l ON l.id = t.link_id WHERE t.track_id = ?",
            (sums[0][2],))}
    require_equal(links, {"rank.within", "all_reduce 3x1"}, "links of a sum")
    require_equal(len(sums), 4 * 4, "sums: of each layer, once a step")
    for size_bytes, dur_ns, _ in sums:
        # Around a ring of three, there and back; four hops before the bytes. The clock's
        # nanoseconds are rounded.
        require(dur_ns >= 2 * (size_bytes / 20e6 + 4e-3) * 1e9 - 10,
                f"a sum of {size_bytes} bytes took {dur_ns} ns")


@test
def ranks_that_are_no_part_of_the_cluster_are_told_what_is(place):
    code, _, err = launched(place, output="wrong", clock="emulated",
                            platform=on_cluster(place, 2, 2)).done()
    require(code != 0, "it is accepted")
    require_words(err, ["3 ranks are no part of a [cluster] of 2x2"], "the error")


@test
def ranks_that_are_killed_go_on_to_the_same_bits(place):
    chance = random.Random(3)
    plain = launched(place, "--json", output="whole").json()
    began = time.monotonic()
    launched(place, "--json", output="timed").json()
    whole_s = time.monotonic() - began
    for kill in range(8):
        output = f"killed{kill}"
        run = launched(place, "--json", output=output)
        victims = 0
        until = time.monotonic() + chance.uniform(0.3, 1.0) * whole_s
        while time.monotonic() < until and run.process.poll() is None:
            time.sleep(0.002)
        for pid in chance.sample(run.ranks(), k=min(len(run.ranks()), 1 + kill % 2)):
            try:
                os.kill(pid, signal.SIGKILL)
                victims += 1
            except ProcessLookupError:
                pass
        code, _, err = run.done()
        require(code != 0 or victims == 0, f"a killed rank goes unnoticed: {err}")
        states = [place / output / f"rank-{rank}/state/commit.slc" for rank in range(RANKS)]
        begun = all(path.exists() for path in states)
        if not begun:
            shutil.rmtree(place / output, ignore_errors=True)
        resumed = launched(place, "--json", *(["--resume"] if begun else []), output=output)
        code, out, err = resumed.done()
        if code != 0 and "never committed" in err:  # killed before there was anything to go on from
            shutil.rmtree(place / output, ignore_errors=True)
            code, out, err = launched(place, "--json", output=output).done()
        if code != 0:
            raise Failure(f"kill {kill}: {code}: {err}")
        require_equal(json.loads(out)["state_digest"], plain["state_digest"], f"kill {kill}")


@test
def a_rank_that_is_stopped_is_named_within_its_patience_and_a_resume_goes_on(place):
    settings = {"steps": 60, "schedule_steps": 60}
    four = {"ranks": 4, **settings}
    plain = launched(place, "--json", output="plain", **four).json()
    # Longer than this machine may take over a step of so small a model, whatever else it does.
    run = launched(place, "--json", output="stopped", rank_patience=8, **four)
    until = time.monotonic() + LIMIT_S
    while (committed_step(place / "stopped/rank-2/state") or 0) < 1:
        require(run.process.poll() is None, "it ended before a step was committed")
        require(time.monotonic() < until, "no step is committed")
        time.sleep(0.002)
    there = {rank_of(pid): pid for pid in run.ranks()}
    require(2 in there, f"no rank 2 among {there}, {run.process.poll()}")
    os.kill(there[2], signal.SIGSTOP)
    code, _, err = run.done()
    require(code != 0, f"a stopped rank goes unnoticed: {err}")
    require_words(err, ["no word of having joined it from rank", "all ranks end",
                        "go on with --resume"], "the error")
    require(re.search(r"no word of having joined it from ranks? [\d, ]*\b2\b", err),
            f"rank 2 is not named: {err}")
    found = launched(place, "--json", "--resume", output="stopped", **four).json()
    require_equal(found["state_digest"], plain["state_digest"], "digest after the resume")


def rank_of(pid):
    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return int(next(word.split(b"=")[1] for word in environment
                    if word.startswith(b"OMPI_COMM_WORLD_RANK=")))


@test
def a_patience_that_is_none_is_refused_by_one_of_the_ranks(place):
    code, _, err = launched(place, output="wrong", rank_patience=0).done()
    require(code != 0, "it is accepted")
    require_words(err, ["rank_patience", "1 to 86400"], "the error")


@test
def tasks_that_srun_has_told_nothing_of_one_another_are_refused(place):
    environment = {**os.environ, "SLURM_STEP_NUM_TASKS": "4"}
    arguments = place.arguments(steps=1)
    sluice(*arguments, cwd=place.path, env=environment).refused(2, ["4 tasks", "--mpi=pmix"])
    require(not (place / "out").exists(), "something is written")
    environment["SLURM_STEP_NUM_TASKS"] = "1"
    sluice(*arguments, cwd=place.path, env=environment).done()


if __name__ == "__main__":
    sys.exit(main())
