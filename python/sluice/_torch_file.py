"""A file as torch.save writes it, with tensors whose values come while it is written: a zip archive
with a pickle, and a record for each storage (torch's docs/source/notes/serialization.rst)."""

import collections
import io
import os
import pathlib
import pickle
import struct
import zipfile

import torch

ROOT = "archive"
PICKLE_PROTOCOL = 2
VERSION = b"3\n"
ALIGNMENT = 64  # of records, for whoever maps the file
HEADER = 30  # bytes of a zip entry before its name
ZIP64_EXTRA = 20
PAD_HEAD = struct.Struct("<2sH")


class Later:
    """An fp32 tensor in the file: `chunks()` yields its values, as buffers of bytes, in order."""

    def __init__(self, shape, chunks):
        self.shape = tuple(shape)
        self.count = 1
        for size in self.shape:
            self.count *= size
        self.chunks = chunks
        self.storage = Storage(self)

    def __reduce__(self):
        strides, step = [], 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step *= size
        return torch._utils._rebuild_tensor_v2, (
            self.storage, 0, self.shape, tuple(strides), False, collections.OrderedDict())


class Storage:
    def __init__(self, tensor):
        self.tensor = tensor


class Pickler(pickle.Pickler):
    """Storages by number, in the order in which they come."""

    def __init__(self, file):
        super().__init__(file, protocol=PICKLE_PROTOCOL)
        self.storages = []

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        self.storages.append(obj)
        return ("storage", torch.FloatStorage, str(len(self.storages) - 1), "cpu",
                obj.tensor.count)


def save(content, path):
    """`content`: as torch.save takes it, with a Later for each tensor. The file comes as a whole,
    durable, in the place of one that is there, or not at all."""
    path = pathlib.Path(path)
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            write(content, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write(content, file):
    text = io.BytesIO()
    pickler = Pickler(text)
    pickler.dump(content)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        add(archive, file, "data.pkl", [text.getvalue()])
        add(archive, file, "byteorder", [b"little"])
        for number, storage in enumerate(pickler.storages):
            add(archive, file, f"data/{number}", storage.tensor.chunks())
        add(archive, file, "version", [VERSION])


def add(archive, file, name, chunks):
    info = zipfile.ZipInfo(f"{ROOT}/{name}")
    taken = file.tell() + HEADER + len(info.filename) + ZIP64_EXTRA + PAD_HEAD.size
    padding = -taken % ALIGNMENT
    info.extra = PAD_HEAD.pack(b"FB", padding) + b"Z" * padding
    with archive.open(info, "w", force_zip64=True) as record:
        for chunk in chunks:
            record.write(chunk)
