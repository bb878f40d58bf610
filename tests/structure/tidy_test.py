#!/usr/bin/env python3
"""Small rules that a reader relies on, held by machine. Each rule is tried on lines that break it
before it is put to the tree."""

import os
import pathlib
import re
import subprocess
import sys

from source_tree import ROOT, Report, cpp_files, tracked_files

LINE_LENGTH = 100
CLANG_FORMAT_VERSION = "19.1.7"

# Written so that this file does not contain what it forbids.
FORBIDDEN_WORDS = {
    "compression" + "_ratio": "say density, and of what",
    "TO" + "DO": "finish it or leave it out",
    "FIX" + "ME": "finish it or leave it out",
}
# A home folder or a workplace of one machine; what every machine has (/tmp, /sys, /usr) is fine.
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(?:home/\w|root/|Users/\w|work/)")
NOLINT = re.compile(r"\bNOLINT")
NOLINT_WITH_REASON = re.compile(r"\bNOLINT(?:NEXTLINE|BEGIN|END)?\([\w.,\- *]+\):? +\w")
BEGINS_WITH_OF = re.compile(r"(?://|#)(?: .*[.:!?])? Of [a-z]")
# Questions to the machine, whose answer may be more than this process may have.
ASKS_MACHINE = re.compile(r"hardware_concurrency|_SC_PHYS_PAGES|_SC_NPROCESSORS|MemAvailable")
MAY_ASK_MACHINE = ("base/process_limits.", "tests/", "bench/")
BINARY_SUFFIXES = (".png", ".jpg", ".gz", ".db", ".safetensors")
MERGE_MARKS = ("<" * 7 + " ", ">" * 7 + " ")


def forbidden_words(line):
    return [f"'{word}' ({advice})" for word, advice in FORBIDDEN_WORDS.items()
            if re.search(rf"\b{word}\b", line)]


def has_machine_path(line):
    return MACHINE_PATH.search(line) is not None


def lacks_nolint_reason(line):
    return NOLINT.search(line) is not None and NOLINT_WITH_REASON.search(line) is None


def begins_with_of(line):
    """A comment whose sentence has its subject behind it. Also in the middle of a comment line."""
    return BEGINS_WITH_OF.search(line) is not None


def asks_machine(line):
    return ASKS_MACHINE.search(line) is not None


def is_too_long(line):
    return len(line) > LINE_LENGTH


def is_left_of_a_merge(line):
    return line.startswith(MERGE_MARKS)


def lacks_thread_contract(text):
    """The comment that a header opens with says which thread may use it."""
    opening = []
    for line in text.splitlines():
        if line.startswith("//"):
            opening.append(line)
        elif line.strip() and not line.startswith("#pragma once"):
            break
    return "thread contract" not in "\n".join(opening).lower()


def missed_by_rules():
    """Lines that a rule judges wrongly."""
    cases = [
        (forbidden_words, f"int {'compression' + '_ratio'} = 1;", True),
        (forbidden_words, "double density = 0.01;", False),
        (has_machine_path, 'open("/home/' + 'ann/x")', True),
        (has_machine_path, 'path = "/wo' + 'rk/x"', True),
        (has_machine_path, 'open("/tmp/x"); // up/root/x and $HOME/wo' + 'rk/x', False),
        (lacks_nolint_reason, "int x;  // NO" + "LINT", True),
        (lacks_nolint_reason, "int x;  // NO" + "LINT(some-check)", True),
        (lacks_nolint_reason, "int x;  // NO" + "LINT(some-check): the kernel writes it", False),
        (begins_with_of, "// O" + "f a kernel that runs.", True),
        (begins_with_of, "int x;  // What it is. O" + "f three.", True),
        (begins_with_of, "// Each of a kernel's. Off it goes.", False),
        (asks_machine, "count = std::thread::hardware_concurrency();", True),
        (asks_machine, "count = usable_processor_count();", False),
        (is_too_long, "x" * 101, True),
        (is_too_long, "x" * 100, False),
        (is_left_of_a_merge, "<" * 7 + " HEAD", True),
        (is_left_of_a_merge, "=" * 7, False),
        (lacks_thread_contract, "#pragma once\n// What it is.\n\nint x;  // Thread contract", True),
        (lacks_thread_contract, "#pragma once\n// Thread contract: plain data.\nint x;", False),
    ]
    return [f"{rule.__name__} on: {line}" for rule, line, wanted in cases
            if bool(rule(line)) != wanted]


def text_lines():
    """(file, line number, line) of every text file."""
    for name in tracked_files(ROOT):
        if name.endswith(BINARY_SUFFIXES):
            continue
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            yield name, number, line


def word_problems():
    return [f"{name}:{number}: {word}" for name, number, line in text_lines()
            for word in forbidden_words(line)]


def merge_problems():
    return [f"{name}:{number}" for name, number, line in text_lines() if is_left_of_a_merge(line)]


def path_problems():
    return [f"{name}:{number}" for name, number, line in text_lines() if has_machine_path(line)]


def nolint_problems():
    return [f"{name}:{number}" for name, number, line in text_lines()
            if name.endswith((".h", ".cpp")) and lacks_nolint_reason(line)]


