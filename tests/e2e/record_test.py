#!/usr/bin/env python3
"""sluice record: a program that knows nothing of it is recorded to the byte, with its forks, execs
and ends, and gives what it gives without."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from sluice_run import (BUILD, SLUICE, Skip, database, main, require, require_equal, require_words,
                        sluice, test)

VENV = pathlib.Path(os.environ.get("SLUICE_VENV", pathlib.Path.home() / ".cache/sluice/venv"))
# A Python that no shell script starts.
PYTHON = pathlib.Path(sys.executable).resolve()
OPERATIONS = """SELECT string.value, count(*), sum(bytes), sum(span.status) FROM span
JOIN string ON string.id = name_id JOIN track ON track.id = track_id WHERE track.kind = 'thread'
GROUP BY 1 ORDER BY 1"""
LINKS = "SELECT link, direction, sum(bytes) FROM link_bytes GROUP BY 1, 2 ORDER BY 1, 2"


def recorded(place, command, name="run.db", **options):
    """Exit code, stdout and stderr of a recorded command; options end with "--"."""
    mark = [] if "--" in command[:4] else ["--"]
    done = subprocess.run([SLUICE, "record", "-o", place / name, *mark, *map(str, command)],
                          cwd=place.path, capture_output=True, text=True, check=False, timeout=120,
                          **options)
    return done.returncode, done.stdout, done.stderr


def python(text):
    return [PYTHON, "-S", "-c", text]


def operations(path):
    with database(path) as db:
        return {name: row for name, *row in db.execute(OPERATIONS).fetchall()}


def processes(place):
    return sorted((place / "run.db.processes").glob("*.db"))


@test
def direct_bytes_are_those_of_the_drive_and_buffered_ones_are_kept_apart(place):
    file = place / "file"
    code, _, said = recorded(place, ["dd", "if=/dev/zero", f"of={file}", "bs=64K", "count=50",
                                     "oflag=direct"])
    if "Invalid argument" in said:
        raise Skip("the file system knows no O_DIRECT")
    require_equal(code, 0, f"exit code: {said}")
    require_equal(operations(place / "run.db"), {"write": [50, 50 * 65536, 0]}, "operations")
    with database(place / "run.db") as db:
        (link, direction, moved), = db.execute(LINKS).fetchall()
    require_equal((direction, moved), ("write", 50 * 65536), "bytes of the link")
    require(link.endswith(".drive") and "page cache" not in link, f"the link is {link}")
    # A `cp` may have the file system share the blocks.
    code, _, said = recorded(place, ["dd", f"if={file}", f"of={place / 'copy'}", "bs=64K"])
    with database(place / "run.db") as db:
        links = db.execute(LINKS).fetchall()
    require(links and all("page cache" in link for link, _, _ in links), f"buffered: {links}")
    require_words(sluice("show", place / "run.db").done().out, ["recorded by sluice record", "dd"],
                  "show")


@test
def a_program_gives_what_it_gives_without(place):
    file = place / "file"
    content = os.urandom(300_000)
    file.write_bytes(content)
    text = f"""
import hashlib, os, sys
f = os.open({str(file)!r}, os.O_RDONLY)
print(f, hashlib.sha256(os.read(f, 100000) + os.pread(f, 200000, 100000)).hexdigest())
try:
    os.pread(f, 10, -1)
except OSError as error:
    print(error.errno)
os.closerange(3, 1 << 16)
f = os.open({str(file)!r}, os.O_RDWR)
print(f, os.pwrite(f, b"x" * 1000, 0), os.fsync(f), os.readv(f, [bytearray(10), bytearray(20)]))
sys.stderr.write("to stderr")
sys.exit(5)
"""
    alone = subprocess.run(python(text), capture_output=True, text=True, check=False)
    file.write_bytes(content)
    code, out, said = recorded(place, python(text))
    require_equal((code, out), (alone.returncode, alone.stdout), "exit code and stdout")
    require_words(said, ["to stderr", "read", "written"], "stderr")
    found = operations(place / "run.db")
    require_equal(found["fsync"][0], 1, "fsync")
    require_equal(found["readv"][1], 30, "bytes of readv")
    reads = [found[name] for name in ("pread64", "pread") if name in found]
    require_equal([sum(column) for column in zip(*reads)], [2, 200_000, 1], "pread")
    require_equal(sum(found[name][1] for name in ("pwrite", "pwrite64") if name in found), 1000,
                  "pwrite")


@test
def forks_execs_and_ends_without_handlers_have_databases_of_their_own(place):
    file = place / "file"
    file.write_bytes(bytes(200_000))
    text = f"""
