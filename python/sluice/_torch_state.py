"""The state of torch's own optimizer of the name: ours as its state dict, and its as ours."""

import array
import math
import struct

import torch

from sluice._error import Error
from sluice._torch_file import Later

PIECE_ELEMENTS = 1 << 20
MASTER = "master_weight"  # beside torch's own keys, of parameters of 16 bits
STEP = "step"
# Arrays of the state whose name is another one here.
TORCH_NAMES = {"master_weights": MASTER, "sum_sq": "sum"}
# The groups' keys that torch's have and ours have not: the values that they may have.
OURS_ONLY = {"amsgrad": (False,), "maximize": (False,), "nesterov": (False,), "dampening": (0,),
             "lr_decay": (0,), "decoupled_weight_decay": (True,)}
# How torch computes, or where it begins; no number of a state that has begun follows from them.
NOT_OURS = ("foreach", "capturable", "differentiable", "fused", "initial_accumulator_value")


def torch_name(name):
    return TORCH_NAMES.get(name, name)


# Out ---------------------------------------------------------------------------------------------


class Source:
    """The state of an optimizer between two steps."""

    def __init__(self, session, tensors, groups):
        self.session = session
        self.tensors = {id(tensor.parameter): (number, tensor)
                        for number, tensor in enumerate(tensors)}
        self.groups = groups

    def arrays_of(self, tensor):
        """(number, torch's name); the master weights only where the parameter is not they."""
        return [(number, torch_name(name)) for number, name in enumerate(self.session.state_arrays)
                if number > 0 or tensor.dtype != torch.float32]

    def entries(self):
        """(tensor's number, tensor) by the number that torch counts."""
        parameters = [p for group in self.groups for p in group["params"]]
        return {place: self.tensors[id(parameter)] for place, parameter in enumerate(parameters)
                if id(parameter) in self.tensors}

    def chunks(self, number, tensor, which):
        room = array.array("f", bytes(4 * PIECE_ELEMENTS))
        count = tensor.shape.numel()
        for first in range(0, count, PIECE_ELEMENTS):
            piece = memoryview(room)[:min(PIECE_ELEMENTS, count - first)]
            self.session.read_state(number, which, first, piece)
            yield piece.cast("B")


def state_dict_of(source, torchs):
    """As torch_file.save() takes it. `torchs`: torch's class of the name."""
    updates = struct.pack("<f", source.session.updates_done())
    state = {}
    for place, (number, tensor) in source.entries().items():
        state[place] = {STEP: Later((), lambda: [updates])}
        for which, name in source.arrays_of(tensor):
            state[place][name] = Later(
                tensor.shape,
                lambda number=number, tensor=tensor, which=which: source.chunks(number, tensor,
                                                                                which))
    return {"state": state, "param_groups": torch_groups(source.groups, torchs)}


def torch_groups(groups, torchs):
    """Those of an optimizer of torch's that was made with the same ones."""
    alike = []
    for group in groups:
        parameters = [torch.nn.Parameter(torch.empty(0)) for _ in group["params"]]
        names = group.get("param_names")
        alike.append({key: value for key, value in group.items() if key != "param_names"}
                     | {"params": list(zip(names, parameters)) if names else parameters})
    return torchs(alike).state_dict()["param_groups"]


def file_entries(source):
    """Of a safetensors file: name, shape, tensor, array; array by array."""
    named = [(number, tensor, which, name) for number, tensor in source.entries().values()
             for which, name in source.arrays_of(tensor)]
    return [(f"{name}.{tensor.name}", list(tensor.shape), number, which)
            for number, tensor, which, name in sorted(named, key=lambda entry: entry[2])]


# In ----------------------------------------------------------------------------------------------


class Begun:
    """What a new state begins with: its arrays behind the master weights, each with a value of
    every tensor, the master weights, the updates that they have seen, and the steps of another
    state that were those."""

    def __init__(self, arrays, masters, updates, steps=0):
        self.arrays = arrays
        self.masters = masters  # by the tensor's number; else the parameter
        self.updates = updates
        self.steps = steps


def begun_by(saved, tensors, groups, names, rule):
    """Of a state dict of torch's; None where it has no state yet. `names`: torch's, of the arrays
    behind the master weights; `rule`: the optimizer's name, for errors."""
    found = entries_by_parameter(saved, groups)
    if not found:
        return None
    trained = {id(tensor.parameter) for tensor in tensors}
    check_all_are_trained(found, trained, groups)
    entries = []
    for tensor in tensors:
        entry = found.get(id(tensor.parameter))
        check_entry(tensor, entry, names, rule)
        entries.append(entry)
    updates = common_step(tensors, entries)
    arrays = [[checked_values(tensor, name, entry[name]) for tensor, entry in zip(tensors, entries)]
              for name in names]
    masters = {number: checked_master(tensor, entry[MASTER])
               for number, (tensor, entry) in enumerate(zip(tensors, entries)) if MASTER in entry}
    return Begun(arrays, masters, updates)


