#!/usr/bin/env python3
"""Checkpoints of a PyTorch program: a state dict names a step, which the state keeps, and any of
them is gone on from, to the bit, also by a program that was killed at any instant."""

import contextlib
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from python_package import (loss_of, make_model, on_drives, package, package_test, refusal,
                            require_same, torch, train, weights)
from sluice_run import (LIMIT_S, is_testing_all, main, require, require_equal, require_words,
                        sluice)

KILLS = 100 if is_testing_all() else 3


def resumed(folder, saved, **arguments):
    model = make_model()
    optimizer = on_drives(model, folder, **arguments)
    optimizer.load_state_dict(saved)
    return model, optimizer


def digest(folder):
    return sluice("state", folder / "state", "--json").json()["digest"]


def kept_steps(optimizer):
    return [step for step, _, _ in optimizer.kept()]


def state_bytes(folder):
    return (folder / "state/dev0/state.slc").stat().st_size


@package_test
def any_kept_step_is_gone_on_from(place):
    model = make_model()
    optimizer = on_drives(model, place / "run", keep_checkpoints=4)
    saved, losses = {}, []
    for step in range(12):
        if step in (3, 5, 9):
            saved[step] = optimizer.state_dict()
        losses += train(model, optimizer, step + 1, step)
    wanted = weights(model)
    optimizer.close()
    bits = digest(place / "run")
    for step in (5, 9, 3, 5):
        model, optimizer = resumed(place / "run", saved[step], keep_checkpoints=4)
        require_equal(optimizer.steps_done, step, "steps done")
        require_equal(train(model, optimizer, 12, step), losses[step:], f"losses from step {step}")
        require_same(weights(model), wanted, f"weights from step {step}")
        optimizer.close()
        require_equal(digest(place / "run"), bits, f"the state from step {step}")


@package_test
def two_ways_on_from_a_step_are_two_steps(place):
    model = make_model()
    optimizer = on_drives(model, place / "run", keep_checkpoints=4)
    train(model, optimizer, 2)
    first = optimizer.state_dict()
    train(model, optimizer, 4, 2)
    one_way = optimizer.state_dict()
    wanted = weights(model)
    train(model, optimizer, 5, 4)
    optimizer.load_state_dict(first)
    train(model, optimizer, 22, 20)  # other batches
    other_way = optimizer.state_dict()
    require_equal(one_way["sluice"]["step"], other_way["sluice"]["step"], "steps")
    train(model, optimizer, 23, 22)
    optimizer.load_state_dict(one_way)
    require_same(weights(model), wanted, "weights of the first way")


@package_test
def what_is_not_kept_is_refused_by_name(place):
    model = make_model()
    optimizer = on_drives(model, place / "run", keep_checkpoints=2)
    saved = []
    for step in range(5):
        train(model, optimizer, step + 1, step)
        saved.append(optimizer.state_dict())
    require_equal(kept_steps(optimizer), [3, 4], "kept")
    require_words(refusal(optimizer.load_state_dict, saved[0]),
                  ["step 1 (", "keeps 3 (", "last one is step 5 (",
                   "keep_checkpoints="], "a step let go")
    require_equal(optimizer.steps_done, 5, "steps after a refusal")
    require_words(refusal(optimizer.release, 1), ["step 1 is not kept", "[3, 4]"], "a release")
    optimizer.release(3)
    require_equal(kept_steps(optimizer), [4], "kept after a release")
    model.zero_grad()
    loss_of(model, 5).backward()
    require_words(refusal(optimizer.load_state_dict, saved[3]), ["gradients of step 6"],
                  "too late")
    require_words(refusal(on_drives, make_model(), place / "two", checkpoint="none"),
                  ["checkpoint='none'", "pin, last"], "a mode")
    require_words(refusal(on_drives, make_model(), place / "two", keep_checkpoints=0),
                  ["keep_checkpoints=0"], "a number")


@package_test
def only_the_last_step_is_there_where_that_is_asked(place):
    model = make_model()
    optimizer = on_drives(model, place / "run", checkpoint="last")
    train(model, optimizer, 2)
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    train(model, optimizer, 4, 2)
    require_equal(kept_steps(optimizer), [], "kept")
    require_words(refusal(optimizer.load_state_dict, saved), ["step 2 (", "keeps none"], "step 2")


