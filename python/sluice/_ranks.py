"""Several ranks, each with a share of the state. torch reduces the gradients. Whole tensors
(DistributedDataParallel) have an owner each, from which the others have them after a step (ZeRO's
first stage); of those that torch has cut (fully_shard) each rank has its own part."""

import pathlib
import zlib

import torch

from sluice._error import Error

# Gradients of as many elements, the smallest ones, are compared to see whether they were reduced.
COMPARED_ELEMENTS = 1 << 16
EACH = -1  # the owner of a tensor that each rank has a part of


class Alone:
    """One process. What it is asked is what Ranks is asked."""

    rank = 0
    count = 1

    def place(self, folder):
        return pathlib.Path(folder)

    def owners(self, tensors):
        return [0] * len(tensors)

    def is_own(self, owner):
        return True

    def check_alone(self, what):
        pass

    def own_reference(self, saved):
        return saved

    def agreed(self, action):
        return [action()]

    def agreed_here(self, action):
        return action()

    def share(self, tensors, owners):
        pass

    def mark_of(self, tensors):
        return None


class Ranks:
    """Of torch's process group, as it is when the optimizer is made.

    Thread contract: all ranks make the same calls, in the same order."""

    def __init__(self, rank, count):
        self.rank = rank
        self.count = count

    def place(self, folder):
        """Of this rank's share, in a folder that all may name."""
        return pathlib.Path(folder) / f"rank-{self.rank}-of-{self.count}"

    def owners(self, tensors):
        """Of each tensor its rank: the largest first, each to the one that has least. The same on
        all ranks."""
        owners = [EACH] * len(tensors)
        loads = [0] * self.count
        sizes = [tensor.shape.numel() for tensor in tensors]
        whole = [number for number, tensor in enumerate(tensors) if not tensor.is_shard]
        for number in sorted(whole, key=lambda number: -sizes[number]):
            owner = loads.index(min(loads))
            owners[number] = owner
            loads[owner] += max(1, sizes[number])
        return owners

    def is_own(self, owner):
        return owner in (self.rank, EACH)

    def check_alone(self, what):
        raise Error(f"{what}: each of {self.count} ranks has a share of the state, and this is of "
                    "a whole one")

    def own_reference(self, saved):
        """A state dict may be that of another rank: Trainer saves the first one's."""
        if saved["step"] == 0:
            return saved
        return saved | saved["ranks"][self.rank]

    def agreed_here(self, action):
        """As agreed(), of what is this rank's alone."""
        found = []
        self.agreed(lambda: found.append(action()))
        return found[0]

    def agreed(self, action):
        """What `action` gives on every rank, in their order. A rank that fails ends the call of
        all: none waits for one that has stopped."""
        mine, failed = None, None
        try:
            mine = action()
        except Error as error:
            failed = error
        found = [None] * self.count
        torch.distributed.all_gather_object(found, (mine, None if failed is None else str(failed)))
        if failed is not None:
            raise failed
        for rank, (_, problem) in enumerate(found):
            if problem is not None:
                raise Error(f"rank {rank}: {problem}")
        return [value for value, _ in found]

    def share(self, tensors, owners):
        """Each tensor's values become those that its owner has."""
        for tensor, owner in zip(tensors, owners):
            if owner == EACH:
                continue
            torch.distributed.broadcast(tensor.parameter.data, src=owner)
            tensor.note_values()

    def mark_of(self, tensors):
        """Of the gradients of whole tensors: the same on all ranks where they were reduced."""
        mark, elements = 0, 0
        whole = [tensor for tensor in tensors if not tensor.is_shard]
        for tensor in sorted(whole, key=lambda tensor: tensor.parameter.numel()):
            gradient = tensor.parameter.grad
            elements += tensor.parameter.numel()
            if elements > COMPARED_ELEMENTS and mark != 0:
                break
            if gradient is not None:
                values = gradient.detach().contiguous().view(-1)[:COMPARED_ELEMENTS]
                mark = zlib.crc32(values.view(torch.uint8).cpu().numpy().tobytes(), mark)
        return mark


def ranks_now():
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return Alone()
    count = distributed.get_world_size()
    return Ranks(distributed.get_rank(), count) if count > 1 else Alone()


def own_tensors(ranks, tensors):
    """Those that the rank's session has. A part may be empty, where a tensor has fewer rows than
    there are ranks."""
    found = [tensor for tensor, owner in zip(tensors, ranks.owners(tensors))
             if ranks.is_own(owner) and not tensor.is_empty_shard()]
    if tensors and not found:
        raise Error("no part of what is trained is this rank's; start fewer ranks")
    return found


def check_reduced(marks):
    if len(set(marks)) > 1:
        raise Error("the gradients differ between ranks: wrap the model in "
                    "torch.nn.parallel.DistributedDataParallel, which reduces them, and leave "
                    "no_sync() before the last micro-batch")
