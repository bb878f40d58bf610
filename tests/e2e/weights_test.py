#!/usr/bin/env python3
"""A folder of Hugging Face's is trained and written again: weights in, weights out, to the bit."""

import hashlib
import json
import pathlib
import shutil
import struct
import subprocess
import sys

from hugging_face import LLAMA, llama_tensors, make_llama, read_safetensors
from sluice_run import (ROOT, TESTBED, Skip, database, main, require, require_equal, require_words,
                        sluice, test)


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


# The optimizer's state ----------------------------------------------------------------------------

# The moments in every number; and the steps of a run that goes on are those of one that begins, so
# that the two can be compared: every batch is the same one, and so is every rate.
FP32 = {"precision": "fp32", "lr": 1e-3, "min_lr": 1e-3, "warmup_steps": 0, "max_grad_norm": 0}


def metadata(path):
    content = path.read_bytes()
    size = struct.unpack_from("<Q", content)[0]
    return json.loads(content[8:8 + size])["__metadata__"]


def numbers(tensor):
    _, _, content = tensor
    return struct.unpack(f"<{len(content) // 4}f", content)


def of_optimizer(folder):
    """name -> (dtype, shape, bytes), of the optimizer's tensors."""
    return {name: tensor for name, tensor in read_safetensors(folder).items()
            if not name.startswith(("model.", "lm_head."))}


@test
def after_one_step_from_zero_the_moments_are_those_of_its_gradient(place):
    """exp_avg = (1 - beta1) g and exp_avg_sq = (1 - beta2) g^2."""
    weights = make_llama(place / "llama")
    place.train("--model", place / "llama", "--steps", 1, **FP32).done()
    said = export(place, "out", "hf", "--optimizer").done().out
    require_words(said, ["adamw after 1 update", "as fp32", "master weights"], "stdout")
    require_equal(metadata(place / "hf/optimizer.safetensors"),
                  {"format": "sluice-optimizer", "optimizer": "adamw", "step": "1"}, "metadata")
    moments = of_optimizer(place / "hf")
    require_equal(set(moments), {f"{array}.{name}" for name in weights
                                 for array in ("exp_avg", "exp_avg_sq")}, "names")
    moved = 0
    for name, (_, shape, _) in weights.items():
        first, second = moments[f"exp_avg.{name}"], moments[f"exp_avg_sq.{name}"]
        require_equal((first[:2], second[:2]), (("F32", shape), ("F32", shape)), name)
        for average, square in zip(numbers(first), numbers(second)):
            gradient = average / (1 - 0.9)
            moved += gradient != 0
            require(abs(square - (1 - 0.999) * gradient**2) <= 1e-5 * square + 1e-37,
                    f"{name}: exp_avg {average}, exp_avg_sq {square}")
    require(moved > 10_000, f"{moved} gradients are not 0")


def goes_on(place, optimizer, arrays):
    """A run of three steps, and one of two whose export a new run takes its third step from."""
    (place / "text.txt").write_text("a" * 20_000)
    make_llama(place / "llama")
    settings = FP32 | {"optimizer": optimizer}

    def train(model, output, steps, **more):
        place.train("--model", place / model, "--steps", steps, "--set",
                    f"output={place / output}", **settings, **more).done()
        export(place, output, f"{output}-hf", "--optimizer").done()
        return of_optimizer(place / f"{output}-hf")

    at_three = train("llama", "whole", 3)
    require_equal({name.split(".")[0] for name in at_three}, set(arrays), "arrays")
    at_two = train("llama", "begun", 2)
    require(at_two != at_three, "the third step has changed nothing")
    train("begun-hf", "gone-on", 1, optimizer_state=place / "begun-hf")
    shown = sluice("show", place / "gone-on").done().out
    require_words(shown, ["optimizer's state from", "begun-hf"], "sluice show")
    same = digests(place / "whole-hf")
    require_equal(digests(place / "gone-on-hf"), same, f"files of {optimizer} after the third step")
    train("begun-hf", "anew", 1)
    require(digests(place / "anew-hf") != same, "the moments of the folder make no difference")


