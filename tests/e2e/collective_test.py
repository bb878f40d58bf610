#!/usr/bin/env python3
"""Ranks that are processes of MPI (docs/collective.md): what every implementation promises, what
happens to all when one dies, stops or fails, and the same over two nodes."""

import re
import subprocess
import sys
import uuid

from launched import environment, left_of, mpirun
from sluice_run import BUILD, LIMIT_S, main, require, require_equal, require_words, test
from two_nodes import two_nodes

PROGRAM = BUILD / "bin/collective_ranks"
RANKS = 4
PROMISES = 8  # lines PASS of `collective_ranks conformance`


def run(command):
    """Its exit code and what it printed; nothing of it is left, whoever was stopped or waits."""
    mark = uuid.uuid4().hex
    done = subprocess.run(command, env=environment(mark), capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    require_equal(left_of(mark), [], "processes that are left")
    return done.returncode, done.stdout + done.stderr


def ranks(mode):
    return run(mpirun() + ["-n", str(RANKS), str(PROGRAM), mode])


def require_promises(code, said):
    require_equal((code, len(re.findall("^PASS ", said, re.MULTILINE))), (0, PROMISES),
                  f"exit code and promises kept: {said}")


@test
def processes_keep_every_promise_and_ask_mpi_for_the_bytes_that_are_counted(_):
    for count in (1, 2, 3, 4, 8):
        require_promises(*run(mpirun() + ["-n", str(count), str(PROGRAM), "conformance"]))


@test
def processes_that_ask_for_different_things_are_told_both(_):
    code, said = ranks("differing")
    require_equal(code, 3, "exit code")
    require_words(said, ["rank 0 in its call 1 for all_reduce of 10 elements",
                         "rank 1 in its call 1 for reduce_scatter of 10 elements"], "the error")


def require_rank_2_named(mode):
    code, said = ranks(mode)
    require_equal(code, 3, f"exit code of {mode}: {said}")
    errors = re.findall(r"^ERROR (.*)", said, re.MULTILINE)
    require(errors, f"{mode}: nobody said an error: {said}")
    named = [re.search(r"no word of having joined it from ranks? ([\d, ]+): stopped", error)
             for error in errors]
    # The first to say so ends, and mpirun wakes rank 2 (SIGCONT) before it ends the rest: another
    # may then still hear from it. On a machine that stalls somebody else may have been silent too.
    require(any(found and "2" in found.group(1).split(", ") for found in named),
            f"{mode}: nobody names rank 2: {errors}")
    for error in errors:
        require_words(error, ["in group 0 (ranks 0, 1, 2, 3): it has not ended for"], mode)


@test
def a_stopped_process_is_named_by_those_who_wait_for_it(_):
    require_rank_2_named("stopped")


@test
def a_process_that_stops_within_a_call_is_named_too(_):
    require_rank_2_named("stopped_later")


@test
def a_killed_process_ends_all_of_them(_):
    code, said = ranks("killed")
    require_equal(code, 128 + 9, f"exit code: {said}")


@test
def a_process_that_ends_the_run_ends_all_with_its_words(_):
    code, said = ranks("ended")
    require_equal(code, 1, "exit code")
    require_words(said, ["sluice: rank 1 of 4: the drive is gone; all ranks end"], "its words")


@test
def a_process_that_leaves_ends_all_with_its_exit_code(_):
    code, said = ranks("leaves")
    require_equal(code, 7, f"exit code: {said}")


@test
def four_processes_on_two_nodes_keep_every_promise(place):
    with two_nodes(place) as nodes:
        on_both = nodes.mpirun(RANKS // 2) + ["-n", str(RANKS), str(PROGRAM)]
        code, said = run([*on_both, "nodes"])
        require_equal((code, re.findall(r"on node (\d)", said)), (0, ["0", "0", "1", "1"]),
                      f"nodes of the ranks: {said}")
        require_promises(*run([*on_both, "conformance"]))


if __name__ == "__main__":
    sys.exit(main(PROGRAM, "built without MPI?"))
