#!/usr/bin/env python3
"""Adapters of a model that is frozen: the same numbers whatever moves them, a state of their size,
and PEFT's layout out and in."""

import json
import shutil
import sys

from family_models import T5_MODEL
from hugging_face import make_llama, read_safetensors
from launched import Launched, mpirun
from sluice_run import database, main, require, require_equal, require_words, sluice, test

COMMON = {"model": "base", "lora_rank": 4, "sequence": 32}
# q_proj [32, 32] and v_proj [16, 32] of two blocks.
ADAPTER_PARAMETERS = 2 * 4 * (32 + 32 + 32 + 16)
# What must not change a digit.
WAYS = [
    {"method": "host", "activations": "keep"},
    {"method": "csd", "devices": 1, "buffers": 1, "activations": "recompute", "overlap": "exact"},
    {"method": "csd", "devices": 3, "subgroup_elements": 100, "activations": "offload",
     "commit_every": 3, "state_cache": "auto"},
    {"method": "host", "device": "soft", "activations": "offload_inputs",
     "subgroup_elements": 4096},
    {"method": "csd", "device": "soft", "gradient_work": "accelerator", "clock": "emulated",
     "time_scale": 0.01, "activations": "recompute:1,offload:2-3,keep", "overlap": "exact"},
    {"method": "host", "parameter_tier": "storage", "wire": "native", "state_cache": "auto"},
    {"method": "csd", "parameter_tier": "storage", "device": "soft", "activations": "offload"},
]


def numbers(reply):
    report = reply.json()
    return report["losses"], report["state_digest"]


def state_bytes(place, output):
    return sum(path.stat().st_size for path in (place / output).rglob("state.slc"))


@test
def adapters_learn_the_same_numbers_whatever_moves_them(place):
    make_llama(place / "base")
    common = {**COMMON, "lr": 0.02}
    found = []
    for index, way in enumerate(WAYS):
        found.append(numbers(place.train("--json", "--steps", 4, output=f"way{index}",
                                         **{**common, **way})))
        require_equal(found[-1], found[0], f"{way}, beside {WAYS[0]}")
    losses = found[0][0]
    require(losses[0] > losses[-1], f"nothing was learnt: {losses}")


# One window a rank and step, as two micro-batches of one have them.
RANKS = {**COMMON, "lora_rank": 40, "lora_targets": "all-linear", "batch": 1, "threads": 1}
SHARDINGS = [(), ("1x1", "1x1", "2x1"), ("1x1", "2x1", "2x1"), ("2x1", "2x1", "2x1")]


@test
def ranks_and_their_shards_learn_what_one_rank_does(place):
    make_llama(place / "base")
    alone = numbers(place.train("--json", "--steps", 3, output="alone", grad_accum_steps=2,
                                **RANKS))
    names = ("shard_parameters", "shard_gradients", "shard_state")
    for index, scopes in enumerate(SHARDINGS):
        shards = dict(zip(names, scopes, strict=False))
        more = {"mesh": "2x1", **shards} if shards else {"parameter_tier": "storage"}
        if index == 3:
            more["device"] = "soft"
        found = Launched(place, [*mpirun(), "-n", "2"], "--json", "--steps", "3",
                         output=place / f"ranks{index}", **RANKS, **more).json()
        require_equal((found["losses"], found["state_digest"]), alone, f"two ranks, {more}")


@test
def an_adapter_in_pieces_gives_the_numbers_of_one_run(place):
    make_llama(place / "base")
    for name, more in (("all", {"lora_targets": "all-linear", "grad_accum_steps": 2}),
                       ("some", {"lora_targets": "layers.1.mlp.*", "density": 0.1})):
        common = {**COMMON, **more}
        whole = numbers(place.train("--json", "--steps", 4, output=f"{name}-whole", **common))
        first, _ = numbers(place.train("--json", "--steps", 2, output=name, **common))
        rest, digest = numbers(place.train("--json", "--resume", "--steps", 4, output=name,
                                           activations="recompute", device="soft", **common))
        require_equal((first + rest, digest), whole, f"{name}: two steps and two more")


# What a step moves of the model of hugging_face.make_llama(), in bf16.
BLOCK_BYTES = 2 * (2 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32)
BASE_BYTES = 2 * (2 * 256 * 32 + 32) + 2 * BLOCK_BYTES


