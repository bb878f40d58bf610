#!/usr/bin/env python3
"""Parameters that torch's fully_shard (FSDP2) has cut: each rank's state is of its own parts, the
losses are those of torch's optimizer, and ranks that are stopped or killed go on to the bit."""

import contextlib
import importlib
import inspect
import pathlib
import signal
import sys

import python_ranks
from python_package import on_drives, package_test, require_close, require_same, torch
from python_ranks import ended, require_losses
from sluice_run import Skip, main, require, require_equal, require_words

RANKS = 2
STEPS = 8
MICRO_BATCHES = 2
HALF = ("half", "half_killed")  # parameters of 16 bits
MIXED = ("unreduced", "mixed", "torch_mixed")  # one layer is not cut


def fsdp():
    return importlib.import_module("torch.distributed.fsdp")


def fsdp_test(function):
    def run_or_skip(place):
        if not torch.distributed.is_available() or not hasattr(fsdp(), "fully_shard"):
            raise Skip("this torch has no torch.distributed.fsdp.fully_shard (2.6 has)")
        if "ignored_params" not in inspect.signature(fsdp().fully_shard).parameters:
            raise Skip("this torch's fully_shard has no ignored_params; that of 2.6 takes a GPU")
        function(place)
    run_or_skip.__name__ = function.__name__
    return package_test(run_or_skip)


def make_model():
    """Of two ranks one has more rows of some tensors than the other, and of some all."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(24, 41), torch.nn.GELU(), torch.nn.Linear(41, 5),
                                torch.nn.GELU(), torch.nn.Linear(5, 1))
    model[2].bias.requires_grad_(False)
    return model


def cut(model, **how):
    for layer in (model[0], model[2], model):
        fsdp().fully_shard(layer, **how)


def loss_of(model, number):
    generator = torch.Generator().manual_seed(number)
    x, y = (torch.randn(16, width, generator=generator) for width in (24, 1))
    dtype = next(model.parameters()).dtype
    return torch.nn.functional.mse_loss(model(x.to(dtype)).float(), y)


def parts_of(model):
    return {name: value.to_local().clone() if hasattr(value, "to_local") else value.clone()
            for name, value in model.state_dict().items()}


def norm_of(model, whole, how):
    """torch's of all gradients, which it clips; it takes no parts beside whole tensors."""
    if how not in MIXED:
        return torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()
    for parameter in whole if how != "unreduced" else ():
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad /= RANKS
    return 0


def step_of(model, optimizer, number, whole, how):
    """The loss, and the norm."""
    rank = torch.distributed.get_rank()
    optimizer.zero_grad()
    loss = 0
    for micro_batch in range(MICRO_BATCHES):
        model.set_requires_gradient_sync(micro_batch == MICRO_BATCHES - 1)
        batch = (number * MICRO_BATCHES + micro_batch) * RANKS + rank
        part = loss_of(model, batch) / MICRO_BATCHES
        part.backward()
        loss += part.item()
    norm = norm_of(model, whole, how)
    optimizer.step()
    return loss, norm


def a_rank(place, how):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = make_model()
    whole = {model[4].weight, model[4].bias} if how in MIXED else set()
    if how in HALF:
        model.bfloat16()
    shape, names = ((1, RANKS), ("copies", "parts")) if how == "replicas" else ((RANKS,), None)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", shape, mesh_dim_names=names)
    cut(model, mesh=mesh, ignored_params=whole)
    is_torchs = how.startswith("torch")
    torchs = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)
    optimizer = torchs if is_torchs else on_drives(model, place / "run")
    first = getattr(optimizer, "steps_done", 0)
    if how == "go_back":
        optimizer.load_state_dict(torch.load(place / "state_dict.pt", weights_only=True))
        first = optimizer.steps_done
    addresses = [p.to_local().data_ptr() for p in model.parameters() if hasattr(p, "to_local")]
    losses, norms = [], []
    for number in range(first, STEPS):
        loss, norm = step_of(model, optimizer, number, whole, how)
        losses.append(loss)
        norms.append(norm)
        if how == "saves" and number == 4 and rank == 0:
            torch.save(optimizer.state_dict(), place / "state_dict.pt")
        if how == "half_killed" and number == 4 + rank:
            signal.raise_signal(signal.SIGKILL)
    found = [p.to_local().data_ptr() for p in model.parameters() if hasattr(p, "to_local")]
    require_equal(found, addresses, "where the parts lie")
    torch.save({"weights": parts_of(model), "losses": losses, "first": first, "norms": norms,
                "norm": 0 if is_torchs else optimizer.figures()["grad_norm"]},
               place / f"{how}-{rank}.pt")
    if not is_torchs:
        optimizer.close()
    torch.distributed.destroy_process_group()


def run_of(place, how, count=RANKS):
    return python_ranks.run_of(__file__, place, how, count)


def require_goes_on(found, wanted, first):
    for rank in range(RANKS):
        require_equal(found[rank]["first"], first, "the step gone on from")
        require_equal(found[rank]["losses"], wanted[rank]["losses"][first:], "losses")
        require_same(found[rank]["weights"], wanted[rank]["weights"], f"parts of rank {rank}")


@fsdp_test
def parts_learn_what_torchs_optimizer_learns(place):
    wanted = run_of(place / "torch", "torch")
    found = run_of(place / "sluice", "saves")
    require_losses(found, wanted)
    for rank in range(RANKS):
        require_close(found[rank]["norms"], wanted[rank]["norms"], "torch's norms")
        norm = wanted[rank]["norms"][-1]
        require_close([found[rank]["norm"]], [norm * min(1, 0.5 / (norm + 1e-6))],
                      "the norm of all that was sent")
    require(min(value.numel() for value in found[1]["weights"].values()) == 0,
            "no part is empty")
    # The state dict is that of the first rank, and all go back with it.
    require_goes_on(run_of(place / "sluice", "go_back"), found, 5)


@fsdp_test
def ranks_that_are_killed_go_on_to_the_bit(place):
    """With parameters of 16 bits, so that they are not the state."""
    wanted = run_of(place / "through", "half")
    require(min(wanted[0]["losses"][-3:]) < wanted[0]["losses"][0], "it learns nothing")
    # The first is killed behind the fifth step, and the second before it has done the sixth.
    programs = python_ranks.started(__file__, place / "killed", "half_killed", RANKS)
    programs[0].wait()
    with contextlib.suppress(ProcessLookupError):
        programs[1].kill()
    require_equal(ended(programs)[0][1], -signal.SIGKILL, "how the first one ended")
    require_goes_on(run_of(place / "killed", "half"), wanted, 5)


@fsdp_test
def whole_parameters_beside_parts_have_an_owner(place):
    wanted = run_of(place / "torch", "torch_mixed")
    require_losses(run_of(place / "sluice", "mixed"), wanted)


def require_refused(place, how, words):
    said = ended(python_ranks.started(__file__, place / how, how, RANKS))
    for rank, (text, code) in enumerate(said):
        require(code != 0, f"{how}: rank {rank} ended well")
        require_words(text, words, f"{how}, rank {rank}")


@fsdp_test
def other_cuts_are_refused_by_name(place):
    require_refused(place, "replicas", ["0.weight", "Replicate", "fully_shard"])


@fsdp_test
def whole_gradients_that_nobody_reduced_are_refused(place):
    require_refused(place, "unreduced", ["gradients differ"])


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "rank":
        a_rank(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
