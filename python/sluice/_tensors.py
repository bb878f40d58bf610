"""The parameters of an optimizer as tensors of a session."""

import torch

from sluice._arrivals import is_here
from sluice._error import Error
from sluice._shards import check_shard, check_shard_gradient, is_shard, local_of

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
DEVICES = ("cpu", "cuda")


class Trained:
    """A parameter with a state on the drives, and what it was like when its values last were those
    of the state."""

    def __init__(self, name, group, parameter):
        self.name = name
        self.group = group
        self.parameter = parameter
        self.is_shard = is_shard(parameter)
        self.shape = self.local().shape
        self.dtype = parameter.dtype
        self._seen = None
        self._differs_at = None

    def local(self):
        """The parameter, or the part of it that is this rank's."""
        return local_of(self.parameter)

    def is_empty_shard(self):
        return self.is_shard and self.shape.numel() == 0

    def gradient(self):
        """Of local()."""
        return local_of(self.parameter.grad)

    def take(self, values):
        """Makes these, the state's, its values."""
        self.local().copy_(values.view(self.shape))
        self.note_values()

    def first_values(self):
        """Of a new state, in host memory."""
        return self.local().detach().to("cpu").contiguous()

    def own_memory(self, dtype):
        """The parameter's, flat, where values of the dtype lie in it as the state has them."""
        memory = self.local().detach()
        fits = is_here(memory) and memory.dtype == dtype and memory.is_contiguous()
        return memory.view(-1) if fits else None

    def note_written(self):
        """Into own_memory(), past autograd."""
        torch.autograd.graph.increment_version(self.local())
        self.note_values()

    def note_values(self):
        self._seen = self._now()
        self._differs_at = None

    def check_values(self, values):
        """`values()`: those of the state. They are looked at where somebody may have changed the
        parameter."""
        parameter = self.local()
        if parameter.shape != self.shape or parameter.dtype != self.dtype:
            raise Error(f"{self.name} was {self.dtype} of shape {list(self.shape)} when the state "
                        f"was opened, and is {parameter.dtype} of shape {list(parameter.shape)}; "
                        "make the model first, then the optimizer")
        check_place(self.name, self.parameter)
        if not self.compare(values):
            raise Error(f"{self.name} has been changed by other means than step(), and its state "
                        "on the drives has not; load or change weights before the first step of a "
                        "new state")

    def compare(self, values):
        """Whether it has the values of the state. Before the first gradient of a step, while those
        may still be read: step() is told what was found then."""
        now = self._now()
        if now == self._seen:
            return True
        parameter = self.local()
        is_like = parameter.device.type in DEVICES and (
            (parameter.shape, parameter.dtype) == (self.shape, self.dtype))
        if now == self._differs_at or not is_like or not torch.equal(
                parameter, values().view(self.shape).to(self.dtype).to(parameter.device)):
            self._differs_at = now
            return False
        self._seen = now
        return True

    def check_gradient(self):
        if self.parameter.grad.layout is not torch.strided:
            raise Error(f"the gradient of {self.name} is sparse; make its layer with sparse=False")
        check_shard_gradient(self.name, self.parameter)

    def fits(self, gradient):
        return gradient.layout is torch.strided and gradient.shape == self.shape

    def _now(self):
        parameter = self.local()
        return parameter._version, parameter.data_ptr()


def check_place(name, parameter):
    if is_shard(parameter):
        check_shard(name, parameter)
        parameter = local_of(parameter)
    if parameter.device.type not in DEVICES:
        raise Error(f"{name} is on {parameter.device}; parameters are in host memory (cpu) or in "
                    "that of a GPU of NVIDIA's (cuda)")
    if parameter.dtype not in DTYPES:
        raise Error(f"{name} is {parameter.dtype}; parameters are float32, bfloat16 or float16")


def trained_tensors(groups):
    """Those of all groups that are trained, in their order; one that is frozen has no state."""
    found = []
    number = 0
    for group_number, group in enumerate(groups):
        names = group.get("param_names")
        for place, parameter in enumerate(group["params"]):
            name = names[place] if names else f"param.{number}"
            number += 1
            if parameter.requires_grad:
                check_place(name, parameter)
                found.append(Trained(name, group_number, parameter))
    check_memory_is_their_own(found)
    return found


def check_memory_is_their_own(tensors):
    """Two parameters in one memory would have two states, and each would undo the other's step."""
    owners = {}
    for tensor in tensors:
        owner = owners.setdefault(tensor.local().data_ptr(), tensor)
        if owner is not tensor and tensor.shape.numel() > 0:
            raise Error(f"{owner.name} and {tensor.name} are two parameters in one memory; tie "
                        "them as one: module.weight = other.weight")


def precision_of(tensors):
    """The session's: its parameters are the narrowest that hold all of the program's."""
    is_bf16 = all(tensor.dtype == torch.bfloat16 for tensor in tensors)
    return "bf16" if is_bf16 else "fp32"


def dtype_of(precision):
    return torch.bfloat16 if precision == "bf16" else torch.float32


def without_repeats(parameters):
    """A tensor that comes twice is one."""
    seen = set()
    found = []
    for entry in parameters:
        tensor = entry[1] if isinstance(entry, tuple) else entry
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found.append(entry)
    return found
