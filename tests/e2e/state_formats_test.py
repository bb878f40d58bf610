#!/usr/bin/env python3
"""state_format: a run in exact state has the numbers of one in fp32, whatever happens to it; one in
compact state has others, the same in every way, and says so wherever its mode is said. A resume
may have another format."""

import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import sys
import time

import crash
from hugging_face import make_llama
from launched import Launched, mpirun
from live_run import started, steps_in, stopped
from sluice_run import (DEEP_MODEL, committed_step, database, is_testing_all, main, require,
                        require_equal, require_words, sluice, step_losses, test)
from state_files import StateFiles, flipped

EXACT = {"state_format": "exact"}
COMPACT = {"state_format": "compact"}
COMPACT_8 = {"state_format": "compact", "remainder_bits": 8}
FP32 = {"state_format": "fp32"}
# Whole groups of 64 elements: the run file has 5000.
COMMON = {"subgroup_elements": 4096}
SPLIT = {"exact": EXACT, "compact": COMPACT, "compact-8": COMPACT_8}
SAYS = "compact state, remainders of {} bits: other numbers than state_format=fp32"


def numbers(reply):
    report = reply.json()
    return report["losses"], report["state_digest"]


def trained(place, output, *flags, steps=6, **settings):
    return numbers(place.train("--json", "--steps", steps, *flags, output=output,
                               **{**COMMON, **settings}))


def gone_on(place, output, steps, **settings):
    return trained(place, output, "--resume", steps=steps, **settings)


