#!/usr/bin/env python3
"""`sluice show` and `sluice compare`: verdicts on real, emulated and simulated runs, what they
predict, what two runs differ in, and what they say of files they cannot use."""

import contextlib
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys

from sluice_run import (SAMPLES, SLUICE, TESTBED, Skip, database, main, require, require_equal,
                        require_words, sluice, test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"


def simulated(place, name="sim.db", **settings):
    return place.simulate(MODEL, name, **{"devices": 4, **settings})


def trained(place, *flags, **settings):
    """A run from its beginning, in a folder of its own."""
    settings = {"steps": 6, "output": "out", **settings}
    place.train(*flags, **settings).done()
    return place / settings["output"] / "run.db"


def shown(run, *flags):
    return sluice("show", run, "--json", "--last", 100, *flags).json()


def check_shares(run, what):
    steps = shown(run, "--no-predict")["steps"]
    require(steps, f"{what}: no steps")
    for step in steps:
        total = sum(step["share"].values())
        require(abs(total - 1) < 1e-3, f"{what}, step {step['step']}: shares add to {total}")
        require(min(step["share"].values()) >= 0, f"{what}: a negative share: {step}")


@test
def shares_of_every_step_add_to_the_whole(place):
    check_shares(simulated(place), "simulated")
    for pipeline in ("serial", "handover", "nbuffer"):
        check_shares(simulated(place, method="csd", pipeline=pipeline), f"simulated {pipeline}")
        check_shares(simulated(place, method="host", pipeline=pipeline), f"host {pipeline}")
    check_shares(simulated(place, density=0.01), "simulated, compressed")
    check_shares(simulated(place, accelerators=1, wire="native"), "simulated, 16 bits")
    check_shares(trained(place, clock="real"), "real")
    check_shares(trained(place, clock="real", method="host", output="host"), "real, host")
    check_shares(trained(place, output="emulated", clock="emulated", time_scale=30), "emulated")


@test
def compression_stands_beside_what_it_takes_away(place):
    runs = {"simulated": simulated(place, density=0.02),
            "trained": trained(place, clock="real", density=0.05),
            "with feedback": trained(place, output="fed", clock="real", density=0.05,
                                     error_feedback="true")}
    gradient_bytes = 2  # what backward makes them in
    for what, run in runs.items():
        with database(run) as db:
            parameters, = db.execute("SELECT value FROM meta WHERE key = 'parameters'").fetchone()
            given = db.execute("SELECT sum(bytes) FROM span JOIN string ON string.id = name_id "
                               "WHERE value = 'compress' GROUP BY step_id").fetchall()
        require(given, f"{what}: nothing was compressed")
        require_equal({size for size, in given}, {gradient_bytes * int(parameters)},
                      f"{what}: bytes given")
        said = {one["of"]: one for one in shown(run, "--no-predict")["answers"]}
        require(said["costly compression"]["outcome"] in ("answer", "nothing found"),
                f"{what}: {said['costly compression']}")


@test
def a_computer_too_slow_for_what_it_emulates_is_said_where_its_times_are(place):
    # Modelled time is next to nothing, so that the work of any computer is late for it.
    run = trained(place, "--at", "6:buffers=2", steps=12, clock="emulated", time_scale=0.001)
    with database(run) as connection:
        rows = connection.execute(
            "SELECT step_id, sum(operations), sum(late), sum(late_dur) > sum(modelled_dur) "
            "FROM lateness GROUP BY step_id").fetchall()
    require_equal([(row[0], row[3]) for row in rows], [(0, 1), (6, 1)], "late from which step on")
    said = shown(run, "--no-predict")
    require_equal((said["lateness"]["operations"], said["lateness"]["late"]),
                  (sum(row[1] for row in rows), sum(row[2] for row in rows)), "counts")
    require_equal([one["is_speed_up_late"] for one in said["stretches"]], [True, True], "marks")
    needed = said["lateness"]["needed_time_scale"]
    text = " ".join(sluice("show", run, "--no-predict").done().out.split())
    require_words(text, ["LATE: ", "these times are partly this computer's",
                         f"--set time_scale={needed:g}", "1.00x*", "* Operations were late ("],
                  "show")
    require(text.index("LATE: ") < text.index("Why a step takes"), f"below the verdict: {text}")
    doubt, = said["doubts"]
    require_words(doubt["mark"], ["% of operations LATE"], "the mark")
    page = place / "late.html"
    sluice("report", run, "-o", page, "--no-predict").done()
    require_words(page.read_text(encoding="utf-8"), [doubt["mark"], doubt["sentence"]], "the page")
    fit = sluice("tune", run, "--hold", "subgroup_elements", "--json").json()["fit"]
    require("partly this computer's" in " ".join(fit["caveats"]), f"{fit['caveats']}")
    sluice("report", run, "-o", place / "page.html", "--no-predict").done()
    require(said["lateness"]["words"] in (place / "page.html").read_text(), "nothing on the page")


def with_verdicts_removed(run):
    copy = shutil.copy(run, run.with_name("unjudged.db"))
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        connection.execute("DELETE FROM verdict")
        connection.commit()
    return copy


@test
def a_run_that_ended_has_the_verdicts_that_show_would_compute(place):
    for run in (simulated(place), trained(place, clock="real"),
                trained(place, output="emulated", clock="emulated", time_scale=30)):
        with database(run) as connection:
            steps = connection.execute("SELECT count(*) FROM step").fetchone()[0]
            sums = connection.execute("SELECT sum(share) FROM verdict GROUP BY step_id").fetchall()
        require_equal(len(sums), steps, f"{run}: steps with a verdict")
        require(all(abs(total - 1) < 1e-3 for total, in sums), f"{run}: {sums}")
        stored = shown(run, "--no-predict")
        computed = shown(with_verdicts_removed(run), "--no-predict")
        require_equal([step["step"] for step in stored["steps"]], [*range(1, steps + 1)], "steps")
        require_equal(len(computed["steps"]), steps, "steps that were computed")
        for one, other in zip(stored["steps"], computed["steps"]):
            for cause, share in one["share"].items():
                require(abs(share - other["share"][cause]) < 1e-9,
                        f"step {one['step']}, {cause}: {share}, computed {other['share'][cause]}")


@test
def changes_of_knobs_are_rows_of_the_run_that_made_them(place):
    run = trained(place, "--at", "2:pipeline=serial", "--at", "4:buffers=2",
                  "--at", "90:buffers=5", clock="real")
    place.train("--resume", "--steps", 8, clock="real", density=0.5).done()
    with database(run) as connection:
        rows = connection.execute(
            "SELECT step_id, name, old, new, who FROM knob_change "
            "JOIN knob ON knob.id = knob_id ORDER BY step_id, name").fetchall()
        early = connection.execute(
            "SELECT count(*) FROM knob_change JOIN step ON step.id = step_id "
            "WHERE knob_change.ts > step.ts").fetchone()[0]
        knobs = dict(connection.execute("SELECT name, type FROM knob"))
    # What was planned for step 90 never came; the resume has the settings of its own.
    require_equal(rows, [(2, "pipeline", "nbuffer", "serial", "settings"),
                         (4, "buffers", "3", "2", "settings"),
                         (6, "buffers", "2", "3", "settings"),
                         (6, "density", "1", "0.5", "settings"),
                         (6, "pipeline", "serial", "nbuffer", "settings")], "knob_change")
    require_equal(early, 0, "changes that came after their step had begun")
    require_equal((knobs["pipeline"], knobs["buffers"]), ("word", "integer"), "types of knobs")
    require_equal([(row["step"], row["knob"]) for row in shown(run)["knob_changes"]][:2],
                  [(3, "pipeline"), (5, "buffers")], "what show says")
    plain = trained(place, output="plain", clock="real")
    differences = sluice("compare", plain, run, "--json").json()["differences"]
    require_words(differences["changes"]["b"], ["pipeline=serial from step 3"], "compare")
    sluice("report", run, "-o", place / "page.html").done()
    require_words((place / "page.html").read_text(), ["pipeline nbuffer \u2192 serial"], "report")


@test
def spans_move_what_the_run_counted(place):
    for i, settings in enumerate(({"method": "csd"}, {"method": "host"},
                                  {"method": "csd", "density": 0.05})):
        report = place.train("--json", steps=4, clock="real", output=f"run{i}", **settings).json()
        with database(place / f"run{i}/run.db") as connection:
            rows = connection.execute(
                "SELECT link, direction, sum(bytes) * 1.0 / steps, "
                "sum(padding_bytes) * 1.0 / steps "
                "FROM link_bytes, (SELECT count(*) AS steps FROM step) "
                "WHERE step_id IN (SELECT id FROM step) GROUP BY link, direction").fetchall()
            spans = {(row[0], row[1]): row[2] for row in rows}
            spans |= {(row[0], f"{row[1]}_padding"): row[3] for row in rows if row[3] > 0}
        counted = {(link, direction): mean for link, ways in report["bytes"].items()
                   for direction, mean in ways.items() if mean > 0}
        require_equal(spans, counted, f"bytes a step of {settings}")


@test
def a_step_bound_by_one_buffer_is_told_so_and_more_buffers_are_predicted_to_help(place):
    run = shown(simulated(place, method="csd", pipeline="serial"))
    predicted = {one["setting"]: one["change"] for one in run["verdict"]["predicted"]}
    require("pipeline=nbuffer" in predicted, f"predicted: {predicted}")
    # The prediction is what a simulation of it gives.
    before = sluice("simulate", MODEL, "--platform", TESTBED, "--json", "--set", "devices=4",
                    "--set", "pipeline=serial").json()["seconds"]["total"]
    after = sluice("simulate", MODEL, "--platform", TESTBED, "--json", "--set", "devices=4",
                   "--set", "pipeline=nbuffer").json()["seconds"]["total"]
    found, wanted = predicted["pipeline=nbuffer"], after / before - 1
    require(abs(found - wanted) < 0.03, f"predicted {found}, simulated {wanted}")


@test
def the_words_name_the_clock_and_fit_a_narrow_terminal(place):
    run = simulated(place)
    text = sluice("show", run).done().out
    require_words(text, ["Why a step takes", "SIMULATED CLOCK, 1 step", "Turn next",
                         "Predicted: simulated on the platform fitted to this run"], "show")
    bars = re.findall(r"^  [a-z, ]+?#* +([\d.]+) %  ", text, re.MULTILINE)
    require(len(bars) >= 2, f"no bars: {text}")
    require_equal(round(sum(map(float, bars)), 1), 100.0, f"shares printed: {bars}")


def in_a_terminal(columns, *words):
    """What a command prints to a terminal so wide."""
    if shutil.which("script") is None:
        raise Skip("there is no `script` to open a terminal with")
    command = " ".join(shlex.quote(str(word)) for word in (SLUICE, *words))
    done = subprocess.run(["script", "-qec", f"stty cols {columns}; {command}", os.devnull],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    require_equal(done.returncode, 0, f"exit code of {command}")
    return done.stdout.replace("\r", "")


@test
def forty_columns_are_enough(place):
    run = trained(place, clock="emulated", time_scale=30)
    other = trained(place, output="other", clock="real", pipeline="serial")
    for words in (["show", run], ["show", run, "--no-predict"], ["show", simulated(place)],
                  ["compare", os.path.relpath(run), os.path.relpath(other)]):
        text = in_a_terminal(40, *words)
        wide = [line for line in text.splitlines() if len(line) > 40 and str(place) not in line and
                not line.startswith(("A: ", "B: "))]  # a path is as long as it is
        require(not wide, f"{words[0]}: too wide for 40 columns: {wide}")
        require_words(text, ["Why a step takes"] if words[0] == "show" else ["step_time:"],
                      words[0])
        require(not any(line.endswith(" ") for line in text.splitlines()), f"{text!r}")


@test
def flows_lead_from_gradients_to_the_next_parameters(place):
    run = trained(place, clock="emulated", time_scale=30)
    with database(run) as connection:
        pairs = set(connection.execute(
            "SELECT DISTINCT x.value, y.value FROM flow JOIN span a ON a.id = from_span "
            "JOIN span b ON b.id = to_span JOIN string x ON x.id = a.name_id "
            "JOIN string y ON y.id = b.name_id"))
        later = connection.execute(
            "SELECT count(*) FROM flow JOIN span a ON a.id = from_span "
            "JOIN span b ON b.id = to_span WHERE a.ts + a.dur > b.ts").fetchone()[0]
    for pair in (("backward", "gradient"), ("gradient", "stage_gradient"),
                 ("stage_gradient", "gradient_down"), ("gradient_down", "gradient_read"),
                 ("gradient_read", "update"), ("state_read", "update"), ("update", "state_write"),
                 ("update", "parameters_up"), ("state_write", "commit")):
        require(pair in pairs, f"no flow {pair}; there are {sorted(pairs)}")
    require_equal(later, 0, "effects that began before their cause ended")


@test
def levels_record_what_they_say(place):
    for level, has_spans, has_flows in (("steps", 0, 0), ("transfers", 1, 0), ("all", 1, 1)):
        run = trained(place, record=level, output=level, clock="emulated", time_scale=30)
        with database(run) as connection:
            spans, flows = connection.execute(
                "SELECT (SELECT count(*) > 0 FROM span WHERE step_id IS NOT NULL), "
                "(SELECT count(*) > 0 FROM flow)").fetchone()
            name = connection.execute(
                "SELECT value FROM span JOIN string ON string.id = name_id WHERE dur = 0 AND "
                "value LIKE 'level %'").fetchall()
        require_equal((spans, flows), (has_spans, has_flows), f"spans and flows of record={level}")
        require_equal(name, [(f"level {level}",)], "the level that the run names")


@test
def a_run_of_steps_alone_says_what_is_missing(place):
    text = sluice("show", trained(place, record="steps")).done().out
    require_words(text, ["operations were not recorded", "record=transfers"], "show")


@test
def two_runs_are_compared_with_their_noise(place):
    slow = simulated(place, "slow.db", pipeline="serial")
    fast = simulated(place, "fast.db", pipeline="nbuffer")
    reply = sluice("compare", slow, fast)
    require_equal(reply.code, 0, "exit code")
    require_words(reply.out, ["step_time", "LESS", "pipeline", "serial -> nbuffer", "the same"],
                  "compare")
    same = sluice("compare", slow, slow, "--json").json()
    require_equal(same["differences"], {}, "differences of a run and itself")
    require(all(one["change"] == 0 for one in same["figures"].values()), f"{same}")


@test
def a_bound_that_is_passed_ends_with_3(place):
    slow = simulated(place, "slow.db", pipeline="serial")
    fast = simulated(place, "fast.db", pipeline="nbuffer")
    for first, second, condition, code in (
            (fast, slow, "step_time>+3%", 3), (slow, fast, "step_time>+3%", 0),
            (slow, fast, "step_time<-3%", 3), (fast, slow, "step_time>+900%", 0),
            (fast, fast, "step_time>0", 0), (fast, slow, "update>0.1", 3)):
        reply = sluice("compare", first, second, "--fail-if", condition)
        require_equal(reply.code, code, f"{first.name} {second.name} {condition}")
        require_equal("TRIPPED" in reply.out, code == 3, f"{condition} says that it tripped")
        require_equal("Held: --fail-if" in reply.out, code == 0, f"{condition} says that it held")


@test
def a_difference_has_its_noise_beside_it_also_where_it_is_larger(place):
    slow = trained(place, clock="emulated", time_scale=30, pipeline="serial", steps=8)
    fast = trained(place, output="fast", clock="emulated", time_scale=30, method="host", steps=8)
    figures = sluice("compare", slow, fast, "--json").json()["figures"]
    lines = {line.split()[0]: line for line in sluice("compare", slow, fast).done().out.splitlines()
             if line.split() and line.split()[0] in figures}
    noisy = [key for key, figure in figures.items() if figure["noise"] > 0]
    require(noisy, f"no figure has noise: {figures}")
    for key in noisy:
        require_words(lines[key], ["noise +-"], key)


@test
def what_cannot_be_compared_or_shown_is_refused(place):
    run = simulated(place)
    for condition, words in (("steptime>+3%", ["steptime", "step_time"]),
                             ("step_time", ["write a figure"]), ("step_time>x", ["write a figure"]),
                             (">3%", ["write a figure"]), ("step_time>nan", ["write a figure"])):
        sluice("compare", run, run, "--fail-if", condition).refused(2, words)
    sluice("compare", run, place / "nowhere.db").refused(2, ["nowhere.db"])
    (place / "text.db").write_text("not a database at all\n" * 100)
    for command in (["show", place / "text.db"], ["compare", run, place / "text.db"]):
        sluice(*command).refused(2, ["text.db", "not a database"])
    with sqlite3.connect(place / "newer.db") as newer:
        newer.executescript("PRAGMA application_id = 0x536c6365; PRAGMA user_version = 99;"
                            "CREATE TABLE meta (key TEXT, value TEXT);"
                            "INSERT INTO meta VALUES ('written_by', 'Sluice 9.9.9')")
    sluice("show", place / "newer.db").refused(2, ["Sluice 9.9.9", "version 99"])
    whole = run.read_bytes()
    (place / "cut.db").write_bytes(whole[: len(whole) // 2])
    sluice("show", place / "cut.db").refused(2, ["cut.db"])


if __name__ == "__main__":
    sys.exit(main())
