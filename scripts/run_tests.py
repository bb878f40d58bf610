#!/usr/bin/env python3
"""Builds and tests all that this machine can. Called by ./test, which first runs scripts/setup.

Three outcomes: passed, failed, and skipped with a reason. What counts as one test:
  - a test case of a Catch2 program; it is skipped when it prints `SKIPPED: its name: reason`
  - a line `PASS name`, `FAIL name: why` or `SKIPPED: name: reason` of a script
    tests/**/*_test.{py,sh}
  - a build
A program or script that ran no test has failed, and so has a test that checked nothing.

As many programs run at once as there are processors, and one script more. Programs keep their
files in memory, except with --all; scripts keep theirs on the disk. A script with a line
`# Runs alone: why` has the machine to itself; one with `# Only with --all: why` runs when asked.

How long each compile, program and script took is kept in build/test_times.json, and what takes
longer or shorter than the last time is printed.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM_LIMIT_S = 1800
SCRIPT_LIMIT_S = 1800
PROGRAM_MEMORY_BYTES = 8 << 30  # a test that runs away fails, and not the machine
MEMORY_FOLDER_BYTES = 4 << 30
# They read and write as drives are read and written, past the page cache: memory has other rules.
ON_DISK = ("soft_smartssd_test", "hls_host_device_test")
JOBS = os.cpu_count() or 1
SCRIPT_JOBS = JOBS + 1  # they wait for drives, clocks and other programs now and then
SLOWEST_SHOWN = 10
# Programs and scripts that take longest begin first, so that none is left over at the end.
BEGIN_FIRST = ("gui_app_test", "gui_pictures_test", "core_train_test", "core_simulate_test",
               "core_tune_test", "core_control_test", "tests/e2e/readme_test.py",
               "tests/e2e/shards_test.py", "tests/e2e/same_numbers_test.py",
               "tests/e2e/ranks_test.py", "tests/e2e/exports_test.py",
               "tests/e2e/placement_test.py")
ONLY_WITH_ALL = re.compile(r"^# Only with --all: (\S.*)$", re.MULTILINE)
TIMES = ROOT / "build" / "test_times.json"
# The difference between two times of one thing that is printed: beyond noise, and worth a look.
DIFFERENCE_S = 5.0
DIFFERENCE_SHARE = 0.25
RUNS_ALONE = re.compile(r"^# Runs alone: \S", re.MULTILINE)
# Under a sanitizer a test takes several times as long: those that add no code are left to the
# release build.
SANITIZED_ARGUMENTS = ["~[long]~[.]"]  # [.]: with an exclusion alone hidden tests would run
# What a compiler, the linker or CMake says first, and the lines after it.
FIRST_ERROR = re.compile(
    r"^.*(?:\berror: |undefined reference|CMake Error).*(?:\n.*){0,12}", re.MULTILINE)


class Outcome:
    """What one program, script or build said."""

    def __init__(self, name, is_build=False):
        self.name = name
        self.is_build = is_build
        self.passed = 0
        self.failures = []  # "what: why"
        self.skips = []  # "what: why"
        self.seconds = 0.0

    def line(self):
        parts = [f"{self.passed} passed"]
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        if self.skips:
            parts.append(f"{len(self.skips)} skipped")
        mark = "FAILED" if self.failures else "ok"
        return f"  {mark:6} {self.name:44} {', '.join(parts):32} {self.seconds:6.1f} s"


def processor_seconds():
    """Of all that has ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Times:
    """Seconds of each thing that ran, by kind (compile, program, script, stage) and name: of this
    run, and of the run before in which it ran."""

    def __init__(self):
        self.now = {}
        try:
            self.before = json.loads(TIMES.read_text())
        except (OSError, ValueError):
            self.before = {}

    def add(self, kind, name, seconds):
        self.now.setdefault(kind, {})[name] = round(seconds, 2)

    def expected(self, kind, name):
        return self.before.get(kind, {}).get(name, 0.0)

    def changes(self):
        """(name, before, now) of what differs by more than noise, largest difference first."""
        found = []
        for kind, times in self.now.items():
            for name, now in times.items():
                before = self.before.get(kind, {}).get(name)
                if before is not None and abs(now - before) > max(
                        DIFFERENCE_S, DIFFERENCE_SHARE * max(now, before)):
                    found.append((f"{kind} {name}", before, now))
        return sorted(found, key=lambda change: abs(change[2] - change[1]), reverse=True)

    def save(self):
        merged = {kind: dict(times) for kind, times in self.before.items()}
        for kind, times in self.now.items():
            merged.setdefault(kind, {}).update(times)
        TIMES.parent.mkdir(exist_ok=True)
        fresh = TIMES.with_suffix(".new")
        fresh.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")
        fresh.replace(TIMES)


