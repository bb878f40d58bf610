#!/usr/bin/env python3
"""What the terminal shows: colours where it has them and nowhere else, lines that fit 80 columns,
figures in one format, a run's folder in place of its database."""

import contextlib
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import unicodedata

from sluice_run import (LIMIT_S, SAMPLES, SLUICE, TESTBED, Skip, main, require, require_equal,
                        require_words, sluice, test)

MODEL = SAMPLES / "models/gpt2-1.7b.toml"
COMMANDS = ("train", "knobs", "set", "snapshot", "stop", "state", "show", "merge", "runs",
            "compare", "report", "export", "simulate", "tune", "calibrate", "doctor")
SEQUENCE = re.compile(r"\x1b\[(38;2;\d+;\d+;\d+|38;5;\d+|39)m")


def in_a_terminal(*words, columns=80, **variables):
    """What a command prints to a terminal so wide, that says of itself what `variables` say."""
    if shutil.which("script") is None:
        raise Skip("there is no `script` to open a terminal with")
    kept = {key: value for key, value in os.environ.items()
            if key not in ("NO_COLOR", "COLORTERM", "TERM")}
    command = " ".join(shlex.quote(str(word)) for word in (SLUICE, *words))
    done = subprocess.run(["script", "-qec", f"stty cols {columns}; {command} 2>/dev/null",
                           os.devnull], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=kept | {"TERM": "xterm-256color", **variables}, check=False,
                          timeout=LIMIT_S)
    require_equal(done.returncode, 0, f"exit code of {command}: {done.stdout}")
    return done.stdout.replace("\r", "")


def columns_of(line):
    plain = SEQUENCE.sub("", line)
    return sum(0 if unicodedata.combining(c) else
               2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in plain)


def check_width(text, what, columns=80):
    """No line is wider; a path is as long as it is."""
    wide = [line for line in text.splitlines()
            if columns_of(line) > columns and not re.search(r"\S*/\S*/\S{20,}", line)]
    require(text.strip() and not wide,
            f"{what}: {len(wide)} lines are wider than {columns}: {wide}")


def trained(place, *flags, **settings):
    settings = {"steps": 8, "output": "out", "clock": "emulated", "time_scale": 30, **settings}
    place.train(*flags, **settings).done()
    return place / settings["output"]


def simulated(place):
    return place.simulate(MODEL, devices=4)


@test
def the_help_of_every_command_fits(_place):
    for words in ([], *([command] for command in COMMANDS)):
        text = in_a_terminal(*words, "--help")
        check_width(text, f"{words} --help")
        require_words(text, ["Example", "--color WHEN"], f"{words} --help")
    listed = set(re.findall(r"^  (\w+)  ", in_a_terminal("--help"), re.MULTILINE))
    require(set(COMMANDS) <= listed, f"a command is not measured here: {listed ^ set(COMMANDS)}")


@test
def what_commands_print_fits(place):
    run, sim = trained(place, "--at", "4:buffers=2"), simulated(place)
    other = trained(place, output="other", pipeline="serial")
    more = place.arguments("--resume", output=run, steps=16, clock="emulated", time_scale=30,
                           model=place / "nano.toml", text=place / "text.txt")
    check_width(in_a_terminal(*more), "train")
    for words in (["show", run], ["show", sim], ["runs", place.path], ["compare", run, other],
                  ["simulate", "--like", run, "--fit"],
                  ["simulate", "--like", run, "--fit", "--set", "buffers=4", "--set",
                   "pipeline=nbuffer"], ["tune", run],
                  ["state", run / "state", "--verify"], ["doctor", place.path],
                  ["report", run, "-o", place / "page.html"],
                  ["export", run, "--format", "chrome", "-o", place / "trace.json"],
                  ["simulate", MODEL, "--platform", TESTBED],
                  ["simulate", MODEL, "--platform", TESTBED, "--sweep", "devices=1..3"],
                  ["tune", MODEL, "--platform", TESTBED, "--set", "devices=2", "--hold",
                   "subgroup_elements"]):
        check_width(in_a_terminal(*words), f"{words[0]} {words[1:]}")


@test
def the_knobs_of_a_live_run_fit(place):
    run = place.start(steps=100_000, clock="real")
    try:
        database = place / "out/run.db"
        run.wait_for(lambda: sluice("knobs", database).code == 0, "answer")
        for name in (database, place / "out"):
            text = in_a_terminal("knobs", name)
            check_width(text, "knobs")
            require_words(text, ["buffers", "pipeline"], "knobs")
        require("bytes" not in re.search(r"bounce_memory .*", text).group(0),
                "a size is written with its unit")
        sluice("stop", place / "out").done()
    finally:
        run.wait()


@test
def wide_characters_count_as_two_columns(place):
    run = trained(place, name="\u6f22\u5b57\u306e\u540d\u524d" * 3)
    for columns in (40, 60, 80):
        check_width(in_a_terminal("show", run, columns=columns), "show", columns)
        text = in_a_terminal("show", run, "--step", "3..5", columns=columns)
        check_width(text, "show --step", columns)
        require_words(text, ["Steps 3 to 5 took", "here"], f"show --step in {columns} columns")
        check_width(in_a_terminal("runs", place.path, columns=columns), "runs", columns)


