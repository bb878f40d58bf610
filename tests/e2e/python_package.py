"""What tests of the Python package share: the package and torch, where there are any, a small model
and its training."""

import importlib.util
import io
import os
import pathlib
import subprocess
import sys

from sluice_run import BUILD, Skip, require, require_equal, test

VENV = pathlib.Path(os.environ.get("SLUICE_VENV", pathlib.Path.home() / ".cache/sluice/venv"))
PACKAGE = BUILD / "python"
STEPS = 50


def start_with_torch():
    """The module is for the Python that scripts/setup installs torch in."""
    python = VENV / "bin/python"
    if importlib.util.find_spec("torch") is None and python.exists():
        if os.environ.get("SLUICE_PYTHON_TEST") is None:
            os.environ["SLUICE_PYTHON_TEST"] = "started"
            os.execv(python, [str(python), *sys.argv])


def why_not():
    if importlib.util.find_spec("torch") is None:
        return f"there is no torch for Python in {VENV} (scripts/setup installs it)"
    if not list((PACKAGE / "sluice").glob("_core*.so")):
        return f"the Python package was not built in {PACKAGE} (nanobind is missing: scripts/setup)"
    return None


start_with_torch()
REASON = why_not()
package = torch = None
if REASON is None:
    sys.path.insert(0, str(PACKAGE))
    import sluice as package
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)


def package_test(function):
    """Where there is a torch and the package."""
    def run_or_skip(place):
        if REASON is not None:
            raise Skip(REASON)
        function(place)
    run_or_skip.__name__ = function.__name__
    return test(run_or_skip)


def python_with_transformers():
    """This one, or that of scripts/get_models."""
    for python in (sys.executable, VENV.parent / "model_readers/bin/python"):
        if pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", "import torch, transformers, accelerate"], capture_output=True,
                check=False).returncode == 0:
            return python
    raise Skip("transformers and accelerate are not installed (scripts/get_models does)")


# A model, its batches and its training -----------------------------------------------------------


def make_model(seed=1):
    """A small network with a frozen tensor, a tied one and one that is not contiguous."""
    torch.manual_seed(seed)
    model = torch.nn.Module()
    model.first = torch.nn.Linear(24, 40)
    model.middle = torch.nn.Linear(40, 40, bias=False)
    model.again = torch.nn.Linear(40, 40)
    model.again.weight = model.middle.weight
    model.last = torch.nn.Linear(40, 8)
    model.last.weight = torch.nn.Parameter(torch.randn(40, 8).t() / 8)
    model.last.bias.requires_grad_(False)
    return model


def loss_of(model, number, device="cpu"):
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(16, 24, generator=generator).to(device)
    y = torch.randn(16, 8, generator=generator).to(device)
    kept = functional.gelu(model.middle(functional.gelu(model.first(x))))
    return functional.mse_loss(model.last(functional.gelu(model.again(kept))), y)


def with_gradients(model):
    model.zero_grad()
    loss_of(model, 0).backward()
    return model


def train(model, optimizer, steps, begin=0, scheduler=None):
    losses = []
    for number in range(begin, steps):
        optimizer.zero_grad()
        loss = loss_of(model, number)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses


def on_drives(model, folder, **arguments):
    return package.AdamW(model.named_parameters(), state=folder,
                         **({"lr": 3e-3, "threads": 1} | arguments))


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def require_same(found, wanted, what):
    require_equal(sorted(found), sorted(wanted), f"{what}: names")
    for name, value in wanted.items():
        require(torch.equal(found[name], value), f"{what}: {name} differs")


def require_close(losses, wanted, what):
    require_equal(len(losses), len(wanted), f"{what}: losses")
    for number, (loss, other) in enumerate(zip(losses, wanted)):
        require(abs(loss - other) <= 1e-6 * abs(other),
                f"{what}: loss {loss} at step {number + 1}, and torch's is {other}")


def refusal(action, *arguments, **keywords):
    """What the package says against it."""
    try:
        action(*arguments, **keywords)
    except package.Error as error:
        return str(error)
    require(False, f"{action.__name__} was not refused")


def heard(action):
    """What it says on stderr."""
    before, sys.stderr = sys.stderr, io.StringIO()
    try:
        action()
        return sys.stderr.getvalue()
    finally:
        sys.stderr = before
