#!/usr/bin/env python3
"""Holds includes and CMake links to the house: which folder may use which, and which folder owns
which foreign library. A breach is planted in a copy to show that it is found. pages_test.py holds
docs/architecture.md to the same tables."""

import pathlib
import re
import sys
import tempfile

from source_tree import ROOT, Report, cpp_files, includes, tracked_files

# Folder -> what it may use, directly. Longest folder name wins, so core/model/gpt2 is not
# core/model. A folder that holds code and is not here is a breach.
STORAGE = {"storage/io", "storage/state"}
CORE_WITHOUT_TORCH = {
    "core/toml_file", "core/platform", "core/control", "core/stages", "core/runtime",
    "core/collective",
    "core/optimizer", "core/compress", "core/csd", "core/offload",
    "core/model", "core/activation", "core/data", "core/weights", "core/settings",
    "core/plan", "core/session", "core/train",
    "core/simulate", "core/tune", "core/replay", "core/shard", "core/answers",
}
OFFLOAD_MAY = {"base", "profiler/record", *STORAGE, "core/platform", "core/stages",
               "core/runtime", "core/optimizer", "core/compress", "core/csd", "core/model"}
PLAN_MAY = {*OFFLOAD_MAY, "core/activation", "core/offload", "core/settings", "core/shard",
            "core/weights"}