@test
def a_terminal_gets_the_colours_of_the_stages(place):
    run = trained(place)
    fine = in_a_terminal("show", run, COLORTERM="truecolor")
    coarse = in_a_terminal("show", run)
    with contextlib.closing(sqlite3.connect(run / "run.db")) as connection:
        colour = dict(connection.execute(
            "SELECT value, colour FROM stage JOIN string ON string.id = name_id"))
    red, green, blue = bytes.fromhex(colour["state_read"].lstrip("#"))
    require(re.search(rf"\x1b\[38;2;{red};{green};{blue}mstate_read\x1b\[39m", fine),
            f"state_read is not in its colour {colour['state_read']}: {fine!r}")
    require_words(fine, ["\u2588"], "bars of a terminal with colours")
    require("\x1b[38;5;" in coarse and "\x1b[38;2;" not in coarse, f"256 colours: {coarse!r}")
    require_equal(SEQUENCE.sub("", fine), SEQUENCE.sub("", coarse), "text without its colours")
    text = place.train("--resume", "--color", "always", steps=10, clock="emulated",
                       time_scale=30).done().out
    require(len(set(SEQUENCE.findall(text))) >= 4, f"the end of train has no colours: {text!r}")


@test
def nobody_gets_colours_who_does_not_want_them(place):
    run = trained(place)
    plain = {
        "a pipe": sluice("show", run, env=os.environ | {"COLORTERM": "truecolor"}).done().out,
        "NO_COLOR": in_a_terminal("show", run, NO_COLOR="1", COLORTERM="truecolor"),
        "--color never": in_a_terminal("show", run, "--color", "never", COLORTERM="truecolor"),
        "a plain terminal": in_a_terminal("show", run, TERM="dumb"),
        "JSON": sluice("--color", "always", "show", run, "--json").done().out,
    }
    for what, text in plain.items():
        require("\x1b" not in text, f"{what}: {text!r}")
    require_words(plain["a pipe"], ["####"], "bars without colours")
    asked = sluice("--color", "always", "show", run, env=os.environ | {"NO_COLOR": "1"}).done().out
    require_words(asked, ["\x1b[38;"], "--color always is stronger than NO_COLOR")
    sluice("show", run, "--color", "sometimes").refused(2, ["auto, always and never"])


@test
def colours_open_no_door_for_escapes_in_names(place):
    run = trained(place)
    evil = "\x1b[31mred\x1b]0;title\x07\x020123456789abcdef#ff0000text"
    with contextlib.closing(sqlite3.connect(run / "run.db")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key IN ('name', 'machine')", (evil,))
        connection.commit()
    text = sluice("show", run, "--color", "always").done().out
    require_words(text, ["\\x1b[31mred", "\\x020123456789abcdef#ff0000text"], "show")
    require("\x1b" not in SEQUENCE.sub("", text) and "\x07" not in text, f"{text!r}")


@test
def a_folder_stands_for_the_run_in_it(place):
    run = trained(place)
    for words in (["show", "--no-predict"], ["report", "-o", place / "page.html"]):
        sluice(words[0], run, *words[1:]).done()
    sluice("simulate", "--fit", "--like", run).done()
    require_equal(sluice("show", run, "--json", "--no-predict").done().out,
                  sluice("show", run / "run.db", "--json", "--no-predict").done().out, "show")
    sluice("show", place.path).refused(2, ["is a folder"])


@test
def figures_have_one_format(place):
    run = trained(place, steps=60, clock="real")
    text = sluice("show", run, "--no-predict").done().out
    counts = re.findall(r"^  state_read +(\d[\d ]*\d) {2,}", text, re.MULTILINE)
    require(counts and re.fullmatch(r"\d{1,3}( \d{3})*", counts[0].strip()), f"{counts}: {text}")
    settings = sluice("train", "--settings").done().out
    require_words(settings, ["8MiB to 1TB"], "bounce_memory")
    require_words(sluice("simulate", MODEL, "--platform", TESTBED, "--set", "devices=99").err,
                  ["has 10: ask for 1 to 10"], "devices")


@test
def a_simulated_run_is_of_the_machine_that_was_simulated(place):
    text = sluice("show", simulated(place)).done().out
    require_words(text, ["on 10 SmartSSD, RTX A5000"], "show")
    table = sluice("simulate", MODEL, "--platform", TESTBED, "--sweep", "devices=1,2").done().out
    require_words(table, ["gpt2-1.7b on 10 SmartSSD, RTX A5000"], "the sweep's table")


@test
def a_missing_argument_is_said_with_what_it_is(place):
    sluice("compare", place / "a.db").refused(2, ["compare needs two runs: sluice compare A B"])
    sluice("export", place / "a.db", "-o", "x").refused(2, ["which format? --format chrome"])
    require_words(" ".join(sluice("--help").done().out.split()),
                  ["4 a --fail-if was not judged", "5 a change was taken back"], "help")
    sluice("show").refused(2, ["show: database is missing"])


if __name__ == "__main__":
    sys.exit(main())
