#!/usr/bin/env python3
"""Parameters in an accelerator's memory: gradients are copied to host memory while backward goes on
and handed over behind it, and loops have the same bits as with parameters in host memory. Where
there is no GPU those of this machine's memory are taken for an accelerator's."""

import contextlib
import itertools
import math
import sys

from python_package import (loss_of, make_model, on_drives, package, package_test, refusal,
                            require_same, torch, weights, with_gradients)
from sluice_run import Skip, main, require, require_equal, require_words

STEPS = 6
LOOPS = (
    {}, {"micro": 3}, {"clip": 0.05}, {"clip": 0.05, "foreach": False, "micro": 2},
    {"micro": 2, "to_none": False}, {"scale": 48.0, "micro": 2, "clip": 0.05},
)


@contextlib.contextmanager
def memory_is_elsewhere(in_flight=1):
    """Host memory counts as an accelerator's: nothing is taken from it, or written, in place."""
    modules = package._stream, package._tensors
    before = package._arrivals.IN_FLIGHT_BYTES, package._stream.is_here
    package._arrivals.IN_FLIGHT_BYTES = in_flight
    for module in modules:
        module.is_here = lambda tensor: False
    try:
        yield
    finally:
        package._arrivals.IN_FLIGHT_BYTES = before[0]
        for module in modules:
            module.is_here = before[1]


def train(model, optimizer, device="cpu", micro=1, clip=None, foreach=None, to_none=True,
          scale=None):
    scaler = torch.amp.GradScaler(device, init_scale=scale) if scale else None
    norms = []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=to_none)
        for part in range(micro):
            loss = loss_of(model, micro * step + part, device) / micro
            if scaler and step == 2:
                loss = loss * math.inf
            (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.unscale_(optimizer)
        if clip is not None:
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip,
                                                        foreach=foreach).item().hex())
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
    return norms


@package_test
def gradients_that_come_from_elsewhere_are_the_same_bits(place):
    settings = ({}, {"parameter_tier": "storage", "gradients": "keep"}, {"density": "0.2"})
    for number, (loop, more) in enumerate(itertools.product(LOOPS, settings)):
        found = []
        for is_elsewhere in (False, True):
            model = make_model()
            with memory_is_elsewhere() if is_elsewhere else contextlib.nullcontext():
                optimizer = on_drives(model, place / f"{number}{is_elsewhere}", **more)
                norms = train(model, optimizer, **loop)
                digest = optimizer.digest()
                optimizer.close()
            found.append((norms, digest, weights(model)))
        require_equal(found[1][:2], found[0][:2], f"{loop}, {more}: norms and digest")
        require_same(found[1][2], found[0][2], f"{loop}, {more}")


@package_test
def what_is_on_its_way_is_bounded(place):
    """Two gradients and the one behind them; the rest has been handed over."""
    model = make_model()
    sizes = [p.grad.nbytes for p in with_gradients(make_model()).parameters()
             if p.grad is not None]
    for in_flight in (1, max(sizes), sum(sizes)):
        with memory_is_elsewhere(in_flight):
            optimizer = on_drives(model, place / str(in_flight))
            with_gradients(model)
            coming = optimizer._stream._arrivals
            waiting = sum(gradient.nbytes for gradient, _ in coming._coming)
            require_equal(waiting, coming._bytes, "bytes on their way")
            require(waiting <= max(in_flight, max(sizes)), f"{waiting} bytes of {in_flight}")
            require(len(coming._coming) > 0, "nothing was on its way behind backward")
            optimizer.step()
            require_equal((len(coming._coming), coming._bytes), (0, 0), "left behind the step")
            optimizer.close()


@package_test
def a_step_that_failed_among_arrivals_is_taken_again(place):
    model = make_model()
    with memory_is_elsewhere():
        optimizer = on_drives(model, place / "again")
        with_gradients(model)
        wanted = [p.detach().clone() for p in model.parameters()]
        gradients = [p.grad for p in model.parameters()]
        bias = model.first.bias.grad
        model.first.bias.grad = None
        require_words(refusal(optimizer.step), ["has no gradient of first.bias"], "missing")
        require(all(torch.equal(p, value) for p, value in zip(model.parameters(), wanted)),
                "a refused step changed a parameter")
        model.first.bias.grad = bias
        optimizer.step()
        require_equal(optimizer.steps_done, 1, "steps")
        require(gradients[0] is model.first.weight.grad, "the handle was replaced")
        optimizer.close()
    other = make_model()
    optimizer = on_drives(other, place / "whole")
    with_gradients(other)
    optimizer.step()
    require_same(weights(model), weights(other), "the step that was refused once")
    optimizer.close()


@package_test
def a_place_that_is_no_memory_is_named(place):
    model = make_model().to("meta")
    optimizer = on_drives(model, place / "meta")
    model.first.weight.grad = torch.empty_like(model.first.weight)
    require_words(refusal(optimizer.step), ["first.weight is on meta"], "a model without values")


@package_test
def a_gpu_has_the_bits_of_its_own_gradients(place):
    """Kept in its memory until step(), or copied during backward; and it goes on where host memory
    left off, since the state is the same."""
    if not torch.cuda.is_available():
        raise Skip("torch finds no GPU")
    for number, loop in enumerate(LOOPS):
        found = []
        for gradients in ("keep", "offload"):
            model = make_model().cuda()
            optimizer = on_drives(model, place / f"{gradients}{number}", gradients=gradients)
            norms = train(model, optimizer, "cuda", **loop)
            found.append((norms, optimizer.digest(), weights(model)))
            optimizer.close()
        require_equal(found[1][:2], found[0][:2], f"{loop}: norms and digest")
        require_same(found[1][2], found[0][2], f"{loop}")
        host = make_model()
        optimizer = on_drives(host, place / f"offload{number}")
        require_same(weights(host), {k: v.cpu() for k, v in found[1][2].items()}, "on the host")
        host.cuda()  # between steps
        train(host, optimizer, "cuda")
        optimizer.close()


if __name__ == "__main__":
    sys.exit(main())
