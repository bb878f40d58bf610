#!/usr/bin/env python3
"""What crosses each link in a step is what the method says, to the byte: in the report of
`sluice train --json` and in the run database."""

import fractions
import sys

from sluice_run import (NANO_PARAMETERS, NANO_TOKENS, SAMPLES, database, main, require,
                        require_equal, test)

PAGE = 4096
SUBGROUPS = {960: 37, 1000: 35, 5000: 7, 8192: 5, 1_000_000: 1}


def sum_of(report, ending, key):
    return sum(link[key] for name, link in report["bytes"].items() if name.endswith(ending))


def check_payload(report, host, internal):
    """`host` and `internal`: bytes a parameter, read and write."""
    count = NANO_PARAMETERS
    found = (report["bytes"]["host"]["read"], report["bytes"]["host"]["write"])
    require_equal(found, tuple(count * bytes_each for bytes_each in host), "host link")
    found = (sum_of(report, ".internal", "read"), sum_of(report, ".internal", "write"))
    require_equal(found, tuple(count * bytes_each for bytes_each in internal), "internal links")


def check_padding(report, arrays, subgroup_count):
    """Padding is less than a page for each array of each subgroup; `arrays` by direction."""
    for direction, count in arrays.items():
        padding = sum(link[direction + "_padding"] for name, link in report["bytes"].items()
                      if name.endswith(".drive"))
        require(0 <= padding < count * subgroup_count * PAGE,
                f"{padding} bytes of {direction} padding in {count * subgroup_count} arrays")


def check_database(place, report, steps, output):
    """The view link_bytes says the same as the report, step by step."""
    with database(place / output / "run.db") as db:
        rows = db.execute("SELECT step_id, link, direction, bytes, padding_bytes FROM link_bytes "
                          "WHERE step_id IS NOT NULL").fetchall()
        require_equal(db.execute("SELECT count(*) FROM stat WHERE severity != 'info' "
                                 "AND value > 0").fetchone(), (0,), "kinds of lost records")
    found = {(step, link, direction): (size, padding)
             for step, link, direction, size, padding in rows}
    expected = {}
    for step in range(steps):
        for link, sizes in report["bytes"].items():
            for direction in ("read", "write"):
                if sizes[direction] + sizes[direction + "_padding"] > 0:
                    expected[step, link, direction] = (sizes[direction],
                                                       sizes[direction + "_padding"])
    require_equal(found, expected, f"bytes by step and link in {output}/run.db")


ODD_SIZES = (1000, 5000, 8192, 1_000_000)


def check(place, name, host, internal, read_arrays, write_arrays, sizes=ODD_SIZES, **settings):
    steps = 3
    for elements in sizes:
        output = f"{name}-{elements}"
        report = place.train("--json", "--steps", steps, output=output,
                             subgroup_elements=elements, **settings).json()
        require_equal(report["parameters"], NANO_PARAMETERS, "parameters")
        check_payload(report, host, internal)
        check_padding(report, {"read": read_arrays, "write": write_arrays},
                      SUBGROUPS[elements])
        check_database(place, report, steps, output)


@test
def host_moves_16_and_16_bytes_a_parameter_over_the_host_link(place):
    check(place, "host", (16, 16), (0, 0), 4, 4, method="host", devices=3)


@test
def with_gradients_in_memory_host_moves_12_and_12(place):
    check(place, "memory", (12, 12), (0, 0), 3, 3, method="host", devices=3,
          gradient_tier="memory")


@test
def csd_moves_4_and_4_bytes_over_the_host_link_and_16_and_12_inside(place):
    check(place, "csd", (4, 4), (16, 12), 4, 4, method="csd", devices=3)


@test
def csd_with_the_native_wire_moves_2_and_2_bytes_over_the_host_link(place):
    check(place, "native", (2, 2), (14, 12), 4, 4, method="csd", devices=3, wire="native")


@test
def in_fp32_both_wires_move_4_and_4_bytes(place):
    for wire in ("fp32", "native"):
        check(place, f"fp32-{wire}", (4, 4), (16, 12), 4, 4, method="csd", devices=3, wire=wire,
              precision="fp32")
    check(place, "fp32-host", (16, 16), (0, 0), 4, 4, method="host", devices=3, precision="fp32",
          wire="native")


@test
def sgd_and_adagrad_move_two_arrays_where_adamw_moves_three(place):
    for rule in ("sgd", "adagrad"):
        check(place, f"{rule}-host", (12, 12), (0, 0), 3, 3, method="host", devices=3,
              optimizer=rule)
        check(place, f"{rule}-csd", (4, 4), (12, 8), 3, 3, method="csd", devices=3,
              optimizer=rule)
        check(place, f"{rule}-native", (2, 2), (10, 8), 3, 3, method="csd", devices=3,
              optimizer=rule, wire="native")


