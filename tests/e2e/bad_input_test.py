#!/usr/bin/env python3
"""What a user gets wrong: one clear message each, exit code 2 (or 1 where nothing was wrong with
what was asked), and nothing written or lost."""

import ctypes
import ctypes.util
import json
import re
import shutil
import struct
import sys

from sluice_run import (NANO_MODEL, NANO_RUN, SAMPLES, Skip, main, require, require_equal,
                        require_words, sluice, test)

LLAMA = str(SAMPLES / "models/llama-44b.toml")
TRAINED = "training knows gpt2, bert, llama, t5"
VIT = str(SAMPLES / "models/vit-0.30b.toml")
# Keys of the run file -> words of the message; `None` leaves the value out of the message.
SETTINGS = [
    ({"bufers": 3}, ["unknown key 'bufers'", "did you mean 'buffers'"]),
    ({"optimiser": "adamw"}, ["unknown key 'optimiser'", "did you mean 'optimizer'"]),
    ({"buffers": "three"}, ["buffers", "integer", "three"]),
    ({"buffers": 0}, ["buffers = 0", "1 to 64"]),
    ({"buffers": 65}, ["buffers = 65", "1 to 64"]),
    ({"seed": 10**17}, ["seed", "out of range"]),
    ({"lr": 0}, ["lr = 0", "1e-30 to 1e+30"]),
    ({"lr": "fast"}, ["lr", "number", "fast"]),
    ({"min_lr": 1.0}, ["min_lr = 1", "above lr"]),
    ({"beta1": 1}, ["beta1 = 1", "below 1"]),
    ({"momentum": 1}, ["momentum = 1", "below 1"]),
    ({"optimizer": "adamn"}, ["adamn", "adamw, sgd, adagrad", "did you mean 'adamw'"]),
    ({"gradient_tier": "memory"}, ["gradient_tier", "needs method = \"host\""]),
    ({"time_scale": 0}, ["time_scale = 0", "0.001 to"]),
    ({"prefetch": "maybe"}, ["prefetch", "true or false", "maybe"]),
    ({"method": "gpu"}, ["gpu", "host, csd"]),
    ({"method": "hots"}, ["hots", "did you mean 'host'"]),
    ({"pipeline": "serail"}, ["pipeline", "'serial'"]),
    ({"io_bytes": 5000}, ["io_bytes = 5000", "multiple of 4KiB"]),
    ({"host_memory": "2 elephants"}, ["host_memory", "2 elephants"]),
    ({"devices": 11}, ["11 devices", "has 10"]),
    ({"device_map": "1,2,3"}, ["device_map", "3 shares", "devices = 2"]),
    ({"device_map": "0,0"}, ["device_map"]),
    ({"device_map": "a,b"}, ["device_map", "a"]),
    ({"sequence": 33}, ["sequence=33", "nano", "32"]),
    ({"model": "nope.toml"}, ["nope.toml", "no such model file"]),
    ({"platform": "nope.toml"}, ["nope.toml", "No such file"]),
    ({"text": "nope.txt"}, ["nope.txt", "No such file"]),
    ({"text": "empty.txt"}, ["empty.txt", "at least"]),
    ({"text": "one.txt"}, ["one.txt", "at least"]),
    ({"text": "short.txt"}, ["short.txt", "300", "at least"]),
    ({"text": "folder"}, ["folder", "directory"]),
    ({"db": "text.txt"}, ["text.txt", "not a run database"]),
    ({"db": "folder"}, ["folder", "not a run database"]),
    ({"model": "few.toml"}, ["few", "100", "256"]),
    ({"model": "odd.toml"}, ["odd.toml", "heads"]),
    ({"model": "blom.toml"}, ["blom.toml:7", "'blom'", "did you mean 'bloom'"]),
    ({"model": "mixed.toml"}, ["mixed.toml:7", "a gpt2 model has no key 'patch'", "vit"]),
    ({"model": "bert.toml"}, ["BertForPreTraining can be simulated", "masked_head = true"]),
    ({"model": "bloom.toml"}, ["bloom models can be simulated", TRAINED]),
    ({"model": VIT}, ["vit-0.30b: vit models can be simulated", TRAINED]),
    ({"name": "a/b"}, ["a/b", "folder"]),
]


