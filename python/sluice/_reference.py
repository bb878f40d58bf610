"""What a state dict says of a state on drives: which one it is, its step, and which of the steps of
that number."""

import json

import torch

from sluice._error import Error

REFERENCE = "sluice"  # its key, also among the states of parameters
PLACE_BYTES = 4096  # a saved tensor is loaded into one of its size


def as_tensor(reference):
    """For who hands on the states of parameters, and no other key of a state dict
    (torch.distributed.checkpoint)."""
    text = json.dumps(reference).encode()
    size = -(-(len(text) + 1) // PLACE_BYTES) * PLACE_BYTES
    return torch.tensor(list(text.ljust(size, b"\0")), dtype=torch.uint8, device="cpu")


def reference_in(state_dict):
    """None: it is no state dict of ours."""
    if REFERENCE in state_dict:
        return state_dict[REFERENCE]
    for state in state_dict["state"].values():
        if REFERENCE in state:
            return json.loads(bytes(state[REFERENCE].tolist()).rstrip(b"\0"))
    return None


def check_reference(saved, found):
    """`saved`: of the state dict; `found`: of the optimizer, whose `state` is empty before its
    state is opened. True: the step is the one that it is at."""
    if not found["state"]:
        if saved["step"] == 0:
            return True
        raise Error(f"the state dict is of step {saved['step']} of the state in {saved['folder']}, "
                    f"and there is no state in {found['folder']}; open it with "
                    f"state={saved['folder']!r}")
    if saved["state"] not in ("", found["state"]):
        raise Error(f"the state dict is of the state that was in {saved['folder']}, and the one in "
                    f"{found['folder']} is another")
    return saved["step"] == found["step"] and saved["version"] in ("", found["version"])


def kept_id(saved, kept, found):
    """(step, version) of the step that the state dict is of, among those that are kept."""
    wanted = (saved["step"], saved["version"])
    if wanted in [(step, version) for step, version, _ in kept]:
        return wanted
    raise Error(f"the state dict is of step {listed([wanted])}, which the state in "
                f"{found['folder']} does not keep: it keeps "
                f"{listed(kept) if kept else 'none'}, and its last one is "
                f"step {listed([(found['step'], found['version'])])}; keep_checkpoints= keeps more")


def listed(steps):
    return ", ".join(f"{step} ({version[:8] or 'of no version'})" for step, version, *_ in steps)


def check_groups(saved, found):
    sizes = [[len(group["params"]) for group in groups] for groups in (saved, found)]
    if sizes[0] != sizes[1]:
        raise Error(f"the state dict has groups of {sizes[0]} parameters, and the optimizer of "
                    f"{sizes[1]}")