def entries_by_parameter(saved, groups):
    found = {}
    for group, other in zip(groups, saved["param_groups"]):
        for parameter, place in zip(group["params"], other["params"]):
            entry = saved["state"].get(place)
            # torch's SGD has a buffer of None where there is no momentum.
            entry = {key: value for key, value in (entry or {}).items() if value is not None}
            if entry:
                found[id(parameter)] = entry
    return found


def check_all_are_trained(found, trained, groups):
    number = 0
    for group in groups:
        for place, parameter in enumerate(group["params"]):
            entry = found.get(id(parameter))
            # torch's Adagrad makes one of each parameter before any update.
            is_begun = entry is not None and float(entry.get(STEP, 1)) > 0
            if is_begun and id(parameter) not in trained:
                names = group.get("param_names")
                name = names[place] if names else f"param.{number}"
                raise Error(f"{name} is frozen here, and the state dict has a state of it; call "
                            "requires_grad_() on what it trained, then load it")
            number += 1


def check_entry(tensor, entry, names, rule):
    if entry is None:
        raise Error(f"the state dict has no state of {tensor.name}, and of others: torch had no "
                    "gradient of it; freeze it, or begin a state without")
    wanted = {*names}
    has = {key for key in entry if key not in (STEP, MASTER)}
    if has != wanted:
        raise Error(f"the state dict has {', '.join(sorted(has)) or 'nothing'} of {tensor.name}, "
                    f"and a state of {rule} is {', '.join(sorted(wanted))}; load it into the "
                    "optimizer that it is of, without variants such as amsgrad")


def common_step(tensors, entries):
    """torch's SGD counts none."""
    steps = [float(entry.get(STEP, 0)) for entry in entries]
    for tensor, step in zip(tensors, steps):
        if step != steps[0]:
            raise Error(f"the state dict has {steps[0]:g} updates of {tensors[0].name} and "
                        f"{step:g} of {tensor.name}; one state has one number of updates")
    if steps[0] < 0 or steps[0] != int(steps[0]):
        raise Error(f"the state dict has {steps[0]:g} updates of {tensors[0].name}, which is no "
                    "number of updates")
    return int(steps[0])


def checked_values(tensor, name, values):
    if not isinstance(values, torch.Tensor) or values.shape != tensor.shape:
        raise Error(f"{name} of {tensor.name} in the state dict is {text_of(values)}, and the "
                    f"parameter has the shape {list(tensor.shape)}")
    values = values.detach().to("cpu").contiguous()
    if values.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise Error(f"{name} of {tensor.name} in the state dict is {values.dtype}; it is float32, "
                    "bfloat16 or float16")
    is_squares = name in ("exp_avg_sq", "sum")
    for piece in values.view(-1).split(PIECE_ELEMENTS):
        lowest = piece.min().item()
        if math.isnan(lowest) or (is_squares and lowest < 0):
            raise Error(f"{name} of {tensor.name} in the state dict has {lowest:g}, and takes "
                        + ("numbers from 0 on: it is a sum of squares" if is_squares
                           else "numbers alone"))
    return values


def checked_master(tensor, values):
    """The parameter has to be their rounding already."""
    values = checked_values(tensor, MASTER, values)
    parameter = tensor.first_values().view(-1)
    for piece, rounded in zip(values.view(-1).split(PIECE_ELEMENTS),
                              parameter.split(PIECE_ELEMENTS)):
        if not torch.equal(piece.to(tensor.dtype), rounded):
            raise Error(f"{tensor.name} is not the rounding of its {MASTER} in the state dict; "
                        "load the model's weights of the same step first")
    return values


def text_of(values):
    return f"of shape {list(values.shape)}" if isinstance(values, torch.Tensor) else repr(values)


def group_values(saved):
    """The values that our group takes of one of torch's."""
    taken = {}
    for key, value in saved.items():
        if key in OURS_ONLY and value not in OURS_ONLY[key]:
            # Without a decay there is nothing to decouple.
            if key == "decoupled_weight_decay" and not saved.get("weight_decay"):
                continue
            raise Error(f"the state dict has {key}={value}, and the optimizers here have "
                        f"{key}={OURS_ONLY[key][0]}")
        if key not in OURS_ONLY and key not in NOT_OURS:
            taken[key] = value.item() if isinstance(value, torch.Tensor) else value
    return taken
