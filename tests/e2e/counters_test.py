#!/usr/bin/env python3
"""The counters of a run against what its spans say: bytes in flight, transfers under way and
buffers in use are worked out from the spans by plain counting, and must be what the samples say."""

import collections
import itertools
import json
import sys

from sluice_run import SAMPLES, database, main, require, require_equal, sluice, test

SHORTEST_NS = 100_000  # what holds for less may have no sample
MODEL = SAMPLES / "models/gpt2-1.7b.toml"


def samples(path):
    """{counter: [(ts, value)]}"""
    found = collections.defaultdict(list)
    with database(path) as db:
        for name, ts, value in db.execute(
                "SELECT name, ts, value FROM counter JOIN track ON track.id = track_id "
                "ORDER BY counter.rowid"):
            found[name].append((ts, value))
    return found


def curve(changes):
    """[(ts, value)] from [(ts, change)]: one entry a time, from 0."""
    total = 0
    points = []
    for ts, group in itertools.groupby(sorted(changes), key=lambda change: change[0]):
        total += sum(change for _, change in group)
        points.append((ts, total))
    return points


def check(name, found, wanted, from_ts, least=None):
    """Each sample is the value of its time, or between it and `least` where that is given, and each
    value that held is found while it did."""
    require(found, f"{name}: there are no samples")
    def value_at(points, ts):
        before = [value for at, value in points if at <= ts]
        return before[-1] if before else 0
    for ts, value in found:
        is_between = least and value_at(least, ts) <= value <= value_at(wanted, ts)
        if ts >= from_ts and not is_between:
            require_equal(value, value_at(wanted, ts), f"{name} at {ts}")
    for (ts, value), (end_ts, _) in itertools.pairwise(wanted):
        is_found = any(ts <= at < end_ts and value == other for at, other in found)
        if ts >= from_ts and end_ts - ts >= SHORTEST_NS and not is_found:
            require_equal(value_at(found, ts), value, f"{name} from {ts} to {end_ts}")


def spans_by_link(path):
    """{"LINK reads" or "LINK writes": changes of bytes}, {"DEVICE reads": changes of transfers}"""
    links = collections.defaultdict(list)
    devices = collections.defaultdict(list)
    words = {"read": "reads", "write": "writes"}
    with database(path) as db:
        for link, direction, submit_ts, end_ts, size in db.execute(
                "SELECT link.name, direction, submit_ts, ts + dur, bytes + padding_bytes FROM span "
                "JOIN track_link USING (track_id) JOIN link ON link.id = link_id"):
            links[f"{link} {words[direction]}"] += [(submit_ts, size), (end_ts, -size)]
        for device, direction, submit_ts, end_ts in db.execute(
                "SELECT device.name, (SELECT direction FROM track_link WHERE track_link.track_id = "
                "span.track_id LIMIT 1), submit_ts, ts + dur FROM span "
                "JOIN device ON device.id = device_id "
                "WHERE span.track_id IN (SELECT track_id FROM track_link)"):
            devices[f"{device} {words[direction]}"] += [(submit_ts, 1), (end_ts, -1)]
    return links, devices


def check_transfers(path, from_ts=0):
    found = samples(path)
    links, devices = spans_by_link(path)
    require(links and devices, "no span crosses a link")
    for name, changes in links.items():
        check(name, found[f"{name} in flight (bytes)"], curve(changes), from_ts)
    for name, changes in devices.items():
        check(name, found[f"{name} under way (transfers)"], curve(changes), from_ts)


def subgroup_times(db, names, moment):
    """{(step, device): [ts of each subgroup]} of the spans with these names."""
    found = collections.defaultdict(list)
    for step, device, ts in db.execute(
            f"SELECT step_id, subgroup.device_id, {moment} FROM span "
            "JOIN string ON string.id = name_id JOIN subgroup ON subgroup.id = subgroup_id "
            f"WHERE value IN ({', '.join('?' * len(names))}) GROUP BY step_id, subgroup_id", names):
        found[step, device].append(ts)
    return found


