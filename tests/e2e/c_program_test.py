#!/usr/bin/env python3
"""A C program that records through sluice_record.h and the shared library alone: what it leaves is
a run like any other for show, report and export."""

import json
import os
import subprocess
import sys

from c_program import compiled
from sluice_run import BUILD, Skip, main, require, require_equal, require_words, sluice, test

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
