#!/usr/bin/env python3
"""The Python package: a PyTorch program whose optimizer is sluice.AdamW learns what it learns with
torch.optim.AdamW, is stopped and goes on to the bit, and is told by name what cannot be."""

import copy
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import types

from python_package import (PACKAGE, STEPS, heard, loss_of, make_model, on_drives, package,
                            package_test, refusal, require_close, require_same, torch, train,
                            weights, with_gradients)
from sluice_run import (LIMIT_S, ROOT, SLUICE, TESTBED, main, require, require_equal, require_words,
                        sluice, test)


@test
def pip_builds_the_package_with_what_setup_installs(place):
    pinned = re.findall(r'"([a-z-]+)==([0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    require_equal(sorted(name for name, _ in pinned), ["nanobind", "scikit-build-core"], "pins")
    setup = (ROOT / "scripts/setup").read_text()
    for name, version in pinned:
        require_words(setup, [f"{name.replace('-', '_')}_version={version}\n"], "scripts/setup")


# It learns what torch's learns -------------------------------------------------------------------


@package_test
def losses_are_those_of_torchs_adamw(place):
    model, other = make_model(), make_model()
    wanted = train(other, torch.optim.AdamW(other.parameters(), lr=3e-3), STEPS)
    optimizer = on_drives(model, place / "plain")
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    require_close(train(model, optimizer, STEPS), wanted, "plain")
    require(wanted[-1] < 0.9 * wanted[0], f"nothing was learnt: {wanted[0]} to {wanted[-1]}")
    require_equal([p.data_ptr() for p in model.parameters()], addresses, "places of parameters")
    require(not model.last.weight.is_contiguous(), "a parameter has become contiguous")
    require_equal(optimizer.steps_done, STEPS, "steps_done")


def groups_of(model, names):
    """Two groups as Hugging Face's Trainer makes them, and an empty one."""
    decayed = [(n, p) if names else p for n, p in model.named_parameters() if p.ndim > 1]
    others = [(n, p) if names else p for n, p in model.named_parameters() if p.ndim <= 1]
    return [{"params": decayed, "weight_decay": 0.1}, {"params": others, "lr": 1e-3,
                                                       "weight_decay": 0.0}]


def schedule(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, [lambda step: min(1, step / 5), lambda step: 0.9 ** step])


@package_test
def groups_have_rates_of_their_own_and_a_scheduler_turns_them(place):
    other = make_model()
    reference = torch.optim.AdamW(groups_of(other, False), lr=2e-3)
    wanted = train(other, reference, STEPS, scheduler=schedule(reference))
    for names in (True, False):
        model = make_model()
        optimizer = package.AdamW(groups_of(model, names), lr=2e-3, state=place / f"names-{names}")
        found = train(model, optimizer, STEPS, scheduler=schedule(optimizer))
        require_close(found, wanted, "two groups with a scheduler")
    model = make_model()
    optimizer = package.AdamW([*groups_of(model, False), {"params": []}], lr=2e-3,
                              state=place / "an-empty-group")
    require_close(train(model, optimizer, 5), wanted[:1] + train_again(4), "an empty group")


def train_again(steps):
    """torch's losses after the first, without a scheduler."""
    other = make_model()
    return train(other, torch.optim.AdamW(groups_of(other, False), lr=2e-3), steps + 1)[1:]


def clipped_training(model, optimizer, steps):
    """Accumulation, a scaler with an overflow, clipping, and gradients that stay as zeros."""
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    seen = []
    for step in range(steps):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        for part in range(3):
            loss = loss_of(model, 3 * step + part) / 3
            scaler.scale(loss).backward()
        if step == 2:
            overflowed = model.first.weight.grad.clone()
            overflowed[0, 0] = float("inf")
            model.first.weight.grad = overflowed
        scaler.unscale_(optimizer)
        seen.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05).item())
        scaler.step(optimizer)
        scaler.update()
        seen.append(loss.item())
    return seen


@package_test
def clipping_accumulation_and_a_gradient_scaler_are_torchs(place):
    model, other = make_model(), make_model()
    wanted = clipped_training(other, torch.optim.AdamW(other.parameters(), lr=3e-3), 10)
    optimizer = on_drives(model, place / "clipped")
    found = clipped_training(model, optimizer, 10)
    is_finite = [abs(value) < float("inf") for value in wanted]
    require_equal([abs(value) < float("inf") for value in found], is_finite, "finite numbers")
    require(not all(is_finite), "no step has overflowed")
    require_close([f for f, good in zip(found, is_finite) if good],
                  [w for w, good in zip(wanted, is_finite) if good], "clipped")
    require_equal(optimizer.steps_done, 9, "steps, without the one that overflowed")


