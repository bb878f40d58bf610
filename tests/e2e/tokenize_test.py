#!/usr/bin/env python3
"""scripts/tokenize: its tokens are the tokenizer's own, in bounded memory; a run learns them and
writes text with the vocabulary beside them.

The package tokenizers is in the environment that scripts/setup makes beside the build's own, or in
the one that SLUICE_TOKENIZERS names."""

import json
import os
import pathlib
import struct
import subprocess
import sys

from sluice_run import (NANO_MODEL, ROOT, Skip, made_text, main, require, require_equal,
                        require_words, test)

SCRIPT = ROOT / "scripts/tokenize"
ENVIRONMENT = pathlib.Path(os.environ.get("SLUICE_TOKENIZERS") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sluice/tokenizers"))
END = "<|endoftext|>"
LIMIT_S = 300

# Trains a byte-level BPE, as GPT-2's is, and prints what it makes of each text of a list.
MAKE_TOKENIZER = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=int(sys.argv[3]), special_tokens=["<|endoftext|>"],
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                              show_progress=False)
tokenizer.train([sys.argv[1]], trainer)
tokenizer.enable_truncation(5)
tokenizer.enable_padding(length=9)
tokenizer.save(sys.argv[2])
"""
ENCODE = """
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_padding()
tokenizer.no_truncation()
print(json.dumps([tokenizer.encode(text, add_special_tokens=False).ids
                  for text in json.load(sys.stdin)]))
