#!/usr/bin/env python3
"""`sluice report` and `sluice export`: what they write is whole, keeps to its format, has the same
figures as the run database, and works in the programs that open it."""

import contextlib
import csv
import decimal
import html
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

from browser import Elements, in_browser
from sluice_run import (SAMPLES, database, main, require, require_equal, require_words,
                        sluice, test)


def simulated_run(place, **settings):
    return place.simulate(SAMPLES / "models/gpt2-1.7b.toml", devices=4, **settings)


def trained_run(place):
    place.train("--steps", "4").done()
    return place / "out/run.db"


# The Trace Event Format ---------------------------------------------------------------------------


def trace_of(run, path):
    sluice("export", run, "--format", "chrome", "-o", path).done()
    # Decimal: a nanosecond of a long uptime is more digits than a double holds.
    return json.loads(path.read_text(), parse_float=decimal.Decimal)


def check_events(events):
    for event in events:
        for key in ("ph", "pid", "tid", "ts"):
            require(key in event, f"an event has no {key}: {event}")
        require(event["ph"] in "XMiCsf", f"a phase of no known kind: {event}")
        require(isinstance(event.get("name"), str) and event["name"], f"no name: {event}")
        if event["ph"] == "X":
            require(event["dur"] >= 0, f"a slice of negative length: {event}")
        if event["ph"] == "C":
            require(all(isinstance(v, (int, decimal.Decimal)) for v in event["args"].values()),
                    f"a counter that is no number: {event}")
    balance = {ph: sum(event["ph"] == ph for event in events) for ph in "BE"}
    require_equal(balance["B"], balance["E"], "begins and ends")


def check_lanes(events):
    """Slices of one thread follow one another."""
    by_thread = {}
    for event in events:
        if event["ph"] == "X":
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    for thread, slices in by_thread.items():
        require(thread in named, f"thread {thread} has no name")
        slices.sort(key=lambda event: event["ts"])
        for one, other in zip(slices, slices[1:]):
            require(one["ts"] + one["dur"] <= other["ts"], f"{one} overlaps {other}")
    return by_thread


def check_flows(events, by_thread):
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    require_equal(set(begins), set(ends), "ids of flows")
    for flow in (*begins.values(), *ends.values()):
        slices = by_thread[flow["pid"], flow["tid"]]
        require(any(s["ts"] <= flow["ts"] <= s["ts"] + s["dur"] for s in slices),
                f"a flow that is bound to no slice: {flow}")
    require(all(e.get("bp") == "e" for e in ends.values()), "a flow's end without its binding")
    return len(begins)


def check_trace(run, path):
    events = trace_of(run, path)["traceEvents"]
    check_events(events)
    flow_count = check_flows(events, check_lanes(events))
    slices = [e for e in events if e["ph"] == "X" and "span" in e["args"]]
    with database(run) as db:
        rows = {row[0]: row[1:] for row in db.execute("SELECT id, ts, dur, bytes FROM span")}
        flows = db.execute("SELECT count(*) FROM flow").fetchone()[0]
        steps = db.execute("SELECT count(*) FROM step").fetchone()[0]
    require(rows and flows and steps, f"{run}: {len(rows)} spans, {flows} flows, {steps} steps")
    require_equal(len(slices), len(rows), "slices")
    for event in slices:
        ts, dur, size = rows[event["args"]["span"]]
        require_equal((event["ts"] * 1000, event["dur"] * 1000), (ts, dur), "time of a slice")
        require(event["args"].get("bytes", size) == size, f"bytes of {event}")
    require_equal(flow_count, flows, "flows")
    require_equal(sum(e.get("cat") == "step" and e["ph"] == "X" for e in events), steps, "steps")


@test
def a_trace_keeps_to_the_format_and_loses_nothing(place):
    check_trace(simulated_run(place), place / "sim.json")
    check_trace(trained_run(place), place / "trained.json")


# CSV ----------------------------------------------------------------------------------------------


