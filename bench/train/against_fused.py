#!/usr/bin/env python3
"""A step with sluice.AdamW and all of its state in memory beside torch's fused AdamW.

    VENV/bin/python bench/train/against_fused.py [--steps 7] [overlap=exact ...]

Two GPT-2 of 36 million parameters (transformers), bf16, learn the same tokens and take turns at
each step; what is printed are medians without the first step. torch's has moments of bf16 and no
master weights (14 bytes a parameter move), ours fp32 of both. Words are further settings.

It is run by a Python that has torch and transformers; the package is that of build/release.
"""
import argparse
import shutil
import statistics
import sys
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from bench_run import ROOT

sys.path.insert(0, str(ROOT / "build/release/python"))
import sluice  # noqa: E402

IN_MEMORY = {"state_cache": "2GB", "commit_every": "1000", "gradient_tier": "memory"}


def made():
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=512, n_head=8, vocab_size=32000,
                                      n_positions=512)).bfloat16()


def turn(model, optimizer, tokens):
    """Seconds of forward and backward, and of the step."""
    begin = time.perf_counter()
    optimizer.zero_grad()
    model(input_ids=tokens, labels=tokens).loss.backward()
    middle = time.perf_counter()
    optimizer.step()
    return middle - begin, time.perf_counter() - middle


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default=7, type=int)
    parser.add_argument("settings", nargs="*")
    arguments = parser.parse_args()
    settings = IN_MEMORY | dict(word.split("=", 1) for word in arguments.settings)
    tokens = torch.randint(0, 32000, (4, 256))
    theirs, ours = made(), made()
    folder = tempfile.mkdtemp(dir="/dev/shm")
    fused = torch.optim.AdamW(theirs.parameters(), lr=1e-4, fused=True)
    stored = sluice.AdamW(ours.parameters(), lr=1e-4, state=folder, **settings)
    pairs = [(turn(theirs, fused, tokens), turn(ours, stored, tokens))
             for _ in range(arguments.steps)][1:]
    stored.close()
    shutil.rmtree(folder)
    for which, name in enumerate(("fused", "sluice")):
        print(f"{name}: forward and backward "
              f"{statistics.median(pair[which][0] for pair in pairs):.3f} s, step "
              f"{statistics.median(pair[which][1] for pair in pairs):.3f} s")
    ratio = statistics.median(sum(ours) / sum(theirs) for theirs, ours in pairs)
    print(f"{sum(p.numel() for p in ours.parameters()):,} parameters; all of it takes {ratio:.3f} "
          "of the time")


if __name__ == "__main__":
    main()