@package_test
def a_closure_computes_the_loss(place):
    def with_closure(model, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, 7)
            loss.backward()
            return loss
        return [optimizer.step(closure).item() for _ in range(10)]
    model, other = make_model(), make_model()
    wanted = with_closure(other, torch.optim.AdamW(other.parameters(), lr=3e-3))
    require_close(with_closure(model, on_drives(model, place / "closure")), wanted, "closure")
    model.zero_grad()
    optimizer = on_drives(model, place / "closure-none")
    require(optimizer.step() is None, "a step without gradients is not none")
    require(not (place / "closure-none").exists(), "a step without gradients has opened a state")


@package_test
def weights_of_16_bits_are_the_rounded_master_weights(place):
    for dtype in (torch.bfloat16, torch.float16):
        parameter = torch.nn.Parameter(torch.linspace(-2, 2, 5000).to(dtype))
        master = torch.nn.Parameter(parameter.detach().float())
        name = str(dtype).rsplit(".", 1)[-1]
        optimizer = package.AdamW([parameter], lr=1e-4, state=place / name)
        reference = torch.optim.AdamW([master], lr=1e-4)
        for step in range(30):
            gradient = torch.sin(torch.arange(5000) * (step + 1.0)).to(dtype)
            parameter.grad, master.grad = gradient.clone(), gradient.float()
            optimizer.step()
            reference.step()
        differs = (parameter != master.to(dtype)).sum().item()
        require(differs <= 5, f"{name}: {differs} of 5000 weights are not the rounded ones")


@package_test
def types_may_be_mixed(place):
    """Norms in fp32 beside bf16."""
    wide = torch.nn.Parameter(torch.ones(300))
    narrow = torch.nn.Parameter(torch.ones(20, 30, dtype=torch.bfloat16))
    optimizer = package.AdamW([wide, narrow], lr=1e-4, weight_decay=0, state=place / "mixed")
    for _ in range(100):
        wide.grad, narrow.grad = torch.ones_like(wide), torch.ones_like(narrow)
        optimizer.step()
    require(torch.allclose(wide, torch.full_like(wide, 0.99)), f"fp32: {wide[0]}")
    require_equal(narrow[0, 0].item(), torch.tensor(0.99).bfloat16().item(), "bf16")


@package_test
def trainer_is_given_its_own_rates(place):
    arguments = types.SimpleNamespace(learning_rate=7e-4, adam_beta1=0.8, adam_beta2=0.95,
                                      adam_epsilon=1e-7)
    make, keywords = package.for_trainer(arguments, state=place / "run", threads=1)
    model, other = make_model(), make_model()
    wanted = train(other, torch.optim.AdamW(groups_of(other, False)[:1], lr=7e-4,
                                            betas=(0.8, 0.95), eps=1e-7), 10)
    require_close(train(model, make(groups_of(model, False)[:1], **keywords), 10), wanted,
                  "as Trainer makes it")


def trained_with_a_part_unused(optimizer_of, clips, fills):
    """Losses of a model whose second layer only every third step uses. `fills`: what is missing is
    zeros."""
    torch.manual_seed(3)
    model = torch.nn.ModuleList(torch.nn.Linear(30, 30) for _ in range(2))
    optimizer = optimizer_of(model.parameters())
    losses = []
    for number in range(STEPS):
        optimizer.zero_grad()
        for micro in range(2):
            x = torch.sin(torch.arange(300.0) * (number + micro + 1)).view(10, 30)
            y = model[0](x)
            if number % 3 == 2 and micro == 1:
                y = y + model[1](x)
            loss = (y - x.flip(0)).square().mean()
            loss.backward()
        for parameter in model.parameters():
            if fills and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if clips:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.item())
    return losses


@package_test
def gradients_that_are_missing_may_be_zeros(place):
    for clips in (False, True):
        wanted = trained_with_a_part_unused(lambda ps: torch.optim.AdamW(ps, 3e-3), clips, True)
        for gradients in ("offload", "keep"):
            found = trained_with_a_part_unused(
                lambda ps: package.AdamW(ps, 3e-3, state=place / f"{gradients}-{clips}", threads=1,
                                         gradients=gradients, missing_gradients="zeros"),
                clips, False)
            require_close(found, wanted, f"{gradients}, clips {clips}")
    require_words(refusal(lambda: on_drives(make_model(), place / "other",
                                            missing_gradients="zero")), ["refuse, zeros"], "a word")