def write_inputs(place):
    (place / "empty.txt").write_text("")
    (place / "one.txt").write_text("x")
    (place / "short.txt").write_text("x" * 300)
    (place / "folder").mkdir()
    (place / "few.toml").write_text(NANO_MODEL.replace("nano", "few").replace("256", "100"))
    (place / "odd.toml").write_text(NANO_MODEL.replace("heads = 2", "heads = 3"))
    (place / "mixed.toml").write_text(NANO_MODEL + "patch = 8\n")
    for family in ("blom", "bert", "bloom"):
        (place / f"{family}.toml").write_text(NANO_MODEL + f'family = "{family}"\n')


def everything(place):
    """All files below the place, with their contents: what must not change. Only the lock says
    which process took it last."""
    return {str(path.relative_to(place.path)): path.read_bytes() if path.is_file() else None
            for path in sorted(place.path.rglob("*")) if path.name != "lock"}


def changed(before, after):
    return sorted(name for name in before.keys() | after.keys()
                  if before.get(name) != after.get(name))


def require_unchanged(place, before, who):
    require_equal(changed(before, everything(place)), [], f"files that {who} changed")


@test
def wrong_settings_are_refused_with_one_message_and_nothing_written(place):
    write_inputs(place)
    before = everything(place)
    for settings, words in SETTINGS:
        place.train(**settings).refused(2, words)
        require_unchanged(place, before, f"{settings}")


@test
def wrong_settings_in_the_file_are_named_with_their_line(place):
    write_inputs(place)
    for settings, words in SETTINGS:
        key, value = next(iter(settings.items()))
        lines = [line for line in NANO_RUN.splitlines() if not line.startswith(f"{key} =")]
        lines.insert(0, f"{key} = {json.dumps(value)}")
        text = "\n".join(lines).format(platform=SAMPLES / "platforms/smartssd-a5000.toml")
        place.run_file.write_text(text + "\n")
        before = everything(place)
        reply = place.train().refused(2, words)
        if key not in ("devices", "sequence", "model", "platform", "text", "db"):
            require_words(reply.err, ["run.toml:1: "], f"{settings}")
        require_unchanged(place, before, f"{settings} in the file")


@test
def a_run_file_that_cannot_be_read_is_refused(place):
    place.train(run=place / "nope.toml").refused(2, ["nope.toml", "cannot read the run file"])
    place.train(run=place.path).refused(2, [str(place.path)])
    for text, words in (("[run\n", ["run.toml:1"]),
                        ("lr = 1\nlr = 2\n", ["run.toml:2", "lr"]),
                        ("lr = 1e-3\n[optimizer]\nlr = 1e-4\n", ["run.toml:3", "lr", "twice"]),
                        ("batch = [1, 2]\n", ["run.toml:1", "batch"]),
                        ("steps = 5\n", ["model", "missing"])):
        place.run_file.write_text(text)
        place.train().refused(2, words)
    require(not (place / "out").exists(), "something was written")


@test
def wrong_command_lines_are_refused(place):
    for arguments, words in (
            ([], ["which command", "train"]),
            (["foo"], ["no command 'foo'"]),
            (["trian", "run.toml"], ["no command 'trian'", "did you mean 'train'"]),
            (["train"], ["which run"]),
            (["train", "run.toml", "--nonsense"], ["--nonsense"]),
            (["train", "run.toml", "--steps", "0"], ["--steps", "0", "1 to"]),
            (["train", "run.toml", "--steps", "many"], ["--steps", "many"]),
            (["train", "run.toml", "--set", "buffers"], ["buffers", "key=value"]),
            (["train", "run.toml", "--set"], ["--set"]),
            (["train", "run.toml", "other.toml"], ["other.toml"]),
            (["state"], ["directory"]),
            (["show"], ["database"]),
            (["show", "run.db", "--last", "-1"], ["--last", "-1"]),
            (["doctor", "nowhere"], ["nowhere"])):
        sluice(*arguments, cwd=place.path).refused(2, words)
    require(not (place / "out").exists(), "something was written")