class Suite:
    """All outcomes so far; prints each as it comes."""

    def __init__(self):
        self.outcomes = []
        self.stages = []  # (name, seconds, seconds of its build, processor seconds)
        self.times = Times()

    def add(self, outcome):
        self.outcomes.append(outcome)
        print(outcome.line(), flush=True)
        for failure in outcome.failures:
            print("         " + failure.replace("\n", "\n         "), flush=True)

    def stage(self, name, action):
        print(f"\n== {name}", flush=True)
        begin = time.monotonic()
        first = len(self.outcomes)
        used = processor_seconds()
        action()
        used = processor_seconds() - used
        build_seconds = sum(o.seconds for o in self.outcomes[first:] if o.is_build)
        seconds = time.monotonic() - begin
        self.stages.append((name, seconds, build_seconds, used))
        self.times.add("stage", name, seconds)

    def print_times(self):
        print("\n== Time of each stage (of the processors: user and system, of all of them)")
        for name, seconds, build_seconds, used in self.stages:
            parts = f" (build {build_seconds:.1f} s, tests {seconds - build_seconds:.1f} s)"
            has_both = build_seconds and seconds - build_seconds > 1
            print(f"  {seconds:7.1f} s, processors {used:7.1f} s  {name}"
                  f"{parts if has_both else ''}")
        seconds, used = (sum(stage[at] for stage in self.stages) for at in (1, 3))
        print(f"  {seconds:7.1f} s, processors {used:7.1f} s  in all")
        run = [outcome for outcome in self.outcomes if not outcome.is_build]
        print("\n== Slowest programs and scripts")
        for outcome in sorted(run, key=lambda o: o.seconds, reverse=True)[:SLOWEST_SHOWN]:
            print(f"  {outcome.seconds:7.1f} s  {outcome.name}")
        compiles = sorted(self.times.now.get("compile", {}).items(), key=lambda c: -c[1])
        if compiles:
            print("\n== Slowest compiles")
            for name, seconds in compiles[:SLOWEST_SHOWN]:
                print(f"  {seconds:7.1f} s  {name}")
        changes = self.times.changes()
        if changes:
            print("\n== Longer or shorter than the last time")
            for name, before, now in changes[:2 * SLOWEST_SHOWN]:
                print(f"  {before:7.1f} -> {now:7.1f} s  {name}")
        self.times.save()

    def close(self):
        passed = sum(outcome.passed for outcome in self.outcomes)
        failures = [(outcome.name, text) for outcome in self.outcomes for text in outcome.failures]
        skips = [(outcome.name, text) for outcome in self.outcomes for text in outcome.skips]
        self.print_times()
        for title, texts in (("Skipped", skips), ("Failed", failures)):
            if texts:
                print(f"\n== {title}")
            for name, text in texts:
                print(f"  {name}: " + text.splitlines()[0])
        if passed + len(failures) == 0:
            print("\nNothing ran: no test matched.")
        print(f"\n{passed} passed, {len(failures)} failed, {len(skips)} skipped", flush=True)
        return 1 if failures or passed == 0 else 0


def tail(text, line_count=25):
    return "\n".join(text.rstrip().splitlines()[-line_count:])


