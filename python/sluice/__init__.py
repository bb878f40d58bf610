"""Optimizers for PyTorch whose state lies on drives.

    optimizer = sluice.AdamW(model.parameters(), lr=1e-4, state="/nvme0/run")

docs/python.md of the checkout is its page.
"""

from sluice._error import Error
from sluice._optimizer import AdamW
from sluice._trainer import for_trainer

__all__ = ["AdamW", "Error", "for_trainer"]
