#!/usr/bin/env python3
"""`sluice simulate`: what it prints for programs and for people, its sweeps, what it refuses."""

import csv
import io
import sys

from sluice_run import (SAMPLES, TESTBED, database, main, require, require_equal, require_words,
                        sluice, test)

MODEL = SAMPLES / "models/gpt2-4.0b.toml"
BERT = SAMPLES / "models/bert-0.34b.toml"
VIT = SAMPLES / "models/vit-0.30b.toml"
# Other families, their parameters, and the sequence that is assumed.
OTHERS = [(BERT, 336_226_108, "512"),
          (SAMPLES / "models/bloom-3b.toml", 3_002_557_440, "2048"),
          (SAMPLES / "models/llama-44b.toml", 44_278_226_944, "2048"),
          (VIT, 304_326_632, "197")]
ON_TESTBED = ("--platform", TESTBED)


@test
def the_json_report_adds_up(place):
    report = sluice("simulate", MODEL, *ON_TESTBED, "--json", "--set", "devices=10", "--set",
                    "pipeline=handover").json()
    seconds = report["seconds"]
    phases = seconds["forward"] + seconds["backward"] + seconds["update"]
    require(abs(phases - seconds["total"]) < 1e-6, f"{seconds}")
    require_equal(report["bytes"]["host"]["backward"]["write"], 4 * report["parameters"],
                  "gradients down")
    require_equal(report["bytes"]["host"]["update"]["read"], 4 * report["parameters"],
                  "parameters up")
    shares = report["busy"].values()
    require(all(0 <= share <= 1.0001 for share in shares), f"{report['busy']}")
    require("csd9.drive" in report["busy"] and "compute" in report["busy"], f"{report['busy']}")


@test
def the_report_for_people_says_that_it_is_simulated_and_what_bounds_the_step(place):
    text = sluice("simulate", MODEL, *ON_TESTBED, "--set", "devices=10").done().out
    require_words(text, ["SIMULATED: gpt2-4.0b", "A step takes", "% busy",
                         "backward phase is bound by",
                         "Bytes a parameter"], "the report")


@test
def two_runs_print_the_same(place):
    arguments = ("simulate", MODEL, *ON_TESTBED, "--json", "--set", "devices=7")
    require_equal(sluice(*arguments).done().out, sluice(*arguments).done().out, "the report")


@test
def a_sweep_has_a_row_for_each_value(place):
    arguments = ("simulate", MODEL, *ON_TESTBED, "--sweep", "devices=1..10")
    rows = list(csv.DictReader(io.StringIO(sluice(*arguments, "--csv").done().out)))
    require_equal([row["devices"] for row in rows], [str(n) for n in range(1, 11)], "devices")
    totals = [float(row["total_s"]) for row in rows]
    require(totals == sorted(totals, reverse=True), f"more devices took longer: {totals}")
    table = sluice(*arguments).done().out.splitlines()
    require_equal(len(table), 12, "lines of the table")
    words = sluice("simulate", MODEL, *ON_TESTBED, "--sweep", "pipeline=serial,handover,nbuffer",
                   "--json").json()
    require_equal([row["value"] for row in words["rows"]], ["serial", "handover", "nbuffer"],
                  "values")


@test
def a_drive_that_says_what_it_bears_has_its_life_printed(place):
    machine = place / "worn.toml"
    machine.write_text(TESTBED.read_text().replace('capacity = "4 TB"',
                                                   'capacity = "4 TB"\nendurance = "600 TB"'))
    arguments = ("simulate", MODEL, "--set", "devices=4", "--set", "pipeline=serial", "--platform")
    plain, worn = (sluice(*arguments, path, "--json").json() for path in (TESTBED, machine))
    wear = worn.pop("wear")
    for report in (plain, worn):
        report["settings"].pop("platform")  # the file's path
    require_equal(worn, plain, "all but the wear")
    require_equal([row["drive"] for row in wear], ["csd0", "csd1", "csd2", "csd3"], "drives")
    require_equal(sum(row["written_bytes"] for row in wear), 16 * worn["parameters"], "written")
    for row in wear:
        steps = 600e12 / row["written_bytes"]
        years = steps * worn["seconds"]["total"] / (365.25 * 24 * 3600)
        require(abs(row["life_steps"] / steps - 1) < 1e-9, f"steps: {row}")
        require(abs(row["life_years"] / years - 1) < 1e-9, f"years: {row}")
    require_words(sluice(*arguments, machine).done().out,
                  ["Wear: a step writes", "which lasts the shortest", "600 TB", "days without"],
                  "the report")
    require("Wear" not in sluice(*arguments, TESTBED).done().out, "a life that nobody stated")


