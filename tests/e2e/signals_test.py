#!/usr/bin/env python3
"""What a run and quick commands hear from outside: a terminal that closes, a reader that leaves,
output and files that cannot be written, a state or a text that is taken away. Each ends with what
it is meant to do, or with one sentence."""

import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys

from sluice_run import (LIMIT_S, SLUICE, check_database, committed_step, main, require,
                        require_equal, require_words, sluice, step_losses, test)


def shell(script, *arguments, **more):
    """A script of bash's, with the command as $0."""
    return subprocess.run(["bash", "-c", script, SLUICE, *map(str, arguments)], timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          **more)


def in_its_third_step(run, state):
    run.wait_for(lambda: (committed_step(state) or 0) >= 2, "two steps")


@contextlib.contextmanager
def hang_up_is(handler):
    """A child begins with this handler of SIGHUP: nohup has it ignored."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@test
def a_terminal_that_closes_ends_a_run_after_its_step_however_often_it_says_so(place):
    with hang_up_is(signal.SIG_DFL):  # also where nohup runs the tests
        run = place.start("--json", "--steps", 100_000)
    in_its_third_step(run, place / "out/state")
    for number in (signal.SIGUSR1, signal.SIGUSR2):  # a batch system's word ahead of the end
        run.signal(number)
    step = committed_step(place / "out/state")
    run.wait_for(lambda: committed_step(place / "out/state") > step + 2, "steps after SIGUSR1")
    for _ in range(3):
        run.signal(signal.SIGHUP)
    reply = run.wait()
    report = reply.json()
    require_equal(report["stopped"], True, "stopped")
    require_words(reply.err, ["finishing this step"], "stderr")
    require("left at once" not in reply.err, reply.err)
    require_equal(place.digest(), report["state_digest"], "digest")


@test
def a_run_that_was_told_to_ignore_its_terminal_does_so(place):
    with hang_up_is(signal.SIG_IGN):
        run = place.start("--steps", 100_000)
    state = place / "out/state"
    in_its_third_step(run, state)
    run.signal(signal.SIGHUP)
    step = committed_step(state)
    run.wait_for(lambda: committed_step(state) > step + 2, "steps after SIGHUP")
    run.signal(signal.SIGTERM)
    require_words(run.wait().done().out, ["Stopped"], "stdout")


@test
def a_limit_of_processor_time_ends_a_run_after_its_step(place):
    limited = shell('ulimit -S -t 4; exec "$0" "$@"', "train", place.run_file, "--json", "--steps",
                    100_000, "--set", f"output={place / 'limited'}")
    require_equal(limited.returncode, 0, f"exit code ({limited.stderr})")
    report = json.loads(limited.stdout)
    require_equal(report["stopped"], True, "stopped")
    require_equal(limited.stderr.count("finishing this step"), 1, "words of the stop")
    require(committed_step(place / "limited/state") >= 1, "no step was committed")


@test
def output_that_cannot_be_written_is_an_error(place):
    place.train("--steps", 2).done()
    recorded, state = place / "out/run.db", place / "out/state"
    for words in (["show", recorded], ["show", recorded, "--json"], ["state", state, "--json"],
                  ["compare", recorded, recorded, "--json"], ["--help"], ["train", "--help"]):
        full = shell('exec "$0" "$@" > /dev/full', *words)
        require_equal(full.returncode, 1, f"{words} > /dev/full")
        require_words(full.stderr, ["could not be written", "No space left"], f"{words}")
        closed = shell('exec "$0" "$@" >&-', *words)
        require_equal(closed.returncode, 1, f"{words} >&-")
        require_words(closed.stderr, ["could not be written"], f"{words}")
    check_database(recorded)  # a file that is opened has not got the number of stdout
    left = shell('set -o pipefail; "$0" "$@" --json | head -c 1', "show", recorded)
    require_equal((left.stdout, left.stderr), ("{", ""), "show --json | head -c 1")


@test
def a_run_outlives_its_readers_and_says_if_its_answer_was_lost(place):
    whole = place.train("--json", output="whole").json()
    left = shell('"$0" "$@" 2>&1 | head -n 1; exit "${PIPESTATUS[0]}"',
                 *place.arguments("--steps", 4), cwd=place.path)
    require_equal(left.returncode, 0, f"exit code of a run that nobody listens to: {left.stderr}")
    require_equal(place.digest(), whole["state_digest"], "digest")
    closed = shell('"$0" "$@" >&-', *place.arguments("--json", output="closed"), cwd=place.path)
    require_equal(closed.returncode, 1, "exit code with its JSON lost")
    require_words(closed.stderr, ["could not be written"], "stderr")
    require_equal(place.digest("closed/state"), whole["state_digest"], "digest")
    full = shell('"$0" "$@" >/dev/full', *place.arguments(output="full"), cwd=place.path)
    require_equal(full.returncode, 1, "exit code with a full drive behind stdout")


@test
def a_limit_on_file_sizes_that_only_the_record_reaches_ends_the_recording_alone(place):
    whole = place.train("--json", "--steps", 400, output="whole").json()

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (700 << 10, 700 << 10))
    done = subprocess.run([SLUICE, *map(str, place.arguments("--json", "--steps", 400))],
                          cwd=place.path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False, preexec_fn=limited)
    require_equal(done.returncode, 0, f"exit code: {done.stderr}")
    require_words(done.stderr, ["recording stopped", "ulimit -f"], "the warning")
    require(whole["state_digest"] in done.stdout, "the digest is another one")
    require(0 < len(step_losses(place / "out/run.db")) < 400, "all steps or none are recorded")
    refused = shell('ulimit -f 100; "$0" "$@"', *place.arguments(output="small"), cwd=place.path)
    require_equal(refused.returncode, 1, "exit code where the state does not fit")
    require_words(refused.stderr, ["sluice: error:", "ulimit -f"], "stderr")


@test
def a_run_whose_state_is_taken_away_fails_and_names_the_file(place):
    run = place.start("--steps", 100_000)
    in_its_third_step(run, place / "out/state")
    shutil.rmtree(place / "out/state/dev1")
    reply = run.wait().refused(1, ["out/state/dev1/state.slc", "no longer there", "was removed"])
    require("Committed step" not in reply.out and "--resume" not in reply.err, reply.err)
    run = place.start("--steps", 100_000, output="moved")
    in_its_third_step(run, place / "moved/state")
    (place / "moved/state").rename(place / "moved/elsewhere")
    run.wait().refused(1, ["moved/state/dev0/state.slc", "no longer there", "was moved"])
    place.state("--verify", state_dir="moved/elsewhere").done()


@test
def a_text_that_is_cut_ends_a_run_with_its_last_commit_good(place):
    run = place.start("--steps", 100_000)
    in_its_third_step(run, place / "out/state")
    os.truncate(place / "out/text.tokens", 0)
    run.wait().refused(1, ["text.tokens", "offset", "was cut"])
    place.state("--verify").done()


@test
def a_pipe_in_the_place_of_a_file_is_said_and_not_waited_for(place):
    place.train("--steps", 2).done()
    for name in ("text.tokens", "run.db", "state/commit.slc", "state/dev0/state.slc",
                 "state/lock"):
        path = place / "out" / name
        kept = place / "kept"
        path.rename(kept)
        os.mkfifo(path)
        reply = place.train("--resume", "--steps", 3)
        require(reply.code in (1, 2), f"{name}: exit code {reply.code}")
        reply.refused(reply.code, [name, "pipe" if name != "run.db" else "run database"])
        path.unlink()
        kept.rename(path)
    os.mkfifo(place / "pipe.toml")
    sluice("train", place / "pipe.toml").refused(2, ["pipe.toml", "is a pipe"])
    place.train("--resume", "--steps", 3).done()


@test
def a_damaged_record_is_one_fault_with_one_exit_code(place):
    place.train("--steps", 2).done()
    recorded = place / "out/run.db"
    whole = recorded.read_bytes()
    for what, damaged in (("zeros first", bytes(4096) + whole[4096:]), ("nothing", b""),
                          ("half of it", whole[:len(whole) // 2])):
        recorded.write_bytes(damaged)
        reply = place.train("--resume", "--steps", 3)
        require_equal(reply.code, 2, f"{what}: {reply.err}")
        reply.refused(2, ["out/run.db"])
    recorded.write_bytes(whole)
    place.train("--resume", "--steps", 3).done()


@test
def commands_that_are_printed_can_be_pasted(place):
    without = os.environ | {"PATH": os.defpath}
    done = subprocess.run([SLUICE, *map(str, place.arguments("--steps", 2, output="a b"))],
                          cwd=place.path, env=without, stdin=subprocess.DEVNULL, check=True,
                          capture_output=True, text=True, timeout=LIMIT_S)
    said = done.stdout.replace(" \\\n", "")
    for label, wanted in (("Look", "show"), ("Go on", "train")):
        command = re.search(rf"^{label}: +(.*)$", said, re.MULTILINE).group(1)
        words = shlex.split(command)
        require_equal(words[:2], [str(SLUICE), wanted], f"{label}: {command}")
        pasted = subprocess.run(["bash", "-c", command], cwd=place.path, env=without,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=LIMIT_S, check=False)
        require_equal(pasted.returncode, 0, f"{command}: {pasted.stderr}")
    require_equal(place.state("--json", state_dir="a b/state").json()["step"], 4, "step")


if __name__ == "__main__":
    sys.exit(main())
