#!/usr/bin/env python3
"""A program that records at full rate is killed at random instants, by seed: `sluice show` opens
each file that it leaves as it is. There is no option for repairing one, and no need of any.

tests/profiler/collect/kill_test.cpp kills 200 times and looks at what each file holds."""

import random
import signal
import subprocess
import sys
import time

from c_program import compiled
from sluice_run import (LIMIT_S, check_database, database, main, require, require_equal, sluice,
                        test)

KILLS = 30
RECORD_FOR_EVER = """\
#include <stdio.h>

#include "profiler/c_api/sluice_record.h"

int main(int argc, char** argv) {
  sluice_recording* run = sluice_record_start(argv[argc - 1], "for ever", SLUICE_ALL);
  if (run == NULL) return 1;
  const sluice_track disk = sluice_record_track(run, SLUICE_NO_TRACK, "disk");
  const sluice_name read = sluice_record_name(run, "read");
  for (int step = 0;; ++step) {
    sluice_step_begin(run, step);
    for (int i = 0; i < 200; ++i) {
      sluice_span_end(run, sluice_span_begin(run, disk, read), 4096);
    }
    sluice_step_end(run);
    if (step == 0 && (puts("recording") < 0 || fflush(stdout) != 0)) return 1;
  }
}
"""


def wait_for_a_flush(path):
    until = time.monotonic() + LIMIT_S
    while True:
        with database(path) as db:
            if db.execute("SELECT count(*) FROM step").fetchone()[0] > 0:
                return
        require(time.monotonic() < until, f"{path} has no step")
        time.sleep(0.002)


@test
def show_opens_what_kills_leave_without_any_repair(place):
    source = random.Random(20261122)
    program = compiled(place, RECORD_FOR_EVER)
    steps = []
    for number in range(KILLS):
        path = place / f"run{number}.db"
        process = subprocess.Popen([program, path], stdout=subprocess.PIPE)
        require_equal(process.stdout.readline(), b"recording\n", "the program's first word")
        if number % 2:
            wait_for_a_flush(path)
        time.sleep(source.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        require_equal(process.wait(), -signal.SIGKILL, "how the program ended")
        process.stdout.close()
        shown = sluice("show", path, "--json").json()
        check_database(path)
        require_equal(shown["meta"]["name"], "for ever", "name of the run")
        steps.append(len(shown["steps"]))
        for suffix in ("", "-wal", "-shm", "-writer"):
            (place / f"run{number}.db{suffix}").unlink(missing_ok=True)
    # The others have none where they were killed before their first flush.
    require(all(count > 0 for count in steps[1::2]), f"steps that were shown: {steps}")


@test
def there_is_no_option_for_repairing(place):
    text = sluice("show", "--help").done().out
    require("--repair" not in text, f"show has an option for repairing: {text}")
    sluice("show", place / "run.db", "--repair").refused(2, ["--repair"])


if __name__ == "__main__":
    sys.exit(main())