@test
def csv_has_a_file_for_each_table_with_its_rows(place):
    run = trained_run(place)
    sluice("export", run, "--format", "csv", "-o", place / "csv").done()
    with database(run) as db:
        tables = [row[0] for row in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'")]
        require_equal(sorted(p.name for p in (place / "csv").iterdir()),
                      sorted(f"{name}.csv" for name in tables), "files")
        for name in tables:
            cursor = db.execute(f'SELECT * FROM "{name}"')
            wanted = [["" if v is None else str(v) for v in row] for row in cursor]
            with open(place / "csv" / f"{name}.csv", newline="", encoding="utf-8") as file:
                head, *found = csv.reader(file, strict=True)
            require_equal(head, [column[0] for column in cursor.description], f"head of {name}")
            require_equal(len(found), len(wanted), f"rows of {name}")
            for one, other in zip(found, wanted):
                for value, expected in zip(one, other):
                    require(value == expected or float(value) == float(expected),
                            f"{name}: {value!r}, expected {expected!r}")


# Nsight Systems -----------------------------------------------------------------------------------

# As NVIDIA's documentation and its statistics scripts ask for kernels and for copies.
KERNEL_TIMES = """
SELECT s.value, count(*), sum(k.end - k.start), avg(k.end - k.start)
FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.shortName
GROUP BY s.value ORDER BY s.value"""
COPIED_BYTES = """
SELECT e.label, count(*), sum(m.bytes), sum(m.end - m.start)
FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m JOIN ENUM_CUDA_MEMCPY_OPER AS e ON e.id = m.copyKind
GROUP BY e.label ORDER BY e.label"""
RANGES = """
SELECT text, start, end FROM NVTX_EVENTS
WHERE eventType = (SELECT id FROM ENUM_NSYS_EVENT_TYPE WHERE name = 'NvtxPushPopRange')
  AND text LIKE 'step %' ORDER BY start"""

OUR_KERNEL_TIMES = """
SELECT name, count(*), sum(dur), avg(dur) FROM kernel GROUP BY name ORDER BY name"""
OUR_BYTES = """
SELECT CASE WHEN name LIKE 'peer%' THEN 'Peer-to-Peer'
            WHEN name IN ('gradient_down', 'batch_in', 'layer_in', 'create_state')
                THEN 'Host-to-Device'
            WHEN name IN ('parameters_up', 'loss_out', 'gradient_out', 'load_state')
                THEN 'Device-to-Host'
            ELSE 'Device-to-Device' END AS label,
       count(*), sum(bytes), sum(dur)
FROM transfer GROUP BY label ORDER BY label"""
OUR_STEPS = "SELECT 'step ' || (id + 1), ts, ts + dur FROM step ORDER BY ts"


@test
def queries_for_nsight_systems_give_the_figures_of_the_run(place):
    for run in (simulated_run(place), trained_run(place)):
        path = run.with_suffix(".sqlite")
        sluice("export", run, "--format", "nsys", "-o", path).done()
        with database(path) as export, database(run) as ours:
            for query, own, what in ((KERNEL_TIMES, OUR_KERNEL_TIMES, "times of kernels"),
                                     (COPIED_BYTES, OUR_BYTES, "copied bytes"),
                                     (RANGES, OUR_STEPS, "steps")):
                found = export.execute(query).fetchall()
                require(found, f"{what}: there are none")
                require_equal(found, ours.execute(own).fetchall(), what)
            require_equal(export.execute("PRAGMA integrity_check").fetchall(), [("ok",)],
                          "integrity")


@test
def what_to_turn_next_is_in_the_page_as_it_is_in_show(place):
    run = simulated_run(place, pipeline="serial")
    predicted = sluice("show", run, "--json").json()["verdict"]["predicted"]
    require(predicted, "nothing is predicted")
    for name, flags in (("with.html", []), ("without.html", ["--no-predict"])):
        sluice("report", run, "-o", place / name, *flags).done()
        text = (place / name).read_text()
        data = json.loads(text.split('id="data">')[1].split("</script>")[0])
        require_equal("next" in data, not flags, f"predictions in {name}")
        if flags:
            continue
        rows = [row for group in data["next"]["groups"] for row in group["rows"]]
        # "pipeline serial -> nbuffer"; behind them may stand several together.
        require_equal(["=".join((row["words"].split()[0], row["words"].split()[-1]))
                       for row in rows[:len(predicted)]],
                      [one["setting"] for one in predicted], "predicted settings")
        require_words(in_browser(place, name, ""), ["predicted, not measured", "pipeline serial"],
                      name)


# Refusals -----------------------------------------------------------------------------------------


@test
def what_cannot_be_written_or_read_is_refused_with_exit_code_2(place):
    run = simulated_run(place)
    (place / "mine.html").write_text("mine")
    (place / "folder").mkdir()
    (place / "folder/file").write_text("mine")
    (place / "foreign.db").write_text("no database at all, but long enough to look like it " * 99)
    for words, said in (
            (("report", run, "-o", place / "mine.html"), ["mine.html", "--force"]),
            (("report", run, "-o", place / "none/x.html"), ["none", "make it"]),
            (("report", run, "-o", place / "folder"), ["folder", "file"]),
            (("report", place / "no.db", "-o", place / "x.html"), ["no.db"]),
            (("report", place / "foreign.db", "-o", place / "x.html"), ["foreign.db"]),
            (("export", run, "--format", "chrome", "-o", place / "mine.html"), ["--force"]),
            (("export", run, "--format", "nsys", "-o", place / "mine.html"), ["--force"]),
            (("export", run, "--format", "csv", "-o", place / "folder"), ["folder", "--force"]),
            (("export", run, "--format", "csv", "-o", place / "mine.html"), ["folder"]),
            (("export", run, "--format", "pdf", "-o", place / "x"), ["chrome", "csv", "nsys"]),
            (("report", run, "-o", run, "--force"), ["sim.db", "is the run"]),
            (("export", run, "--format", "nsys", "-o", run, "--force"), ["is the run"]),
            (("report", run), ["--output"])):
        sluice(*words).refused(2, said)
    require_equal((place / "mine.html").read_text(), "mine", "the file")
    require(not (place / "x.html").exists(), "a refused report left a file")
    sluice("report", run, "-o", place / "mine.html", "--force").done()
    require((place / "mine.html").read_text().startswith("<!doctype html>"), "no page")


@test
def help_shows_examples(_):
    for command in ("report", "export"):
        text = re.sub(r"\s+", " ", sluice(command, "--help").done().out)
        require(re.search(f"Examples?: sluice {command} out/tiny/run.db", text), f"--help: {text}")


# The page -----------------------------------------------------------------------------------------


def long_run(run, path, steps):
    """The same run with `steps` more steps, each a copy of its last one."""
    shutil.copy(run, path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        last = db.execute("SELECT max(id) FROM step").fetchone()[0]
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            "INSERT INTO step SELECT id + i, ts + i * dur, dur + i % 13, loss, grad_norm, "
            "loss_scale, lr, tokens, i % 500 = 0 FROM n, (SELECT * FROM step WHERE id = ?)",
            (steps, last))
        db.commit()
    return path


@test
def a_page_is_one_small_file_that_asks_for_no_other(place):
    run = trained_run(place)
    long = long_run(run, place / "long.db", 100_000)
    for source, name in ((run, "short.html"), (long, "long.html")):
        sluice("report", source, "-o", place / name).done()
        text = (place / name).read_text()
        require(len(text) < 5_000_000, f"{name} has {len(text)} bytes")
        found = Elements(text)
        require_equal((found.outside, found.scripts, found.handlers), ([], 2, []), name)


@test
def a_hostile_name_is_shown_and_not_run(place):
    run = trained_run(place)
    hostile = "</script><script>document.title='ran'</script><img src=x onerror=\"alert(1)\">"
    with contextlib.closing(sqlite3.connect(run)) as db:
        db.execute("UPDATE meta SET value = ? WHERE key IN ('name', 'mode', 'machine')", (hostile,))
        db.execute("UPDATE string SET value = value || ?", (hostile,))
        db.execute("UPDATE track SET name = name || ?", (hostile,))
        db.execute("UPDATE device SET name = name || ?", (hostile,))
        db.commit()
    sluice("report", run, "-o", place / "page.html").done()
    found = Elements((place / "page.html").read_text())
    require_equal((found.outside, found.scripts, found.handlers), ([], 2, []), "elements")
    after = in_browser(place, "page.html", "")
    require("<title>&lt;/script&gt;" in after, "the title was changed")
    require("&lt;script&gt;document.title='ran'" in after, "the name is not shown")


# Runs in the page after it was drawn; what it leaves in `result` is what a test looks at.
TRY = """
<script>
'use strict';
{  // the page's script has names of its own
const place = document.getElementById('timeline-place');
const canvas = place.querySelector('canvas:not(.ruler)');
const result = {};
const pixels = () => canvas.toDataURL().length + ':' + canvas.toDataURL().slice(-4000);
const note = (name) => { result[name] = [place.dataset.window, place.dataset.step, pixels()]; };
const box = () => canvas.getBoundingClientRect();
const at = (share, more) => ({ bubbles: true, cancelable: true, pointerId: 1,
  clientX: box().left + box().width * share, clientY: box().top + 60, ...more });
canvas.setPointerCapture = () => {};
note('whole');
canvas.dispatchEvent(new WheelEvent('wheel', at(0.5, { deltaY: -300 })));
note('zoomed');
canvas.dispatchEvent(new PointerEvent('pointerdown', at(0.5)));
canvas.dispatchEvent(new PointerEvent('pointermove', at(0.4)));
canvas.dispatchEvent(new PointerEvent('pointerup', at(0.4)));
note('moved');
place.dispatchEvent(new KeyboardEvent('keydown', { key: '+', bubbles: true }));
note('key');
canvas.dispatchEvent(new MouseEvent('dblclick', at(0.5)));
note('reset');
const buttons = document.querySelectorAll('#timeline-tools button');
buttons[buttons.length - 1].click();
note('other');
let tip = '';
for (let x = 0.2; x < 1 && !tip; x += 0.01) {
  for (let y = 30; y < canvas.clientHeight && !tip.includes('waited'); y += 4) {
    canvas.dispatchEvent(new PointerEvent('pointermove', at(x, { clientY: box().top + y })));
    const shown = document.getElementById('tip');
    tip = shown.hidden || !shown.textContent.includes('waited') ? '' : shown.textContent;
  }
}
result.tip = tip;
// With the rows scrolled half out of sight the ruler stands at the window's edge.
scrollTo(0, scrollY + box().top + box().height / 2);
result.ruler = [place.querySelector('canvas.ruler').getBoundingClientRect().top, box().top];
const before = document.documentElement.dataset.theme;
document.getElementById('theme').click();
result.theme = before !== document.documentElement.dataset.theme;
document.body.append(Object.assign(document.createElement('pre'),
  { id: 'result', textContent: JSON.stringify(result) }));
}
</script>
"""


@test
def in_a_browser_the_timeline_zooms_moves_and_changes_its_step(place):
    run = trained_run(place)
    sluice("report", run, "-o", place / "page.html").done()
    after = in_browser(place, "page.html", TRY)
    found = re.search(r'<pre id="result">(.*?)</pre>', after, re.DOTALL)
    require(found, "the page's test did not end")
    result = json.loads(html.unescape(found.group(1)))
    whole = [int(ts) for ts in result["whole"][0].split()]
    zoomed = [int(ts) for ts in result["zoomed"][0].split()]
    moved = [int(ts) for ts in result["moved"][0].split()]
    require(whole[0] < zoomed[0] and zoomed[1] < whole[1], f"the wheel: {whole} to {zoomed}")
    require(moved[0] > zoomed[0], f"dragging: {zoomed} to {moved}")
    require(abs((moved[1] - moved[0]) - (zoomed[1] - zoomed[0])) <= 2, "dragging changed the width")
    require_equal(result["reset"][0], result["whole"][0], "the window after a double click")
    require(result["other"][1] != result["whole"][1], "the button did not change the step")
    for one, other in (("whole", "zoomed"), ("zoomed", "moved"), ("moved", "key")):
        require(result[one][2] != result[other][2], f"the picture is the same: {one}, {other}")
    require_words(result["tip"], ["time", "waited"], "the tip")
    require(result["theme"], "the theme did not change")
    ruler, rows = result["ruler"]
    require(rows < -20 and abs(ruler) < 1, f"the ruler is at {ruler}, the rows at {rows}")


@test
def pages_of_runs_with_little_in_them_open_without_an_error(place):
    run = trained_run(place)
    simulated = simulated_run(place)
    for name, source, statements in (
            ("no_steps", run, ["DELETE FROM step"]),
            ("one_step", run, ["DELETE FROM step WHERE id > 0"]),
            ("no_loss", run, ["UPDATE step SET loss = NULL, skipped = 1"]),
            ("no_spans", run, ["DELETE FROM span", "DELETE FROM span_run", "DELETE FROM flow"]),
            ("no_meta", run, ["DELETE FROM meta WHERE key <> 'written_by'"]),
            ("simulated", simulated, [])):
        copy = pathlib.Path(shutil.copy(source, place / f"{name}.db"))
        with contextlib.closing(sqlite3.connect(copy)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()
        sluice("report", copy, "-o", place / f"{name}.html").done()
        after = in_browser(place, f"{name}.html", "")
        if name == "no_steps":
            require_words(after, ["No step has ended."], name)
        if name == "simulated":
            require_words(after, ["SIMULATED CLOCK", "has no loss"], name)


if __name__ == "__main__":
    sys.exit(main())
