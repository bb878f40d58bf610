#!/usr/bin/env python3
"""`sluice runs`: many runs as one table in the terminal, as CSV, as JSON and as a page; its figures
are those of the run databases, and no file that it meets can end it."""

import csv
import html
import io
import json
import re
import shutil
import sys

from browser import Elements, in_browser
from hostile_databases import ADDED, CHANGED_SCHEMA, changed
from sluice_run import (SAMPLES, database, main, require, require_equal, require_words, sluice,
                        test)


def runs(place, *flags):
    return sluice("runs", *flags, cwd=place.path)


def two_trained(place):
    """In out/: a with 3 buffers and 6 steps, b with 4 and 4."""
    place.train("--steps", "6", output="out/a", buffers=3, validation_every=3).done()
    place.train("--steps", "4", output="out/b", buffers=4).done()
    return place / "out/a/run.db", place / "out/b/run.db"


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def bytes_over(db, links, direction, steps):
    """All that crossed one of these links or more, once each. In a link's name its kind is last."""
    return db.execute(f"""
        SELECT ifnull(sum(bytes + padding_bytes), 0) FROM span
        WHERE step_id IN ({','.join(map(str, steps))}) AND track_id IN (
          SELECT track_id FROM track_link JOIN link ON link.id = link_id
          WHERE direction = ? AND substr(name, instr(name, '.') + 1) {links})""",
                      (direction,)).fetchone()[0]


def check_row(row, path):
    """The row's figures beside those that plain SQL gives."""
    with database(path) as db:
        steps = db.execute("SELECT id, dur, loss FROM step ORDER BY id").fetchall()
        # All steps but the settling ones and the last, at most eight.
        counted = [step[0] for step in steps[2:]][:-1][-8:]
        moved = {f"{kind}_{direction}": bytes_over(db, links, direction, counted) / len(counted)
                 for kind, links in (("drive", "IN ('drive', 'internal')"),
                                     ("link", "NOT IN ('drive', 'internal', 'link')"))
                 for direction in ("read", "write")}
        validated = db.execute("SELECT loss FROM validation ORDER BY step_id DESC").fetchone()
    require_equal(row["step_count"], len(steps), f"steps of {path}")
    require_equal(row["loss"], steps[-1][2], f"loss of {path}")
    wanted = median([step[1] for step in steps[2:]]) / 1e9
    require(abs(row["step_time"] - wanted) < 1e-9, f"step time {row['step_time']}, not {wanted}")
    require_equal(row["bytes_steps"], len(counted), "steps whose bytes were read")
    for key, size in moved.items():
        require(abs(row[key] - size) <= 1e-6 * size + 1e-6, f"{key}: {row[key]}, not {size}")
    require(moved["drive_read"] > 0 and moved["link_write"] > 0, f"nothing moved: {moved}")
    require_equal(row["validation"], validated[0] if validated else None, "validation loss")


