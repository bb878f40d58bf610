#!/usr/bin/env python3
"""Area and speed of the kernels without a synthesis: everything printed is *estimated*. area.py and
speed.py say how.

  estimate.py             budget and speed of each kernel, beside the kept figures
  estimate.py --table     the same as a Markdown table
  estimate.py --platform-rates   what a platform file would have
  estimate.py --keep      keeps what is estimated now in hls/kernels/estimates.toml
Exit code 1 if a kernel outgrew what is kept, or an image the device.
"""

import argparse
import dataclasses
import math
import pathlib
import sys
import tomllib

import operators
from hls_source import parameter_name
from operators import BUDGET
from speed import Model, Work

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = "hls/link/kernels.toml"
KEPT = "hls/kernels/estimates.toml"

BANK_BYTES_PER_S = 19.2e9  # DDR4-2400, 64 bits: 2.4e9 x 8
BANK_SHARE = 0.8  # what Smart-Infinity's kernel reaches of it
PUBLISHED = {"dense": 0.51e9, "sparse": 0.24e9}  # HPCA 2024, figure 14: Adam, Adam with top-k
PARAMETER_BYTES = 4
HALF_BYTES = 2
# Bytes of an element in the arrays of split state, by format; others have PARAMETER_BYTES. A group
# of 64 has its scale (base/state_format.h). The ties of SGD's exact format, 1/8, are not counted.
SPLIT_BYTES = {
    "exact": {"parameters": 2, "remainder": 2},
    "compact": {"parameters": 2, "remainder": 2, "exp_avg": 1 + 1 / 64, "exp_avg_sq": 1 + 4 / 64,
                "momentum_buffer": 1 + 1 / 64, "sum_sq": 2},
}
RESOURCES = ("dsp", "lut", "ff", "bram36")


@dataclasses.dataclass
class Estimate:
    """All figures are estimated."""

    kernel: str
    area: dict
    ii: float  # cycles a word of 16 elements, of the process that takes longest
    fill: int
    slowest: str  # the process that the rate depends on
    dense_per_s: float
    sparse_per_s: float  # at DENSITY; 0 where a kernel takes no sparse gradient
    bytes_dense: float  # a parameter, across the bank
    bytes_sparse: float
    bytes_compact: float  # dense, in the compact format; 0 where there is none

    @property
    def is_split(self):
        return self.bytes_compact != 0

    def bound(self, bytes_each, share=1.0):
        return BANK_BYTES_PER_S * share / bytes_each


DENSITY = 0.01
ELEMENTS = 1 << 24


def is_split(top):
    return "remainder_in" in top.parameter_names()


def bytes_each(top, work, state_format="exact"):
    """What crosses the bank for one element, of the top's pointers. Of split state it is the exact
    format that has the most bytes, and an update is to be no slower than the bank there."""
    total = 0.0
    widths = SPLIT_BYTES[state_format] if is_split(top) else {}
    for parameter in top.parameters:
        if "*" not in parameter:
            continue
        name = parameter_name(parameter)
        if name.endswith(("_in", "_out")) or name == "bytes":
            total += widths.get(name.rpartition("_")[0], PARAMETER_BYTES)
        elif name == "gradient":
            total += work.gradient_bytes * (work.density if work.is_sparse else 1)
        elif name == "indices" and work.is_sparse:
            total += HALF_BYTES * work.density
        elif name == "counts" and work.is_sparse:
            total += 4 / 16384
        elif name == "parameters":
            total += HALF_BYTES
    return total


def estimates(root, clock_mhz, counts=None):
    """One Estimate a kernel, and labels of COUNTS without a loop."""
    model = Model(root, counts)
    found = []
    for top in model.sources.tops():
        cost = model.kernel(top)
        dense = Work(ELEMENTS)
        sparse = Work(ELEMENTS, density=DENSITY, is_sparse=True)
        busy, fill, slowest = model.cycles(dense)
        is_update = "indices" in top.parameter_names()
        sparse_cycles = sum(model.cycles(sparse)[:2]) if is_update else 0
        per_s = clock_mhz * 1e6
        found.append(Estimate(
            top.name, {"dsp": math.ceil(cost.dsp), "lut": math.ceil(cost.lut),
                       "ff": math.ceil(cost.ff), "bram36": cost.bram36()},
            round(busy / dense.words, 2), fill, slowest, ELEMENTS / (busy + fill) * per_s,
            ELEMENTS / sparse_cycles * per_s if is_update else 0.0,
            bytes_each(top, dense), bytes_each(top, sparse) if is_update else 0.0,
            bytes_each(top, dense, "compact") if is_split(top) else 0.0))
    return found, sorted(set(model.counts) - model.used_labels)


def growth(found, kept, images):
    """What outgrew what is kept, and images that the device has no room for."""
    problems = []
    for each in found:
        before = kept.get("kernels", {}).get(each.kernel)
        if before is None:
            problems.append(f"{each.kernel} has no figures in {KEPT}")
            continue
        problems += [f"{each.kernel} outgrew {KEPT}: {each.area[resource]} {resource}, kept "
                     f"{before[resource]}" for resource in RESOURCES
                     if each.area[resource] > before[resource]]
        if each.ii > before["ii"]:
            problems.append(f"{each.kernel} outgrew {KEPT}: {each.ii} cycles a word, kept "
                            f"{before['ii']}")
    names = {each.kernel for each in found}
    problems += [f"{KEPT} has {name}, which is no kernel" for name in kept.get("kernels", {})
                 if name not in names]
    return problems + overfull(found, images)