"""
PEAK_OF_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def python(code, *arguments, stdin=""):
    interpreter = ENVIRONMENT / "bin/python"
    has = interpreter.exists() and subprocess.run(
        [interpreter, "-c", "import tokenizers"], capture_output=True, check=False).returncode == 0
    if not has:
        raise Skip(f"the Python package tokenizers is not in {ENVIRONMENT} (scripts/setup)")
    done = subprocess.run([interpreter, "-c", code, *map(str, arguments)], input=stdin, text=True,
                          capture_output=True, check=False, timeout=LIMIT_S)
    require_equal(done.returncode, 0, f"exit code ({done.stderr[-500:]})")
    return done.stdout


def tokenizer_of(place, vocabulary=400):
    path = place / "tokenizer.json"
    python(MAKE_TOKENIZER, place / "text.txt", path, vocabulary)
    return path


def encoded(tokenizer, texts):
    return json.loads(python(ENCODE, tokenizer, stdin=json.dumps(texts)))


def tokenize(*arguments):
    return subprocess.run([SCRIPT, *map(str, arguments)], text=True, capture_output=True,
                          check=False, timeout=LIMIT_S)


def made(*arguments):
    done = tokenize(*arguments)
    require_equal(done.returncode, 0, f"exit code ({done.stderr[-500:]})")
    return done


def refused(words, *arguments):
    done = tokenize(*arguments)
    require_equal(done.returncode, 1, f"exit code ({done.stderr[-500:]})")
    require_words(done.stderr, ["tokenize: error:", *words], "the error")


def tokens_in(path):
    """Of 2 bytes each."""
    data = path.read_bytes()
    magic, version, width, count, _ = struct.unpack_from("<8sIIQQ", data)
    require_equal((magic, version, width), (b"SLCTOKEN", 1, 2), "the header")
    require_equal(len(data), 64 + count * width, "the size")
    return list(struct.unpack_from(f"<{count}H", data, 64))


def texts_in(path):
    """The bytes of each token (docs/tokens.md)."""
    data = path.read_bytes()
    count = struct.unpack_from("<I", data, 12)[0]
    at, texts = 32 + 4 * count, []
    for size in struct.unpack_from(f"<{count}I", data, 32):
        texts.append(data[at:at + size])
        at += size
    require_equal(at, len(data), "the end")
    return texts


@test
def a_text_becomes_the_tokens_that_the_tokenizer_makes_of_it_at_once(place):
    text = made_text(400_000) + "\n\n  Ä ß 漢字\r\n\t x\n" + "no end of line " * 20_000 + "last"
    (place / "text.txt").write_bytes(text.encode())
    tokenizer = tokenizer_of(place)
    made(tokenizer, place / "text.txt", "-o", place / "t.tok")
    tokens = tokens_in(place / "t.tok")
    require(tokens == encoded(tokenizer, [text])[0], "other tokens than of the text at once")
    texts = texts_in(place / "t.vocab")
    require(b"".join(texts[token] for token in tokens) == text.encode(), "other bytes")
    require_equal(sorted(path.name for path in place.path.glob("t.*")), ["t.tok", "t.vocab"],
                  "files")


@test
def records_are_documents_that_end_with_the_token_that_was_named(place):
    tokenizer = tokenizer_of(place)
    texts = ["one two", "", "three\nfour", made_text(200_000, seed=3), "five " + END + " six"]
    (place / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n\n" for text in texts))
    made(tokenizer, place / "a.jsonl", "-o", place / "a.tok", "--end", END)
    end = encoded(tokenizer, [END])[0]
    require_equal(len(end), 1, "tokens of the end")
    wanted = [token for ids in encoded(tokenizer, texts) if ids for token in ids + end]
    require(tokens_in(place / "a.tok") == wanted, "other tokens than of the records")
    made(tokenizer, place / "a.jsonl", "-o", place / "a.tok", "--no-end")  # takes its place
    require(len(tokens_in(place / "a.tok")) == len(wanted) - 4, "ends that nobody has asked for")


@test
def what_is_no_text_is_refused_and_leaves_nothing(place):
    tokenizer = tokenizer_of(place)
    (place / "a.jsonl").write_text('{"text": "a"}\n{"content": "b"}\n')
    (place / "b.jsonl").write_text('{"text": "a"}\n{"text": \n')
    (place / "c.txt").write_bytes(b"x" * 300_000 + b"\xff")
    (place / "d.txt").write_bytes(b"")
    (place / "thesis.tok").write_text("years of work")
    output = ["-o", place / "out.tok"]
    refused(["a.jsonl: line 2 has no 'text' (it has: content)", "--field"], tokenizer,
            place / "a.jsonl", *output, "--no-end")
    refused(["b.jsonl: line 2 is no JSON"], tokenizer, place / "b.jsonl", *output, "--no-end")
    refused(["--end TOKEN", "--no-end"], tokenizer, place / "a.jsonl", *output)
    refused(["no token '<end>'", END], tokenizer, place / "a.jsonl", *output, "--end", "<end>")
    refused(["c.txt: is no UTF-8 at offset 300000"], tokenizer, place / "c.txt", *output)
    refused(["there is no text"], tokenizer, place / "d.txt", *output)
    refused(["none.txt", "No such file"], tokenizer, place / "none.txt", *output)
    refused(["text.txt: no tokenizer.json"], place / "text.txt", place / "text.txt", *output)
    refused(["not overwritten"], tokenizer, place / "text.txt", "-o", place / "thesis.tok")
    require_equal((place / "thesis.tok").read_text(), "years of work", "somebody's file")
    require_equal([path.name for path in place.path.glob("*.part-*")], [], "parts of files")
    require(not (place / "out.tok").exists(), "tokens of what is no text")


@test
def a_run_learns_the_tokens_and_writes_text(place):
    (place / "text.txt").write_text(made_text(200_000))
    tokenizer = tokenizer_of(place)
    made(tokenizer, place / "text.txt", "-o", place / "t.tok")
    (place / "nano.toml").write_text(NANO_MODEL.replace("256", "400"))
    said = place.train("--json", text="t.tok", sample_tokens=30, sample_prompt="e").json()
    require(said["sample"].startswith("e") and len(said["sample"]) > 20,
            f"no text: {said.get('sample')!r}")
    (place / "t.vocab").unlink()
    out = place.train(text="t.tok", output="other", sample_tokens=30).done().out
    require_words(out, ["The model writes no text:", "t.vocab that says their bytes"], "the report")
    (place / "nano.toml").write_text(NANO_MODEL)
    place.train(text="t.tok", output="third").refused(
        2, ["t.tok: token", "at offset", "the model's vocabulary is 256"])


@test
def memory_does_not_grow_with_the_text(place):
    tokenizer = tokenizer_of(place)

    text = (place / "text.txt").read_text()

    def peak(times):
        (place / "text.txt").write_text(text * times)
        done = subprocess.run(
            [sys.executable, "-c", PEAK_OF_CHILD, SCRIPT, tokenizer, place / "text.txt", "-o",
             place / "t.tok"], text=True, capture_output=True, check=True, timeout=LIMIT_S)
        return int(done.stdout.split()[-1])

    small = peak(75)
    large = peak(300)
    require(large < small * 1.25 + 10_000, f"{small} KiB with 1.5 MB of text, {large} with 6 MB")


@test
def help_has_examples(place):
    done = made("--help")
    require_words(done.stdout, ["scripts/tokenize tokenizer.json corpus.txt -o corpus.tok"], "help")


if __name__ == "__main__":
    sys.exit(main())
