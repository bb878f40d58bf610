#!/usr/bin/env python3
"""Parameters on the drives: the numbers and the text of a run that has them in memory, bytes
that are those of the sizes in every clock, less memory than they take, no files, kill -9."""

import os
import shutil
import signal
import sys

import crash
from sluice_run import (SAMPLES, Running, Skip, database, main, require, require_equal,
                        require_words, setting_arguments, step_losses, test)
from volume import small_volume

# 142 million parameters: 284 MB in 16 bits, more than the run may have in memory.
LONG_MODEL = """\
name = "long"
layers = 45
hidden = 512
heads = 8
sequence = 16
vocabulary = 256
"""
LONG_PARAMETERS = 45 * (12 * 512 * 512 + 13 * 512) + (256 + 16) * 512 + 2 * 512
CAP_BYTES = 265_000_000
SPACE_BYTES = 5 << 30

# Layers of `deep` in parameters: the embedding, eight blocks, the head.
DEEP_MODEL = """\
name = "deep"
layers = 8
hidden = 128
heads = 4
sequence = 32
vocabulary = 256
"""
BLOCK = 12 * 128 * 128 + 13 * 128
DEEP_LAYERS = [(256 + 32) * 128, *[BLOCK] * 8, 2 * 128]
PAGE = 4096


def numbers(report):
    return report["losses"], report["state_digest"], report["validation_loss"]


@test
def twenty_steps_give_the_same_numbers_and_text(place):
    some = {"grad_accum_steps": 2, "batch": 1, "sample_tokens": 6}
    plain = place.train("--json", "--steps", 20, output="plain", **some).json()
    ways = [
        {},
        {"method": "host", "pipeline": "serial", "activations": "offload"},
        {"wire": "native", "density": 1, "clock": "emulated", "time_scale": 0.01,
         "pipeline": "handover"},
        {"device": "soft", "activations": "offload", "parameter_buffer": "64KiB"},
        {"device": "soft", "method": "host", "gradient_work": "accelerator"},
        {"activations": "recompute", "state_cache": "auto", "commit_every": 3},
    ]
    for index, way in enumerate(ways):
        found = place.train("--json", "--steps", 20, output=f"way{index}", parameter_tier="storage",
                            **some, **way).json()
        require(numbers(found) == numbers(plain), f"numbers with {way}")
        require_equal(found["sample"], plain["sample"], f"text with {way}")


def moved(path):
    """Bytes a step of parameters out and in, by the record."""
    with database(path) as db:
        found = dict(db.execute(
            "SELECT s.value, sum(span.bytes) FROM span JOIN string s ON s.id = span.name_id "
            "WHERE span.step_id = (SELECT max(step_id) FROM span) AND s.value LIKE 'parameter%' "
            "GROUP BY s.value"))
    require("parameters_up" not in found, "parameters went up")
    return found.get("parameter_write", 0), found.get("parameter_read", 0)


