"""When gradients go to the session: as backward makes them, or in step()."""

import functools
import weakref

import torch

from sluice._arrivals import Arrivals, flat, is_here
from sluice._error import Error
from sluice._gradients import KEEP, Handle, Stored

PLACES = ("offload", "keep")
MISSING = ("refuse", "zeros")


class Stream:
    """The gradients of the step to come."""

    def __init__(self, session, tensors, recording):
        self.session = session
        self.tensors = tensors
        self._recording = recording
        self._numbers = {id(tensor.parameter): number for number, tensor in enumerate(tensors)}
        self._sent = set()  # numbers of tensors that the session has a gradient of
        self._zeros = set()  # those of them that had none
        self._arrivals = Arrivals()
        self.stored = {}  # by number, where a handle stands

    def leave(self, parameter):
        """A gradient is there; one that was added to a handle's has gone already."""
        gradient = parameter.grad
        number = self._numbers.get(id(parameter))
        if gradient is None or isinstance(gradient, Handle) or number is None:
            return
        tensor = self.tensors[number]
        if not tensor.fits(gradient):
            return  # step() says what is wrong with it
        self._recording.gradient_comes(number)
        stored = Stored(self, number, parameter, tensor.name)
        stored.send(gradient)
        self._recording.gradient_gone()
        self.stored[number] = stored
        parameter.grad = Handle(stored, gradient)

    def has_begun(self):
        return bool(self._sent)

    def send_rest(self):
        """What step() finds in memory."""
        for number, tensor in enumerate(self.tensors):
            gradient = tensor.gradient()
            if isinstance(gradient, Handle):
                self._check_own(number, gradient)
                continue
            self.stored.pop(number, None)
            if gradient is None:
                gradient = torch.zeros(tensor.shape.numel(), device="cpu")
                self._zeros.add(number)
            self.send(number, gradient)
        self._arrivals.finish()

    def send(self, number, gradient):
        """In the place of one that was sent before."""
        hand_over = self.session.replace if number in self._sent else self.session.send
        self._sent.add(number)
        if is_here(gradient):
            hand_over(number, flat(gradient))
        else:
            self._arrivals.add(gradient, functools.partial(hand_over, number))

    def read(self, number, values):
        """The gradient that was sent, in fp32."""
        self._arrivals.finish()
        self.session.read(number, values)

    def _check_own(self, number, handle):
        handle.stored.check_unused()
        if handle.stored is not self.stored.get(number):
            raise Error(f"the gradient of {self.tensors[number].name} is that of another "
                        f"parameter, step or optimizer, which has left memory ({KEEP})")

    def factor(self):
        """The one that is noted for every gradient; without one each becomes its values."""
        factors = {stored.factor() for stored in self.stored.values()}
        of_all = len(self.stored) + len(self._zeros) == len(self.tensors)
        if of_all and len(factors) == 1 and None not in factors:
            return float(factors.pop())
        for stored in self.stored.values():
            stored.settle()
        self._arrivals.finish()
        return 1.0

    def taken(self, step):
        for stored in self.stored.values():
            stored.used_by = step
        self.stored = {}
        self._sent = set()
        self._zeros = set()

    def end(self):
        self.session = None


def when_made(optimizer, parameter):
    """Has the parameter's gradients leave as they become final. Neither keeps the other."""
    this = weakref.ref(optimizer)

    def leave(parameter):
        optimizer = this()
        if optimizer is not None and not is_reduced_later():
            optimizer.take_gradient(parameter)
    parameter.register_post_accumulate_grad_hook(leave)


def is_reduced_later():
    """In a process group torch reduces gradients behind the hook that would take them."""
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized()


def takes_zeros(missing_gradients):
    if missing_gradients not in MISSING:
        raise Error(f"missing_gradients={missing_gradients!r}: one of {', '.join(MISSING)}")
    return missing_gradients == "zeros"


def leaves_memory(gradients, settings):
    """Compressed gradients are sent once: what is not sent is not there for another micro-batch."""
    is_compressed = float(settings.get("density", "1")) < 1
    if gradients not in (None, *PLACES):
        raise Error(f"gradients={gradients!r}: one of {', '.join(PLACES)}")
    if gradients == "offload" and is_compressed:
        raise Error(f"gradients='offload', density={settings['density']}: of a compressed gradient "
                    "not all is sent, so it stays until step(); leave gradients= out")
    return gradients != "keep" and not is_compressed
