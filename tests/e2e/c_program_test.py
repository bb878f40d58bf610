#!/usr/bin/env python3
"""A C program that records through sluice_record.h and the shared library alone: what it leaves is
a run like any other for show, report and export."""

import json
import os
import shutil
import subprocess
import sys

from c_program import compiled
from sluice_run import (BUILD, Skip, database, main, require, require_equal, require_words, sluice,
                        test)

# Spans and a counter, and no step.
WITHOUT_STEPS = """\
#include "profiler/c_api/sluice_record.h"

int main(int argc, char** argv) {
  sluice_recording* run = sluice_record_start(argv[argc - 1], "no steps", SLUICE_ALL);
  if (run == NULL) return 1;
  const sluice_track disk = sluice_record_track(run, SLUICE_NO_TRACK, "disk");
  const sluice_track depth = sluice_record_counter_track(run, disk, "depth (requests)");
  for (int i = 0; i < 100; ++i) {
    sluice_counter(run, depth, i % 3);
    sluice_span_end(run, sluice_span_begin(run, disk, sluice_record_name(run, "read")), 4096);
  }
  return sluice_record_stop(run) == 0 ? 0 : 1;
}
"""


def example(path):
    program = BUILD / "bin/sluice_record_example"
    if not os.access(program, os.X_OK):
        raise Skip(f"there is no {program}")
    require_equal(subprocess.run([program, path], check=False).returncode, 0, "exit code")
    return path


# Two steps of a drive, and of a link whose rate nobody knows.
WITH_THE_CPP_FACE = """\
#include <sluice_record.hpp>

int main(int, char** argv) {
  sluice_record::Recording run(argv[1], "copies");
  const sluice_device drive = run.device("nvme0", 2e9, 1e9);
  const sluice_link bus = run.link("pcie");
  const sluice_track in = run.transfers("in", SLUICE_NO_TRACK, drive, bus, SLUICE_OUT_OF_DRIVE);
  const sluice_stage transfer = {SLUICE_TRANSFER, SLUICE_ON_DEVICE, SLUICE_NO_PHASE,
                                 SLUICE_BY_PLACE};
  const sluice_name load = run.stage("load", transfer);
  for (int i = 0; i < 2; ++i) {
    sluice_record::Step step(run, i);
    sluice_record::Span span(run, in, load);
    span.add_bytes(4096);
  }
  try {
    run.stage("wrong", {SLUICE_TRANSFER, 99, SLUICE_NO_PHASE, SLUICE_BY_PLACE});
    return 1;
  } catch (const std::runtime_error&) {
  }
  run.stop();
}
"""


def installed(place):
    """The library as a package would put it, with what pkg-config says of it."""
    if not shutil.which("cmake") or not shutil.which("pkg-config") or not shutil.which("c++"):
        raise Skip("there is no cmake, no pkg-config or no C++ compiler")
    prefix = place / "usr"
    run(["cmake", "--install", BUILD, "--component", "record", "--prefix", prefix])
    require_equal(sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*.h*")),
                  ["include/sluice_record.h", "include/sluice_record.hpp"], "headers")
    flags = run(["pkg-config", "--cflags", "--libs", "sluice-record"],
                env=os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()
    return prefix, flags


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          **options)
    require_equal(done.returncode, 0, f"{command}: {done.stderr}")
    return done.stdout


@test
def a_program_elsewhere_links_what_is_installed(place):
    prefix, flags = installed(place)
    (place / "program.cpp").write_text(WITH_THE_CPP_FACE)
    run(["c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", place / "program.cpp", "-o",
         place / "program", *flags, f"-Wl,-rpath,{prefix / 'lib'}"])
    run([place / "program", place / "run.db"])
    with database(place / "run.db") as db:
        require_equal(db.execute("SELECT link, direction, sum(bytes) FROM link_bytes GROUP BY 1, 2 "
                                 "ORDER BY 1").fetchall(),
                      [("nvme0.drive", "read", 8192), ("pcie", "read", 8192)], "bytes of links")
    said = sluice("show", place / "run.db").done().out
    require_words(said, ["copies", "2 steps", "load"], "show")
    sluice("report", place / "run.db", "-o", place / "page.html").done()


@test
def a_program_with_steps_is_shown_reported_and_exported(place):
    path = example(place / "run.db")
    require_words(sluice("show", path).done().out, ["copy", "10 steps", "read", "Nothing was lost"],
                  "show")
    shown = sluice("show", path, "--json").json()
    require_equal(len(shown["steps"]), 10, "steps of show --json")
    page = place / "page.html"
    sluice("report", path, "-o", page).done()
    require_words(page.read_text(), ["copy", "recorded by another program"], "the page")
    sluice("export", path, "--format", "chrome", "-o", place / "trace.json").done()
    events = json.loads((place / "trace.json").read_text())["traceEvents"]
    reads = [event for event in events if event["ph"] == "X" and event["name"] == "read"]
    require_equal([event["args"]["step"] for event in reads], list(range(1, 11)), "steps of reads")
    require_equal({event["args"]["bytes"] for event in reads}, {4096}, "bytes of reads")


@test
def a_program_without_steps_is_still_something_to_look_at(place):
    program = compiled(place, WITHOUT_STEPS)
    path = place / "run.db"
    require_equal(subprocess.run([program, path], check=False).returncode, 0, "exit code")
    require_words(sluice("show", path).done().out, ["no steps", "read", "100"], "show")
    page = place / "page.html"
    sluice("report", path, "-o", page).done()
    require("no steps" in page.read_text(), "the page does not name the run")
    sluice("export", path, "--format", "chrome", "-o", place / "trace.json").done()
    events = json.loads((place / "trace.json").read_text())["traceEvents"]
    kinds = [event["ph"] for event in events
             if event["name"] in ("read", "depth (requests)")]
    require_equal((kinds.count("X"), kinds.count("C")), (100, 100), "reads and samples")


if __name__ == "__main__":
    sys.exit(main())