def side_by_side(place, rows):
    """The numbers of runs, by the folder of each; `rows`: {output: settings}."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = pool.map(lambda row: trained(place, row[0], **row[1]), rows.items())
        return dict(zip(rows, found))


def verified(place, output):
    """The digest of a state in which every checksum holds."""
    return place.state("--verify", "--json", state_dir=f"{output}/state").json()["digest"]


# The same numbers ---------------------------------------------------------------------------------

# Far from one another, and from the run file's: csd, nbuffer, 2 devices, a commit each step. The
# norms of the first steps are above the limit, so that what is updated ahead is refuted.
WAYS = [
    {"method": "host", "devices": 1, "subgroup_elements": 64},
    {"method": "host", "commit_every": 4, "state_cache": "auto", "gradient_tier": "memory"},
    {"method": "host", "commit_every": 4, "overlap": "exact", "pipeline": "serial"},
    {"method": "host", "parameter_tier": "storage", "commit_every": 4, "devices": 3},
    {"pipeline": "serial", "devices": 3, "device_map": "3,1,2", "subgroup_elements": 20_032},
    {"pipeline": "handover", "commit_every": 4, "state_cache": "60KB", "wire": "native"},
    {"overlap": "exact", "subgroup_elements": 1_000_000, "device": "soft",
     "gradient_work": "accelerator"},
    {"parameter_tier": "storage", "wire": "native", "state_cache": "auto"},
    {"clock": "emulated", "time_scale": 0.01, "devices": 10, "buffers": 1},
]
CHANGES = ("--at", "2:method=host", "--at", "3:device_map=0,1", "--at", "4:method=csd",
           "--at", "5:commit_every=1")


@test
def compact_state_has_one_digest_in_every_way(place):
    rows = {"whole": COMPACT, "fp32": FP32}
    rows |= {f"way{number}": COMPACT | way for number, way in enumerate(WAYS)}
    found = side_by_side(place, rows)
    whole = found["whole"]
    for number, way in enumerate(WAYS):
        require_equal(found[f"way{number}"], whole, f"with {way}")
        require_equal(verified(place, f"way{number}"), whole[1], f"on disk, with {way}")
    changed = trained(place, "changed", *CHANGES, **COMPACT, commit_every=5, state_cache="auto")
    require_equal(changed, whole, "after live changes")
    require(whole != found["fp32"], "compact state gave the numbers of fp32")


@test
def each_rule_has_the_numbers_of_fp32_in_exact_state_and_its_own_in_compact(place):
    ways = iter(WAYS)  # each pair of a rule and a format in one of them
    for rule in ("adamw", "sgd", "adagrad"):
        rows = {}
        for name, settings in (("fp32", FP32), *SPLIT.items()):
            row = {"optimizer": rule, "weight_decay": 0.01, **settings}
            rows[f"{rule}-{name}"] = row
            if name != "fp32":
                rows[f"{rule}-{name}-way"] = row | next(ways)
        found = side_by_side(place, rows)
        for name in SPLIT:
            way = f"{rule}-{name}-way"
            require_equal(found[way], found[f"{rule}-{name}"], f"numbers with {rows[way]}")
        require_equal(found[f"{rule}-exact"], found[f"{rule}-fp32"], f"{rule}: exact and fp32")
        digests = {digest for _, digest in found.values()}
        require_equal(len(digests), 3, f"{rule}: digests of {found}")


@test
def sparse_gradients_leave_each_format_its_numbers(place):
    """What is sent of a gradient is chosen by subgroups, so these are the same."""
    sparse = {"density": 0.1, "error_feedback": "true", "subgroup_elements": 960}
    ways = ({"method": "host", "commit_every": 4, "devices": 1},
            {"pipeline": "handover", "devices": 3, "state_cache": "auto"},
            {"parameter_tier": "storage", "wire": "native", "commit_every": 4})
    rows = {"fp32": sparse}
    for way, (name, settings) in zip(ways, SPLIT.items()):
        rows |= {name: sparse | settings, f"{name}-way": sparse | settings | way}
    found = side_by_side(place, rows)
    for name in SPLIT:
        require_equal(found[name] == found["fp32"], name == "exact",
                      f"whether {name} has the numbers of fp32")
        require_equal(found[f"{name}-way"], found[name], f"with {rows[f'{name}-way']}")


@test
def compact_state_moves_between_devices_and_keeps_its_numbers(place):
    for method in ("host", "csd"):
        common = {**COMPACT, "method": method, "commit_every": 3}
        whole = trained(place, f"{method}-whole", steps=9, **common)
        first, _ = trained(place, method, "--at", "2:device_map=1,0", steps=4, **common)
        second, _ = gone_on(place, method, 7, **common, devices=1)
        third, digest = gone_on(place, method, 9, **COMPACT, devices=1, parameter_tier="storage")
        require_equal((first + second + third, digest), whole, f"in three pieces, {method}")


# Refuted updates ----------------------------------------------------------------------------------


@test
def exact_state_has_the_digest_of_fp32_where_updates_are_refuted(place):
    limit = {"max_grad_norm": 1.55}  # some steps are above, and some below
    whole = trained(place, "whole", steps=9, **limit)
    for method, every in (("host", 3), ("csd", 1)):
        output, losses, refuted = f"{method}-{every}", [], 0
        # Each piece tries anew, and what is refuted then was committed by the piece before.
        for piece, steps in enumerate((2, 4, 9)):
            report = place.train("--json", *(["--resume"] if piece else []), "--steps", steps,
                                 output=output, overlap="exact", method=method, commit_every=every,
                                 **COMMON, **limit, **EXACT).json()
            losses += report["losses"]
            refuted += report["overlap"]["refuted_steps"]
        require(refuted > 0, f"no step was refuted, {output}")
        require_equal((losses, report["state_digest"]), whole, f"numbers, {output}")
        require_equal(verified(place, output), whole[1], f"on disk, {output}")


# Kills and Ctrl-C ---------------------------------------------------------------------------------

KILLS = 12 if is_testing_all() else 3
CONVERSION_KILLS = 60 if is_testing_all() else 6


@test
def runs_that_are_killed_end_with_the_digest_of_one_left_alone(place):
    exact_digests = set()
    ways = [(EXACT, {"method": "host", "commit_every": 3}),
            (COMPACT_8, {"method": "csd", "commit_every": 3, "state_cache": "auto"}),
            (COMPACT, {"method": "host", "commit_every": 3, "state_cache": "auto"}),
            (EXACT, {"method": "csd", "commit_every": 3})]
    for seed, (settings, way) in enumerate(ways if is_testing_all() else ways[:2]):
        whole = crash.killed_with(place, seed, kills=KILLS, subgroup_elements=1536, **settings,
                                  **way)
        if settings is EXACT:
            exact_digests.add(whole.report["state_digest"])
        for folder in place.path.glob("crash-*"):
            verified(place, folder.name)
            shutil.rmtree(folder)
        shutil.rmtree(place / "whole")
    in_fp32 = place.train("--json", "--steps", 40, output="fp32",
                          **{**crash.SETTINGS, "subgroup_elements": 1536}).json()
    require_equal(exact_digests, {in_fp32["state_digest"]}, "digests of exact state and of fp32")


@test
def ctrl_c_between_commits_writes_the_copy_that_is_in_memory_alone(place):
    """No step of the run before its last has written it."""
    for number, settings in enumerate(({**EXACT, "method": "host"},
                                       {**COMPACT, "method": "host", "state_cache": "auto"},
                                       {**COMPACT_8, "method": "csd", "state_cache": "auto"})):
        output = f"stopped{number}"
        settings = {**COMMON, **settings, "commit_every": 1000}
        run = place.start("--json", "--steps", 100_000, output=output, **settings)
        run.wait_for(lambda: steps_in(place / output / "run.db") > 3, "four steps")
        require_equal(committed_step(place / output / "state"), 0, "committed step of a live run")
        run.signal(signal.SIGINT)
        first = run.wait().json()
        require_equal(verified(place, output), first["state_digest"], "digest on disk")
        last = first["steps"] + 3
        whole = trained(place, f"whole{number}", steps=last, **settings)
        rest, digest = gone_on(place, output, last, **settings)
        require_equal((first["losses"] + rest, digest), whole, f"two pieces with {settings}")


@test
def a_snapshot_between_commits_is_whole_and_goes_on_to_the_same_digest(place):
    for number, settings in enumerate(({**EXACT, "method": "host"}, {**COMPACT, "method": "host"},
                                       {**COMPACT_8, "method": "csd", "state_cache": "auto"})):
        settings = {**COMMON, **settings, "commit_every": 1000}
        output = f"live{number}"
        run = place.start("--json", "--steps", 100_000, output=output, durability="never",
                          **settings)
        database_path = place / output / "run.db"
        run.wait_for(lambda: steps_in(database_path) > 3, "four steps")
        kept = sluice("snapshot", database_path, "--json").json()
        state = sluice("state", kept["path"], "--verify", "--json").json()
        require_equal(state["step"], kept["step"], "step of the snapshot")
        whole = stopped(run, database_path)
        again = place.train("--json", "--resume", "--steps", whole["steps"], durability="never",
                            output=f"again{number}", state_dir=kept["path"], **settings).json()
        require_equal((again["losses"], again["state_digest"]),
                      (whole["losses"][kept["step"]:], whole["state_digest"]),
                      f"from the snapshot with {settings}")


# Damage -------------------------------------------------------------------------------------------


@test
def a_flipped_bit_in_any_array_is_named_and_one_behind_it_is_nothing(place):
    for number, (rule, settings, method) in enumerate((("adamw", COMPACT, "host"),
                                                       ("sgd", EXACT, "csd"))):
        output = f"out{number}"
        settings = {**settings, "optimizer": rule, "method": method, "subgroup_elements": 4992}
        digest = trained(place, output, steps=3, **settings)[1]
        files = StateFiles(place / output / "state")
        require_equal(files.names[:2], ["parameters", "remainder"], f"arrays of {settings}")
        for variable, name in enumerate(files.names):
            subgroup = (1 + 2 * variable) % files.subgroup_count
            path, offset = files.place(subgroup, variable)
            size = files.size(subgroup, variable)
            words = [f"dev{path.parent.name[3:]}/state.slc", str(offset), f"subgroup {subgroup}",
                     name]
            with flipped(path, offset + size - 1):
                reply = place.state("--verify", state_dir=f"{output}/state")
                reply.refused(1, [f"1 of {files.subgroup_count * files.variable_count} arrays"])
                require_words(reply.err, words, f"state --verify of {settings}")
                place.train("--resume", "--steps", 6, output=output, **settings).refused(1, words)
                require_equal(committed_step(place / output / "state"), 3,
                              f"commit over damaged {name}")
            with flipped(path, offset + size):  # rounded up to whole pages
                require_equal(verified(place, output), digest, f"digest, a bit behind {name}")
        require_equal(gone_on(place, output, 6, **settings),
                      (trained(place, f"whole{number}", **settings)[0][3:],
                       verified(place, f"whole{number}")), "once the bits are right")


@test
def a_conversion_carries_no_damage_over(place):
    trained(place, "out", steps=3)
    digest = verified(place, "out")
    files = StateFiles(place / "out/state")
    path, offset = files.place(4, 2)
    with flipped(path, offset + 77):
        place.train("--resume", "--steps", 6, **COMMON, **COMPACT).refused(
            1, ["subgroup 4", "exp_avg_sq"])
    require_equal(verified(place, "out"), digest, "digest of what was refused")
    require_equal(place.state("--json").json()["state_format"], "fp32", "format")


# Another format -----------------------------------------------------------------------------------


@test
def a_state_goes_to_exact_and_back_without_a_trace_in_its_numbers(place):
    sparse = {"density": 0.1, "error_feedback": "true"}
    for name, common in (("dense", {}), ("sparse", sparse),
                         ("host", {"method": "host", "commit_every": 2, "optimizer": "sgd"})):
        whole = trained(place, f"{name}-whole", steps=9, **common)
        losses, _ = trained(place, name, steps=3, **common)
        said = place.train("--resume", "--steps", 6, output=name, **COMMON, **common,
                           **EXACT).done()
        require_words(said.out, ["The state was fp32, and is now exact: its numbers are the same",
                                 "state_format was fp32, is exact from step 4 on"], "stdout")
        require("residual" not in said.err, f"the residual is lost: {said.err}")
        losses += list(step_losses(place / name / "run.db").values())[3:]
        more, digest = gone_on(place, name, 9, **common)
        require_equal((losses + more, digest), whole, f"{name}: fp32, exact and fp32")
        with database(place / name / "run.db") as db:
            changes = db.execute("SELECT step_id, name, old, new, who FROM knob_change "
                                 "JOIN knob ON knob.id = knob_id ORDER BY step_id").fetchall()
        require_equal(changes, [(3, "state_format", "fp32", "exact", "resume"),
                                (6, "state_format", "exact", "fp32", "resume")], "knob_change")


@test
def a_state_goes_to_compact_and_on_from_there(place):
    trained(place, "out", steps=3)
    last = place.digest()
    for steps, settings, words in (
            (5, COMPACT, ["The state was fp32, and is now compact, with remainders of 16 bits: "
                          "its numbers are rounded", "state_format was fp32, is compact"]),
            (7, COMPACT_8, ["now compact, with remainders of 8 bits: its numbers are rounded",
                            "remainder_bits was 16, is 8"]),
            (9, EXACT, ["The state was compact, with remainders of 8 bits, and is now exact: "
                        "its numbers are the same", "state_format was compact, is exact"])):
        said = place.train("--resume", "--steps", steps, **COMMON, **settings).done().out
        require_words(said, words, "stdout")
        require(verified(place, "out") != last, f"nothing has moved up to step {steps}")
        last = place.digest()
    losses = list(step_losses(place / "out/run.db").values())
    require(losses[-1] < losses[0], f"nothing was learnt: {losses}")
    shown = " ".join(sluice("show", place / "out/run.db").done().out.split())
    require_words(shown, [f"{SAYS.format(bits)} in steps {first} to {first + 1}"
                          for bits, first in ((16, 4), (8, 6))], "show")


@test
def a_resume_without_a_step_to_take_says_that_it_has_rounded_the_state(place):
    trained(place, "out", steps=3)
    said = place.train("--resume", "--steps", 3, **COMMON, **COMPACT).done().out
    require_words(said, ["The state was fp32, and is now compact, with remainders of 16 bits: its "
                         "numbers are rounded", "Nothing to do"], "stdout")
    require_equal(place.state("--json").json()["state_format"],
                  "compact, with remainders of 16 bits", "format")
    again = place.train("--resume", "--steps", 3, **COMMON, **COMPACT).done().out
    require("The state was" not in again, f"a second time: {again}")


@test
def a_conversion_that_is_killed_leaves_a_state_that_goes_on(place):
    """In the old format or the new one, whichever it has."""
    chance = random.Random(17)
    sparse = {**COMMON, "subgroup_elements": 64, "density": 0.1, "error_feedback": "true"}
    whole = trained(place, "whole", steps=6, **sparse)
    trained(place, "begun", steps=3, **sparse)
    came = {}
    for kill in range(CONVERSION_KILLS):
        output = f"killed{kill}"
        shutil.copytree(place / "begun", place / output)
        state = place / output / "state"
        run = place.start("--json", "--resume", "--steps", 6, output=output, **sparse, **EXACT)
        instant = [state / "replacement", state / "replacement/commit.slc",
                   state / "replacing"][kill % 3]
        while run.is_running() and not instant.exists():
            time.sleep(0.0002)
        time.sleep(chance.choice((0, 0, chance.uniform(0, 0.02))))
        run.signal(signal.SIGKILL)
        run.wait()
        left = "cut" if (state / "replacing").exists() else (
            "begun" if (state / "replacement").exists() else "over")
        came[left] = came.get(left, 0) + 1
        if (committed_step(state) or 0) > 3:
            continue  # past the conversion, and the residual is gone with the kill
        found = gone_on(place, output, 6, **sparse, **(EXACT, FP32)[kill % 2])
        require_equal(found, (whole[0][3:], whole[1]), f"kill {kill}, the conversion {left}")
        left_files = sorted(path.name for path in state.iterdir())
        require_equal(left_files, ["commit.slc", "dev0", "dev1", "lock", "recipe.slc",
                                   "residual.slc"], "files of the state")
    print("  kills:", ", ".join(f"{count} with the conversion {left}"
                                for left, count in sorted(came.items())))


# Weights out and in -------------------------------------------------------------------------------


def exported(place, output):
    folder = place / f"{output}-hf"
    sluice("weights", "export", place / output, "-o", folder, "--optimizer",
           cwd=place.path).done()
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@test
def what_is_exported_from_exact_state_is_that_of_fp32_to_the_byte(place):
    files = {}
    for rule, names in (("adamw", (FP32, EXACT, COMPACT)), ("sgd", (FP32, EXACT))):
        for settings in names:
            output = f"{rule}-{settings['state_format']}"
            trained(place, output, steps=3, optimizer=rule, **settings)
            files[output] = exported(place, output)
        require(files[f"{rule}-exact"] == files[f"{rule}-fp32"], f"{rule}: files differ")
    require_equal(set(files["adamw-compact"]), set(files["adamw-fp32"]), "names of the files")
    require(files["adamw-compact"] != files["adamw-fp32"], "compact state has fp32's numbers")


@test
def weights_and_moments_that_come_in_are_the_same_in_exact_state(place):
    make_llama(place / "llama")
    trained(place, "first", steps=2, model=place / "llama")
    exported(place, "first")
    on_host = {"method": "host", "commit_every": 4}
    begin = {"steps": 2, "model": place / "first-hf", "optimizer_state": place / "first-hf"}
    rows = {"fp32": FP32, "exact": EXACT, "exact-host": EXACT | on_host, "compact": COMPACT,
            "compact-host": COMPACT | on_host}
    found = side_by_side(place, {name: begin | settings for name, settings in rows.items()})
    require_equal((found["exact"], found["exact-host"]), (found["fp32"], found["fp32"]),
                  "exact and fp32")
    require_equal(found["compact-host"], found["compact"], "compact, two ways")


# What is said, and refused ------------------------------------------------------------------------


def modes(place, output):
    """Where a run's mode is said: surface -> text."""
    path = place / output / "run.db"
    page = place / "page.html"
    sluice("report", path, "-o", page, "--force").done()
    data = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL).group(1)
    with database(path) as db:
        table = " ".join(line for (line,) in db.execute("SELECT line FROM mode ORDER BY step_id"))
    return {"show": " ".join(sluice("show", path).done().out.split()),
            "the page": json.loads(data)["mode"], "table mode": table}