import os, subprocess
f = os.open({str(file)!r}, os.O_RDONLY)
for i in range(500): os.pread(f, 100, i)
if os.fork() == 0:
    os.pread(f, 77, 0)
    os._exit(3)
os.wait()
subprocess.run(["cat", {str(file)!r}], stdout=subprocess.DEVNULL)
try:
    os.execv("/nonexistent", ["x"])
except FileNotFoundError:
    os.pread(f, 5, 0)
os.execv("/bin/cat", ["cat", {str(file)!r}])
"""
    code, out, _ = recorded(place, python(text))
    require_equal((code, len(out)), (0, 200_000), "exit code and stdout")
    found = operations(place / "run.db")
    require_equal([found[name][1] for name in ("pread64", "pread") if name in found], [50_000],
                  "bytes of the process with the most operations")
    others = [operations(path) for path in processes(place)]
    moved = sorted(row[1] for rows in others for name, row in rows.items() if "read" in name)
    for wanted in (5, 77, 200_000):
        require(wanted in moved, f"no process read {wanted} bytes: {moved}")
    require_equal(sum(1 for size in moved if size == 200_000), 2, "processes of cat")


@test
def four_processes_become_one_record_with_the_bytes_of_all(place):
    file = place / "file"
    file.write_bytes(bytes(200_000))
    text = f"""
import os, sys
sys.path.insert(0, {str(BUILD / "python")!r})
from sluice import span
others = []
for number in range(3):
    child = os.fork()
    if child == 0:
        f = os.open({str(file)!r}, os.O_RDONLY)
        for i in range(10): os.pread(f, 1000 + number, i)
        os._exit(0)
    others.append(child)
f = os.open({str(file)!r}, os.O_RDONLY)
for step in range(6):
    with span("step"):
        for i in range(20): os.pread(f, 500, i)
        if step == 3:
            for child in others: os.waitpid(child, 0)