def check_buffers(path, buffers):
    """With nbuffer a step asks for a set for each of its subgroups as soon as the step before has
    read all that it reads, or when it begins, if that has been waited for; of those asked for and
    not given back as many are in use as there are. On a busy machine handing on takes its time; no
    fewer are in use than subgroups that read or update."""
    leaving = ["state_write", "parameters_up", "parameters_in"]
    with database(path) as db:
        devices = dict(db.execute("SELECT id, name FROM device"))
        steps = [step for (step,) in db.execute("SELECT id FROM step ORDER BY id")]
        first_reads = subgroup_times(db, ["state_read"], "min(submit_ts)")
        read = subgroup_times(db, ["gradient_read"], "max(ts + dur)")
        left_first = subgroup_times(db, leaving, "min(ts + dur)")
        left = subgroup_times(db, leaving, "max(ts + dur)")
    found = samples(path)
    def of_step(times, step):
        return [ts for device in devices for ts in times[step, device]]
    for device, name in devices.items():
        asked, least = [], []
        for before, step in zip([None, *steps], steps):
            begin = min(of_step(first_reads, step))
            if before is not None and begin <= max(of_step(left, before)):
                begin = max(of_step(read, before))
            asked += [(begin, len(left[step, device]))]
            asked += [(ts, -1) for ts in left[step, device]]
            least += [(ts, 1) for ts in first_reads[step, device]]
            least += [(ts, -1) for ts in left_first[step, device]]
        in_use = [(ts, min(buffers, count)) for ts, count in curve(asked)]
        check(name, found[f"{name} buffers in use (buffers)"], in_use, 0, curve(least))


@test
def a_simulated_run_counts_what_its_spans_say(place):
    for pipeline in ("serial", "handover"):
        path = place.simulate(MODEL, pipeline=pipeline, method="csd", devices=3)
        check_transfers(path)


@test
def a_simulated_step_of_one_device_has_one_set_in_use_while_it_updates(place):
    path = place.simulate(MODEL, pipeline="serial", method="csd", devices=1)
    with database(path) as db:
        begin, end = db.execute(
            "SELECT min(submit_ts), max(ts + dur) FROM span JOIN string ON string.id = name_id "
            "WHERE value IN ('state_read', 'gradient_read', 'update', 'state_write', "
            "'parameters_up', 'parameters_in')").fetchone()
    found = samples(path)["csd0 buffers in use (buffers)"]
    require_equal([value for _, value in found], [0, 1, 0], "sets in use")
    require_equal([ts for ts, _ in found[1:]], [begin, end], "first read and last write")


@test
def an_emulated_run_counts_what_its_spans_say(place):
    place.train(method="csd", clock="emulated", time_scale=300, buffers=2, pipeline="nbuffer",
                subgroup_elements=3000).done()
    path = place / "out/run.db"
    check_transfers(path)
    check_buffers(path, buffers=2)


@test
def a_real_run_ends_with_nothing_in_flight_and_knows_its_memory(place):
    report = place.train("--json", method="csd", clock="real").json()
    found = samples(place / "out/run.db")
    for name, points in found.items():
        if name.endswith(("in flight (bytes)", "under way (transfers)", "in use (buffers)")):
            require_equal(points[-1][1], 0, f"last sample of {name}")
            require(all(value >= 0 for _, value in points), f"{name} is negative")
            require(all(a[0] <= b[0] for a, b in itertools.pairwise(points)),
                    f"times of {name} go back")
    require(any(value > 0 for _, value in found["csd0 buffers in use (buffers)"]), "none in use")
    resident = [value for _, value in found["resident memory (bytes)"]]
    peak = report["host_memory_peak_bytes"]  # until the end of training
    require(resident and peak / 10 < max(resident) < peak * 2, f"resident {resident}, peak {peak}")
    for name in ("host buffers (bytes)", "csd0 memory used (bytes)", "csd1 memory used (bytes)"):
        require(len({value for _, value in found[name]}) == 1 and found[name][0][1] > 0,
                f"{name}: {found[name]}")


@test
def counters_stop_below_level_all(place):
    for level in ("steps", "transfers"):
        place.train(record=level, output=level).done()
        require_equal(dict(samples(place / level / "run.db")), {}, f"counters of record={level}")


@test
def chrome_gets_every_sample_under_its_device_or_link(place):
    path = place.simulate(MODEL, pipeline="nbuffer", method="csd", devices=2)
    trace = place / "trace.json"
    sluice("export", path, "--format", "chrome", "-o", trace).done()
    events = json.loads(trace.read_text())["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events
                 if event["ph"] == "M" and event["name"] == "process_name"}
    exported = collections.Counter()
    for event in events:
        if event["ph"] == "C":
            exported[event["name"]] += 1
            process = processes[event["pid"]]
            is_of_step = process == "compute" and "activations" in event["name"]
            require(event["name"].startswith((process, "host buffers")) or is_of_step,
                    f"counter {event['name']} of process {process}")
    require_equal(exported, collections.Counter(
        {name: len(points) for name, points in samples(path).items()}), "samples in the trace")


if __name__ == "__main__":
    sys.exit(main())
