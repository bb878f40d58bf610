#!/usr/bin/env python3
"""A state goes on with another number of ranks, to the bit, and a start that ends in the middle of
that leaves one state."""

import contextlib
import pathlib
import shutil
import sys

import python_ranks
from python_package import (loss_of, make_model, on_drives, package, package_test, refusal,
                            require_same, torch, weights)
from python_ranks import ended
from sluice_run import main, require, require_equal, require_words


def carried_test(function):
    def in_a_folder(place):
        (place / "ranks").mkdir()
        function(place / "ranks")
    in_a_folder.__name__ = function.__name__
    return package_test(in_a_folder)


def trained(model, optimizer, last):
    """All ranks have the same batch, so their gradients are the same without being reduced, and
    there is no rounding between them."""
    for number in range(optimizer.steps_done, last):
        optimizer.zero_grad()
        loss_of(model, number).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()


def begun(place, **arguments):
    model = make_model()
    return model, on_drives(model, place / "run", gradients="keep", **arguments)


def a_rank(place, how):
    """`how`: the step that it goes up to, and more."""
    last, _, more = how.partition("-")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, count = torch.distributed.get_rank(), torch.distributed.get_world_size()
    model, optimizer = begun(place, error_feedback=more == "feedback",
                             density=0.5 if more == "feedback" else 1)
    if (place / "last.pt").exists():
        optimizer.load_state_dict(torch.load(place / "last.pt", weights_only=True))
    first, found = optimizer.steps_done, weights(model)
    trained(model, optimizer, int(last) - 1)
    if rank == 0:
        torch.save(optimizer.state_dict(), place / "earlier.pt")
    if more == "apart" and rank == 1:
        folder = place / f"run/rank-1-of-{count}"
        shutil.copytree(folder, place / "behind", symlinks=True,
                        ignore=shutil.ignore_patterns("*.socket"))
    trained(model, optimizer, int(last))
    if rank == 0:
        torch.save(optimizer.state_dict(), place / "last.pt")
    torch.save({"first": first, "found": found, "weights": weights(model)},
               place / f"{how}-{rank}.pt")
    optimizer.close()
    torch.distributed.destroy_process_group()


def ranks_to(place, how, count):
    return python_ranks.run_of(__file__, place, how, count)


def one_through(place, *steps):
    """The weights at the steps, of one process."""
    model, optimizer = begun(place / "through")
    found = {}
    for step in steps:
        trained(model, optimizer, step)
        found[step] = weights(model)
    optimizer.close()
    return found


def require_at(place, wanted, step):
    model, optimizer = begun(place)
    require_equal(optimizer.steps_done, step, "the step gone on from")
    require_same(weights(model), wanted[step], f"weights of step {step}")
    return model, optimizer


@carried_test
def another_number_of_ranks_goes_on_to_the_bit(place):
    wanted = one_through(place, 4, 7, 9, 11)
    ranks_to(place, "4", 2)
    require_same(torch.load(place / "4-1.pt")["weights"], wanted[4], "two ranks")
    model, optimizer = require_at(place, wanted, 4)
    # What it says of the state was said of two.
    said = refusal(optimizer.load_state_dict, torch.load(place / "earlier.pt"))
    require_words(said, ["step 3 of 2 ranks", "step 4", ".before"], "another step")
    optimizer.load_state_dict(torch.load(place / "last.pt"))
    trained(model, optimizer, 7)
    require_same(weights(model), wanted[7], "one process after two")
    # The step that was carried over is kept for it.
    optimizer.load_state_dict(torch.load(place / "last.pt"))
    require_equal(optimizer.steps_done, 4, "the step gone back to")
    trained(model, optimizer, 7)
    require_same(weights(model), wanted[7], "one process, gone back")
    torch.save(optimizer.state_dict(), place / "last.pt")
    optimizer.close()
    require(not list((place / "run").glob("rank-*-of-2")), "the old ranks' folders are there")
    for how, count, first in (("9", 3, 7), ("11", 2, 9)):
        for rank, found in enumerate(ranks_to(place, how, count)):
            require_equal(found["first"], first, "the step gone on from")
            require_same(found["found"], wanted[first], f"{count} ranks as they begin: {rank}")
            require_same(found["weights"], wanted[int(how)], f"{count} ranks: {rank}")


class Stopped(Exception):
    pass


@contextlib.contextmanager
def stopped_at(owner, name, calls):
    """The program ends in the call of that number."""
    before = getattr(owner, name)
    left = [calls]

    def stop(*arguments, **keywords):
        left[0] -= 1
        if left[0] == 0:
            raise Stopped
        return before(*arguments, **keywords)
    setattr(owner, name, stop)
    try:
        yield
        require(False, f"{name} was not called {calls} times")
    except Stopped:
        pass
    finally:
        setattr(owner, name, before)


@carried_test
def a_start_that_ends_while_it_carries_leaves_one_state(place):
    carried = sys.modules["sluice._carried"]
    wanted = one_through(place, 4, 6)
    ranks_to(place, "4", 2)
    for number, (owner, name, calls) in enumerate((
            (carried.CarriesOver, "_settle", 1), (carried.CarriesOver, "_taken_from", 1),
            (carried, "write_durably", 1), (package.AdamW, "_open", 1),
            (carried, "write_durably", 2), (carried, "retire", 1), (carried, "give_way", 1),
            (carried, "give_way", 2), (carried, "sync_folder", 2), (carried, "sync_folder", 5))):
        copy = place / f"copy-{number}"
        shutil.copytree(place / "run", copy / "run", symlinks=True)
        with stopped_at(owner, name, calls):
            begun(copy)
        # The ranks that there were would go on with theirs, where it still counts.
        folders = package._optimizer.Folders(copy / "run", carried.Ranks(0, 2))
        if folders.has_state():
            require_equal(carried.to_be_carried(folders, 2, False), None, f"{name}: two ranks")
        model, optimizer = require_at(copy, wanted, 4)
        trained(model, optimizer, 6)
        require_same(weights(model), wanted[6], f"weights after {name} {calls}")
        optimizer.close()
        require_equal(sorted(path.name for path in (copy / "run").iterdir()),
                      ["carried.json", "rank-0-of-2.before", "rank-1-of-2.before", "run.db",
                       "state"], "what lies there")


@carried_test
def ranks_that_are_a_step_apart_are_carried_from_the_earlier(place):
    wanted = one_through(place, 3, 5)
    ranks_to(place, "4-apart", 2)
    shutil.rmtree(place / "run/rank-1-of-2")
    said = refusal(begun, place)
    require_words(said, ["rank-1-of-2", "is not there", "start as many"], "a part is missing")
    (place / "behind").rename(place / "run/rank-1-of-2")
    model, optimizer = require_at(place, wanted, 3)
    trained(model, optimizer, 5)
    require_same(weights(model), wanted[5], "weights")
    optimizer.close()


@carried_test
def what_cannot_be_carried_is_named(place):
    model, optimizer = begun(place, error_feedback=True, density=0.5)
    trained(model, optimizer, 2)
    optimizer.close()
    for how, words in (("3-feedback", ["error_feedback", "residual"]),):
        for text, code in ended(python_ranks.started(__file__, place, how, 2)):
            require(code != 0, f"{how}: it went on")
            require_words(text, words, how)
    said = refusal(begun, place / "one", fresh=True) if ranks_to(place / "one", "2", 2) else ""
    require_words(said, ["rank-0-of-2", "another number of ranks", "remove"], "a new beginning")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "rank":
        a_rank(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
