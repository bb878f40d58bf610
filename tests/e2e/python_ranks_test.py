#!/usr/bin/env python3
"""Several ranks under DistributedDataParallel: each has a share of the state, all have the same
parameters to the bit, and killed ranks go on together."""

import contextlib
import pathlib
import random
import signal
import sys
import time

import python_ranks
from python_package import loss_of as loss_of_batch
from python_package import (make_model, on_drives, package_test, require_same, torch,
                            weights)
from python_ranks import ended, require_losses
from sluice_run import is_testing_all, main, require, require_equal, require_words

RANKS = 2
STEPS = 12
KILLS = 20 if is_testing_all() else 1


class Wrapped(torch.nn.Module if torch else object):
    """DistributedDataParallel wants a module that is called."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, number):
        return loss_of_batch(self.model, number)


def a_rank(place, how):
    """One of the ranks; what it says goes to a file of its own."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = make_model()
    wrapped = Wrapped(model)
    if how != "unwrapped":
        wrapped = torch.nn.parallel.DistributedDataParallel(wrapped)
    torchs = torch.optim.AdamW(model.parameters(), lr=3e-3)
    optimizer = torchs if how == "torch" else on_drives(model, place / "run")
    if how == "go_back":
        optimizer.load_state_dict(torch.load(place / "state_dict.pt", weights_only=True))
    losses = []
    first = getattr(optimizer, "steps_done", 0)
    for number in range(first, STEPS):
        optimizer.zero_grad()
        loss = wrapped(number * RANKS + rank)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        if how == "one_fails" and number == 3 and rank == 1:
            model.last.weight.data = torch.zeros(3)
        optimizer.step()
        losses.append(loss.item())
        if how == "saves" and number == 4 and rank == 0:  # as Trainer does, on one rank
            torch.save(optimizer.state_dict(), place / "state_dict.pt")
    torch.save({"weights": weights(model), "losses": losses, "first": first,
                "norm": 0 if how == "torch" else optimizer.figures()["grad_norm"]},
               place / f"{how}-{rank}.pt")
    if how != "torch":
        optimizer.close()
    torch.distributed.destroy_process_group()


def started(place, how, count=RANKS):
    return python_ranks.started(__file__, place, how, count)


def run_of(place, how, count=RANKS):
    return python_ranks.run_of(__file__, place, how, count)


@package_test
def ranks_learn_what_torchs_optimizer_learns_with_a_share_each(place):
    wanted = run_of(place / "torch", "torch")
    found = run_of(place / "sluice", "saves")
    require_losses(found, wanted)
    for rank in range(RANKS):
        require_same(found[rank]["weights"], found[0]["weights"], f"weights of rank {rank}")
    require_equal(found[0]["norm"], found[1]["norm"], "the norm of all gradients")
    for rank in range(RANKS):
        require((place / f"sluice/run/rank-{rank}-of-{RANKS}/state/commit.slc").exists(),
                f"rank {rank} has no share")
    # The state dict is that of the first rank, and all go back with it.
    again = run_of(place / "sluice", "go_back")
    require_equal([part["first"] for part in again], [5, 5], "the step gone on from")
    for rank in range(RANKS):
        require_equal(again[rank]["losses"], found[rank]["losses"][5:], f"losses of rank {rank}")
        require_same(again[rank]["weights"], found[0]["weights"], f"weights of rank {rank}")


@package_test
def ranks_that_are_killed_at_any_instant_go_on_together(place):
    begin = time.monotonic()
    wanted = run_of(place / "through", "sluice")
    took = time.monotonic() - begin
    instants = random.Random(3)
    for _ in range(KILLS):
        programs = started(place / "killed", "sluice")
        time.sleep(took * instants.uniform(0.5, 0.95))
        for program in programs[::instants.choice((1, -1))]:
            with contextlib.suppress(ProcessLookupError):
                program.send_signal(signal.SIGKILL)
        ended(programs)
    found = run_of(place / "killed", "sluice")
    for rank in range(RANKS):
        require_same(found[rank]["weights"], wanted[0]["weights"], f"weights of rank {rank}")


@package_test
def a_mistake_of_ranks_is_named_on_all_of_them(place):
    for how, words in (("unwrapped", ["gradients differ", "DistributedDataParallel"]),
                       ("one_fails", ["last.weight"])):
        said = ended(started(place / how, how))
        for rank, (text, code) in enumerate(said):
            require(code != 0, f"{how}: rank {rank} ended well")
            require_words(text, words, f"{how}, rank {rank}")
    said = ended(started(place / "one", "sluice", count=1))
    require_equal([code for _, code in said], [0], f"one process in a group: {said}")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "rank":
        a_rank(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