@test
def rows_have_the_figures_of_the_databases_in_every_form(place):
    a, b = two_trained(place)
    sim = place.simulate(SAMPLES / "models/gpt2-1.7b.toml", name="out/sim.db", devices=4)
    (place / "out/broken.db").write_text("no database")
    found = runs(place, "--json").json()
    by_path = {row["path"]: row for row in found["runs"]}
    require_equal(sorted(by_path), ["out/a/run.db", "out/b/run.db", "out/broken.db", "out/sim.db"],
                  "runs of the default folder")
    check_row(by_path["out/a/run.db"], a)
    check_row(by_path["out/b/run.db"], b)
    require_equal([by_path[f"out/{name}"]["state"] for name in
                   ("a/run.db", "b/run.db", "broken.db", "sim.db")],
                  ["finished", "finished", "unreadable", "simulated"], "states")
    require(by_path["out/broken.db"]["error"], "no error of a file that is no database")
    require(by_path["out/sim.db"]["loss"] is None and sim.exists(), "a simulated run has a loss")
    both = runs(place, "out/a", "out/b", "--json").json()
    require("buffers" in both["differing_settings"], "buffers differ")
    require("batch" not in both["differing_settings"], "batch is the same")

    # CSV: the same, as a spreadsheet reads it.
    runs(place, "--csv", "runs.csv").done()
    with open(place / "runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    require_equal(len(rows), 4, "rows of the CSV file")
    for row in rows:
        wanted = by_path[row["path"]]
        require_equal(row["state"], wanted["state"], "state")
        for key in ("loss", "step_time", "step_count", "drive_read"):
            value = float(row[key]) if row[key] else None
            require_equal(value, wanted[key], f"{key} of {row['path']}")
        require_equal(row["buffers"] or None, wanted["settings"].get("buffers"), "buffers")
    printed = runs(place, "--csv", "-").done().out
    require_equal(list(csv.DictReader(io.StringIO(printed))), rows, "the CSV that is printed")
    runs(place, "--csv", "runs.csv").refused(2, ["runs.csv"])
    runs(place, "--csv", "out/a/run.db", "--force").refused(2, ["is a run that is read"])

    # Sorted and chosen.
    names = [row["path"] for row in runs(place, "out", "--sort", "-step_count", "--where", "loss>0",
                                         "--json").json()["runs"]]
    require_equal(names, ["out/a/run.db", "out/b/run.db"], "sorted by steps")
    only = runs(place, "--where", "buffers=4", "out", "--json").json()["runs"]
    require_equal([row["path"] for row in only if row["state"] != "simulated"], ["out/b/run.db"],
                  "runs with 4 buffers")
    runs(place, "--sort", "stepcount").refused(2, ["did you mean 'step_count'?"])
    runs(place, "--where", "bufers=3").refused(2, ["did you mean 'buffers'?"])
    runs(place, "--columns", "los").refused(2, ["did you mean 'loss'?"])
    runs(place, "nowhere").refused(2, ["nowhere: there is no such folder or run database"])
    require_words(runs(place, "--where", "loss>1000").done().out, ["None of 4 runs"], "no row left")

    check_terminal(place)
    check_page(place, by_path)


def check_terminal(place):
    table = runs(place).done().out.split("\n\n")[0].splitlines()
    require_equal(len(table), 5, f"lines of the table: {table!r}")
    chosen = runs(place, "--columns", "path,loss,buffers").done().out.splitlines()[0]
    require_equal(chosen.split(), ["run", "loss", "buffers"], "titles of the chosen columns")


SMOOTHED = """
<script>
byId('smoothing').value = 0.5;
byId('filter').value = 'finished';
drawRuns();
document.querySelectorAll('#run-table th button')[data.columns.findIndex((c) =>
  c.key === 'step_count')].click();
drawPlots();
const made = document.createElement('pre');
made.id = 'found';
const row = data.rows.find((one) => one.name === 'a');
made.textContent = JSON.stringify({
  smooth: smoothed(row.curves.points.map((p) => [p[0], p[2]]), 0.5).map((p) => p[1]),
  loss: row.curves.points.map((p) => p[2]),
  rows: [...document.querySelectorAll('#run-table tbody tr')].map((tr) =>
    tr.children[1].textContent),
  curves: document.querySelectorAll('#loss-plot path.curve').length,
});
document.body.append(made);
byId('logarithmic').click();
document.querySelector('#run-legend button').click();
document.documentElement.dataset.left = document.querySelectorAll('#loss-plot path.curve').length;
</script>
"""


def check_page(place, by_path):
    runs(place, "-o", "runs.html").done()
    text = (place / "runs.html").read_text()
    elements = Elements(text)
    require_equal((elements.outside, elements.handlers, elements.scripts), ([], [], 2),
                  "what the page refers to, its handlers, its scripts")
    drawn = in_browser(place, "runs.html", SMOOTHED)
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', drawn).group(1)))
    wanted = [sum(0.5 ** (i - k) * found["loss"][k] for k in range(i + 1)) /
              sum(0.5 ** (i - k) for k in range(i + 1)) for i in range(len(found["loss"]))]
    require_equal(len(wanted), by_path["out/a/run.db"]["step_count"], "points of the loss")
    for value, expected in zip(found["smooth"], wanted):
        require(abs(value - expected) < 1e-9, f"smoothed: {value}, not {expected}")
    require_equal(found["rows"], ["b", "a"], "rows, filtered and sorted by steps")
    require_equal(found["curves"], 4, "curves of the loss: two runs, each with a smoothed one")
    require('data-left="2"' in drawn, "a click on a run of the legend does not hide it")


@test
def files_that_are_made_to_do_harm_are_rows(place):
    (place / "out").mkdir()
    good = place.simulate(SAMPLES / "models/gpt2-1.7b.toml", name="out/good.db", devices=2)
    shutil.copy(good, place / "cut.db")
    with open(place / "cut.db", "r+b") as file:
        file.truncate((place / "cut.db").stat().st_size // 2)
    shutil.move(place / "cut.db", place / "out/cut.db")
    count = 2
    for statements in {**CHANGED_SCHEMA, **ADDED}.values():
        copy = changed(good, place, statements)
        shutil.move(copy, place / f"out/hostile{count}.db")
        count += 1
    found = runs(place, "--json").json()
    require_equal(len(found["runs"]), count, "rows")
    by_path = {row["path"]: row for row in found["runs"]}
    require_equal(by_path["out/good.db"]["error"], None, "error of the good run")
    require(by_path["out/cut.db"]["error"], "a cut file has no error")
    shown = runs(place).done().out
    require("\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown,
            "a name reaches the terminal as it is")
    require(not any(line.startswith("sluice: error:") for line in shown.splitlines()),
            "a name begins a line")
    runs(place, "-o", "runs.html", "--csv", "runs.csv").done()
    page = (place / "runs.html").read_text()
    require_equal(Elements(page).scripts, 2, "scripts of a page with hostile names")
    require("<img" not in page and "\u202e" not in page, "a name is read as HTML")
    with open(place / "runs.csv", newline="", encoding="utf-8", errors="replace") as file:
        require_equal(len(list(csv.reader(file, strict=True))), count + 1, "lines of the CSV file")


if __name__ == "__main__":
    sys.exit(main())