MAY_USE = {
    "base": set(),
    "storage/io": {"base"},
    "storage/state": {"base", "storage/io"},
    "storage/rundb": {"base"},
    "profiler/record": set(),
    "core/toml_file": {"base"},
    "core/platform": {"base", "core/toml_file"},
    "core/control": {"base"},
    "core/stages": {"base"},
    "core/runtime": {"base", "profiler/record", "storage/io", "core/platform", "core/stages"},
    "core/collective": {"base", "core/stages", "core/runtime"},
    "core/optimizer": {"base"},
    "core/compress": {"base", "core/optimizer"},
    "core/csd": {"base", "profiler/record", *STORAGE, "core/platform", "core/stages",
                 "core/runtime", "core/optimizer", "core/compress"},
    # What becomes hardware knows nothing of the project outside hls/.
    "hls/sim": set(),
    "hls/kernels": {"hls/sim"},
    "hls/link": {"base"},
    # Software that stands in for hardware, behind the libraries of the hardware's vendors.
    "soft": {"base"},
    "soft/accelerator": {"base", "soft"},
    "soft/smartssd": {"base", "soft", "core/platform", "hls/sim", "hls/link"},
    "soft/smartssd/kernels": {"hls/kernels", "soft/smartssd"},
    "hls/host": {"base", "profiler/record", *STORAGE, "core/platform", "core/stages",
                 "core/runtime", "core/optimizer", "core/compress", "core/csd", "hls/link"},
    "core/calibrate": {"base", *STORAGE, "core/platform", "core/optimizer", "core/compress",
                       "core/csd", "core/model"},
    "core/calibrate/ranks": {"base", "core/runtime", "core/platform", "core/collective",
                             "core/shard"},
    "core/model": {"base", "core/toml_file", "storage/io"},
    "core/model/torch": {"base", "core/optimizer", "core/model", "storage/io"},
    "core/model/gpt2": {"base", "core/model", "core/model/torch", "storage/io"},
    "core/model/bert": {"base", "core/model", "core/model/torch", "storage/io"},
    "core/model/llama": {"base", "core/model", "core/model/torch", "storage/io"},
    "core/model/t5": {"base", "core/model", "core/model/torch", "storage/io"},
    "core/model/library": {"base", "storage/io", "core/model", "core/model/bert",
                           "core/model/gpt2",
                           "core/model/llama", "core/model/t5", "core/model/torch"},
    "core/activation": {"base", *STORAGE, "core/platform", "core/stages", "core/runtime",
                        "core/csd", "core/model"},
    "core/offload": OFFLOAD_MAY,
    "core/shard": {"base", *STORAGE, "core/platform", "core/runtime", "core/optimizer",
                   "core/model", "core/collective"},
    "core/data": {"base", *STORAGE, "core/model"},
    "core/weights": {"base", "storage/io", "core/model"},
    "core/settings": {"base", "profiler/record", *STORAGE, "core/toml_file", "core/control",
                      "core/optimizer", "core/model", "core/offload"},
    "core/plan": PLAN_MAY,
    # A run without model, text and command line.
    "core/session": {*PLAN_MAY, "storage/rundb", "profiler/collect", "profiler/analyze",
                     "profiler/cupti", "profiler/sample", "core/plan", "core/control"},
    "core/train": {*PLAN_MAY, "core/plan", "core/data", "core/session", "core/collective"},
    "core/simulate": {*PLAN_MAY, "core/plan", "core/train", "core/collective", "core/shard"},
    "core/tune": {*PLAN_MAY, "storage/rundb", "profiler/analyze", "core/control", "core/plan",
                  "core/session", "core/train", "core/simulate", "core/collective", "core/shard"},
    # Any program's record: the analysis' rows and the runtime's costs, and nothing of our schedule.
    "core/replay": {"base", "storage/rundb", "profiler/analyze", "core/platform", "core/stages",
                    "core/runtime"},
    "core/answers": {"base", "storage/rundb", "core/activation", "core/model", "core/offload",
                     "core/plan", "core/platform", "core/replay", "core/stages", "core/runtime",
                     "core/session", "core/settings", "core/simulate", "core/train", "core/tune",
                     "profiler/analyze", "profiler/answers"},
    "profiler/collect": {"base", "profiler/record", "storage/rundb"},
    "profiler/sample": {"base", "profiler/record", "storage/rundb"},
    "profiler/c_api": {"base", "storage/rundb", "profiler/record", "profiler/collect"},
    "profiler/inject": {"base", "storage/rundb", "profiler/record", "profiler/collect",
                        "profiler/c_api", "profiler/cupti", "profiler/sample"},
    "profiler/analyze": {"base", "storage/rundb"},
    "profiler/runs": {"base", "storage/rundb", "profiler/analyze"},
    "profiler/cupti": {"base", "profiler/record"},
    "profiler/answers": {"base", "storage/rundb", "profiler/analyze"},
    "profiler/report": {"base", "storage/rundb", "profiler/analyze", "profiler/runs",
                        "profiler/answers"},
    "profiler/watch": {"base", "storage/rundb", "profiler/analyze"},
    "profiler/relay": {"base", "storage/rundb"},
    # Neither core/model/gpt2 nor a device's library: a window opens a run of any machine.
    "gui/data": {"base", "storage/rundb", "profiler/analyze", "profiler/runs", "profiler/relay",
                 "profiler/report", "core/control", "core/settings", "core/tune"},
    "gui/widgets": {"base"},
    "gui/views": {"base", "storage/rundb", "profiler/analyze", "profiler/runs", "core/control",
                  "gui/data", "gui/widgets"},
    "gui/app": {"base", "storage/rundb", "profiler/analyze", "profiler/runs", "core/control",
                "gui/data", "gui/widgets", "gui/views"},
    "mcp": {"base", "storage/rundb", "profiler/analyze", "profiler/runs", "profiler/answers",
            "core/answers", "core/control", "core/settings", "core/tune"},
    "examples": {"core/session"},
    # No libtorch: whatever torch a program has, tensors come by DLPack.
    "python": {"base", "core/activation", "core/session", "core/optimizer", "storage/io"},
    "cli": {"base", "hls/host", *STORAGE, "storage/rundb", "profiler/record", "profiler/collect",
            "profiler/c_api", "profiler/analyze", "profiler/answers", "profiler/cupti",
            "profiler/relay", "profiler/report", "profiler/runs", "profiler/sample",
            "profiler/watch", "core/calibrate", "core/calibrate/ranks", "mcp", *CORE_WITHOUT_TORCH},
}
# They compare ours with others', so they may use all of it.
EXEMPT = ("tests/", "bench/")

