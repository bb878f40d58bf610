#!/usr/bin/env python3
"""A model on the software accelerator: the numbers of one on the processor, what crosses counted
alike by the run and by the device, memory under a cap, failures by name with the last commit whole,
and the simulation of the same schedule."""

import os
import sys

from sluice_run import (ROOT, SAMPLES, check_database, database, is_testing_all, main, require,
                        require_equal, require_words, sample_text, setting_arguments, sluice, test)

PATIENCE_S = 2


def with_device(settings=""):
    return {**os.environ, "SLUICE_SOFT_ACCELERATOR": settings}


def train(place, *flags, device="", **settings):
    """`device`: the software accelerator's own settings."""
    return sluice(*place.arguments(*flags, device="soft", **settings), cwd=place.path,
                  env=with_device(device))


def numbers(reply):
    report = reply.json()
    return report["losses"], report["state_digest"]


def bytes_of_stages(path):
    with database(path) as db:
        return dict(db.execute(
            "SELECT s.value, sum(span.bytes) FROM span JOIN string s ON s.id = span.name_id "
            "GROUP BY s.value").fetchall())


@test
def a_run_says_on_each_line_of_its_mode_what_computes(place):
    reply = train(place, "--steps", 1).done()
    modes = [line for line in reply.out.splitlines() if "csd ·" in line]
    require(modes, f"no mode: {reply.out}")
    text = " ".join(reply.out.split())
    require_words(text, ["computed by SOFTWARE ACCELERATOR soft:0",
                         "Memory plan of SOFTWARE ACCELERATOR soft:0"], "the run")
    with database(place / "out/run.db") as db:
        (mode,), = db.execute("SELECT line FROM mode").fetchall()
    require_words(mode, ["SOFTWARE ACCELERATOR"], "the record's mode")


@test
def delays_of_streams_and_copies_change_nothing_in_hundreds_of_steps(place):
    steps = 1000 if is_testing_all() else 200
    common = {"subgroup_elements": 20_000, "record": "off"}
    plain = numbers(place.train("--json", "--steps", steps, output="cpu", **common))
    delayed = numbers(train(place, "--json", "--steps", steps, output="soft",
                            device="seed=11;delay_us=60", **common))
    require_equal(delayed, plain, f"{steps} steps with delays")


@test
def live_changes_give_the_same_numbers(place):
    changes = ["--at", "2:method=host", "--at", "3:density=0.1", "--at", "5:pipeline=serial",
               "--at", "6:method=csd"]
    plain = numbers(place.train("--json", "--steps", 8, *changes, output="cpu"))
    soft = numbers(train(place, "--json", "--steps", 8, *changes, output="soft"))
    require_equal(soft, plain, "four live changes")


@test
def a_run_may_go_on_on_another_device(place):
    plain = numbers(place.train("--json", "--steps", 6, output="cpu"))
    first, _ = numbers(train(place, "--json", "--steps", 3, output="pieces"))
    rest, digest = numbers(place.train("--json", "--resume", "--steps", 6, output="pieces"))
    require_equal((first + rest, digest), plain, "soft for three steps, then cpu for three")


@test
def what_crosses_is_what_the_device_counts(place):
    counted = place / "counted.txt"
    common = {"grad_accum_steps": 2, "validation_every": 2, "validation_batches": 2}
    reply = train(place, "--json", "--steps", 4, device=f"counters={counted}", **common)
    reply.json()
    stages = bytes_of_stages(place / "out/run.db")
    device = dict(line.split("=") for line in counted.read_text().split())
    into = stages["layer_in"] + stages["batch_in"]
    out = stages["gradient_out"] + stages["loss_out"]
    require_equal((into, out), (int(device["in_bytes"]), int(device["out_bytes"])),
                  "bytes in and out of the accelerator")
    with database(place / "out/run.db") as db:
        link = db.execute(
            "SELECT sum(span.bytes) FROM span JOIN track ON track.id = span.track_id "
            "WHERE track.kind = 'link'").fetchone()[0]
    require_equal(link, into + out, "bytes on the accelerator's tracks")


