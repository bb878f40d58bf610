#!/usr/bin/env python3
"""A step of Hugging Face's Trainer beside DeepSpeed, with the optimizer state on a drive.

    bench/throttle/throttled_devices.sh up /tmp/drive 1 200 8192
    bench/throttle/throttled_devices.sh run /tmp/drive bench/train/against_deepspeed.py \\
        --python VENV/bin/python --dir /tmp/drive/dev0

GPT-2 of 124 million parameters (transformers), bf16, AdamW, learns random tokens through one
Trainer program: by DeepSpeed (ZeRO-3, NVMe offload of the optimizer, buffers as measured best), and
by sluice.AdamW with several settings. They take turns on one drive. A row has the median of the
steps after the first (with fewer commits than steps the mean from one commit to another), the
bytes of a step by the block device's own counters, the peak of resident memory, and the lines of
configuration; a ratio is that of the same turn.

--python is a Python that has torch, transformers and deepspeed; for DeepSpeed libaio's headers and
a compiler are needed, too.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics

from bench_run import ROOT, sh

OURS = {
    "sluice": {},
    "sluice, ahead": {"overlap": "exact", "buffers": 8},
    "sluice, ahead, gradients in memory": {"overlap": "exact", "buffers": 8,
                                           "gradient_tier": "memory"},
    "sluice, compact state (other numbers)": {
        "overlap": "exact", "buffers": 8, "gradient_tier": "memory", "state_format": "compact"},
    "sluice, compact state (other numbers), a commit in 8 steps": {
        "overlap": "exact", "buffers": 8, "gradient_tier": "memory", "state_format": "compact",
        "commit_every": 8},
    "sluice, compact state with remainders of 8 bits (other numbers), a commit in 8 steps": {
        "overlap": "exact", "buffers": 8, "gradient_tier": "memory", "state_format": "compact",
        "remainder_bits": 8, "commit_every": 8},
    "sluice, a cache": {"gradient_tier": "memory", "state_cache": "900MB", "commit_every": 10},
}

DEEPSPEED = """{
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "bf16": {"enabled": true},
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
                                            "weight_decay": "auto"}},
  "zero_optimization": {
    "stage": 3, "sub_group_size": 10000000, "reduce_bucket_size": 50000000,
    "stage3_param_persistence_threshold": 100000, "overlap_comm": false,
    "offload_optimizer": {"device": "nvme", "nvme_path": "DIR", "pin_memory": false,
                          "buffer_count": 12, "pipeline_read": true, "pipeline_write": true}},
  "aio": {"block_size": 1048576, "queue_depth": 16, "intra_op_parallelism": 1}
}"""

PROGRAM = '''
import json, os, resource, sys, time
kind, place, steps, sequence, settings, package, threads = json.loads(sys.argv[1])
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
if kind == "deepspeed":  # one process, as its launcher starts it
    os.environ.update({"DS_ACCELERATOR": "cpu", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
                       "LOCAL_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"})
import torch
import transformers
torch.set_num_threads(threads)

def device_bytes():
    number = os.stat(place).st_dev
    path = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat"
    words = open(path).read().split()
    return int(words[2]) * 512, int(words[6]) * 512

class Clock(transformers.TrainerCallback):
    rows = []
    def on_step_begin(self, *arguments, **others):
        self.begin = time.perf_counter(), device_bytes()
    def on_step_end(self, *arguments, **others):
        before, now = self.begin[1], device_bytes()
        self.rows.append((time.perf_counter() - self.begin[0], now[0] - before[0],
                          now[1] - before[1]))

args = transformers.TrainingArguments(
    output_dir=place + "/trainer", max_steps=steps, per_device_train_batch_size=1, use_cpu=True,
    bf16=kind == "deepspeed", max_grad_norm=0, learning_rate=1e-4, save_strategy="no",
    report_to=[], disable_tqdm=True, logging_steps=1,
    deepspeed=settings if kind == "deepspeed" else None)
torch.manual_seed(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_positions=1024)).bfloat16()
ids = torch.randint(0, 50257, (steps + 1, sequence))
more = {}
if kind != "deepspeed":
    sys.path.insert(0, package)
    import sluice
    more["optimizer_cls_and_kwargs"] = sluice.for_trainer(args, state=place + "/run", **settings)
trainer = transformers.Trainer(model=model, args=args, callbacks=[Clock()],
                               train_dataset=[{"input_ids": i, "labels": i} for i in ids], **more)
trainer.train()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
print(json.dumps({"rows": Clock.rows, "peak": peak, "losses": losses}), file=out, flush=True)
os._exit(0)  # DeepSpeed's threads may abort a process that ends by itself
'''


def measured(kind, arguments, settings):
    """Seconds, bytes read and written of a step, the process's peak, its losses."""
    for left in ("run", "trainer", "zero_stage_3"):
        shutil.rmtree(arguments.dir / left, ignore_errors=True)
    cycle = settings.get("commit_every", 1) if kind == "sluice" else 1
    steps = max(arguments.steps, 2 * cycle + 1)
    asked = [kind, str(arguments.dir), steps, arguments.sequence, settings,
             str(arguments.package), arguments.threads]
    done = json.loads(sh(arguments.python, "-c", PROGRAM, json.dumps(asked)))
    rows = done["rows"][1:] if cycle == 1 else done["rows"][cycle:2 * cycle]
    middle_of = statistics.median if cycle == 1 else statistics.fmean
    middle = [middle_of(row[column] for row in rows) for column in range(3)]
    return *middle, done["peak"], done["losses"]


def say(name, lines, found, peer):
    seconds, read, written, peak, losses = found
    ratio = f"{peer[0] / seconds:.2f} of its speed, {peak / peer[3]:.2f} of its memory"
    print(f"{name}: {seconds:.2f} s a step, {read / 1e6:.0f} MB read, {written / 1e6:.0f} written, "
          f"peak {peak / 1e9:.2f} GB, {lines} lines, losses {losses[0]:.4f} to {losses[-1]:.4f}"
          + (f"; {ratio}" if found is not peer else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--package", default=ROOT / "build/release/python", type=pathlib.Path)
    parser.add_argument("--dir", required=True, type=pathlib.Path)
    parser.add_argument("--turns", default=1, type=int)
    parser.add_argument("--steps", default=5, type=int)
    parser.add_argument("--sequence", default=256, type=int)
    parser.add_argument("--threads", default=2, type=int)
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{pathlib.Path(arguments.python).parent}:{os.environ['PATH']}"  # ninja
    configuration = arguments.dir / "ds_config.json"
    configuration.write_text(DEEPSPEED.replace("DIR", str(arguments.dir)), encoding="ascii")
    for _ in range(arguments.turns):
        peer = measured("deepspeed", arguments, str(configuration))
        say("deepspeed", len(DEEPSPEED.splitlines()), peer, peer)
        for name, settings in OURS.items():
            say(name, 1, measured("sluice", arguments, settings), peer)


if __name__ == "__main__":
    main()