# A foreign library, its includes, and the folders that own it.
FOREIGN_OWNERS = [
    ("libtorch", r"(torch|ATen|c10)/", {"core/model/torch", "core/model/bert", "core/model/gpt2",
                                         "core/model/llama", "core/model/t5", "core/model/library",
                                         "soft/accelerator"}),
    ("SQLite", r"sqlite3\.h", {"storage/rundb"}),
    ("liburing", r"liburing(\.h|/)", {"storage/io", "profiler/inject"}),
    ("xxHash", r"xxhash\.h", {"storage/state", "core/data"}),
    ("toml++", r"toml\+\+/", {"core/toml_file", "core/platform", "core/model", "core/settings"}),
    ("Highway", r"hwy/", {"core/optimizer", "core/compress"}),
    ("Dear ImGui, ImPlot",
     r"(imgui|imgui_internal|imgui_stdlib|implot)\.h|misc/cpp/imgui_stdlib\.h",
     {"gui/widgets", "gui/views", "gui/app"}),
    ("GLFW, OpenGL", r"(GLFW/|backends/imgui_impl_|imstb_image_write\.h)", {"gui/app"}),
    ("CLI11", r"CLI/", {"cli", "gui/app"}),
    ("nlohmann-json", r"nlohmann/",
     {"cli", "core/answers", "core/control", "core/weights", "gui/data", "mcp", "profiler/answers",
      "profiler/report"}),
    ("zlib", r"zlib\.h", {"profiler/report"}),
    ("CUPTI", r"(cupti\w*|cuda)\.h", {"profiler/cupti"}),
    ("Vitis HLS's headers or stand-ins", r"hls_(vector|stream)\.h", {"hls/kernels"}),
    ("XRT", r"(xrt/|experimental/xrt|(ert|xclbin|xrt|xrt_mem|version)\.h|uuid/|boost/)",
     {"hls/host", "soft/smartssd", "hls/link"}),
    ("MPI", r"mpi\.h", {"core/collective"}),
    ("nanobind", r"nanobind/", {"python"}),
    ("fmt, tl::expected", r"(fmt|tl)/",
     set(MAY_USE) - {"profiler/record", "hls/kernels", "hls/sim", "soft/smartssd/kernels"}),
]
# The C++ library has no dot in its names; these are the kernel's and the C library's.
SYSTEM_HEADERS = re.compile(
    r"[a-z_]+|(sys|linux|arpa|netinet)/\w+\.h|(dirent|errno|fcntl|poll|pthread|sched|signal|spawn|"
    r"stddef|stdint|stdio|stdlib|string|time|unistd|termios|x86intrin|immintrin|cpuid|math|getopt|"
    r"dlfcn|fnmatch|cxxabi|link|elf|malloc)\.h")

# Highway wants its own headers in quotes, so quotes alone do not make an include ours.
TOP_FOLDERS = {"base", "storage", "core", "profiler", "gui", "hls", "soft", "mcp", "cli",
               "examples",
               "python", "tests", "bench"}

# CMake target -> the include that it stands for, or None where there is nothing to own.
FOREIGN_TARGETS = {
    "fmt::fmt": "fmt/core.h", "tl::expected": "tl/expected.hpp",
    "PkgConfig::liburing": "liburing.h", "PkgConfig::xxhash": "xxhash.h",
    "PkgConfig::sqlite3": "sqlite3.h", "PkgConfig::highway": "hwy/highway.h",
    "PkgConfig::tomlplusplus": "toml++/toml.h", "nlohmann_json::nlohmann_json": "nlohmann/json.hpp",
    "ZLIB::ZLIB": "zlib.h",
    "sluice_gui_headers": "imgui.h", "sluice_imgui": "imgui.h",
    "sluice_imgui_parts": "imgui.h", "glfw": "GLFW/glfw3.h",
    "CLI11::CLI11": "CLI/CLI.hpp", "${TORCH_LIBRARIES}": "torch/torch.h", "torch": "torch/torch.h",
    "torch_library": "torch/torch.h", "sluice_torch": "torch/torch.h",
    # What storage/rundb needs, for the one library that has its objects inside.
    "${SLUICE_STATIC_SQLITE}": None,
    "${CMAKE_DL_LIBS}": None, "Threads::Threads": None, "sluice_warnings": None,
    "sluice_mpi": "mpi.h",
    "sluice_xrt": "xrt/xrt_bo.h", "sluice_xrt_headers": "xrt/xrt_bo.h",
}
SCOPES = {"PUBLIC", "PRIVATE", "INTERFACE"}


def folder_of(path):
    """The folder of the house that a file is in: the longest that is known, else its own."""
    parent = pathlib.PurePosixPath(path).parent
    for candidate in (parent, *parent.parents):
        if str(candidate) in MAY_USE:
            return str(candidate)
    return str(parent)


def is_exempt(path):
    return path.startswith(EXEMPT)


def foreign_owners(include):
    """The folders that may use a foreign include; None for the system's own."""
    for _, pattern, owners in FOREIGN_OWNERS:
        if re.match(pattern, include):
            return owners
    return None if SYSTEM_HEADERS.fullmatch(include) else set()