@test
def a_run_says_in_which_format_its_state_is_and_that_compact_changes_numbers(place):
    for name, settings, says in (("compact", COMPACT, SAYS.format(16)),
                                 ("compact-8", COMPACT_8, SAYS.format(8)),
                                 ("exact", EXACT, "exact state")):
        report = place.train("--json", output=name, **COMMON, **settings).json()
        said = {"--json": report["mode"], **modes(place, name)}
        text = place.train(output=f"{name}-said", **COMMON, **settings).done().out
        said["train"] = " ".join(text.split())
        for surface, text in said.items():
            require_words(text, [says], surface)
            require_equal("other numbers" in text, name != "exact", f"{surface} of {name}: {text}")
    fp32 = place.train("--json", output="fp32", **COMMON).json()
    require("state" not in fp32["mode"].replace("state_", ""), f"mode of fp32: {fp32['mode']}")
    state = place.state("--json", state_dir="compact-8/state").json()
    require_equal(state["state_format"], "compact, with remainders of 8 bits", "state --json")
    like = sluice("train", "--like", place / "compact-8/run.db", "--json", "--set",
                  f"output={place / 'like'}", cwd=place.path)
    require_equal(numbers(like)[1], state["digest"], "digest of a run like it")


@test
def formats_that_cannot_be_are_refused_and_nothing_is_made(place):
    for precision in ("fp16", "fp32"):
        for settings in (EXACT, COMPACT):
            place.train(precision=precision, **COMMON, **settings).refused(
                2, ["state_format", 'precision = "bf16"', 'state_format = "fp32"'])
    place.train(remainder_bits=12, **COMMON, **COMPACT).refused(2, ["remainder_bits = 12", "16"])
    place.train(state_format="fp8").refused(2, ["state_format", "fp8", "fp32, exact, compact"])
    for settings in (EXACT, COMPACT):
        place.train(subgroup_elements=100, **settings).refused(
            2, ["subgroup_elements=100", "64", "the next one is 128"])
    place.train("--at", "2:state_format=exact", **COMMON).refused(
        2, ["state_format cannot change in a live run"])
    require(not (place / "out").exists(), "something is written")


