#!/usr/bin/env python3
"""`sluice mcp` over pipes, as a program would start it: answers about runs, SQL that would write or
never end, hostile databases, a live run that is changed with permission and not without. And the
protocol's own client library, which scripts/setup fetches, accepts it."""

import json
import os
import pathlib
import subprocess
import sys

from hostile_databases import ADDED, changed
from live_run import started, stopped
from mcp_client import client
from sluice_run import (SLUICE, Skip, database, main, require, require_equal, require_words, sluice,
                        test)

CLIENT = pathlib.Path(os.environ.get("SLUICE_MCP_CLIENT") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sluice/mcp_client"))
CLIENT_VERSION = "2.3.0"
CLIENT_LIMIT_S = 120
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
WRITES = ["DELETE FROM step", "DROP TABLE span", "ATTACH 'x.db' AS x", "PRAGMA user_version = 1",
          "VACUUM INTO 'copy.db'", "SELECT 1; DELETE FROM step", "BEGIN"]


@test
def a_program_asks_about_runs_in_a_folder(place):
    place.train("--steps", 6, clock="real").done()
    place.train("--steps", 6, clock="real", output="second").done()
    run = place / "out/run.db"
    before = run.read_bytes()
    shown = sluice("show", run, "--json", "--no-predict").json()
    with client("--runs", place.path) as asks:
        listed = asks.found("list_runs")["runs"]
        require_equal({pathlib.Path(row["run"]) for row in listed},
                      {run.resolve(), (place / "second/run.db").resolve()}, "runs")
        require_equal([row["is_live"] for row in listed], [False, False], "live runs")
        overview = asks.found("overview", run="out/run.db", max_bytes=65536)
        for key in ("mode", "verdict", "links", "stages", "answers", "stretches", "losses"):
            require_equal(overview[key], shown[key], key)
        require("left_off" in asks.found("overview", run="out/run.db"), "nothing is left off")
        path = asks.found("step_path", run="out/run.db", step=5, limit=5000, max_bytes=262144)
        with database(run) as db:
            dur, = db.execute("SELECT dur FROM step WHERE id = 4").fetchone()
            names = dict(db.execute("SELECT span.id, value FROM span JOIN string ON name_id = "
                                    "string.id"))
        require_equal(sum(piece["dur"] for piece in path["path"]), dur, "length of the path")
        require_equal(path["evidence"]["steps"], [4], "step")
        for piece in path["path"]:
            require(piece["span"] is None or names[piece["span"]] == piece["name"], f"{piece}")
        spans = asks.found("spans", run="out/run.db", name="state_read", sort="ts", limit=2)
        require_equal(spans["count"], sum(name == "state_read" for name in names.values()), "reads")
        require_equal(asks.call("spans", run="out/run.db", name="none")["outcome"], "nothing",
                      "operations of no such name")
        require(asks.found("causes", run="out/run.db")["causes"], "no cause")
        asks.found("links", run="out/run.db")
        require_words(asks.found("compare", a="out/run.db", b="second/run.db")["verdict"],
                      ["a step takes"], "compare")
        require("predictions" in asks.call("what_if", run="out/run.db", settings=["buffers=4"]),
                "no prediction")
        require("changes" in asks.call("propose", run="out/run.db"), "no proposal")
        require_equal(asks.found("knobs", run="out/run.db", key="buffers")["knobs"][0]["value"],
                      "3", "buffers")
        asks.refused("overview", "lies outside", run="/etc/passwd")
    require_equal(run.read_bytes(), before, "the database")


@test
def sql_reads_and_neither_writes_nor_runs_for_ever(place):
    place.train("--steps", 3, clock="real").done()
    run = place / "out/run.db"
    before = run.read_bytes()
    with client(run, cwd=place.path) as asks:
        require_equal(asks.found("query_sql", sql="SELECT count(*) AS steps FROM step")["rows"],
                      [[3]], "steps")
        for sql in WRITES:
            require_equal(asks.call("query_sql", sql=sql)["outcome"], "could not look", sql)
        asks.refused("query_sql", "time of the call was over", sql=ENDLESS, timeout_ms=300)
        many = asks.found("query_sql", sql="SELECT a.id FROM span AS a, span AS b", max_rows=5)
        require_equal((len(many["rows"]), many["has_more_rows"]), (5, True), "rows")
    require_equal(run.read_bytes(), before, "the database")
    require_equal({path.name for path in (place / "out").iterdir() if path.suffix == ".db"},
                  {"run.db"}, "databases")


@test
def hostile_databases_are_told_as_data_or_refused(place):
    place.train("--steps", 6, clock="real").done()
    for what in ("names that a terminal and a page act on", "tracks in a circle", "facts gone",
                 "spans of nothing", "steps far apart"):
        run = changed(place / "out/run.db", place, ADDED[what])
        with client(run) as asks:
            for tool in ("list_runs", "overview", "links", "causes", "stretches", "step_path",
                         "spans", "what_if", "propose", "knobs"):
                asks.call(tool, timeout_ms=5000)
            if what == "facts gone":  # as in a record of another program
                asks.refused("what_if", "another program's record")
            require("alert" not in json.dumps(asks.ask("tools/list")), "a description has a name")


def who_changed(path):
    with database(path) as db:
        return db.execute("SELECT name, new, who FROM knob_change JOIN knob ON knob.id = knob_id "
                          "ORDER BY knob_change.rowid").fetchall()


def asked_for(path):
    with database(path) as db:
        return [name for name, in db.execute(
            "SELECT value FROM span JOIN string ON string.id = name_id JOIN track ON "
            "track.id = track_id WHERE track.kind = 'recorder' AND value LIKE '% asked for by %' "
            "ORDER BY ts")]


@test
def a_live_run_is_changed_with_permission_alone(place):
    run, path = started(place)
    with client(path) as asks:
        require("set_knob" not in asks.tools(), "set_knob is listed")
        for tool in ("set_knob", "snapshot", "stop"):
            asks.refused(tool, "without --allow-write", "Nothing was changed")
        require_equal(asks.found("knobs", key="buffers")["is_live"], True, "live")
    with client(path, "--allow-write", name="evil\n\x1b[2J name") as asks:
        require("set_knob" in asks.tools(), "set_knob is not listed")
        require_equal(asks.found("set_knob", settings=["buffers=5"])["state"], "in force", "state")
        asks.refused("set_knob", "1 to 64", settings=["buffers=0"])
        # A step cannot take so much longer: the run keeps the change.
        kept = asks.found("set_knob", settings=["buffers=4"], revert_if="step_time>+1000000%",
                          watch_steps=2)
        require_equal(kept["state"], "kept", kept["why"])
        require(pathlib.Path(asks.found("snapshot")["path"]).is_dir(), "there is no snapshot")
        asks.found("stop")
    run.wait().json()
    require_equal(who_changed(path), [("buffers", "5", "mcp:evil___2J name"),
                                      ("buffers", "4", "mcp:evil___2J name")], "knob_change")
    require_equal(asked_for(path), ["snapshot asked for by mcp:evil___2J name",
                                    "stop asked for by mcp:evil___2J name"], "instants")


@test
def a_change_that_does_harm_is_put_back_by_the_run(place):
    # The emulated clock makes the platform's speed, not this machine's, decide.
    run, path = started(place, clock="emulated", time_scale=40)
    with client(path, "--allow-write") as asks:
        told = asks.found("set_knob", settings=["pipeline=serial"], revert_if="step_time>+5%",
                          watch_steps=3)
        require_equal([event["state"] for event in told["events"]], ["in force", "reverted"],
                      "events")
        require_words(told["why"], ["reverted: step_time"], "set_knob")
    stopped(run, path)
    rows = who_changed(path)
    require_equal([row[:2] for row in rows], [("pipeline", "serial"), ("pipeline", "nbuffer")],
                  "knob_change")
    require_equal(rows[0][2], "mcp:a test", "who changed it")
    require_words(rows[1][2], ["revert: step_time"], "who put it back")


SCRIPT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
import jsonschema

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp", sys.argv[2]])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            tools = (await session.list_tools()).tools
            dumped = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
            for tool in dumped:
                jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
                jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
            overview = await session.call_tool("overview", {})
            wrong = await session.call_tool("query_sql", {"sql": "DELETE FROM step"})
            print(json.dumps({
                "tools": [tool["name"] for tool in dumped],
                "hello": hello.model_dump(by_alias=True)["serverInfo"]["name"],
                "overview": overview.model_dump(by_alias=True)["structuredContent"],
                "wrong": wrong.model_dump(by_alias=True)["isError"]}))

asyncio.run(main())
"""


@test
def the_protocols_own_client_accepts_it(place):
    python = CLIENT / "bin/python"
    said = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('mcp'))"],
                          capture_output=True, text=True,
                          check=False) if python.exists() else None
    version = said.stdout.strip() if said and said.returncode == 0 else "none"
    if version != CLIENT_VERSION:
        raise Skip(f"mcp {CLIENT_VERSION} is not in {CLIENT} ({version} is); scripts/setup puts it "
                   "there")
    place.train("--steps", 3, clock="real").done()
    done = subprocess.run([python, "-c", SCRIPT, SLUICE, place / "out/run.db"],
                          capture_output=True, text=True, timeout=CLIENT_LIMIT_S, check=False)
    require_equal(done.returncode, 0, f"the client's exit code: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    require_equal((answer["hello"], answer["wrong"]), ("sluice", True), "answers")
    require("overview" in answer["tools"] and "set_knob" not in answer["tools"], "tools")
    require_equal(answer["overview"]["outcome"], "found", "overview")


if __name__ == "__main__":
    sys.exit(main())
