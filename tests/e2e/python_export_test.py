#!/usr/bin/env python3
"""The state of an optimizer leaves as torch's own and comes back to the bit, in bounded memory; its
digest, its copies and its knobs are at hand between two steps."""

import contextlib
import json
import sqlite3
import subprocess
import sys
import zipfile

from python_package import (PACKAGE, make_model, on_drives, package, package_test, refusal,
                            require_close, require_same, torch, train, weights)
from sluice_run import LIMIT_S, ROOT, main, require, require_equal, require_words

NAMES = {"AdamW": ("step", "exp_avg", "exp_avg_sq"), "SGD": ("step", "momentum_buffer"),
         "Adagrad": ("step", "sum")}
ARGUMENTS = {"AdamW": {"lr": 3e-3}, "SGD": {"lr": 3e-2, "momentum": 0.9}, "Adagrad": {"lr": 1e-2}}


def ours(name, model, folder, **more):
    return getattr(package, name)(model.named_parameters(), state=folder, threads=1,
                                  **ARGUMENTS[name], **more)


def torchs(name, model):
    arguments = ARGUMENTS[name] | ({"foreach": False} if name != "Adagrad" else {})
    return getattr(torch.optim, name)(model.named_parameters(), **arguments)


def loaded(path):
    return torch.load(path, weights_only=True, mmap=True)


@package_test
def an_export_is_torchs_own_and_torch_goes_on_with_it(place):
    for name, keys in NAMES.items():
        model = make_model()
        optimizer = ours(name, model, place / name)
        train(model, optimizer, 4)
        optimizer.export(place / f"{name}.pt")
        other = make_model()
        other.load_state_dict(weights(model))
        alike = torchs(name, other)
        state = loaded(place / f"{name}.pt")
        require_equal(sorted(state["state"]), [0, 1, 2, 3, 4], f"{name}: parameters")
        require_equal(tuple(state["state"][0]), keys, f"{name}: what each has")
        require_equal(state["state"][1]["step"].item(), 4.0, f"{name}: updates")
        require_equal(set(alike.state_dict()["param_groups"][0]),
                      set(state["param_groups"][0]), f"{name}: what a group has")
        alike.load_state_dict(state)
        wanted = train(other, alike, 9, begin=4)
        require_close(train(model, optimizer, 9, begin=4), wanted, f"{name} goes on")


@package_test
def its_file_is_a_whole_archive_with_records_where_maps_want_them(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 1)
    path = place / "state.pt"
    for _ in range(2):  # the second one takes the place of the first
        optimizer.export(path)
    with zipfile.ZipFile(path) as archive:
        require_equal(archive.testzip(), None, "a record whose checksum is wrong")
    for entry in loaded(path)["state"].values():
        require(all(value.data_ptr() % 64 == 0 for value in entry.values()), "places of records")
    left = [path.name for path in (place / ".").iterdir() if "unfinished" in path.name]
    require_equal(left, [], "what is left")


@package_test
def a_state_goes_through_torchs_file_to_the_bit(place):
    for name in NAMES:
        for bf16 in (False, True):
            model = make_model().bfloat16() if bf16 else make_model()
            dtype = torch.bfloat16 if bf16 else None
            folder = place / f"{name}{bf16}"
            optimizer = ours(name, model, folder)
            steps(model, optimizer, range(3), dtype)
            optimizer.export(folder / "state.pt")
            kept = weights(model)
            steps(model, optimizer, range(3, 6), dtype)

            other = make_model(2).bfloat16() if bf16 else make_model(2)
            other.load_state_dict(kept)
            again = ours(name, other, folder / "other")
            state = loaded(folder / "state.pt")
            require_equal("master_weight" in state["state"][0], bf16, "master weights")
            again.load_state_dict(state)
            steps(other, again, range(3, 6), dtype)
            require_equal(again.digest(), optimizer.digest(), f"{name}, bf16 {bf16}: all bits")
            require_same(weights(other), weights(model), name)


def steps(model, optimizer, numbers, dtype):
    from python_package import loss_of
    for number in numbers:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype or torch.float32, enabled=dtype is not None):
            loss = loss_of(model, number)
        loss.float().backward()
        optimizer.step()


@package_test
def torchs_state_is_gone_on_with_here(place):
    for name in NAMES:
        model, reference = make_model(), make_model()
        begun = torchs(name, model)
        train(model, begun, 5)
        wanted = train(reference, torchs(name, reference), 12)
        optimizer = ours(name, model, place / name)
        optimizer.param_groups[0]["lr"] = 1.0
        optimizer.load_state_dict(begun.state_dict())
        require_equal(optimizer.param_groups[0]["lr"], ARGUMENTS[name]["lr"], "its rate")
        require_close(train(model, optimizer, 12, begin=5), wanted[5:], name)