"""
    code, _, said = recorded(place, ["--step-marker", "step", "--", *python(text)])
    require_equal(code, 0, f"exit code: {said}")
    require_words(said, ["3 more processes", "sluice merge"], "stderr")
    merged = sluice("merge", place / "run.db", "-o", place / "all.db").done().out
    require_words(merged, ["4 processes", "one clock"], "merge")
    with database(place / "all.db") as db:
        reads, moved = db.execute(
            "SELECT count(*), sum(bytes) FROM span JOIN string ON string.id = name_id "
            "WHERE value LIKE 'pread%'").fetchone()
        links = [moved for _, _, moved in db.execute(LINKS).fetchall()]
        whole, = db.execute("SELECT sum(bytes) FROM span").fetchone()
        devices = db.execute("SELECT name FROM device").fetchall()
        steps, = db.execute("SELECT count(*) FROM step").fetchone()
        threads, = db.execute("SELECT count(DISTINCT track_id) FROM span JOIN track ON "
                              "track.id = track_id WHERE kind = 'thread'").fetchone()
    bytes_of_all = 6 * 20 * 500 + 10 * (1000 + 1001 + 1002)
    require_equal((reads, moved, links), (150, bytes_of_all, [whole]), "bytes")
    require_equal((len(devices), steps), (1, 6), f"devices {devices}, steps")
    require(threads >= 4, f"{threads} tracks of threads")
    require_words(sluice("show", place / "all.db").done().out, ["6 steps", "pread"], "show")
    sluice("merge", place / "all.db", "-o", place / "again.db").refused(2, ["already"])
    recorded(place, python("pass"), name="other.db")
    code, _, _ = recorded(place, ["cat", file], name="other.db")
    sluice("merge", place / "run.db", place / "other.db", "-o",
           place / "again.db").refused(2, ["not recorded together"])


@test
def what_fio_moves_is_recorded_to_the_byte(place):
    if shutil.which("fio") is None:
        raise Skip("there is no fio")
    (place / "file").write_bytes(bytes(4 << 20))
    for engine in ("libaio", "psync", "pvsync2"):
        code, out, said = recorded(place, [
            "fio", "--name=job", f"--filename={place / 'file'}", "--direct=1", "--rw=randrw",
            "--bs=16k", f"--ioengine={engine}", "--iodepth=8", "--size=4m", "--thread",
            "--output-format=json"])
        if "Invalid argument" in said or "not loadable" in said:
            raise Skip(f"fio has no {engine} with O_DIRECT here")
        require_equal(code, 0, f"fio {engine}: {said}")
        job, = json.loads(out[out.index("{"):])["jobs"]  # behind its notes
        with database(place / "run.db") as db:
            moved = {direction: size for link, direction, size in db.execute(LINKS).fetchall()
                     if "page cache" not in link}
        require_equal(moved, {"read": job["read"]["io_bytes"], "write": job["write"]["io_bytes"]},
                      f"bytes with {engine}")


AIO = r"""
#include <fcntl.h>
#include <libaio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  const int file = open(argv[argc - 1], O_RDONLY);
  io_context_t context = 0;
  struct iocb block, *blocks[] = {&block};
  struct io_event done[3];
  char* bytes = malloc(4096);
  if (io_setup(8, &context) != 0) return 77;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) {  /* from one place: the system has a copy of the first */
      io_prep_pread(&block, file, bytes, 1000 + i, 0);
      if (io_submit(context, 1, blocks) != 1) return 1;
    }
    if (io_getevents(context, 3, 3, done, NULL) != 3) return 2;
  }
  io_prep_pread(&block, 999, bytes, 1000, 0);
  return io_submit(context, 1, blocks) == 1;
}
"""


@test
def an_operation_submitted_from_where_another_is_under_way_is_recorded(place):
    compiler = shutil.which("cc")
    (place / "main.c").write_text(AIO)
    built = compiler and subprocess.run([compiler, place / "main.c", "-o", place / "program",
                                         "-laio"], capture_output=True, check=False)
    if not built or built.returncode != 0:
        raise Skip("no cc, or no libaio.h")
    (place / "data").write_bytes(bytes(4096))
    code, _, said = recorded(place, [place / "program", place / "data"])
    if code == 77:
        raise Skip("this kernel refuses Linux aio")
    require_equal(code, 0, f"exit code: {said}")
    require_equal(operations(place / "run.db"), {"aio read": [30, 10 * 3003, 0]}, "operations")


# Two optimizers, accumulation of two, and an evaluation that changes nothing.
TRAINING = """
import os, sys, torch
file = os.open(sys.argv[1], os.O_RDONLY)
first, second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)
model = torch.nn.Sequential(first, torch.nn.GELU(), second)
optimizers = [torch.optim.SGD(first.parameters(), lr=0.1), torch.optim.AdamW(second.parameters())]
for step in range(6):
    for _ in range(2):
        os.pread(file, 256, step)
        model(torch.ones(4, 64)).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