def own_groups(model, *values):
    weights_of, rest = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (weights_of if name.endswith("weight") else rest).append(parameter)
    return [{"params": weights_of} | values[0], {"params": rest} | values[1]]


@package_test
def groups_and_steps_have_betas_momentum_and_epsilon_of_their_own(place):
    cycle, cyclic = torch.optim.lr_scheduler.OneCycleLR, torch.optim.lr_scheduler.CyclicLR
    ways = {
        "AdamW": ({"betas": (0.8, 0.99), "eps": 1e-6}, {"weight_decay": 0},
                  lambda one: cycle(one, max_lr=[3e-3, 1e-3], total_steps=STEPS)),
        "SGD": ({"momentum": 0.5}, {"momentum": 0.8, "weight_decay": 0.1},
                lambda one: cyclic(one, 1e-3, 1e-2, step_size_up=7)),
        "Adagrad": ({"eps": 1e-5}, {"lr": 1e-2}, lambda one: None)}
    for name, (first, second, scheduler_of) in ways.items():
        found = []
        for library, more in ((torch.optim, {}),
                              (package, {"state": place / name, "threads": 1})):
            model = make_model()
            optimizer = getattr(library, name)(own_groups(model, first, second), lr=2e-3, **more)
            found.append(train(model, optimizer, STEPS, scheduler=scheduler_of(optimizer)))
        require_close(found[1], found[0], name)


# It goes on --------------------------------------------------------------------------------------


@package_test
def a_run_that_is_stopped_goes_on_to_the_bit(place):
    through = make_model()
    optimizer = on_drives(through, place / "through")
    wanted = train(through, optimizer, STEPS)
    optimizer.close()
    losses = []
    for begin, end in ((0, 20), (20, 33), (33, STEPS)):
        # Other first weights: those of the state take their place. What is frozen is the model's.
        model = make_model(seed=1 + begin)
        model.last.bias.data.copy_(through.last.bias)
        optimizers = []
        said = heard(lambda: optimizers.append(on_drives(model, place / "parts")))
        require_equal(optimizers[0].steps_done, begin, "steps of the state")
        if begin:
            require_words(said, [f"goes on after step {begin}", "MiB of host memory",
                                 f"sluice-gui {place / 'parts/run.db'}"], "its first line")
        model_begins = make_model()
        model.last.bias.data.copy_(model_begins.last.bias)
        losses += train(model, optimizers[0], end, begin)
        optimizers[0].close()
    require_equal(losses, wanted, "losses")
    require_same(weights(model), weights(through), "weights")
    digests = [sluice("state", place / name / "state", "--json").json()["digest"]
               for name in ("through", "parts")]
    require_equal(digests[1], digests[0], "digest of the state")


@package_test
def ways_and_drives_change_no_bit(place):
    drives = [place / "a/run", place / "b/drive"]
    ways = [(place / "one", {}),
            (place / "two", {"pipeline": "serial", "gradient_tier": "memory"}),
            (drives, {"commit_every": 3, "buffers": 2}),
            (place / "three", {"platform": TESTBED, "devices": 2, "method": "csd"}),
            (place / "four", {"platform": TESTBED, "state_cache": "1MiB", "method": "host",
                              "wire": "native"})]
    first = None
    for folder, settings in ways:
        model = make_model()
        optimizer = on_drives(model, folder, subgroup_elements=2048, **settings)
        train(model, optimizer, 8)
        optimizer.close()
        first = first or weights(model)
        require_same(weights(model), first, f"weights with {settings}")
    require_equal((drives[0] / "state/dev1").resolve(), drives[1].resolve(), "drive 1")
    require((drives[1] / "state.slc").stat().st_size > 4096, "nothing lies on drive 1")
    # It goes on with its drives, and with no others.
    model = make_model()
    require_words(refusal(on_drives, model, [drives[0], place / "c"]), ["c", "b/drive"],
                  "another drive")
    on_drives(model, drives, subgroup_elements=2048)
    require_same(weights(model), first, "weights that went on")


def steps_in_bf16(folder, end, **settings):
    """What the optimizer says, and the parameter after that step."""
    parameter = torch.nn.Parameter(torch.linspace(-2, 2, 5000).bfloat16())

    def steps():
        optimizer = package.AdamW([parameter], lr=1e-2, state=folder, subgroup_elements=2048,
                                  **settings)
        for step in range(optimizer.steps_done, end):
            parameter.grad = torch.sin(torch.arange(5000) * (step + 1.0)).bfloat16()
            optimizer.step()
        optimizer.close()

    return heard(steps), {"parameter": parameter.detach().clone()}