@package_test
def what_cannot_be_taken_is_refused_by_name(place):
    model = make_model()
    begun = torchs("AdamW", model)
    train(model, begun, 2)

    def refused(change, words):
        saved = begun.state_dict()
        saved = {"state": {n: dict(entry) for n, entry in saved["state"].items()},
                 "param_groups": [dict(group) for group in saved["param_groups"]]}
        change(saved)
        require_words(refusal(on_drives(model, place / "run").load_state_dict, saved), words,
                      "a state dict")
        require(not (place / "run/state").exists(), "a refused state dict has begun a state")

    refused(lambda s: s["state"][1].update(step=torch.tensor(7.0)), ["2", "7", "first.bias"])
    refused(lambda s: s["state"].pop(1), ["no state of first.bias"])
    refused(lambda s: s["state"][1].pop("exp_avg"), ["first.bias", "exp_avg, exp_avg_sq"])
    refused(lambda s: s["state"][1].update(max_exp_avg_sq=torch.ones(40)), ["max_exp_avg_sq"])
    refused(lambda s: s["state"][1].update(exp_avg=torch.ones(3)), ["first.bias", "[3]", "[40]"])
    refused(lambda s: s["state"][1].update(exp_avg_sq=-torch.ones(40)), ["first.bias", "-1"])
    refused(lambda s: s["state"][1].update(exp_avg=torch.full((40,), torch.nan)), ["nan"])
    refused(lambda s: s["param_groups"][0].update(amsgrad=True), ["amsgrad=True"])
    refused(lambda s: s["param_groups"][0].update(params=[0]), ["[1]"])
    refused(lambda s: s["state"][1].update(master_weight=torch.ones(40)), ["master_weight"])
    saved = begun.state_dict()
    small = on_drives(model, place / "small", lr=0.5, host_memory="1MiB")
    require_words(refusal(small.load_state_dict, saved), ["host_memory"], "a state too large")
    require_equal(small.param_groups[0]["lr"], 0.5, "the rate after a refused state dict")
    require_words(refusal(ours("SGD", model, place / "sgd").load_state_dict, saved),
                  ["exp_avg", "momentum_buffer"], "the state of another rule")


