"""Documents into tokens."""

import dataclasses
from collections.abc import Iterable

BATCH_CHARACTERS = 1 << 18


@dataclasses.dataclass
class Document:
    parts: Iterable  # of (text, whether it is learnt)
    wants_end: bool  # the token behind each document, where one was named


@dataclasses.dataclass
class Piece:
    text: str
    is_learnt: bool
    is_begin: bool
    is_end: bool = False


def pieces_of_documents(documents):
    """One without text is no document."""
    for document in documents:
        before = None
        for text, is_learnt in document.parts:
            if text:
                if before is not None:
                    yield before
                before = Piece(text, is_learnt, is_begin=before is None)
        if before is not None:
            before.is_end = document.wants_end
            yield before


def batches_of(pieces):
    batch, size = [], 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece.text) + 64  # short ones count, too
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    yield batch


def encoded(tokenizer, batch):
    """The ids alone: what else the tokenizer says of each token takes far more memory."""
    encodings = tokenizer.encode_batch_fast([piece.text for piece in batch],
                                            add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def token_runs(tokenizer, documents, end_id):
    """(ids, whether they are learnt, whether a document begins with them). A batch is encoded at
    once, by all threads of the tokenizer."""
    is_begin = False
    for batch in batches_of(pieces_of_documents(documents)):
        for piece, ids in zip(batch, encoded(tokenizer, batch)):
            # A text may have no tokens; then the next one has the first.
            is_begin = is_begin or piece.is_begin
            if ids:
                yield ids, piece.is_learnt, is_begin
                is_begin = False
            if piece.is_end and end_id is not None:
                yield [end_id], True, is_begin
                is_begin = False