@package_test
def state_may_be_in_fewer_bytes(place):
    exact, compact = {"state_format": "exact"}, {"state_format": "compact"}
    said, plain = steps_in_bf16(place / "fp32", 12)
    require("compact" not in said, f"fp32 state is said to be compact: {said}")
    require_same(steps_in_bf16(place / "exact", 12, **exact)[1], plain, "exact state")
    for end, settings in ((4, {}), (8, exact), (12, {})):
        in_turns = steps_in_bf16(place / "turns", end, **settings)[1]
    require_same(in_turns, plain, "fp32, exact and fp32 again")
    said, of_compact = steps_in_bf16(place / "compact", 12, **compact)
    require_words(said, ["compact state: other numbers than state_format=fp32"], "its first line")
    for number, settings in enumerate(({"platform": TESTBED, "devices": 2, "method": "csd"},
                                       {"state_cache": "16KiB", "commit_every": 4})):
        found = steps_in_bf16(place / f"way{number}", 12, **compact, **settings)[1]
        require_same(found, of_compact, f"compact state with {settings}")


PROGRAM = """
import sys
sys.path[:0] = [{package!r}, {tests!r}]
import python_test as t
model = t.make_model()
optimizer = t.on_drives(model, {folder!r}, {arguments})
for number in range(optimizer.steps_done, {steps}):
    loss = t.train(model, optimizer, number + 1, number)
    print(number + 1, *loss, flush=True)
{last}
"""


def started(folder, steps, arguments="", last=""):
    text = PROGRAM.format(package=str(PACKAGE), tests=str(pathlib.Path(__file__).parent),
                          folder=str(folder), steps=steps, arguments=arguments, last=last)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


@package_test
def a_program_that_ends_or_is_killed_leaves_a_state_to_go_on_with(place):
    forever = 10_000_000
    killed = started(place / "killed", forever)
    for line in killed.stdout:
        if line.startswith("12 "):
            break
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=LIMIT_S)
    step = sluice("state", place / "killed/state", "--json").json()["step"]
    # Step 12 was told, and its commit may have been under way.
    require(step >= 11, f"killed after step 12, and the state has {step}")
    # Without close(): the interpreter's end is the run's.
    done = started(place / "killed", step + 5, last="print('has ended')")
    out, err = done.communicate(timeout=LIMIT_S)
    require_equal(done.returncode, 0, f"the program that goes on: {err}")
    require_words(out, ["has ended", f"{step + 5} "], "the program that goes on")
    through = started(place / "through", step + 5, "commit_every=4")
    out_through, err = through.communicate(timeout=LIMIT_S)
    require_equal(through.returncode, 0, f"the program in one go: {err}")
    require_equal(out.splitlines()[:-1], out_through.splitlines()[step:], "losses")
    shown = sluice("show", place / "through").done().out
    require_words(shown, ["Turn next", "simulated"], "sluice show")


@package_test
def an_exception_in_the_loop_loses_no_step(place):
    raised = started(place / "raised", 6, last="raise ValueError('planted')")
    _, err = raised.communicate(timeout=LIMIT_S)
    require_equal(raised.returncode, 1, "exit code")
    require_words(err, ["planted"], "what was raised")
    require_equal(sluice("state", place / "raised/state", "--json").json()["step"], 6, "steps")


@package_test
def a_run_is_turned_and_stopped_from_outside(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 3)
    require(not optimizer.is_stopping, "nobody has asked it to stop")
    turned = subprocess.Popen([SLUICE, "set", place / "run/run.db", "pipeline=serial"],
                              stdout=subprocess.PIPE, text=True)
    step = 3
    while turned.poll() is None:
        train(model, optimizer, step + 1, step)
        step += 1
    require_words(turned.communicate()[0], ["In force", "pipeline=serial"], "sluice set")
    sluice("stop", place / "run/run.db").done()
    train(model, optimizer, step + 1, step)
    require(optimizer.is_stopping, "it was asked to stop")


# Its state dict ----------------------------------------------------------------------------------