@test
def another_machine_is_tried_without_another_file(place):
    arguments = ("simulate", MODEL, *ON_TESTBED, "--json", "--set", "devices=2")
    plain = sluice(*arguments).json()
    changed = sluice(*arguments, "--platform-set", "engine_scale=0.05", "--platform-set",
                     "compute_units=2", "--db", place / "changed.db").json()
    require_equal(changed["platform"],
                  plain["platform"] + ", engine_scale=0.05, compute_units=2", "the platform")
    require(changed["seconds"]["update"] > 1.4 * plain["seconds"]["update"], "a slow engine")
    require(changed["busy"]["csd0.engine"] <= 1, f"{changed['busy']}")
    with database(place / "changed.db") as db:
        units = db.execute("SELECT t.name, count(*) FROM span s JOIN track t ON t.id = s.track_id "
                           "JOIN string n ON n.id = s.name_id WHERE n.value = 'update' GROUP BY 1")
        kernels = dict(units.fetchall())
        require_equal(sorted(kernels), [f"csd{d} update on unit {u}" for d in (0, 1)
                                        for u in (0, 1)], "tracks of the compute units")
        require(min(kernels.values()) > 0.4 * max(kernels.values()), f"shared out: {kernels}")
        (text,), = db.execute("SELECT value FROM meta WHERE key = 'platform_text'").fetchall()
    (place / "changed.toml").write_text(text)
    again = sluice("simulate", MODEL, "--platform", place / "changed.toml", "--json", "--set",
                   "devices=2").json()
    require(abs(again["seconds"]["total"] / changed["seconds"]["total"] - 1) < 1e-4,
            "the recorded platform takes as long")


@test
def the_files_own_scales_are_those_of_the_command_and_a_sweep_takes_them(place):
    file = place / "scaled.toml"
    file.write_text("media_scale = 2\nlink_scale = 0.5\n" + TESTBED.read_text())
    by_file = sluice("simulate", MODEL, "--platform", file, "--json").json()
    by_command = sluice("simulate", MODEL, *ON_TESTBED, "--json", "--platform-set",
                        "media_scale=2", "--platform-set", "link_scale=0.5").json()
    require_equal(by_file["seconds"], by_command["seconds"], "seconds")
    sweep = sluice("simulate", MODEL, *ON_TESTBED, "--platform-set", "link_scale=0.5", "--sweep",
                   "media_scale=1,2", "--json").json()
    require_equal(sweep["rows"][1]["seconds"], by_command["seconds"], "the swept row")
    units = sluice("simulate", MODEL, *ON_TESTBED, "--sweep", "compute_units=1..3", "--json").json()
    require_equal([row["value"] for row in units["rows"]], ["1", "2", "3"], "values")


@test
def other_families_are_simulated_swept_and_tuned(place):
    for model, parameters, sequence in OTHERS:
        report = sluice("simulate", model, *ON_TESTBED, "--json", "--set", "devices=4").json()
        require_equal(report["parameters"], parameters, f"parameters of {model.name}")
        require_equal(report["settings"]["sequence"], sequence, f"sequence of {model.name}")
        require_equal(report["bytes"]["host"]["backward"]["write"], 4 * parameters,
                      "gradients down")
        require_equal(report["bytes"]["host"]["update"]["read"], 4 * parameters, "parameters up")
        sweep = sluice("simulate", model, *ON_TESTBED, "--sweep", "batch=1,4", "--json").json()
        one, four = (row["seconds"]["forward"] for row in sweep["rows"])
        require(one < four, f"{model.name}: forward of 1 and 4 took {one} and {four} s")
        tuned = sluice("tune", model, *ON_TESTBED, "--set", "devices=4", "--json").json()
        require(tuned["seconds"]["after"] <= tuned["seconds"]["before"], f"{tuned['seconds']}")


