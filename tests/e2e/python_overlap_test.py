#!/usr/bin/env python3
"""overlap="exact" in a program of torch's: the state is updated while backward runs, with the bits
of a step that waits, whatever a loop does with its gradients."""

import itertools
import sys
import time

from python_package import (loss_of, make_model, package, package_test, refusal, require_same,
                            torch, weights)
from sluice_run import main, require, require_equal, require_words

LOOPS = (
    {}, {"clip": 0.05}, {"clip": 100.0}, {"micro": 2}, {"every_nth": 5, "micro": 2, "clip": 0.05},
    {"scale": 64.0}, {"betas": True},
)
WAYS = (
    {}, {"gradients": "keep"}, {"parameter_tier": "storage"},
    {"gradient_tier": "memory", "commit_every": 3, "buffers": 3}, {"pipeline": "serial"},
)


def optimizer_of(model, state, **settings):
    names = dict(model.named_parameters())
    first = [names.pop("first.weight"), names.pop("first.bias")]
    groups = [{"params": first, "lr": 1e-3, "weight_decay": 0.1},
              {"params": list(names.values())}]
    return package.AdamW(groups, lr=3e-3, threads=1, subgroup_elements=2048, state=state,
                         durability="never", record="off", **settings)


def train(model, optimizer, steps, micro=1, clip=None, every_nth=1, scale=None, betas=False,
          pause_s=0.0):
    """The losses, and how many subgroups were updated ahead, and again. What a loop has beside
    plain steps it has in every nth."""
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale) if scale else None
    losses, ahead, again = [], 0, 0
    for step in range(steps):
        is_plain = step % every_nth != 0
        optimizer.zero_grad()
        for part in range(1 if is_plain else micro):
            loss = loss_of(model, micro * step + part)
            (scaler.scale(loss) if scaler else loss).backward()
            time.sleep(pause_s)
        if clip is not None and not is_plain:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if betas and step == 3:  # behind backward, so nobody expects it
            optimizer.param_groups[1]["betas"] = (0.8, 0.99)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        figures = optimizer.figures()
        ahead += figures.get("updated_ahead", 0)
        again += figures.get("updated_again", 0)
    return losses, ahead, again


@package_test
def loops_have_the_same_bits_updated_during_backward_and_behind_it(place):
    for number, (loop, way) in enumerate(itertools.product(LOOPS, WAYS)):
        found = []
        for overlap in ("off", "exact"):
            model = make_model()
            state = place / f"{overlap}{number}"
            losses = []
            for _ in range(1 if way else 2):  # gone on with
                optimizer = optimizer_of(model, state, overlap=overlap, **way)
                more, ahead, again = train(model, optimizer, 6, pause_s=0.001, **loop)
                losses += more
                digest = optimizer.digest()
                optimizer.close()
            found.append((losses, digest, weights(model)))
            require(0 <= again <= ahead, f"{loop}, {way}: {ahead} ahead, {again} again")
            require(overlap == "exact" or ahead == 0, "updated ahead with overlap=off")
        (losses, digest, kept), (others, other_digest, left) = found
        what = f"{loop}, {way}"
        require_equal(others, losses, f"{what}: losses")
        require_equal(other_digest, digest, f"{what}: digest")
        require_same(left, kept, what)


@package_test
def a_step_that_nothing_changes_is_updated_during_backward(place):
    model = make_model()
    optimizer = optimizer_of(model, place / "run", overlap="exact")
    found = 0
    for attempt in range(10):  # the schedule is given as much time as it takes
        _, ahead, again = train(model, optimizer, 3, pause_s=0.001 * 2**attempt)
        require_equal(again, 0, "updated again")
        found += ahead
        if found > 0:
            break
    require(found > 0, "nothing was updated ahead")
    for _ in range(3):  # a loop with micro-batches has it once
        _, ahead, again = train(model, optimizer, 3, micro=2, pause_s=0.001)
        require_equal(again, ahead, "updated again")
    require_equal(ahead, 0, "updated ahead in a loop with micro-batches")
    optimizer.close()
    optimizer = optimizer_of(model, place / "run", overlap="exact")
    train(model, optimizer, 52, scale=64.0)  # the first of them has a factor that nobody expects
    found = 0
    for attempt in range(10):
        _, ahead, again = train(model, optimizer, 3, scale=64.0, pause_s=0.001 * 2**attempt)
        require_equal(again, 0, "updated again with a loss scale that stays")
        found += ahead
        if found > 0:
            break
    require(found > 0, "nothing was updated ahead with a loss scale")


@package_test
def a_parameter_that_was_changed_is_named(place):
    model = make_model()
    optimizer = optimizer_of(model, place / "run", overlap="exact")
    train(model, optimizer, 2)
    with torch.no_grad():
        model.first.bias.copy_(model.first.bias.clone())  # to what it was
    train(model, optimizer, 1)
    with torch.no_grad():
        model.first.bias.add_(1)
    optimizer.zero_grad()
    loss_of(model, 3).backward()
    require_words(refusal(optimizer.step), ["changed by other means"], "a change before backward")


@package_test
def each_subgroups_own_norm_is_refused(place):
    model = make_model()
    require_words(refusal(lambda: train(model, optimizer_of(model, place / "run", overlap="local"),
                                        1)), ["overlap=local", "overlap=exact or off"], "local")


if __name__ == "__main__":
    sys.exit(main())