@test
def help_is_not_an_error_and_has_an_example(place):
    for arguments in (["--help"], *([name, "--help"] for name in ("train", "state", "show",
                                                                  "doctor"))):
        reply = sluice(*arguments).done()
        require_words(reply.out, ["Example", "sluice"], reply.line)
    require_words(sluice("--version").done().out, ["sluice "], "--version")
    require_words(sluice("train", "--settings").done().out, ["subgroup_elements"], "--settings")


# Memory and devices -------------------------------------------------------------------------------


def smallest(reply, key):
    """(number, unit) as it can be set: what is one unit less does not do."""
    found = re.search(rf"smallest {key} that would do is (\d+)([KM]iB)", reply.err)
    require(found is not None, f"no smallest {key} in {reply.err!r}")
    return int(found.group(1)), found.group(2)


@test
def a_memory_cap_is_refused_with_the_smallest_that_would_do(place):
    for method in ("host", "csd"):
        reply = place.train(host_memory="100MB", method=method, output=method)
        cap, unit = smallest(reply.refused(2, ["100 MB"]), "host_memory")
        place.train(host_memory=f"{cap - 1}{unit}", method=method,
                    output=method).refused(2, [f"{cap}{unit}"])
        require(not (place / method).exists(), "something was written")
        report = place.train("--json", host_memory=f"{cap}{unit}", method=method,
                             output=method).json()
        cap_bytes = cap << {"KiB": 10, "MiB": 20}[unit]
        require(report["host_memory_peak_bytes"] <= cap_bytes,
                f"{report['host_memory_peak_bytes']} bytes resident, the cap is {cap_bytes}")


@test
def device_memory_is_refused_with_the_smallest_that_would_do(place):
    for wire in ("fp32", "native"):
        reply = place.train(device_memory="8KiB", wire=wire, output=wire)
        cap, unit = smallest(reply.refused(2, ["csd0", "8.19 kB"]), "device_memory")
        place.train(device_memory=f"{cap - 1}{unit}", wire=wire,
                    output=wire).refused(2, [f"{cap}{unit}"])
        require(not (place / wire).exists(), "something was written")
        place.train(device_memory=f"{cap}{unit}", wire=wire, output=wire).done()


PLAIN_DRIVES = """
name = "two plain drives"
[host]
adamw = "1 Gelem/s"
stage = "1 Gelem/s"
[compute]
matmul = "1 TFLOP/s"
[[device]]
name = "nvme"
count = 2
via = []
drive = { read = "7 GB/s", write = "5 GB/s", duplex = "half" }
"""


@test
def csd_on_plain_drives_is_refused(place):
    (place / "drives.toml").write_text(PLAIN_DRIVES)
    reply = place.train(method="csd", platform="drives.toml")
    reply.refused(2, ["nvme0", "plain drive", "method=host"])
    require(not (place / "out").exists(), "something was written")
    place.train(method="host", platform="drives.toml").done()


@test
def a_platform_without_a_rate_that_the_run_needs_is_refused(place):
    for line, words in (("stage", ["stage"]), ("adamw", ["adamw"])):
        text = re.sub(rf"^{line} = .*\n", "", PLAIN_DRIVES, flags=re.MULTILINE)
        (place / "drives.toml").write_text(text)
        place.train(method="host", platform="drives.toml").refused(2, ["drives.toml", *words])
    (place / "drives.toml").write_text(PLAIN_DRIVES)
    for rule in ("sgd", "adagrad"):
        reply = place.train(method="host", platform="drives.toml", optimizer=rule)
        reply.refused(2, ["drives.toml", "engine host", f"'{rule}'"])
    require(not (place / "out").exists(), "something was written")


# States -------------------------------------------------------------------------------------------


