#!/usr/bin/env python3
"""`sluice follow` and `sluice relay`: a copy of a run that is recorded elsewhere has the figures of
the run, while it goes on and when the line is cut; knobs are turned through ssh; and an other end
that is none does nothing. The machine elsewhere is this one: behind a pipe, or behind an sshd of
the test's own, on loopback, with its own keys."""

import contextlib
import getpass
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

from live_run import started, steps_in, stopped
from sluice_run import (BUILD, LIMIT_S, SLUICE, Running, Skip, check_database, database, main,
                        require, require_equal, require_words, sluice, test)

SSHD = "/usr/sbin/sshd"
# Made by the copy's writer from its spans: in other pieces than the run's.
OWN_TABLES = {"lod", "long_span", "span_run", "span_batch", "followed"}


def relay_of(run):
    return ["--", SLUICE, "relay", run]


def rows_of(path):
    with database(path) as db:
        tables = [name for name, in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return {table: sorted(map(repr, db.execute(f"SELECT * FROM {table}")))
                for table in tables if table not in OWN_TABLES}


def shown(path, run):
    """All figures of `sluice show`, without the paths: a run's own stands in its settings, too."""
    text = sluice("show", path, "--json", "--no-predict").done().out
    return json.loads(text.replace(str(path), "PATH").replace(str(run), "PATH"))


def require_same(copy, run):
    """The same rows, and by the reader's way the same figures."""
    copied, original = rows_of(copy), rows_of(run)
    for table in original:
        require_equal(len(copied[table]), len(original[table]), f"rows of {table}")
        require(copied[table] == original[table], f"table {table} has other rows")
    copied, original = shown(copy, run), shown(run, run)
    differing = [key for key in original if copied.get(key) != original[key]]
    require(not differing, f"other figures under {differing}")
    check_database(copy)


@contextlib.contextmanager
def following(*arguments, cwd):
    follower = Running(["follow", *arguments], cwd)
    try:
        yield follower
    finally:
        if follower.is_running():
            follower.signal(signal.SIGKILL)


def wait_for_copy(follower, copy, count):
    """Until the copy has so many steps."""
    until = time.monotonic() + LIMIT_S
    while steps_in(copy) < count:
        require(follower.is_running(), f"the follower ended: {follower.heard()}")
        require(time.monotonic() < until, "the copy does not grow")
        time.sleep(0.01)


# Behind a pipe ------------------------------------------------------------------------------------


@test
def a_finished_run_and_its_copy_say_the_same(place):
    place.train("--steps", "6").done()
    run, copy = place / "out/run.db", place / "copy.db"
    said = sluice("follow", "-o", copy, *relay_of(run)).done()
    require_words(said.out, [f"{copy}: ", "operations."], "what was copied")
    require_same(copy, run)
    for command in (["compare", run, copy], ["report", copy, "-o", place / "copy.html"]):
        sluice(*command).done()
    # All is there: nothing comes a second time.
    sluice("follow", "-o", copy, *relay_of(place / "out")).done()
    require_same(copy, run)


@test
def a_live_run_is_followed_to_its_end(place):
    run, original = started(place)
    copy = place / "copy.db"
    with following("-o", copy, *relay_of(original), cwd=place.path) as follower:
        wait_for_copy(follower, copy, 3)
        before = steps_in(copy)
        wait_for_copy(follower, copy, before + 3)
        stopped(run, original)
        follower.wait().done()
    require_same(copy, original)


@test
def many_spans_a_second_come_over_whole(place):
    bench = BUILD / "bin/bench_record"
    if not os.access(bench, os.X_OK):
        raise Skip(f"there is no {bench}")
    original, copy = place / "run.db", place / "copy.db"
    recorder = subprocess.Popen([bench, "ingest", "--seconds", "3", "--rate", "20000", "--database",
                                 original, "--keep"], stdout=subprocess.DEVNULL)
    while not original.exists() or original.stat().st_size == 0:
        require(recorder.poll() is None, "the recorder ended at once")
        time.sleep(0.01)
    with following("-o", copy, *relay_of(original), cwd=place.path) as follower:
        require_equal(recorder.wait(timeout=LIMIT_S), 0, "the recorder's exit code")
        follower.wait().done()
    # A follower that met the file before its recorder had locked it went home early.
    sluice("follow", "-o", copy, *relay_of(original)).done()
    with database(copy) as db:
        count, = db.execute("SELECT count(*) FROM span").fetchone()
    require(count > 10_000, f"{count} spans are not many")
    require_same(copy, original)


@test
def a_line_that_is_cut_goes_on_where_it_was(place):
    run, original = started(place)
    copy = place / "copy.db"
    cuts = place / "cuts"
    # Three lines that end after so many bytes, in the middle of a turn, and one that holds.
    line = (f"n=$(cat {cuts} 2>/dev/null | wc -l); echo >> {cuts}; "
            f"if [ $n -lt 3 ]; then {SLUICE} relay {original} | head -c $((40000 + n * 7001)); "
            f"else exec {SLUICE} relay {original}; fi")
    with following("-o", copy, "--", "/bin/sh", "-c", line, cwd=place.path) as follower:
        until = time.monotonic() + LIMIT_S
        while not cuts.exists() or len(cuts.read_text()) < 4:
            require(follower.is_running(), f"the follower ended: {follower.heard()}")
            require(time.monotonic() < until, "the line is not tried again")
            time.sleep(0.01)
        stopped(run, original)
        said = follower.wait().done()
    require_words(said.err, ["the line is cut", "trying again", "the line is there again"],
                  "what was said")
    require_same(copy, original)


@test
def a_follower_that_is_killed_or_stopped_leaves_a_sound_copy(place):
    run, original = started(place)
    copy = place / "copy.db"
    for number in (signal.SIGKILL, signal.SIGINT):
        with following("-o", copy, *relay_of(original), cwd=place.path) as follower:
            wait_for_copy(follower, copy, steps_in(copy) + 2)
            follower.signal(number)
            code = follower.wait().code
        require_equal(code, -number if number == signal.SIGKILL else 0, "exit code")
        check_database(copy)
    stopped(run, original)
    sluice("follow", "-o", copy, *relay_of(original)).done()
    require_same(copy, original)


@test
def a_run_that_is_resumed_has_the_steps_of_the_resume(place):
    place.train("--steps", "3", commit_every=1).done()
    run, copy = place / "out/run.db", place / "copy.db"
    sluice("follow", "-o", copy, *relay_of(run)).done()
    place.train("--steps", "5", "--resume", commit_every=1).done()
    sluice("follow", "-o", copy, *relay_of(run)).done()
    require_same(copy, run)
    # Another run in its place is another recording.
    shutil.rmtree(place / "out")
    place.train("--steps", "2").done()
    sluice("follow", "-o", copy, *relay_of(run)).refused(2, ["another recording", "--force"])
    sluice("follow", "--force", "-o", copy, *relay_of(run)).done()
    require_same(copy, run)


# An other end that is none ------------------------------------------------------------------------


@test
def what_is_no_run_is_refused_and_writes_nothing(place):
    copy = place / "copy.db"
    for line, words, code in (
            (["echo", "Welcome to trainer"], ["'Welcome to trainer'"], 2),
            (["false"], ["no run has come"], 2),
            ([place / "no-such-program"], ["no such program"], 2),
            ([SLUICE, "relay", place / "none.db"], ["at the other end", "none.db"], 2),
            (["head", "-c", "100000", "/dev/urandom"], ["not send a run"], 2)):
        sluice("follow", "-o", copy, "--", *line).refused(code, words)
        require(not copy.exists(), f"{line} left a copy")


@test
def no_word_of_a_name_is_a_command(place):
    for name, words in (
            ("ssh://-oProxyCommand=touch%20x/run.db", ["begins with '-'"]),
            ("ssh://$(touch x)/run.db", ["no host has"]),
            ("ssh://host;touch x/run.db", ["no host has"]),
            ("ssh://host", ["there is no path"]),
            ("run.db", ["name a run as ssh://"])):
        done = subprocess.run([SLUICE, "follow", name], cwd=place.path, capture_output=True,
                              text=True, check=False)
        require_equal(done.returncode, 2, f"exit code of {name}")
        require_words(done.stderr, words, name)
    require_equal(sorted(p.name for p in place.path.iterdir() if p.name in ("x", "followed.db")),
                  [], "files")


@test
def a_file_that_is_no_copy_is_left_alone(place):
    place.train("--steps", "2").done()
    run = place / "out/run.db"
    other = place / "notes.txt"
    other.write_text("mine\n")
    for target in (other, run):
        before = target.read_bytes()
        sluice("follow", "-o", target, *relay_of(run)).refused(2, ["is no copy"])
        require(target.read_bytes() == before, f"{target} was changed")
    sluice("follow", "--size-max", "100kB", "-o", place / "small.db",
           *relay_of(run)).refused(2, ["--size-max"])
    require((place / "small.db").stat().st_size < 200_000, "the copy grew")


# Behind ssh ---------------------------------------------------------------------------------------


class Server:
    """An sshd of the test's own on loopback, and an `ssh` in PATH that knows it alone."""

    def __init__(self, folder):
        if not os.access(SSHD, os.X_OK) or shutil.which("ssh") is None:
            raise Skip("there is no sshd here (Debian's openssh-server and openssh-client)")
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        self.folder = folder
        folder.mkdir(mode=0o700)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key],
                           check=True)
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        known = (folder / "host.pub").read_text()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {known}")
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
            "AllowStreamLocalForwarding yes\n")
        (folder / "ssh_config").write_text(
            f"Host *\n IdentityFile {folder}/user\n IdentitiesOnly yes\n BatchMode yes\n"
            f" UserKnownHostsFile {folder}/known_hosts\n LogLevel ERROR\n")
        (folder / "bin").mkdir()
        (folder / "bin/ssh").write_text(
            f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        (folder / "bin/ssh").chmod(0o755)
        self.log = open(folder / "log", "w")
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "sshd_config"],
                                        stderr=self.log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + LIMIT_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                break
            if self.process.poll() is not None or time.monotonic() > until:
                words = (self.folder / "log").read_text().strip()
                raise Skip(f"the sshd of the test does not start: {words}")
            time.sleep(0.01)
        self.path = os.environ["PATH"]
        os.environ["PATH"] = f"{self.folder}/bin:{self.path}"
        tried = subprocess.run(
            ["ssh", "-p", str(self.port), f"{getpass.getuser()}@127.0.0.1", "true"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if tried.returncode != 0:
            self.__exit__()
            raise Skip(f"this user may not log in by the sshd of the test: {tried.stderr.strip()}")
        return self

    def __exit__(self, *_):
        os.environ["PATH"] = self.path
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def name_of(self, run):
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{run}"


@test
def a_run_is_followed_and_turned_through_ssh(place):
    # A folder whose name a shell would take apart.
    output = place / "it's $(touch x) a run"
    run, original = started(place, output=str(output), state_dir=str(output / "state"))
    copy = place / "copy.db"
    with Server(place / "ssh") as server:
        with following("--control", "--far-program", SLUICE, "-o", copy, server.name_of(original),
                       cwd=place.path) as follower:
            wait_for_copy(follower, copy, 3)
            sluice("set", copy, "buffers=4").done()
            until = time.monotonic() + LIMIT_S
            while True:
                with database(copy) as db:
                    if db.execute("SELECT new FROM knob_change WHERE who <> 'settings'").fetchall():
                        break
                require(time.monotonic() < until, "the change does not come back")
                time.sleep(0.01)
            require_equal(oct((place / "copy.db.socket").stat().st_mode & 0o777), oct(0o600),
                          "rights of the socket")
            sluice("stop", copy).done()
            run.wait().json()
            follower.wait().done()
        require_same(copy, original)
        require(not (place / "x").exists(), "a shell took the path apart")
        sluice("follow", "--far-program", SLUICE, "-o", place / "none.db",
               server.name_of(place / "none here.db")).refused(2, ["at the other end", "none here"])
        sluice("follow", "--far-program", "/no/sluice", "-o", place / "none.db",
               server.name_of(original)).refused(2, ["--far-program"])
    sluice("follow", "-o", place / "none.db",
           server.name_of(original)).refused(2, ["no run has come"])


@test
def the_window_follows_through_ssh(place):
    window = BUILD / "bin/sluice-gui"
    if not os.access(window, os.X_OK) or shutil.which("xvfb-run") is None:
        raise Skip("there is no window here (sluice-gui and xvfb-run)")
    run, original = started(place)
    copy = place / "copy.db"
    with Server(place / "ssh") as server:
        def pictured(name, *arguments):
            return subprocess.run(
                ["xvfb-run", "-a", window, name, "--settings", "-", "--far-program", SLUICE,
                 "--screenshot", place / "window.png", *arguments],
                cwd=place.path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        said = pictured(server.name_of(original), "-o", copy)
        require_equal(said.returncode, 0, f"exit code of the window, which said {said.stderr}")
        require((place / "window.png").stat().st_size > 10_000, "the picture is empty")
        require(steps_in(copy) > 0, "the copy has no step")
        check_database(copy)
        stopped(run, original)
        # Gone on with where it was.
        pictured(server.name_of(original), "-o", copy)
    sluice("follow", "-o", copy, *relay_of(original)).done()
    require_same(copy, original)


if __name__ == "__main__":
    sys.exit(main())
