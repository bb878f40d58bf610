#!/usr/bin/env python3
"""`sluice replay`: records of several programs run again in simulated time, on their own machine
and with half a link, which is compared with a record of a machine that has it; what is refused."""

import os
import sys

import c_program
from sluice_run import (SAMPLES, TESTBED, database, main, require, require_equal,
                        require_words, sluice, test)

MODEL = SAMPLES / "models/gpt2-0.34b.toml"
# Each is a schedule of its own: what waits for what differs.
SCHEDULES = {
    "host, one subgroup after the other": {"method": "host", "pipeline": "serial"},
    "host, several at once": {"method": "host", "pipeline": "nbuffer"},
    "devices, one subgroup after the other": {"method": "csd", "pipeline": "serial"},
    "devices, several at once": {"method": "csd", "pipeline": "nbuffer"},
    "devices, arrays handed over": {"method": "csd", "pipeline": "handover"},
    "activations on the drives": {"method": "csd", "activations": "offload"},
    "parameters on the drives": {"method": "host", "parameter_tier": "storage"},
}


def half_of(place, table, name):
    """The test platform with half the rates in one table, as a file of its own."""
    head, mark, rest = TESTBED.read_text().partition(table)
    lines, halved = rest.splitlines(), 0
    for i, line in enumerate(lines):
        key, _, value = line.partition(" = ")
        if key in ("read", "write") and halved < 2:
            rate = float(value.split('"')[1].split()[0])
            lines[i] = f'{key} = "{rate / 2} GB/s"'
            halved += 1
    require_equal(halved, 2, f"rates halved in {table}")
    path = place / name
    path.write_text(head + mark + "\n".join(lines) + "\n")
    return path


def step_seconds(run):
    with database(run) as db:
        return db.execute("SELECT sum(dur) / 1e9 / count(*) FROM step").fetchone()[0]


def simulated(place, name, platform=TESTBED, **settings):
    return place.simulate(MODEL, name, platform, devices=4, subgroup_elements=10_000_000,
                          **settings)


@test
def a_record_on_its_own_machine_takes_what_was_recorded(place):
    for number, (what, settings) in enumerate(SCHEDULES.items()):
        run = simulated(place, f"{number}.db", **settings)
        answer = sluice("replay", run, "--json").json()
        require_equal(answer["explains"], True, what)
        require(abs(answer["seconds"]["error"]) < 0.05, f"{what}: {answer['seconds']}")
        require(abs(answer["seconds"]["recorded"] / step_seconds(run) - 1) < 1e-6,
                f"{what}: {answer['seconds']}")
        again = sluice("replay", run, "--json").json()
        require_equal(again, answer, f"{what}, a second time")


@test
def half_a_link_takes_what_a_machine_with_half_of_it_takes(place):
    halves = {"host": half_of(place, "[[link]]", "half-host.toml"),
              "drive": half_of(place, "[device.drive]", "half-drive.toml")}
    for number, (what, settings) in enumerate(list(SCHEDULES.items())[:4]):
        run = simulated(place, f"{number}.db", **settings)
        for link, platform in halves.items():
            there = step_seconds(simulated(place, f"{number}-{link}.db", platform, **settings))
            reply = sluice("replay", run, "--link", f"{link}=x0.5", "--json").json()
            here = reply["changes"][0]["seconds"]
            require(abs(here / there - 1) < 0.1,
                    f"{what}, half of {link}: replayed {here}, simulated there {there}, "
                    f"recorded {step_seconds(run)}")


@test
def a_run_that_trains_is_replayed_and_says_what_stands_in(place):
    place.train("--steps", 6, clock="emulated", time_scale=20).done()
    reply = sluice("replay", place / "out/run.db", "--link", "drive=x2", "--compress",
                   "gradient_down=0.1", "--without", "update", "--on-csd")
    # Its state is on CSDs already.
    reply.refused(2, ["--on-csd", "updated in them already"])
    reply = sluice("replay", place / "out/run.db", "--link", "drive=x2")
    require(reply.code in (0, 1), f"exit code {reply.code}: {reply.err}")
    first = reply.out.splitlines()[0]
    require(first.startswith("Replay of 4 steps: ") and first.endswith(" %"), first)
    require_words(reply.out, ["SIMULATED", "EMULATED CLOCK x20"], "the replay")
    require_equal("--link drive=x2" in reply.out, reply.code == 0, "an answer where there is one")


