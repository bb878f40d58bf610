"""Programs under mpirun, and whether any process of theirs is left."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time
import uuid

from sluice_run import LIMIT_S, SLUICE, Skip, require_equal

MARK = "SLUICE_TEST_MARK"
# mpirun does not wait for ranks that it has killed to be gone.
END_LIMIT_S = 20


def mpirun():
    found = shutil.which("mpirun")
    if found is None:
        raise Skip("there is no mpirun (Debian: openmpi-bin)")
    return [found, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]


def environment(mark):
    """mpirun refuses root unless it is told twice that it is meant."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                **{MARK: mark})


def processes_with(mark):
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
    return found


def left_of(mark):
    """Those that do not end by themselves in the time that a busy machine may take for it."""
    until = time.monotonic() + END_LIMIT_S
    while (left := processes_with(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


class Launched:
    """Ranks of `sluice train` under a launcher (words up to the program), by one mark in their
    environment."""

    def __init__(self, place, launcher, *flags, run=None, **settings):
        self.mark = uuid.uuid4().hex
        command = [*launcher, str(SLUICE)] + [
            str(word) for word in place.arguments(*flags, run=run, **settings)]
        self.process = subprocess.Popen(command, cwd=place.path, env=environment(self.mark),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def done(self):
        out, err = self.process.communicate(timeout=LIMIT_S)
        require_equal(left_of(self.mark), [], "processes that are left")
        return self.process.returncode, out, err

    def json(self):
        code, out, err = self.done()
        require_equal(code, 0, f"exit code: {err}")
        return json.loads(out)

    def ranks(self):
        """Process ids of the ranks, the launcher's left out."""
        found = []
        for pid in processes_with(self.mark):
            with contextlib.suppress(OSError):
                if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(SLUICE):
                    found.append(int(pid))
        return found


RANKS = 3
# Steps of a few milliseconds: enough of them that a kill hits one.
SETTINGS = {"steps": 30, "validation_every": 0, "validation_batches": 1, "sample_tokens": 0,
            "clock": "real", "threads": 1}


def three_ranks(place, *flags, ranks=RANKS, **settings):
    return Launched(place, [*mpirun(), "-n", str(ranks)], *flags, **{**SETTINGS, **settings})
