#!/usr/bin/env python3
"""Gradients that leave memory during backward: handles answer clipping, accumulation, scaling and
zero_grad() as the gradients themselves would, to the bit, and refuse by name what they cannot."""

import contextlib
import gc
import itertools
import math
import sqlite3
import subprocess
import sys
import weakref

from python_package import (PACKAGE, loss_of, make_model, package, package_test, refusal,
                            require_same, torch, weights)
from sluice_run import LIMIT_S, main, require, require_equal, require_words

STEPS = 10


def handle_count(model):
    return sum(type(parameter.grad).__name__ == "Handle" for parameter in model.parameters())


def train(model, optimizer, micro=1, clip=None, foreach=None, to_none=True, scale=None, dtype=None):
    """Losses, norms before clipping, and how many handles stood in the last step. With `scale` a
    loss of step 4 overflows."""
    scaler = torch.amp.GradScaler("cpu", init_scale=scale) if scale else None
    losses, norms, handles = [], [], 0
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=to_none)
        for part in range(micro):
            with torch.autocast("cpu", dtype or torch.float32, enabled=dtype is not None):
                loss = loss_of(model, micro * step + part).float() / micro
            if scaler and step == 4:
                loss = loss * math.inf
            (scaler.scale(loss) if scaler else loss).backward()
        handles = handle_count(model)
        if scaler:
            scaler.unscale_(optimizer)
        if clip is not None:
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip,
                                                        foreach=foreach).item())
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        losses.append(loss.item())
    return losses, norms, handles


LOOPS = (
    {}, {"micro": 3}, {"clip": 0.05}, {"clip": 0.05, "foreach": True},
    {"clip": 0.05, "foreach": False, "micro": 2}, {"micro": 2, "to_none": False},
    {"clip": 0.05, "to_none": False}, {"scale": 64.0}, {"scale": 48.0, "micro": 2, "clip": 0.05},
)


def same_numbers(found, wanted):
    return len(found) == len(wanted) and all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(found, wanted))


@package_test
def loops_have_the_same_bits_with_gradients_in_memory_and_without(place):
    for number, (loop, bf16) in enumerate(itertools.product(LOOPS, (False, True))):
        found = []
        for gradients in ("keep", "offload"):
            model = make_model()
            if bf16:
                model.bfloat16()
            optimizer = package.AdamW(model.named_parameters(), lr=3e-3, threads=1,
                                      state=place / f"{gradients}{number}", gradients=gradients)
            more = loop | ({"dtype": torch.bfloat16} if bf16 else {})
            found.append((*train(model, optimizer, **more), weights(model)))
            optimizer.close()
        (losses, norms, none, kept), (others, their_norms, handles, left) = found
        what = f"{loop}, {'bf16' if bf16 else 'fp32'}"
        require(same_numbers(others, losses), f"{what}: losses {others}, in memory {losses}")
        require(same_numbers(their_norms, norms), f"{what}: norms {their_norms}, {norms}")
        require_same(left, kept, what)
        require_equal((none, handles), (0, 5), f"{what}: handles")


def a_gradient_that_left(place):
    model = make_model()
    optimizer = package.AdamW(model.named_parameters(), state=place / "run", threads=1)
    for step in range(2):
        model.zero_grad()
        loss_of(model, step).backward()
        if step == 0:
            optimizer.step()
    return model, optimizer, model.first.weight.grad


@package_test
def what_would_change_a_handle_unseen_is_refused(place):
    model, optimizer, grad = a_gradient_that_left(place)
    before = grad.clone()
    for change in (lambda: grad.clamp_(-1, 1), lambda: grad.div_(2), lambda: grad.copy_(before),
                   lambda: grad.__setitem__((0, 0), 1.0), lambda: grad.view(-1).mul_(2),
                   lambda: grad.t().zero_(), lambda: grad[0].add_(1),
                   lambda: torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)):
        require_words(refusal(change), ["aten.", 'gradients="keep"'], "a change")
    require(torch.equal(grad.clone(), before), "a refused change has changed the gradient")
    require_equal((tuple(grad.shape), grad.dtype), ((40, 24), torch.float32), "its shape and type")
    require(torch.equal(grad[3].abs() + 1, before[3].abs() + 1), "what is read")
    require_words(repr(grad), ["first.weight", "left memory"], "its text")
    optimizer.step()


@package_test
def a_gradient_that_was_used_is_not_added_to(place):
    model, optimizer, _ = a_gradient_that_left(place)
    optimizer.step()
    require_words(refusal(loss_of(model, 5).backward), ["used by step 2", "zero_grad"],
                  "a backward without zero_grad()")
    model.zero_grad()
    loss_of(model, 5).backward()
    optimizer.step()
    require_equal(optimizer.steps_done, 3, "steps")


@package_test
def handles_keep_neither_model_nor_session(place):
    model, optimizer, grad = a_gradient_that_left(place)
    gone = [weakref.ref(one) for one in (model, optimizer, model.first.weight)]
    del model, optimizer
    gc.collect()
    require([one() for one in gone] == [None] * 3, "something is kept")
    require_words(refusal(grad.clone), ["first.weight", "its optimizer"], "a gradient without one")


MEASURED = """
import sys
sys.path.insert(0, {package!r})
import sluice, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(1000, 1000, bias=False) for _ in range(24)])
optimizer = sluice.AdamW(model.parameters(), state={state!r}, gradients={gradients!r}, threads=1,
                         host_memory="1GiB", subgroup_elements=1048576, buffers=1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.ones(1, 1000)).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
print(peak * 1024)
"""


def peak_bytes(place, gradients):
    program = MEASURED.format(package=str(PACKAGE), state=str(place / gradients),
                              gradients=gradients)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"the program's exit status: {done.stderr}")
    return int(done.stdout)


@package_test
def clipping_that_clips_nothing_sends_nothing_again(place):
    """A bf16 gradient is, where a factor is to be rounded as torch rounds it."""
    sent = {}
    for clip in (0.05, 1e9):
        model = make_model().bfloat16()
        optimizer = package.AdamW(model.named_parameters(), state=place / str(clip))
        train(model, optimizer, clip=clip, dtype=torch.bfloat16)
        optimizer.close()
        with contextlib.closing(sqlite3.connect(place / str(clip) / "run.db")) as database:
            sent[clip], = database.execute(
                "SELECT count(*) FROM span JOIN string ON string.id = name_id "
                "WHERE value = 'take_gradient'").fetchone()
    require_equal(sent, {0.05: 2 * 5 * STEPS, 1e9: 5 * STEPS}, "gradients that were sent")


@package_test
def gradients_that_left_take_no_memory(place):
    gradients_bytes = 24 * 1_000_000 * 4
    saved = peak_bytes(place, "keep") - peak_bytes(place, "offload")
    require(saved > 0.8 * gradients_bytes, f"{saved} bytes less, of gradients of {gradients_bytes}")


@package_test
def compressed_gradients_stay_until_the_step(place):
    model = make_model()
    optimizer = package.AdamW(model.named_parameters(), state=place / "run", density=0.1)
    _, _, handles = train(model, optimizer, micro=2)
    require_equal(handles, 0, "handles")
    require_words(refusal(lambda: package.AdamW(model.parameters(), state=place / "other",
                                                density=0.1, gradients="offload")),
                  ["density=0.1", "gradients"], "both")
    require_words(refusal(lambda: package.AdamW(model.parameters(), state=place / "other",
                                                gradients="kept")), ["offload, keep"], "a word")


if __name__ == "__main__":
    sys.exit(main())
