"""Runs the `sluice` command for the end-to-end tests: a folder of its own for each test, a model
and a text small enough that a step takes milliseconds, and what the command said, parsed.

A test is a function that takes a Place and is marked with @test; main() prints a line
`PASS name`, `FAIL name: why` or `SKIPPED: name: reason` for each.

The command is build/release/bin/sluice of this checkout, or what SLUICE_BIN names.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "sample_models"
TESTBED = SAMPLES / "platforms/smartssd-a5000.toml"
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build" / "release"))
SLUICE = pathlib.Path(os.environ.get("SLUICE_BIN", BUILD / "bin" / "sluice")).absolute()
# So that the commands it prints call it `sluice` (base/program_name.h), wherever it was built.
os.environ["PATH"] = f"{SLUICE.parent}:{os.environ.get('PATH', os.defpath)}"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has it ignored in what it starts with `&`, and programs started here would have, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
LIMIT_S = 600  # for a command that hangs; no test depends on how fast it is

NANO_PARAMETERS = 34_688
NANO_TOKENS = 2 * 32  # in a batch
NANO_MODEL = """\
name = "nano"
layers = 2
hidden = 32
heads = 2
sequence = 32
vocabulary = 256
"""
# Deep enough for what its layers keep to matter.
DEEP_MODEL = """\
name = "deep"
layers = 8
hidden = 128
heads = 4
sequence = 128
vocabulary = 256
"""
# One compute thread: steps this small gain nothing from a second, and tests run side by side.
NANO_RUN = """\
[run]
model = "nano.toml"
platform = "{platform}"
text = "text.txt"
output = "out"

[batch]
batch = 2
sequence = 32

[schedule]
steps = 4
schedule_steps = 100
warmup_steps = 2
lr = 3e-3

[validation]
validation_every = 0
validation_batches = 1

[sample]
sample_tokens = 0

[offload]
method = "csd"
devices = 2
subgroup_elements = 5000

[resources]
threads = 1
"""


class Failure(Exception):
    """What a test found wrong, in one sentence."""


class Skip(Exception):
    """Why a test cannot be made here."""


_check_count = 0


def require(condition, why):
    global _check_count
    _check_count += 1
    if not condition:
        raise Failure(why)


def require_equal(found, wanted, what):
    require(found == wanted, f"{what}: {found!r}, expected {wanted!r}")


def require_words(text, words, what):
    """As they stand, or wrapped: where a line ends depends on how long the test's folder is."""
    unwrapped = " ".join(text.split())
    for word in words:
        require(word in text or word in unwrapped,
                f"{what} does not say {word!r}: {text.strip()!r}")


class Reply:
    """What a command left behind when it ended."""

    def __init__(self, arguments, code, out, err):
        self.line = "sluice " + " ".join(map(str, arguments))
        self.code = code
        self.out = out
        self.err = err

    def json(self):
        require(self.code == 0, f"`{self.line}` ended with {self.code}: {self.err.strip()}")
        try:
            return json.loads(self.out)
        except json.JSONDecodeError as error:
            raise Failure(f"`{self.line}` did not print one JSON object: {error}") from None

    def done(self):
        require(self.code == 0, f"`{self.line}` ended with {self.code}: {self.err.strip()}")
        return self

    def refused(self, code, words):
        """One clear message on stderr that says these words, nothing on stdout but a plan."""
        require(self.code == code,
                f"`{self.line}` ended with {self.code}, expected {code}: {self.err.strip()}")
        require_words(self.err, words, f"`{self.line}`")
        errors = [line for line in self.err.splitlines() if line.startswith("sluice: error:")]
        require(len(errors) == 1, f"`{self.line}` gave {len(errors)} errors: {self.err.strip()!r}")
        return self