@test
def a_run_that_begins_with_exported_moments_goes_on_to_the_byte_with_adamw(place):
    goes_on(place, "adamw", ["exp_avg", "exp_avg_sq"])


@test
def a_run_that_begins_with_exported_moments_goes_on_to_the_byte_with_sgd(place):
    goes_on(place, "sgd", ["momentum_buffer"])


@test
def a_run_that_begins_with_exported_moments_goes_on_to_the_byte_with_adagrad(place):
    goes_on(place, "adagrad", ["sum"])


@test
def an_optimizer_state_that_is_another_ones_is_refused_before_anything_is_written(place):
    make_llama(place / "llama")
    place.train("--model", place / "llama", "--steps", 1, "--set", f"output={place / 'first'}",
                optimizer="sgd").done()
    export(place, "first", "hf", "--optimizer", "--dtype", "bf16").refused(2, ["--dtype fp32"])
    export(place, "first", "hf", "--optimizer").done()
    begin = {"model": place / "hf", "optimizer_state": place / "hf"}
    place.train(**begin).refused(2, ["is the state of sgd", "set optimizer=sgd"])
    place.train(**begin | {"optimizer_state": place / "llama"}).refused(
        2, ["has no optimizer.safetensors", "--optimizer"])
    place.train(optimizer="sgd", optimizer_state=place / "hf").refused(2, ["are of the seed"])
    require(not (place / "out").exists(), "a run that was refused has written something")


@test
def moments_of_a_model_file_come_out_with_the_names_of_its_weights_and_go_in_again(place):
    place.train("--steps", 2).done()
    export(place, "out", "hf", "--optimizer").done()
    tensors = read_safetensors(place / "hf")
    weights = {name: shape for name, (_, shape, _) in tensors.items()
               if name.startswith("transformer.")}
    require("transformer.wte.weight" in weights, f"names: {sorted(weights)}")
    require_equal({name: shape for name, (_, shape, _) in tensors.items() if name not in weights},
                  {f"{array}.{name}": shape for name, shape in weights.items()
                   for array in ("exp_avg", "exp_avg_sq")}, "tensors of the optimizer")
    said = without_a_change(place, "--model", place / "hf", "--steps", 1, "--set",
                            f"output={place / 'out-2'}", "--set",
                            f"optimizer_state={place / 'hf'}").done().out
    require_words(said, ["adamw after 2 updates", "tensors in 1 file"], "stdout")
    require_equal(place.state("--json", state_dir="out-2/state").json()["optimizer_step"], 3,
                  "updates")


@test
def moments_that_are_not_what_was_committed_are_not_exported(place):
    place.train("--steps", 2).done()
    export(place, "out", "whole", "--optimizer").done()
    _, _, values = read_safetensors(place / "whole")["exp_avg_sq.transformer.h.1.mlp.c_fc.weight"]
    damaged = 0
    for path in (place / "out/state").glob("dev*/state.slc"):
        content = path.read_bytes()
        at = content.find(values[:256])
        if at >= 0:
            damaged += 1
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
    require_equal(damaged, 1, "files that were damaged")
    export(place, "out", "weights").done()
    export(place, "out", "hf", "--optimizer").refused(
        1, ["the numbers of exp_avg_sq in subgroup", "not what was committed"])
    require(not (place / "hf").exists(), "an export that failed has left something")