@test
def a_live_run_refuses_another_format_and_goes_on(place):
    run, path = started(place, **COMMON, **COMPACT)
    sluice("set", path, "state_format=exact").refused(2, ["state_format"])
    whole = stopped(run, path)
    require_equal(place.digest(), whole["state_digest"], "digest")


# Ranks --------------------------------------------------------------------------------------------

SHARDED = {"shard_state": "2x1", "mesh": "2x1"}


def ranks(place, output, *flags, count=2, steps=4, **settings):
    return Launched(place, [*mpirun(), "-n", str(count)], "--json", *flags, output=output,
                    **{**COMMON, "batch": 1, "steps": steps, **settings})


def numbers_of(report):
    return report["losses"], report["state_digest"]


@test
def ranks_that_share_the_state_have_the_numbers_of_one_rank(place):
    def one(name, count, **settings):
        return trained(place, name, steps=4, batch=1, grad_accum_steps=count, **settings)

    for name, settings, alone in (("exact", EXACT, FP32), ("compact", COMPACT, COMPACT)):
        found = ranks(place, name, **SHARDED, **settings).json()
        require_equal(numbers_of(found), one(f"{name}-one", 2, **alone), f"two ranks, {name}")
    # Each rank's part is one subgroup, and ends where a group does.
    settings = {**COMPACT_8, "subgroup_elements": 1_000_000}
    found = ranks(place, "three", count=3, shard_state="3x1", mesh="3x1", **settings).json()
    require_equal(numbers_of(found), one("three-one", 3, **settings), "three ranks")


