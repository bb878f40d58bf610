#!/usr/bin/env python3
"""Parameters of a program on the drives (parameter_tier=storage): the program's own are the only
ones in memory, the numbers are the same, and a state of many times the cap is trained under it."""

import os
import subprocess
import sys

from python_package import (PACKAGE, heard, make_model, on_drives, package, package_test,
                            refusal, require_same, torch, train, weights)
from sluice_run import LIMIT_S, main, require, require_equal, require_words

STEPS = 6


def trained(place, name, dtype=None, **settings):
    model = make_model()
    if dtype is not None:
        model.to(dtype)
    optimizer = on_drives(model, place / name, **settings)
    if dtype is None:
        losses = train(model, optimizer, STEPS)
    else:
        losses = None
        for number in range(STEPS):
            optimizer.zero_grad()
            sum((number + 1) * (p.float() ** 3).sum() for p in model.parameters()).backward()
            optimizer.step()
    digest = optimizer.digest()
    optimizer.close()
    return weights(model) | {"losses": torch.tensor(losses or [0.0])}, digest


@package_test
def weights_and_state_are_those_of_parameters_in_memory_to_the_bit(place):
    for dtype in (None, torch.bfloat16):
        wanted, digest = trained(place, f"memory {dtype}", dtype)
        for name, way in (("storage", {}), ("again", {"buffers": 1, "pipeline": "serial"})):
            found, other = trained(place, f"{name} {dtype}", dtype, parameter_tier="storage", **way)
            require_same(found, wanted, f"{name}, {dtype}")
            require_equal(other, digest, f"digest of {name}, {dtype}")


@package_test
def a_run_goes_on_from_the_drives_and_sees_a_parameter_that_was_changed(place):
    whole, _ = trained(place, "whole")
    model = make_model()
    first = on_drives(model, place / "parts", parameter_tier="storage")
    train(model, first, 3)
    first.close()
    model = make_model()  # as it began: its parameters are those of step 3 once this is open
    second = on_drives(model, place / "parts", parameter_tier="storage")
    train(model, second, STEPS, begin=3)
    require_same(weights(model), {k: v for k, v in whole.items() if k != "losses"}, "weights")
    model.first.weight.data = model.first.weight.data.clone()  # as it was, elsewhere
    train(model, second, STEPS + 1, begin=STEPS)
    model.first.weight.data = model.first.weight.data + 1
    try:
        train(model, second, STEPS + 2, begin=STEPS + 1)
        require(False, "a changed parameter was not refused")
    except package.Error as error:
        require_words(str(error), ["first.weight", "changed"], "a changed parameter")
    second.close()


def open_file(name):
    """The path of a file of this process that has no name any more."""
    for number in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{number}"
        if os.path.islink(path) and name in os.readlink(path):
            return path
    raise AssertionError(f"{name} is not open")


@package_test
def a_parameter_that_changed_on_the_drive_is_named_and_the_last_commit_stands(place):
    parameters = [torch.nn.Parameter(torch.ones(300_000)) for _ in range(4)]

    def opened():
        return package.AdamW(parameters, state=place / "run", parameter_tier="storage", threads=1)

    def step():
        sum((parameter ** 2).sum() for parameter in parameters).backward()
        optimizer.step()
        optimizer.zero_grad()

    optimizer = opened()
    step()
    with open(open_file("parameters.slc"), "r+b") as file:
        file.seek(300_000 * 4 + 4096)
        file.write(b"x" * 4096)
    parameters[1].data = parameters[1].data.clone()  # so that it is looked at
    require_words(refusal(step), ["param.1", "parameters.slc", "not what was written"], "its error")
    require_words(refusal(optimizer.close), ["parameters.slc"], "what close() says")
    for parameter in parameters:
        parameter.grad = None
    optimizer = opened()
    require_equal(optimizer.steps_done, 1, "steps of the state")
    step()
    optimizer.close()


@package_test
def the_first_line_says_less_memory(place):
    model = torch.nn.Sequential(*[torch.nn.Linear(1000, 1000) for _ in range(8)])
    said = []
    for tier in ("memory", "storage"):
        optimizer = on_drives(model, place / tier, parameter_tier=tier)

        def step():
            model(torch.ones(1, 1000)).sum().backward()
            optimizer.step()
        said.append(float(heard(step).split(" MiB of host memory")[0].split()[-1]))
        optimizer.zero_grad()
        optimizer.close()
    require(said[0] - said[1] > 8 * 4 - 2 * 4 - 2, f"{said} MiB")


MEASURED = """
import sys
sys.path.insert(0, {package!r})
import sluice, torch
torch.set_num_threads(1)

def peak_bytes():
    line = next(line for line in open("/proc/self/status") if "VmHWM" in line)
    return int(line.split()[1]) * 1024

parameters = [torch.nn.Parameter(torch.randn(1 << 19)) for _ in range({count})]
torch.optim.AdamW(parameters[:1])  # torch loads what its optimizers need
for parameter in parameters:
    (parameter * 2.0).sum().backward()
    parameter.grad = None
before = peak_bytes()
optimizer = sluice.AdamW(parameters, lr=1e-3, state={state!r}, host_memory="{cap}", method="host",
                         parameter_tier="storage", bounce_memory="8MiB", buffers=1,
                         subgroup_elements=65536, record="off", threads=1)
for step in range(4):
    for parameter in parameters:
        (parameter * 2.0).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(peak_bytes() - before)
"""


@package_test
def a_state_of_twenty_times_the_cap_is_trained_under_it(place):
    cap_mib = 28
    count = 20 * cap_mib * 2**20 // (12 * 2**19) + 1
    program = MEASURED.format(package=str(PACKAGE), state=str(place / "run"), count=count,
                              cap=f"{cap_mib}MiB")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"the program's exit status: {done.stderr}")
    require(int(done.stdout) <= cap_mib * 2**20,
            f"{int(done.stdout) / 2**20:.1f} MiB beyond the model's, of {cap_mib} MiB")


if __name__ == "__main__":
    sys.exit(main())
