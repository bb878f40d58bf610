#!/usr/bin/env python3
"""A folder of Hugging Face's is trained and written again: weights in, weights out, to the bit."""

import hashlib
import json
import random
import shutil
import struct
import subprocess
import sys

from sluice_run import (TESTBED, Skip, database, main, require, require_equal, require_words,
                        sluice, test)

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "vocab_size": 256, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
    "tie_word_embeddings": False, "torch_dtype": "float32", "use_cache": True,
}


def llama_tensors():
    """name -> shape, as LlamaForCausalLM has them."""
    tensors = {"model.embed_tokens.weight": [256, 32], "model.norm.weight": [32],
               "lm_head.weight": [256, 32]}
    for layer in range(2):
        of_layer = {"input_layernorm": [32], "post_attention_layernorm": [32],
                    "self_attn.q_proj": [32, 32], "self_attn.k_proj": [16, 32],
                    "self_attn.v_proj": [16, 32], "self_attn.o_proj": [32, 32],
                    "mlp.gate_proj": [48, 32], "mlp.up_proj": [48, 32], "mlp.down_proj": [32, 48]}
        for name, shape in of_layer.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = shape
    return tensors


def write_safetensors(path, tensors):
    """name -> (shape, bytes of fp32)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(folder):
    """name -> (dtype, shape, bytes), of all files in a folder."""
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        content = path.read_bytes()
        size = struct.unpack_from("<Q", content)[0]
        for name, entry in json.loads(content[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = (entry["dtype"], entry["shape"], content[begin:end])
    return tensors


def make_llama(folder, seed=3):
    """Its tensors as read_safetensors() gives them."""
    folder.mkdir()
    source = random.Random(seed)
    tensors = {}
    for name, shape in llama_tensors().items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        middle = 1.0 if "norm" in name else 0.0
        values = [source.gauss(middle, 0.05) for _ in range(count)]
        tensors[name] = (shape, struct.pack(f"<{count}f", *values))
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(LLAMA, indent=2))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    return {name: ("F32", shape, values) for name, (shape, values) in tensors.items()}


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def export(place, state, folder, *flags):
    return sluice("weights", "export", place / state, "-o", place / folder, *flags, cwd=place.path)


def without_a_change(place, *flags):
    """One step that leaves the weights as they are."""
    return place.train(*flags, lr=1e-30, weight_decay=0, min_lr=0, warmup_steps=0)


@test
def weights_that_no_step_changed_come_out_as_they_went_in(place):
    tensors = make_llama(place / "llama")
    said = without_a_change(place, "--model", place / "llama", "--steps", 1).done().out
    require_words(said, ["weights from", "llama", "21 tensors of F32 in 1 file"], "stdout")
    with database(place / "out/run.db") as db:
        meta = dict(db.execute("SELECT key, value FROM meta"))
    require_equal(meta["weights"], str(place / "llama"), "weights in the record")
    require_words(meta["model_text"], ['family = "llama"', "kv_heads = 2"], "model_text")
    export(place, "out", "once").done()
    require_equal(read_safetensors(place / "once"), tensors, "tensors of the export")
    config = json.loads((place / "once/config.json").read_text())
    require_equal(config, LLAMA, "config.json of the export")
    require_equal((place / "once/tokenizer.json").read_text(), '{"version": "1.0"}', "tokenizer")
    # Once more from there: the same bytes.
    without_a_change(place, "--model", place / "once", "--steps", 1, "--set",
                     f"output={place / 'out-2'}").done()
    export(place, "out-2/state", "twice").done()
    require_equal(digests(place / "twice"), digests(place / "once"), "files of the second export")


@test
def a_run_goes_on_and_is_exported_when_the_folder_is_gone(place):
    make_llama(place / "llama")
    place.train("--model", place / "llama", "--steps", 2).done()
    shutil.rmtree(place / "llama")
    said = place.train("--model", place / "llama", "--resume", "--steps", 4).done()
    require_words(said.err, ["is gone", "kept_model/model.toml"], "stderr")
    export(place, "out", "hf", "--dtype", "bf16").done()
    tensors = read_safetensors(place / "hf")
    require_equal({dtype for dtype, _, _ in tensors.values()}, {"BF16"}, "dtypes")
    require_equal({name: shape for name, (_, shape, _) in tensors.items()}, llama_tensors(),
                  "shapes")
    require_equal(json.loads((place / "hf/config.json").read_text())["torch_dtype"], "bfloat16",
                  "dtype of config.json")
    export(place, "out", "hf").refused(2, ["is there already", "-o"])


@test
def a_model_file_is_exported_with_a_configuration_of_its_own(place):
    place.train("--steps", 1).done()
    export(place, "out", "hf").done()
    config = json.loads((place / "hf/config.json").read_text())
    require_equal((config["model_type"], config["n_embd"], config["dtype"]),
                  ("gpt2", 32, "float32"), "config.json")
    simulated = sluice("simulate", place / "hf", "--platform", TESTBED, "--json").json()
    require_equal(simulated["model"], "hf", "model that is simulated")
    place.train("--model", place / "hf/config.json", "--steps", 1, "--set",
                f"output={place / 'out-2'}").done()


@test
def what_is_wrong_with_a_folder_is_said_before_anything_is_written(place):
    make_llama(place / "llama")
    config_path = place / "llama/config.json"
    config_path.write_text(json.dumps(LLAMA | {"logits_soft_cap": 30}))
    place.train("--model", place / "llama").refused(2, ["config.json", "'logits_soft_cap'"])
    config_path.write_text(json.dumps(LLAMA | {"num_hidden_layers": 3}))
    place.train("--model", place / "llama").refused(
        2, ["model.layers.2.self_attn.q_proj.weight", "missing"])
    config_path.write_text(json.dumps(LLAMA | {"intermediate_size": 40}))
    place.train("--model", place / "llama").refused(2, ["[48, 32]", "[40, 32]"])
    require(not (place / "out").exists(), "a run that was refused has written something")
    export(place, "out", "hf").refused(2, ["out"])
    sluice("weights").refused(2, ["export"])


@test
def transformers_opens_what_is_exported(place):
    """As far as it is installed where this test runs."""
    python = shutil.which("python3")
    found = subprocess.run([python, "-c", "import torch, transformers"], capture_output=True,
                           check=False)
    if found.returncode != 0:
        raise Skip("transformers is not installed")
    make_llama(place / "llama")
    place.train("--model", place / "llama", "--steps", 1).done()
    export(place, "out", "hf").done()
    script = ("import sys, transformers as t; "
              "m = t.AutoModelForCausalLM.from_pretrained(sys.argv[1]); "
              "m.save_pretrained(sys.argv[2])")
    done = subprocess.run([python, "-c", script, place / "hf", place / "saved"],
                          capture_output=True, text=True, check=False)
    require_equal(done.returncode, 0, f"transformers: {done.stderr}")
    require_equal(read_safetensors(place / "saved"), read_safetensors(place / "hf"), "tensors")


if __name__ == "__main__":
    sys.exit(main())