def sluice(*arguments, cwd=ROOT, env=None):
    done = subprocess.run([SLUICE, *map(str, arguments)], cwd=cwd, env=env, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", check=False)
    return Reply(arguments, done.returncode, done.stdout, done.stderr)


def setting_arguments(settings):
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


def _end_with_the_test():
    """A run that the test started goes when the test is killed (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Running:
    """A `sluice` that was started and may be killed."""

    def __init__(self, arguments, cwd):
        self.arguments = arguments
        # Files, not pipes: nobody reads along, and a full pipe would stop it.
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        self.err = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen([SLUICE, *map(str, arguments)], cwd=cwd, stdout=self.out,
                                        stderr=self.err, stdin=subprocess.DEVNULL,
                                        preexec_fn=_end_with_the_test)

    def is_running(self):
        return self.process.poll() is None

    def heard(self):
        """What it has said on stderr so far."""
        # pread: a seek would move the place where the program writes on.
        return os.pread(self.err.fileno(), 1 << 20, 0).decode(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        code = self.process.wait(timeout=LIMIT_S)
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return Reply(self.arguments, code, *texts)

    def wait_for(self, condition, what):
        """Until `condition()`; whoever ends first has failed the test."""
        until = time.monotonic() + LIMIT_S
        while not condition():
            if not self.is_running():
                reply = self.wait()
                raise Failure(f"`{reply.line}` ended with {reply.code} before {what}: {reply.err}")
            require(time.monotonic() < until, f"no {what} within {LIMIT_S} s")
            time.sleep(0.001)


class Place:
    """A folder with a nano model, a text and a run file; removed when the test ends."""

    def __init__(self, parent=None):
        # Not /tmp: the state wants a file system with O_DIRECT.
        parent = pathlib.Path(parent or os.environ.get("SLUICE_TEST_DIR", ROOT / "out"))
        parent.mkdir(parents=True, exist_ok=True)
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="e2e-", dir=parent))
        self.run_file = self.path / "run.toml"
        (self.path / "nano.toml").write_text(NANO_MODEL)
        self.write_run()
        (self.path / "text.txt").write_text(made_text(20_000))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def __truediv__(self, name):
        return self.path / name

    def write_run(self, text=NANO_RUN, **replaced):
        """The nano run file, with whole lines `key = ...` replaced or added at the top."""
        text = text.format(platform=TESTBED)
        lines = text.splitlines()
        for key, value in replaced.items():
            lines = [line for line in lines if line.split(" = ")[0] != key]
            lines.insert(0, f"{key} = {json.dumps(value)}")
        self.run_file.write_text("\n".join(lines) + "\n")

    def arguments(self, *flags, run=None, **settings):
        return ["train", run or self.run_file, *flags, *setting_arguments(settings)]

    def train(self, *flags, run=None, **settings):
        return sluice(*self.arguments(*flags, run=run, **settings), cwd=self.path)

    def start(self, *flags, run=None, **settings):
        return Running(self.arguments(*flags, run=run, **settings), self.path)

    def simulate(self, model, name="sim.db", platform=TESTBED, **settings):
        """A simulated step, recorded as a run; its database."""
        sluice("simulate", model, "--platform", platform, "--db", self / name,
               *setting_arguments(settings)).done()
        return self / name

    def state(self, *flags, state_dir="out/state"):
        return sluice("state", self.path / state_dir, *flags, cwd=self.path)

    def digest(self, state_dir="out/state"):
        return self.state("--json", state_dir=state_dir).json()["digest"]


def made_text(size, seed=7):
    """English-looking words; the same on every machine."""
    source = random.Random(seed)
    letters = "eeeeettttaaaooiinnsshhrrdlucmwfgypb"
    words = ["".join(source.choice(letters) for _ in range(source.randint(2, 8)))
             for _ in range(200)]
    text = ""
    while len(text) < size:
        text += source.choice(words) + source.choice(["  ", " ", " ", " ", ", ", ".\n"])
    return text[:size]


def sample_text():
    """The English text of the sample runs; prepared where it is not there yet."""
    text = ROOT / "out/data/kjv.txt"
    if not text.exists():
        done = subprocess.run([SAMPLES / "data/prepare_kjv.sh", text], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise Skip(f"the sample text cannot be prepared: {done.stderr.strip()}")
    return text


# What a run left on disk --------------------------------------------------------------------------


def committed_step(state_dir):
    """Step of the newest record in a commit log (docs/state_format.md); None if there is none.
    For watching a live run: checksums are left to `sluice state`."""
    newest = (0, None)
    with contextlib.suppress(OSError, struct.error):
        log = (pathlib.Path(state_dir) / "commit.slc").read_bytes()
        area_bytes = (len(log) - 4096) // 2
        for area in (log[4096:4096 + area_bytes], log[4096 + area_bytes:]):
            if area[:8] == b"SLUICECR":
                sequence, step = struct.unpack_from("<Q", area, 8)[0], struct.unpack_from(
                    "<q", area, 40)[0]
                newest = max(newest, (sequence, step))
    return newest[1]


@contextlib.contextmanager
def database(path, mode="ro"):
    connection = sqlite3.connect(f"file:{path}?mode={mode}", uri=True)
    try:
        yield connection
    finally:
        connection.close()


def check_database(path):
    """That a run database opens and is sound, also after its writer was killed: then SQLite takes
    back what was half written, for which it must be allowed to write."""
    with database(path, "rw") as db:
        require_equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)],
                      f"integrity of {path}")


def step_losses(path):
    """{step from 0: loss} of the steps that a run database holds."""
    with database(path) as db:
        return dict(db.execute("SELECT id, loss FROM step ORDER BY id"))


# Running the tests --------------------------------------------------------------------------------

_tests = []


def test(function):
    """Marks a test; its name, with spaces, is what is printed."""
    _tests.append(function)
    return function


def is_testing_all():
    """`./test --all`."""
    return "SLUICE_TEST_ALL" in os.environ


def only_with_all(why):
    """Between `@test` and a test: what takes long and changes seldom."""
    def rare(function):
        def run_or_skip(place):
            if not is_testing_all():
                raise Skip(f"only with --all: {why}")
            function(place)
        run_or_skip.__name__ = function.__name__
        return run_or_skip
    return rare


def _run(function):
    name = function.__name__.replace("_", " ")
    checked_before = _check_count
    begin = time.monotonic()
    try:
        with Place() as place:
            function(place)
        require(_check_count > checked_before, "it checked nothing")
    except Skip as skip:
        print(f"SKIPPED: {name}: {skip}", flush=True)
    except Failure as failure:
        print(f"FAIL {name}: {' | '.join(str(failure).splitlines())}", flush=True)
        return 1
    except Exception:  # a test that breaks has failed, and the next ones still run
        trace = traceback.format_exc().strip().splitlines()
        print(f"FAIL {name}: {trace[-1]} | {' | '.join(trace)}", flush=True)
        return 1
    else:
        print(f"PASS {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 0


def main(program=SLUICE, why_absent="built without libtorch?"):
    """Runs the marked tests, or those whose name contains an argument of the command line. They are
    all skipped where the program that they need is not there."""
    chosen = [f for f in _tests
              if not sys.argv[1:] or any(word in f.__name__ for word in sys.argv[1:])]
    if not os.access(program, os.X_OK):
        for function in chosen:
            name = function.__name__.replace("_", " ")
            print(f"SKIPPED: {name}: there is no {program} ({why_absent})")
        return 0
    return 1 if sum(_run(function) for function in chosen) else 0
