"""What offload_activations did, and what it cost, counted and as text."""

import collections
import contextlib
import time

from sluice import _core


class Tally:
    """What the hooks note."""

    def __init__(self):
        self.step_count = 0  # that had a backward
        self.moved = [0, 0]  # tensors and bytes
        self.repeated = [0, 0]  # that were there already
        self.left = collections.defaultdict(lambda: [0, 0])  # by reason
        self.kept_peak_bytes = 0
        self.pack_s = 0.0
        self.unpack_s = 0.0
        self.forward_s = 0.0  # of those steps, from their first saved tensor, without our own time
        self._began = None

    def begin_step(self):
        self._began = time.perf_counter() - self.own_s

    def begin_backward(self):
        if self._began is None:
            return
        self.forward_s += time.perf_counter() - self.own_s - self._began
        self.step_count += 1
        self._began = None

    @property
    def own_s(self):
        return self.pack_s + self.unpack_s

    @contextlib.contextmanager
    def timed(self, name):
        began = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - began)

    def move(self, extent):
        add(self.moved, extent.size)

    def repeat(self, entry):
        add(self.repeated, entry.size)

    def leave(self, reason, tensor):
        add(self.left[reason], tensor.numel() * tensor.element_size())

    def note_kept(self, kept_bytes):
        self.kept_peak_bytes = max(self.kept_peak_bytes, kept_bytes)


def add(count, size):
    count[0] += 1
    count[1] += size


class Report:
    """Figures since the context was made; sizes in bytes, times in seconds."""

    def __init__(self, folder, is_direct, in_flight_bytes, tally, counts):
        self.folder = folder
        self.is_direct = is_direct  # past the page cache
        self.in_flight_bytes = in_flight_bytes  # as was asked
        self.peak_in_flight_bytes = counts.get("peak_in_flight_bytes", 0)
        self.step_count = tally.step_count
        self.moved_count, self.moved_bytes = tally.moved
        self.repeated_count, self.repeated_bytes = tally.repeated
        self.left = {reason: tuple(count) for reason, count in tally.left.items()}
        self.kept_peak_bytes = tally.kept_peak_bytes
        self.written_bytes = counts.get("written_bytes", 0)
        self.read_bytes = counts.get("read_bytes", 0)
        self.at_hand_bytes = counts.get("at_hand_bytes", 0)  # loaded before they had left memory
        self.unwritten_bytes = counts.get("unwritten_bytes", 0)
        self.save_wait_s = counts.get("save_wait_ns", 0) / 1e9
        self.load_wait_s = counts.get("load_wait_ns", 0) / 1e9
        self.write_busy_s = counts.get("write_busy_ns", 0) / 1e9
        self.read_busy_s = counts.get("read_busy_ns", 0) / 1e9
        self.own_s = tally.own_s  # in the hooks: copies, checksums and what was waited for
        self.forward_s = tally.forward_s

    @property
    def is_cheaper_than_recomputing(self):
        """Than checkpointing all of forward would have been; none: nothing was measured."""
        if self.moved_count == 0 or self.step_count == 0:
            return None
        return self.own_s < self.forward_s

    def __str__(self):
        head = f"activations: {self.step_count} steps with a backward"
        return "\n    ".join([head, *self._moved(), *self._stayed(), *self._cost()])

    def _moved(self):
        if self.moved_count == 0:
            return ["nothing moved: " + ("it fits into keep=" if self.kept_peak_bytes else
                                         "nothing that was saved is to leave memory")]
        how = "O_DIRECT" if self.is_direct else "through the page cache: no O_DIRECT there"
        return [
            f"moved to {self.folder} ({how}): {self.moved_count} tensors, "
            f"{text(self.moved_bytes)}; {text(self.repeated_bytes)} more were there already",
            f"written {text(self.written_bytes)} ({rate(self.written_bytes, self.write_busy_s)}), "
            f"read {text(self.read_bytes)} ({rate(self.read_bytes, self.read_busy_s)}), still in "
            f"memory when needed {text(self.at_hand_bytes)}, dropped before their write "
            f"{text(self.unwritten_bytes)}",
            f"in flight at most {text(self.peak_in_flight_bytes)} of "
            f"{text(self.in_flight_bytes)}; waited {self.save_wait_s:.3f} s for writes and "
            f"{self.load_wait_s:.3f} s for reads",
        ]

    def _stayed(self):
        kept = [f"kept in memory (keep=): at most {text(self.kept_peak_bytes)}"]
        return (kept if self.kept_peak_bytes else []) + [
            f"left alone, {reason}: {count} tensors, {text(size)}"
            for reason, (count, size) in sorted(self.left.items())]

    def _cost(self):
        cheaper = self.is_cheaper_than_recomputing
        if cheaper is None:
            return []
        answer = "cheaper" if cheaper else "dearer"
        return [
            f"cost {self.own_s:.3f} s in forward and backward; computing all of forward again "
            f"takes about {self.forward_s:.3f} s, so moving was {answer} than checkpointing all "
            "of it. Not known: what checkpoints would keep in memory, what the transfers slowed "
            "down elsewhere, and what checkpointing some layers costs"]


def text(size):
    return _core.bytes_text(size)


def rate(size, seconds):
    return f"{text(int(size / seconds))}/s" if seconds > 0 else "no rate"