@test
def state_moves_to_csds_where_the_record_says_which_it_is(place):
    run = simulated(place, "host.db", method="host", pipeline="nbuffer")
    there = step_seconds(simulated(place, "csd.db", method="csd", pipeline="nbuffer"))
    answer = sluice("replay", run, "--on-csd", "--platform", TESTBED, "--csd", 4, "--json").json()
    here = answer["changes"][0]["seconds"]
    require(abs(here / there - 1) < 0.1, f"replayed {here}, simulated {there}")
    require("not in this record" in answer["notes"][0], answer["notes"])


@test
def a_program_that_no_record_explains_gets_no_figures(place):
    (place / "data").write_bytes(bytes(8 << 20))
    (place / "program.py").write_text(
        "import time\n"
        "for _ in range(8):\n"
        "    with open('data', 'rb', buffering=0) as file:\n"
        "        while file.read(1 << 20):\n"
        "            time.sleep(0.01)\n")
    sluice("record", "-o", place / "run.db", "--", sys.executable, "program.py",
           cwd=place.path).done()
    alone = sluice("replay", place / "run.db").done()
    require_words(alone.out, ["whole run, which has no steps", "NOT ANSWERED"], "the replay")
    asked = sluice("replay", place / "run.db", "--without", "read")
    require_equal(asked.code, 1, f"exit code: {asked.err}")
    require_words(asked.out, ["no recorded operation was under way",
                              "Nothing is said of other machines"], "the replay")
    require("--without read" not in asked.out, "a figure of another machine")
    reply = sluice("replay", place / "run.db", "--without", "raed")
    reply.refused(2, ["no operation", "did you mean 'read'?"])


@test
def what_is_asked_wrongly_is_said_in_a_sentence(place):
    run = simulated(place, "run.db", method="csd")
    for arguments, words in (
            (["--link", "hots=x2"], ["no link", "did you mean 'host'?"]),
            (["--link", "host"], ["--link host=x2"]),
            (["--compress", "update=0.5"], ["moves no bytes"]),
            (["--compress", "state_read=2"], ["at most 1"]),
            (["--without", "updat"], ["did you mean 'update'?"]),
            (["--drives", "0"], ["1 to 1024"]),
            (["--csd", "4"], ["--on-csd"])):
        sluice("replay", run, *arguments).refused(2, words)
    with database(run, "rw") as db:
        db.execute("DELETE FROM span")
        db.execute("DELETE FROM span_run")
        db.commit()
    sluice("replay", run).refused(2, ["no operations", "level"])


C_PROGRAM = """\
#include <stdio.h>

#include "profiler/c_api/sluice_record.h"

/* A thread that reads 1 MB in 1 ms and computes for 2 ms, 20 times: times are given, not taken. */
int main(int argc, char** argv) {
  sluice_recording* run = sluice_record_start(argc > 1 ? argv[1] : "run.db", "reader", SLUICE_ALL);
  if (run == NULL) return fprintf(stderr, "%s\\n", sluice_record_error()), 1;
  const sluice_device disk = sluice_record_device(run, "disk", 0, 0);
  const sluice_track main_thread = sluice_record_track(run, SLUICE_NO_TRACK, "main");
  const sluice_track reads = sluice_record_transfer_track(run, main_thread, "reads", disk,
                                                          SLUICE_NO_LINK, SLUICE_OUT_OF_DRIVE);
  const sluice_name read = sluice_record_name(run, "read");
  const sluice_name compute = sluice_record_name(run, "compute");
  int64_t now = sluice_record_now();
  for (int i = 0; i < 20; ++i) {
    sluice_span_at(run, reads, read, now, now, now + 1000000, 1000000);
    sluice_span_at(run, main_thread, compute, now + 1000000, now + 1000000, now + 3000000, 0);
    now += 3000000;
  }
  if (sluice_record_stop(run) != 0) return fprintf(stderr, "%s\\n", sluice_record_error()), 1;
  return 0;
}
"""


@test
def a_c_programs_record_is_one_like_any_other(place):
    program = c_program.compiled(place, C_PROGRAM)
    require_equal(os.spawnv(os.P_WAIT, program, [str(program), str(place / "run.db")]), 0,
                  "exit code of the C program")
    answer = sluice("replay", place / "run.db", "--link", "disk.drive=x2", "--without", "compute",
                    "--json").json()
    require_equal(answer["has_steps"], False, "steps")
    for found, wanted in ((answer["seconds"]["recorded"], 0.060),
                          (answer["seconds"]["replayed"], 0.060),
                          (answer["changes"][0]["seconds"], 0.050),
                          (answer["changes"][1]["seconds"], 0.020),
                          (answer["changes"][2]["seconds"], 0.010)):
        require(abs(found / wanted - 1) < 0.01, f"{found}, expected {wanted}: {answer}")


if __name__ == "__main__":
    sys.exit(main())
