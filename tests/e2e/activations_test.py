#!/usr/bin/env python3
"""What layers keep for backward, on the drives: the numbers of keeping it, bytes that are those of
the plan in every clock, less memory, no files, and a drive that fills up."""

import os
import signal
import sys

from sluice_run import (DEEP_MODEL, database, main, require, require_equal, require_words, sluice,
                        test)
from volume import small_volume

# What a block of DEEP_MODEL keeps, in 16 bits and rows of its width: its input, each LayerNorm's
# two results, query-key-value, attention's result, the residual stream, the MLP before and after
# gelu. Two numbers of each LayerNorm a row; in fp32, each head's sums of attention.
TOKENS = 8 * 128
BLOCK_BYTES = TOKENS * ((1 + 2 + 3 + 1 + 1 + 2 + 4 + 4) * 128 * 2 + 2 * 2 * 2 + 4 * 4)
DEEP = {"model": "deep.toml", "batch": 8, "sequence": 128, "sample_tokens": 0,
        "validation_every": 0, "validation_batches": 1}


def deep(place):
    (place / "deep.toml").write_text(DEEP_MODEL)
    return DEEP


def moved(path):
    """Bytes a step of activations out and in, by the record."""
    with database(path) as db:
        found = dict(db.execute(
            "SELECT s.value, sum(span.bytes) FROM span JOIN string s ON s.id = span.name_id "
            "WHERE span.step_id = 1 AND s.value LIKE 'activation_%' GROUP BY s.value"))
    return found.get("activation_write", 0), found.get("activation_read", 0)


def numbers(report):
    return report["losses"], report["state_digest"]


@test
def twenty_steps_give_the_same_numbers_with_every_mix(place):
    some = {"grad_accum_steps": 2, "batch": 1}
    kept = place.train("--json", "--steps", 20, output="keep", **some).json()
    mixes = ["offload", "offload_inputs", "offload:1,recompute:2,keep",
             "recompute:1,offload_inputs:2,offload"]
    for index, mix in enumerate(mixes):
        for clock in ("real", "emulated"):
            found = place.train("--json", "--steps", 20, output=f"{clock}{index}", clock=clock,
                                time_scale=0.01, activations=mix, **some).json()
            require(numbers(found) == numbers(kept), f"{mix} under the {clock} clock")
            require(found["activations"]["read_bytes"] + found["activations"]["forwarded"] > 0,
                    f"nothing left with {mix}")


@test
def bytes_written_are_those_of_the_blocks_in_every_clock(place):
    settings = {**deep(place), "activations": "offload:1-8,keep", "activation_buffer": "4KiB"}
    for clock in ("real", "emulated"):
        place.train("--steps", 2, output=clock, clock=clock, time_scale=0.01, **settings).done()
        out, back = moved(place / clock / "run.db")
        # The last block may still be on its way when its backward begins, and is not read then.
        require_equal(out, 8 * BLOCK_BYTES, f"bytes out, {clock} clock")
        require(back in (7 * BLOCK_BYTES, 8 * BLOCK_BYTES), f"{back} bytes in, {clock} clock")
    asked = {key: settings[key] for key in ("batch", "sequence", "activations",
                                            "activation_buffer")}
    with database(place.simulate(place / "deep.toml", devices=1, **asked)) as db:
        found = dict(db.execute(
            "SELECT s.value, sum(span.bytes) FROM span JOIN string s ON s.id = span.name_id "
            "WHERE s.value LIKE 'activation_%' GROUP BY s.value"))
    # The modelled machine has an accelerator, which they leave first.
    for stage in ("activation_out", "activation_write"):
        require_equal(found[stage], 8 * BLOCK_BYTES, f"bytes of {stage}, simulated")
    require_equal(found["activation_in"], found["activation_read"], "bytes back, simulated")


@test
def eight_layers_take_less_than_53_percent_of_their_activations_memory(place):
    settings = deep(place)
    report = place.train("--json", "--steps", 2, activations="offload", **settings).json()
    peak = report["activations"]["resident_peak_bytes"]
    require(peak <= 0.53 * 8 * BLOCK_BYTES,
            f"{peak} of {8 * BLOCK_BYTES} bytes were in memory at once")
    require(report["host_memory_peak_bytes"] <= report["host_memory_plan_bytes"],
            "more memory was resident than planned")
    kept = place.train("--json", "--steps", 2, output="keep", **settings).json()
    require(report["host_memory_plan_bytes"] < kept["host_memory_plan_bytes"],
            "the plan of offloading is not smaller")


