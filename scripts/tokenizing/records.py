"""The records of a file: one a line, or the elements of an array. Both are read as they come, so
memory is that of the largest record."""

import json

from tokenizing.progress import Progress
from tokenizing.refusal import Refusal
from tokenizing.texts import decoded_blocks

RECORD_LIMIT_BYTES = 256 << 20
# An error so near the end of what has been read may be gone with more of it.
CUT_CHARACTERS = 16
BLANK = " \t\r\n"


def is_json(path):
    return path.suffix in (".json", ".jsonl", ".ndjson")


def records_of(path, progress, offset=0, line=0):
    """(where it is, record, offset and line behind it) of each. Where both are given, the rest of
    them behind that place."""
    with open(path, "rb") as file:
        # Not read: a pipe has no way back.
        head = file.peek(1).removeprefix(b"\xef\xbb\xbf")
        if head.lstrip().startswith(b"["):
            blocks = decoded_blocks(path, file, progress, offset)
            yield from Array(path, blocks, offset, line).records()
        else:
            yield from line_records(path, file, progress, offset, line)


def first_record(path):
    """None where there is none; a record that is none is refused when all are read."""
    try:
        return next(records_of(path, Progress(0, quiet=True)), (None, None, None))[1]
    except Refusal:
        return None


def line_records(path, file, progress, offset, number):
    if offset:
        file.seek(offset)
    while line := file.readline(RECORD_LIMIT_BYTES + 1):
        number += 1
        offset += len(line)
        progress.done_bytes += len(line)
        if len(line) > RECORD_LIMIT_BYTES:
            raise Refusal(f"{path}: line {number} is longer than {RECORD_LIMIT_BYTES} bytes")
        if line.strip():
            where = f"{path}: line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Refusal(f"{where} is no JSON: {error}") from None
            yield where, record, (offset, number)


class Array:
    def __init__(self, path, blocks, offset, line):
        self.path = path
        self.blocks = blocks
        self.text = ""
        self.at = 0
        self.offset = offset  # of that place, in bytes; 0: the array begins
        self.line = line or 1
        self.is_end = False

    def records(self):
        decoder = json.JSONDecoder()
        is_first = self.offset == 0
        if is_first:
            self.take("[")
        while self.next_character() != "]":
            if not is_first:
                self.take(",")
                self.next_character()
            where = f"{self.path}: line {self.line}"
            record, end = self.element(decoder, where)
            self.skip_to(end)
            is_first = False
            yield where, record, (self.offset, self.line)
        self.take("]")
        if self.next_character():
            raise Refusal(f"{self.path}: line {self.line}: more follows behind the array's end")

    def element(self, decoder, where):
        while True:
            try:
                record, end = decoder.raw_decode(self.text, self.at)
                # A number may go on behind a cut: 1, 1. and 1e+ are all read as 1.
                if len(self.text) - end > 2 or self.is_end:
                    return record, end
            except (ValueError, RecursionError) as error:
                if self.is_end or not may_be_cut(error, self.text):
                    # Its own line counts from the begin of what is held.
                    said = getattr(error, "msg", error)
                    raise Refusal(f"{where} is no JSON: {said}") from None
            if len(self.text) - self.at > RECORD_LIMIT_BYTES:
                raise Refusal(f"{where}: a record is longer than {RECORD_LIMIT_BYTES} bytes")
            self.read_more()

    def read_more(self):
        """As much again as is there, so that a long record is not tried for each block."""
        parts = [self.text[self.at:]]
        wanted = max(1, len(parts[0]))
        self.at = 0
        while wanted > 0 and not self.is_end:
            block = next(self.blocks, None)
            self.is_end = block is None
            parts.append(block or "")
            wanted -= len(parts[-1])
        self.text = "".join(parts)

    def skip_to(self, end):
        self.line += self.text.count("\n", self.at, end)
        self.offset += len(self.text[self.at:end].encode())
        self.at = end

    def next_character(self):
        """The next one that is no blank, which becomes the place; none at the end."""
        while True:
            end = self.at
            while end < len(self.text) and self.text[end] in BLANK + "\ufeff":
                end += 1
            self.skip_to(end)
            if end < len(self.text):
                return self.text[end]
            if self.is_end:
                return ""
            self.read_more()

    def take(self, character):
        found = self.next_character()
        if found != character:
            said = repr(found) if found else "the end of the file"
            raise Refusal(f"{self.path}: line {self.line} is no JSON: {character!r} is wanted in "
                          f"the array, and {said} is there")
        self.at += 1
        self.offset += 1


def may_be_cut(error, text):
    return isinstance(error, json.JSONDecodeError) and (
        error.msg.startswith("Unterminated string") or error.pos >= len(text) - CUT_CHARACTERS)


def text_of(record, key, where, advice=""):
    """A value that has to be a text."""
    text = record[key]
    if not isinstance(text, str):
        raise Refusal(f"{where}: {key!r} is no text{advice}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(f"{where}: {key!r} has half a surrogate pair, which is no text") from None
    return text


class TextRecords:
    """Records of which one value is the text."""
    name = "text"

    def __init__(self, field):
        self.field = field

    def text(self, record, where):
        if not isinstance(record, dict) or self.field not in record:
            has = ", ".join(record) if isinstance(record, dict) else "no object"
            raise Refusal(f"{where} has no {self.field!r} (it has: {has}); name one with --field, "
                          "or say with --format which instruction data it is")
        return text_of(record, self.field, where)
