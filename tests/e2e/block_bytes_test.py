#!/usr/bin/env python3
"""What the run database says crossed a drive's link is what the block device itself counted: runs
on throttled loop devices, with live changes and resumes between methods. Takes root."""

import pathlib
import subprocess
import sys

from sluice_run import database, main, require, require_equal, test
from throttled import throttled_drives

SECTOR = 512
# Besides what the schedule moves, the file system writes inodes and bitmaps, and opening a state
# reads its header and its commit log: some pages.
METADATA_BYTES = 128 << 10
# 0.9 million parameters: a step moves 14 MB out of the drives.
MODEL = """\
name = "small"
layers = 4
hidden = 128
heads = 2
sequence = 32
vocabulary = 256
"""


def block_name(mount_point):
    device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", mount_point], capture_output=True,
                            text=True, check=True).stdout.strip()
    return pathlib.Path(device).name


def block_bytes(drives):
    """{device: (read, written)} as the kernel counts them (Documentation/block/stat.rst)."""
    subprocess.run(["sync", "-f", drives / "dev0"], check=True)
    subprocess.run(["sync", "-f", drives / "dev1"], check=True)
    counted = {}
    for number in range(2):
        stat = pathlib.Path("/sys/block", block_name(drives / f"dev{number}"), "stat")
        fields = stat.read_text().split()
        counted[number] = (int(fields[2]) * SECTOR, int(fields[6]) * SECTOR)
    return counted


def recorded_bytes(path):
    """{device: (read, written)} over the drives' links: payload and padding."""
    if not path.exists():
        return {0: (0, 0), 1: (0, 0)}
    with database(path) as db:
        rows = db.execute("SELECT link, direction, sum(bytes + padding_bytes) FROM link_bytes "
                          "WHERE link LIKE 'csd%.drive' GROUP BY link, direction").fetchall()
        require_equal(db.execute("SELECT count(*) FROM stat WHERE severity != 'info' "
                                 "AND value > 0").fetchone(), (0,), "kinds of lost records")
    sums = {(link, direction): size for link, direction, size in rows}
    return {number: tuple(sums.get((f"csd{number}.drive", way), 0) for way in ("read", "write"))
            for number in range(2)}


def check_run(place, drives, name, *flags, **settings):
    """Trains on the drives; what both counted meanwhile differs by metadata alone."""
    run_db = place / "out/run.db"
    block, recorded = block_bytes(drives), recorded_bytes(run_db)
    # Without --json, whose digest reads the whole state once more when the run is over.
    place.train(*flags, state_dir=drives, clock="real", devices=2, subgroup_elements=100_000,
                **settings).done()
    block_after, recorded_after = block_bytes(drives), recorded_bytes(run_db)
    for number in range(2):
        for way, word in enumerate(("read", "written")):
            moved = recorded_after[number][way] - recorded[number][way]
            counted = block_after[number][way] - block[number][way]
            require(moved > 8 << 20, f"{name}: drive {number}: only {moved} bytes {word}")
            print(f"  {name}, drive {number}, {word}: recorded {moved}, the block device "
                  f"{counted - moved:+d}", file=sys.stderr)
            require(0 <= counted - moved <= METADATA_BYTES,
                    f"{name}: drive {number}: {moved} bytes {word} are recorded, and its block "
                    f"device counted {counted}")


@test
def the_record_has_the_bytes_that_the_block_devices_counted(place):
    (place / "nano.toml").write_text(MODEL)
    with throttled_drives(place, 2) as drives:
        check_run(place, drives, "host, then csd, then moved", "--at", "2:method=csd",
                  "--at", "4:device_map=3,1", "--at", "4:pipeline=serial", method="host", steps=6)
        check_run(place, drives, "resumed, csd to host", "--resume", "--at", "8:method=host",
                  "--at", "9:gradient_tier=memory", method="csd", device_map="3,1", steps=10)
        check_run(place, drives, "resumed, compressed", "--resume", "--at", "12:density=0.05",
                  method="csd", wire="native", device_map="1,1", steps=15)


if __name__ == "__main__":
    sys.exit(main())