def pages(first, count):
    return -(-(first + count) * 2 // PAGE) - first * 2 // PAGE


def read_again(buffer_pages):
    """Parameters that backward finds no more: going up, a layer that does not fit sends out the
    lowest ones. The embedding stays."""
    first = DEEP_LAYERS[0]
    inside = []
    for count in DEEP_LAYERS[1:]:
        inside.append((count, pages(first, count)))
        first += count
        while sum(size for _, size in inside) > buffer_pages:
            inside.pop(0)
    return sum(DEEP_LAYERS[1:]) - sum(count for count, _ in inside)


@test
def bytes_are_those_of_the_sizes_in_every_clock(place):
    (place / "deep.toml").write_text(DEEP_MODEL)
    every = sum(DEEP_LAYERS)
    asked = {"batch": 2, "sequence": 32, "parameter_tier": "storage"}
    widest = max(pages(sum(DEEP_LAYERS[:l]), DEEP_LAYERS[l]) for l in range(1, 10))
    for buffer, buffer_pages in ((0, 2 * widest), (400 * PAGE, 400), (1 << 30, 1 << 18)):
        wanted = (2 * every, 2 * (every + read_again(buffer_pages)))
        for clock in ("real", "emulated"):
            output = f"{clock}{buffer}"
            place.train("--steps", 3, output=output, clock=clock, time_scale=0.01,
                        model="deep.toml", parameter_buffer=buffer, **asked).done()
            found = moved(place / output / "run.db")
            # The last step's parameters are written behind it, and read once more to validate.
            require_equal(found[0], wanted[0], f"bytes written, {output}")
            require_equal(found[1], wanted[1] + 2 * every, f"bytes read, {output}")
        found = moved(place.simulate(place / "deep.toml", f"sim{buffer}.db", devices=2,
                                     pipeline="serial", parameter_buffer=buffer, **asked))
        require_equal(found, wanted, f"bytes simulated, {buffer}")


@test
def every_sample_model_is_simulated_with_its_parameters_on_the_drives(place):
    for model in sorted((SAMPLES / "models").glob("*.toml")):
        out, back = moved(place.simulate(model, devices=10, method="csd", parameter_tier="storage"))
        require(0 < out < back <= 2 * out, f"{model.name}: {out} bytes out, {back} back")


@test
def more_parameters_than_memory(place):
    free = shutil.disk_usage(place.path).free
    if free < SPACE_BYTES:
        raise Skip(f"the state takes 4 GB of disk and {free} bytes are free")
    (place / "long.toml").write_text(LONG_MODEL)
    settings = {"model": "long.toml", "batch": 1, "sequence": 16, "optimizer": "sgd",
                "activations": "offload", "bounce_memory": "8MiB", "buffers": 1,
                "subgroup_elements": 1_000_000, "devices": 1, "host_memory": CAP_BYTES}
    require(LONG_PARAMETERS * 2 > CAP_BYTES, "the parameters fit")
    place.train("--steps", 1, output="memory", **settings).refused(
        2, ["smallest host_memory", "parameters"])
    arguments = place.arguments("--json", "--steps", 1, parameter_tier="storage", **settings)
    run = Running(arguments, place.path)
    _, status, usage = os.wait4(run.process.pid, 0)
    run.process.returncode = os.waitstatus_to_exitcode(status)
    report = run.wait().json()
    require_equal(report["parameters"], LONG_PARAMETERS, "parameters")
    peak = max(usage.ru_maxrss * 1024, report["host_memory_peak_bytes"])
    plan = report["host_memory_plan_bytes"]
    print(f"  {peak} bytes were resident, {plan} planned, {CAP_BYTES} allowed, "
          f"{LONG_PARAMETERS * 2} of parameters")
    require(peak <= plan <= CAP_BYTES, f"{peak} bytes were resident, {plan} were planned")


@test
def killed_runs_resume_to_the_same_numbers(place):
    whole = crash.killed_with(place, 5, kills=6, parameter_tier="storage")
    plain = place.train("--json", "--steps", 40, output="plain", **crash.SETTINGS).json()
    require(numbers(plain) == numbers(whole.report), "numbers of a run with them in memory")
    require_equal(list(place.path.rglob("parameters*.slc")), [], "files after the runs")


@test
def a_run_that_is_stopped_goes_on(place):
    run = place.start("--json", "--steps", 100_000, parameter_tier="storage", commit_every=7)
    run.wait_for(lambda: (place / "out/run.db.socket").exists() and
                 step_losses(place / "out/run.db"), "a step")
    run.signal(signal.SIGINT)
    stopped = run.wait().json()
    step = stopped["last_step"] if "last_step" in stopped else len(stopped["losses"])
    rest = place.train("--json", "--resume", "--steps", step + 5, parameter_tier="storage").json()
    require_equal(len(rest["losses"]), 5, "steps after the stop")


@test
def a_drive_without_room_is_refused_before_the_first_step(place):
    (place / "deep.toml").write_text(DEEP_MODEL.replace("128", "256"))
    settings = {"model": "deep.toml", "parameter_tier": "storage", "devices": 1}
    with small_volume(place, 198 << 20) as volume:
        reply = place.train("--steps", 2, **settings, state_dir=volume / "state")
        require(reply.code != 0, "a run without room for its parameters ran")
        require_words(reply.err, ["parameters.slc", "free"], "the message")


@test
def what_cannot_be_is_refused(place):
    place.train(parameter_tier="drives").refused(2, ["drives", "memory", "storage"])
    place.train(parameter_tier="storage", parameter_buffer=4096).refused(
        2, ["parameter_buffer=4096", "widest layer"])
    place.train(parameter_tier="storage", backend="xrt", xclbin="x").refused(
        2, ["backend", "parameter_tier", "memory", "host"])


if __name__ == "__main__":
    sys.exit(main())