def overfull(found, images):
    problems = []
    area = {each.kernel: each.area for each in found}
    for image, entry in images.items():
        for resource in RESOURCES:
            units = [area[name][resource] for name in entry["kernels"] if name in area]
            share = sum(units) / BUDGET[resource]
            if share > operators.USABLE:
                problems.append(f"image {image} takes {share:.0%} of the device's {resource}, of "
                                f"which {operators.USABLE:.0%} can be used")
    return problems


def kept_text(found):
    lines = ["# What hls/link/estimate.py made of the sources (`estimate.py --keep`). All of it is",
             "# *estimated*: no synthesis was run. tests/structure/hls_estimate_test.py fails when",
             "# a kernel grows beyond it.", 'kind = "estimated"', ""]
    for each in found:
        lines += [f"[kernels.{each.kernel}]"]
        lines += [f"{resource} = {each.area[resource]}" for resource in RESOURCES]
        lines += ["uram = 0", f"ii = {each.ii}  # cycles a word of 16 elements",
                  f"fill = {each.fill}  # cycles of a run beside", ""]
    return "\n".join(lines)


def rate(value):
    return f"{value / 1e9:.2f} G/s"


def print_plainly(found, images, clock_mhz):
    print(f"All figures are estimated, for {clock_mhz} MHz; no synthesis was run.\n")
    for each in found:
        shares = ", ".join(f"{each.area[r]} {r.upper()} ({each.area[r] / BUDGET[r]:.1%})"
                           for r in RESOURCES)
        print(f"{each.kernel}: {shares}, 0 URAM  (estimated)")
        print(f"  {each.ii} cycles a word, fill {each.fill}; {each.slowest} decides  (estimated)")
        what = "elements" if each.bytes_dense == PARAMETER_BYTES else "parameters"
        print_rate("dense", each.dense_per_s, each.bytes_dense, what)
        if each.sparse_per_s:
            print_rate("sparse", each.sparse_per_s, each.bytes_sparse, what)
        if each.is_split:
            print_rate("dense, compact", each.dense_per_s, each.bytes_compact, what)
    for image, entry in images.items():
        area = [each.area for each in found if each.kernel in entry["kernels"]]
        shares = ", ".join(f"{sum(a[r] for a in area) / BUDGET[r]:.1%} {r.upper()}"
                           for r in RESOURCES)
        print(f"image {image}: {shares}  (estimated)")


def print_rate(kind, per_s, bytes_, what):
    bound = BANK_BYTES_PER_S / bytes_
    density = f" at density {DENSITY}" if kind == "sparse" else ""
    print(f"  {kind}{density}: {rate(per_s)} {what} a compute unit; the bank's bound is "
          f"{rate(bound)} ({bytes_:.2f} bytes each of 19.2 GB/s), {rate(bound * BANK_SHARE)} at "
          f"{BANK_SHARE:.0%}  (estimated)")


def table_rows(found):
    rows = ["| kernel | DSP | LUT | FF | BRAM36 | URAM | cycles a word | dense | sparse | "
            "bank's bound |", "|---|---|---|---|---|---|---|---|---|---|"]
    for each in found:
        cells = [f"{each.area[r]} ({each.area[r] / BUDGET[r]:.0%})" for r in RESOURCES]
        sparse = rate(each.sparse_per_s) if each.sparse_per_s else "-"
        rows.append(f"| `{each.kernel}` | {' | '.join(cells)} | 0 | {each.ii} | "
                    f"{rate(each.dense_per_s)} | {sparse} | "
                    f"{rate(BANK_BYTES_PER_S / each.bytes_dense)} |")
    return rows


def print_table(found):
    print("\n".join(table_rows(found)))
    print("\nAll *estimated*; published for Smart-Infinity's Adam: "
          f"{rate(PUBLISHED['dense'])}, with top-k {rate(PUBLISHED['sparse'])} (HPCA 2024, "
          "figure 14).")


def platform_rates(found):
    """As a platform file has them: the lower of compute unit and bank at the share that was
    reached."""
    rates = {}
    for each in found:
        if each.sparse_per_s and not each.is_split:
            dense = min(each.dense_per_s, BANK_BYTES_PER_S * BANK_SHARE / each.bytes_dense)
            rates[each.kernel.removeprefix("update_")] = f"{dense / 1e9:.2f} Gelem/s"
        if each.kernel == "update_adamw":
            rates["decompress"] = f"{each.sparse_per_s / 1e9:.2f} Gelem/s"
    return rates


def print_platform_rates(found):
    print("[device.engine]  # estimated by hls/link/estimate.py, not measured")
    for name, rate in sorted(platform_rates(found).items()):
        print(f'{name} = "{rate}"')
    print('launch = "20 us"  # assumed')


def load(root, name):
    path = root / name
    return tomllib.loads(path.read_text()) if path.exists() else {}


def main():
    parser = argparse.ArgumentParser(description="Area and speed of the kernels, estimated.")
    parser.add_argument("--table", action="store_true", help="a Markdown table")
    parser.add_argument("--platform-rates", action="store_true", help="rates for a platform file")
    parser.add_argument("--keep", action="store_true", help=f"write {KEPT}")
    chosen = parser.parse_args()
    table = load(ROOT, TABLE)
    clock_mhz = table["platform"]["clock_mhz"]
    found, unused = estimates(ROOT, clock_mhz)
    if chosen.keep:
        (ROOT / KEPT).write_text(kept_text(found))
    if chosen.table:
        print_table(found)
    elif chosen.platform_rates:
        print_platform_rates(found)
    else:
        print_plainly(found, table["images"], clock_mhz)
    problems = growth(found, load(ROOT, KEPT), table["images"])
    problems += [f"COUNTS has {label}, which is no loop" for label in unused]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