@package_test
def without_a_state_there_is_nothing_to_ask(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    for call in (optimizer.digest, lambda: optimizer.export(place / "x.pt"),
                 lambda: optimizer.snapshot(place / "x"), lambda: optimizer.set(buffers=3),
                 lambda: optimizer.knobs):
        require_words(refusal(call), ["no state yet"], "before the first step")
    train(model, optimizer, 1)
    require_words(refusal(optimizer.export, place / "x", format="onnx"), ["torch, safetensors"],
                  "a format")
    optimizer.close()
    require_words(refusal(optimizer.digest), ["closed after step 1"], "after close()")


@package_test
def a_safetensors_file_has_the_same_values(place):
    model = make_model().bfloat16()
    optimizer = ours("AdamW", model, place / "run")
    steps(model, optimizer, range(2), torch.bfloat16)
    optimizer.export(place / "state.pt")
    optimizer.export(place / "state.safetensors", format="safetensors")
    found, metadata = read_safetensors(place / "state.safetensors")
    require_equal(metadata, {"format": "sluice-optimizer", "optimizer": "adamw", "step": "2"},
                  "metadata")
    state = loaded(place / "state.pt")["state"]
    wanted = {f"{key}.{name}": value for name, entry in zip(trained(model), state.values())
              for key, value in entry.items() if key != "step"}
    require_same(found, wanted, "safetensors")


def trained(model):
    return [name for name, p in model.named_parameters() if p.requires_grad]


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    found = {}
    for name, info in header.items():
        begin, end = info["data_offsets"]
        values = torch.frombuffer(bytearray(data[8 + size + begin:8 + size + end]),
                                  dtype=torch.float32)
        found[name] = values.view(info["shape"])
    return found, metadata


@package_test
def a_snapshot_is_a_state_of_its_own(place):
    model = make_model()
    optimizer = on_drives(model, [place / "one", place / "two"], subgroup_elements=2048)
    train(model, optimizer, 3)
    kept = weights(model)
    require_equal(optimizer.snapshot(place / "kept"), 3, "its step")
    require_words(refusal(optimizer.snapshot, place / "kept"), [str(place / "kept")], "twice")
    train(model, optimizer, 6, begin=3)
    other = make_model(2)
    other.last.bias.data.copy_(model.last.bias)  # frozen, and the program's own to restore
    again = on_drives(other, place / "kept", devices=2, subgroup_elements=2048)
    require_same(weights(other), kept, "its weights")
    train(other, again, 6, begin=3)
    require_equal(again.digest(), optimizer.digest(), "all bits")


@package_test
def knobs_turn_from_the_next_step_on(place):
    model, other = make_model(), make_model()
    plain = on_drives(model, place / "plain")
    train(model, plain, 6)
    optimizer = on_drives(other, place / "run", buffers=2)
    train(other, optimizer, 3)
    require_equal(optimizer.knobs["buffers"], "2", "a knob")
    optimizer.set(buffers=4, prefetch=False)
    require_equal((optimizer.knobs["buffers"], optimizer.knobs["prefetch"]), ("4", "false"),
                  "knobs in force")
    require_words(refusal(optimizer.set, bufers=3), ["bufers"], "a knob that is none")
    require_words(refusal(optimizer.set, buffers=0), ["buffers=0"], "a value")
    require_words(refusal(optimizer.set, lr=1.0), ["param_groups"], "a rate")
    require("lr" not in optimizer.knobs, "a rate among the knobs")
    train(other, optimizer, 6, begin=3)
    require_equal(optimizer.digest(), plain.digest(), "all bits")
    optimizer.close()
    with contextlib.closing(sqlite3.connect(place / "run/run.db")) as database:
        rows = database.execute('select * from knob_change').fetchall()
    require_equal([row[-3:] for row in rows],
                  [("2", "4", "program"), ("true", "false", "program")], "the record of changes")


@package_test
def a_state_dict_of_torchs_begins_anew_where_that_is_asked(place):
    model, other = make_model(), make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 2)
    optimizer.close()
    begun = torchs("AdamW", other)
    train(other, begun, 3)
    again = on_drives(other, place / "run")
    require_words(refusal(again.load_state_dict, begun.state_dict()), ["has begun", "run"],
                  "another state in the folder")
    again.close()
    anew = on_drives(other, place / "run", fresh=True)
    anew.load_state_dict(begun.state_dict())
    train(other, anew, 4, begin=3)
    require_equal(anew.steps_done, 1, "steps of the new state")


@package_test
def a_plan_comes_before_anything_is_there(place):
    model = make_model()
    optimizer = on_drives(model, [place / "one", place / "two"], subgroup_elements=2048)
    plan = optimizer.plan()
    require(not (place / "one").exists() and not (place / "two").exists(), "a plan wrote something")
    require_equal(plan.places, (str(place / "one"), str(place / "two")), "places")
    require_equal(sum(plan.host_memory.values()), plan.host_memory_bytes, "host memory")
    require(all(drive["state, two versions"] > 0 for drive in plan.drives), "state on each drive")
    require_equal(plan.update_seconds, None, "a time of plain drives")
    require_words(str(plan), ["host memory: ", "gradient", str(place / "two"), "calibrate"], "text")
    machine = ROOT / "sample_models/platforms/smartssd-a5000.toml"
    timed = on_drives(model, place / "three", platform=machine).plan()
    require(timed.update_seconds > 0, "no time of a platform's")
    require_words(str(timed), ["s a step"], "its text")
    require_words(refusal(on_drives(model, place / "four", host_memory="1MiB").plan),
                  ["host_memory"], "a plan that does not fit")


MEASURED = """
import sys
sys.path.insert(0, {package!r})
import sluice, torch
torch.set_num_threads(1)
parameters = [torch.nn.Parameter(torch.zeros(1000, 1000)) for _ in range(30)]
optimizer = sluice.AdamW(parameters, state={state!r}, threads=1, durability="never", record="off",
                         gradients="keep")
for parameter in parameters:
    parameter.grad = torch.ones(1000, 1000)
optimizer.step()
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
optimizer.zero_grad()
for format in ("torch", "safetensors"):
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    optimizer.export({state!r} + "/export." + format, format=format)
    print(peak() - before)
"""


@package_test
def an_export_takes_little_memory(place):
    program = MEASURED.format(package=str(PACKAGE), state=str(place / "run"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"the program's exit status: {done.stderr}")
    for format, more in zip(("torch", "safetensors"), map(int, done.stdout.split())):
        require(more < 64 << 10, f"an export as {format} took {more} KiB more than the program")
    require((place / "run/export.torch").stat().st_size > 2 * 120_000_000, "a small export")


if __name__ == "__main__":
    sys.exit(main())
