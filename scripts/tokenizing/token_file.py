"""Token files (docs/token_format.md), and files that appear whole or not at all."""

import array
import base64
import contextlib
import os
import secrets
import struct

from tokenizing.refusal import Refusal

TOKEN_MAGIC = b"SLCTOKEN"
HEADER_BYTES = 64
LEARNT = 1
DOCUMENT_BEGINS = 2
OF_RECORD, OF_SECOND_TEXT = 1, 2  # the same bits, of records with labels
MARKS_PER_BYTE = 4
MARKS_AT_ONCE = 1 << 18
COPY_BYTES = 1 << 20


def fnv1a(data, value=0xcbf29ce484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def token_width(vocabulary):
    return 1 if vocabulary <= 1 << 8 else 2 if vocabulary <= 1 << 16 else 4


def token_header(width, count, vocabulary, checksum, has_marks, window_tokens=0,
                 has_labels=False):
    version = (5 if has_labels else 4 if window_tokens else 3 if has_marks else
               2 if width == 4 else 1)
    head = struct.pack("<8sIIQIIQQQ", TOKEN_MAGIC, version, width, count, vocabulary, window_tokens,
                       checksum, 0, 0)
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
    """Those of the tokens so far, in a file of their own: they lie behind all tokens, and memory
    does not grow with them."""

    def __init__(self, file):
        self.file = file
        self.waiting = bytearray()
        self.learnt = self.documents = 0

    def add(self, marks):
        self.waiting += marks
        both = marks.count(LEARNT | DOCUMENT_BEGINS)
        self.learnt += marks.count(LEARNT) + both
        self.documents += marks.count(DOCUMENT_BEGINS) + both
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

    def state(self):
        return {"bytes": self.file.tell(), "waiting": base64.b64encode(self.waiting).decode(),
                "learnt": self.learnt, "documents": self.documents}

    def restore(self, state):
        go_back(self.file, state["bytes"])
        self.waiting = bytearray(base64.b64decode(state["waiting"]))
        self.learnt, self.documents = state["learnt"], state["documents"]


def go_back(file, size):
    """To a size that it had: what lies behind is not known."""
    if os.fstat(file.fileno()).st_size < size:
        raise Refusal("what lies in a .part- file is shorter than its journal says; remove those "
                      "files to begin anew")
    file.truncate(size)
    file.seek(size)


class TokenWriter:
    """Tokens and their marks into a file that is a token file once it is finished. `beside` holds
    the marks until then; without it there are none."""

    def __init__(self, file, beside, vocabulary, is_new):
        self.file = file
        self.marks = Marks(beside) if beside else None
        self.vocabulary = vocabulary
        self.width = token_width(vocabulary)
        self.kind = {1: "B", 2: "H", 4: "I"}[self.width]
        self.count, self.checksum = 0, fnv1a(b"")
        if is_new:
            go_back(file, 0)
            file.write(bytes(HEADER_BYTES))

    def add(self, ids, marks):
        data = array.array(self.kind, ids).tobytes()
        self.file.write(data)
        self.checksum = fnv1a(data, self.checksum)
        self.count += len(ids)
        if self.marks:
            self.marks.add(marks)

    def finish(self, window_tokens, labels=()):
        """`labels`: a number for each window, which has one record then."""
        if self.count == 0:
            raise Refusal("there is no text in what was named, and so no token")
        if self.marks and self.marks.learnt == 0:
            raise Refusal(f"none of the {self.count} tokens would be learnt, so a run would train "
                          "nothing: the answers are empty or have the weight 0")
        for block in self.marks.blocks() if self.marks else ():
            self.file.write(block)
            self.checksum = fnv1a(block, self.checksum)
        of_records = array.array("i", labels).tobytes()
        self.file.write(of_records)
        self.checksum = fnv1a(of_records, self.checksum)
        self.file.seek(0)
        self.file.write(token_header(self.width, self.count, self.vocabulary, self.checksum,
                                     self.marks is not None, window_tokens, bool(labels)))

    def state(self):
        return {"count": self.count, "checksum": self.checksum,
                "marks": self.marks.state() if self.marks else None}

    def restore(self, state):
        self.count, self.checksum = state["count"], state["checksum"]
        go_back(self.file, HEADER_BYTES + self.count * self.width)
        if self.marks:
            self.marks.restore(state["marks"])


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
