#!/usr/bin/env python3
"""Adapters of a model that is frozen: the same numbers whatever moves them, a state of their size,
and PEFT's layout out and in."""

import json
import shutil
import sys

from hugging_face import make_llama, read_safetensors
from sluice_run import main, require, require_equal, require_words, sluice, test

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
