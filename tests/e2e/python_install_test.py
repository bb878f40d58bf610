#!/usr/bin/env python3
"""The Python package as somebody meets it who installs it: what `python -m sluice doctor` says of
the machine, the commands that come with it, `pip install .` and the wheel."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from python_package import PACKAGE, VENV, package_test
from sluice_run import (ROOT, SLUICE, Skip, main, only_with_all, require, require_equal,
                        require_words, test)

INSTALL_LIMIT_S = 3600


def run(*command, path=(), limit_s=120, **environment):
    """With `path` before what Python finds by itself."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, timeout=limit_s, cwd="/",
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))} |
                          environment)


def doctor(*folders, before=(), package=PACKAGE):
    return run(sys.executable, "-m", "sluice", "doctor", *folders, path=[*before, package])


def made_module(place, name, text):
    """A folder in which `import name` finds this text."""
    folder = place / f"made_{name}"
    folder.mkdir()
    (folder / f"{name}.py").write_text(text)
    return folder


@package_test
def the_doctor_says_line_by_line_what_is_there(place):
    folder = place / "drive"
    folder.mkdir()
    done = doctor(folder)
    require_equal(done.returncode, 0, f"exit code ({done.stdout} {done.stderr})")
    require_words(done.stdout, [
        "Sluice 0.", "ok module", "_core", "ok torch", "ok instructions", "processors",
        "memory", "open files", "io_uring", "NVIDIA driver", "XRT", "sluice-gui",
        f"{folder}:", "file system", "room for the state of", "O_DIRECT", "64 MiB written at",
        "read at"], "doctor")
    require_equal(list(folder.iterdir()), [], "what stays in the folder")
    for line in done.stdout.splitlines():
        # A path cannot be broken.
        require(len(line) <= 80 or "/" in line, f"{len(line)}: {line}")


@package_test
def a_folder_that_cannot_be_written_is_the_reason_for_an_exit_code(place):
    done = doctor(place.path, "/proc")
    require_equal(done.returncode, 1, f"exit code ({done.stdout} {done.stderr})")
    require_words(done.stdout, ["64 MiB written at", "/proc:", "no writable no file can be made in "
                                "/proc", "name a folder that this user may write into"], "doctor")
    require_equal(done.stdout.count("64 MiB"), 1, "folders that were measured")
    (place / "file").touch()
    done = doctor(place / "file")
    require_equal(done.returncode, 1, "exit code of a file")
    require_words(done.stdout, ["no folder", "is no folder: name one on a drive"], "doctor")


@package_test
def a_folder_that_is_not_there_yet_is_not_made(place):
    done = doctor(place / "drive/run")
    require_equal(done.returncode, 0, f"exit code ({done.stdout} {done.stderr})")
    require_words(done.stdout, [f"not there yet; what follows is of {place.path}"], "doctor")
    require(not (place / "drive").exists(), "the folder was made")


