"""Token files (docs/token_format.md), and files that appear whole or not at all."""

import array
import contextlib
import os
import secrets
import struct
import tempfile

from tokenizing.refusal import Refusal

TOKEN_MAGIC = b"SLCTOKEN"
HEADER_BYTES = 64
LEARNT = 1
DOCUMENT_BEGINS = 2
MARKS_PER_BYTE = 4
MARKS_AT_ONCE = 1 << 18
COPY_BYTES = 1 << 20


def fnv1a(data, value=0xcbf29ce484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def token_width(vocabulary):
    return 1 if vocabulary <= 1 << 8 else 2 if vocabulary <= 1 << 16 else 4


def token_header(width, count, vocabulary, checksum, has_marks):
    version = 3 if has_marks else 2 if width == 4 else 1
    head = struct.pack("<8sIIQQQQQ", TOKEN_MAGIC, version, width, count, vocabulary, checksum, 0, 0)
    return head + struct.pack("<Q", fnv1a(head))


def packed(marks):
    """Four marks of 0..3 a byte, the first in its lowest bits. As numbers of any length, since a
    loop over marks is slow."""
    size = -(-len(marks) // MARKS_PER_BYTE)
    value = 0
    for place in range(MARKS_PER_BYTE):
        value |= int.from_bytes(marks[place::MARKS_PER_BYTE], "little") << 2 * place
    return value.to_bytes(size, "little")


class Marks:
    """Those of the tokens so far, in a file without a name: they lie behind all tokens, and memory
    does not grow with them."""

    def __init__(self, file):
        self.file = file
        self.waiting = bytearray()
        self.learnt = self.documents = 0

    def add(self, count, is_learnt, is_begin):
        self.waiting += bytes([LEARNT if is_learnt else 0]) * count
        if is_begin and count:
            self.waiting[-count] |= DOCUMENT_BEGINS
            self.documents += 1
        self.learnt += count if is_learnt else 0
        if len(self.waiting) >= MARKS_AT_ONCE:
            self.flush(len(self.waiting) // MARKS_PER_BYTE * MARKS_PER_BYTE)

    def flush(self, count):
        self.file.write(packed(bytes(self.waiting[:count])))
        del self.waiting[:count]

    def blocks(self):
        self.flush(len(self.waiting))
        self.file.seek(0)
        while block := self.file.read(COPY_BYTES):
            yield block


def check_output(path, magic):
    """A file that is not ours is somebody's."""
    if path.exists():
        with open(path, "rb") as file:
            if not path.is_file() or file.read(len(magic)) != magic:
                raise Refusal(f"{path}: exists and is not of scripts/tokenize, so it is not "
                              "overwritten; name another path or remove it")


@contextlib.contextmanager
def new_file(path):
    """Written beside its name, and renamed once all of it is on the drive."""
    part = path.with_name(f"{path.name}.part-{secrets.token_hex(8)}")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_tokens(path, runs, vocabulary, has_marks, progress):
    """`runs` yields (ids, whether they are learnt, whether a document begins with them). Returns
    (tokens, bytes of one, marks)."""
    width = token_width(vocabulary)
    kind = {1: "B", 2: "H", 4: "I"}[width]
    count, checksum = 0, fnv1a(b"")
    with new_file(path) as file, tempfile.TemporaryFile(dir=path.parent) as beside:
        marks = Marks(beside)
        file.write(bytes(HEADER_BYTES))
        for ids, is_learnt, is_begin in runs:
            data = array.array(kind, ids).tobytes()
            file.write(data)
            checksum = fnv1a(data, checksum)
            count += len(ids)
            if has_marks:
                marks.add(len(ids), is_learnt, is_begin)
            progress.note(count)
        if count == 0:
            raise Refusal("there is no text in what was named, and so no token")
        if has_marks and marks.learnt == 0:
            raise Refusal(f"none of the {count} tokens would be learnt, so a run would train "
                          "nothing: the answers are empty or have the weight 0")
        for block in marks.blocks() if has_marks else ():
            file.write(block)
            checksum = fnv1a(block, checksum)
        file.seek(0)
        file.write(token_header(width, count, vocabulary, checksum, has_marks))
    return count, width, marks