@test
def gradients_are_checked_and_selected_where_they_are(place):
    for name, settings in (("dense", {}), ("sparse", {"density": 0.05}),
                           ("feedback", {"density": 0.05, "error_feedback": "true"}),
                           ("fp16", {"density": 0.05, "error_feedback": "true",
                                     "precision": "fp16", "initial_loss_scale": 1e6}),
                           ("three", {"density": 0.2, "error_feedback": "true",
                                      "grad_accum_steps": 3})):
        changes = ["--at", "4:density=0.3"] if name == "feedback" else []
        common = {"subgroup_elements": 7000, **settings}
        plain = numbers(place.train("--json", "--steps", 7, *changes, output=f"{name}-cpu",
                                    **common))
        on_device = {**common, "gradient_work": "accelerator", "output": name}
        device = "seed=4;delay_us=80"
        soft = numbers(train(place, "--json", "--steps", 7, *changes, device=device, **on_device))
        require_equal(soft, plain, name)
        # In two pieces, so that the residual leaves the device and comes back.
        if changes:
            continue
        on_device["output"] = f"{name}-pieces"
        first, _ = numbers(train(place, "--json", "--steps", 3, schedule_steps=7, **on_device))
        rest, digest = numbers(train(place, "--json", "--resume", "--steps", 7, **on_device))
        require_equal((first + rest, digest), plain, f"{name}, in two pieces")


@test
def only_what_is_sent_crosses(place):
    counted = place / "counted.txt"
    report = train(place, "--json", "--steps", 4, device=f"counters={counted}", density=0.05,
                   error_feedback="true", gradient_work="accelerator").json()
    stages = bytes_of_stages(place / "out/run.db")
    device = dict(line.split("=") for line in counted.read_text().split())
    out = stages["gradient_out"] + stages["loss_out"] + stages["residual_out"]
    require_equal(out, int(device["out_bytes"]), "bytes out of the accelerator")
    require_equal(stages["residual_out"], 4 * report["parameters"], "the residual, as it ends")
    a_step = stages["gradient_out"] / 4
    require(0.05 * 8 * report["parameters"] < a_step < 0.06 * 8 * report["parameters"],
            f"{a_step} bytes of gradients a step, {report['parameters']} parameters")


@test
def what_layers_keep_leaves_the_accelerator_and_comes_back(place):
    common = {"grad_accum_steps": 2}
    plain = numbers(place.train("--json", "--steps", 5, output="cpu", **common))
    for activations in ("offload", "offload_inputs", "offload:1,recompute:2,keep"):
        counted = place / "counted.txt"
        name = activations.replace(":", "-")
        soft = numbers(train(place, "--json", "--steps", 5, output=name, activations=activations,
                             device=f"seed=2;delay_us=150;counters={counted}", **common))
        require_equal(soft, plain, activations)
        stages = bytes_of_stages(place / name / "run.db")
        device = dict(line.split("=") for line in counted.read_text().split())
        out = stages["gradient_out"] + stages["loss_out"] + stages["activation_out"]
        into = stages["layer_in"] + stages["batch_in"] + stages.get("activation_in", 0)
        require_equal((into, out), (int(device["in_bytes"]), int(device["out_bytes"])),
                      f"bytes in and out of the accelerator, {activations}")
        require_equal(stages["activation_out"], stages["activation_write"],
                      "bytes out of the accelerator, and to the drives")
        require_equal(stages.get("activation_in", 0), stages.get("activation_read", 0),
                      "bytes from the drives, and into the accelerator")


