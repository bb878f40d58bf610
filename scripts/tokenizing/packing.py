"""Records in windows of so many tokens, none of them cut where it fits."""

import array
import base64

from tokenizing.token_file import DOCUMENT_BEGINS, LEARNT

MOST_OPEN = 64
MOST_OPEN_TOKENS = 1 << 22  # of all open windows together


def run_marks(count, is_learnt, is_begin):
    marks = bytearray([LEARNT if is_learnt else 0]) * count
    if is_begin and count:
        marks[0] |= DOCUMENT_BEGINS
    return marks


class Unpacked:
    """Documents follow one another."""
    window_tokens = 0

    def __init__(self, writer):
        self.writer = writer

    def add(self, ids, is_learnt, is_begin):
        self.writer.add(ids, run_marks(len(ids), is_learnt, is_begin))

    def finish(self):
        """Nothing is open."""

    def state(self):
        return None

    def restore(self, state):
        """There is none."""


class Stretch:
    """Tokens with their marks: a record, or a window that has room."""

    def __init__(self, tokens=(), marks=b""):
        self.tokens = array.array("I", tokens)
        self.marks = bytearray(marks)

    def add(self, tokens, marks):
        self.tokens.extend(array.array("I", tokens))
        self.marks += marks

    def cut(self, count):
        """The first ones, no longer in here."""
        first = Stretch(self.tokens[:count], self.marks[:count])
        del self.tokens[:count], self.marks[:count]
        return first

    def state(self):
        return [base64.b64encode(part).decode() for part in (self.tokens.tobytes(), self.marks)]

    @classmethod
    def restored(cls, state):
        tokens, marks = map(base64.b64decode, state)
        stretch = cls(marks=marks)
        stretch.tokens.frombytes(tokens)
        return stretch


class Packer:
    """Best fit: a record goes into the fullest open window that has room for it, or opens one.
    Where too many are open the fullest one is filled and closed, so memory is bounded. A record
    that is longer than a window is cut, and each part is a document."""

    def __init__(self, writer, window_tokens, pad_id):
        self.writer = writer
        self.window_tokens = window_tokens
        self.pad_id = pad_id
        self.most_open = max(1, min(MOST_OPEN, MOST_OPEN_TOKENS // window_tokens))
        self.open = []  # in the order they were opened
        self.record = Stretch()
        self.is_cut = False
        self.records = self.cut_records = self.pad_tokens = 0

    def add(self, ids, is_learnt, is_begin):
        if is_begin:
            self.end_record()
        self.record.add(ids, run_marks(len(ids), is_learnt, is_begin))
        while len(self.record.tokens) > self.window_tokens:
            self.write(self.record.cut(self.window_tokens))
            self.record.marks[0] |= DOCUMENT_BEGINS
            self.is_cut = True

    def end_record(self):
        if not self.record.tokens:
            return
        self.records += 1
        self.cut_records += self.is_cut
        window = self.fitting(len(self.record.tokens))
        window.add(self.record.tokens, self.record.marks)
        self.record, self.is_cut = Stretch(), False
        if len(window.tokens) == self.window_tokens:
            self.close(window)

    def fitting(self, count):
        fits = [window for window in self.open
                if len(window.tokens) + count <= self.window_tokens]
        if fits:
            return max(fits, key=lambda window: len(window.tokens))
        if len(self.open) == self.most_open:
            self.close(max(self.open, key=lambda window: len(window.tokens)))
        self.open.append(Stretch())
        return self.open[-1]

    def close(self, window):
        self.open = [other for other in self.open if other is not window]
        pads = self.window_tokens - len(window.tokens)
        window.add([self.pad_id] * pads, run_marks(pads, is_learnt=False, is_begin=True))
        self.pad_tokens += pads
        self.write(window)

    def write(self, window):
        self.writer.add(window.tokens, window.marks)

    def finish(self):
        self.end_record()
        while self.open:
            self.close(self.open[0])

    def state(self):
        return {"open": [window.state() for window in self.open], "record": self.record.state(),
                "is_cut": self.is_cut,
                "counts": [self.records, self.cut_records, self.pad_tokens]}

    def restore(self, state):
        self.open = [Stretch.restored(window) for window in state["open"]]
        self.record = Stretch.restored(state["record"])
        self.is_cut = state["is_cut"]
        self.records, self.cut_records, self.pad_tokens = state["counts"]
