"""What a state dict says of a state on drives: which one it is, and its step."""

from sluice._error import Error

REFERENCE = "sluice"  # its key


def check_reference(saved, found):
    """`saved`: of the state dict; `found`: of the optimizer, whose `state` is empty before its
    state is opened."""
    if not found["state"]:
        if saved["step"] == 0:
            return
        raise Error(f"the state dict is of step {saved['step']} of the state in {saved['folder']}, "
                    f"and there is no state in {found['folder']}; open it with "
                    f"state={saved['folder']!r}")
    if saved["state"] not in ("", found["state"]):
        raise Error(f"the state dict is of the state that was in {saved['folder']}, and the one in "
                    f"{found['folder']} is another")
    if saved["step"] != found["step"]:
        raise Error(f"the state dict is of step {saved['step']}, and the state in "
                    f"{found['folder']} of step {found['step']}; only the last step of a state can "
                    "be gone on from")


def check_groups(saved, found):
    sizes = [[len(group["params"]) for group in groups] for groups in (saved, found)]
    if sizes[0] != sizes[1]:
        raise Error(f"the state dict has groups of {sizes[0]} parameters, and the optimizer of "
                    f"{sizes[1]}")
