#!/usr/bin/env python3
"""`sluice export --format tensorboard`: its event files, read by TensorBoard's own EventAccumulator
and by a decoder of the wire that is written here, have the figures of `sluice show`."""

import collections
import json
import math
import re
import struct
import subprocess

from readers import READER_LIMIT_S, TENSORBOARD, reader
from sluice_run import (SAMPLES, database, main, require, require_equal, require_words, sluice,
                        test)


# The wire -----------------------------------------------------------------------------------------

Scalar = collections.namedtuple("Scalar", "step wall_time value")


def crc32c(data):
    """Bit by bit, as RFC 3720 defines it."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records(data):
    at = 0
    while at < len(data):
        head = data[at:at + 8]
        size, = struct.unpack("<Q", head)
        require_equal(struct.unpack_from("<I", data, at + 8)[0], masked(head),
                      "a length's checksum")
        body = data[at + 12:at + 12 + size]
        require_equal(len(body), size, "a record's length")
        require_equal(struct.unpack_from("<I", data, at + 12 + size)[0], masked(body),
                      "a record's checksum")
        yield body
        at += 16 + size


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """{number: value} of a message; none comes twice in ours."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        require(number not in found, f"field {number} comes twice")
        if wire == 0:
            found[number], at = varint(data, at)
        elif wire == 1:
            found[number], at = struct.unpack_from("<d", data, at)[0], at + 8
        elif wire == 2:
            size, at = varint(data, at)
            found[number], at = data[at:at + size], at + size
        else:
            require_equal(wire, 5, "a field's wire type")
            found[number], at = struct.unpack_from("<f", data, at)[0], at + 4
    return found


def event_file(folder):
    files = list(folder.iterdir())
    require_equal(len(files), 1, f"files in {folder}")
    require(re.fullmatch(r"events\.out\.tfevents\.\d{10}\.sluice", files[0].name), files[0].name)
    return files[0]


def decoded(folder):
    """{tag: [Scalar]} of the file in a folder."""
    first, *rest = map(fields, records(event_file(folder).read_bytes()))
    require_equal(first[3], b"brain.Event:2", "the file's version")
    curves = collections.defaultdict(list)
    for event in rest:
        require_equal(set(event), {1, 2, 5}, "fields of an event")
        value = fields(fields(event[5])[1])
        curves[value[1].decode()].append(Scalar(event[2], event[1], value[2]))
    return dict(curves)


# TensorBoard --------------------------------------------------------------------------------------

ASK_TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.wall_time, e.value] for e in events.Scalars(tag)]
                  for tag in events.Tags()["scalars"]}))