def include_breaches(root):
    breaches = []
    for name in cpp_files(root):
        if is_exempt(name):
            continue
        folder = folder_of(name)
        if folder not in MAY_USE:
            breaches.append(f"{name}: folder {folder} has no place in the table of layers_test.py")
            continue
        for line, include, is_ours in includes(root / name):
            if is_ours and include.split("/")[0] in TOP_FOLDERS:
                used = folder_of(include)
                if used != folder and used not in MAY_USE[folder]:
                    breaches.append(f"{name}:{line}: {folder} may not use {used} ({include})")
            else:
                owners = foreign_owners(include)
                if owners is not None and folder not in owners:
                    breaches.append(f"{name}:{line}: <{include}> belongs to "
                                    f"{', '.join(sorted(owners)) or 'no folder'}, not to {folder}")
    return breaches


def link_lists(root):
    """Target -> (CMake file, all that it links, the part of it that its users get too, whether it
    is a folder's own target and no helper beside it)."""
    links = {}
    for name in tracked_files(root):
        if pathlib.PurePosixPath(name).name != "CMakeLists.txt" or is_exempt(name):
            continue
        text = re.sub(r"#.*", "", (root / name).read_text())
        for body in re.findall(r"sluice_library\s*\(([^)]*)\)", text):
            add_sluice_library(links, name, body.split())
        for body in re.findall(r"target_link_libraries\s*\(([^)]*)\)", text):
            target, *linked = re.sub(r"\$<LINK_ONLY:([^>]*)>", r"\1", body).split()
            entry = links.setdefault(target, (name, set(), set(), False))
            entry[1].update(set(linked) - SCOPES)
    return links


def add_sluice_library(links, name, words):
    section = None
    target = None
    lists = {"LINKS": set(), "PRIVATE_LINKS": set(), "SOURCES": set(), "HEADERS": set(),
             "ALONE": set()}
    for word in words:
        if word == "NAME" or word in lists:
            section = word
        elif section == "NAME":
            target = word
        elif section in lists:
            lists[section].add(word)
    entry = links.setdefault(target, (name, set(), set(), True))
    entry[1].update(lists["LINKS"] | lists["PRIVATE_LINKS"])
    entry[2].update(lists["LINKS"])


def target_of(folder):
    return folder.replace("/", "_")


def folder_of_target(target):
    return next((folder for folder in MAY_USE if target_of(folder) == target), None)


def link_breaches(root):
    breaches = []
    links = link_lists(root)
    for target, (name, linked, _, is_main) in links.items():
        folder = folder_of(name)
        if folder not in MAY_USE:
            continue
        if is_main and target != target_of(folder):
            breaches.append(f"{name}: target {target} should be {target_of(folder)}")
        for library in sorted(linked - {target}):
            is_helper = library in links and links[library][0] == name
            if not is_helper and not may_link(folder, library):
                breaches.append(f"{name}: {folder} may not link {library}")
    return breaches


def may_link(folder, library):
    """A library that this file does not know may be linked by nobody."""
    used = folder_of_target(library)
    if used is not None:
        return used == folder or used in MAY_USE[folder]
    if library not in FOREIGN_TARGETS:
        return False
    include = FOREIGN_TARGETS[library]
    return include is None or folder in foreign_owners(include)


def reachable_targets(links, target):
    """What a target gets: its own links, and what those hand on."""
    reached = set()
    waiting = list(links[target][1])
    while waiting:
        library = waiting.pop()
        if library not in reached:
            reached.add(library)
            waiting.extend(links[library][2] if library in links else ())
    return reached


def unlinked_includes(root):
    """Includes of a folder that the link line does not name: they compile by luck."""
    links = link_lists(root)
    breaches = []
    for name in cpp_files(root):
        folder = folder_of(name)
        target = target_of(folder)
        if is_exempt(name) or target not in links:
            continue
        reached = {folder_of_target(library) for library in reachable_targets(links, target)}
        for line, include, is_ours in includes(root / name):
            used = folder_of(include)
            if is_ours and used != folder and used in MAY_USE and used not in reached:
                breaches.append(f"{name}:{line}: includes {include}, but {target} does not link "
                                f"{target_of(used)}")
    return breaches