@test
def a_recorded_simulation_opens_like_a_run_and_has_every_byte(place):
    report = sluice("simulate", MODEL, *ON_TESTBED, "--json", "--db", place / "sim.db", "--set",
                    "devices=10").json()
    shown = sluice("show", place / "sim.db", "--json").json()
    require_words(shown["mode"], ["SIMULATED"], "the mode")
    require_equal(len(shown["steps"]), 1, "steps")
    require_equal(shown["losses"], [], "lost records")
    with database(place / "sim.db") as db:
        rows = db.execute("SELECT link, direction, sum(bytes) FROM link_bytes GROUP BY 1, 2")
        found = {(link, direction): size for link, direction, size in rows if size}
        phases = db.execute(
            "SELECT forward_dur, backward_dur, update_dur FROM step_phase").fetchall()
    require_equal([[round(dur / 1e9, 6) for dur in phases[0]]],
                  [[round(report["seconds"][phase], 6)
                    for phase in ("forward", "backward", "update")]], "phases")
    wanted = {}
    for link, phases in report["bytes"].items():
        for direction in ("read", "write"):
            size = sum(phase[direction] for phase in phases.values())
            if size:
                wanted[(link, direction)] = size
    require_equal(found, wanted, "bytes by link and direction")
    require("SIMULATED" in sluice("show", place / "sim.db").done().out, "show")


@test
def what_cannot_be_simulated_is_refused_with_exit_code_2(place):
    bad_platform = place / "bad.toml"
    bad_platform.write_text(TESTBED.read_text().replace('read = "8 GB/s"', 'read = "0 GB/s"'))
    for arguments, words in [
            ((MODEL, *ON_TESTBED, "--sweep", "devics=1..3"), ["devics", "'devices'"]),
            ((MODEL, *ON_TESTBED, "--sweep", "devices=3..1"), ["backwards"]),
            ((MODEL, *ON_TESTBED, "--sweep", "devices"), ["key=1..10"]),
            ((MODEL, *ON_TESTBED, "--sweep", "engine_scale=1,0"), ["engine_scale", "0 is not in"]),
            ((MODEL, *ON_TESTBED, "--platform-set", "engine_scal=2"), ["'engine_scale'"]),
            ((MODEL, *ON_TESTBED, "--platform-set", "compute_units=65"), ["1 to 64"]),
            ((MODEL, *ON_TESTBED, "--platform-set", "media_scale"), ["not a number"]),
            ((MODEL, *ON_TESTBED, "--set", "devices=11"), ["11 devices", "has 10"]),
            ((place / "none.toml", *ON_TESTBED), ["none.toml", "no such model file"]),
            ((MODEL, "--platform", place / "none.toml"), ["none.toml"]),
            ((MODEL, "--platform", bad_platform), ["bad.toml", "read"]),
            ((MODEL,), ["--platform"]),
            ((BERT, *ON_TESTBED, "--set", "sequence=513"), ["longer", "bert-0.34b", "512"]),
            ((VIT, *ON_TESTBED, "--set", "sequence=196"), ["sequence=196", "always 197 tokens"]),
            ((VIT, *ON_TESTBED, "--sweep", "sequence=197,198"), ["sequence=198", "197 tokens"]),
            ((SAMPLES / "models/gpt3-175b.toml", *ON_TESTBED), ["use more devices"]),
            ((MODEL, *ON_TESTBED, "--set", "buffers=8"), ["smallest device_memory"])]:
        reply = sluice("simulate", *arguments).refused(2, words)
        require_equal(reply.out, "", "standard output")


@test
def an_output_that_cannot_be_written_is_said_with_what_to_do(place):
    for pipeline in ("serial", "handover", "nbuffer"):
        reply = sluice("simulate", MODEL, *ON_TESTBED, "--set", f"pipeline={pipeline}", "--db",
                       place / "no folder/sim.db")
        reply.refused(2, ["cannot create the run database there", "make the folder first"])


CLUSTER = ("--platform", SAMPLES / "platforms/a800-64.toml")
LLAMA = SAMPLES / "models/llama-7b.toml"


