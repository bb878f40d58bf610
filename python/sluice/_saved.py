"""What stands for a tensor that autograd saves while _activations.py is in charge of it.

Hooks switch autograd's own check off: a tensor that is changed in place between forward and
backward would give wrong gradients, and nobody would notice. So each notes the version that it was
saved with, and is compared as autograd would."""

import weakref

import torch

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

    def memory(self):
        """Address and size; the storage is held by whoever holds this."""
        return self.storage.data_ptr() + self.begin, self.size


class Entry:
    """Bytes that one or more saved tensors have in common: on the drive (`stored`), or kept."""

    def __init__(self, extent, stored=None, ordinal=None):
        self.size = extent.size
        self.stored = stored
        self.ordinal = ordinal  # of those that moved in a step
        self.pack_count = 0
        self.unpack_count = 0

    def load(self):
        """As a storage."""
        self.unpack_count += 1
        values = torch.empty(self.size, dtype=torch.uint8, device="cpu")
        self.stored.load(values.data_ptr(), self.size, self.unpack_count < self.pack_count)
        return values.untyped_storage()


class Entries:
    """Those that some graph still has. As long as one is here, the address of its storage is nobody
    else's.

    Nothing of Python's runs when one goes, in a destructor or for a weak reference: an interrupt
    (Ctrl-C) that came in there would be lost. So torch's weak references to storages are not
    objects of its StorageWeakRef, and go when somebody looks."""

    def __init__(self):
        self._references = {}  # by Extent.key, the oldest first
        self._swept_count = 0
        weakref.finalize(self, forget_all, self._references)

    def find(self, key):
        reference = self._references.get(key)
        if reference is None or torch.UntypedStorage._expired(key[0]):
            return None
        return reference()

    def add(self, key, storage, entry):
        if key in self._references:
            forget(self._references, key)
        storage._weak_ref()
        self._references[key] = weakref.ref(entry)
        if len(self._references) > 2 * self._swept_count + 1000:
            for gone in [key for key, one in self._references.items() if one() is None]:
                forget(self._references, gone)
            self._swept_count = len(self._references)

    def is_empty(self):
        while self._references:
            key, oldest = next(iter(self._references.items()))
            if oldest() is not None:
                return False
            forget(self._references, key)
        return True


def forget(references, key):
    # In this order: an interrupt in between may lose a few bytes, and frees nothing twice.
    del references[key]
    torch.UntypedStorage._free_weak_ref(key[0])


def forget_all(references):
    for key in list(references):
        forget(references, key)


class Budget:
    """For what may stay in memory, in bytes."""

    def __init__(self, most):
        self._most = most
        self._kept = []  # entries, by weak reference, and their bytes
        self.used = 0

    def has_room(self, size):
        if self.used + size > self._most and self._kept:
            self._kept = [one for one in self._kept if one[0]() is not None]
            self.used = sum(one[1] for one in self._kept)
        return self.used + size <= self._most

    def add(self, entry, size):
        self._kept.append((weakref.ref(entry), size))
        self.used += size


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
