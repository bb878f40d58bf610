"""What this machine has, and what the package can do with it. Each line is found out by trying."""

import ctypes.util
import importlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import textwrap

from sluice import _programs

OK, WARN, ABSENT, NO = "ok", "warn", "-", "no"  # ABSENT: not there, and not needed

TORCH_AT_LEAST = (2, 6)
MEMORY_BYTES = 2 << 30
FILES = 256
LOCKED_BYTES = 1 << 30
MEASURED_BYTES = 64 << 20
STATE_BYTES = 28  # of a parameter with adamw
WINDOW_SECONDS = 20  # a display that cannot be reached may never answer

WIDTH = 80
COLUMN = 24  # where findings begin


def examine(folders):
    """Prints the page; 1 if a line says "no"."""
    grades = []

    def show(findings):
        for grade, what, text in findings:
            print_line(grade, what, text)
            grades.append(grade)

    core, findings = loaded_module()
    show(findings)
    show(torch_findings())
    if core is not None:
        show(processor_findings(core))
        show(limit_findings(core))
        engine, findings = engine_findings(core)
        show(findings)
    show(driver_findings())
    show(program_findings())
    for folder in folders:
        print(f"{folder}:")
        show(place_findings(folder))
        if core is not None and grades[-1] != NO:
            show(transfer_findings(core, existing(folder), engine))
    return 1 if NO in grades else 0


def print_line(grade, what, text):
    head = f"  {grade:<4}  {what}"
    lines = textwrap.wrap(text, WIDTH - COLUMN, break_long_words=False, break_on_hyphens=False)
    print(f"{head:<{COLUMN - 1}} {lines[0] if lines else ''}".rstrip())
    for line in lines[1:]:
        print(" " * COLUMN + line)
    sys.stdout.flush()