print(sum(float(p.double().sum()) for p in model.parameters()), flush=True)
os._exit(0)  # as programs with threads of DeepSpeed's end
"""


@test
def a_program_of_torch_has_steps_with_forward_and_backward(place):
    python_of_torch = VENV / "bin/python"
    if not python_of_torch.exists():
        raise Skip(f"there is no {python_of_torch} (scripts/setup installs torch there)")
    (place / "data").write_bytes(bytes(1000))
    (place / "own").mkdir()
    (place / "own/sitecustomize.py").write_text("print('its own')\n")
    text = "import torch; torch.manual_seed(1)\n" + TRAINING
    command = [python_of_torch, "-c", text, place / "data"]
    environment = os.environ | {"PYTHONPATH": str(place / "own"), "OMP_NUM_THREADS": "1"}
    alone = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    require_equal(alone.returncode, 0, f"the program alone: {alone.stderr}")
    code, out, said = recorded(place, command, env=environment)
    require_equal((code, out), (0, alone.stdout), f"exit code and stdout: {said}")
    require(out.startswith("its own"), "the program's own sitecustomize has not run")
    with database(place / "run.db") as db:
        steps = db.execute("SELECT id FROM step ORDER BY id").fetchall()
        counts = db.execute(
            "SELECT value, count(*) FROM span JOIN string ON string.id = name_id WHERE step_id = 3 "
            "AND value IN ('forward', 'backward', 'optimizer.step') GROUP BY 1").fetchall()
        modules = db.execute(
            "SELECT value, count(*) FROM span JOIN string ON string.id = name_id JOIN track ON "
            "track.id = track_id WHERE step_id = 3 AND kind = 'module' GROUP BY 1").fetchall()
    require_equal(steps, [(number,) for number in range(6)], "steps")
    require_equal(dict(counts), {"forward": 2, "backward": 2, "optimizer.step": 2},
                  "operations of a step")
    require_equal(dict(modules), {"0": 2, "1": 2, "2": 2}, "modules of a step")
    shown = sluice("show", place / "run.db").done().out
    require_words(shown, ["6 steps", "forward, backward", "another program's record"], "show")


# A span within one that is a step, another's context manager and a function with a name.
SPANS = """
import os, sys
from sluice import span
file = os.open(sys.argv[1], os.O_RDONLY)
@span("backward")
def compute(depth):
    return compute(depth - 1) if depth else os.pread(file, 100, 0)
for step in range(4):
    with span("train_step"):
        with span("data"), span("nobody's"):
            os.pread(file, 300, 0)
        compute(1)
print(len(compute(0)))
"""


def counts_of_step(place, step):
    with database(place / "run.db") as db:
        return dict(db.execute(
            "SELECT value || ', ' || kind, count(*) FROM span JOIN string ON string.id = name_id "
            "JOIN track ON track.id = track_id WHERE step_id = ? AND kind <> 'recorder' GROUP BY 1",
            (step,)).fetchall())


@test
def spans_with_names_are_operations_and_steps_as_the_rules_have_it(place):
    (place / "data").write_bytes(bytes(1000))
    environment = os.environ | {"PYTHONPATH": str(BUILD / "python")}
    command = [PYTHON, "-c", SPANS, place / "data"]
    alone = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    require_equal((alone.returncode, alone.stdout), (0, "100\n"), f"alone: {alone.stderr}")
    code, out, said = recorded(place, ["--step-marker", "train_step", "--", *command],
                               env=environment)
    require_equal((code, out), (0, alone.stdout), f"exit code and stdout: {said}")
    with database(place / "run.db") as db:
        steps = db.execute("SELECT id FROM step ORDER BY id").fetchall()
    require_equal(steps, [(number,) for number in range(4)], "steps")
    found = counts_of_step(place, 2)
    reads = [found.pop(name) for name in list(found) if name.startswith("pread")]
    require_equal((reads, found), ([2], {"data, thread": 1, "nobody's, module": 1,
                                         "backward, thread": 2}), "operations of a step")
    require_words(sluice("show", place / "run.db").done().out, ["data and host work"], "show")


URING = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  struct io_uring ring;
  if (io_uring_queue_init(8, &ring, 0) != 0) return 77;
  const int file = open(argv[argc - 1], O_RDWR);
  char* bytes = calloc(8, 4096);
  io_uring_register_files(&ring, &file, 1);
  long moved = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 8; ++i) {
      struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
      if (i == 3) io_uring_prep_write(entry, file, bytes, 4096, 0);
      else io_uring_prep_read(entry, i == 0 ? 0 : file, bytes + i * 4096, 4096 - i, i * 4096);
      if (i == 0) entry->flags |= IOSQE_FIXED_FILE;
      if (i == 7) entry->off = 1 << 20;  /* behind the end: nothing */
      io_uring_sqe_set_data64(entry, i);
    }
    io_uring_submit(&ring);
    for (int i = 0; i < 8; ++i) {
      struct io_uring_cqe* done;
      if (io_uring_wait_cqe(&ring, &done) != 0) return 1;
      moved += done->res;
      io_uring_cqe_seen(&ring, done);
    }
  }
  io_uring_prep_fsync(io_uring_get_sqe(&ring), file, 0);
  io_uring_prep_read(io_uring_get_sqe(&ring), 999, bytes, 1, 0);
  io_uring_submit_and_wait(&ring, 2);
  io_uring_queue_exit(&ring);
  printf("%ld\n", moved);
  FILE* stream = fopen(argv[argc - 1], "r");
  for (int i = 0; i < 3; ++i) moved = fread(bytes, 10, 1000, stream);  /* 10,000 bytes each */
  return fgetc(stream) == EOF || moved != 1000;
}
"""


