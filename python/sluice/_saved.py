"""What stands for a tensor that autograd saves while _activations.py is in charge of it.

Hooks switch autograd's own check off: a tensor that is changed in place between forward and
backward would give wrong gradients, and nobody would notice. So each notes the version that it was
saved with, and is compared as autograd would."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from sluice._error import Error

# As torch allocates. Matrix products may differ in the last bit with another alignment.
ALIGNMENT_BYTES = 64


class Extent:
    """The bytes of its storage that a tensor reaches: all of them where it reaches half, so that
    the parts of a fused projection are one."""

    def __init__(self, tensor):
        self.storage = tensor.untyped_storage()
        width = tensor.element_size()
        first = tensor.storage_offset() * width
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        self.begin = first // ALIGNMENT_BYTES * ALIGNMENT_BYTES
        self.end = first + (last + 1) * width
        if 2 * (self.end - self.begin) >= self.storage.nbytes():
            self.begin, self.end = 0, self.storage.nbytes()

    @property
    def size(self):
        return self.end - self.begin

    def key(self, version):
        return self.storage._cdata, self.begin, self.end, version

    def bytes(self):
        none = torch.empty(0, dtype=torch.uint8, device="cpu")
        return none.set_(self.storage, self.begin, (self.size,), (1,))


class Entry:
    """Bytes that one or more saved tensors have in common: on the drive (`stored`), or kept. As
    long as it is there, its storage's address is nobody else's."""

    def __init__(self, extent, stored=None, ordinal=None, give_back=None):
        self.storage = StorageWeakRef(extent.storage)
        self.size = extent.size
        self.stored = stored
        self.ordinal = ordinal  # of those that moved in a step
        self.pack_count = 0
        self.unpack_count = 0
        self._give_back = give_back

    def __del__(self):
        if self._give_back is not None:
            self._give_back()

    def load(self):
        """As a storage."""
        self.unpack_count += 1
        values = torch.empty(self.size, dtype=torch.uint8, device="cpu")
        self.stored.load(values, self.unpack_count < self.pack_count)
        return values.untyped_storage()


class Kept:
    """A tensor that stays in memory."""

    def __init__(self, tensor, entry=None):
        self._tensor = tensor.detach()
        self._version = tensor._version
        self._entry = entry

    def unpack(self):
        check_version(self._tensor, self._tensor, self._version)
        return self._tensor


class Moved:
    """A tensor whose memory is free for others."""

    def __init__(self, tensor, entry, begin):
        entry.pack_count += 1
        self.entry = entry
        self._version = tensor._version
        # A tensor without memory that has the version counter of the other.
        self._witness = tensor.detach()
        self._witness.data = torch.empty(0, dtype=tensor.dtype, device="cpu")
        self._shape, self._stride = tensor.shape, tensor.stride()
        self._offset = tensor.storage_offset() - begin // tensor.element_size()

    def unpack(self):
        like = torch.empty(0, dtype=self._witness.dtype, device="cpu")
        check_version(self._witness, self, self._version)
        return like.set_(self.entry.load(), self._offset, self._shape, self._stride)

    @property
    def shape(self):
        return self._shape

    @property
    def dtype(self):
        return self._witness.dtype


def check_version(witness, saved, version):
    if witness._version != version:
        raise Error(f"a {saved.dtype} tensor of shape {list(saved.shape)} that backward needs was "
                    f"changed in place: it was saved at version {version}, and is at version "
                    f"{witness._version}; change a copy (clone()), or change it after backward")
