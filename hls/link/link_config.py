#!/usr/bin/env python3
"""v++'s connectivity file of one image, made of kernels.toml: how many compute units of each kernel
there are, and to which bank each pointer goes. The platform of the U.2 drive has one.

  link_config.py adamw                       one compute unit of each kernel
  link_config.py adamw --compute-units 2     two of the update's
  link_config.py adamw --list kernels        names, for the Makefile; also: source NAME,
                                             platform, clock
"""

import argparse
import pathlib
import sys
import tomllib

TABLE = pathlib.Path(__file__).resolve().parent / "kernels.toml"


class UnknownName(Exception):
    """An image or a kernel that the table has not."""


def entry(table, kind, name):
    if name not in table[kind]:
        raise UnknownName(f"there is no {name} in [{kind}] of kernels.toml; there are "
                          f"{', '.join(table[kind])}")
    return table[kind][name]


def unit_names(kernel, count):
    return [f"{kernel}_{number}" for number in range(1, count + 1)]


def config_text(table, image, compute_units=1):
    """Of an image; `compute_units` is how many of its first kernel, the update."""
    kernels = entry(table, "images", image)["kernels"]
    bank = table["platform"]["bank"]
    lines = ["[connectivity]"]
    for place, kernel in enumerate(kernels):
        count = compute_units if place == 0 else 1
        names = unit_names(kernel, count)
        lines.append(f"nk={kernel}:{count}:{'.'.join(names)}")
        lines += [f"sp={name}.{argument}:{bank}" for name in names
                  for argument in entry(table, "kernels", kernel)["bundle_of"]]
    return "\n".join(lines) + "\n"


def listed(table, image, what):
    if what[0] == "kernels":
        return " ".join(entry(table, "images", image)["kernels"])
    if what[0] == "source" and len(what) == 2:
        return entry(table, "kernels", what[1])["source"]
    if what[0] == "platform":
        return table["platform"]["name"]
    if what[0] == "clock":
        return str(table["platform"]["clock_mhz"])
    raise UnknownName(f"there is no list of {' '.join(what)}")


def main():
    parser = argparse.ArgumentParser(description="v++'s connectivity file of an image.")
    parser.add_argument("image")
    parser.add_argument("--compute-units", type=int, default=1, choices=range(1, 9), metavar="N")
    parser.add_argument("--list", nargs="+", metavar="WHAT")
    chosen = parser.parse_args()
    table = tomllib.loads(TABLE.read_text())
    try:
        if chosen.list:
            print(listed(table, chosen.image, chosen.list))
        else:
            print(config_text(table, chosen.image, chosen.compute_units), end="")
    except UnknownName as error:
        print(f"link_config.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
