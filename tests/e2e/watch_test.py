#!/usr/bin/env python3
"""`sluice watch` beside live and finished runs, and the metrics that it and `sluice train` serve:
as Prometheus's own parser and a strict one that is written here read them, with the bytes of
`sluice show`."""

import json
import re
import signal
import socket
import subprocess
import urllib.request

from readers import PROMETHEUS_CLIENT, READER_LIMIT_S, reader
from sluice_run import Running, database, main, require, require_equal, require_words, sluice, test

LINE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  step (\d+)  (\S+): (.+)"


def finished(place, *flags):
    place.train("--steps", "8", *flags).done()
    return place / "out/run.db"


def spoilt(place):
    """Step 6 has no loss."""
    run = finished(place)
    with database(run, "rw") as db:
        db.execute("UPDATE step SET loss = NULL WHERE id = 5")
        db.execute("UPDATE step SET dur = 1000000 WHERE id <> 7")
        db.execute("UPDATE step SET dur = 2000000 WHERE id = 7")
        db.commit()
    return run


# Conditions ---------------------------------------------------------------------------------------


@test
def what_holds_is_a_line_and_an_exit_code(place):
    run = spoilt(place)
    said = sluice("watch", run, "--when", "loss=nan", "--when", "step_time>+20%", "--when",
                  "lost_records>0")
    require_equal(said.code, 0, "exit code")
    lines = [re.fullmatch(LINE, line).groups() for line in said.out.splitlines()]
    require_equal([line[:2] for line in lines], [("6", "loss=nan"), ("8", "step_time>+20%")],
                  "what held")
    require_words(lines[1][2], ["+100.0 %", "steps 3 to 7"], "the evidence")
    for flags, code in ((["--fail"], 3), (["--fail", "--once"], 3)):
        said = sluice("watch", run, "--when", "loss=nan", *flags)
        require_equal((said.code, len(said.out.splitlines())), (code, 1), f"{flags}")
    require_equal(sluice("watch", run, "--when", "loss>1000", "--fail").code, 0, "nothing held")


@test
def a_command_is_told_what_held_and_its_failure_is_said(place):
    run = spoilt(place)
    told = place / "told.txt"
    command = f'echo "$SLUICE_RUN|$SLUICE_STEP|$SLUICE_CONDITION|$SLUICE_VALUE" > {told}; exit 7'
    said = sluice("watch", run, "--when", "step_time>+20%", "--run", command).done()
    require_equal(told.read_text(), f"{run}|8|step_time>+20%|0.002\n", "what the command heard")
    require_words(said.err, ["--run", "step 8", "exit code 7"], "the warning")


@test
def what_cannot_be_watched_is_refused(place):
    run = finished(place)
    sluice("watch", run).refused(2, ["what to watch for?"])
    sluice("watch", run, "--when", "los>3").refused(2, ["did you mean 'loss'?"])
    sluice("watch", run, "--when", "no_step_for>60 GB").refused(2, ["'no_step_for>60s'"])
    with database(run, "rw") as db:
        db.execute("DELETE FROM meta WHERE key = 'steps'")
        db.commit()
    sluice("watch", run, "--when", "loss=nan", "--until-end").refused(2, ["how many steps"])
    sluice("watch", place / "none.db", "--when", "loss=nan").refused(2, ["none.db"])


def steps_of(run):
    with database(run) as db:
        return db.execute("SELECT count(*) FROM step").fetchone()[0]


@test
def a_live_run_is_followed_over_its_death_to_its_end_and_trains_as_alone(place):
    training = place.start("--steps", "100")
    run = place / "out/run.db"
    training.wait_for(lambda: run.exists() and sluice("show", run).code == 0, "the record")
    watching = Running(["watch", run, "--when", "loss>0", "--fail", "--until-end"], place.path)
    training.wait_for(lambda: steps_of(run) > 5, "the sixth step")
    training.signal(signal.SIGKILL)
    training.wait()
    sluice("watch", run, "--when", "loss>1000").done()  # without --until-end it ends at once
    require(watching.is_running(), "the watch ended with the killed run")
    place.train("--steps", "100", "--resume").done()
    said = watching.wait()
    require_equal(said.code, 3, f"exit code ({said.err.strip()})")
    require(said.out.count("\n") == 1 and "step 1  loss>0" in said.out, said.out)
    digest = place.digest()
    place.train("--steps", "100", output="alone").done()
    require_equal(place.digest("alone/state"), digest, "the digest")


@test
def ctrl_c_ends_a_watch(place):
    run = finished(place)
    watching = Running(["watch", run, "--metrics", "0"], place.path)
    watching.wait_for(lambda: "metrics at" in watching.heard(), "the address")
    watching.signal(signal.SIGINT)
    said = watching.wait()
    require_equal((said.code, said.out), (0, ""), "how it ended")
    require("commit" not in said.err, said.err)


# Metrics ------------------------------------------------------------------------------------------