@test
def what_stays_in_host_memory_comes_back_from_there(place):
    common = {"grad_accum_steps": 2, "activation_buffer": "4KiB"}
    plain = numbers(place.train("--json", "--steps", 5, output="cpu", **common))
    stayed = []
    for host in ("60KiB", "1GiB"):
        counted = place / "counted.txt"
        found = train(place, "--json", "--steps", 5, output=host, activations="offload",
                      activation_host=host, device=f"seed=2;delay_us=150;counters={counted}",
                      **common)
        require_equal(numbers(found), plain, f"{host} in host memory")
        moved = found.json()["activations"]
        stages = bytes_of_stages(place / host / "run.db")
        require_equal(stages["activation_out"], moved["host_bytes"] + moved["written_bytes"],
                      "bytes out of the accelerator: in host memory and on the drives")
        require_equal(stages.get("activation_write", 0), moved["written_bytes"], "to the drives")
        stayed.append((moved["host_bytes"], moved["written_bytes"]))
    require(0 < stayed[0][0] < stayed[1][0] and stayed[0][1] > 0 and stayed[1][1] == 0,
            f"bytes in host memory and on the drives: {stayed}")


@test
def gradient_work_fits_under_the_cap_or_is_refused(place):
    common = {"density": 0.05, "error_feedback": "true", "gradient_work": "accelerator",
              "threads": 2}
    refused = train(place, "--steps", 2, accelerator_memory="64KiB", **common)
    refused.refused(2, ["residual (error_feedback)", "temporaries of the selection", "smallest"])
    words = refused.err.split("the smallest accelerator_memory that would do is ")[1]
    smallest = words.split(". ")[0]
    report = train(place, "--json", "--steps", 3, accelerator_memory=smallest, **common).json()
    require_equal(report["steps"], 3, "steps under the smallest cap")
    grown = train(place, "--steps", 3, "--at", "1:density=0.9", output="grown",
                  accelerator_memory=smallest, **common)
    grown.refused(2, ["accelerator_memory"])
    place.train("--steps", 1, gradient_work="accelerator").refused(2, ["device=cuda or soft"])


@test
def the_simulated_and_the_emulated_run_make_the_same_operations(place):
    def operations(path, steps_left=0):
        with database(path) as db:
            step = db.execute("SELECT max(id) - ? FROM step", (steps_left,)).fetchone()[0]
            return db.execute(
                "SELECT s.value, span.layer_id, span.bytes, count(*) FROM span "
                "JOIN string s ON s.id = span.name_id WHERE span.step_id = ? AND s.value IN "
                "('layer_in', 'batch_in', 'gradient_out', 'loss_out', 'forward', 'backward', "
                "'gradient', 'compress') "
                "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3", (step,)).fetchall()

    for work, density in (("host", 1), ("accelerator", 1), ("accelerator", 0.1)):
        common = {"grad_accum_steps": 2, "gradient_work": work, "density": density}
        name = f"{work}-{density}"
        for clock in ("real", "emulated"):
            train(place, "--steps", 3, output=f"{name}-{clock}", clock=clock, time_scale=0.01,
                  **common).done()
        simulated = operations(place.simulate(
            place / "nano.toml", f"{name}.db", device="soft", batch=2, sequence=32, devices=2,
            subgroup_elements=5000, **common))
        require(len(simulated) > 10, f"{simulated}")
        for clock in ("real", "emulated"):
            # The last step has the validation behind it.
            require_equal(operations(place / f"{name}-{clock}/run.db", steps_left=1), simulated,
                          f"operations, {name}, {clock} clock")


@test
def a_recorded_run_is_fitted_and_predicted(place):
    for clock, work in (("real", "host"), ("emulated", "host"), ("emulated", "accelerator")):
        name = f"{clock}-{work}"
        train(place, "--steps", 8, output=name, clock=clock, device="in_rate=5e7;out_rate=5e7",
              density=0.1, gradient_work=work).done()
        said = sluice("simulate", "--fit", "--like", place / f"{name}/run.db", "--json",
                      cwd=place.path).json()
        require(said["simulated_seconds"] > 0, f"{said}")
        page = place / f"{name}.html"
        sluice("report", place / f"{name}/run.db", "-o", page, cwd=place.path).done()
        require_words(page.read_text(), ["SOFTWARE ACCELERATOR", "accelerator0"], "the page")


