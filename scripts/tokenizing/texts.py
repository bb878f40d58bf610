"""Texts in pieces of bounded size."""

import codecs

from tokenizing.refusal import Refusal

PIECE_CHARACTERS = 1 << 14
LONGEST_PIECE_CHARACTERS = 1 << 20  # without an end of a line
READ_BYTES = 1 << 18


def cut_of(text):
    """Behind the last single end of a line; there tokens end, whichever way the tokenizer cuts."""
    at = len(text) - 1
    while (at := text.rfind("\n", 1, at)) > 0:
        if not text[at - 1].isspace() and not text[at + 1].isspace():
            return at + 1
    return 0


def pieces_of(blocks):
    """A text, block by block, in pieces."""
    rest = ""
    for block in blocks:
        rest += block
        while len(rest) >= PIECE_CHARACTERS:
            at = cut_of(rest)
            if at == 0 and len(rest) < LONGEST_PIECE_CHARACTERS:
                break
            at = at or max(0, rest.rfind(" ")) or len(rest)
            yield rest[:at]
            rest = rest[at:]
    if rest:
        yield rest


def decoded_blocks(path, file, progress, offset=0):
    """From an offset on, with the same ends of blocks as from the begin on."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    if offset:
        file.seek(offset)
    while True:
        data = file.read(READ_BYTES - offset % READ_BYTES)
        held = len(decoder.getstate()[0])
        try:
            yield decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise Refusal(f"{path}: is no UTF-8 at offset {offset - held + error.start}: "
                          f"{error.reason}") from None
        if not data:
            return
        offset += len(data)
        progress.done_bytes += len(data)


def text_document(path, progress, offset=0):
    """Its pieces; from the end of one on, the same ones that follow it."""
    with open(path, "rb") as file:
        yield from pieces_of(decoded_blocks(path, file, progress, offset))
