"""Parameters that torch's fully_shard (FSDP2) has cut: each rank trains its own part, which is a
plain tensor behind a DTensor, and nothing goes to other ranks after a step."""

import torch

from sluice._error import Error


def is_shard(tensor):
    """Without an import of torch.distributed.tensor, which takes a second."""
    return hasattr(tensor, "to_local")


def local_of(tensor):
    """The rank's own part: its memory, and not a copy."""
    if not is_shard(tensor):
        return tensor
    with torch.no_grad():
        return tensor.to_local()


def check_shard(name, parameter):
    """Parts that are none of another rank's, and the same ones at the next start."""
    mesh, placements = parameter.device_mesh, parameter.placements
    # A strided one is of two cuts (with tensor parallelism).
    kinds = [f"{type(placement).__name__}({placement.dim})" if placement.is_shard()
             else type(placement).__name__ for placement in placements]
    if kinds != ["Shard(0)"]:
        raise Error(f"{name} is a DTensor placed {', '.join(kinds)} on a mesh of shape "
                    f"{list(mesh.shape)}; this version takes fully_shard on a mesh of one "
                    "dimension (Shard(0)), without replicas or tensor parallelism")
    distributed = torch.distributed
    if mesh.size() != distributed.get_world_size() or (
            mesh.get_local_rank() != distributed.get_rank()):
        raise Error(f"{name} is cut over {mesh.size()} ranks, of which this is "
                    f"{mesh.get_local_rank()}, and the process group has "
                    f"{distributed.get_world_size()}, of which this is {distributed.get_rank()}; "
                    "this version takes a mesh of all ranks in their order")


def check_shard_gradient(name, parameter):
    if is_shard(parameter) and getattr(parameter.grad, "placements", ()) != parameter.placements:
        raise Error(f"the gradient of {name} is not cut as the parameter is; fully_shard reduces "
                    "it that way")
