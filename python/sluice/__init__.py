"""Optimizers for PyTorch whose state lies on drives.

    optimizer = sluice.AdamW(model.parameters(), lr=1e-4, state="/nvme0/run")

docs/python.md of the checkout is its page; `python -m sluice doctor` says what this machine has.
"""

import importlib
import sys

from sluice._error import Error

# These need torch, and the doctor has to say so where it is missing: each module is imported when
# a name of it is first asked for.
_MODULES = {"AdamW": "_rules", "Adagrad": "_rules", "SGD": "_rules",
            "attach": "_trainer", "for_trainer": "_trainer",
            "last_checkpoint": "_trainer",
            "from_deepspeed": "_deepspeed", "offload_activations": "_activations",
            "span": "_span"}

__all__ = ["Adagrad", "AdamW", "Error", "SGD", "attach", "for_trainer",
           "from_deepspeed", "last_checkpoint", "offload_activations", "span"]


def __getattr__(name):
    if name == "__version__":
        return importlib.import_module("sluice._core").version
    if name not in _MODULES:
        raise AttributeError(f"module 'sluice' has no attribute '{name}'", name=name,
                             obj=sys.modules[__name__])
    try:
        value = getattr(importlib.import_module(f"sluice.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Error(f"sluice.{name} needs torch, which {sys.executable} does not find: "
                    "`pip install torch`", "not_found") from error
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
