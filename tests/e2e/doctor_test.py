#!/usr/bin/env python3
"""`sluice doctor`: what it says of the window is what the window does, in lines that fit."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys

from sluice_run import SLUICE, Skip, main, require, require_equal, require_words, sluice, test

GUI = SLUICE.parent / "sluice-gui"


def window_line(**environment):
    """The line of the window with those that it goes on in, as one."""
    hidden = {key: value for key, value in os.environ.items()
              if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    lines = sluice("doctor", env={**hidden, **environment}).done().out.splitlines()
    at = next(i for i, line in enumerate(lines) if "window (sluice-gui)" in line)
    return " ".join(" ".join(lines[at:]).split())


@test
def no_line_is_longer_than_a_terminal_is_wide(place):
    for line in sluice("doctor", place.path).done().out.splitlines():
        # A path cannot be broken.
        require(len(line) <= 80 or str(place.path) in line or len(line.split()) == 1,
                f"{len(line)}: {line}")


@test
def what_this_process_may_have_is_said_with_the_limit_that_counted(place):
    text = words_of(sluice("doctor", place.path))
    require_words(text, ["yes processors", "memory", "open files", "size of a file no limit"],
                  "doctor")

    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    done = subprocess.run([SLUICE, "doctor", place.path], capture_output=True, text=True,
                          check=False, preexec_fn=limited)
    require_equal(done.returncode, 0, f"exit code ({done.stderr})")
    words = ["no memory", "(RLIMIT_DATA, ulimit -d)", "no open files 128 (RLIMIT_NOFILE",
             "no size of a file 1.05 MB (RLIMIT_FSIZE"]
    if os.cpu_count() > 1:
        words.append(f"processors 1 of {os.cpu_count()} (its affinity")
    require_words(" ".join(done.stdout.split()), words, "doctor")


@test
def a_window_that_cannot_open_is_said_with_what_to_do(_place):
    if not GUI.exists():
        require_words(window_line(), ["no window", str(GUI), "sluice show"], "doctor")
        raise Skip("there is no sluice-gui beside sluice")
    require_words(window_line(), ["no window", "no display", "ssh -X", "sluice show"], "doctor")


@test
def a_program_without_a_window_beside_it_names_what_is_missing(place):
    alone = place / "sluice"
    shutil.copy(SLUICE, alone)
    done = subprocess.run([alone, "doctor"], capture_output=True, text=True, check=False)
    require_equal(done.returncode, 0, f"exit code ({done.stderr})")
    require_words(" ".join(done.stdout.split()), ["no window (sluice-gui) there is no",
                                                  "build the target sluice-gui"], "doctor")


@test
def a_window_that_opens_is_said_with_what_draws_it(_place):
    if not GUI.exists() or shutil.which("xvfb-run") is None:
        raise Skip("there is no sluice-gui or no xvfb-run")
    done = subprocess.run(["xvfb-run", "-a", SLUICE, "doctor"], capture_output=True, text=True,
                          check=False)
    require_equal(done.returncode, 0, f"exit code ({done.stderr})")
    require_words(" ".join(done.stdout.split()), ["yes window (sluice-gui) opens: OpenGL",
                                                  "drawn by"], "doctor")


def words_of(reply):
    return " ".join(reply.done().out.split())


@test
def what_could_compute_is_said_line_by_line(_place):
    text = words_of(sluice("doctor"))
    require_words(text, ["NVIDIA driver", "libtorch with CUDA libtorch 2.", "GPU (device=cuda)",
                         "GPU to GPU", "CUPTI (GPU activity)", "device=soft"], "doctor")
    if not pathlib.Path("/proc/driver/nvidia/version").exists():
        require_words(text, ["no NVIDIA driver there is no /proc/driver/nvidia/version",
                             "no GPU (device=cuda)", "no GPU to GPU not asked"], "doctor")


@test
def a_software_accelerator_is_found_or_named(place):
    missing = place / "nowhere.so"
    text = words_of(sluice("doctor", env={**os.environ,
                                          "SLUICE_SOFT_ACCELERATOR_LIBRARY": str(missing)}))
    require_words(text, ["no device=soft", "nowhere.so", "--target soft_accelerator"], "doctor")
    library = SLUICE.parent.parent / "lib/libsluice_soft_accelerator.so"
    if not library.exists():
        raise Skip("the software accelerator is not built")
    require_words(words_of(sluice("doctor")), ["yes device=soft the software accelerator",
                                               library.name], "doctor")


@test
def a_gpu_that_is_not_there_is_refused_with_one_warning_of_the_recording(place):
    if pathlib.Path("/proc/driver/nvidia/version").exists():
        raise Skip("there is a GPU")
    reply = place.train(device="cuda", record="all")
    reply.refused(2, ["cuda:0", "no GPU", "docs/with_a_gpu.md"])
    warnings = [line for line in reply.err.splitlines() if "warning" in line]
    require(len(warnings) == 1 and "no kernels of the GPU: CUPTI" in warnings[0], f"{warnings}")
    quiet = place.train(device="cuda", record="steps")
    require("CUPTI" not in quiet.err, f"CUPTI was tried: {quiet.err}")


if __name__ == "__main__":
    sys.exit(main())