@package_test
def without_torch_the_package_imports_and_says_what_it_lacks(place):
    without = made_module(place, "torch",
                          "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    done = doctor(place.path, before=[without])
    require_equal(done.returncode, 0, f"exit code ({done.stdout} {done.stderr})")
    require_words(done.stdout, ["warn torch", "has none", "`pip install torch`, of at least 2.6"],
                  "doctor")
    program = ("import sluice; print(sluice.__version__, 'AdamW' in dir(sluice))\n"
               "try: sluice.AdamW\nexcept sluice.Error as error: print(error.code, error)")
    done = run(sys.executable, "-c", program, path=[without, PACKAGE])
    require_words(done.stdout, ["0.", "True", "not_found sluice.AdamW needs torch",
                                "`pip install torch`"], f"AdamW ({done.stderr})")


@package_test
def an_old_torch_or_a_broken_one_is_refused(place):
    old = made_module(place, "torch", "__version__ = '2.5.1+cu121'")
    done = doctor(place.path, before=[old])
    require_equal(done.returncode, 1, "exit code")
    require_words(done.stdout, ["no torch 2.5.1+cu121", "at least 2.6"], "doctor")
    (old / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open')")
    done = doctor(place.path, before=[old])
    require_equal(done.returncode, 1, "exit code of a broken one")
    require_words(done.stdout, ["no torch cannot be imported: libcudart.so.13"], "doctor")


@package_test
def a_package_without_its_module_says_what_builds_it(place):
    shutil.copytree(PACKAGE / "sluice", place / "sluice",
                    ignore=shutil.ignore_patterns("_core*", "bin", "__pycache__"))
    done = doctor(place.path, package=place.path)
    require_equal(done.returncode, 1, f"exit code ({done.stderr})")
    require_words(done.stdout, ["no module", "sluice._core", "`pip install .`",
                                "warn sluice-gui"], "doctor")


@package_test
def the_commands_of_the_package_are_the_programs(place):
    command = "import sys; from sluice._programs import run_sluice, run_sluice_gui; "
    done = run(sys.executable, "-c", command + "run_sluice()", "--version", path=[PACKAGE])
    own = run(SLUICE, "--version")
    require_equal((done.returncode, done.stdout), (0, own.stdout), f"--version ({done.stderr})")
    require_equal(run(sys.executable, "-c", command + "run_sluice()", "sho", path=[PACKAGE])
                  .returncode, run(SLUICE, "sho").returncode, "exit code of a wrong command")
    shutil.copytree(PACKAGE / "sluice", place / "sluice",
                    ignore=shutil.ignore_patterns("bin", "__pycache__"))
    done = run(sys.executable, "-c", command + "run_sluice_gui()", path=[place.path])
    require_equal(done.returncode, 1, "exit code without the program")
    require_words(done.stderr, ["sluice-gui: this installation", "scripts/make_wheel"], "no window")
    scripts = re.findall(r'"sluice\._programs:(\w+)"', (ROOT / "pyproject.toml").read_text())
    require_equal(scripts, ["run_sluice", "run_sluice_gui"], "commands of pyproject.toml")


@package_test
def a_name_that_the_package_has_not_is_refused_with_the_nearest(_place):
    done = run(sys.executable, "-c", "import sluice; sluice.AdamV", path=[PACKAGE])
    require_words(done.stderr, ["module 'sluice' has no attribute 'AdamV'",
                                "Did you mean: 'AdamW'"], "AdamV")
    done = run(sys.executable, "-m", "sluice", "--help", path=[PACKAGE])
    require_words(done.stdout, ["python -m sluice doctor /nvme0/run", "doctor"], "--help")


# In an environment of its own --------------------------------------------------------------------


def environment(place):
    """A Python with nothing in it."""
    folder = place / "environment"
    require_equal(run(sys.executable, "-m", "venv", folder).returncode, 0, "python -m venv")
    return folder / "bin"


def give_torch(programs):
    """That of scripts/setup."""
    site = next((programs.parent / "lib").glob("python3*/site-packages"))
    torch = next((VENV / "lib").glob("python3*/site-packages"))
    (site / "torch.pth").write_text(f"{torch}\n")


def require_installed(programs, place, wanted):
    """Imports, doctor, command and the page's first program."""
    done = run(programs / "python", "-m", "sluice", "doctor", place.path)
    require_equal(done.returncode, 0, f"doctor's exit code ({done.stdout} {done.stderr})")
    require_words(done.stdout, ["warn torch", "64 MiB written at", *wanted], "doctor")
    done = run(programs / "sluice", "--version")
    require_equal(done.returncode, 0, f"exit code of sluice ({done.stderr})")

    give_torch(programs)
    page = (ROOT / "docs/python.md").read_text()
    first = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    (place / "program.py").write_text(FRAME + first.replace("/nvme0/run", str(place / "run")))
    done = run(programs / "python", place / "program.py")
    require_equal(done.returncode, 0, f"exit code of the page's program ({done.stderr})")
    require_words(done.stderr, ["sluice: the state of 2 tensors"], "the page's program")
    done = run(programs / "sluice", "show", place / "run/run.db")
    require_equal(done.returncode, 0, f"exit code of sluice show ({done.stderr})")


# A model for the page's first program.
FRAME = """\
import types
import torch
class Model(torch.nn.Linear):
    def forward(self, x):
        return types.SimpleNamespace(loss=super().forward(x).square().mean())
model = Model(8, 4)
data = [{"x": torch.randn(2, 8)} for _ in range(5)]
scheduler = types.SimpleNamespace(step=lambda: None)
"""


@test
@only_with_all("pip compiles for minutes")
def pip_install_in_a_checkout_brings_package_and_command(place):
    programs = environment(place)
    done = run(programs / "python", "-m", "pip", "install", "-q", ROOT, limit_s=INSTALL_LIMIT_S,
               CMAKE_CXX_COMPILER_LAUNCHER=shutil.which("ccache") or "")
    require_equal(done.returncode, 0, f"exit code of pip ({done.stderr[-2000:]})")
    require_installed(programs, place, [])


MAPPED = """\
import pathlib, sluice, sluice._core
for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
    print(line.split()[-1])
"""


@test
@only_with_all("a wheel is compiled for minutes")
def a_wheel_brings_libraries_and_programs(place):
    done = run(ROOT / "scripts/make_wheel", "-o", place / "wheels", limit_s=INSTALL_LIMIT_S)
    if done.returncode != 0 and "cannot be installed" in done.stderr:
        raise Skip(f"pip offers no auditwheel here: {done.stderr.splitlines()[-1]}")
    require_equal(done.returncode, 0, f"exit code of make_wheel ({done.stderr[-2000:]})")
    wheel, = (place / "wheels").glob("*.whl")
    require("manylinux" in wheel.name, f"{wheel.name}")
    programs = environment(place)
    done = run(programs / "python", "-m", "pip", "install", "-q", "--no-index", wheel)
    require_equal(done.returncode, 0, f"exit code of pip ({done.stderr})")
    require_installed(programs, place, ["sluice-gui"])
    done = run(programs / "python", "-c", MAPPED)
    mapped = {pathlib.Path(path) for path in done.stdout.split() if path.startswith("/")}
    for name in ("libfmt", "libhwy", "libsqlite3", "liburing", "libxxhash", "libtomlplusplus"):
        places = {path.parent.name for path in mapped if path.name.startswith(name)}
        require_equal(places, {"sluice.libs"}, f"where {name} is taken from")


if __name__ == "__main__":
    sys.exit(main())