def size_text(count):
    """As sluice doctor has it: of 1000 each."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
        count /= 1000


# The package and torch ---------------------------------------------------------------------------


def loaded_module():
    try:
        core = importlib.import_module("sluice._core")
    except ImportError as error:
        print("Sluice")
        return None, [(NO, "module", f"{error}: {remedy_for_module(str(error))}")]
    print(f"Sluice {core.version}, Python {platform.python_version()}, {' '.join(libc())}")
    return core, [(OK, "module", core.__file__)]


def libc():
    name, version = platform.libc_ver()
    return name or "an unknown C library", version


def remedy_for_module(text):
    if ".so" in text:
        return ("what `pip install .` builds takes this system's libraries (scripts/setup "
                "installs them); a wheel of scripts/make_wheel brings its own")
    if "_core" in text:
        return ("the module is not beside the package, or for another Python; `pip install .` in "
                "a checkout builds it")
    return "install the package again"


def torch_findings():
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            return [(NO, "torch", f"cannot be imported: {error}")]
        return [(WARN, "torch", f"{sys.executable} has none, and the optimizers need it: "
                                "`pip install torch`, of at least "
                                f"{'.'.join(map(str, TORCH_AT_LEAST))}")]
    except (ImportError, OSError) as error:
        return [(NO, "torch", f"cannot be imported: {error}")]
    version = torch.__version__
    if numbers_of(version) < TORCH_AT_LEAST:
        return [(NO, "torch", f"{version}, and the optimizers need at least "
                              f"{'.'.join(map(str, TORCH_AT_LEAST))}: `pip install -U torch`")]
    return [(OK, "torch", f"{version}, {torch_device(torch)}")]


def numbers_of(version):
    return tuple(int("".join(c for c in part if c.isdigit()) or 0)
                 for part in str(version).split("+")[0].split(".")[:2])


def torch_device(torch):
    if torch.version.cuda is None:
        return "a build for the processor"
    return f"a build for CUDA {torch.version.cuda}, which finds {torch.cuda.device_count()} GPUs"


# The machine -------------------------------------------------------------------------------------


def processor_findings(core):
    best, *others = core.vector_instructions()
    rest = f" (also has {', '.join(others)})" if others else ""
    yield OK, "instructions", f"{best}{rest}"


def limit_findings(core):
    limits = dict(core.limits())
    count, what = limits["processors"]
    yield OK, "processors", f"{count} ({what})"
    count, what = limits["memory"]
    enough = count >= MEMORY_BYTES
    yield (OK if enough else WARN, "memory", f"{size_text(count)} ({what})" +
           ("" if enough else ": give host_memory= a cap that leaves the model its room"))
    yield limit_line("open files", limits, FILES, str, "raise it: a run opens some for each drive")
    yield limit_line("size of a file", limits, 1 << 50, size_text,
                     "raise it: the state on a drive is one file")
    yield limit_line("locked memory", limits, LOCKED_BYTES, size_text,
                     "raise it, so that io_uring can register buffers")


def limit_line(name, limits, enough, text_of, remedy):
    count, what = limits[name]
    if count < 0:
        return OK, name, "no limit"
    text = f"{text_of(count)} ({what})"
    return (OK, name, text) if count >= enough else (WARN, name, f"{text}: {remedy}")


def engine_findings(core):
    problem = core.engine_problem("io_uring")
    if not problem:
        return "io_uring", [(OK, "io_uring", "transfers can be submitted")]
    return "posix", [(WARN, "io_uring", f"{problem}: give the optimizer io_engine=\"posix\"")]


def driver_findings():
    path = pathlib.Path("/proc/driver/nvidia/version")
    try:
        yield OK, "NVIDIA driver", path.read_text(errors="replace").splitlines()[0]
    except (OSError, IndexError):
        yield ABSENT, "NVIDIA driver", f"there is no {path}: torch computes on the processor"
    if ctypes.util.find_library("xrt_coreutil") is None:
        yield ABSENT, "XRT", "not found; the package does not use it"
    else:
        yield (OK, "XRT", "found; the package does not use it: cards are for the `sluice` of a "
                          "checkout (docs/real_smartssd.md)")


# The programs that it brings ---------------------------------------------------------------------


def program_findings():
    yield program_line("sluice", ["--version"])
    yield program_line("sluice-gui", ["--check"])


def program_line(name, arguments):
    own, found = _programs.FOLDER / name, shutil.which(name)
    if not own.exists() and found is None:
        return WARN, name, f"not in this installation. {_programs.REMEDIES[name]}"
    program = own if own.exists() else found
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                              errors="replace", timeout=WINDOW_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return WARN, name, f"{error}"
    said = " ".join((done.stdout or done.stderr).split())
    if done.returncode != 0:
        remedy = ": Debian has it in libgl1" if "libGL.so.1: cannot open" in said else ""
        return WARN, name, said + remedy
    if found is None:
        return (WARN, name, f"{said}; it is not on PATH: add the folder of this Python's "
                            "programs to it")
    return OK, name, f"{said}: {found}"


# A folder ----------------------------------------------------------------------------------------


def existing(folder):
    """The folder, or what of its path there is: the optimizer makes the rest."""
    path = pathlib.Path(folder).absolute()
    while not path.exists():
        path = path.parent
    return path


def place_findings(folder):
    path = existing(folder)
    if not path.is_dir():
        yield NO, "folder", f"{path} is no folder: name one on a drive"
        return
    if path != pathlib.Path(folder).absolute():
        yield OK, "folder", f"not there yet; what follows is of {path}"
    name, device = file_system(path)
    yield file_system_line(name, device)
    space = os.statvfs(path)
    free = space.f_bavail * space.f_frsize
    yield (OK if free > 2 * MEASURED_BYTES else WARN, "free",
           f"{size_text(free)}: room for the state of {count_text(free / STATE_BYTES)} parameters "
           f"({STATE_BYTES} bytes each with AdamW)")
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        yield NO, "writable", (f"no file can be made in {path} ({error.strerror}): name a folder "
                               "that this user may write into")


def count_text(count):
    for unit in ("", " thousand", " million", " billion"):
        if count < 1000 or unit == " billion":
            return f"{count:.3g}{unit}" if count < 1000 else f"{count:,.0f}{unit}"
        count /= 1000


def file_system(path):
    """Name and device of the mount that the path is in; the last line of a mount point counts."""
    found, longest = ("unknown", ""), -1
    real = path.resolve()
    for line in pathlib.Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        point = pathlib.Path(before.split()[4].encode().decode("unicode_escape"))
        if (point == real or point in real.parents) and len(point.parts) >= longest:
            found, longest = tuple(after.split()[:2]), len(point.parts)
    return found


def file_system_line(name, device):
    what = f"{name} on {device}"
    if name in ("tmpfs", "ramfs"):
        return WARN, "file system", (f"{name}, which is memory: a state there is lost with the "
                                     "machine and saves nothing; name a folder on a drive")
    if name == "overlay":
        return WARN, "file system", (f"{what}, the layer of a container: mount a folder of a "
                                     "drive into it (docker run -v)")
    if name in ("nfs", "nfs4", "cifs", "9p", "virtiofs", "lustre") or name.startswith("fuse"):
        return WARN, "file system", f"{what}, over a network or another program: a drive is faster"
    return OK, "file system", what


def transfer_findings(core, path, engine):
    problem = core.direct_io_problem(str(path))
    if problem:
        yield WARN, "O_DIRECT", f"{problem}; or give the optimizer caching=\"buffered\""
    else:
        yield OK, "O_DIRECT", "a page was written around the page cache"
    problem, write_seconds, read_seconds = core.time_transfers(
        str(path), not problem, engine, MEASURED_BYTES)
    if problem:
        yield NO, "64 MiB", problem
        return
    yield (OK, "64 MiB", f"written at {size_text(MEASURED_BYTES / write_seconds)}/s, read at "
                         f"{size_text(MEASURED_BYTES / read_seconds)}/s ({engine}; `sluice "
                         "calibrate` measures a drive properly)")