# What is planted, and what must be said about it.
PLANTED = [
    ("base/planted.h", '#include "core/platform/platform.h"\n', "base may not use core/platform"),
    ("python/planted.cpp", '#include "core/offload/offload.h"\n',
     "python may not use core/offload"),
    ("core/session/planted.cpp", "#include <nanobind/nanobind.h>\n", "belongs to python"),
    ("storage/io/planted.h", '#include "storage/state/state_store.h"\n',
     "storage/io may not use storage/state"),
    ("storage/state/planted.cpp", "#include <torch/types.h>\n", "<torch/types.h> belongs to"),
    ("core/offload/planted.cpp", "  # include <sqlite3.h>\n", "<sqlite3.h> belongs to"),
    ("core/model/planted.h", '#include "core/model/gpt2/gpt2.h"\n',
     "core/model may not use core/model/gpt2"),
    ("core/csd/planted.h", '#include "hwy/highway.h"\n', "<hwy/highway.h> belongs to"),
    ("profiler/record/planted.h", "#include <fmt/format.h>\n", "<fmt/format.h> belongs to"),
    ("core/csd/planted.cpp", "#include <somebody/new.hpp>\n", "belongs to no folder"),
    ("profiler/collect/planted.h", "#include <cupti.h>\n", "<cupti.h> belongs to"),
    ("gui/data/planted.h", "#include <imgui.h>\n", "<imgui.h> belongs to"),
    ("gui/views/planted.h", '#include "core/model/gpt2/gpt2.h"\n',
     "gui/views may not use core/model/gpt2"),
    ("gui/widgets/planted.h", '#include "gui/data/run_feed.h"\n',
     "gui/widgets may not use gui/data"),
    ("hls/kernels/planted.h", '#include "base/units.h"\n', "hls/kernels may not use base"),
    ("hls/kernels/planted.cpp", "#include <xrt/xrt_bo.h>\n", "<xrt/xrt_bo.h> belongs to"),
    ("core/csd/planted_hls.cpp", "#include <hls_stream.h>\n", "<hls_stream.h> belongs to"),
    ("core/runtime/planted.cpp", "#include <mpi.h>\n", "<mpi.h> belongs to"),
    ("core/collective/planted.h", '#include "core/offload/offload.h"\n',
     "core/collective may not use core/offload"),
    ("core/novel/planted.h", "#include <vector>\n", "core/novel has no place"),
    ("core/optimizer/CMakeLists.txt",
     "sluice_library(NAME core_optimizer\n  SOURCES a.cpp LINKS base PRIVATE_LINKS core_train)\n",
     "core/optimizer may not link core_train"),
    ("storage/rundb/CMakeLists.txt",
     "sluice_library(NAME storage_rundb SOURCES a.cpp LINKS base PkgConfig::liburing)\n",
     "storage/rundb may not link PkgConfig::liburing"),
    ("core/data/CMakeLists.txt", "sluice_library(NAME core_data LINKS base libnovel)\n",
     "core/data may not link libnovel"),
    ("core/csd/CMakeLists.txt", "sluice_library(NAME devices LINKS base)\n",
     "target devices should be core_csd"),
    ("core/platform/CMakeLists.txt", "sluice_library(NAME core_platform SOURCES a.cpp)\n", None),
    ("core/platform/planted.cpp", '#include "base/units.h"\n',
     "core_platform does not link base"),
]


def all_breaches(root):
    return include_breaches(root) + link_breaches(root) + unlinked_includes(root)


def unfound_plants():
    """Planted breaches that the checks miss, and clean files that they blame."""
    with tempfile.TemporaryDirectory(prefix="sluice-layers-") as scratch:
        root = pathlib.Path(scratch)
        for name, text, _ in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "cli").mkdir()
        (root / "cli/main.cpp").write_text('#include "base/units.h"\n#include <CLI/CLI.hpp>\n')
        found = all_breaches(root)
        missed = [f"nothing was said about {name}" for name, _, expected in PLANTED
                  if expected and not any(name in b and expected in b for b in found)]
        return missed + [breach for breach in found if breach.startswith("cli/")]


def main():
    report = Report()
    report.check("planted breaches of the layers are found", unfound_plants())
    report.check("includes keep to the layers and to the owners of foreign libraries",
                 include_breaches(ROOT))
    report.check("CMake links keep to the layers", link_breaches(ROOT))
    report.check("what is included is linked", unlinked_includes(ROOT))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
