#!/usr/bin/env python3
"""Models train within the memory that they were given: GPT-2 with 124 million parameters and 1.5 GB
of optimizer state in 2 GiB, and a vocabulary of 151,936 in less than its logits take."""

import os
import shutil
import sys

from sluice_run import (SAMPLES, Running, Skip, main, require, require_equal, sample_text,
                        setting_arguments, test)

CAP_BYTES = 2 << 30
SPACE_BYTES = 6 << 30
PARAMETERS = 124_439_808


def available_memory_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


@test
def gpt2_124m_trains_in_2_GiB(place):
    free = shutil.disk_usage(place.path).free
    if free < SPACE_BYTES:
        raise Skip(f"its state takes 3 GB of disk and {free} bytes are free")
    if available_memory_bytes() < CAP_BYTES:
        raise Skip(f"only {available_memory_bytes()} bytes of memory are available")
    settings = {"text": sample_text(), "output": place / "gpt2", "host_memory": "2GiB"}
    run = Running(["train", SAMPLES / "runs/gpt2-124m.toml", "--steps", 2, "--json",
                   *setting_arguments(settings)], place.path)
    _, status, usage = os.wait4(run.process.pid, 0)
    run.process.returncode = os.waitstatus_to_exitcode(status)
    report = run.wait().json()
    require_equal(report["parameters"], PARAMETERS, "parameters")
    require_equal(len(report["losses"]), 2, "losses")
    # What the kernel says of the ended process, not only what it said of itself.
    peak = max(usage.ru_maxrss * 1024, report["host_memory_peak_bytes"])
    require(peak < CAP_BYTES, f"{peak} bytes were resident")
    require(peak <= report["host_memory_plan_bytes"] <= CAP_BYTES,
            f"{peak} bytes were resident, {report['host_memory_plan_bytes']} were planned")


# Qwen's vocabulary on a model that is small otherwise.
WIDE_MODEL = """\
family = "llama"
layers = 1
hidden = 64
heads = 2
kv_heads = 1
ffn = 128
sequence = 256
vocabulary = 151936
tied_tables = true
"""
TOKENS = 16 * 256


@test
def a_wide_vocabulary_trains_in_less_than_its_logits_take(place):
    (place / "wide.toml").write_text(WIDE_MODEL)
    logits_bytes = TOKENS * 151_936 * 2
    report = place.train("--json", "--steps", 2, model="wide.toml", batch=16, sequence=256,
                         activations="recompute", host_memory="900MB", output="wide").json()
    require_equal(len(report["losses"]), 2, "losses")
    peak = report["host_memory_peak_bytes"]
    require(peak <= 900_000_000 < logits_bytes,
            f"{peak} bytes were resident, and the logits take {logits_bytes}")


@test
def no_buffer_is_sized_by_wide_tables(place):
    model = WIDE_MODEL.replace("tied_tables = true", "").replace("hidden = 64", "hidden = 128")
    (place / "wide.toml").write_text(model)
    table_bytes = 151_936 * 128 * 2
    report = place.train("--json", "--steps", 2, model="wide.toml", batch=1, sequence=64,
                         activations="recompute", parameter_tier="storage", method="csd",
                         subgroup_elements=100_000, host_memory="300MB", output="pieces").json()
    require_equal(len(report["losses"]), 2, "losses")
    peak = report["host_memory_peak_bytes"]
    # With whole tables three of them would be there as parameters, and two as gradients.
    require(peak <= report["host_memory_plan_bytes"] <= 300_000_000 < 150_000_000 + 5 * table_bytes,
            f"{peak} bytes were resident, and a table takes {table_bytes}")


if __name__ == "__main__":
    sys.exit(main())
