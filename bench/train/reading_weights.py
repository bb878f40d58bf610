#!/usr/bin/env python3
"""How fast a folder of weights becomes a run's state, beside what bench_io reads and writes there.

    bench/train/reading_weights.py [--layers 16] [--dir DIR]

Makes a folder of a Llama (hidden 2048, a vocabulary of 128256; 16 layers: 1.2 billion parameters;
--layers 32 --hidden 4096 --ffn 14336 --kv 1024: 8 billion) with random bf16 weights in pieces,
begins a run with it and takes the time of its stage create_state from the record. The bound is the
time in which bench_io reads the weights and writes the state, on the same drive, one behind the
other. DIR needs room for 16 bytes a parameter. The weights repeat a block of normal values.
"""
import argparse
import json
import pathlib
import random
import shutil
import sqlite3
import statistics
import struct

from bench_run import ROOT, setting_arguments, sh

PIECE_BYTES = 1 << 30
BLOCK = 1 << 20


def tensors(options):
    hidden, ffn, kv = options.hidden, options.ffn, options.kv
    found = {"model.embed_tokens.weight": [options.vocabulary, hidden]}
    for layer in range(options.layers):
        name = f"model.layers.{layer}."
        found |= {name + "self_attn.q_proj.weight": [hidden, hidden],
                  name + "self_attn.k_proj.weight": [kv, hidden],
                  name + "self_attn.v_proj.weight": [kv, hidden],
                  name + "self_attn.o_proj.weight": [hidden, hidden],
                  name + "mlp.gate_proj.weight": [ffn, hidden],
                  name + "mlp.up_proj.weight": [ffn, hidden],
                  name + "mlp.down_proj.weight": [hidden, ffn],
                  name + "input_layernorm.weight": [hidden],
                  name + "post_attention_layernorm.weight": [hidden]}
    found["model.norm.weight"] = [hidden]
    return found


def size_of(shape):
    bytes_of = 2
    for extent in shape:
        bytes_of *= extent
    return bytes_of


def bf16_block():
    numbers = random.Random(1)
    values = (struct.pack("<f", numbers.gauss(0, 0.02))[2:] for _ in range(BLOCK // 2))
    return b"".join(values)


def write_piece(path, piece, block):
    header, end = {}, 0
    for name, shape in piece.items():
        begin, end = end, end + size_of(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for first in range(0, end, BLOCK):
            file.write(block[:min(BLOCK, end - first)])
    return end


def write_folder(folder, options):
    """Its bytes of weights."""
    pieces, piece, size = [], {}, 0
    for name, shape in tensors(options).items():
        if piece and size + size_of(shape) > PIECE_BYTES:
            pieces.append(piece)
            piece, size = {}, 0
        piece[name] = shape
        size += size_of(shape)
    pieces.append(piece)
    block, total, where = bf16_block(), 0, {}
    for number, piece in enumerate(pieces, start=1):
        name = f"model-{number:05}-of-{len(pieces):05}.safetensors"
        total += write_piece(folder / name, piece, block)
        where |= {tensor: name for tensor in piece}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": where}), encoding="ascii")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
              "hidden_size": options.hidden, "intermediate_size": options.ffn,
              "num_hidden_layers": options.layers, "num_attention_heads": options.hidden // 128,
              "num_key_value_heads": options.kv // 128, "head_dim": 128,
              "vocab_size": options.vocabulary, "max_position_embeddings": 4096,
              "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config), encoding="ascii")
    return total


def create_seconds(options, folder):
    """Of the stage, and the bytes of the state's file."""
    output = options.dir / "run"
    shutil.rmtree(output, ignore_errors=True)
    (options.dir / "tokens.bin").write_bytes(bytes(4096))
    platform = ROOT / "sample_models/platforms/laptop.toml"
    (options.dir / "run.toml").write_text(f'[run]\nplatform = "{platform}"\n', encoding="utf-8")
    asked = {"text": options.dir / "tokens.bin", "batch": 1, "sequence": 8, "method": "host",
             "devices": 1, "clock": "real", "warmup_steps": 0, "output": output}
    report = json.loads(sh(options.sluice, "train", options.dir / "run.toml", "--model", folder,
                           "--steps", 1, "--json", *setting_arguments(asked)))
    with sqlite3.connect(report["db"]) as database:
        (seconds,) = database.execute(
            "SELECT (MAX(span.ts + span.dur) - MIN(span.ts)) / 1e9 FROM span JOIN track "
            "ON span.track_id = track.id WHERE track.name LIKE '%create_state%'").fetchone()
    shutil.rmtree(output)
    return seconds, report["parameters"]


def rate(options, mix):
    found = json.loads(sh(options.bench, "--json", "--dir", options.dir, "--size", "2 GiB",
                          "--seconds", 5, "--mix", mix))
    return found["rate"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice", default=ROOT / "build/release/bin/sluice", type=pathlib.Path)
    parser.add_argument("--bench", default=ROOT / "build/release/bin/bench_io", type=pathlib.Path)
    parser.add_argument("--dir", default=pathlib.Path("/tmp/sluice-weights"), type=pathlib.Path)
    parser.add_argument("--layers", default=16, type=int)
    parser.add_argument("--hidden", default=2048, type=int)
    parser.add_argument("--ffn", default=8192, type=int)
    parser.add_argument("--kv", default=512, type=int)
    parser.add_argument("--vocabulary", default=128256, type=int)
    parser.add_argument("--turns", default=3, type=int)
    options = parser.parse_args()
    folder = options.dir / "weights"
    folder.mkdir(parents=True, exist_ok=True)
    read_bytes = write_folder(folder, options)
    ratios = []
    for _ in range(options.turns):
        seconds, parameters = create_seconds(options, folder)
        written = 12 * parameters
        bound = read_bytes / rate(options, "read") + written / rate(options, "write")
        ratios.append(bound / seconds)
        print(f"{parameters:,} parameters: {read_bytes / 1e9:.2f} GB read, {written / 1e9:.2f} GB "
              f"written in {seconds:.2f} s; bench_io {bound:.2f} s: {ratios[-1]:.2f}", flush=True)
    shutil.rmtree(options.dir)
    print(f"{statistics.median(ratios):.2f} of what bench_io reads and writes")


if __name__ == "__main__":
    main()