"""


def as_tensorboard_reads(python, folder):
    done = subprocess.run([python, "-c", ASK_TENSORBOARD, folder], capture_output=True, text=True,
                          timeout=READER_LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"tensorboard: {done.stderr.strip()[-400:]}")
    return {tag: [Scalar(*row) for row in rows] for tag, rows in json.loads(done.stdout).items()}


# What is in it ------------------------------------------------------------------------------------


def single(value):
    """As the 32 bits of a scalar hold it."""
    return struct.unpack("<f", struct.pack("<f", math.nan if value is None else value))[0]


def texts(values):
    """Comparable, with NaN."""
    return [repr(value) for value in values]


def export(run, name, *flags):
    folder = run.parent / name
    said = sluice("export", run, "--format", "tensorboard", "-o", folder, *flags).done()
    return folder, said


def check_steps(curves, steps):
    wanted = {"train/loss": [s["loss"] for s in steps],
              "train/learning_rate": [s["lr"] for s in steps],
              "train/grad_norm": [s["grad_norm"] for s in steps],
              "train/loss_scale": [s["loss_scale"] for s in steps],
              "train/skipped": [s["skipped"] for s in steps],
              "time/step_seconds": [s["dur"] / 1e9 for s in steps],
              "time/tokens_per_second": [s["tokens"] / (s["dur"] / 1e9) for s in steps]}
    for tag, values in wanted.items():
        require_equal([s.step for s in curves[tag]], [s["step"] for s in steps], f"steps of {tag}")
        require_equal(texts(s.value for s in curves[tag]), texts(map(single, values)), tag)
    causes = {cause: [s["share"][cause] for s in steps] for cause in steps[0]["share"]
              if any(s["share"][cause] > 0 for s in steps)}
    require_equal({tag for tag in curves if tag.startswith("cause_share/")},
                  {f"cause_share/{cause}" for cause in causes}, "causes")
    for cause, shares in causes.items():
        require_equal(texts(s.value for s in curves[f"cause_share/{cause}"]),
                      texts(map(single, shares)), cause)


def check_bytes(run, curves):
    with database(run) as db:
        rows = db.execute("SELECT link || ' ' || direction, step_id + 1, bytes FROM link_bytes "
                          "WHERE step_id IS NOT NULL").fetchall()
    require(rows, "no link moved anything")
    found = {(tag.split("/", 1)[1], s.step): s.value for tag, scalars in curves.items()
             if tag.startswith("link_bytes/") for s in scalars if s.value > 0}
    require_equal(found, {(link, step): single(moved) for link, step, moved in rows if moved > 0},
                  "bytes of links")


def check_times(run, curves):
    with database(run) as db:
        offset, = db.execute("SELECT realtime_ts - ts FROM clock_snapshot").fetchone()
        rows = db.execute("SELECT ts + dur FROM step ORDER BY id").fetchall()
    ends = [(end + offset) / 1e9 for end, in rows]
    for found, end in zip(curves["train/loss"], ends, strict=True):
        require(abs(found.wall_time - end) < 1e-5, f"{found} ended at {end}")


@test
def the_curves_are_the_figures_of_show(place):
    place.train("--steps", "6", validation_every=2).done()
    run = place / "out/run.db"
    shown = sluice("show", run, "--json", "--no-predict", "--last", 1000).json()
    folder, said = export(run, "logs")
    curves = decoded(folder)
    check_steps(curves, shown["steps"])
    check_bytes(run, curves)
    check_times(run, curves)
    require_equal([(s.step, s.value) for s in curves["validation/loss"]],
                  [(v["step"], single(v["loss"])) for v in shown["validations"]], "validations")
    require_words(said.out, [f"{sum(map(len, curves.values()))} scalars", "tensorboard --logdir"],
                  "the export")


@test
def tensorboard_reads_what_is_written(place):
    python = reader("tensorboard", TENSORBOARD)
    place.train("--steps", "6", validation_every=2).done()
    folder, _ = export(place / "out/run.db", "logs")
    require_equal(as_tensorboard_reads(python, folder), decoded(folder), "TensorBoard's scalars")


@test
def a_loss_that_is_no_number_and_skipped_steps_are_points(place):
    place.train("--steps", "4").done()
    run = place / "out/run.db"
    with database(run, "rw") as db:
        db.execute("UPDATE step SET loss = NULL, skipped = 1 WHERE id = 2")
        db.execute("UPDATE step SET grad_norm = 9e999 WHERE id = 2")
        db.commit()
    folder, said = export(run, "logs")
    curves = decoded(folder)
    losses = [s.value for s in curves["train/loss"]]
    require(math.isnan(losses[2]), f"the lost loss: {losses}")
    require_equal([math.isfinite(loss) for loss in losses], [True, True, False, True], "losses")
    require_equal(curves["train/grad_norm"][2].value, math.inf, "the norm")
    require_equal([s.value for s in curves["train/skipped"]], [0, 0, 1, 0], "skipped steps")
    require("No curve" not in said.out, said.out)


@test
def a_simulated_run_says_which_curves_it_has_not(place):
    run = place.simulate(SAMPLES / "models/gpt2-1.7b.toml", devices=4)
    folder, said = export(run, "logs")
    curves = decoded(folder)
    require_words(said.out, ["No curve", "train/loss"], "the export")
    require("train/loss" not in curves and "time/step_seconds" in curves, f"{list(curves)}")


@test
def a_part_is_its_steps_and_a_run_without_steps_an_empty_file(place):
    place.train("--steps", "5").done()
    run = place / "out/run.db"
    with database(run, "rw") as db:  # steps of seconds: the part begins in another than the run
        db.execute("UPDATE step SET ts = ts + id * 3000000000")
        db.commit()
    folder, _ = export(run, "part", "--steps", "2..3")
    require_equal({s.step for scalars in decoded(folder).values() for s in scalars},
                  {2, 3}, "steps")
    refused = sluice("export", run, "--format", "tensorboard", "-o", folder).refused(2, ["--force"])
    require_equal(refused.out, "", "what is said")
    export(run, "part", "--force")
    require_equal([s.step for s in decoded(folder)["train/loss"]], [1, 2, 3, 4, 5], "all steps")
    with database(run, "rw") as db:
        for table in ("step", "verdict"):
            db.execute(f"DELETE FROM {table}")
        db.commit()
    folder, said = export(run, "empty")
    require_equal(decoded(folder), {}, "curves")
    require_words(said.err, ["no step of this run has ended"], "the export")


@test
def a_live_run_has_its_steps_until_now(place):
    run = place / "out/run.db"
    training = place.start("--steps", "100000")
    training.wait_for(lambda: run.exists() and sluice("show", run).code == 0 and
                      len(sluice("show", run, "--json", "--no-predict").json()["steps"]) > 2,
                      "the third step")
    folder, _ = export(run, "logs")
    sluice("stop", run).done()
    training.wait().done()
    curves = decoded(folder)
    steps = [s.step for s in curves["train/loss"]]
    require_equal(steps, list(range(1, len(steps) + 1)), "steps")
    require_equal([s.step for s in curves["cause_share/compute"]], steps, "steps with a verdict")


if __name__ == "__main__":
    raise SystemExit(main())
