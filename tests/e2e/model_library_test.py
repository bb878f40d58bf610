#!/usr/bin/env python3
"""libtorch is loaded by what needs a model, and by nothing else; where the library of models is not
there, or is another one, what needs it says so before it makes anything."""

import os
import shutil
import subprocess
import sys

from sluice_run import SAMPLES, SLUICE, main, require, require_equal, require_words, test

PLATFORM = SAMPLES / "platforms/smartssd-a5000.toml"
# For a machine that is modelled: what a model takes on this computer is not asked.
PLAN = ("tune", "--placement", SAMPLES / "models/gpt2-1.7b.toml", "--platform", PLATFORM,
        "--simulations", "3")


def program_elsewhere(place, library=None):
    """A copy of `sluice`, with another file in place of the library of models, or none."""
    for folder in ("bin", "lib"):
        (place / folder).mkdir()
    shutil.copy(SLUICE, place / "bin/sluice")
    if library:
        shutil.copy(library, place / "lib/libsluice_models.so")
    return place / "bin/sluice"


def called(program, *words):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)


def loaded_files(place, *words):
    """Shared objects that a command loads, as the loader says."""
    log = place / "loaded"
    env = {**os.environ, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)}
    done = subprocess.run([SLUICE, *map(str, words)], cwd=place.path, env=env, capture_output=True,
                          text=True, check=False)
    require_equal(done.returncode, 0, f"exit code ({done.stderr})")
    texts = [path.read_text() for path in place.path.glob("loaded.*")]
    require(any("libc.so" in text for text in texts), "the loader said nothing")
    return "".join(texts)


@test
def a_command_that_needs_no_model_loads_no_libtorch(place):
    place.train("--steps", 2, clock="real").done()
    for words in (("--version",), ("show", place / "out/run.db"), ("train", "--settings"),
                  ("simulate", SAMPLES / "models/gpt2-4.0b.toml", "--platform", PLATFORM), PLAN):
        require("libtorch" not in loaded_files(place, *words), f"{words} loaded libtorch")
    require("libtorch" in loaded_files(place, "train", "run.toml", "--set", "output=loads",
                                       "--set", "steps=1"), "train loaded no libtorch")


@test
def what_needs_no_model_works_without_the_library(place):
    program = program_elsewhere(place)
    for words in (("simulate", SAMPLES / "models/gpt2-124m.toml", "--platform", PLATFORM), PLAN):
        done = called(program, *words)
        require_equal(done.returncode, 0, f"exit code of {words[0]} ({done.stderr})")
    doctor = called(program, "doctor")
    require_equal(doctor.returncode, 0, f"exit code ({doctor.stderr})")
    require_words(" ".join(doctor.stdout.split()), ["no libtorch the models cannot be loaded"],
                  "doctor")


@test
def what_needs_a_model_says_what_is_missing_and_makes_nothing(place):
    program = program_elsewhere(place)
    for words in (("train", place / "run.toml", "--set", f"output={place / 'made'}"),
                  ("tune", "--placement", place / "run.toml")):
        done = called(program, *words)
        require_equal(done.returncode, 2, f"exit code of {words[0]}")
        require_words(done.stderr, ["lib/libsluice_models.so", "built with libtorch"], words[0])
    require(not (place / "made").exists(), "an output was made")


@test
def another_library_in_its_place_is_refused(place):
    program = program_elsewhere(place, SLUICE.parent.parent / "lib/libsluice_record.so")
    done = called(program, "train", place / "run.toml")
    require_equal(done.returncode, 2, "exit code")
    require_words(done.stderr, ["is no library of models"], "the message")


if __name__ == "__main__":
    sys.exit(main())