def run_logged(command, log, limit_s=None, env=None):
    """Runs a command with all it prints in a file; returns its exit code (None: ran too long)."""
    with open(log, "ab") as out:
        try:
            return subprocess.run(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                timeout=limit_s, check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return None


def describe_exit(code):
    if code is None:
        return "it ran past its time limit and was ended"
    if code < 0:
        return f"it died of signal {-code}"
    return f"it ended with exit code {code}"


def compile_times(directory):
    """Output -> (seconds, what tells one compile of it from the next), from ninja's log."""
    times = {}
    log = directory / ".ninja_log"
    lines = log.read_text(errors="replace").splitlines()[1:] if log.exists() else []
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith(".o"):
            begin_ms, end_ms, written, output, command = fields
            times[output] = ((int(end_ms) - int(begin_ms)) / 1000, (written, command))
    return times


# Builds ------------------------------------------------------------------------------------------


def build(suite, preset, arguments=(), targets=()):
    """Configures and builds a preset; the outcome is one test."""
    outcome = Outcome(f"build {preset}", is_build=True)
    begin = time.monotonic()
    directory = ROOT / "build" / preset
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "build.log"
    log.write_bytes(b"")
    before = compile_times(directory)
    steps = [
        ["cmake", "--preset", preset, *arguments],
        # -k 0: all mistakes at once, not the first alone
        ["cmake", "--build", str(directory), "-j", str(JOBS),
         *(["--target", *targets] if targets else []), "--", "-k", "0"],
    ]
    code = 0
    for command in steps:
        try:
            code = run_logged(command, log)
        except FileNotFoundError:
            outcome.failures.append(f"build {preset}: there is no {command[0]} (see scripts/setup)")
            return outcome
        if code != 0:
            break
    outcome.seconds = time.monotonic() - begin
    for output, (seconds, which) in compile_times(directory).items():
        if before.get(output, (0, None))[1] != which:
            suite.times.add("compile", f"{preset}: {output}", seconds)
    if code == 0:
        outcome.passed = 1
    else:
        text = log.read_text(errors="replace")
        first_error = FIRST_ERROR.search(text)
        shown = first_error.group(0) if first_error else tail(text)
        place = log.relative_to(ROOT)
        outcome.failures.append(f"build {preset}: {describe_exit(code)}; log in {place}\n{shown}")
    return outcome


def test_programs(preset):
    """Names and paths of the Catch2 programs of a configured build."""
    listing = subprocess.run(
        ["ctest", "--test-dir", str(ROOT / "build" / preset), "--show-only=json-v1"],
        capture_output=True, text=True, check=False,
    )
    if listing.returncode != 0:
        return []
    tests = json.loads(listing.stdout)["tests"]
    return sorted((test["name"], test["command"][0]) for test in tests if "command" in test)


# Catch2 programs ---------------------------------------------------------------------------------


def expression_text(element):
    place = f"{element.get('filename')}:{element.get('line')}"
    original = (element.findtext("Original") or "").strip()
    expanded = (element.findtext("Expanded") or "").strip()
    return f"{place}: {element.get('type')}( {original} ), that is {expanded}"


def failure_text(case):
    """Why a test case failed: its failed expressions, exceptions and FAIL() messages."""
    reasons = [expression_text(e) for e in case.iter("Expression") if e.get("success") == "false"]
    for kind in ("Exception", "FatalErrorCondition", "Failure"):
        for element in case.iter(kind):
            place = f"{element.get('filename')}:{element.get('line')}: "
            reasons.append((place if element.get("line") else "") + (element.text or kind).strip())
    return "; ".join(reasons) or "it, or a section of it, checked nothing"


def finished_cases(report):
    """Name, success and failure text of each test case that ended, also when the report is cut."""
    parser = ElementTree.XMLPullParser(events=("end",))
    cases = []
    try:
        parser.feed(report)
        for _, element in parser.read_events():
            if element.tag != "TestCase":
                continue
            result = element.find("OverallResult")
            good = result is not None and result.get("success") == "true"
            cases.append((element.get("name"), good, "" if good else failure_text(element)))
    except ElementTree.ParseError:
        pass  # the program died while writing; what is missing is reported by its exit code
    return cases


def skipped_lines(text):
    return re.findall(r"^SKIPPED: (.+)$", text, re.MULTILINE)


def count_cases(outcome, cases, output, report):
    skips = {}
    redirected = "".join(re.findall(r"<StdOut>(.*?)</StdOut>", report, re.DOTALL))
    for line in skipped_lines(output) + [s.strip() for s in skipped_lines(redirected)]:
        name = next((n for n, _, _ in cases if line.startswith(n + ": ")), line.split(": ")[0])
        skips[name] = line
    for name, good, why in cases:
        if not good:
            outcome.failures.append(f"{name}: {why}")
        elif name not in skips:
            outcome.passed += 1
    outcome.skips = list(skips.values())


def sanitizer_environment():
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = "detect_stack_use_after_return=1:strict_string_checks=1"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
    # The program that trains, for tests that need a run: sanitizers' builds have no libtorch.
    env["SLUICE_BUILD"] = str(ROOT / "build" / "release")
    return env


def without_address_randomisation():
    """The sanitizers of g++ 12 cannot map their shadow under some kernels' randomisation."""
    setarch = shutil.which("setarch")
    if setarch is None:
        return []
    prefix = [setarch, os.uname().machine, "-R"]
    works = subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode == 0
    return prefix if works else []


def memory_cap():
    """Not for sanitizers: their shadow counts as memory too."""
    prlimit = shutil.which("prlimit")
    return [prlimit, f"--data={PROGRAM_MEMORY_BYTES}"] if prlimit else []


def folder_in_memory():
    """For the files of programs: a file system in memory that has room, so that nothing waits for
    a disk to make them durable. None: there is none, or the caller has chosen a place."""
    shared = "/dev/shm"
    if "TMPDIR" in os.environ or not os.access(shared, os.W_OK):
        return None
    return shared if shutil.disk_usage(shared).free >= MEMORY_FOLDER_BYTES else None


def run_program(name, path, label, prefix, env, arguments):
    outcome = Outcome(f"{name}{label}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sluice-test-") as scratch:
        report_path = pathlib.Path(scratch) / "report.xml"
        log = pathlib.Path(scratch) / "log"
        command = prefix + [path, *arguments, "-w", "NoAssertions", "-r", "xml", "-o",
                            str(report_path)]
        code = run_logged(command, log, PROGRAM_LIMIT_S, env)
        output = log.read_text(errors="replace")
        report = report_path.read_text(errors="replace") if report_path.exists() else ""
    cases = finished_cases(report)
    count_cases(outcome, cases, output, report)
    outcome.seconds = time.monotonic() - begin
    if code != 0 and not outcome.failures:
        cut = re.findall(r'<TestCase name="([^"]*)"', report)
        during = f" during '{cut[-1]}'" if len(cut) > len(cases) else ""
        outcome.failures.append(f"{name}: {describe_exit(code)}{during}\n{tail(output, 40)}")
    if not cases and not outcome.failures:
        outcome.failures.append(f"{name}: it ran no test")
    return outcome


def run_programs(suite, preset, wanted, prefix, env=None, arguments=()):
    label = "" if preset == "release" else f" ({preset})"
    env = dict(env or os.environ)
    in_memory = None if "SLUICE_TEST_ALL" in os.environ else folder_in_memory()

    def environment_of(name):
        return {**env, "TMPDIR": in_memory} if in_memory and name not in ON_DISK else env

    programs = [(n, p) for n, p in test_programs(preset) if wanted(n)]
    programs.sort(key=lambda program: (program[0] not in BEGIN_FIRST,
                                       -suite.times.expected("program", program[0] + label)))
    with concurrent.futures.ThreadPoolExecutor(max_workers=JOBS) as pool:
        running = [
            pool.submit(run_program, name, path, label, prefix, environment_of(name), arguments)
            for name, path in programs
        ]
        for done in concurrent.futures.as_completed(running):
            suite.add(done.result())
            suite.times.add("program", done.result().name, done.result().seconds)


# Scripts -----------------------------------------------------------------------------------------


def test_scripts(wanted):
    found = [*ROOT.glob("tests/**/*_test.py"), *ROOT.glob("tests/**/*_test.sh")]
    names = sorted(str(path.relative_to(ROOT)) for path in found if os.access(path, os.X_OK))
    return [name for name in names if wanted(name)]


def run_script(name):
    outcome = Outcome(name)
    begin = time.monotonic()
    env = dict(os.environ, SLUICE_BUILD=str(ROOT / "build" / "release"))
    with tempfile.TemporaryDirectory(prefix="sluice-test-") as scratch:
        log = pathlib.Path(scratch) / "log"
        code = run_logged([str(ROOT / name)], log, SCRIPT_LIMIT_S, env)
        output = log.read_text(errors="replace")
    outcome.seconds = time.monotonic() - begin
    outcome.passed = len(re.findall(r"^PASS ", output, re.MULTILINE))
    outcome.failures = re.findall(r"^FAIL (.+)$", output, re.MULTILINE)
    outcome.skips = skipped_lines(output)
    if code != 0 and not outcome.failures:
        outcome.failures.append(f"{name}: {describe_exit(code)}\n{tail(output, 40)}")
    if not (outcome.passed or outcome.failures or outcome.skips):
        outcome.failures.append(f"{name}: it ran no test")
    return outcome


def run_scripts(suite, names, is_all):
    """Those that share the machine first, then those that run alone. Longest first, so that none
    of them is left over at the end."""
    def add(outcome):
        suite.add(outcome)
        suite.times.add("script", outcome.name, outcome.seconds)

    texts = {name: (ROOT / name).read_text() for name in names}
    for name in names:
        rare = ONLY_WITH_ALL.search(texts[name])
        if rare and not is_all:
            outcome = Outcome(name)
            outcome.skips.append(f"{name}: only with --all: {rare.group(1)}")
            suite.add(outcome)
            del texts[name]
    alone = [name for name in texts if RUNS_ALONE.search(texts[name])]
    shared = sorted((name for name in texts if name not in alone),
                    key=lambda name: (name not in BEGIN_FIRST,
                                      -suite.times.expected("script", name)))
    with concurrent.futures.ThreadPoolExecutor(max_workers=SCRIPT_JOBS) as pool:
        running = [pool.submit(run_script, name) for name in shared]
        for done in concurrent.futures.as_completed(running):
            add(done.result())
    for name in alone:
        add(run_script(name))


# The whole ---------------------------------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="./test",
        description="Builds and tests all that this machine can. The last line counts the tests.",
        epilog="Example: ./test --quick --filter storage",
    )
    parser.add_argument("--quick", action="store_true",
                        help="the release build only: no second compiler, no sanitizers")
    parser.add_argument("--all", action="store_true",
                        help="also what takes long and changes seldom (`# Only with --all:`)")
    parser.add_argument("--filter", metavar="TEXT", default="",
                        help="only programs and scripts with TEXT in their name")
    parser.add_argument("--no-torch", action="store_true",
                        help="leave out what needs libtorch")
    parser.add_argument("--no-setup", action="store_true",
                        help="do not run scripts/setup first")
    return parser.parse_args()