@test
def io_uring_and_streams_are_recorded_to_the_byte(place):
    compiler = shutil.which("cc")
    (place / "main.c").write_text(URING)
    built = compiler and subprocess.run([compiler, place / "main.c", "-o", place / "program",
                                         "-luring"], capture_output=True, check=False)
    if not built or built.returncode != 0:
        raise Skip("no cc, or no liburing.h")
    (place / "data").write_bytes(bytes(65536))
    code, out, said = recorded(place, [place / "program", place / "data"])
    if code == 77:
        raise Skip("this kernel refuses io_uring")
    require_equal(code, 0, f"exit code: {said}")
    found = operations(place / "run.db")
    read = 50 * sum(4096 - i for i in (0, 1, 2, 4, 5, 6))
    require_equal((found["io_uring read"], found["io_uring write"], found["io_uring fsync"][0],
                   found["fread"]), ([350, read, 0], [50, 50 * 4096, 0], 1, [3, 30_000, 0]),
                  "operations")
    require_equal(int(out), read + 50 * 4096, "bytes by the program's own count")


NVTX = r"""
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char bytes[100];
  const int file = open(argv[argc - 1], O_RDONLY);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  for (int step = 0; step < 3; ++step) {
    nvtxRangePushA("step");
    const int depth = nvtxRangePushW(L"gr\u00f6\u00dfe");
    if (read(file, bytes, 100) != 100) return 1;
    const int left = nvtxRangePop();
    nvtxDomainRangePushEx(domain, &event);
    nvtxRangeId_t id = nvtxRangeStartA("backward");
    nvtxDomainRangePop(domain);
    nvtxRangeEnd(id);
    nvtxRangePop();
    if (step > 0) continue;
    fprintf(stderr, "depth %d, left %d, one too many %d\n", depth, left, nvtxRangePop());
  }
  return 0;
}
"""


@test
def ranges_of_nvtx_are_seen_without_a_gpu(place):
    headers = sorted(pathlib.Path("/usr/local").glob("cuda*/include/nvtx3/nvToolsExt.h"))
    compiler = shutil.which("cc")
    if not headers or compiler is None:
        raise Skip("there is no nvtx3/nvToolsExt.h in /usr/local/cuda*/include, or no cc")
    (place / "main.c").write_text(NVTX)
    built = subprocess.run([compiler, f"-I{headers[0].parent.parent}", place / "main.c", "-o",
                            place / "program", "-ldl"], capture_output=True, text=True, check=False)
    require_equal(built.returncode, 0, f"the program: {built.stderr}")
    (place / "data").write_bytes(bytes(1000))
    code, _, said = recorded(place, ["--step-marker", "st?p", "--", place / "program",
                                     place / "data"])
    require_equal(code, 0, f"exit code: {said}")
    require_words(said, ["depth 1, left 1, one too many -1"], "what NVTX gave the program")
    require_equal(counts_of_step(place, 1),
                  {"größe, module": 1, "registered, module": 1, "backward, thread": 1,
                   "read, thread": 1}, "operations of a step")


