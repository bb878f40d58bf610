"""Gradients that have left memory: what stands in `parameter.grad` is a handle, a tensor of the
right shape and type without memory, and its values are in the session. Clipping, accumulation,
scaling and zero_grad() are answered from there, so a loop does not change.

A factor (of clipping, of a loss scale) is noted, and multiplies as the update reads. Where torch
rounds in between, which is a gradient of 16 bits or a second factor that is no power of two, step()
has the gradient back, multiplies it as torch does, and sends it once more. What only reads a
gradient reads it back, which is slow. An operation that would change one and is not listed here is
refused by name, also behind a view: it would change a copy, and nobody would notice."""

import math
import weakref

import torch
from torch.utils import _pytree

from sluice._error import Error

aten = torch.ops.aten
KEEP = 'gradients="keep" leaves gradients in memory'


class Stored:
    """The gradient of one tensor: sent to the session, and not used by a step yet. It keeps
    neither parameter nor session: the parameter has its handle, and that has this."""

    def __init__(self, stream, number, parameter, name):
        self._stream = weakref.ref(stream)
        self._number = number
        self._like = parameter.detach().new_empty(0)
        self._shape, self._stride = parameter.shape, parameter.stride()
        self.name = name
        self._norm = None
        self.factors = []  # in the order in which they came
        self.is_zero = False
        self.used_by = None  # a step

    def stream(self):
        stream = self._stream()
        if stream is None or stream.session is None:
            raise Error(f"the gradient of {self.name} is gone with its optimizer")
        return stream

    def send(self, gradient):
        self.stream().send(self._number, gradient)
        self._norm = torch.linalg.vector_norm(gradient.detach())
        self.factors = []
        self.is_zero = False

    def norm(self):
        """As torch has it of the values as they were sent; none where a factor has come since."""
        return self._norm if not self.factors and not self.is_zero else None

    def is_finite(self):
        return self.is_zero or bool(torch.isfinite(self._norm)) or bool(
            torch.isfinite(self.read()).all())

    def read(self):
        """The values, in memory."""
        self.check_unused()
        gradient = self._like.new_empty(0).set_(
            self._like.new_empty(self._shape.numel()).untyped_storage(), 0, self._shape,
            self._stride)
        if self.is_zero:
            return gradient.zero_()
        values = torch.empty(self._shape.numel(), dtype=torch.float32, device="cpu")
        self.stream().read(self._number, values)
        gradient.copy_(values.view(self._shape))
        for factor in self.factors:
            gradient.mul_(factor)
        return gradient

    def add(self, other, alpha):
        self.check_unused()
        is_first = self.is_zero and alpha == 1
        self.send(other if is_first else self.read().add_(other, alpha=alpha))

    def zero(self):
        """Also of one that a step has used: it begins anew."""
        self.used_by = None
        self.is_zero = True
        self.factors = []
        self.stream().stored[self._number] = self

    def settle(self):
        """What is noted becomes what the session has."""
        if self.is_zero or self.factors:
            self.send(self.read())

    def factor(self):
        """The one that comes to the same bits as all of them, in fp32; none: there is none."""
        is_rounded = self._like.dtype != torch.float32 or sum(
            math.frexp(factor)[0] != 0.5 for factor in self.factors) > 1
        if self.is_zero or (self.factors and is_rounded):
            return None
        return math.prod(self.factors)

    def check_unused(self):
        if self.used_by is not None:
            raise Error(f"the gradient of {self.name} was used by step {self.used_by}, and is "
                        f"gone; call zero_grad() between step() and the next backward ({KEEP})")


class Handle(torch.Tensor):
    """What stands in `parameter.grad`. Several may share a `stored`."""

    @staticmethod
    def __new__(cls, stored, like, dtype=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, like.shape, strides=like.stride(), dtype=dtype or like.dtype, device=like.device)

    def __init__(self, stored, like, dtype=None):
        self.stored = stored

    def __repr__(self):
        return f"<the gradient of {self.stored.name}, {list(self.shape)}, which has left memory>"

    def __deepcopy__(self, memo):
        return self.stored.read()

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), keywords=None):
        keywords = keywords or {}
        answer = ANSWERS.get(operation)
        if answer is not None:
            return answer(*arguments, **keywords)
        if operation._schema.is_mutable and changes(Handle, operation, arguments, keywords):
            raise Error(f"{operation}: it would change a gradient that has left memory, and is not "
                        f"known here; {KEEP}")
        return read_back(operation, arguments, keywords)


