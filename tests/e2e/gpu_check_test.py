#!/usr/bin/env python3
"""scripts/gpu_check on the software accelerator: every step passes or says why not, and one archive
has what somebody elsewhere needs."""

import subprocess
import sys
import tarfile

from sluice_run import ROOT, SLUICE, Skip, main, require, require_equal, require_words, test


def gpu_check(place, *arguments):
    if not (SLUICE.parent / "core_model_torch_cuda_test").exists():
        raise Skip("core_model_torch_cuda_test is not built")
    if not (SLUICE.parent.parent / "lib/libsluice_soft_accelerator.so").exists():
        raise Skip("the software accelerator is not built")
    return subprocess.run([ROOT / "scripts/gpu_check", "--bin", SLUICE.parent, "--steps", "2",
                           "--pairs", "1", "--skip", "calibrate", "--into", place.path, *arguments],
                          capture_output=True, text=True, check=False)


def archived(place):
    (path,) = place.path.glob("gpu_check-*.tar.gz")
    with tarfile.open(path) as tar:
        return tar.getnames()


@test
def all_of_it_passes_on_the_software_accelerator(place):
    done = gpu_check(place, "--device", "soft")
    table = done.stdout.split("\n\n")[-2]
    require_equal(done.returncode, 0, f"exit code ({done.stdout} {done.stderr})")
    require_words(done.stdout, ["what", "doctor", "a step beside the processor's",
                                "tiny.toml, all recorded", "their losses",
                                "what recording costs", "Left: "], "the table")
    require("FAILED" not in table, table)
    names = archived(place)
    for name in ("table.txt", "run.db", "doctor.log"):
        require(any(found.endswith(name) for found in names), f"no {name} in {names}")


@test
def a_device_that_is_not_there_fails_each_step_and_stops_none(place):
    done = gpu_check(place, "--device", "soft:7")  # a name that is none
    require_equal(done.returncode, 1, f"exit code ({done.stdout} {done.stderr})")
    table = done.stdout.split("\n\n")[-2]
    require(table.count("FAILED") >= 3, table)
    require_words(table, ["tiny.toml on the processor", "pair 1"], "the table")
    require(any(name.endswith("table.txt") for name in archived(place)), "no table in the archive")


if __name__ == "__main__":
    sys.exit(main())