def release_stages(suite, options, wanted):
    arguments = [f"-DSLUICE_TORCH={'OFF' if options.no_torch else 'ON'}"]
    built = Outcome("build release", is_build=True)

    def build_release():
        nonlocal built
        built = build(suite, "release", arguments)
        if options.no_torch:
            built.skips.append("libtorch parts: left out by --no-torch")
        suite.add(built)

    suite.stage("Release build", build_release)
    if built.passed:
        suite.stage("Test programs",
                    lambda: run_programs(suite, "release", wanted, memory_cap()))
    scripts = test_scripts(wanted)
    if scripts:
        suite.stage("Structure and end to end",
                    lambda: run_scripts(suite, scripts, options.all))


def what_asan_lacks():
    """The package without which clang cannot build the preset `asan`; empty: nothing."""
    if shutil.which("clang++-16") is None:
        return "clang-16"
    with tempfile.TemporaryDirectory(prefix="sluice-test-") as scratch:
        linked = subprocess.run(
            ["clang++-16", "-fsanitize=address,undefined", "-x", "c++", "-", "-o", f"{scratch}/a"],
            input="int main() {}", text=True, capture_output=True, check=False).returncode == 0
    return "" if linked else "libclang-rt-16-dev"


def sanitizer_stage(suite, preset, wanted):
    package = what_asan_lacks() if preset == "asan" else ""
    if package:
        outcome = Outcome(f"build {preset}", is_build=True)
        outcome.skips.append(f"build {preset}: it needs the Debian package {package}")
    else:
        outcome = build(suite, preset, targets=["sluice_tests"])
    suite.add(outcome)
    if outcome.passed:
        run_programs(suite, preset, wanted, without_address_randomisation(),
                     sanitizer_environment(), SANITIZED_ARGUMENTS)


def main():
    options = parse_arguments()
    # libtorch's threads wait by spinning, and as many programs run as there are processors: what
    # one spins away another lacks, so that a test of seconds takes minutes.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if options.all:
        os.environ["SLUICE_TEST_ALL"] = "1"  # tests/test_all.h
    suite = Suite()

    def wanted(name):
        return options.filter in name

    release_stages(suite, options, wanted)
    if not options.quick:
        suite.stage("Second compiler, clang 16, with its address and undefined-behaviour "
                    "sanitizers (what needs no libtorch)",
                    lambda: sanitizer_stage(suite, "asan", wanted))
        suite.stage("Thread sanitizer of g++ (what needs no libtorch)",
                    lambda: sanitizer_stage(suite, "tsan", wanted))
    return suite.close()


if __name__ == "__main__":
    sys.exit(main())