@test
def a_base_on_the_drives_is_written_once_and_read_in_each_pass(place):
    make_llama(place / "base")
    before = (place / "base/model.safetensors").read_bytes()
    steps = 3
    place.train("--steps", steps, device="soft", parameter_tier="storage", **COMMON).done()
    with database(place / "out/run.db") as db:
        found = {name: size for name, size in db.execute(
            "SELECT s.value, sum(span.bytes) FROM span JOIN string s ON s.id = span.name_id "
            "WHERE subgroup_id IS NULL GROUP BY s.value")}
    # Forward leaves the head and the upper block in the window, and the embedding stays; the
    # validation behind the last step goes forward once more.
    require_equal(found["parameter_read"], steps * (BASE_BYTES + BLOCK_BYTES) + BASE_BYTES,
                  "bytes read")
    require_equal(found["layer_in"], (2 * steps + 1) * (BASE_BYTES + 2 * ADAPTER_PARAMETERS),
                  "bytes to the accelerator")
    require(found.get("parameter_write", BASE_BYTES) == BASE_BYTES, f"written: {found}")
    require_equal((place / "base/model.safetensors").read_bytes(), before, "the base's file")
    require_equal([str(path) for path in place.path.rglob("parameters.slc")], [], "files left")


@test
def a_base_on_the_drives_is_there_after_a_change_of_knobs_and_a_resume(place):
    make_llama(place / "base")
    common = {**COMMON, "lora_targets": "layers.1.*", "sample_tokens": 8}
    whole = place.train("--json", "--steps", 4, output="whole", **common).json()
    common = {**common, "parameter_tier": "storage", "output": "out"}
    first = place.train("--json", "--steps", 3, "--at", "1:method=host", "--at",
                        "2:device_map=1,3", **common).json()
    rest = place.train("--json", "--resume", "--steps", 4, **common).json()
    require_equal((first["losses"] + rest["losses"], rest["state_digest"], rest["sample"]),
                  (whole["losses"], whole["state_digest"], whole["sample"]), "in two pieces")


@test
def a_t5_has_adapters_in_both_stacks_and_merges(place):
    (place / "t5.toml").write_text(T5_MODEL.replace("dropout = 0.1\n", ""))
    common = {"sequence": 32, "sentinel_token": 299, "precision": "fp32"}
    place.train("--steps", 1, model="t5.toml", output="first", **common).done()
    sluice("weights", "export", place / "first", "-o", place / "base").done()
    common = {**common, "lora_rank": 4, "model": "base"}
    found = []
    for index, way in enumerate((WAYS[0], {**WAYS[6], "activations": "recompute"})):
        found.append(numbers(place.train("--json", "--steps", 3, output=f"way{index}",
                                         **{**common, **way})))
        require_equal(found[-1], found[0], f"{way}, beside {WAYS[0]}")
    sluice("weights", "export", place / "way0", "-o", place / "adapter").done()
    config = json.loads((place / "adapter/adapter_config.json").read_text())
    require_equal((config["task_type"], sorted(config["target_modules"])),
                  ("SEQ_2_SEQ_LM", ["q", "v"]), "the configuration")
    # q and v of an encoder's block, of two decoder's blocks, and of their cross attention.
    tensors = read_safetensors(place / "adapter")
    require_equal(len(tensors), 2 * 2 * (1 + 2 + 2), "tensors")
    require("base_model.model.decoder.block.1.layer.1.EncDecAttention.v.lora_A.weight" in tensors,
            f"names: {sorted(tensors)}")
    sluice("weights", "export", place / "way0", "-o", place / "whole", "--merged").done()
    beside = place.train("--json", "--steps", 1, output="beside", lora_adapter="adapter",
                         **common).json()["losses"][0]
    require(abs(beside - found[0][0][0]) > 1e-3, f"the adapters add nothing: {beside}")
    merged = place.train("--json", "--steps", 1, output="merged",
                         **{**common, "model": "whole", "lora_rank": 0}).json()["losses"][0]
    require(abs(merged - beside) < 1e-5 * beside, f"merged {merged}, beside {beside}")


@test
def the_first_loss_is_the_bases_and_the_state_is_that_of_adapters_alone(place):
    make_llama(place / "base")
    before = (place / "base/model.safetensors").read_bytes()
    for precision in ("bf16", "fp32"):
        of_base = place.train("--json", "--steps", 1, model="base", output=f"base-{precision}",
                              precision=precision, subgroup_elements=4096).json()
        report = place.train("--json", "--steps", 1, output=f"out-{precision}",
                             precision=precision, **{**COMMON, "subgroup_elements": 4096}).json()
        require_equal(report["losses"], of_base["losses"], f"the first loss in {precision}")
    require(state_bytes(place, "out-bf16") <= 2 * (3 * 4 * ADAPTER_PARAMETERS + 3 * 4096),
            f"a state of {state_bytes(place, 'out-bf16')} bytes")
    require_equal((place / "base/model.safetensors").read_bytes(), before, "the base's file")


