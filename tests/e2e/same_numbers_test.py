#!/usr/bin/env python3
"""A model learns the same numbers whatever moves them: losses of all steps and the digest of the
optimizer state are equal digit by digit, in whatever order, place and format things travel."""

import concurrent.futures
import itertools
import os
import random
import sys

from family_models import BERT_MODEL, LLAMA_MODEL, T5_MODEL
from sluice_run import (NANO_PARAMETERS, SAMPLES, database, main, require, require_equal,
                        sample_text, setting_arguments, sluice, test)

# What must not change a digit. 100 and 960 elements are less than a page, 4096 is whole pages,
# 34,687 leaves one element over, and a million is more than the model has. None divides 34,688.
# All but 100 and 34,687 are whole groups of 64.
FACTORS = {
    "method": ["host", "csd"],
    "clock": ["real", "emulated"],
    "buffers": [1, 2, 3, 4],
    "devices": [1, 2, 3, 10],
    "device_map": ["even", "uneven"],
    "subgroup_elements": [100, 960, 4096, 4992, 34_687, 1_000_000],
    "wire": ["fp32", "native"],
    "prefetch": ["true", "false"],
    "queue_depth": [1, 64],
    "io_bytes": ["4KiB", "1MiB"],
    "io_engine": ["io_uring", "posix"],
    "caching": ["direct", "buffered"],
    "activations": ["keep", "recompute", "offload", "offload_inputs",
                    "recompute:1,offload:2-3,keep"],
    "device": ["cpu", "soft", "soft, with its gradients"],
    "worker_threads": [1, 3],
    "commit_every": [1, 3],
    "state_cache": [0, "half", "auto"],
    "record": ["all", "off"],
    "state_format": ["fp32", "exact"],
}
SHARES = {1: "5", 2: "3,1", 3: "1,0,2.5", 10: "1,2,3,4,5,0,7,8,9,1"}


def is_possible(row):
    """Subgroups of exact state are whole groups of 64 elements."""
    return row.get("state_format") != "exact" or row.get("subgroup_elements", 64) % 64 == 0


def without(name, factors):
    return {other: values for other, values in factors.items() if other != name}


def pairwise(factors, seed):
    """Few rows in which each possible pair of values of two factors occurs: greedy, over seeded
    guesses."""
    source = random.Random(seed)
    names = list(factors)
    pairs = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2)
             for x in factors[a] for y in factors[b] if is_possible({a: x, b: y})}
    rows = []
    while pairs:
        (a, x), (b, y) = source.choice(sorted(pairs, key=str))
        guesses = []
        while len(guesses) < 40:
            row = {name: source.choice(values) for name, values in factors.items()}
            row[a], row[b] = x, y
            if not is_possible(row):
                continue
            covered = set(itertools.combinations(row.items(), 2)) & pairs
            guesses.append((len(covered), len(guesses), row, covered))
        _, _, row, covered = max(guesses, key=lambda guess: guess[:2])
        rows.append(row)
        pairs -= covered
    return rows