@package_test
def a_checkpoint_takes_room_and_no_copy_and_gives_it_back(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 1)
    slots = state_bytes(place / "run") - 4096
    folders = [place / f"checkpoint-{number}" for number in range(4)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        torch.save(optimizer.state_dict(), folder / "optimizer.pt")
        require((folder / "optimizer.pt").stat().st_size < 64 << 10, "a large state dict")
        if number >= 2:
            shutil.rmtree(folders[number - 2])
        optimizer.keep_for(folder)
        train(model, optimizer, number + 3, number + 2)
        require_equal(len(optimizer.kept()), min(2, number + 1), "kept")
        require(state_bytes(place / "run") <= slots * 5 // 2 + 4096, "the room of two and one more")
    require_equal([keeper for _, _, keeper in optimizer.kept()], list(map(str, folders[2:])),
                  "keepers")
    shown = sluice("state", place / "run/state").out
    require_words(shown, [f"kept: step 4 for {folders[3]}"], "sluice state")
    # A checkpoint that is written anew keeps what it has now.
    torch.save(optimizer.state_dict(), folders[3] / "optimizer.pt")
    optimizer.keep_for(folders[3])
    require_equal(kept_steps(optimizer), [3, 5], "kept after it was written anew")
    for step in kept_steps(optimizer):
        optimizer.release(step)
    require(state_bytes(place / "run") <= slots + 4096, "the room comes back")


@package_test
def nothing_is_kept_for_what_is_read_again_at_once(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    train(model, optimizer, 2)
    saved = optimizer.state_dict()
    train(model, optimizer, 3, 2)
    optimizer.close()
    # accelerate's prepare(), and then the checkpoint that is resumed.
    model, optimizer = resumed(place / "run", on_drives(make_model(), place / "two").state_dict()
                               | {"sluice": saved["sluice"]})
    require_equal(kept_steps(optimizer), [2], "kept")
    train(model, optimizer, 4, 2)
    require_equal(kept_steps(optimizer), [2], "kept once it has gone on")


@package_test
def a_state_begins_anew_where_that_is_asked(place):
    model = make_model()
    optimizer = on_drives(model, place / "run")
    losses = train(model, optimizer, 4)
    optimizer.state_dict()
    optimizer.close()
    model = make_model()
    optimizer = on_drives(model, place / "run", fresh=True)
    require_equal(optimizer.steps_done, 0, "steps")
    require_equal(on_drives(make_model(), place / "run").steps_done, 4, "the state before")
    require_equal(train(model, optimizer, 4), losses, "losses")
    require_equal(kept_steps(optimizer), [], "kept")


# Killed at any instant ---------------------------------------------------------------------------

STEPS = 40
SAVE_EVERY = 4


def a_program(place):
    """Trains and saves as Trainer does, and goes on from its newest whole checkpoint."""
    model = make_model()
    newest = package.last_checkpoint(place)
    optimizer = on_drives(model, place / "run", fresh=newest is None, commit_every=3)
    step = 0
    if newest is not None:
        folder = pathlib.Path(newest)
        step = json.loads((folder / "trainer_state.json").read_text())["step"]
        optimizer.load_state_dict(torch.load(folder / "optimizer.pt", weights_only=True))
        require_equal(optimizer.steps_done, step, "the step of the checkpoint")
        saved = torch.load(folder / "model.pt", weights_only=True)
        require_same(weights(model), saved, "the weights of the checkpoint")
        optimizer.keep_for(folder)
    while step < STEPS:
        train(model, optimizer, step + 1, step)
        step += 1
        if step % SAVE_EVERY == 0:
            save(place, step, model, optimizer)
    optimizer.close()
    torch.save(weights(model), place / "weights.pt")


def save(place, step, model, optimizer):
    folder = place / f"checkpoint-{step}"
    folder.mkdir(exist_ok=True)
    torch.save(weights(model), folder / "model.pt")
    torch.save(optimizer.state_dict(), folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text(json.dumps({"step": step}))
    checkpoints = sorted(place.glob("checkpoint-*"), key=lambda f: int(f.name.split("-")[1]))
    for old in checkpoints[:-2]:
        shutil.rmtree(old)
    optimizer.keep_for(folder)


def started(place):
    return subprocess.Popen([sys.executable, __file__, "program", str(place)],
                            stderr=subprocess.PIPE, text=True)


def wait(program):
    _, said = program.communicate(timeout=LIMIT_S)
    require_equal(program.returncode, 0, f"a program: {said}")


@package_test
def a_distributed_checkpoint_has_the_reference(place):
    """torch.distributed.checkpoint hands on `state` and `param_groups` alone, and takes a step to
    fill an empty `state`."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import state_dict as of_model
    model = make_model()
    optimizer = on_drives(model, place / "run")
    of_model.get_optimizer_state_dict(model, optimizer)
    require_equal((optimizer.steps_done, (place / "run").exists()), (0, False), "before any step")
    train(model, optimizer, 3)
    saved = dict(zip(("model", "optimizer"), of_model.get_state_dict(model, optimizer)))
    checkpoint.save(saved, checkpoint_id=place / "checkpoint")
    at_save, wanted = optimizer.digest(), weights(model)
    train(model, optimizer, 5, begin=3)
    digests, after = optimizer.digest(), weights(model)
    for _ in range(2):
        saved = dict(zip(("model", "optimizer"), of_model.get_state_dict(model, optimizer)))
        checkpoint.load(saved, checkpoint_id=place / "checkpoint")
        of_model.set_state_dict(model, optimizer, model_state_dict=saved["model"],
                                optim_state_dict=saved["optimizer"])
        require_equal((optimizer.steps_done, optimizer.digest()), (3, at_save), "gone back")
        require_same(weights(model), wanted, "weights gone back")
        train(model, optimizer, 5, begin=3)
        require_equal(optimizer.digest(), digests, "two steps later")
        require_same(weights(model), after, "weights two steps later")
    optimizer.close()


@package_test
def a_program_killed_at_any_instant_goes_on_to_the_bit(place):
    whole, killed = place / "whole", place / "killed"
    whole.mkdir()
    killed.mkdir()
    begin = time.monotonic()
    wait(started(whole))
    took = time.monotonic() - begin
    instants = random.Random(7)
    for _ in range(KILLS):
        program = started(killed)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(timeout=took * instants.uniform(0.4, 1.1))
        if program.poll() is None:
            program.send_signal(signal.SIGKILL)
        _, said = program.communicate(timeout=LIMIT_S)
        require(program.returncode in (0, -signal.SIGKILL), f"a killed program: {said}")
        if program.returncode == 0:  # it had ended: once more from the beginning
            require_same(torch.load(killed / "weights.pt"), torch.load(whole / "weights.pt"),
                         "weights of an attempt")
            shutil.rmtree(killed)
            killed.mkdir()
    wait(started(killed))
    require_same(torch.load(killed / "weights.pt"), torch.load(whole / "weights.pt"), "weights")
    require_equal(digest(killed / "run"), digest(whole / "run"), "the state")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "program":
        a_program(pathlib.Path(sys.argv[2]))
    else:
        sys.exit(main())