# The documented lines, and after them a step of torch's beside the one that Sluice has taken.
TORCH_CHECK = """
import sys, json, struct, types, torch

def load_file(path):
    content = open(path, "rb").read()
    size = struct.unpack_from("<Q", content)[0]
    return {name: torch.frombuffer(bytearray(content[8 + size + e["data_offsets"][0]:
                                                     8 + size + e["data_offsets"][1]]),
                                   dtype=torch.float32).reshape(e["shape"]).clone()
            for name, e in json.loads(content[8:8 + size]).items() if name != "__metadata__"}

def save_file(tensors, path, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        content = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

class safe_open:
    def __init__(self, path, framework):
        content = open(path, "rb").read()
        size = struct.unpack_from("<Q", content)[0]
        self.header, self.tensors = json.loads(content[8:8 + size]), load_file(path)
    __enter__ = lambda self: self
    def __exit__(self, *_): pass
    def metadata(self): return self.header["__metadata__"]
    def keys(self): return list(self.tensors)
    def get_tensor(self, name): return self.tensors[name]

try:
    import safetensors.torch
except ImportError:
    of_torch = types.ModuleType("safetensors.torch")
    of_torch.load_file, of_torch.save_file = load_file, save_file
    package = types.ModuleType("safetensors")
    package.torch, package.safe_open = of_torch, safe_open
    sys.modules |= {"safetensors": package, "safetensors.torch": of_torch}

begin, end = sys.argv[1], sys.argv[2]

class Holder(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.of = {name: torch.nn.Parameter(value) for name, value in tensors.items()}
    def named_parameters(self): return iter(self.of.items())
    def parameters(self): return iter(self.of.values())

model = Holder(load_file(begin + "/model.safetensors"))
exec(open(sys.argv[4]).read())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
optimizer.load_state_dict(state_dict_of(begin + "/optimizer.safetensors", model, optimizer))
save_state_dict(optimizer, model, sys.argv[3])
before, again = load_file(begin + "/optimizer.safetensors"), load_file(sys.argv[3])
assert before.keys() == again.keys() and all(before[n].equal(again[n]) for n in before), "and back"
# The gradient of the step that Sluice has taken stands in its first moment.
after = load_file(end + "/optimizer.safetensors")
for name, parameter in model.named_parameters():
    parameter.grad = (after["exp_avg." + name] - 0.9 * before["exp_avg." + name]) / 0.1
optimizer.step()
weights = load_file(end + "/model.safetensors")
worst = max(float((weights[n] - p.detach()).abs().max()) for n, p in model.named_parameters())
begun = load_file(begin + "/model.safetensors")
moved = max(float((weights[n] - begun[n]).abs().max()) for n in weights)
assert 0 < moved and worst < 1e-3 * moved, (worst, moved)
print("steps agree", worst, moved)
"""


def documented_python():
    text = (ROOT / "docs/weights.md").read_text().split("```python\n")[1].split("```")[0]
    require_words(text, ["def state_dict_of(", "def save_state_dict("], "docs/weights.md")
    return text


def python_with_torch():
    venv = pathlib.Path.home() / ".cache/sluice/venv/bin/python3"
    for python in (sys.executable, venv):
        if not pathlib.Path(python).exists():
            continue
        look = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
        if subprocess.run([python, "-c", look], check=False).returncode == 0:
            return python
    raise Skip("torch is not installed")


@test
def torch_goes_on_with_the_exported_state_by_the_documented_lines(place):
    python = python_with_torch()
    make_llama(place / "llama")
    place.train("--model", place / "llama", "--steps", 2, **FP32).done()
    export(place, "out", "begin", "--optimizer").done()
    place.train("--model", place / "llama", "--resume", "--steps", 3, **FP32).done()
    export(place, "out", "end", "--optimizer").done()
    (place / "documented.py").write_text(documented_python())
    done = subprocess.run([python, "-c", TORCH_CHECK, place / "begin", place / "end",
                           place / "optimizer.safetensors", place / "documented.py"],
                          capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"torch: {done.stderr.strip()[-2000:]}")
    require_equal(metadata(place / "optimizer.safetensors"),
                  metadata(place / "begin/optimizer.safetensors"), "metadata of torch's file")
    # What torch has written is a state that a run begins with.
    shutil.copy(place / "optimizer.safetensors", place / "begin/optimizer.safetensors")
    place.train("--model", place / "begin", "--steps", 1, "--set", f"output={place / 'back'}",
                optimizer_state=place / "begin", **FP32).done()
    require_equal(place.state("--json", state_dir="back/state").json()["optimizer_step"], 3,
                  "updates of the run that goes on")


if __name__ == "__main__":
    sys.exit(main())
