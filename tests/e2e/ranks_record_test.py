#!/usr/bin/env python3
"""The record of `mpirun -n N sluice train`, seen as one: the ranks compare their clocks, `show`
names the rank that is slowed down, and `merge` makes one database of which show, report, export and
the window say the same, as they do of the ranks' folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from launched import RANKS, three_ranks
from sluice_run import (BUILD, ROOT, Skip, check_database, database, main, require, require_equal,
                        require_words, sluice, test)

SLOW = 2
GUI = BUILD / "bin/sluice-gui"


class Slowed(threading.Thread):
    """Holds one rank of a run nearly all the time, again and again in each step: it is late."""

    def __init__(self, run, output):
        super().__init__()
        self.run_of = run
        self.record = output / f"rank-{SLOW}/run.db"
        self.is_over = False

    def rank_process(self):
        for pid in self.run_of.ranks():
            try:
                words = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
            except OSError:
                continue
            if f"OMPI_COMM_WORLD_RANK={SLOW}".encode() in words:
                return pid
        return None

    def run(self):
        pid = None
        while not self.is_over and pid is None:
            pid = self.rank_process() if self.record.exists() else None
            time.sleep(0.001)
        while not self.is_over:
            try:
                os.kill(int(pid), signal.SIGSTOP)
                time.sleep(0.03)
                os.kill(int(pid), signal.SIGCONT)
            except ProcessLookupError:
                return
            time.sleep(0.001)


def slowed_run(place, **settings):
    run = three_ranks(place, "--json", output="out", **settings)
    slowed = Slowed(run, place / "out")
    slowed.start()
    try:
        run.json()
    finally:
        slowed.is_over = True
        slowed.join()
    return place / "out"


def databases(output):
    return [output / f"rank-{rank}/run.db" for rank in range(RANKS)]


@test
def ranks_record_how_far_their_clocks_are_apart_at_the_begin_and_the_end(place):
    three_ranks(place, "--json", steps=4).json()
    ids = set()
    for rank, path in enumerate(databases(place / "out")):
        with database(path) as db:
            rows = db.execute("SELECT at, ts, offset, bound FROM clock_offset").fetchall()
            ids.add(db.execute("SELECT value FROM meta WHERE key = 'run_id'").fetchone())
        require_equal([row[0] for row in rows], ["begin", "end"], "when")
        for _, _, offset, bound in rows:
            # One machine has one clock.
            require(abs(offset) <= bound, f"rank {rank}: {offset} is not within {bound} of 0")
            require(bound < 10**9, f"rank {rank}: within {bound} ns says nothing")
    require_equal(len(ids), 1, "names of the run")
    three_ranks(place, "--json", "--resume", steps=8).json()
    with database(databases(place / "out")[1]) as db:
        require_equal([row[0] for row in db.execute("SELECT at FROM clock_offset")],
                      ["begin", "end", "begin", "end"], "when, after a resume")
    looked = sluice("show", place / "out", "--json", "--no-predict").json()["ranks"]["steps"]
    require(1 <= looked <= 8, f"steps looked at of a resumed run: {looked}")


@test
def the_rank_that_is_slowed_down_is_named_and_the_merged_record_says_the_same(place):
    output = slowed_run(place, clock="emulated", time_scale=0.01)
    own = sluice("show", output, "--json", "--no-predict").json()
    ranks = own["ranks"]
    require_equal(ranks["straggler"], SLOW, f"who is late: {ranks['findings']}")
    late = ranks["ranks"][SLOW]
    for rank in range(RANKS):
        use = ranks["ranks"][rank]
        require(use["waiting_ns"] <= use["exposed_ns"] <= use["step_ns"], f"rank {rank}: {use}")
        if rank != SLOW:
            require(use["awaited_ns"] < late["awaited_ns"], f"rank {rank} is awaited more: {use}")
    text = sluice("show", *databases(output)).done().out
    require_words(text, ["Ranks beside one another", f"The others wait for rank {SLOW}",
                         "Communication is under way"], "show")

    sluice("merge", output).done()
    merged = output / "run.db"
    check_database(merged)
    again = sluice("show", merged, "--json", "--no-predict").json()
    require_equal(again["ranks"], ranks, "the ranks, of the merged record")
    require_equal(again["steps"], own["steps"], "the steps, of the merged record")
    require_equal(again["verdict"]["share"], own["verdict"]["share"], "rank 0's shares")
    counts = []
    for path in [*databases(output), merged]:
        with database(path) as db:
            counts.append(db.execute("SELECT count(*) FROM span").fetchone()[0])
            steps = db.execute("SELECT count(*) FROM step").fetchone()[0]
    require_equal(counts[-1], sum(counts[:-1]) + (RANKS - 1) * steps, "operations")
    sluice("report", merged, "-o", place / "all.html").done()
    require_words((place / "all.html").read_text(), [f"rank {SLOW}: compute"], "the page")
    sluice("export", merged, "--format", "chrome", "-o", place / "all.json").done()
    names = {event["args"]["name"] for event in json.loads((place / "all.json").read_text())
             ["traceEvents"] if event["name"] == "process_name"}
    require(f"rank {SLOW}: steps" in names, f"processes of the trace: {names}")
    sluice("tune", merged).refused(2, ["rank-0/run.db"])


@test
def report_and_export_read_the_folder_of_the_ranks_as_one_and_leave_nothing(place):
    three_ranks(place, "--json", steps=3).json()
    cache = place / "cache"
    before = sorted(str(path) for path in (place / "out").rglob("*"))
    os.environ["XDG_CACHE_HOME"] = str(cache)
    try:
        sluice("report", place / "out", "-o", place / "all.html").done()
        sluice("export", place / "out", "--format", "csv", "-o", place / "tables").done()
    finally:
        del os.environ["XDG_CACHE_HOME"]
    page = (place / "all.html").read_text()
    require_words(page, ["rank 0: compute", "rank 2: compute"], "the page")
    require(str(cache) not in page, "the page names a file that is gone")
    require_words((place / "tables/track.csv").read_text(), ["rank 2: compute"], "the tables")
    sluice("merge", place / "out", "-o", place / "all.db").done()
    sluice("export", place / "all.db", "--format", "csv", "-o", place / "merged").done()
    for table in ("track.csv", "span.csv", "flow.csv", "step.csv"):
        require_equal((place / "tables" / table).read_text(),
                      (place / "merged" / table).read_text(), f"{table} of the merged record")
    require_equal(list((cache / "sluice/merged").iterdir()), [], "merged files that are left")
    require_equal(sorted(str(path) for path in (place / "out").rglob("*")), before,
                  "files beside the ranks'")


@test
def the_window_opens_the_folder_of_the_ranks_and_all_their_databases(place):
    if shutil.which("xvfb-run") is None or not GUI.exists():
        raise Skip("there is no xvfb-run, or no sluice-gui")
    output = slowed_run(place)
    for name, opened in (("folder", [output]), ("databases", databases(output))):
        cache = place / f"cache-{name}"
        picture = place / f"{name}.png"
        done = subprocess.run(["xvfb-run", "-a", "-s", "-screen 0 1920x1080x24", str(GUI),
                               *map(str, opened), "--size", "1920x1080", "--settings", "-",
                               "--screenshot", str(picture)], capture_output=True, text=True,
                              timeout=300, check=False,
                              env=dict(os.environ, XDG_CACHE_HOME=str(cache)))
        require_equal(done.returncode, 0, f"exit code: {done.stderr}")
        require(picture.read_bytes().startswith(b"\x89PNG"), "it is no picture")
        require_equal(list((cache / "sluice/merged").iterdir()), [], "merged files that are left")
        keep = ROOT / "build/release/gui_pictures"
        keep.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, keep / f"merged ranks, by {name}.png")
    require(not (output / "run.db").exists(), "a merged record lies beside the ranks'")


@test
def what_is_no_whole_run_is_refused_in_words(place):
    three_ranks(place, "--json", steps=3).json()
    three_ranks(place, "--json", steps=3, output="other").json()
    ranks, others = databases(place / "out"), databases(place / "other")
    for command in (["show"], ["merge", "-o", place / "all.db"]):
        sluice(*command, ranks[0], ranks[2]).refused(2, ["rank 1 is missing"])
        sluice(*command, *ranks, ranks[1]).refused(2, ["both the record of rank 1"])
        sluice(*command, *ranks[:2], others[2]).refused(2, ["two runs"])
    sluice("merge", *ranks).refused(2, ["-o"])
    sluice("merge", *ranks, "-o", ranks[1], "--force").refused(2, ["is read"])
    sluice("merge", place / "out").done()
    sluice("merge", place / "out").refused(2, ["--force"])
    sluice("merge", place / "out", "--force").done()
    sluice("merge", place / "out/run.db", "-o", place / "again.db").refused(2, ["already"])
    reply = sluice("simulate", "--fit", "--like", place / "other")
    require_equal(reply.code, 2, "exit code of predict")
    require_words(reply.err, ["sluice merge"], "a fit to a folder of ranks")
    sluice("report", place / "other", others[0], "-o", place / "x.html").refused(
        2, ["rank-0/run.db"])
    sluice("report", place / "other", "-o", others[1], "--force").refused(2, ["is read"])


if __name__ == "__main__":
    sys.exit(main())
