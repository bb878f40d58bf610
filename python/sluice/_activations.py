"""What forward keeps for backward lies on a drive meanwhile, whatever the model is: autograd asks
two hooks of ours instead of keeping a tensor."""

import os
import pathlib
import sys
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from sluice import _core
from sluice._activation_report import Report, Tally
from sluice._error import Error
from sluice._saved import Budget, Entries, Entry, Extent, Kept, Moved

# The rank of a tensor that the step before did not need.
LATE = 1 << 60
MOST_ORDINALS = 1 << 20


def offload_activations(model, *, state, in_flight="1GiB", min_bytes=1 << 20, keep=0):
    """A context around forward, or around whole steps; the same one for all steps:

        activations = sluice.offload_activations(model, state="/nvme0/activations")
        for batch in data:
            with activations:
                loss = model(**batch).loss
            loss.backward()
        print(activations.report())

    `state`: a folder on the drive. `in_flight`: the most memory for what waits to be written, and
    what was read ahead. `min_bytes`: smaller tensors stay in memory. `keep`: so many bytes of saved
    tensors stay in memory, the first of a step; "auto": as many as half of what is available now,
    so that what fits is not moved.

    docs/python_activations.md is its page."""
    return OffloadedActivations(model, state, in_flight, min_bytes, keep)


class OffloadedActivations:
    """Thread contract: one thread enters it; backward may use threads of autograd's."""

    def __init__(self, model, state, in_flight, min_bytes, keep):
        if not isinstance(state, (str, os.PathLike)):
            raise Error(f"state={state!r}: a folder, on one drive")
        self._folder = pathlib.Path(state).absolute()
        self._in_flight = as_bytes("in_flight", in_flight, _core.LEAST_IN_FLIGHT_BYTES)
        self._min_bytes = as_bytes("min_bytes", min_bytes, 1)
        self._budget = Budget(kept_bytes(keep))
        # Graphs keep the hooks, and a model may keep a graph.
        self._model = weakref.ref(model)
        self._own = storages_of(model, {})
        self._process = os.getpid()
        self._store = None  # until something moves
        self._contexts = []
        self._entries = Entries()
        self._order = Order()
        self._tally = Tally()

    def __enter__(self):
        model = self._model()
        if model is not None:
            self._own = storages_of(model, self._own)
        self._contexts.append(torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *raised):
        self._contexts.pop().__exit__(*raised)

    def report(self):
        """What was moved so far, and what it cost. It prints as text."""
        counts = self._store.counts() if self._store is not None else {}
        is_direct = self._store is not None and self._store.is_direct
        return Report(self._folder, is_direct, self._in_flight, self._tally, counts)

    # Hooks ---------------------------------------------------------------------------------------

    def _pack(self, tensor):
        if os.getpid() != self._process:
            return Kept(tensor)
        if self._entries.is_empty():
            self._order.begin()
            self._tally.begin_step()
        with self._tally.timed("pack_s"):
            return self._packed(tensor)

    def _unpack(self, packed):
        self._tally.begin_backward()
        with self._tally.timed("unpack_s"):
            if isinstance(packed, Moved):
                self._order.use(packed.entry.ordinal)
            return packed.unpack()

    def _packed(self, tensor):
        reason = self._reason_to_stay(tensor)
        if reason is not None:
            self._tally.leave(reason, tensor)
            return Kept(tensor)
        extent = Extent(tensor)
        key = extent.key(tensor._version)
        entry = self._known(key, extent)
        if entry is None:
            entry = self._keep_or_move(extent)
            self._entries.add(key, extent.storage, entry)
        else:
            self._tally.repeat(entry)
        if entry.stored is None:
            return Kept(tensor, entry)
        return Moved(tensor, entry, extent.begin)

    def _reason_to_stay(self, tensor):
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return f"of {type(tensor).__name__}"
        if tensor.device.type != "cpu":
            return f"on {tensor.device}"
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_conj() or (
                tensor.is_neg()):
            return "not laid out as values in memory"
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return "of integers"
        if tensor.untyped_storage()._cdata in self._own:
            return "parameters, buffers and views of them"
        return "below min_bytes" if tensor.nbytes < self._min_bytes else None

    def _known(self, key, extent):
        """The entry that has these bytes already. A write past autograd (`.data`) leaves the
        version as it was, so they are compared."""
        entry = self._entries.find(key)
        if entry is None or entry.stored is None or entry.stored.has_bytes(*extent.memory()):
            return entry
        return None

    def _keep_or_move(self, extent):
        held = extent.storage.nbytes()
        if self._budget.has_room(held):
            entry = Entry(extent)
            self._budget.add(entry, held)
            self._tally.note_kept(self._budget.used)
            return entry
        if self._store is None:
            self._store = open_store(self._folder, self._in_flight)
        ordinal, rank = self._order.next()
        stored = self._store.save(*extent.memory(), rank)
        self._tally.move(extent)
        return Entry(extent, stored, ordinal)


class Order:
    """In which order a step's backward is expected to need what moved: as in the last step that had
    a backward, and backwards before there is one. A step begins when nothing of the one before is
    left."""

    def __init__(self):
        self._ranks = {}  # by ordinal, of the last step
        self._used = {}  # the same of this one
        self._next = 0

    def begin(self):
        if self._used:
            self._ranks = self._used
        self._used = {}
        self._next = 0

    def next(self):
        if self._next == MOST_ORDINALS:  # something is always left
            self.begin()
        ordinal = self._next
        self._next += 1
        return ordinal, self._ranks.get(ordinal, LATE if self._ranks else -ordinal)

    def use(self, ordinal):
        self._used.setdefault(ordinal, len(self._used))


def open_store(folder, in_flight):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"state={str(folder)!r}: {error.strerror}; name a folder that can be written",
                    "io") from error
    store = _core.SavedTensors(str(folder), in_flight)
    # The C library would keep the memory of what moved, in pieces that fit nothing.
    _core.give_freed_memory_back()
    return store


def kept_bytes(keep):
    if keep != "auto":
        return as_bytes("keep", keep, 0)
    available, _ = dict(_core.limits())["memory"]  # below 0: there is no limit
    return available // 2 if available >= 0 else sys.maxsize


def as_bytes(name, value, least):
    try:
        found = value if isinstance(value, int) else _core.parsed_bytes(str(value))
    except Error as error:
        raise Error(f"{name}={value!r}: {error}") from None
    if found < least:
        raise Error(f"{name}={value!r}: it is {least} bytes or more")
    return found


def storages_of(model, known):
    """By address, those of parameters and buffers; the address is theirs as long as this is held.
    Taken over from `known` where it has them: there is a destructor of Python's (Entries)."""
    own = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.device.type not in ("cpu", "meta"):
            raise Error(f"{name} is on {tensor.device}; this version moves activations of models "
                        "in host memory (device cpu)")
        if type(tensor) in (torch.Tensor, torch.nn.Parameter) and (
                tensor.layout is torch.strided):
            storage = tensor.untyped_storage()
            own[storage._cdata] = known.get(storage._cdata) or StorageWeakRef(storage)
    return own