@test
def a_sharded_step_is_the_published_table_s(place):
    arguments = ("simulate", LLAMA, *CLUSTER, "--shard", "1x1,1x1,8x1", "--set", "batch=1",
                 "--set", "activations=keep")
    report = sluice(*arguments, "--json").json()
    rate = report["tokens_per_rank_and_second"]
    require(abs(rate / 3525 - 1) < 0.15, f"published 3525, simulated {rate}")
    require_equal(report["collectives"]["broadcast"]["count"], 8, "one owner each")
    require_equal(report["collectives"]["all_gather"]["count"], 0, "parameters are whole")
    slower = sluice(*arguments, "--without", "share_forward", "--json").json()
    require(slower["seconds"]["total"] > report["seconds"]["total"], "an overlap less")
    require_words(sluice(*arguments).done().out,
                  ["SIMULATED: llama-7b", "8x8 ranks", "nothing hides", "A rank keeps",
                   "reduce_backward"], "the report")


@test
def a_sharding_by_formula_counts_activations(_):
    shardings = []
    for activations in ("keep", "recompute"):
        arguments = ("simulate", LLAMA, *CLUSTER, "--shard", "auto", "--ranks", "8x2", "--set",
                     "batch=2", "--set", f"activations={activations}")
        report = sluice(*arguments, "--json").json()
        require(0 < report["memory"]["activations"] < report["memory_bytes"] <= 80_000_000_000,
                f"{report['memory']}")
        shardings.append(report["sharding"])
        require_words(sluice(*arguments).done().out, ["8x2 ranks", "activations"], "the report")
    require(shardings[0] != shardings[1], f"what layers keep takes room: {shardings}")
    sluice(*arguments, "--set", "accelerator_memory=1GB").refused(
        2, ["the smallest cap that works"])


RANKS = (SAMPLES / "models/gpt2-0.34b.toml", "--platform",
         SAMPLES / "platforms/smartssd-2x4.toml")


@test
def a_sharded_step_with_its_state_on_drives_is_the_one_of_a_run(_):
    run = ("--set", "method=csd", "--set", "devices=4", "--set", "activations=offload:1-12,keep")
    sharded = sluice("simulate", *RANKS, "--shard", "zero2", "--state", "drives", *run,
                     "--json").json()
    like_a_run = sluice("simulate", *RANKS, "--ranks", "2x4", "--set", "shard_state=2x4",
                        *run, "--json").json()
    require_equal(sharded["seconds"]["total"], like_a_run["seconds"]["total"], "seconds")
    require(sharded["seconds"]["update"] > 0 <= sharded["seconds"]["exposed"], f"{sharded}")
    require_equal(sharded["collectives"]["broadcast"]["count"], 8, "one owner each")
    text = sluice("simulate", *RANKS, "--shard", "zero3", "--state", "drives", *run).done().out
    require_words(text, ["2x4 ranks", "On its drives are", "gather_backward"], "the report")
    require("keep_gathered" not in text, f"a run has no such choice: {text}")


@test
def a_step_over_one_rank_is_that_of_one(_):
    run = ("--set", "method=csd", "--set", "devices=4", "--json")
    alone = sluice("simulate", *RANKS, *run).json()
    sharded = sluice("simulate", *RANKS, "--shard", "data_parallel", "--ranks", "1x1", "--state",
                     "drives", *run).json()
    require_equal(sharded["seconds"]["total"], alone["seconds"]["total"], "seconds")


@test
def a_sharding_that_cannot_be_is_refused(place):
    for shard, words in [(("--shard", "4x1,2x1,8x1"), "rule of order"),
                         (("--shard", "zero4"), "did you mean 'zero1'"),
                         (("--shard", "zero3", "--set", "method=csd"), "--set method"),
                         (("--shard", "zero3", "--without", "nothing"), "gather_forward"),
                         ((), "no [[device]]")]:
        sluice("simulate", LLAMA, *CLUSTER, *shard).refused(2, [words])
    sluice("simulate", MODEL, *ON_TESTBED, "--shard", "zero3").refused(2, ["needs [cluster]"])
    for settings, words in [(("activations=offload",), "use --state drives"),
                            (("shard_state=2x4", "--state", "drives"), "--shard and --without say"),
                            (("parameter_tier=storage", "--state", "drives"), "parameter_tier")]:
        sluice("simulate", *RANKS, "--shard", "zero3", "--set", *settings).refused(2, [words])


if __name__ == "__main__":
    sys.exit(main())