@test
def the_emulated_clock_moves_the_same_bytes(place):
    check(place, "emulated", (4, 4), (16, 12), 4, 4, method="csd", devices=3, clock="emulated",
          time_scale=0.01)
    # Its accelerator gets the 16-bit parameters twice, 48 bytes a token and 8 a window, and gives
    # 16-bit gradients and a loss.
    report = place.train("--json", "--steps", 2, output="accelerator", clock="emulated",
                         time_scale=0.01).json()
    link = report["bytes"]["accelerator0.link"]
    require_equal((link["read"], link["write"]),
                  (2 * NANO_PARAMETERS + 8, 4 * NANO_PARAMETERS + 48 * NANO_TOKENS + 8 * 2),
                  "bytes of the accelerator's link")


# State in fewer bytes -----------------------------------------------------------------------------

# Bytes a parameter of what is stored of each rule beside the copy, which takes two
# (docs/state_format.md, "Codes"): the remainder, and the rule's own arrays.
COPY = 2
MEAN8, SQUARE8, TIES = (fractions.Fraction(each, 64) for each in (64 + 1, 64 + 4, 8))
BESIDE_THE_COPY = {
    ("exact", 16): {"adamw": 2 + 4 + 4, "sgd": 2 + TIES + 4, "adagrad": 2 + 4},
    ("compact", 16): {"adamw": 2 + MEAN8 + SQUARE8, "sgd": 2 + MEAN8, "adagrad": 2 + 2},
    ("compact", 8): {"adamw": 1 + MEAN8 + SQUARE8, "sgd": 1 + MEAN8, "adagrad": 1 + 2},
}
SPLIT = [(state_format, bits, rule, beside) for (state_format, bits), rules
         in BESIDE_THE_COPY.items() for rule, beside in rules.items()]
ADAMW = [each for each in SPLIT if each[2] == "adamw"]


def check_split(place, name, host, internal, arrays, rule, state_format, bits, **settings):
    """`arrays`: read, written. Subgroups are whole groups of 64 elements, as are all parameters."""
    size = 960 if state_format == "compact" else 1_000_000
    check(place, f"{name}-{rule}-{state_format}-{bits}", host, internal, *arrays, sizes=(size,),
          devices=3, optimizer=rule, state_format=state_format, remainder_bits=bits, **settings)


@test
def host_reads_no_copy_of_split_state_and_a_commit_writes_it(place):
    for state_format, bits, rule, beside in SPLIT:
        count = 3 if rule == "adamw" else 2  # arrays beside the copy
        check_split(place, "memory", (beside, COPY + beside), (0, 0), (count, count + 1), rule,
                    state_format, bits, method="host", gradient_tier="memory")
    for state_format, bits, rule, beside in ADAMW:
        check_split(place, "drives", (4 + beside, 4 + COPY + beside), (0, 0), (4, 5), rule,
                    state_format, bits, method="host")


def bytes_by_step(place, output, link):
    """[(read, written)] of the steps, by the view link_bytes."""
    with database(place / output / "run.db") as db:
        rows = db.execute("SELECT sum(iif(direction = 'read', bytes, 0)), "
                          "sum(iif(direction = 'write', bytes, 0)) FROM link_bytes "
                          "WHERE step_id IS NOT NULL AND link LIKE ? GROUP BY step_id "
                          "ORDER BY step_id", (link,))
        return rows.fetchall()


@test
def between_commits_no_copy_is_written(place):
    for number, (state_format, bits, rule, beside) in enumerate(ADAMW):
        # The last step of a run commits.
        for every, commits in ((1000, [False, False, False, True]),
                               (2, [False, True, False, True])):
            output = f"{number}-{every}"
            place.train("--steps", 4, output=output, method="host", devices=3, optimizer=rule,
                        gradient_tier="memory", commit_every=every, subgroup_elements=960,
                        state_format=state_format, remainder_bits=bits).done()
            wanted = [(NANO_PARAMETERS * beside, NANO_PARAMETERS * (beside + COPY * is_commit))
                      for is_commit in commits]
            require_equal(bytes_by_step(place, output, "host"), wanted,
                          f"read and written, {state_format} {bits}, every {every}")


@test
def csd_moves_the_copy_as_it_is_up_and_all_of_split_state_inside(place):
    for state_format, bits, rule, beside in SPLIT:
        count = (4 if rule == "adamw" else 3) + 1  # arrays of state, and the gradient
        stored = COPY + beside
        for wire, gradient in (("fp32", 4), ("native", 2)):
            if wire == "native" and rule != "adamw":
                continue  # it is the gradient's, whatever the rule
            check_split(place, wire, (COPY, gradient), (gradient + stored, stored),
                        (count, count), rule, state_format, bits, method="csd", wire=wire)


