"""Optimizers for PyTorch whose state lies on drives.

    optimizer = sluice.AdamW(model.parameters(), lr=1e-4, state="/nvme0/run")

docs/python.md of the checkout is its page.
"""

from sluice._deepspeed import from_deepspeed
from sluice._error import Error
from sluice._rules import SGD, Adagrad, AdamW
from sluice._trainer import attach, for_trainer, last_checkpoint

__all__ = ["Adagrad", "AdamW", "Error", "SGD", "attach", "for_trainer",
           "from_deepspeed", "last_checkpoint"]