@test
def a_gpu_that_cannot_be_recorded_is_said_and_the_program_goes_on(place):
    if pathlib.Path("/proc/driver/nvidia").exists():
        raise Skip("there is a GPU")
    (place / "data").write_bytes(bytes(1000))
    text = f"""
import ctypes, os
f = os.open({str(place / "data")!r}, os.O_RDONLY)
print(ctypes.CDLL(None).InitializeInjection())  # as CUDA's driver calls it
os.pread(f, 123, 0)
"""
    code, out, said = recorded(place, python(text))
    require_equal((code, out), (0, "1\n"), f"exit code and stdout: {said}")
    require_words(said, ["no kernels of the GPU", "CUPTI"], "stderr")
    found = operations(place / "run.db")
    require_equal([found[name][1] for name in ("pread64", "pread") if name in found], [123],
                  "bytes behind it")


@test
def rules_say_what_is_in_files(place):
    swapped = place / "zero_stage_3/optimizer/rank0/7.tensor.swp"
    swapped.parent.mkdir(parents=True)
    own = place / "own.mine"
    for file in (swapped, own):
        file.write_bytes(bytes(5000))
    (place / "rules.toml").write_text(
        '[[file]]\npath = "*.mine"\nname = "my data"\ncause = "program"\n')
    text = f"import os\nfor f in {[str(swapped), str(own)]!r}: os.read(os.open(f, 0), 5000)"
    code, _, said = recorded(place, ["--rules", place / "rules.toml", "--", *python(text)])
    require_equal(code, 0, f"exit code: {said}")
    found = operations(place / "run.db")
    for name in ("optimizer state: read", "my data: read"):
        require_equal(found.get(name), [1, 5000, 0], f"{name} of {found}")
    with database(place / "run.db") as db:
        causes = dict(db.execute("SELECT value, cause FROM stage JOIN string ON "
                                 "string.id = name_id").fetchall())
    require_equal((causes["my data: read"], causes["optimizer state: read"]), ("program", None),
                  "causes")
    for wrong, words in (('[[file]]\nname = "x"\n', ["rules.toml:1", "path"]),
                         ('[[range]]\nname = "x"\nplase = "host"\n', ["rules.toml:3", "'place'"]),
                         ('[[range]]\nname = "x"\nphase = "foward"\n', ["'forward'"]),
                         ('[[ranges]]\nname = "x"\n', ["did you mean 'range'"]),
                         ('[range]\nname = "x"\n', ["[[range]]"])):
        (place / "rules.toml").write_text(wrong)
        code, out, said = recorded(place, ["--rules", place / "rules.toml", "--", "echo", "ran"],
                                   name="none.db")
        require_equal((code, out), (2, ""), f"exit code and stdout with {wrong}")
        require_words(said, words, f"stderr with {wrong}")
    require(not (place / "none.db.processes").exists(), "a refused record left a folder")


READS = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char bytes[512];
  const int file = open(argv[1], O_RDONLY);
  for (int i = 0, count = atoi(argv[2]); i < count; ++i)
    if (pread(file, bytes, 512, 0) != 512) return 1;
  return 0;
}
"""
# A read of a program that makes 200,000 a second takes 5 us: 15,000 cycles at 3 GHz. A twentieth.
ADDED_INSTRUCTIONS_MAX = 750


def instructions_of_the_program(place, reads, library):
    """Of its own thread within main(), counted by valgrind: behind it the program writes what the
    collector's thread has not taken yet, more or less of it as the machine is busy."""
    folder = place / "counted"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = os.environ | {"SLUICE_RECORD_FOLDER": str(folder), "LD_PRELOAD": library}
    counted = subprocess.run(
        ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--toggle-collect=main",
         f"--callgrind-out-file={folder / 'out'}", place / "program", place / "data", str(reads)],
        env=environment, capture_output=True, text=True, check=False)
    require_equal(counted.returncode, 0, f"valgrind: {counted.stderr}")
    for file in folder.glob("out*"):
        text = file.read_text()
        if "\nthread: 1\n" in text:
            return int(text.split("\ntotals: ")[1].split()[0])
    raise AssertionError(f"valgrind says nothing of the first thread: {counted.stderr}")