class Scraped:
    """The address that a program says, asked."""

    def __init__(self, program):
        self.program = program
        program.wait_for(lambda: "/metrics" in program.heard(), "the address")
        self.url = re.search(r"http://127\.0\.0\.1:\d+/metrics", program.heard())[0]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def text(self):
        with urllib.request.urlopen(self.url, timeout=60) as answer:
            require_equal(answer.headers["Content-Type"],
                          "text/plain; version=0.0.4; charset=utf-8", "type")
            return answer.read().decode()


SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\[\\"n])*)"')


def parsed(text):
    """{(name, labels): value}; each name has its help and type before it, and stands together."""
    require(text.endswith("\n"), "the last line has no end")
    samples, typed, name_now = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name_now = line.split(" ")[2]
            require(name_now not in typed, f"{name_now} comes twice")
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            require_equal(name, name_now, "the type's name")
            require(kind in ("counter", "gauge"), line)
            typed[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            require(match and match[1] == name_now and name_now in typed, f"no sample: {line!r}")
            key = (match[1], tuple(sorted(LABEL.findall(match[2] or ""))))
            require(key not in samples, f"{key} comes twice")
            samples[key] = float(match[3])
    return samples


ASK_PROMETHEUS = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
print(json.dumps([[s.name, sorted(s.labels.items()), s.value]
                  for family in text_string_to_metric_families(sys.stdin.read())
                  for s in family.samples]))
"""


def values(samples, name):
    return {tuple(value for _, value in labels): figure
            for (of, labels), figure in samples.items() if of == name}


def served(place, run):
    return Scraped(Running(["watch", run, "--metrics", "0"], place.path))


def end(scraped):
    scraped.program.signal(signal.SIGINT)
    scraped.program.wait().done()


@test
def the_metrics_are_the_figures_of_show(place):
    run = finished(place, "--at", "4:buffers=1")
    with database(run, "rw") as db:
        db.execute("UPDATE link SET name = ? WHERE id = 0", ('a "quoted" \\ name',))
        db.commit()
    scraped = served(place, run)
    samples = parsed(scraped.text())
    end(scraped)
    shown = sluice("show", run, "--json", "--no-predict", "--last", 1000).json()
    require_equal({(d, l.replace('\\"', '"').replace("\\\\", "\\")): b for (d, l), b in
                   values(samples, "sluice_link_bytes_total").items()},
                  {(l["direction"], l["link"]): l["bytes"] for l in shown["links"]}, "bytes")
    steps = shown["steps"]
    require_equal(values(samples, "sluice_steps_total"), {(): len(steps)}, "steps")
    require_equal(values(samples, "sluice_tokens_total"), {(): sum(s["tokens"] for s in steps)},
                  "tokens")
    require_equal(values(samples, "sluice_loss"), {(): steps[-1]["loss"]}, "loss")
    require_equal(values(samples, "sluice_step_seconds")[("last",)], steps[-1]["dur"] / 1e9, "time")
    shares = {cause: share for (cause,), share in values(samples, "sluice_cause_share").items()}
    for cause, share in steps[-1]["share"].items():
        require(abs(shares[cause] - share) < 1e-9, f"{cause}: {shares[cause]}, {share}")
    require_equal(values(samples, "sluice_knob")[("buffers",)], 1, "a knob that was turned")


@test
def prometheus_reads_what_is_served(place):
    python = reader("prometheus_client", PROMETHEUS_CLIENT)
    scraped = served(place, finished(place))
    text = scraped.text()
    end(scraped)
    done = subprocess.run([python, "-c", ASK_PROMETHEUS], input=text, capture_output=True,
                          text=True, timeout=READER_LIMIT_S, check=False)
    require_equal(done.returncode, 0, done.stderr.strip()[-400:])
    found = {(name, tuple(map(tuple, labels))): value
             for name, labels, value in json.loads(done.stdout)}
    require_equal(found, parsed(text), "samples")


@test
def a_training_run_serves_its_metrics_and_slow_clients_hold_up_nobody(place):
    training = place.start("--steps", "100000", "--metrics", "0")
    scraped = Scraped(training)
    slow = [socket.create_connection(("127.0.0.1", scraped.port)) for _ in range(20)]
    for client in slow:
        client.sendall(b"GET /metr")
    with socket.create_connection(("127.0.0.1", scraped.port)) as client:
        client.sendall(b"\xff\x00 garbage\r\n\r\n")
        require(client.recv(100).startswith(b"HTTP/1.0 400 "), "garbage is no request")
    training.wait_for(lambda: values(parsed(scraped.text()), "sluice_steps_total")[()] > 2,
                      "the third step")
    require_equal(values(parsed(scraped.text()), "sluice_run_live"), {(): 1}, "live")
    place.train("--metrics", str(scraped.port), output="other").refused(
        2, ["another program listens on that port"])
    sluice("stop", place / "out/run.db").done()
    training.wait().done()
    left = [file.name for file in (place / "out").glob("run.db*")]
    require_equal(left, ["run.db"], "what is left beside the record")
    for client in slow:
        client.close()


@test
def a_run_without_a_record_has_no_metrics(place):
    place.train("--metrics", "0", record="off").refused(2, ["record=off", "--set record=steps"])


if __name__ == "__main__":
    raise SystemExit(main())