@test
def an_adapter_leaves_in_pefts_layout_and_comes_back(place):
    make_llama(place / "base")
    place.train("--steps", 2, output="out", **COMMON).done()
    said = sluice("weights", "export", place / "out", "-o", place / "adapter", "--optimizer").done()
    require_words(said.out, ["the adapters of step 2", "as fp32"], "export")
    config = json.loads((place / "adapter/adapter_config.json").read_text())
    for key, value in (("peft_type", "LORA"), ("r", 4), ("lora_alpha", 16), ("bias", "none"),
                       ("target_modules", ["q_proj", "v_proj"]), ("task_type", "CAUSAL_LM"),
                       ("base_model_name_or_path", str((place / "base").resolve()))):
        require_equal(config[key], value, key)
    name = "base_model.model.model.layers.1.self_attn.v_proj.lora_"
    tensors = read_safetensors(place / "adapter")
    require_equal(len([key for key in tensors if key.startswith("base_model.")]), 8, "tensors")
    require_equal(tensors[name + "A.weight"][:2], ("F32", [4, 32]), "A")
    require_equal(tensors[name + "B.weight"][:2], ("F32", [16, 4]), "B")
    require("exp_avg_sq." + name + "B.weight" in tensors, "no optimizer's state")

    place.train("--steps", 1, output="again", lora_adapter="adapter", optimizer_state="adapter",
                validation_every=0, lr=1e-30, **COMMON).done()
    sluice("weights", "export", place / "again", "-o", place / "adapter2").done()
    require_equal((place / "adapter2/adapter_model.safetensors").read_bytes(),
                  (place / "adapter/adapter_model.safetensors").read_bytes(), "the adapter")
    config["lora_dropout"] = 0.1
    (place / "adapter/adapter_config.json").write_text(json.dumps(config))
    said = place.train("--steps", 1, output="told", lora_adapter="adapter", **COMMON).done()
    require_words(said.err, ["lora_dropout is 0.1; training here drops nothing out"], "a warning")
    place.train("--steps", 1, output="other", **{**COMMON, "lora_adapter": "adapter",
                                                 "lora_rank": 2}).refused(
        2, ["lora_rank=4", "lora_alpha=16", "leave lora_adapter out"])


@test
def merged_weights_are_a_model_with_the_loss_of_base_and_adapter(place):
    make_llama(place / "base")
    common = {**COMMON, "precision": "fp32", "lora_targets": "all-linear"}
    place.train("--steps", 3, output="out", lr=0.02, **common).done()
    sluice("weights", "export", place / "out", "-o", place / "adapter").done()
    said = sluice("weights", "export", place / "out", "-o", place / "whole", "--merged").done()
    require_words(said.out, ["the merged weights of step 3"], "export")
    beside = place.train("--json", "--steps", 1, output="beside", lora_adapter="adapter",
                         **common).json()["losses"][0]
    merged = place.train("--json", "--steps", 1, model="whole", output="merged",
                         precision="fp32").json()["losses"][0]
    require(abs(merged - beside) < 1e-5 * beside, f"merged {merged}, beside {beside}")
    sluice("weights", "export", place / "merged", "-o", place / "no", "--merged").refused(
        2, ["is for a state of adapters"])
    shutil.rmtree(place / "base")
    sluice("weights", "export", place / "out", "-o", place / "no", "--merged").refused(2, ["base"])


@test
def what_does_not_go_with_adapters_is_refused_by_name(place):
    make_llama(place / "base")
    place.train(**{**COMMON, "model": "nano.toml"}).refused(
        2, ["adapters are trained on a model's weights", "nano.toml has none"])
    place.train(**{**COMMON, "lora_targets": "v_prok"}).refused(
        2, ["lora_targets", "\"v_prok\"", "did you mean 'v_proj'"])
    place.train(**{**COMMON, "optimizer_state": "base"}).refused(2, ["set lora_adapter="])
    said = place.train(model="base", lora_alpha=3).done()
    require_words(said.err, ["lora_alpha has no effect with lora_rank=0"], "a warning")


@test
def a_resume_on_another_base_is_refused(place):
    make_llama(place / "base")
    place.train("--steps", 1, **COMMON).done()
    (place / "elsewhere").mkdir()
    make_llama(place / "elsewhere/base", seed=4)
    place.train("--resume", "--steps", 2, **{**COMMON, "model": "elsewhere/base"}).refused(
        2, ["has adapters of other base weights than those of model=", "elsewhere/base"])
    place.train("--resume", "--steps", 2, **{**COMMON, "lora_rank": 8}).refused(2, ["lora_rank=4"])
    shutil.rmtree(place / "elsewhere/base")
    shutil.move(place / "base", place / "elsewhere/base")
    place.train("--resume", "--steps", 2, **COMMON).refused(2, ["kept_model", "has none"])
    place.train("--resume", "--steps", 2, **{**COMMON, "model": "elsewhere/base"}).done()


if __name__ == "__main__":
    sys.exit(main())
