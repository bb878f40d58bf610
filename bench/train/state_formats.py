#!/usr/bin/env python3
"""What compact state does to the losses, beside what another seed does to them.

    bench/train/state_formats.py [--sluice build/release/bin/sluice] [--run RUN.toml]
    bench/train/state_formats.py --seeds 1,2,3 --steps 2000 --density 1 --density 0.02
    bench/train/state_formats.py --text out/data/kjv-2048.tok --vocabulary 2048

The last one is for tokens, which small_tokenizer.py says how to make.

Trains a model with each state format from the same seeds, on each text and with each density (below
1 with error feedback and density_warmup_steps). Prints for each format the mean of the last 100
losses and how far it is from fp32's with the same seeds, in parts of the spread (standard
deviation) between fp32's seeds. "fp32, batches in halves" is fp32 whose gradients are summed in
another order: what rounding alone does to the losses of one seed. Numbers depend on no way to
offload, so the fastest is taken: state on a drive in memory, kept between commits. A run that has
ended is not run again: its losses are in DIR, so the bench goes on where it was stopped.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import sys

from bench_run import ROOT, setting_arguments, sh

LAST = 100
WAY = {"method": "host", "gradient_tier": "memory", "clock": "real", "devices": 1,
       "state_cache": "auto", "commit_every": 1000, "record": "off", "validation_every": 0,
       "sample_tokens": 0}
FORMATS = {
    "fp32": {"state_format": "fp32"},
    "fp32, batches in halves": {"state_format": "fp32", "batch": 4, "grad_accum_steps": 2},
    "compact, remainders of 16 bits": {"state_format": "compact"},
    "compact, remainders of 8 bits": {"state_format": "compact", "remainder_bits": 8},
}


def model_of(arguments):
    """The sample model with another vocabulary."""
    model = ROOT / "sample_models/models/tiny.toml"
    made = pathlib.Path(arguments.scratch) / "state-formats-model.toml"
    made.write_text(re.sub(r"vocabulary = \d+", f"vocabulary = {arguments.vocabulary}",
                           model.read_text()))
    return made


def losses_of(arguments, text, density, name, seed):
    """Trained now, or before."""
    case = f"{pathlib.Path(text).stem}-{density:g}-{name.replace(', ', '-').replace(' ', '-')}"
    kept = pathlib.Path(arguments.dir) / f"{case}-{arguments.steps}-{seed}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    output = pathlib.Path(arguments.scratch) / "state-formats"
    shutil.rmtree(output, ignore_errors=True)
    settings = WAY | FORMATS[name] | {"output": output, "seed": seed,
                                      "text": pathlib.Path(text).resolve(), "density": density}
    if arguments.vocabulary:
        settings["model"] = model_of(arguments)
    if density < 1:
        settings |= {"error_feedback": "true", "density_warmup_steps": arguments.steps // 5}
    report = json.loads(sh(arguments.sluice, "train", arguments.run, "--json", "--steps",
                           arguments.steps, *setting_arguments(settings)))
    shutil.rmtree(output)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(report["losses"]))
    return report["losses"]


def table(arguments, text, density):
    """Rows of one text and density."""
    ends = {name: [statistics.fmean(losses_of(arguments, text, density, name, seed)[-LAST:])
                   for seed in arguments.seeds] for name in arguments.formats}
    spread = statistics.stdev(ends["fp32"]) if len(arguments.seeds) > 1 else float("nan")
    for name, means in ends.items():
        differences = [mine - plain for mine, plain in zip(means, ends["fp32"])]
        mean = statistics.fmean(differences)
        each = ", ".join(f"{one:+.4f}" for one in differences)
        print(f"| {pathlib.Path(text).name} | {density:g} | {name} | {statistics.fmean(means):.4f} "
              f"| {mean:+.4f} | {each} | {abs(mean) / spread:.2f} |", flush=True)
    print(f"spread between seeds of fp32: {spread:.4f}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice")
    parser.add_argument("--run", default=ROOT / "sample_models/runs/tiny.toml")
    parser.add_argument("--text", action="append")
    parser.add_argument("--vocabulary", type=int, help="of the model, for a file of tokens")
    parser.add_argument("--density", action="append", type=float)
    parser.add_argument("--seeds", default="1,2,3",
                        type=lambda text: [int(seed) for seed in text.split(",")])
    parser.add_argument("--steps", default=2000, type=int)
    parser.add_argument("--formats", default=list(FORMATS), type=lambda text: text.split(";"),
                        help="such as 'fp32;compact, remainders of 16 bits'")
    parser.add_argument("--dir", default="out/state-formats", help="where losses are kept")
    parser.add_argument("--scratch", default="/dev/shm")
    arguments = parser.parse_args()
    print("| text | density | state | mean of the last 100 losses | beside fp32 | each seed | "
          "of the spread |\n|---|---:|---|---:|---:|---|---:|", flush=True)
    for text in arguments.text or [ROOT / "out/data/kjv.txt"]:
        for density in arguments.density or [1.0]:
            table(arguments, text, density)


if __name__ == "__main__":
    main()
