"""The commands `sluice` and `sluice-gui`: the programs lie in the package, whose place it knows."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent / "bin"


def run_sluice():
    run("sluice")


def run_sluice_gui():
    run("sluice-gui")


def run(name):
    """Becomes the program, which has this one's arguments, streams and process number."""
    program = FOLDER / name
    if not program.exists():
        sys.exit(f"{name}: this installation of the Python package was made without it: there is "
                 f"no {program}. {REMEDIES[name]}")
    os.execv(program, [name, *sys.argv[1:]])


REMEDIES = {
    "sluice": "`pip install .` in a checkout builds it",
    "sluice-gui": "A wheel of scripts/make_wheel has the window; in a checkout, the target "
                  "sluice-gui of the build",
}