def saved_and_read(state_dict):
    """As Hugging Face's Trainer reads it."""
    file = io.BytesIO()
    torch.save(state_dict, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@package_test
def a_state_dict_refers_to_its_state(place):
    model = make_model()
    optimizer = package.AdamW(groups_of(model, True), lr=2e-3, state=place / "one",
                              checkpoint="last")
    # What accelerate does before the first step.
    optimizer.load_state_dict(saved_and_read(optimizer.state_dict()))
    require(not (place / "one").exists(), "something was written before the first step")
    scheduler = schedule(optimizer)
    train(model, optimizer, 6, scheduler=scheduler)
    kept = saved_and_read(optimizer.state_dict())
    kept_scheduler = scheduler.state_dict()
    rates = [group["lr"] for group in optimizer.param_groups]
    optimizer.load_state_dict(kept)
    train(model, optimizer, 7, 6)
    require_words(refusal(optimizer.load_state_dict, kept), ["step 6", "step 7", "one"],
                  "a state dict of an earlier step")
    optimizer.close()

    again = make_model()
    groups = groups_of(again, True)
    optimizer = package.AdamW(groups, lr=9, state=place / "one")
    kept = {**kept, "sluice": optimizer.state_dict()["sluice"]}
    optimizer.load_state_dict(kept)
    require_equal([group["lr"] for group in optimizer.param_groups], rates, "learning rates")
    require(optimizer.param_groups[0]["params"][0] is again.first.weight, "its parameters")
    schedule(optimizer).load_state_dict(kept_scheduler)

    elsewhere = make_model()
    other = package.AdamW(groups_of(elsewhere, True), state=place / "two")
    require_words(refusal(other.load_state_dict, kept), ["step 7", "one", "two"], "no state there")
    train(elsewhere, other, 7)
    require_words(refusal(other.load_state_dict, kept), ["one", "two", "another"], "another state")
    plain = torch.optim.AdamW(elsewhere.parameters())
    require_words(refusal(other.load_state_dict, plain.state_dict()), ["torch", "has begun"],
                  "torch's state dict")
    fewer = copy.deepcopy(other.state_dict())
    fewer["param_groups"][0]["params"].pop()
    require_words(refusal(other.load_state_dict, fewer), ["[2, 3]", "[3, 3]"], "fewer parameters")
    require_words(refusal(copy.deepcopy, other), ["cannot be copied"], "a copy")


# It refuses by name ------------------------------------------------------------------------------


@package_test
def a_gradient_that_cannot_be_is_named(place):
    model = with_gradients(make_model())
    optimizer = on_drives(model, place / "run")
    model.again.bias.grad = None
    require_words(refusal(optimizer.step),
                  ["step 1", "again.bias", "no gradient", "missing_gradients"], "a missing one")
    train(model, optimizer, 2)
    before = weights(model)
    with_gradients(model).again.bias.grad = None
    require_words(refusal(optimizer.step), ["step 3", "again.bias"], "a missing one, later")
    require_same(weights(model), before, "weights after a refusal")
    model.zero_grad()
    with_gradients(model).first.bias.grad = torch.zeros(40).to_sparse()
    require_words(refusal(optimizer.step), ["first.bias", "sparse"], "a sparse one")
    model.first.bias.data = torch.zeros(41)
    model.first.bias.grad = torch.zeros(41)
    require_words(refusal(optimizer.step), ["first.bias", "[40]", "[41]"], "another shape")


@package_test
def a_refused_step_can_be_taken_after_all(place):
    wanted_model, model = make_model(), make_model()
    wanted = train(wanted_model, on_drives(wanted_model, place / "wanted"), 4)
    optimizer = on_drives(model, place / "run")
    found = train(model, optimizer, 2)
    model.zero_grad()
    loss_of(model, 2).backward()
    kept, model.again.bias.grad = model.again.bias.grad, None
    refusal(optimizer.step)
    model.again.bias.grad = kept
    optimizer.step()
    require_equal(found + train(model, optimizer, 4, 3), wanted[:2] + wanted[3:], "losses")


@package_test
def numbers_that_are_not_finite_end_the_run_and_keep_the_last_commit(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 3)
    with_gradients(model).first.bias.grad = torch.full((40,), float("nan"))
    try:
        optimizer.step()
        require(False, "a gradient that is not finite was taken")
    except package.Error as error:
        require_equal(error.code, "diverged", f"code of: {error}")
    refusal(optimizer.step)
    refusal(optimizer.close)
    require_equal(on_drives(make_model(), place / "run").steps_done, 3, "steps")


@package_test
def a_parameter_that_cannot_be_is_named(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 2)
    with torch.no_grad():
        model.first.weight.mul_(1)  # the same numbers
    train(model, optimizer, 3, 2)
    with_gradients(model)
    with torch.no_grad():
        model.first.weight.mul_(2)
    require_words(refusal(optimizer.step), ["first.weight", "changed"], "changed weights")
    with torch.no_grad():
        model.first.weight.div_(2)
    model.last.bias.requires_grad_(True)
    with_gradients(model)
    require_words(refusal(optimizer.step), ["last.bias", "frozen"], "one that was frozen")
    model.last.bias.requires_grad_(False)
    model.last.bias.grad = None
    optimizer.step()
    for dtype in (torch.float64, torch.bfloat16):
        changed = make_model()
        other = on_drives(changed, place / str(dtype))
        if dtype == torch.bfloat16:
            train(changed, other, 1)
        changed.to(dtype)
        for parameter in changed.parameters():
            parameter.grad = torch.zeros_like(parameter)
        require_words(refusal(other.step), ["first.weight", str(dtype)], f"now {dtype}")
    twice = torch.zeros(8)
    one, other = torch.nn.Parameter(twice), torch.nn.Parameter(twice)
    one.grad = other.grad = torch.zeros(8)
    require_words(refusal(package.AdamW([one, other], state=place / "twice").step),
                  ["param.0", "param.1", "one memory"], "two parameters in one memory")
    meta = torch.nn.Parameter(torch.zeros(8, device="meta"))
    meta.grad = torch.zeros(8, device="meta")
    require_words(refusal(package.AdamW([meta], state=place / "meta").step), ["param.0", "meta"],
                  "another device")
    require_equal([name for name in ("twice", "meta") if (place / name).exists()], [], "folders")


@package_test
def one_tensor_given_twice_is_one(place):
    parameter = torch.nn.Parameter(torch.ones(10))
    optimizer = package.AdamW([parameter, parameter], lr=0.1, weight_decay=0, state=place / "run")
    parameter.grad = torch.ones(10)
    optimizer.step()
    require(torch.allclose(parameter, torch.full_like(parameter, 0.9)), f"{parameter}")


@package_test
def a_folder_has_one_optimizer_and_one_model(place):
    model, other = make_model(), make_model()
    late = on_drives(other, place / "run")
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 2)
    require_words(refusal(lambda: with_gradients(other)), [str(place / "run")],
                  "a second one, made before")
    late.close()
    require_words(refusal(on_drives, other, place / "run"), [str(place / "run")], "a second one")
    optimizer.close()
    small = torch.nn.Linear(3, 3)
    require_words(refusal(on_drives, small, place / "run"), ["was begun with"], "another model")
    require_words(refusal(optimizer.add_param_group, {"params": small.parameters()}),
                  ["too late"], "a late group")
    require_words(refusal(optimizer.step), ["closed after step 2"], "a step after close()")
    require_equal(optimizer.state_dict()["sluice"]["step"], 2, "step of the state dict")


