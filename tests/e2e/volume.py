"""Small file systems for tests of full and read-only drives; mounting takes root."""

import contextlib
import os
import shutil
import subprocess

from sluice_run import Skip


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"`{' '.join(map(str, command))}`: {done.stderr.strip()}")


@contextlib.contextmanager
def mounted(folder, *mount_arguments):
    if os.geteuid() != 0:
        raise Skip("mounting a file system takes root")
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", *map(str, mount_arguments), str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@contextlib.contextmanager
def small_volume(place, size):
    """An ext4 of `size` bytes on a loop device."""
    mkfs = shutil.which("mkfs.ext4") or shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    if mkfs is None:
        raise Skip("there is no mkfs.ext4")
    image = place / "volume.image"
    with open(image, "wb") as file:
        file.truncate(size)
    _run(mkfs, "-q", "-F", "-m", "0", "-O", "^has_journal", image)
    with mounted(place / "volume", "-o", "loop", image) as folder:
        yield folder


def free_bytes(folder):
    volume = os.statvfs(folder)
    return volume.f_bavail * volume.f_frsize


def fill(folder, leave):
    """Takes all space but `leave` bytes; the file that does."""
    path = folder / "filler"
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes(folder) - leave)
    return path
