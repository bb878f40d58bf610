#!/usr/bin/env python3
"""`mpirun -n N sluice train`: the losses of one rank with as many micro-batches, the same bits
again and on every rank, folders and databases of its own for each, and what is left when ranks are
killed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid

from launched import environment, mpirun, processes_with
from sluice_run import SLUICE, Failure, database, main, require, require_equal, require_words, test

RANKS = 3
# Steps of a few milliseconds: enough of them that a kill hits one.
SETTINGS = {"steps": 30, "validation_every": 0, "validation_batches": 1, "sample_tokens": 0,
            "clock": "real", "threads": 1}


class Launched:
    """Ranks of `sluice train` under mpirun, by one mark in their environment."""

    def __init__(self, place, *flags, ranks=RANKS, **settings):
        self.mark = uuid.uuid4().hex
        command = mpirun() + ["-n", str(ranks), str(SLUICE)] + [
            str(word) for word in place.arguments(*flags, **{**SETTINGS, **settings})]
        self.process = subprocess.Popen(command, cwd=place.path, env=environment(self.mark),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def done(self):
        out, err = self.process.communicate(timeout=300)
        require_equal(processes_with(self.mark), [], "processes that are left")
        return self.process.returncode, out, err

    def json(self):
        code, out, err = self.done()
        require_equal(code, 0, f"exit code: {err}")
        return json.loads(out)

    def ranks(self):
        """Process ids of the ranks, the launcher's left out."""
        found = []
        for pid in processes_with(self.mark):
            try:
                if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(SLUICE):
                    found.append(int(pid))
            except OSError:
                pass
        return found


def one_rank(place, **settings):
    return place.train("--json", output="one", grad_accum_steps=RANKS,
                       **{**SETTINGS, **settings}).json()


def near(found, wanted):
    return all(abs(a - b) <= 1e-6 * abs(b) for a, b in zip(found, wanted, strict=True))


@test
def ranks_have_the_losses_of_one_with_as_many_micro_batches_and_the_same_bits_again(place):
    plain = one_rank(place)
    found = [Launched(place, "--json", output=f"again{i}", **more).json()
             for i, more in enumerate(({}, {"method": "host", "devices": 1},
                                       {"overlap": "exact", "activations": "offload"}))]
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
    code, out, err = Launched(place, steps=3).done()
    require_equal(code, 0, f"exit code: {err}")
    require_equal(out.count("Done: steps 1 to 3"), 1, "reports")
    require_words(out, [f"· {RANKS} ranks", f"mpirun -n {RANKS} sluice train"], "report")
    code, out, err = Launched(place, output="wrong", buffers=0).done()
    require(code != 0, "a wrong setting is accepted")
    require_words(err, ["buffers"], "the error")


@test
def ranks_that_are_killed_go_on_to_the_same_bits(place):
    chance = random.Random(3)
    plain = Launched(place, "--json", output="whole").json()
    began = time.monotonic()
    Launched(place, "--json", output="timed").json()
    whole_s = time.monotonic() - began
    for kill in range(8):
        output = f"killed{kill}"
        run = Launched(place, "--json", output=output)
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
        resumed = Launched(place, "--json", *(["--resume"] if begun else []), output=output)
        code, out, err = resumed.done()
        if code != 0 and "never committed" in err:  # killed before there was anything to go on from
            shutil.rmtree(place / output, ignore_errors=True)
            code, out, err = Launched(place, "--json", output=output).done()
        if code != 0:
            raise Failure(f"kill {kill}: {code}: {err}")
        require_equal(json.loads(out)["state_digest"], plain["state_digest"], f"kill {kill}")


if __name__ == "__main__":
    sys.exit(main())