def half_of_the_state(row):
    """Bytes for half of the subgroups, or for one: of the host, or of each device."""
    elements = min(row["subgroup_elements"], NANO_PARAMETERS)
    arrays = (2, 2, 4, 4) if row.get("state_format") == "exact" else (4, 4, 4)
    subgroup_bytes = sum(-(-elements * each // 4096) * 4096 for each in arrays)
    count = -(-NANO_PARAMETERS // elements) // 2
    return subgroup_bytes * max(1, count // (row["devices"] if row["method"] == "csd" else 1))


def settings_of(row):
    settings = dict(row)
    settings["device_map"] = (
        SHARES[row["devices"]] if row["device_map"] == "uneven" else "even")
    settings["device"] = row["device"].split(",")[0]
    settings["gradient_work"] = "host" if settings["device"] == row["device"] else "accelerator"
    if row["state_cache"] == "half":
        settings["state_cache"] = half_of_the_state(row)
    if row["clock"] == "emulated":
        settings["time_scale"] = 0.01  # the modelled devices are not what this waits for
    return settings


def numbers(reply):
    report = reply.json()
    return report["losses"], report["state_digest"]


def compare_all(place, rows, common, steps, prefix=""):
    """All rows side by side, each in a folder of its own; the first one is the reference."""

    def run(indexed):
        index, row = indexed
        settings = {**common, **settings_of(row), "output": f"{prefix}run{index}"}
        return numbers(place.train("--json", "--steps", steps, **settings))

    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = list(pool.map(run, enumerate(rows)))
    require_equal(len(found[0][0]), steps, "losses in the report")
    for row, (losses, digest) in zip(rows, found):
        require((losses, digest) == found[0],
                f"{settings_of(row)} gave {losses} {digest}, {settings_of(rows[0])} gave "
                f"{found[0][0]} {found[0][1]}")
    return found[0]


@test
def all_pairs_of_settings_give_the_same_numbers(place):
    losses, _ = compare_all(place, pairwise(FACTORS, seed=1), {}, steps=4)
    require(losses[0] > losses[-1], f"nothing was learnt: {losses}")


@test
def settings_give_the_same_numbers_with_gradient_accumulation(place):
    some = {name: values[:2] + values[-1:] for name, values in FACTORS.items()}
    rows = pairwise(some, seed=2)[:8]
    compare_all(place, rows, {"grad_accum_steps": 3, "batch": 1}, steps=3)


@test
def settings_give_the_same_numbers_with_each_optimizer(place):
    some = {name: values[:2] + values[-1:] for name, values in FACTORS.items()}
    rows = pairwise(some, seed=4)[:6]
    found = []
    for rule in ("sgd", "adagrad"):
        common = {"optimizer": rule, "weight_decay": 0.01}
        found.append(compare_all(place, rows, common, steps=4, prefix=rule))
    require(found[0] != found[1], "sgd and adagrad gave the same numbers")


# One has heads of queries that share keys and values; the other wide heads with norms, all biases,
# a window in its second block, stretched positions and one table.
LLAMAS = {
    "llama.toml": "tied_tables = false\n",
    "qwen.toml": "head_dim = 24\nqk_norm = true\nqkv_bias = true\no_bias = true\nmlp_bias = true\n"
                 "window = 9\nfirst_window_block = 1\nrope_scaling = \"yarn\"\nrope_factor = 4\n"
                 "rope_original_sequence = 16\ntied_tables = true\n",
}
FAMILY_FACTORS = {
    **{name: FACTORS[name] for name in ("method", "buffers", "devices", "device_map", "clock",
                                        "activations", "device", "commit_every")},
    "subgroup_elements": [4096, 4992],
    "state_cache": [0, "auto"],
    "state_format": ["fp32", "exact"],
    "parameter_tier": ["memory", "storage"],
    "overlap": ["off", "exact"],
}


@test
def settings_give_the_same_numbers_for_a_llama(place):
    rows = pairwise(FAMILY_FACTORS, seed=5)[:8]
    found = []
    for model, keys in LLAMAS.items():
        (place / model).write_text(LLAMA_MODEL + keys)
        common = {"model": model}
        found.append(compare_all(place, rows, common, steps=4, prefix=model))
        losses = found[-1][0]
        require(losses[0] > losses[-1], f"nothing was learnt: {losses}")
        whole = numbers(place.train("--json", "--steps", 4, output=f"{model}-whole", **common))
        require_equal(whole, found[-1], f"{model} with the run file's settings")
    require(found[0] != found[1], "two shapes gave the same numbers")


# Both tables are two layers each.
WIDE_TABLES = LLAMA_MODEL.replace("vocabulary = 256", "vocabulary = 40000")


@test
def settings_give_the_same_numbers_where_tables_are_layers(place):
    (place / "wide.toml").write_text(WIDE_TABLES)
    factors = {**FAMILY_FACTORS, "subgroup_elements": [65536, 99_968], "devices": [1, 3]}
    common = {"model": "wide.toml"}
    found = compare_all(place, pairwise(factors, seed=10)[:8], common, steps=3)
    require(found[0][0] > found[0][-1], f"nothing was learnt: {found[0]}")
    with database(place / "run0/run.db") as db:
        layers = {layer for layer, in db.execute("SELECT DISTINCT layer_id FROM span")}
    require(layers >= set(range(7)), f"two pieces a table, two blocks and a head: {layers}")


@test
def a_llama_in_pieces_gives_the_numbers_of_one_run(place):
    (place / "llama.toml").write_text(LLAMA_MODEL)
    common = {"model": "llama.toml", "density": 0.1}
    whole = numbers(place.train("--json", "--steps", 6, output="whole", **common))
    first, _ = numbers(place.train("--json", "--steps", 3, output="pieces", **common))
    rest, digest = numbers(place.train("--json", "--resume", "--steps", 6, output="pieces",
                                       activations="recompute", **common))
    require_equal((first + rest, digest), whole, "three steps and three more")


@test
def settings_give_the_same_numbers_for_a_bert_with_hidden_tokens_and_dropout(place):
    (place / "bert.toml").write_text(BERT_MODEL)
    common = {"model": "bert.toml", "mask_token": 256}
    found = compare_all(place, pairwise(FAMILY_FACTORS, seed=8)[:6], common, steps=4)
    require(found[0][0] > found[0][-1], f"nothing was learnt: {found[0]}")
    first, _ = numbers(place.train("--json", "--steps", 2, output="pieces", **common))
    rest, digest = numbers(place.train("--json", "--resume", "--steps", 4, output="pieces",
                                       activations="recompute", **common))
    require_equal((first + rest, digest), found, "two steps and two more")


@test
def settings_give_the_same_numbers_for_a_t5_that_answers_spans(place):
    (place / "t5.toml").write_text(T5_MODEL)
    common = {"model": "t5.toml", "sentinel_token": 299, "validation_every": 2}
    found = compare_all(place, pairwise(FAMILY_FACTORS, seed=9)[:6], common, steps=4)
    require(found[0][0] > found[0][-1], f"nothing was learnt: {found[0]}")
    first, _ = numbers(place.train("--json", "--steps", 2, output="pieces", **common))
    rest, digest = numbers(place.train("--json", "--resume", "--steps", 4, output="pieces",
                                       activations="offload", **common))
    require_equal((first + rest, digest), found, "two steps and two more")


@test
def settings_give_the_same_numbers_in_fp32(place):
    factors = {**without("state_format", FACTORS), "parameter_tier": ["memory", "storage"],
               "overlap": ["off", "exact"]}
    some = {name: values[:2] + values[-1:] for name, values in factors.items()}
    in_fp32 = compare_all(place, pairwise(some, seed=6)[:10], {"precision": "fp32"}, steps=4)
    require(in_fp32[0][0] > in_fp32[0][-1], f"nothing was learnt: {in_fp32[0]}")
    in_bf16 = numbers(place.train("--json", "--steps", 4, output="bf16"))
    require(in_fp32 != in_bf16, "bf16 gave the numbers of fp32")


@test
def a_llama_gives_the_same_numbers_in_fp32(place):
    (place / "llama.toml").write_text(LLAMA_MODEL)
    rows = pairwise(without("state_format", FAMILY_FACTORS), seed=7)[:6]
    compare_all(place, rows, {"model": "llama.toml", "precision": "fp32"}, steps=3)


# 2^32 is more than the gradients bear in fp16, whose largest number is 65504.
FP16 = {"precision": "fp16", "initial_loss_scale": 4294967296, "loss_scale_growth_interval": 3}


@test
def settings_give_the_same_numbers_in_fp16_with_skipped_steps(place):
    some = {name: values[:2] + values[-1:]
            for name, values in without("state_format", FACTORS).items()}
    rows = [{**row, "record": "all"} for row in pairwise(some, seed=3)[:8]]
    compare_all(place, rows, FP16, steps=20)
    with database(place / "run0/run.db") as db:
        steps = db.execute("SELECT skipped, loss_scale FROM step ORDER BY id").fetchall()
    skipped = [row[0] for row in steps]
    require(skipped[0] == 1 and skipped[-1] == 0, f"expected skips, then none: {skipped}")
    for (was_skipped, scale), (_, next_scale) in zip(steps, steps[1:]):
        require(not was_skipped or next_scale == scale / 2,
                f"a skipped step at loss scale {scale} was followed by {next_scale}")
    state = place.state("--json", state_dir="run0/state").json()
    require_equal(state["step"], 20, "committed step")
    require_equal(state["optimizer_step"], 20 - sum(skipped), "updates applied")


@test
def a_run_in_pieces_gives_the_numbers_of_one_run(place):
    for name, common in (("bf16", {}), ("fp16", FP16), ("accumulation", {"grad_accum_steps": 2}),
                         ("fp32", {"precision": "fp32"})):
        whole = numbers(place.train("--json", "--steps", 16, output=f"{name}-whole", **common))
        losses = []
        for piece, steps in enumerate((1, 7, 8, 16)):
            flags = ["--resume"] if piece else []
            part, digest = numbers(place.train("--json", "--steps", steps, *flags,
                                               output=f"{name}-pieces", **common))
            losses += part
        require_equal((losses, digest), whole, f"{name} in four pieces")


@test
def a_resume_may_use_other_settings(place):
    whole = numbers(place.train("--json", "--steps", 6, output="whole"))
    first, _ = numbers(place.train("--json", "--steps", 3, output="pieces"))
    rest, digest = numbers(place.train(
        "--json", "--resume", "--steps", 6, output="pieces", method="host", buffers=1,
        wire="native", io_engine="posix", io_bytes="4KiB", clock="emulated", time_scale=0.01,
        device="soft"))
    require_equal((first + rest, digest), whole, "csd for three steps, then host for three")


@test
def the_tiny_model_gives_the_same_numbers(place):
    text = sample_text()
    rows = [
        {"method": "csd", "clock": "emulated", "devices": 4},
        {"method": "host", "clock": "real", "devices": 1, "subgroup_elements": 1 << 20},
        {"method": "host", "clock": "emulated", "devices": 2, "state_format": "exact"},
        {"method": "csd", "clock": "real", "devices": 3, "device_map": "1,3,2", "buffers": 2,
         "subgroup_elements": 100_003},
        {"method": "host", "clock": "emulated", "devices": 10, "wire": "native"},
        {"method": "csd", "clock": "real", "devices": 2, "device": "soft", "density": 1},
    ]
    found = []
    for index, row in enumerate(rows):
        settings = {**row, "text": text, "output": place / f"tiny{index}", "sample_tokens": 0,
                    "validation_every": 0, "validation_batches": 1}
        found.append(numbers(sluice("train", SAMPLES / "runs/tiny.toml", "--steps", 3, "--json",
                                    *setting_arguments(settings))))
        require_equal(found[-1], found[0], f"tiny with {row}")


if __name__ == "__main__":
    sys.exit(main())
