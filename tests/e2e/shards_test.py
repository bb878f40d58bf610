#!/usr/bin/env python3
"""`mpirun -n N sluice train` with parts of parameters and optimizer state, on the tiny model in
libtorch: the losses of ranks that have all, the bytes that MPI is really asked to move, and what is
left when ranks are killed.

    tests/e2e/shards_test.py [--kills 100] [words of tests]
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import uuid

from launched import Launched, mpirun
from sluice_run import (BUILD, SAMPLES, Failure, committed_step, main, require,
                        require_equal, require_words, test)

SETTINGS = {"batch": 1, "sequence": 32, "steps": 3, "schedule_steps": 20, "warmup_steps": 2,
            "validation_every": 0, "validation_batches": 1, "sample_tokens": 0, "clock": "real",
            "devices": 1, "threads": 1, "record": "off"}
# Two nodes of two ranks; by the scope of the parameters, on which the order of sums depends.
TRIPLES = {"1x1": ["1x1,1x1,2x2", "1x1,2x2,2x2"],
           "2x1": ["2x1,2x1,2x1", "2x1,2x1,2x2"],
           "2x2": ["2x2,2x2,2x2"]}
MIXED = "2x1,2x1,2x2"
KILLS = 6


def sharded(triple, mesh):
    names = ("shard_parameters", "shard_gradients", "shard_state")
    return {**dict(zip(names, triple.split(","), strict=True)), "mesh": mesh}


def launched(place, *flags, ranks=4, more_environment=None, **settings):
    words = [word for name, value in (more_environment or {}).items()
             for word in ("-x", f"{name}={value}")]
    return Launched(place, [*mpirun(), "-n", str(ranks), *words], "--json", *flags,
                    run=SAMPLES / "runs/tiny.toml",
                    **{"text": place / "text.txt", **SETTINGS, **settings})


@test
def shards_have_the_losses_of_whole_ranks_and_one_digest_a_scope_of_parameters(place):
    plain = launched(place, output=place / "whole").json()
    for parameters, triples in TRIPLES.items():
        digests = {}
        for triple in triples:
            found = launched(place, output=place / triple.replace(",", "-"),
                             **sharded(triple, "2x2")).json()
            require(all(abs(a - b) <= 1e-6 * abs(b) for a, b in
                        zip(found["losses"], plain["losses"], strict=True)),
                    f"losses of {triple}: {found['losses']} and {plain['losses']}")
            digests[triple] = found["state_digest"]
        require_equal(len(set(digests.values())), 1, f"digests with {parameters}: {digests}")


# Bytes --------------------------------------------------------------------------------------------

# Elements of the tiny model's layers: embedding, four blocks, head. A block of the norm has 2^14.
LAYERS = [384 * 256] + 4 * [12 * 256 ** 2 + 13 * 256] + [512]
NORM_BLOCK = 1 << 14


def size(scope):
    ranks, nodes = scope.split("x")
    return int(ranks) * int(nodes)


def bytes_of_a_step(triple, ranks):
    """What all ranks send to others, by the table of docs/sharding.md; gradients in fp32. Embedding
    and head stay from forward to backward."""
    s_p, _, s_os = map(size, triple.split(","))
    groups = ranks // s_p
    sent = 0
    for i, elements in enumerate(LAYERS):
        gathers = 1 if i in (0, len(LAYERS) - 1) else 2
        sent += groups * (s_p - 1) * 2 * elements * gathers
        sent += groups * (s_p - 1) * 4 * elements
        sent += groups * (s_p - 1) * 8 * -(-elements // NORM_BLOCK)
        sent += 2 * (ranks // s_p - 1) * 4 * elements
    return sent + ranks // s_os * (s_os // s_p - 1) * 2 * sum(LAYERS)


def sent_bytes(place, ranks, **settings):
    """What all ranks asked MPI to send, as counted at its profiling interface."""
    counts = place / uuid.uuid4().hex
    counts.mkdir()
    report = launched(place, ranks=ranks, output=counts / "out",
                      more_environment={"LD_PRELOAD": str(BUILD / "bin/mpi_byte_counts.so"),
                                        "SLUICE_MPI_COUNTS": str(counts)}, **settings).json()
    require_equal(report["parameters"], sum(LAYERS), "parameters")
    counted = [path.read_text() for path in counts.glob("*.sent")]
    require_equal(len(counted), ranks, "ranks that counted")
    return sum(map(int, counted))


@test
def mpi_is_asked_for_the_bytes_of_the_table(place):
    ranks = 8
    # What one step more sends. Ranks that have all tell one another as much besides gradients.
    def of_a_step(**settings):
        return (sent_bytes(place, ranks, steps=3, **settings) -
                sent_bytes(place, ranks, steps=2, **settings))
    words = of_a_step() - bytes_of_a_step("1x1,1x1,1x1", ranks)
    require(0 <= words < 10_000, f"{words} bytes of words in a step")
    for triple in ("1x1,1x1,2x4", "2x1,2x1,2x4", "2x4,2x4,2x4"):
        require_equal(of_a_step(**sharded(triple, "2x4")), bytes_of_a_step(triple, ranks) + words,
                      f"bytes of a step of {triple}")


# Kills --------------------------------------------------------------------------------------------

KILLED = {"steps": 12, **sharded(MIXED, "2x2")}


def wait_for_the_instant(chance, kind, run, output, startup_s):
    """At random while a run starts and trains, or as a step is committed."""
    state = output / f"rank-{chance.randrange(4)}/state"
    wanted = chance.randint(1, 10)
    until = time.monotonic() + chance.uniform(0.3, 1.2) * startup_s
    while run.process.poll() is None:
        if kind == "commit" and (committed_step(state) or 0) >= wanted:
            time.sleep(chance.uniform(0, 0.01))
            return
        if kind == "any" and time.monotonic() >= until:
            return
        time.sleep(0.001)


def kill(chance, run, count):
    victims = 0
    ranks = run.ranks()
    for pid in chance.sample(ranks, k=min(len(ranks), count)):
        try:
            os.kill(pid, signal.SIGKILL)
            victims += 1
        except ProcessLookupError:
            pass
    return victims


def resume(place, output):
    begun = all((output / f"rank-{rank}/state/commit.slc").exists() for rank in range(4))
    code, out, err = (launched(place, "--resume", output=output, **KILLED).done() if begun
                      else (2, "", "never committed"))
    if code != 0 and "never committed" in err:  # killed before there was anything to go on from
        shutil.rmtree(output, ignore_errors=True)
        return "anew", launched(place, output=output, **KILLED).json()
    if code != 0:
        raise Failure(f"resume: {code}: {err}")
    return "resumed", json.loads(out)


@test
def sharded_ranks_that_are_killed_go_on_to_the_same_bits(place):
    chance = random.Random(4)
    began = time.monotonic()
    plain = launched(place, output=place / "whole", **KILLED).json()
    whole_s = time.monotonic() - began
    came = {}
    for number in range(KILLS):
        output = place / f"killed{number}"
        run = launched(place, output=output, **KILLED)
        wait_for_the_instant(chance, "any" if number % 3 == 0 else "commit", run, output, whole_s)
        victims = kill(chance, run, 1 + number % 2)
        code, _, err = run.done()
        require(code != 0 or victims == 0, f"a killed rank goes unnoticed: {err}")
        how, report = resume(place, output)
        require_equal(report["state_digest"], plain["state_digest"], f"kill {number}, {how}")
        if KILLS > 10 and (number + 1) % 10 == 0:
            print(f"  {number + 1} of {KILLS} kills", flush=True)
        came[f"{victims} killed, {how}"] = came.get(f"{victims} killed, {how}", 0) + 1
        shutil.rmtree(output, ignore_errors=True)
    print("  kills:", ", ".join(f"{count} times {what}" for what, count in sorted(came.items())))


@test
def settings_of_shards_that_are_wrong_are_refused(place):
    code, _, err = launched(place, output=place / "wrong", **sharded("2x1,1x1,1x1", "2x2")).done()
    require(code != 0, "a wrong triple is accepted")
    require_words(err, ["breaks the rule of order"], "the error")


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    sys.exit(main())
