#!/usr/bin/env python3
"""Tokens a second beside transformers, on this processor.

    bench/train/against_transformers.py --python VENV/bin/python [--pairs 3] [--dir DIR]

A Llama of 100 million parameters, bf16, learns the same number of random tokens in the same
batches: by transformers (LlamaForCausalLM with SDPA) with torch's fused AdamW, all of it in memory;
by Sluice with its state in memory (state_cache=auto), and with its state on the drive of DIR. The
three take turns; a figure is the median of a turn's steps after the first two, a ratio that of the
same turn, and what is printed last the median of the turns'.

--python is a Python that has torch and transformers.
"""
import argparse
import array
import json
import pathlib
import random
import shutil
import sqlite3
import statistics

from bench_run import ROOT, setting_arguments, sh

SHAPE = {"layers": 12, "hidden": 768, "heads": 12, "kv_heads": 4, "ffn": 2048, "vocabulary": 32000}

# The state is committed at the end of a run with its state in memory.
OURS = {"state in memory": {"state_cache": "auto", "commit_every": 1000},
        "state on the drive": {"state_cache": 0}}

PEER = '''
import json, sys, time
import torch
from transformers import LlamaConfig, LlamaForCausalLM
shape, batch, sequence, steps, threads = json.loads(sys.argv[1])
torch.set_num_threads(threads)
torch.manual_seed(1)
model = LlamaForCausalLM(LlamaConfig(
    hidden_size=shape["hidden"], num_hidden_layers=shape["layers"],
    num_attention_heads=shape["heads"], num_key_value_heads=shape["kv_heads"],
    intermediate_size=shape["ffn"], vocab_size=shape["vocabulary"], tie_word_embeddings=True,
    max_position_embeddings=sequence, attn_implementation="sdpa")).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
times = []
for _ in range(steps):
    tokens = torch.randint(0, shape["vocabulary"], (batch, sequence))
    begin = time.perf_counter()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter() - begin)
print(json.dumps({"times": times, "parameters": sum(p.numel() for p in model.parameters())}))
'''


def write_inputs(place, arguments):
    """A model file, and random tokens as nanoGPT keeps them."""
    lines = ['family = "llama"', "tied_tables = true", f"sequence = {arguments.sequence}"]
    lines += [f"{key} = {value}" for key, value in SHAPE.items()]
    (place / "llama-100m.toml").write_text("\n".join(lines) + "\n", encoding="ascii")
    numbers = random.Random(1)
    count = arguments.batch * (arguments.sequence + 1) * (arguments.steps + 2)
    tokens = array.array("H", (numbers.randrange(SHAPE["vocabulary"]) for _ in range(count)))
    (place / "tokens.bin").write_bytes(tokens.tobytes())
    platform = ROOT / "sample_models/platforms/laptop.toml"
    (place / "run.toml").write_text(f'[run]\nplatform = "{platform}"\n', encoding="utf-8")


def peer_times(arguments):
    asked = [SHAPE, arguments.batch, arguments.sequence, arguments.steps, arguments.threads]
    done = json.loads(sh(arguments.python, "-c", PEER, json.dumps(asked)))
    return done["times"], done["parameters"]


def sluice_times(arguments, settings):
    output = arguments.dir / "run"
    shutil.rmtree(output, ignore_errors=True)
    asked = {"text": arguments.dir / "tokens.bin", "batch": arguments.batch,
             "sequence": arguments.sequence, "threads": arguments.threads, "lr": 1e-4,
             "warmup_steps": 0, "max_grad_norm": 1.0, "method": "host", "clock": "real",
             "devices": 1, "output": output, **settings}
    report = json.loads(sh(arguments.sluice, "train", arguments.dir / "run.toml", "--model",
                           arguments.dir / "llama-100m.toml", "--steps", arguments.steps, "--json",
                           *setting_arguments(asked)))
    with sqlite3.connect(report["db"]) as database:
        times = [dur / 1e9 for dur, in database.execute("SELECT dur FROM step ORDER BY id")]
    shutil.rmtree(output, ignore_errors=True)
    return times, report["parameters"]


def median(times):
    return statistics.median(times[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice", type=pathlib.Path)
    parser.add_argument("--dir", default="/tmp/sluice-transformers", type=pathlib.Path)
    parser.add_argument("--pairs", default=3, type=int)
    parser.add_argument("--steps", default=6, type=int)
    parser.add_argument("--batch", default=4, type=int)
    parser.add_argument("--sequence", default=256, type=int)
    parser.add_argument("--threads", default=2, type=int)
    arguments = parser.parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    write_inputs(arguments.dir, arguments)
    tokens = arguments.batch * arguments.sequence
    ratios = {name: [] for name in OURS}
    for turn in range(arguments.pairs):
        times, parameters = peer_times(arguments)
        peer = tokens / median(times)
        line = [f"turn {turn + 1}: transformers {peer:.1f} tokens/s ({parameters:,} parameters)"]
        for name, settings in OURS.items():
            times, _ = sluice_times(arguments, settings)
            ratios[name].append(tokens / median(times) / peer)
            line.append(f"{name} {tokens / median(times):.1f}, {ratios[name][-1]:.3f} of it")
        print("; ".join(line), flush=True)
    for name, found in ratios.items():
        print(f"{name}: {statistics.median(found):.3f} of transformers' tokens a second")


if __name__ == "__main__":
    main()