@package_test
def a_setting_that_cannot_be_is_named(place):
    model = with_gradients(make_model())
    for settings, words in (({"max_grad_norm": 1.0}, ["clip_grad_norm_"]),
                            ({"warmup_steps": 3}, ["scheduler"]),
                            ({"bufers": 3}, ["bufers", "buffers"]),
                            ({"overlap": "local"}, ["overlap=exact or off"]),
                            ({"batch": 3}, ["batch"]),
                            ({"lr": -1}, ["lr"]), ({"betas": (0.9, 1.0)}, ["betas"]),
                            ({"host_memory": "1MiB"}, ["host_memory"])):
        def one_step():
            on_drives(model, place / "run", **settings).step()
        require_words(refusal(one_step), words, f"with {settings}")
    require(not (place / "run").exists(), "a refused optimizer has made its folder")
    optimizer = on_drives(model, place / "rates")
    optimizer.step()
    with_gradients(model)
    optimizer.param_groups[0]["betas"] = (0.5, 1.5)
    require_words(refusal(optimizer.step), ["group 0", "betas=(0.5, 1.5)"], "a beta that is none")
    optimizer.param_groups[0]["betas"] = (0.5, 0.9)
    optimizer.step()


@package_test
def a_forked_process_is_refused_and_ends(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, json.dumps(refusal(lambda: with_gradients(model))).encode())
        del optimizer
        os._exit(0)
    os.close(write)
    require_equal(os.waitpid(child, 0)[1], 0, "its exit status")
    with os.fdopen(read) as said:
        require_words(json.load(said), ["forked", str(os.getpid())], "a step in a forked process")
    train(model, optimizer, 3, 2)


if __name__ == "__main__":
    sys.exit(main())
