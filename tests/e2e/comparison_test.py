#!/usr/bin/env python3
"""Comparing runs: whether they can be compared, what is judged of those that cannot, and the page
of a comparison."""

import contextlib
import html
import json
import re
import shutil
import sqlite3
import sys

from browser import Elements, in_browser
from sluice_run import (SAMPLES, database, main, require, require_equal, require_words, sluice,
                        test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"
# What a comparison rests on, each made another in a copy of a run: what it is called, and how.
FACTS = (
    ("model", "UPDATE meta SET value = replace(value, 'layers = 2', 'layers = 3') "
              "WHERE key = 'model_text'"),
    ("text", "UPDATE meta SET value = '/other/book.txt' WHERE key = 'text'"),
    ("batch", "UPDATE meta SET value = '64' WHERE key = 'batch'"),
    ("sequence", "UPDATE meta SET value = '16' WHERE key = 'sequence'"),
    ("micro-batches", "UPDATE meta SET value = '4' WHERE key = 'grad_accum_steps'"),
    ("optimizer", "UPDATE meta SET value = 'sgd' WHERE key = 'optimizer'"),
    ("precision", "UPDATE meta SET value = 'fp16' WHERE key = 'precision'"),
    ("platform", "UPDATE meta SET value = replace(value, 'adamw = ', 'adamw = 9') "
                 "WHERE key = 'platform_text'"),
    ("processor", "UPDATE meta SET value = 'Z80, 1 processors, CP/M 2.2' WHERE key = 'machine'"),
    ("devices' kind", "UPDATE meta SET value = 'xrt' WHERE key = 'backend'"),
    ("clock", "UPDATE meta SET value = 'real' WHERE key = 'clock'"),
    ("time scale", "UPDATE meta SET value = '2' WHERE key = 'time_scale'"),
    ("recording", "UPDATE meta SET value = 'transfers' WHERE key = 'record'"),
)
# What may differ: what somebody turns, comments and names, and where a run lay.
TURNED = (
    "UPDATE meta SET value = 'serial' WHERE key = 'pipeline'",
    "UPDATE meta SET value = '7' WHERE key = 'buffers'",
    "UPDATE meta SET value = '# another comment\n' || value WHERE key IN ('model_text', "
    "'platform_text')",
    "UPDATE meta SET value = replace(value, 'name = \"nano\"', 'name = \"mine\"') "
    "WHERE key = 'model_text'",
    "UPDATE meta SET value = replace(value, 'Linux', 'Other') WHERE key = 'machine'",
    "UPDATE meta SET value = 'another' WHERE key = 'host_name'",
)


def trained(place, output="out", **settings):
    place.train(**{"steps": 8, "output": output, "clock": "emulated", "time_scale": 30,
                   **settings}).done()
    return place / output / "run.db"


def changed(run, path, *statements):
    """A copy of a run in which some facts are others."""
    shutil.copy(run, path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        before = db.total_changes
        for statement in statements:
            db.execute(statement)
            require(db.total_changes > before, f"{statement} changed nothing")
        db.commit()
    return path


def comparability(a, b):
    return sluice("compare", a, b, "--json").json()["comparability"]


# Comparability ------------------------------------------------------------------------------------


@test
def each_fact_that_differs_is_said_first_and_no_condition_is_judged(place):
    run = trained(place)
    whole = comparability(run, run)
    require_equal((whole["comparable"], whole["unknown"]), (True, []), "a run and itself")
    require_equal(sorted(whole["same"]), sorted(what for what, _ in FACTS), "what is looked at")
    for what, statement in FACTS:
        other = changed(run, place / "other.db", statement)
        found = comparability(run, other)
        require_equal([one["what"] for one in found["mismatches"]], [what], f"after {statement}")
        require(found["mismatches"][0]["meaning"].endswith("."), f"{what} is not explained")
        reply = sluice("compare", run, other, "--fail-if", "step_time>+3%")
        require_equal(reply.code, 4, f"exit code, another {what}")
        require(reply.out.startswith("NOT COMPARABLE: "), f"{what} is not said first: {reply.out}")
        require_words(reply.out, [f"{what}: ", "NOT JUDGED: --fail-if 'step_time>+3%'"], what)
        judged = sluice("compare", run, other, "--fail-if", "step_time>+3%",
                        "--even-if-incomparable")
        require_equal(judged.code, 0, f"exit code with --even-if-incomparable, another {what}")
        require_words(judged.out, ["NOT COMPARABLE: ", "Held: --fail-if"], what)
        require_equal(sluice("compare", run, other).code, 0, "exit code without a condition")


@test
def what_somebody_turns_and_what_is_only_written_otherwise_can_be_compared(place):
    run = trained(place)
    for statement in TURNED:
        other = changed(run, place / "other.db", statement)
        require_equal(comparability(run, other)["mismatches"], [], f"after {statement}")
        reply = sluice("compare", run, other, "--fail-if", "step_time>+3%")
        require_equal(reply.code, 0, f"exit code after {statement}")
        require("NOT COMPARABLE" not in reply.out, f"after {statement}: {reply.out}")


@test
def what_a_database_does_not_say_is_not_taken_for_the_same(place):
    run = trained(place)
    without = changed(run, place / "without.db", "DELETE FROM meta WHERE key = 'precision'")
    found = comparability(run, without)["mismatches"]
    require_equal([(one["what"], one["b"]) for one in found], [("precision", "not recorded")],
                  "a fact that one lacks")
    both = comparability(without, without)
    require_equal((both["comparable"], both["unknown"]), (True, ["precision"]),
                  "a fact that both lack")
    require_words(sluice("compare", without, without).out, ["neither run says its precision"],
                  "compare")


@test
def a_simulated_run_needs_no_processor_and_no_text_to_be_compared(place):
    a = place.simulate(MODEL, "a.db", devices=4)
    b = changed(a, place / "b.db", "UPDATE meta SET value = 'Z80' WHERE key = 'machine'",
                "UPDATE meta SET value = 'a' WHERE key = 'text'")
    require_equal(comparability(a, b)["mismatches"], [], "simulated runs")
    live = trained(place)
    require_words(" ".join(one["what"] for one in comparability(a, live)["mismatches"]),
                  ["clock", "model"], "a simulated run and a real one")


@test
def figures_that_hold_for_less_than_they_seem_are_cautioned_about(place):
    run = trained(place)
    short = changed(run, place / "short.db", "DELETE FROM step WHERE id > 2")
    lossy = changed(run, place / "lossy.db", "UPDATE stat SET value = 17 "
                    "WHERE name = 'records_dropped_ring_full'")
    place.train("--at", "5:buffers=2", steps=8, output="turned", clock="emulated",
                time_scale=30).done()
    for other, words in ((short, ["B has one step to compare"]),
                         (lossy, ["B lacks records"]),
                         (place / "turned/run.db",
                          ["B was changed while it ran (last: buffers=2"])):
        reply = sluice("compare", run, other).done()
        require_words(reply.out, words, other.name)
        require(comparability(run, other)["comparable"], f"{other.name} cannot be compared")


@test
def the_loss_is_that_of_the_last_step_that_both_have(place):
    a = trained(place, steps=8)
    b = trained(place, "longer", steps=10)
    found = sluice("compare", a, b, "--json").json()["figures"]["loss"]
    with database(b) as db:
        wanted = db.execute("SELECT loss FROM step WHERE id = 7").fetchone()[0]
    require_equal((found["a"], found["b"]), (wanted, wanted), "losses")


# The page -----------------------------------------------------------------------------------------

# What both timelines show, before and after each is turned; left in an element of its own.
TRY = """
<script>
'use strict';
{
const places = ['a', 'b'].map((which) => document.getElementById(`timeline-place-${which}`));
const canvases = places.map((place) => place.querySelector('canvas:not(.ruler)'));
const result = {};
const note = (name) => {
  result[name] = places.map((place, i) => [place.dataset.window, place.dataset.step,
    canvases[i].clientHeight, canvases[i].toDataURL().length]);
};
const at = (canvas, share, more) => {
  const box = canvas.getBoundingClientRect();
  return { bubbles: true, cancelable: true, pointerId: 1,
    clientX: box.left + box.width * share, clientY: box.top + 60, ...more };
};
for (const canvas of canvases) canvas.setPointerCapture = () => {};
note('whole');
canvases[0].dispatchEvent(new WheelEvent('wheel', at(canvases[0], 0.5, { deltaY: -300 })));
note('zoomed');
canvases[1].dispatchEvent(new PointerEvent('pointerdown', at(canvases[1], 0.5)));
canvases[1].dispatchEvent(new PointerEvent('pointermove', at(canvases[1], 0.4)));
canvases[1].dispatchEvent(new PointerEvent('pointerup', at(canvases[1], 0.4)));
note('moved');
places[1].dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }));
note('reset');
const buttons = [...document.querySelectorAll('#timeline-tools button')];
const all = buttons.pop();
buttons.find((button) => button.getAttribute('aria-pressed') !== 'true').click();
note('other');
all.click();
note('devices');
result.steps = buttons.map((button) => button.textContent);
result.all = all.textContent;
const theme = document.documentElement.dataset.theme;
document.getElementById('theme').click();
result.theme = theme !== document.documentElement.dataset.theme;
document.body.append(Object.assign(document.createElement('pre'),
  { id: 'result', textContent: JSON.stringify(result) }));
}
</script>
"""


def page_of(place, a, b, name="page.html"):
    sluice("report", a, b, "-o", place / name, "--force").done()
    return (place / name).read_text()


def data_of(text):
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def words_of(page):
    """What a reader sees of a page, without its data and scripts."""
    body = re.sub(r"<script.*?</script>", "", page[page.index("<body"):], flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", body)))


def in_order(text, words, what):
    places = [text.find(word) for word in words]
    require(-1 not in places and places == sorted(places),
            f"{what}: {list(zip(words, places))} in {text[:2000]}")


@test
def the_page_of_a_comparison_has_the_figures_of_the_command(place):
    a = trained(place)
    b = trained(place, "serial", pipeline="serial", steps=9)
    text = page_of(place, a, b)
    found = Elements(text)
    require_equal((found.outside, found.scripts, found.handlers), ([], 2, []), "elements")
    data = data_of(text)
    said = sluice("compare", a, b, "--json").json()
    require_equal(data["headline"].replace("\u00b1", "+-"), said["verdict"], "verdict")
    require_equal({row["key"]: (row["a"], row["b"], row["noise"]) for row in data["figures"]},
                  {key: (row["a"], row["b"], row["noise"])
                   for key, row in said["figures"].items()}, "figures")
    require_equal(data["differences"], said["differences"], "differences")
    for run, which in ((a, "a"), (b, "b")):
        with database(run) as db:
            losses = db.execute("SELECT id, dur, loss FROM step ORDER BY id").fetchall()
        require_equal([tuple(point) for point in data[which]["curves"]["points"]], losses,
                      f"curve of {which}")
    steps = [[step["step"] for step in data[which]["timeline"]["steps"]] for which in "ab"]
    require(steps[0] == steps[1] and len(steps[0]) in (2, 3), f"timelines of steps {steps}")


@test
def in_a_browser_both_timelines_move_together(place):
    a = trained(place)
    b = trained(place, "serial", pipeline="serial", steps=9)
    page_of(place, a, b)
    page = in_browser(place, "page.html", TRY)
    said = words_of(page)
    in_order(said, ["The same in both", "a step takes", "Phase by phase",
                    "as long as it does", "What was set differently", "pipeline",
                    "Both timelines", "Time of a step",
                    "Recording and run info"], "the page")
    require_words(said, ["model, text, batch", "nbuffer", "serial", "noise"], "the page")
    result = json.loads(html.unescape(
        re.search(r'<pre id="result">(.*?)</pre>', page, re.DOTALL).group(1)))
    windows = {name: [one[0] for one in result[name]]
               for name in ("whole", "zoomed", "moved", "reset", "other", "devices")}
    for name, (one, other) in windows.items():
        require_equal(one, other, f"windows of A and B: {name}")
    require_equal(windows["reset"], windows["whole"], "the window after Home")
    require(len({windows[name][0] for name in ("whole", "zoomed", "moved")}) == 3,
            f"zooming or moving changed nothing: {windows}")
    require(result["other"][0][1] != result["whole"][0][1], "the button did not change the step")
    require_equal(result["all"], "All 2 devices", "the button of the devices")
    for i in (0, 1):
        require(result["devices"][i][2] > result["other"][i][2], "no device was added")
    require(result["theme"], "the theme did not change")


@test
def the_page_of_runs_that_cannot_be_compared_says_so_first_and_judges_nothing(place):
    a = trained(place)
    b = changed(a, place / "b.db", *(statement for _, statement in FACTS[:3]))
    page_of(place, a, b)
    said = words_of(in_browser(place, "page.html", ""))
    in_order(said, ["A and B cannot be compared: model, text and batch differ.", "layers = 3",
                    "As recorded, a step takes", "Phase by phase"], "the page")
    for word in (" better ", " worse ", "B is faster", "B is slower"):
        require(word not in said, f"the page judges: {word!r} in {said}")


@test
def a_hostile_name_is_shown_on_the_page_and_not_run(place):
    a = trained(place)
    hostile = "</script><script>document.title='ran'</script><img src=x onerror=\"alert(1)\">"
    quoted = hostile.replace("'", "''")
    b = changed(a, place / "b.db",
                "UPDATE meta SET value = '" + quoted + "' WHERE key IN ('name', 'mode', 'machine', "
                "'text', 'model_text', 'pipeline')",
                "UPDATE string SET value = value || '" + quoted + "'",
                "UPDATE track SET name = name || '" + quoted + "'")
    found = Elements(page_of(place, a, b))
    require_equal((found.outside, found.scripts, found.handlers), ([], 2, []), "elements")
    after = in_browser(place, "page.html", "")
    require("<title>" in after and "<title>ran" not in after, "the title was changed")
    require("&lt;script&gt;document.title='ran'" in after, "the name is not shown")


@test
def pages_of_runs_with_little_in_them_open_without_an_error(place):
    run = trained(place)
    bare = changed(run, place / "bare.db", "DELETE FROM span", "DELETE FROM span_run",
                   "DELETE FROM flow")
    lossless = changed(run, place / "lossless.db", "UPDATE step SET loss = NULL")
    nameless = changed(run, place / "nameless.db", "DELETE FROM meta WHERE key <> 'written_by'")
    late = changed(run, place / "late.db", "UPDATE step SET id = id + 100",
                   "UPDATE span SET step_id = step_id + 100")
    simulated = place.simulate(MODEL, "sim.db", devices=4)
    for a, b, words in ((run, bare, ["operations have no rows.",
                                     "there are no causes to compare"]),
                        (lossless, lossless, ["Neither run has a loss"]),
                        (nameless, nameless, ["Neither run says its model"]),
                        (run, late, ["the median step of each"]),
                        (run, simulated, ["cannot be compared: model"]),
                        (simulated, simulated, ["A step takes"])):
        name = f"{a.stem}-{b.stem}.html"
        page_of(place, a, b, name)
        require_words(words_of(in_browser(place, name, "")), words, name)


@test
def a_page_is_not_written_over_either_run_nor_from_what_is_none(place):
    a = trained(place)
    b = changed(a, place / "b.db", "UPDATE meta SET value = '4' WHERE key = 'buffers'")
    empty = changed(a, place / "empty.db", "DELETE FROM step")
    for words, said in (((a, b, "-o", b, "--force"), ["b.db", "is the run"]),
                        ((a, b, "-o", a, "--force"), ["run.db", "is the run"]),
                        ((a, place / "no.db", "-o", place / "x.html"), ["no.db"]),
                        ((a, empty, "-o", place / "x.html"), ["empty.db", "no step"]),
                        ((a, b), ["--output"])):
        sluice("report", *words).refused(2, said)
    require(not (place / "x.html").exists(), "a refused report left a file")


if __name__ == "__main__":
    sys.exit(main())