@test
def resume_without_a_state_is_refused(place):
    place.train("--resume").refused(2, ["no state in", "out/state", "leave out --resume"])
    require(not (place / "out").exists(), "something was written")


@test
def a_state_that_is_there_is_not_begun_anew(place):
    place.train().done()
    before = everything(place)
    place.train().refused(2, ["out/state", "already holds", "--resume", "state_dir"])
    require_unchanged(place, before, "the refused run")


@test
def a_state_of_another_run_is_refused_with_the_first_difference(place):
    place.train().done()
    (place / "wide.toml").write_text(NANO_MODEL.replace("nano", "wide").replace("32", "64", 1))
    (place / "other.toml").write_text(NANO_MODEL.replace("nano", "other"))
    before = everything(place)
    for settings, words in (({"model": "wide.toml"}, ["wide", "nano"]),
                            ({"model": "other.toml"}, ["other", "nano"]),
                            ({"subgroup_elements": 6000}, ["subgroup", "5000", "6000"]),
                            ({"devices": 3}, ["device_count", "2", "3"]),
                            ({"optimizer": "sgd"}, ["optimizer is adamw", "wanted is sgd"]),
                            ({"seed": 1}, ["seed=0", "seed=1"])):
        place.train("--resume", **settings).refused(2, ["out/state", *words])
        require_unchanged(place, before, f"--resume with {settings}")


def xxh3_64(data):
    name = ctypes.util.find_library("xxhash") or "libxxhash.so.0"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise Skip(f"the checksum of a changed header takes libxxhash: {error}") from None
    library.XXH3_64bits.restype = ctypes.c_uint64
    return library.XXH3_64bits(data, ctypes.c_size_t(len(data)))


@test
def a_runs_folder_stands_for_the_state_in_it(place):
    place.train().done()
    require_equal(place.state("--json", state_dir="out").json(), place.state("--json").json(),
                  "what state says of OUTPUT and of OUTPUT/state")
    (place / "several").mkdir()
    (place / "out").rename(place / "several/rank-0")
    place.state(state_dir="several").refused(2, ["several ranks", "several/rank-0/state"])


@test
def a_state_of_a_newer_version_is_refused(place):
    place.train().done()
    for name in ("commit.slc", "dev1/state.slc"):
        path = place / "out/state" / name
        whole = path.read_bytes()
        header = bytearray(whole[:4096])
        struct.pack_into("<I", header, 8, 3)
        struct.pack_into("<Q", header, 4088, xxh3_64(bytes(header[:4088])))
        path.write_bytes(bytes(header) + whole[4096:])
        for reply in (place.state(), place.train("--resume", "--steps", 8)):
            reply.refused(2, [name, "version 3", "versions 1 and 2"])
        path.write_bytes(whole)
    place.train("--resume", "--steps", 8).done()


@test
def state_and_show_refuse_what_is_not_theirs(place):
    (place / "empty").mkdir()
    (place / "empty.db").write_text("")
    shutil.copy(place / "text.txt", place / "foreign.db")
    for arguments, code, words in (
            (["state", "empty"], 2, ["empty", "no optimizer state"]),
            (["state", "nowhere"], 2, ["nowhere", "no such folder"]),
            (["state", "text.txt"], 2, ["text.txt"]),
            (["show", "nowhere.db"], 2, ["nowhere.db"]),
            (["show", "foreign.db"], 2, ["foreign.db", "not a database"]),
            (["show", "empty.db"], 2, ["empty.db"]),
            (["show", "empty"], 2, ["empty"])):
        before = everything(place)
        reply = sluice(*arguments, cwd=place.path)
        reply.refused(code, words)
        require_unchanged(place, before, f"`{reply.line}`")


@test
def a_state_next_to_somebodys_file_is_not_made(place):
    (place / "out/state/dev0").mkdir(parents=True)
    note = place / "out/state/dev0/state.slc"
    note.write_text("somebody's notes")
    place.train().refused(2, [str(note.relative_to(place.path)), "is there already"])
    require_equal(note.read_text(), "somebody's notes", "somebody's file")


if __name__ == "__main__":
    sys.exit(main())