@test
def the_cap_holds_for_a_model_whose_parameters_exceed_it(place):
    (place / "deep.toml").write_text(
        'name = "deep"\nlayers = 24\nhidden = 256\nheads = 4\nsequence = 32\nvocabulary = 256\n')
    common = {"model": place / "deep.toml", "activations": "recompute", "batch": 1, "sequence": 32,
              "subgroup_elements": 1 << 20, "threads": 2}
    refused = train(place, "--steps", 2, accelerator_memory="4MiB", **common)
    refused.refused(2, ["accelerator_memory", "smallest", "SOFTWARE ACCELERATOR"])
    words = refused.err.split("the smallest accelerator_memory that would do is ")[1]
    smallest = words.split(". ")[0]
    soft = train(place, "--json", "--steps", 2, output="soft", accelerator_memory=smallest,
                 **common)
    report = soft.json()
    parameters = 2 * report["parameters"]
    with database(place / "soft/run.db") as db:
        peak = db.execute(
            "SELECT max(counter.value) FROM counter JOIN track ON track.id = counter.track_id "
            "WHERE track.name LIKE '%accelerator%memory%'").fetchone()[0]
    require(peak < parameters, f"{peak} bytes on the device, of {parameters} of parameters")
    plain = numbers(place.train("--json", "--steps", 2, output="cpu", **common))
    require_equal((report["losses"], report["state_digest"]), plain, "under the cap")


@test
def what_fails_on_the_device_ends_the_run_by_name_with_the_last_commit_whole(place):
    whole = place.train("--json", "--steps", 12, output="whole").json()
    for fault, words in (("oom@700", ["memory"]), ("copy@100", ["copy 100", "failed"]),
                         ("lost@1200", ["soft:0", "lost"])):
        reply = train(place, "--steps", 12, output=fault, device=f"fault={fault}")
        reply.refused(1, [*words, "--resume"])
        step = place.state("--json", state_dir=f"{fault}/state").json()["step"]
        check_database(place / fault / "run.db")
        rest = place.train("--json", "--resume", "--steps", 12, output=fault).json()
        require_equal(rest["losses"], whole["losses"][step:], f"losses after {fault}")
        require_equal(rest["state_digest"], whole["state_digest"], f"digest after {fault}")


@test
def a_stuck_stream_ends_the_run_by_name(place):
    reply = train(place, "--steps", 4, device="fault=stuck@400", device_patience=PATIENCE_S)
    reply.refused(1, ["has not ended", "layer", "--resume"])


@test
def a_device_that_is_not_there_says_what_to_do(place):
    place.train("--steps", 1, device="cuda").refused(2, ["cuda:0", "GPU", "docs/with_a_gpu.md"])
    place.train("--steps", 1, device="cdua").refused(2, ["cdua", "cuda"])
    place.train("--steps", 1, device="soft:1").refused(2, ["soft:1"])
    gone = sluice(*place.arguments("--steps", 1, device="soft"), cwd=place.path,
                  env={**os.environ, "SLUICE_SOFT_ACCELERATOR_LIBRARY": "/nowhere.so"})
    gone.refused(2, ["/nowhere.so", "--target soft_accelerator"])
    wrong = train(place, "--steps", 1, device="delya_us=3")
    wrong.refused(2, ["delya_us", "delay_us"])


@test
def the_tiny_model_trains_on_it_as_the_readme_says(place):
    reply = sluice("train", SAMPLES / "runs/tiny.toml", "--steps", 2, "--set", "device=soft",
                   "--set", f"output={place / 'tiny'}", "--set", f"text={sample_text()}",
                   "--set", "sample_tokens=20", cwd=ROOT)
    reply.done()
    require_words(" ".join(reply.out.split()), ["SOFTWARE ACCELERATOR", "Loss"], "the run")


if __name__ == "__main__":
    sys.exit(main())
