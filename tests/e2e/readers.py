"""Programs of others that read what Sluice writes, for tests: in the environment that scripts/setup
makes beside the build's own, or in the one that SLUICE_READERS names."""

import os
import pathlib
import subprocess

from sluice_run import Skip

READERS = pathlib.Path(os.environ.get("SLUICE_READERS") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sluice/readers"))
READER_LIMIT_S = 300
NSYS_AI = "0.3.0"
PERFETTO = "0.59.1"
TENSORBOARD = "2.20.0"
PROMETHEUS_CLIENT = "0.23.1"


def reader(package, version):
    """The Python of the environment that has a package in this version."""
    python = READERS / "bin/python"
    said = subprocess.run(
        [python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))"],
        capture_output=True, text=True, check=False) if python.exists() else None
    found = said.stdout.strip() if said and said.returncode == 0 else "none"
    if found != version:
        raise Skip(f"{package} {version} is not in {READERS} ({found} is); scripts/setup puts it "
                   "there")
    return python
