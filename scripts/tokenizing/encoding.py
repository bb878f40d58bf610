"""Documents into tokens."""

import array
import collections
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import multiprocessing
import signal
from collections.abc import Iterable

from tokenizing.refusal import Refusal

BATCH_CHARACTERS = 1 << 18
BATCHES_A_PROCESS = 2  # on their way at once, so that memory is bounded
PR_SET_PDEATHSIG = 1


@dataclasses.dataclass(frozen=True)
class Place:
    """Where reading goes on: in source number `source`, at `offset` of its bytes, of which `line`
    is the line. `parts` of the document that is next have been read; 0: it begins there."""
    source: int = 0
    offset: int = 0
    line: int = 0
    parts: int = 0


@dataclasses.dataclass
class Document:
    parts: Iterable  # of (text, whether it is learnt)
    wants_end: bool  # the token behind each document, where one was named
    begin: Place
    end: Place
    # Whether the place is behind each part, as in a text; of a record it is the begin with a count.
    is_text: bool = False

    def parts_from_begin(self):
        """(text, whether it is learnt, the place behind it) of those with text."""
        place = self.begin
        for number, (text, is_learnt) in enumerate(filter(lambda part: part[0], self.parts), 1):
            if self.is_text:
                place = dataclasses.replace(place, offset=place.offset + len(text.encode()),
                                            parts=place.parts + 1)
            else:
                place = dataclasses.replace(place, parts=number)
            if self.is_text or number > self.begin.parts:
                yield text, is_learnt, place


@dataclasses.dataclass
class Piece:
    text: str
    is_learnt: bool
    is_begin: bool
    after: Place
    is_end: bool = False


def pieces_of_documents(documents):
    """One without text is no document."""
    for document in documents:
        before = None
        for text, is_learnt, after in document.parts_from_begin():
            if before is not None:
                yield before
            before = Piece(text, is_learnt, before is None and document.begin.parts == 0, after)
        if before is not None:
            before.is_end = document.wants_end
            before.after = document.end
            yield before


def batches_of(pieces):
    batch, size = [], 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece.text) + 64  # short ones count, too
        if size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def encoded(tokenizer, texts):
    """The ids alone: what else the tokenizer says of each token takes far more memory."""
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [array.array("I", encoding.ids) for encoding in encodings]


def texts_of(batch):
    return [piece.text for piece in batch]


# The tokenizer of a process that encodes; it has it from the one that began it.
_tokenizer = None


def begin_process():
    """Ctrl-C is the parent's affair, and nobody encodes for one that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def encoded_here(texts):
    return encoded(_tokenizer, texts)


def encoded_batches(tokenizer, batches, jobs):
    """(batch, the ids of each piece), in order."""
    if jobs == 1:
        for batch in batches:
            yield batch, encoded(tokenizer, texts_of(batch))
        return
    global _tokenizer
    _tokenizer = tokenizer
    pool = concurrent.futures.ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("fork"), initializer=begin_process)
    waiting = collections.deque()
    try:
        for batch in batches:
            waiting.append((batch, pool.submit(encoded_here, texts_of(batch))))
            if len(waiting) >= BATCHES_A_PROCESS * jobs:
                first, ids = waiting.popleft()
                yield first, ids.result()
        while waiting:
            first, ids = waiting.popleft()
            yield first, ids.result()
    except concurrent.futures.process.BrokenProcessPool:
        raise Refusal("a process that encodes was ended by somebody else, or by the system for "
                      "want of memory; --jobs takes fewer of them") from None
    finally:
        pool.shutdown(cancel_futures=True)


def write_runs(batches, end_id, sink, is_begin, after_batch):
    """`after_batch(place, is_begin)` once all of a batch is in `sink`: what follows begins there.
    `is_begin`: a document has begun, and had no token yet."""
    for batch, ids_of_pieces in batches:
        for piece, ids in zip(batch, ids_of_pieces):
            # A text may have no tokens; then the next one has the first.
            is_begin = is_begin or piece.is_begin
            if ids:
                sink.add(ids, piece.is_learnt, is_begin)
                is_begin = False
            if piece.is_end and end_id is not None:
                sink.add([end_id], True, is_begin)
                is_begin = False
        after_batch(batch[-1].after, is_begin)
