#!/usr/bin/env python3
"""How near a simulated step on a calibrated platform comes to a real one, phase by phase.

    bench/train/against_simulation.py [--turns 1] [--drives 4x100] [--rows 3:8]

Makes loop devices that the kernel throttles (bench/throttle/throttled_devices.sh; needs root and
cgroup v1), lets `sluice calibrate --emulated-csds` measure them, trains tiny and gpt2-124m on them
by the real clock and simulates the same settings on the calibrated platform. Real figures are
means of the steps after the first three: with nbuffer a step begins with what the one before has
left, so the first ones are shorter, and a long one is followed by a short one. Nothing else should
run meanwhile. A virtual machine's processor may be a quarter slower a minute later, so its rates
are measured anew before and after each real run (of the model that runs, on --beside; the figures
of drives and emulated engines stay). Shown are means of the middle half of the runs and of the
simulations: where a processor is fast for a while and slow for another, the median of a few is
either. The last columns say how far runs and simulations are apart in forward and in backward. The
devices' images lie in memory (up to 6 GB): writing them back to the machine's own drive would take
processor time from forward.
"""
import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import sys

from bench_run import ROOT, THROTTLE, setting_arguments, sh

PHASES = ("forward", "backward", "update", "step")

# What a case sets over its model's; the simulation is given all of it too.
MODELS = {
    "tiny": {"batch": 64, "sequence": 128, "subgroup_elements": 65536, "buffers": 3},
    "gpt2-124m": {"batch": 8, "sequence": 256, "subgroup_elements": 10485760, "buffers": 2},
}
STEPS = {"tiny": 9, "gpt2-124m": 9}
COMMON = {"activations": "keep", "bounce_memory": "32MiB", "optimizer": "adamw"}
TWICE = {"method": "host", "buffers": 2}
HALF = {"method": "host", "buffers": 0.5}
# Here a third of forward runs while other drives update. When the last one ends is known to a
# tenth of a second (see DRIVES), so what is left has to be long.
COMPRESSED = {"method": "csd", "batch": 16}
CASES_OF_ONE = [{"method": "host"}, {"method": "csd"}, TWICE]
# Each of four drives has three subgroups, so that a third buffer is the last one that is used.
CASES_OF_FOUR = [{"method": "host"}, HALF, {"method": "host", "devices": 3},
                 COMPRESSED | {"density": 0.02}, COMPRESSED | {"density": 0.01},
                 {"method": "csd"},
                 {"method": "host", "pipeline": "handover"},
                 {"method": "csd", "pipeline": "handover"},
                 {"method": "host", "pipeline": "serial"},
                 {"method": "host", "bounce_memory": "128MiB"},
                 TWICE, {"method": "csd", "buffers": 2}]
# Model, drives, megabytes a second of each, the test files' size and the cases. The throttle hands
# out a tenth of a second's worth at a time; where in that tenth a transfer comes decides how long
# it takes. tiny, which moves 52 MB a step, therefore gets a drive on which a tenth is little, and
# gpt2-124m subgroups whose parts take four tenths each and a batch whose forward takes ten.
DRIVES = [
    ("1x200", "gpt2-124m", 1, 200, "256MiB", CASES_OF_ONE),
    ("4x100", "gpt2-124m", 4, 100, "256MiB", CASES_OF_FOUR),
    ("1x5", "tiny", 1, 5, "128MiB", CASES_OF_ONE),
]


