#!/usr/bin/env python3
"""From kernels to an xclbin as far as it goes without v++: the connectivity file has every pointer
of every compute unit once, and hls/link/Makefile runs v++ as its page says. A program in v++'s
place takes down what it is asked; that the vendor's would do it is not shown here."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

from source_tree import ROOT, Report

LINK = ROOT / "hls/link"
sys.path.insert(0, str(LINK))
import link_config  # noqa: E402: it is found by the line above

# Writes its arguments and whatever it is to make.
FAKE_VPP = """#!/bin/sh
echo "$0 $*" >> "$SAID"
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then : > "$2"; fi
  shift
done
"""


def table():
    return tomllib.loads((LINK / "kernels.toml").read_text())


def config_problems(known):
    """What is wrong with the files made of this table."""
    problems = []
    for image, entry in known["images"].items():
        for count in (1, 2):
            text = link_config.config_text(known, image, count)
            lines = text.splitlines()
            units = {}
            for line in lines[1:]:
                unit = re.fullmatch(r"nk=(\w+):(\d+):([\w.]+)", line)
                if unit:
                    units[unit.group(1)] = unit.group(3).split(".")
                    if len(units[unit.group(1)]) != int(unit.group(2)):
                        problems.append(f"{image}: {line}")
            wanted = sorted(f"sp={name}.{argument}:{known['platform']['bank']}"
                            for kernel in entry["kernels"] for name in units.get(kernel, [])
                            for argument in known["kernels"][kernel]["bundle_of"])
            if sorted(line for line in lines if line.startswith("sp=")) != wanted:
                problems.append(f"{image}: the pointers are not those of the table")
            if len(units.get(entry["kernels"][0], [])) != count \
                    or len(units) != len(entry["kernels"]):
                problems.append(f"{image}: compute units {units}")
    return problems


def unknown_name_problems():
    problems = []
    for arguments in (["nothing"], ["adamw", "--list", "source", "nothing"],
                      ["adamw", "--list", "nothing"]):
        said = subprocess.run([sys.executable, str(LINK / "link_config.py"), *arguments],
                              capture_output=True, text=True, check=False)
        if said.returncode != 1 or "nothing" not in said.stderr or "Traceback" in said.stderr:
            problems.append(f"{arguments}: {said.returncode}, {said.stderr!r}")
    return problems


def make(*arguments, **environment):
    return subprocess.run(["make", "-C", str(LINK), *arguments], capture_output=True, text=True,
                          check=False, env={**os.environ, **environment})


def refusal_problems():
    """What cannot be done is said, with what to do about it."""
    problems = []
    for arguments, wanted in (
            (["VPP=no-such-vpp"], "There is no no-such-vpp. Install Vitis"),
            (["IMAGE=nothing", "commands"], "There is no image 'nothing'"),
            (["TARGET=nothing", "commands"], "TARGET is hw, hw_emu or sw_emu")):
        with tempfile.TemporaryDirectory(prefix="sluice-link-") as scratch:
            said = make(*arguments, f"BUILD={scratch}/build")
        if said.returncode == 0 or wanted not in said.stderr:
            problems.append(f"make {' '.join(arguments)}: {said.returncode}, {said.stderr!r}")
    return problems


def run_problems(target):
    """Each kernel is compiled from its source, all are linked, the result is packaged; and
    `commands` had said the same."""
    known = table()
    kernels = known["images"]["adamw"]["kernels"]
    with tempfile.TemporaryDirectory(prefix="sluice-link-") as scratch:
        folder = pathlib.Path(scratch)
        for name in ("v++", "emconfigutil"):
            (folder / name).write_text(FAKE_VPP)
            (folder / name).chmod(0o755)
        arguments = [f"BUILD={folder}/build", f"TARGET={target}"]
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SAID": f"{folder}/said"}
        printed = make("commands", *arguments, **environment)
        if (folder / "said").exists():
            return ["`make commands` ran v++"]
        said = make(*arguments, **environment)
        if said.returncode != 0:
            return [said.stderr or said.stdout]
        ran = [re.sub(rf"^{folder}/", "", line)
               for line in (folder / "said").read_text().splitlines()]
        problems = [f"`make commands` does not say {line}" for line in ran
                    if line not in printed.stdout]
        for kernel in kernels:
            source = ROOT / known["kernels"][kernel]["source"]
            compiled = [line for line in ran if " -c " in line and f" -k {kernel} " in line]
            if len(compiled) != 1 or not compiled[0].endswith(f" {source}"):
                problems.append(f"{kernel} is compiled by {compiled}")
        linked = [line for line in ran if " -l " in line]
        if len(linked) != 1 or not all(f"/{kernel}.xo" in linked[0] for kernel in kernels) \
                or "--config" not in linked[0]:
            problems.append(f"linked by {linked}")
        if len([line for line in ran if " -p " in line]) != 1:
            problems.append("it is not packaged once")
        if not all(f" --platform {known['platform']['name']}" in line for line in ran):
            problems.append("a command names no platform")
        if (target != "hw") != any("emconfigutil" in line for line in ran):
            problems.append(f"emconfigutil with {target}")
        if not (folder / "build/adamw.xclbin").exists():
            problems.append("there is no xclbin")
        return problems


def missed_breaches():
    """Tables that are wrong are not turned into files that look right."""
    missed = []
    known = table()
    known["images"]["adamw"]["kernels"] = ["update_adamw", "nothing"]
    try:
        link_config.config_text(known, "adamw")
        missed.append("an image with a kernel that is not there")
    except link_config.UnknownName:
        pass
    return missed


def main():
    report = Report()
    report.check("each pointer of each compute unit goes to the bank, once",
                 config_problems(table()))
    report.check("an image of an unknown kernel is refused", missed_breaches())
    report.check("names that are not in the table are said", unknown_name_problems())
    if not shutil.which("make"):
        report.skip("the Makefile", "there is no make")
        return report.exit_code()
    report.check("the Makefile says what is missing", refusal_problems())
    for target in ("hw", "hw_emu"):
        report.check(f"v++ is asked for all of an image, for {target}", run_problems(target))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
