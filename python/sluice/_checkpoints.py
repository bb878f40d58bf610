"""Steps of the state that somebody may go back to: whoever has a state dict of theirs.

A step that a state dict names is kept before another one follows it, so that nothing is kept for
state dicts that are read again at once (accelerate's prepare())."""

import os
import time

from sluice._error import Error

MODES = ("pin", "last")
# As many are kept that no folder is known for.
KEEP_BY_DEFAULT = 2
NOBODY = "state_dict"  # and when, so that the oldest is known


class Checkpoints:
    """Of one open session. A keeper is the path of a checkpoint's folder, or NOBODY and a time."""

    def __init__(self, session, mode, keep):
        self._session = session
        self._mode = mode
        self._keep = keep
        self._noted = False  # the last step is in a state dict, and not kept yet

    def note(self):
        """The last step's (step, version), durable, which a state dict is about to name, or has
        named."""
        self._noted = self._mode == "pin"
        return self._session.make_durable()

    def has_noted(self):
        return self._noted

    def keep_noted(self):
        """Before another step begins. A folder that has it already keeps it."""
        if not self._noted:
            return
        self._noted = False
        last = self._session.make_durable()
        if any((step, version) == last for step, version, _ in self._session.kept()):
            return
        self.keep(f"{NOBODY} {time.time_ns():020}")
        nobodys = sorted((keeper, step, version) for step, version, keeper in self._session.kept()
                         if keeper.startswith(NOBODY))
        for _, step, version in nobodys[:-self._keep]:
            self._session.release(step, version)

    def keep_for(self, folder):
        """The last step, for a checkpoint's folder; what it kept before, and what folders kept
        that are gone, is released first: the room may be needed."""
        self._noted = False
        if self._mode != "pin":
            return
        folder = os.path.abspath(folder)
        last = self._session.make_durable()
        for step, version, keeper in self._session.kept():
            is_left = keeper == folder or (os.path.isabs(keeper) and not os.path.isdir(keeper))
            if is_left and (step, version) != last:
                self._session.release(step, version)
        self.keep(folder)

    def keep(self, keeper):
        try:
            self._session.keep(keeper)
        except Error as error:
            raise Error(f"{error}; free some, let old checkpoints go (optimizer.kept() lists them, "
                        "optimizer.release(step) frees one), or say checkpoint=\"last\"") from error


def checked_mode(mode, keep):
    if mode not in MODES:
        raise Error(f"checkpoint={mode!r}: one of {', '.join(MODES)}")
    if not isinstance(keep, int) or keep < 1:
        raise Error(f"keep_checkpoints={keep!r}: a whole number from 1")