@test
def keeping_everything_moves_nothing(place):
    place.train("--steps", 2, activations="keep").done()
    require_equal(moved(place / "out/run.db"), (0, 0), "bytes out and in")


def activation_files(folder):
    return list(folder.rglob("activations*"))


@test
def no_file_is_seen_while_it_runs_or_after_a_kill(place):
    run = place.start("--steps", 100_000, activations="offload", output="killed")
    run.wait_for(lambda: (place / "killed/run.db").exists() and activation_links(run),
                 "files of activations that are open")
    require_equal(activation_files(place / "killed"), [], "files while it runs")
    run.signal(signal.SIGKILL)
    run.wait()
    require_equal(activation_files(place / "killed"), [], "files after the kill")
    again = place.train("--json", "--steps", 2, activations="offload", output="again")
    require_equal(len(again.json()["losses"]), 2, "losses of the next run")
    require_equal(activation_files(place / "again"), [], "files after a run")


def activation_links(run):
    """The unlinked files of activations that the process has open."""
    folder = f"/proc/{run.process.pid}/fd"
    found = []
    for name in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if "activations.slc (deleted)" in target:
            found.append(target)
    return found


@test
def a_drive_without_room_is_refused_with_the_file_before_the_first_step(place):
    settings = {**deep(place), "activations": "offload"}
    with small_volume(place, 80 << 20) as volume:
        reply = place.train("--steps", 2, **{**settings, "batch": 64,
                                             "state_dir": volume / "state"})
        require(reply.code != 0, "a run without room for its activations ran")
        require_words(reply.err, ["activations.slc", "free"], "the message")


# One drive before a processor that computes a TFLOP/s; the state moves behind backward.
STALL_PLATFORM = """\
name = "one drive"
[[link]]
name = "host"
read = "1 TB/s"
write = "1 TB/s"
duplex = "full"
[host]
memory = "64 GB"
adamw = "1 Gelem/s"
stage = "50 Gelem/s"
[compute]
matmul = "1 TFLOP/s"
[[device]]
name = "drive"
via = ["host"]
[device.drive]
duplex = "full"
read = "RATE B/s"
write = "RATE B/s"
"""
STALL_MODEL = DEEP_MODEL.replace("128", "512", 1).replace("heads = 4", "heads = 8")
STALL = {"method": "host", "pipeline": "serial", "devices": 1, "batch": 32, "sequence": 128,
         "prefetch": "false", "gradient_tier": "memory", "subgroup_elements": 4_000_000}


def stalled(place, name, rate, activations="offload"):
    """What `show` says of a simulated step with a drive of that rate, and the last value of each of
    its counters."""
    (place / "stall.toml").write_text(STALL_MODEL)
    (place / f"{name}.toml").write_text(STALL_PLATFORM.replace("RATE", str(round(rate))))
    path = place.simulate(place / "stall.toml", name=f"{name}.db",
                          platform=place / f"{name}.toml", **STALL, activations=activations)
    shown = sluice("show", path, "--json", "--no-predict").json()
    with database(path) as db:
        counters = dict(db.execute(
            "SELECT name, value FROM counter JOIN track ON track.id = track_id "
            "GROUP BY track_id HAVING counter.rowid = max(counter.rowid)"))
    return shown, counters, path


def seconds_of(path, stage):
    with database(path) as db:
        return db.execute("SELECT sum(dur) / 1e9 FROM span JOIN string ON string.id = name_id "
                          "WHERE value = ?", (stage,)).fetchone()[0]