def sentence_problems():
    return [f"{name}:{number}" for name, number, line in text_lines()
            if name.endswith((".h", ".cpp", ".py", ".sh")) and begins_with_of(line)]


def machine_problems():
    return [f"{name}:{number}" for name, number, line in text_lines()
            if name.endswith((".h", ".cpp")) and not name.startswith(MAY_ASK_MACHINE)
            and asks_machine(line)]


def without_raw_strings(text):
    """The same lines, empty inside raw strings of C++: those hold other languages."""
    return re.sub(r'R"(\w*)\(.*?\)\1"', lambda found: "\n" * found.group(0).count("\n"), text,
                  flags=re.DOTALL)


def length_problems():
    is_code = re.compile(r".*\.(h|cpp|py|sh|sql|js)$|run|test|scripts/setup|\.ci/run")
    problems = []
    for name in tracked_files(ROOT):
        if is_code.fullmatch(name):
            lines = without_raw_strings((ROOT / name).read_text()).splitlines()
            problems += [f"{name}:{number} ({len(line)})" for number, line in enumerate(lines, 1)
                         if is_too_long(line)]
    return problems


def pragma_problems():
    """Headers whose first line that is no comment is not the guard."""
    problems = []
    for name in cpp_files(ROOT):
        if not name.endswith(".h") or name.endswith("-inl.h"):
            continue
        code = [line for line in (ROOT / name).read_text().splitlines()
                if line.strip() and not line.lstrip().startswith("//")]
        if not code or code[0].strip() != "#pragma once":
            problems.append(name)
    return problems


def contract_problems():
    """Headers for others than their own folder, without a thread contract."""
    return [name for name in cpp_files(ROOT)
            if name.endswith(".h") and not name.startswith(("tests/", "bench/"))
            and "/detail/" not in name and lacks_thread_contract((ROOT / name).read_text())]


def orphans():
    """Source files that no CMakeLists.txt, in their folder or above, names: they are not built."""
    problems = []
    for name in cpp_files(ROOT):
        path = pathlib.PurePosixPath(name)
        if path.suffix != ".cpp":
            continue
        named = False
        for folder in path.parents:
            cmake = ROOT / folder / "CMakeLists.txt"
            relative = str(path.relative_to(folder))
            if cmake.is_file():
                text = re.sub(r"#.*", "", cmake.read_text())
                named = named or re.search(rf"(?<![\w/.]){re.escape(relative)}(?![\w.])", text)
        if not named:
            problems.append(name)
    return problems


def script_problems():
    """A file that says what runs it can be run, and a test script that cannot is never run."""
    problems = []
    for name in tracked_files(ROOT):
        path = ROOT / name
        with path.open("rb") as file:
            is_script = file.read(2) == b"#!"
        if is_script != os.access(path, os.X_OK):
            problems.append(f"{name} is {'not ' if is_script else ''}executable")
        if re.fullmatch(r"tests/.*_test\.(py|sh)", name) and not is_script:
            problems.append(f"{name} has no #! line")
    return problems


def bash_problems():
    problems = []
    for name in tracked_files(ROOT):
        text = (ROOT / name).read_bytes()
        if name.endswith(".sh") or text.startswith(b"#!/usr/bin/env bash"):
            said = subprocess.run(["bash", "-n", str(ROOT / name)], capture_output=True, text=True,
                                  check=False)
            if said.returncode != 0:
                problems.append(said.stderr.strip().splitlines()[0])
    return problems


def check_format(report):
    name = f"C++ is as clang-format {CLANG_FORMAT_VERSION} leaves it"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    venv = os.environ.get("SLUICE_VENV") or str(cache / "sluice/venv")
    program = pathlib.Path(venv) / "bin/clang-format"
    if not program.exists():
        report.skip(name, f"there is no {program} (scripts/setup installs it)")
        return
    version = subprocess.run([str(program), "--version"], capture_output=True, text=True,
                             check=False).stdout
    if CLANG_FORMAT_VERSION not in version:
        report.skip(name, f"this one is {version.strip()}")
        return
    said = subprocess.run([str(program), "--dry-run", "--Werror", *cpp_files(ROOT)], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    named = re.findall(r"^(\S+?):\d+:\d+: error", said.stderr, re.MULTILINE)
    problems = [f"{file} (run clang-format -i)" for file in sorted(set(named))]
    if said.returncode != 0 and not problems:
        problems = [said.stderr.strip() or "clang-format failed"]
    report.check(name, problems)


def main():
    report = Report()
    report.check("the rules find what breaks them", missed_by_rules())
    report.check("every source file is under a CMake target", orphans())
    report.check("every header begins with #pragma once", pragma_problems())
    report.check("every public header has a thread contract", contract_problems())
    report.check(f"code has at most {LINE_LENGTH} columns", length_problems())
    report.check("words to avoid are avoided", word_problems())
    report.check("no sentence of a comment has its subject behind it", sentence_problems())
    report.check("no mark of a merge is left", merge_problems())
    report.check("no path of somebody's machine", path_problems())
    report.check("what a process may have is asked in base/process_limits", machine_problems())
    report.check("each switched-off warning has its reason", nolint_problems())
    report.check("scripts can be run, and only scripts", script_problems())
    report.check("bash understands every bash script", bash_problems())
    check_format(report)
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
