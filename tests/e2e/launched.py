"""Programs under mpirun, and whether any process of theirs is left."""

import contextlib
import os
import pathlib
import shutil

from sluice_run import Skip

MARK = "SLUICE_TEST_MARK"


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