@test
def ranks_go_on_with_a_state_in_another_format(place):
    # Three parts of a size that is no multiple of three.
    in_three = {"shard_state": "3x1", "mesh": "3x1", "count": 3, "subgroup_elements": 1_000_000}
    alone = {"batch": 1, "grad_accum_steps": 3, "subgroup_elements": 1_000_000}
    whole = trained(place, "whole", steps=6, **alone)
    first = ranks(place, "out", steps=2, **in_three).json()
    second = ranks(place, "out", "--resume", steps=4, **in_three, **EXACT).json()
    third, digest = gone_on(place, "out", 6, **alone)
    require_equal((first["losses"] + second["losses"] + third, digest), whole,
                  "three ranks in fp32 and in exact state, and one in fp32")


@test
def other_ranks_go_on_with_compact_state_and_its_numbers(place):
    in_two = {**SHARDED, **COMPACT, "subgroup_elements": 1_000_000}
    alone = {"batch": 1, "grad_accum_steps": 2, "subgroup_elements": 1_000_000}
    whole = trained(place, "whole", steps=4, **alone, **COMPACT)
    first = ranks(place, "out", steps=2, **in_two).json()
    then, digest = gone_on(place, "out", 4, **alone, **COMPACT)
    require_equal((first["losses"] + then, digest), whole, "two ranks, and one")


@test
def ranks_with_parts_of_the_parameters_have_exact_state_and_are_refused_compact(place):
    (place / "deep.toml").write_text(DEEP_MODEL)
    parts = {"shard_parameters": "2x1", "shard_gradients": "2x1", **SHARDED, "model": "deep.toml",
             "steps": 2}
    in_fp32 = ranks(place, "fp32", **parts).json()
    exact = ranks(place, "exact", **parts, **EXACT).json()
    require_equal(numbers_of(exact), numbers_of(in_fp32), "exact and fp32")
    code, _, err = ranks(place, "compact", **parts, **COMPACT).done()
    require_equal(code, 2, f"exit code: {err}")
    require_words(err, ["state_format=compact", "shard_parameters", "state_format=exact"],
                  "the error")


if __name__ == "__main__":
    sys.exit(main())
