#!/usr/bin/env python3
"""The thread that draws never waits for a disk, for /proc or for SQLite: what draws (gui/app,
gui/views, gui/widgets) names no file, and calls what reads files only as work that another thread
does. A header of gui/data says so of its functions with "not the frame thread" in its thread
contract. Breaches are planted to show that they are found."""

import pathlib
import re
import sys
import tempfile

from source_tree import ROOT, Report, cpp_files

FRAME_CODE = ("gui/app/", "gui/views/", "gui/widgets/")
CONTRACT = "not the frame thread"

# Files of frame code that touch a disk all the same, and why no frame waits for it.
EXCEPTIONS = {
    "gui/app/settings.cpp": "before the first frame; a thread of its own writes",
    "gui/app/spare_time.cpp": "on the thread that does not give way",
    "gui/app/screenshot.cpp": "the picture is taken, and the program leaves",
}

# What waits for a file by itself.
TOUCHES_A_FILE = re.compile(
    r"#\s*include\s*<(filesystem|fstream|cstdio|stdio\.h|dirent\.h|fcntl\.h|unistd\.h|sys/stat\.h|"
    r"sys/mman\.h|sqlite3\.h)>|"
    r"\bfilesystem::|\b[io]?fstream\b|\bf?open(dir|at)?\s*\(\s*\"|\bfopen\s*\(|"
    r"(?<!\w)::(open|stat|lstat|read|write|access|opendir|readlink)\s*\(|"
    r"Ini\w*(To|From)Disk|\bstbi_write_\w+|\bsystem\s*\(|\bpopen\s*\(|\brundb::Reader\b")
# Work for another thread: everything between its parentheses.
HANDED_OVER = re.compile(r"(\.begin|do_ordinarily|std::async|std::thread)\s*\(")
DECLARED = re.compile(r"^(?:inline |\[\[nodiscard\]\] )*[\w:<>,&* ]+?[ &*](\w+)\(", re.MULTILINE)


def without_comments(text):
    return re.sub(r"//.*", "", text)


def slow_functions(root):
    """Functions of gui/data whose header keeps them from the frame thread."""
    found = set()
    for name in cpp_files(root):
        text = (root / name).read_text()
        head = re.sub(r"\s*\n//\s*", " ", text)
        contract = re.search(r"Thread contract:[^\n]*", head)
        if name.startswith("gui/data/") and name.endswith(".h") and contract \
                and CONTRACT in contract.group(0):
            found.update(DECLARED.findall(without_comments(text)))
    return found


def without_work_handed_over(text):
    """The same lines, empty between the parentheses of what hands work to another thread."""
    kept = []
    at = 0
    for match in HANDED_OVER.finditer(text):
        if match.start() < at:
            continue
        end = match.end()
        depth = 1
        while depth > 0 and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        kept += [text[at:match.end()], "\n" * text.count("\n", match.end(), end)]
        at = end
    return "".join(kept) + text[at:]


def breaches(root):
    slow = slow_functions(root)
    called = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(sorted(slow))) if slow else None
    found = []
    for name in cpp_files(root):
        if not name.startswith(FRAME_CODE) or name in EXCEPTIONS:
            continue
        text = without_comments((root / name).read_text())
        for number, line in enumerate(text.splitlines(), 1):
            match = TOUCHES_A_FILE.search(line)
            if match:
                found.append(f"{name}:{number}: {match.group(0).strip()} on the frame thread")
        lines = without_work_handed_over(text).splitlines()
        for number, line in enumerate(lines, 1) if called else ():
            match = called.search(line)
            if match:
                found.append(f"{name}:{number}: {match.group(1)}() is {CONTRACT}'s")
    return found


PLANTED_HEADER = """// Runs.
//
// Thread contract: free functions that read /proc; not the frame
// thread.
#include <string>
std::vector<std::string> live_runs();
inline Known look_for_runs(const std::string& before);
"""
PLANTED = [
    ("#include <filesystem>\n", True),
    ("  const bool is_there = std::filesystem::exists(path, error);\n", True),
    ("  std::ifstream file(path);\n", True),
    ("  const int file = ::open(path.c_str(), O_RDONLY);\n", True),
    ("  auto reader = rundb::Reader::open(path);\n", True),
    ("  live_ = live_runs();\n", True),
    ("  known_.begin([=] { return 1; }, wake);\n  known = look_for_runs(recent);\n", True),
    ("  known_.begin([recent] {\n    return look_for_runs(recent);\n  }, Window::wake);\n", False),
    ("  spare_time_.do_ordinarily([run] { live_runs(); });\n", False),
    ("  look_for_runs_again();  // live_runs() is asked by another thread\n", False),
    ("  if (is_open()) box_.open();\n", False),
]


def misjudged_plants():
    with tempfile.TemporaryDirectory(prefix="sluice-frame-") as scratch:
        root = pathlib.Path(scratch)
        for folder in ("gui/data", "gui/views"):
            (root / folder).mkdir(parents=True)
        (root / "gui/data/live_runs.h").write_text(PLANTED_HEADER)
        problems = []
        for text, is_breach in PLANTED:
            (root / "gui/views/planted.cpp").write_text(text)
            if bool(breaches(root)) != is_breach:
                problems.append(f"{'nothing' if is_breach else 'something'} was said about: {text}")
        return problems


def stale_exceptions():
    return [f"{name} touches no file: it needs no exception" for name in EXCEPTIONS
            if not TOUCHES_A_FILE.search(without_comments((ROOT / name).read_text()))]


def main():
    report = Report()
    report.check("planted breaches of the frame thread are found", misjudged_plants())
    slow = slow_functions(ROOT)
    wanted = {"live_runs", "look_for_runs", "start_run", "export_run", "compare_two_runs"}
    report.check("headers say what is not for the frame thread",
                 [f"{name} is missing" for name in sorted(wanted - slow)])
    report.check("what draws waits for no file", breaches(ROOT))
    report.check("each exception is one", stale_exceptions())
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
