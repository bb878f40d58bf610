#!/usr/bin/env python3
"""Kills a run with SIGKILL at N random instants, resumes it each time, and holds what is left to a
run that was left alone: state, losses, database. The last line is the summary.

    scripts/soak/crash_soak.py 1000 [--seed S] [--set KEY=VALUE ...]

With --set the killed runs have these settings, and the one that is left alone has not: the numbers
are to be the same with them and without, for example

    scripts/soak/crash_soak.py 200 --set parameter_tier=storage --set activations=offload \\
        --set overlap=exact --set commit_every=3 --set state_cache=60KB

The command is build/release/bin/sluice, or what SLUICE_BIN names.
"""

import argparse
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))

import crash  # noqa: E402
from sluice_run import Failure, Place  # noqa: E402


def soak(kills, seed, settings):
    begin = time.monotonic()
    killed = runs = 0
    with Place() as place:
        whole = crash.Undisturbed(place, steps=60)
        killer = crash.Killer(random.Random(seed), whole.startup_s)
        crash.SETTINGS.update(setting.split("=", 1) for setting in settings)
        while killed < kills:
            with Place() as each:
                killed += crash.crash_and_resume(each, killer, whole, min(20, kills - killed))
            runs += 1
            print(f"  {killed} kills in {runs} runs, {time.monotonic() - begin:.0f} s", flush=True)
    kinds = ", ".join(f"{count} in {kind}" for kind, count in sorted(killer.counts.items()))
    return f"{killed} kills ({kinds}) in {runs} runs of {whole.steps} steps"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("kills", type=int, help="how many kills, for example 1000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                        help="of the killed runs alone; may be repeated")
    options = parser.parse_args()
    try:
        summary = soak(options.kills, options.seed, options.settings)
    except Failure as failure:
        print(f"FAILED with seed {options.seed}: {failure}")
        return 1
    print(f"{summary}: each resumed, same digest and losses, every database sound")
    return 0


if __name__ == "__main__":
    sys.exit(main())
