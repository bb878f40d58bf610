"""Gradients in an accelerator's memory on their way to the session: each is copied to host memory
behind the work that makes it, while backward goes on, and handed over once it is there."""

import collections

import torch

# What is on its way at once, beside the one that comes last.
IN_FLIGHT_BYTES = 64 << 20


def is_here(tensor):
    """Whether its values are in host memory."""
    return tensor.device.type == "cpu"


def flat(gradient):
    return gradient.detach().to(torch.float32).contiguous().view(-1)


class Arrivals:
    """In the order in which they were made. Thread contract: one thread at a time."""

    def __init__(self):
        self._coming = collections.deque()
        self._bytes = 0

    def add(self, gradient, hand_over):
        """`hand_over(values)`: in fp32, flat."""
        self._coming.append((OnItsWay(gradient), hand_over))
        self._bytes += gradient.nbytes
        while self._bytes > IN_FLIGHT_BYTES and len(self._coming) > 1:
            self._hand_over_first()

    def finish(self):
        while self._coming:
            self._hand_over_first()

    def _hand_over_first(self):
        first, hand_over = self._coming[0]
        hand_over(first.values())  # who is interrupted while it waits finds it here again
        self._coming.popleft()
        self._bytes -= first.nbytes


class OnItsWay:
    """One gradient. It keeps the source, whose memory is read until the copy is there."""

    def __init__(self, gradient):
        self._gradient = gradient.detach()
        self.nbytes = gradient.nbytes
        is_cuda = gradient.device.type == "cuda"
        self._host = torch.empty(gradient.shape, dtype=gradient.dtype, device="cpu",
                                 pin_memory=is_cuda)
        self._host.copy_(self._gradient, non_blocking=is_cuda)
        self._is_there = None
        if is_cuda:  # the stream that computes now, which autograd has chosen
            self._is_there = torch.cuda.current_stream(gradient.device).record_event()

    def values(self):
        if self._is_there is not None:
            self._is_there.synchronize()
        self._gradient = None
        return flat(self._host)
