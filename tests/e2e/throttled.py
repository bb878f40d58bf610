"""Drives of a known speed: loop devices that the kernel throttles (bench/throttle). Takes root."""

import contextlib
import subprocess

from sluice_run import ROOT, Skip

THROTTLE = ROOT / "bench/throttle/throttled_devices.sh"


def throttle(*arguments):
    done = subprocess.run([THROTTLE, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Skip(done.stderr.strip().splitlines()[-1])


@contextlib.contextmanager
def throttled_drives(place, count):
    """A folder with dev0, dev1, ...: mounts of drives of 64 MiB and 400 MB/s."""
    drives = place / "drives"
    drives.mkdir()
    try:
        throttle("up", drives, count, 400, 64)
        yield drives
    finally:
        subprocess.run([THROTTLE, "down", drives], capture_output=True, check=False)