class Copy(torch.Tensor):
    """A view of a gradient that was read back, such as `parameter.grad[0]`: to be read only, since
    what is written into it would be lost."""

    @staticmethod
    def __new__(cls, values):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device)

    def __init__(self, values):
        self.values = values

    def __repr__(self):
        return repr(self.values)

    @classmethod
    def __torch_dispatch__(cls, operation, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if operation._schema.is_mutable and changes(Copy, operation, arguments, keywords):
            raise Error(f"{operation}: it would change a part of a gradient that has left memory "
                        f"({KEEP})")
        return read_back(operation, arguments, keywords)


def changes(kind, operation, arguments, keywords):
    """Whether one of the arguments that it writes is of the kind, or has one in it."""
    written = [argument.alias_info is not None and argument.alias_info.is_write
               for argument in operation._schema.arguments]
    named = {argument.name: write for argument, write in zip(operation._schema.arguments, written)}
    values = [value for value, write in zip(arguments, written) if write]
    values += [value for key, value in keywords.items() if named.get(key)]
    return any(isinstance(leaf, kind) for leaf in _pytree.tree_leaves(values))


def with_values(operation, arguments, keywords):
    def real(value):
        if isinstance(value, Copy):
            return value.values
        return value.stored.read() if isinstance(value, Handle) else value
    return operation(*_pytree.tree_map(real, arguments), **_pytree.tree_map(real, keywords))


def as_copy(operation, found):
    """What shares memory with an argument may not be written."""
    shares = any(result.alias_info is not None for result in operation._schema.returns)
    if not shares:
        return found
    return _pytree.tree_map(
        lambda value: Copy(value) if isinstance(value, torch.Tensor) else value, found)


def read_back(operation, arguments, keywords):
    return as_copy(operation, with_values(operation, arguments, keywords))


# Operations that handles answer ------------------------------------------------------------------


def detach(handle):
    return Handle(handle.stored, handle)


def to_copy(handle, *, dtype=None, **others):
    """A model that goes elsewhere takes its gradients along; of one that was used nothing is left
    to take."""
    if handle.stored.used_by is None:
        return aten._to_copy.default(handle.stored.read(), dtype=dtype, **others)
    return Handle(handle.stored, handle, dtype)


def vector_norm(handle, ord=2, dim=None, keepdim=False, *, dtype=None):
    known = handle.stored.norm()
    if known is not None and ord == 2 and dim is None and not keepdim and dtype in (None,
                                                                                    handle.dtype):
        return known.clone()
    return torch.linalg.vector_norm(handle.stored.read(), ord, dim, keepdim, dtype=dtype)


def foreach_norm(tensors, ord=2, dtype=None):
    return [torch.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in tensors]


def multiply(handle, other):
    handle.stored.check_unused()
    if isinstance(other, torch.Tensor) and other.numel() != 1:
        handle.stored.send(handle.stored.read().mul_(other))
    elif float(other) != 1:  # that of clipping is 1 where nothing is clipped, and changes no bit
        handle.stored.factors.append(float(other))
    return handle


def foreach_multiply(tensors, others):
    # Looked at once: a factor in an accelerator's memory is waited for.
    each = others if isinstance(others, (list, tuple)) else [float(others)] * len(tensors)
    for tensor, other in zip(tensors, each):
        tensor.mul_(other)


def add(handle, other, *, alpha=1):
    if not isinstance(handle, Handle):  # a gradient in memory takes one that is not
        return handle.add_(other.stored.read(), alpha=alpha)
    handle.stored.add(other.stored.read() if isinstance(other, Handle) else other, alpha)
    return handle


def zero(handle):
    handle.stored.zero()
    return handle


def foreach_zero(tensors):
    for tensor in tensors:
        tensor.zero_()


def unscale(tensors, found_inf, inverse_scale):
    """torch.amp.GradScaler's."""
    for tensor in tensors:
        if not isinstance(tensor, Handle):
            torch._amp_foreach_non_finite_check_and_unscale_([tensor], found_inf, inverse_scale)
            continue
        if not tensor.stored.is_finite():
            found_inf.fill_(1)
        multiply(tensor, inverse_scale)


ANSWERS = {
    aten.detach.default: detach,
    aten.alias.default: detach,
    aten._to_copy.default: to_copy,
    aten.linalg_vector_norm.default: vector_norm,
    aten._foreach_norm.Scalar: foreach_norm,
    aten.mul_.Tensor: multiply,
    aten.mul_.Scalar: multiply,
    aten._foreach_mul_.Tensor: foreach_multiply,
    aten._foreach_mul_.Scalar: foreach_multiply,
    aten._foreach_mul_.ScalarList: foreach_multiply,
    aten.add_.Tensor: add,
    aten.zero_.default: zero,
    aten._foreach_zero_.default: foreach_zero,
    aten._amp_foreach_non_finite_check_and_unscale_.default: unscale,
}
