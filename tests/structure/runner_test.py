#!/usr/bin/env python3
"""What ./test counts as passed, failed and skipped, and what it runs at once: on reports and
scripts that are made here."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from source_tree import ROOT, Report

sys.path.append(str(ROOT / "scripts"))
import run_tests  # noqa: E402: it is no package


def case(name, success, inside=""):
    return (f'<TestCase name="{name}">{inside}<OverallResult success="{success}"/></TestCase>')


FAILED = ('<Expression success="false" type="CHECK" filename="a.cpp" line="3">'
          '<Original>a == b</Original><Expanded>1 == 2</Expanded></Expression>')
REPORT = "<Catch>" + "".join((
    case("good", "true"), case("bad", "false", FAILED), case("empty", "false"),
    case("left out", "true"))) + "</Catch>"


def count_problems():
    """A Catch2 program with a case of each kind."""
    outcome = run_tests.Outcome("made")
    run_tests.count_cases(outcome, run_tests.finished_cases(REPORT),
                          "SKIPPED: left out: no such disk\n", REPORT)
    found = (outcome.passed, outcome.failures, outcome.skips)
    wanted = (1, ["bad: a.cpp:3: CHECK( a == b ), that is 1 == 2",
                  "empty: it, or a section of it, checked nothing"], ["left out: no such disk"])
    return [] if found == wanted else [f"{found}, expected {wanted}"]


SCRIPT = f"""\
import sys
sys.path.append({str(ROOT / "tests/e2e")!r})
from sluice_run import Skip, main, require, test

@test
def right(place):
    require(1 == 1, "no")

@test
def wrong(place):
    require(1 == 2, "one is not two")

@test
def empty(place):
    pass

@test
def elsewhere(place):
    raise Skip("no such disk")

sys.exit(main())
"""


def script_problems():
    """An end-to-end script with a test of each kind."""
    with tempfile.TemporaryDirectory(prefix="sluice-runner-") as folder:
        env = dict(os.environ, SLUICE_BIN="/bin/true", SLUICE_TEST_DIR=folder)
        said = subprocess.run([sys.executable, "-B", "-c", SCRIPT], env=env, capture_output=True,
                              text=True, check=False)
    wanted = ("PASS right (SECONDS)\nFAIL wrong: one is not two\nFAIL empty: it checked nothing\n"
              "SKIPPED: elsewhere: no such disk\n")
    found = (said.returncode, re.sub(r"\([0-9.]+ s\)", "(SECONDS)", said.stdout))
    return [] if found == (1, wanted) else [f"{found}, expected {wanted!r}: {said.stderr[-500:]}"]


# Two wait for each other, so they pass only side by side; the third must see both gone.
MEETS = """\
#!/bin/sh
touch {mine}.here
for i in $(seq 600); do
  if [ -e {other}.here ]; then echo "PASS met"; touch {mine}.gone; exit 0; fi
  sleep 0.1
done
echo "FAIL met: {other} never came"
"""
ALONE = """\
#!/bin/sh
# Runs alone: it looks whether anybody is there.
[ -e a.gone ] && [ -e b.gone ] && echo "PASS alone" || echo "FAIL alone: others were there"
"""
# Not as a line of its own, by which the runner would take this file for such a script.
RARE = "#!/bin/sh\n" + "# Only with --all: it takes a cluster.\n" + 'echo "PASS rare"\n'


class Root:
    """A folder in which the runner looks for scripts, and keeps times."""

    def __init__(self, scripts):
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-runner-")
        self.before = run_tests.ROOT, run_tests.SCRIPT_JOBS, run_tests.TIMES
        root = pathlib.Path(self.folder.name)
        run_tests.ROOT, run_tests.SCRIPT_JOBS, run_tests.TIMES = root, 2, root / "build/times.json"
        for name, text in scripts.items():
            (root / name).write_text(text)
            (root / name).chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        run_tests.ROOT, run_tests.SCRIPT_JOBS, run_tests.TIMES = self.before
        self.folder.cleanup()


def rare_problems():
    """What is for --all alone is skipped with its reason, and runs when asked for."""
    with Root({"rare.sh": RARE}), contextlib.redirect_stdout(io.StringIO()):
        usual, asked = run_tests.Suite(), run_tests.Suite()
        run_tests.run_scripts(usual, ["rare.sh"], is_all=False)
        run_tests.run_scripts(asked, ["rare.sh"], is_all=True)
    found = (usual.outcomes[0].skips, asked.outcomes[0].passed)
    wanted = (["rare.sh: only with --all: it takes a cluster."], 1)
    return [] if found == wanted else [f"{found}, expected {wanted}"]


def times_problems():
    """Times are kept from one run to the next, and a large difference is told, largest first."""
    with Root({}):
        first = run_tests.Times()
        for name, seconds in (("a", 100), ("b", 100), ("c", 1), ("gone", 7)):
            first.add("program", name, seconds)
        first.save()
        second = run_tests.Times()
        for name, seconds in (("a", 140), ("b", 110), ("c", 80), ("new", 50)):
            second.add("program", name, seconds)
        changes = second.changes()
        second.save()
        kept = run_tests.Times().before["program"]
    found = (changes, kept)
    wanted = ([("program c", 1, 80), ("program a", 100, 140)],
              {"a": 140, "b": 110, "c": 80, "gone": 7, "new": 50})
    return [] if found == wanted else [f"{found}, expected {wanted}"]


def order_problems():
    scripts = {"0_alone.sh": ALONE, "a.sh": MEETS.format(mine="a", other="b"),
               "b.sh": MEETS.format(mine="b", other="a")}
    suite = run_tests.Suite()
    with Root(scripts), contextlib.redirect_stdout(io.StringIO()):
        run_tests.run_scripts(suite, sorted(scripts), is_all=False)
    problems = [text for outcome in suite.outcomes for text in outcome.failures]
    passed = sum(outcome.passed for outcome in suite.outcomes)
    return problems or ([] if passed == 3 else [f"{passed} of 3 scripts passed"])


def main():
    report = Report()
    report.check("a case that checked nothing has failed, one that was skipped is counted so",
                 count_problems())
    report.check("a test of a script that checked nothing has failed", script_problems())
    report.check("scripts run side by side, and those that run alone after the others",
                 order_problems())
    report.check("scripts for --all are skipped with their reason else", rare_problems())
    report.check("times are kept, and what takes longer is told", times_problems())
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