@test
def a_call_costs_few_instructions_more(place):
    compiler = shutil.which("cc")
    if compiler is None or shutil.which("valgrind") is None:
        raise Skip("no cc, or no valgrind to count instructions with")
    (place / "main.c").write_text(READS)
    subprocess.run([compiler, "-O2", place / "main.c", "-o", place / "program"], check=True)
    (place / "data").write_bytes(bytes(4096))
    library = str(BUILD / "lib/libsluice_inject.so")
    few, many = 2000, 12_000
    of_few, of_many = (instructions_of_the_program(place, count, library) -
                       instructions_of_the_program(place, count, "") for count in (few, many))
    added = (of_many - of_few) / (many - few)
    require(0 < added <= ADDED_INSTRUCTIONS_MAX, f"{added} more instructions a call")


@test
def a_killed_program_leaves_its_record(place):
    file = place / "file"
    file.write_bytes(bytes(1000))
    text = f"""
import os, signal, time
f = os.open({str(file)!r}, os.O_RDONLY)
for i in range(100): os.pread(f, 10, i)
time.sleep(0.5)
os.kill(os.getpid(), signal.SIGKILL)
"""
    code, _, said = recorded(place, python(text))
    require_equal(code, 128 + 9, f"exit code: {said}")
    found = operations(place / "run.db")
    require_equal([found[name][1] for name in ("pread64", "pread") if name in found], [1000],
                  "bytes")


@test
def a_recording_outlives_the_one_who_began_it(place):
    file = place / "file"
    file.write_bytes(bytes(1000))
    text = f"""
import os, sys
f = os.open({str(file)!r}, os.O_RDONLY)
for i in range(50): os.pread(f, 10, i)
print("half", flush=True)
sys.stdin.read()
for i in range(50): os.pread(f, 10, i)
"""
    with subprocess.Popen([SLUICE, "record", "-o", place / "run.db", "--", *map(str, python(text))],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as began:
        require_equal(began.stdout.readline(), b"half\n", "the program")
        began.kill()
        began.stdin.close()  # and the program goes on
        began.stdout.read()  # until it ends
    path, = processes(place)
    found = operations(path)
    require_equal([found[name][1] for name in ("pread64", "pread") if name in found], [1000],
                  "bytes")
    require_words(sluice("show", path).done().out, ["pread"], "show")


@test
def a_commands_words_are_its_own(place):
    words = ["-o", "--output", "[1,2]", "a b", "", "--", "%s", "\\n", "--help"]
    code, out, _ = recorded(place, [*python("import sys; print(sys.argv[1:])"), *words])
    require_equal((code, out), (0, f"{words}\n"), "words")
    sluice("record", "true", cwd=place.path).refused(2, ["record -- true"])
    # Behind the mark of another command stand its own words.
    sluice("show", "--", place / "run.db").done()


@test
def what_cannot_be_recorded_is_said(place):
    code, _, said = recorded(place, ["/nonexistent/program"])
    require_equal(code, 127, "exit code")
    require_words(said, ["No such file", "nothing was recorded"], "stderr")
    (place / "text.db").write_text("not a run")
    code, _, said = recorded(place, ["true"], name="text.db")
    require_equal((code, (place / "text.db").read_text()), (2, "not a run"), "a foreign file")
    compiler = shutil.which("cc")
    if compiler is None:
        raise Skip("there is no cc for a program that is statically linked")
    (place / "main.c").write_text("int main(void) { return 4; }\n")
    built = subprocess.run([compiler, "-static", place / "main.c", "-o", place / "static"],
                           capture_output=True, check=False)
    if built.returncode != 0:
        raise Skip("cc links nothing statically here")
    code, _, said = recorded(place, [place / "static"])
    require_equal(code, 4, "exit code")
    require_words(said, ["statically linked", "nothing of it can be recorded"], "stderr")


if __name__ == "__main__":
    sys.exit(main())
