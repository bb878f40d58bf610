#!/usr/bin/env python3
"""No stage is known by its name outside of the table of stages: code asks the table, or table
`stage` of the run database, what a stage is. Breaches are planted to show that they are found."""

import pathlib
import re
import sys
import tempfile

from source_tree import ROOT, Report, tracked_files

TABLE = "core/stages/stage.h"
SOURCES = (".h", ".cpp", ".inl", ".js", ".sql", ".in", ".html")
EXEMPT = ("tests/", "bench/", "docs/", "sample_models/")

# Words that also mean something else, and where they do.
OTHER_MEANINGS = {
    # The phases of a step.
    "forward": (r".",), "backward": (r".",), "update": (r".",),
    # A rate of an engine in a platform file.
    "compress": (r"core/platform/", r"core/calibrate/", r"core/plan/run_plan\.cpp",
                 r"core/tune/detail/kernel_fit\.cpp", r"core/offload/host_kernels\.cpp",
                 r"core/train/gradient_work\.cpp",
                 r"cli/calibrate_command\.cpp"),
    # A section of the settings, and a key of `train --json`.
    "sample": (r"core/settings/setting_table\.cpp", r"core/answers/training\.cpp"),
    # A collective, in a platform file and in messages.
    "all_gather": (r"core/platform/cluster\.cpp", r"core/collective/call\.cpp"),
    "reduce_scatter": (r"core/platform/cluster\.cpp", r"core/collective/call\.cpp"),
    "all_reduce": (r"core/platform/cluster\.cpp", r"core/collective/call\.cpp"),
    "broadcast": (r"core/platform/cluster\.cpp", r"core/collective/call\.cpp"),
    # A cause of a verdict, and what ranks do together.
    "commit": (r"profiler/analyze/cause\.cpp", r"core/train/ranks\.cpp",
               r"profiler/c_api/stage_meaning\.cpp"),
}


def stage_names(root):
    return re.findall(r'\.name = "(\w+)"', (root / TABLE).read_text())


def breaches(root):
    names = stage_names(root)
    named = re.compile(r"""(["'])(%s)\1""" % "|".join(names))
    # Which stage an operation belongs to is said where it is made; what follows from it is not.
    branched = re.compile(r"(==|!=|case)\s*(stages::)?Stage::(?!count_)\w+")
    found = []
    for name in tracked_files(root):
        if name == TABLE or not name.endswith(SOURCES) or name.startswith(EXEMPT):
            continue
        for number, line in enumerate((root / name).read_text().splitlines(), 1):
            code = re.sub(r"(//|--\s).*", "", line)
            for match in named.finditer(code):
                allowed = OTHER_MEANINGS.get(match.group(2), ())
                if not any(re.match(pattern, name) for pattern in allowed):
                    found.append(f"{name}:{number}: knows stage {match.group(2)} by its name")
            if branched.search(code):
                found.append(f"{name}:{number}: asks which stage it is, not what the stage is")
    return found


def planted(text):
    """What is found in a tree of one file with this text, and the table."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / TABLE).parent.mkdir(parents=True)
        (root / TABLE).write_text((ROOT / TABLE).read_text())
        (root / "gui").mkdir()
        (root / "gui/view.cpp").write_text(text)
        return breaches(root)


def main():
    report = Report()
    names = stage_names(ROOT)
    report.check("the table of stages has its rows",
                 [] if len(names) > 15 and "move_state" in names else [f"found {names}"])
    report.check("no stage is known by its name outside of the table", breaches(ROOT))
    missed = [text for text in ('if (name == "state_read") {}', "x = 'commit';",
                                "case stages::Stage::update:", "if (stage != Stage::compress) {}")
              if not planted(text)]
    report.check("a stage that is known by its name is found", [f"not found: {t}" for t in missed])
    report.check("a comment, a phase and the making of an operation are none",
                 planted('// as "state_read"\nf("forward");\nlabel.stage = Stage::update;\n'))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