@test
def with_parameters_on_the_drives_split_state_saves_what_its_arrays_do(place):
    def moved(output, **settings):
        report = place.train("--json", "--steps", 3, output=output, parameter_tier="storage",
                             devices=3, subgroup_elements=960, **settings).json()
        return {where: tuple(sum_of(report, where, direction) for direction in ("read", "write"))
                for where in ("host", ".internal")}

    for method, link in (("host", "host"), ("csd", ".internal")):
        in_fp32 = moved(f"{method}-fp32", method=method)
        for state_format, bits, _, beside in ADAMW:
            found = moved(f"{method}-{state_format}-{bits}", method=method,
                          state_format=state_format, remainder_bits=bits)
            saved = NANO_PARAMETERS * (12 - COPY - beside)
            wanted = {**in_fp32, link: tuple(size - saved for size in in_fp32[link])}
            require_equal(found, wanted, f"bytes read and written, {method} {state_format} {bits}")


# After a change -----------------------------------------------------------------------------------

# Bytes a parameter and step, payload: (host read, host write, internal read, internal write).
BY_METHOD = {"host": (16, 16, 0, 0), "csd": (4, 4, 16, 12)}


def check_stretches(place, stretches, output="out"):
    """The view link_bytes, step by step; `stretches`: (steps, method) in order."""
    with database(place / output / "run.db") as db:
        rows = db.execute(
            "SELECT step_id, direction, sum(iif(link = 'host', bytes, 0)), "
            "sum(iif(link LIKE '%.internal', bytes, 0)) FROM link_bytes "
            "WHERE step_id IS NOT NULL GROUP BY step_id, direction").fetchall()
    found = {(step, direction): sizes for step, direction, *sizes in rows}
    step = 0
    for count, method in stretches:
        host_read, host_write, internal_read, internal_write = (
            each * NANO_PARAMETERS for each in BY_METHOD[method])
        for _ in range(count):
            require_equal((found[step, "read"], found[step, "write"]),
                          ([host_read, internal_read], [host_write, internal_write]),
                          f"bytes over the host link and inside, step {step} with {method}")
            step += 1
    require_equal(len(found), 2 * step, "steps with bytes, by direction")


@test
def after_a_live_change_of_method_each_byte_is_on_the_link_it_took(place):
    report = place.train("--json", "--at", "2:method=host", "--at", "4:method=csd",
                         "--at", "4:pipeline=serial", steps=6).json()
    check_stretches(place, [(2, "csd"), (2, "host"), (2, "csd")])
    with database(place / "out/run.db") as db:
        totals = db.execute("SELECT link, direction, sum(bytes) FROM link_bytes "
                            "WHERE step_id IS NOT NULL GROUP BY link, direction").fetchall()
    for link, direction, total in totals:
        require_equal(total // 6, report["bytes"][link][direction], f"{link}, {direction}, a step")


@test
def after_a_resume_with_another_method_each_byte_is_on_the_link_it_took(place):
    place.train("--json", method="host", steps=2).json()
    place.train("--json", "--resume", method="csd", steps=4).json()
    place.train("--json", "--resume", method="host", steps=6).json()
    check_stretches(place, [(2, "host"), (2, "csd"), (2, "host")])


@test
def a_resume_on_another_platform_keeps_what_crossed_the_old_links(place):
    place.train("--json", method="csd", steps=2).json()
    text = (SAMPLES / "platforms/smartssd-a5000.toml").read_text()
    require('read = "8 GB/s"' in text, "the platform states no such rate")
    (place / "slower.toml").write_text(text.replace('read = "8 GB/s"', 'read = "4 GB/s"'))
    place.train("--json", "--resume", method="csd", steps=4, platform=place / "slower.toml").json()
    check_stretches(place, [(4, "csd")])
    with database(place / "out/run.db") as db:
        rates = db.execute("SELECT read_bytes_per_s FROM link WHERE name = 'host' "
                           "ORDER BY id").fetchall()
    require_equal(rates, [(8e9,), (4e9,)], "rates of the host links in the file")


@test
def whole_pages_have_no_padding(place):
    # 34,688 elements are 33 pages and 896 elements: only the last subgroup is padded.
    report = place.train("--json", devices=1, subgroup_elements=1024).json()
    for link, sizes in report["bytes"].items():
        for direction in ("read", "write"):
            arrays = {"host": {"read": 0, "write": 1}}.get(link, {"read": 4, "write": 3})
            if link.endswith(".drive"):
                arrays = {"read": 4, "write": 4}
            require_equal(sizes[direction + "_padding"], arrays[direction] * (1024 - 896) * 4,
                          f"padding of {link}, {direction}")


if __name__ == "__main__":
    sys.exit(main())
