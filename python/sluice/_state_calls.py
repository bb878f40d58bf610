"""What a program asks about the state of its optimizer between two steps."""

import os
import pathlib

import torch

from sluice import _core
from sluice._error import Error
from sluice._plan import plan_of
from sluice._ranks import own_tensors
from sluice._settings import SAID_ELSEWHERE, SAID_BY_GROUPS, text_of
from sluice._tensors import trained_tensors
from sluice._torch_file import save
from sluice._torch_state import Source, file_entries, state_dict_of

FORMATS = ("torch", "safetensors")
SAFETENSORS = ".safetensors"


class StateCalls:
    """Of OnDrives. Each call is made between two steps, before backward of the next one, and is of
    the last step's state, which is durable then."""

    def export(self, path, format="torch"):
        """Writes the whole state into one file, in a few MiB of memory. "torch": what torch.save
        makes of the state dict of torch's optimizer of the name, for its load_state_dict().
        "safetensors": tensors `exp_avg.NAME`, ... Both have the master weights of parameters of 16
        bits beside them (`master_weight`)."""
        self._ranks.check_alone("export")
        if format not in FORMATS:
            raise Error(f"format={format!r}: one of {', '.join(FORMATS)}")
        source = Source(self._begun_session("export"), self._tensors, self.param_groups)
        if format == "torch":
            save(state_dict_of(source, getattr(torch.optim, type_name(self))), path)
        else:
            save_safetensors(source, self.RULE, path)

    def digest(self):
        """32 hex digits over all bits of the state, as `sluice state DIR --verify` prints them."""
        return self._begun_session("digest").digest()

    def snapshot(self, path):
        """Copies the state into a folder that is to be made, which is an optimizer's `state`, and
        whose `state` is a run's state_dir. The step that it is of."""
        session = self._begun_session("snapshot")
        return session.save_snapshot(str(pathlib.Path(path).absolute() / "state"))

    def set(self, **knobs):
        """Changes settings from the next step on, all or none, as `sluice set` does."""
        for key, value in knobs.items():
            if key in SAID_ELSEWHERE | SAID_BY_GROUPS:
                where = (SAID_ELSEWHERE | SAID_BY_GROUPS)[key]
                raise Error(f"{key}={value!r}: {where}")
        session = self._begun_session("set")
        session.set([f"{key}={text_of(value)}" for key, value in knobs.items()])

    @property
    def knobs(self):
        """The settings that set() takes, with the values in force, as text."""
        return {key: value for key, value in self._begun_session("knobs").knobs()
                if key not in SAID_ELSEWHERE | SAID_BY_GROUPS}

    def plan(self):
        """Bytes by place and the time of an update, as a Plan that prints itself. Also before the
        state begins: it takes no memory and writes nothing."""
        tensors = trained_tensors(self.param_groups)
        shapes = [(tensor.name, list(tensor.shape), tensor.group)
                  for tensor in own_tensors(self._ranks, tensors)]
        found = _core.plan(str(self._folders.run), shapes, len(self.param_groups),
                           self._session_settings(tensors))
        return plan_of(found, self._folders, self._platform)

    def _begun_session(self, call):
        if self._closed_at is not None:
            raise Error(f"{call}: the optimizer was closed after step {self._closed_at}; make it "
                        "again, which goes on from there")
        if self._session is None:
            raise Error(f"{call}: there is no state yet; it begins with the first gradient, or "
                        "with load_state_dict()")
        return self._session


def type_name(optimizer):
    """That of torch's class, also of a class that a program derives."""
    return next(base.__name__ for base in type(optimizer).__mro__ if "RULE" in vars(base))


def save_safetensors(source, rule, path):
    """As torch's file comes: whole, durable, in the place of one that is there."""
    path = pathlib.Path(path)
    folder = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    folder.mkdir()
    written = folder / f"state{SAFETENSORS}"
    try:
        source.session.write_state_file(str(folder), "state", rule, file_entries(source))
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
        folder.rmdir()
