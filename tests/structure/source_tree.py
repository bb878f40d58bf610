"""The source tree as the structural tests see it: its files, includes and CMake targets."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def tracked_files(root):
    """Paths, relative to root, of what git has or would take; every file where there is no git."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False,
    )
    if listing.returncode == 0:
        names = sorted(set(listing.stdout.splitlines()))
        return [name for name in names if (root / name).is_file()]
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in ("build", "out", ".git")
    )


def cpp_files(root):
    return [name for name in tracked_files(root) if name.endswith((".h", ".cpp", ".inl"))]


def includes(path):
    """(line number, path, is_ours): ours is written with quotes, foreign with angle brackets."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match.group(1) or match.group(2), match.group(1) is not None))
    return found


class Report:
    """Prints a line for each test, in the form that ./test counts."""

    def __init__(self):
        self.failed = False

    def check(self, name, problems):
        """Passed if there are no problems."""
        if problems:
            self.failed = True
            shown = "; ".join(problems[:10])
            more = f"; and {len(problems) - 10} more" if len(problems) > 10 else ""
            print(f"FAIL {name}: {shown}{more}", flush=True)
        else:
            print(f"PASS {name}", flush=True)

    def skip(self, name, reason):
        print(f"SKIPPED: {name}: {reason}", flush=True)

    def exit_code(self):
        return 1 if self.failed else 0
