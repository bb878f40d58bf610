#!/usr/bin/env python3
"""Each header compiles alone, so that no file depends on what happens to be included before it.
A header that some source file includes before all others is compiled alone by the build, so only
the rest are compiled here. Headers that lead to libtorch are left out: the programs that include
them compile them. So are those that lead to CUPTI, to XRT or to the GUI's libraries, where they are
not installed."""
# Only with --all: 161 headers alone take five minutes of processor time.

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

from source_tree import ROOT, Report, cpp_files, includes

PACKAGES = ["tomlplusplus", "sqlite3", "liburing", "libxxhash", "libhwy"]
TORCH = ("torch/", "ATen/", "c10/")
CUPTI = ("cupti",)
XRT = ("xrt", "xclbin.h", "ert.h", "version.h")
GUI = ("imgui", "implot", "misc/cpp/imgui", "GLFW/", "backends/imgui")
# Where scripts/env.sh says they are.
GUI_SOURCES = pathlib.Path(os.environ.get("SLUICE_GUI_SOURCES") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
    "sluice/imgui-bundle-1.93.0"))
XRT_FOLDERS = ("/usr/include/xrt", "/opt/xilinx/xrt/include")  # as cmake/SluiceXrt.cmake
# Where profiler/cupti/CMakeLists.txt looks, besides CUDAToolkit_ROOT.
CUPTI_FOLDERS = ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include", "/usr/include")


def package_flags():
    """Flags of the packages that are there; a header that needs another one fails by name."""
    flags = []
    for package in PACKAGES:
        said = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True,
                              check=False)
        if said.returncode == 0:
            flags += said.stdout.split()
    return flags


def cupti_flags():
    """None where CUPTI's headers are not."""
    for folder in CUPTI_FOLDERS:
        if (pathlib.Path(folder) / "cupti.h").is_file():
            return ["-isystem", folder]
    return None


def xrt_flags():
    """None where XRT's headers are not."""
    for folder in XRT_FOLDERS:
        if (pathlib.Path(folder) / "xrt/xrt_bo.h").is_file():
            return ["-isystem", folder]
    return None


def gui_flags():
    """None where the GUI's libraries are not."""
    external = GUI_SOURCES / "external"
    if not (external / "imgui/imgui/imgui.h").is_file():
        return None
    folders = ("imgui/imgui", "implot/implot", "imgui_test_engine/imgui_test_engine")
    return [flag for folder in folders for flag in ("-isystem", str(external / folder))]


def leads_to(library, name, seen=()):
    for _, include, is_ours in includes(ROOT / name):
        if not is_ours and include.startswith(library):
            return True
        if is_ours and include not in seen and (ROOT / include).is_file():
            if leads_to(library, include, (*seen, include)):
                return True
    return False


def compiled_first():
    """Headers with which a source file begins; tidy_test.py holds that every one is built."""
    firsts = (includes(ROOT / name)[:1] for name in cpp_files(ROOT) if name.endswith(".cpp"))
    return {include for first in firsts for _, include, is_ours in first if is_ours}


def first_error(name, flags):
    """None if the header compiles by itself."""
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}", "-Wno-unknown-pragmas", *flags,
               '-DSLUICE_SOURCE_DIR="."', "-x", "c++", "-"]  # what test programs get
    said = subprocess.run(command, input=f'#include "{name}"\n', capture_output=True, text=True,
                          check=False)
    if said.returncode == 0:
        return None
    errors = [line for line in said.stderr.splitlines() if "error:" in line]
    return (errors or said.stderr.splitlines() or ["g++ failed"])[0].replace(f"{ROOT}/", "")


def main():
    report = Report()
    if shutil.which("g++") is None:
        report.skip("each header compiles alone", "there is no g++")
        return 0
    left_out = TORCH
    flags = package_flags() + ["-isystem", str(ROOT / "hls/sim/include")]
    for library, found in ((CUPTI, cupti_flags()), (XRT, xrt_flags()), (GUI, gui_flags())):
        left_out = left_out if found is not None else left_out + library
        flags += found or []
    # An -inl.h is for including again and again by one source file (Highway's idiom).
    by_the_build = compiled_first()
    headers = [name for name in cpp_files(ROOT)
               if name.endswith(".h") and not name.endswith("-inl.h") and name not in by_the_build
               and not leads_to(left_out, name)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        errors = list(pool.map(lambda name: first_error(name, flags), headers))
    report.check(f"each of {len(headers)} headers with which no source file begins compiles alone",
                 [error for error in errors if error is not None])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