@test
def a_stall_is_counted_by_layer_and_the_verdict_names_it(place):
    _, _, kept = stalled(place, "keep", 1e12, "keep")
    _, _, fast = stalled(place, "fast", 1e12)
    needed = moved_by_stage(fast)["activation_write"] / seconds_of(kept, "forward")
    out, back = "activations out: waited (ns)", "activations back: waited (ns)"

    shown, counters, _ = stalled(place, "enough", 1.25 * needed)
    waited = counters.get(out, 0) + counters.get(back, 0)
    require(waited <= 0.01 * shown["steps"][0]["dur"], f"{waited} ns at 1.25 times the bandwidth")

    shown, counters, path = stalled(place, "slow", 0.6 * needed)
    dur = shown["steps"][0]["dur"]
    stalled_ns = counters[out] + counters.get(back, 0)
    pass_ns = 1e9 * (seconds_of(path, "forward") + seconds_of(path, "backward"))
    require(stalled_ns > 0.1 * pass_ns,
            f"{stalled_ns} ns beside {pass_ns} of forward and backward at 0.6 times the bandwidth")
    layers = shown["activation_waits"]
    require(len(layers) > 3, f"only {layers} waited")
    for counter, key, cause in ((out, "out_ns", "activations out"),
                                (back, "back_ns", "activations back")):
        waited = counters.get(counter, 0)
        require_equal(sum(layer[key] for layer in layers), waited, f"{key} by layer")
        share = shown["verdict"]["share"][cause]
        require(abs(share * dur - waited) <= 1e-3 * dur,
                f"the verdict says {share}, the counter {waited / dur}")
    require(any("forward waiting for activations to leave" in text and "drive writes" in text
                for text in shown["verdict"]["findings"]), f"{shown['verdict']['findings']}")
    text = sluice("show", path, "--no-predict").done().out
    require_words(text, ["activations out", "Waited for them to leave", "Activations of layers",
                         "offload,"], "show")


def moved_by_stage(path):
    with database(path) as db:
        return dict(db.execute("SELECT value, sum(bytes) FROM span "
                               "JOIN string ON string.id = name_id GROUP BY value"))


@test
def live_bytes_of_each_tier_rise_and_fall_with_the_blocks(place):
    settings = {**deep(place), "activations": "offload:1-4,keep", "activation_buffer": "4KiB"}
    place.train("--steps", 2, clock="emulated", time_scale=1, **settings).done()
    with database(place / "out/run.db") as db:
        peaks = dict(db.execute(
            "SELECT name, max(value) FROM counter JOIN track ON track.id = track_id "
            "WHERE name LIKE '%: live activations%' GROUP BY name"))
        last = dict(db.execute(
            "SELECT name, value FROM counter JOIN track ON track.id = track_id "
            "WHERE name LIKE '%: live activations%' GROUP BY name "
            "HAVING counter.rowid = max(counter.rowid)"))
    there, host, drives = (f"{where}: live activations (bytes)"
                           for where in ("accelerators", "host", "drives"))
    require_equal(set(peaks), {there, host, drives}, "tiers of a machine with accelerators")
    require_equal(peaks[drives], 4 * BLOCK_BYTES, "bytes on the drives at once")
    # Four layers keep, and one or two are on their way.
    require(4 * BLOCK_BYTES < peaks[there] < 7 * BLOCK_BYTES, f"{peaks[there]} bytes there")
    require(peaks[host] <= 2 * BLOCK_BYTES, f"{peaks[host]} bytes in host memory")
    require_equal(set(last.values()), {0}, "bytes that are left after a step")


@test
def host_memory_takes_what_leaves_an_accelerator_first(place):
    (place / "deep.toml").write_text(DEEP_MODEL)
    common = {"batch": 8, "sequence": 128, "activations": "offload:1-8,keep",
              "activation_buffer": "4KiB"}
    for blocks in (0, 3, 8):
        path = place.simulate(place / "deep.toml", name=f"host{blocks}.db", devices=1, **common,
                              activation_host=blocks * BLOCK_BYTES + 1)
        stages = moved_by_stage(path)
        require_equal(stages["activation_out"], 8 * BLOCK_BYTES, "bytes off the accelerator")
        require_equal(stages.get("activation_write", 0), (8 - blocks) * BLOCK_BYTES,
                      f"bytes to drives with {blocks} blocks in host memory")
        require_equal(stages.get("activation_read", 0) + blocks * BLOCK_BYTES,
                      stages["activation_in"], "bytes back")


@test
def what_cannot_be_is_refused(place):
    (place / "stall.toml").write_text(STALL_MODEL)
    (place / "drive.toml").write_text(STALL_PLATFORM.replace("RATE", "1000000000"))
    sluice("simulate", place / "stall.toml", "--platform", place / "drive.toml", "--set",
           "method=host", "--set", "activation_host=1MiB").refused(
        2, ["activation_host", "no accelerator computes", "activation_buffer"])
    place.train(activations="offlaod").refused(2, ["offlaod", "offload"])
    place.train(activations="offload:9,keep").refused(2, ["there is no layer 9", "0", "3"])
    place.train(activations="offload:1-2,keep:2,keep").refused(2, ["layer 2 is named twice"])


if __name__ == "__main__":
    sys.exit(main())