def real_phases(database):
    """Means of the steps that have all of a step's update before them."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    rows = connection.execute(
        "SELECT forward_dur, backward_dur, update_dur, dur FROM step_phase "
        "JOIN step ON step.id = step_id WHERE step.id > 2").fetchall()
    return {phase: statistics.mean(row[i] for row in rows) / 1e9
            for i, phase in enumerate(PHASES)}


def train(arguments, model, drives_dir, platform, settings):
    out = f"{arguments.dir}/out"
    shutil.rmtree(out, ignore_errors=True)
    files = {"output": out, "state_dir": drives_dir, "platform": platform, "clock": "real",
             "validation_every": 0, "validation_batches": 1, "sample_tokens": 0,
             "host_memory": 0}
    sh(THROTTLE, "run", drives_dir, arguments.sluice, "train",
       ROOT / f"sample_models/runs/{model}.toml", "--json", "--steps", STEPS[model],
       *setting_arguments(files | settings))
    phases = real_phases(f"{out}/run.db")
    for path in pathlib.Path(drives_dir).glob("dev*/*.slc"):
        path.unlink()
    for path in pathlib.Path(drives_dir).glob("*.slc"):
        path.unlink()
    return phases


def model_file(model):
    return ROOT / f"sample_models/models/{model}.toml"


def simulate(arguments, model, platform, settings):
    report = json.loads(sh(arguments.sluice, "simulate",
                           model_file(model), "--platform", platform,
                           "--json", *setting_arguments(settings)))["seconds"]
    return {phase: report["total" if phase == "step" else phase] for phase in PHASES}


def section(text, name):
    """Where a table of a platform file begins and ends."""
    begin = text.index(f"\n[{name}]") + 1
    return begin, text.index("\n[", begin) + 1


def processor_of_now(arguments, model, platform):
    """The platform with what the processor does with this model at this moment: three times, since
    a calibration may fall into a moment in which it is half as fast."""
    os.makedirs(arguments.beside, exist_ok=True)
    text, found = pathlib.Path(platform).read_text(), []
    for i in range(3):
        now = pathlib.Path(arguments.dir, f"now{i}.toml")
        sh(arguments.sluice, "calibrate", arguments.beside, "--force", "--quick", "--size",
           "256MiB", "--model", model_file(model), "-o", now)
        measured, both = now.read_text(), text
        for name in ("host", "compute"):
            begin, end = section(both, name)
            both = both[:begin] + measured[slice(*section(measured, name))] + both[end:]
        now.write_text(both)
        found.append(now)
    return found


def in_turns(arguments, model, drives_dir, platform, before, settings):
    """Real phases of each turn, and the simulated ones of the calibrations around and between them.
    `before` is those of the row before; returns the last, too."""
    real, simulated = [], [simulate(arguments, model, now, settings) for now in before]
    for _ in range(arguments.turns):
        real.append(train(arguments, model, drives_dir, platform, settings))
        after = processor_of_now(arguments, model, platform)
        simulated += [simulate(arguments, model, now, settings) for now in after]
    return real, simulated, after


def middle_mean(values):
    """Without the lowest and the highest quarter."""
    dropped = len(values) // 4
    return statistics.mean(sorted(values)[dropped:len(values) - dropped])


def compare(arguments, name, model, drives_dir, count, platform, before, case):
    settings = COMMON | MODELS[model] | {"devices": count} | case
    if case.get("buffers"):  # a factor
        settings["buffers"] = int(MODELS[model]["buffers"] * case["buffers"])
    real, simulated, after = in_turns(arguments, model, drives_dir, platform, before, settings)
    cells, apart = [], []
    for phase in PHASES:
        measured = [one[phase] for one in real]
        predicted = [one[phase] for one in simulated]
        ratio = middle_mean(predicted) / middle_mean(measured)
        cells.append(f"{middle_mean(measured) * 1e3:7.0f} "
                     f"{middle_mean(predicted) * 1e3:7.0f} {ratio - 1:+6.1%}")
        apart.append(f"{max(measured) / min(measured) - 1:3.0%} "
                     f"{max(predicted) / min(predicted) - 1:3.0%}")
    what = f"{name} {settings['method']} b{settings['buffers']} d{settings['devices']}"
    what += "".join(f" {case[key]}" for key in ("batch", "bounce_memory", "pipeline", "density")
                    if key in case)
    print(f"{what:<28} | {' | '.join(cells)}   {', '.join(apart[:2])}", flush=True)
    return after


def measure(arguments, name, model, count, rate, size, cases):
    drives_dir = f"{arguments.dir}/{name}"
    platform = f"{arguments.dir}/{name}.toml"
    state_mib = 4096 if model == "gpt2-124m" else 512
    sh(THROTTLE, "up", drives_dir, count, rate, state_mib // count + 512)
    try:
        drives = [f"{drives_dir}/dev{i}" for i in range(count)]
        quick = ["--quick"] if arguments.quick else []
        print(sh(THROTTLE, "run", drives_dir, arguments.sluice, "calibrate", *drives, "--force",
                 "--emulated-csds", "--size", size, *quick, "-o", platform), flush=True)
        print(f"{model + ', ms: real, sim':<28} | " +
              " | ".join(f"{phase:^22}" for phase in PHASES))
        now = processor_of_now(arguments, model, platform)
        for case in cases[arguments.rows]:
            now = compare(arguments, name, model, drives_dir, count, platform, now, case)
    finally:
        sh(THROTTLE, "down", drives_dir)
        shutil.rmtree(drives_dir, ignore_errors=True)


def row_slice(text):
    begin, _, end = text.partition(":")
    return slice(int(begin or 0), int(end) if end else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=str(ROOT / "build/release/bin/sluice"))
    parser.add_argument("--dir", default="/dev/shm/sluice-drives")
    parser.add_argument("--quick", action="store_true", help="calibrate --quick")
    parser.add_argument("--beside", default="/var/tmp/sluice-calibrate",
                        help="a folder that is not in memory and not throttled")
    parser.add_argument("--turns", type=int, default=1,
                        help="runs of each row, a calibration between any two")
    parser.add_argument("--rows", type=row_slice, default=slice(None),
                        help="of each table only these, such as :2 or 3:8, counted from 0")
    parser.add_argument("--drives", default="", choices=["", *(row[0] for row in DRIVES)],
                        help="only the drives of this name")
    arguments = parser.parse_args()
    os.makedirs(arguments.dir, exist_ok=True)
    print(f"{sh('uname', '-sr').strip()}, {os.cpu_count()} processors, load "
          f"{os.getloadavg()[0]:.1f}")
    for name, *rest in DRIVES:
        if arguments.drives in ("", name):
            measure(arguments, name, *rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
