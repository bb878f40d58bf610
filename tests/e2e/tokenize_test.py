#!/usr/bin/env python3
"""scripts/tokenize: its tokens are the tokenizer's own, in bounded memory; a run learns them and
writes text with the vocabulary beside them."""

import json
import struct
import subprocess
import sys

from sluice_run import NANO_MODEL, made_text, main, require, require_equal, require_words, test
from token_files import (END, LIMIT_S, SCRIPT, encoded, made, marked_tokens_in, refused,
                         tokenizer_of, tokens_in)

PEAK_OF_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


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
def marks_say_where_each_text_and_record_begins(place):
    tokenizer = tokenizer_of(place)
    texts = ["one two", "", "three\nfour", "five"]
    (place / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (place / "b.txt").write_text(made_text(40_000))
    made(tokenizer, place / "a.jsonl", place / "b.txt", "-o", place / "a.tok", "--end", END,
         "--marks")
    documents = [text + END for text in [*filter(None, texts), made_text(40_000)]]
    wanted = [(token, 1 if number else 3) for ids in encoded(tokenizer, documents)
              for number, token in enumerate(ids)]
    require(marked_tokens_in(place / "a.tok") == wanted, "other tokens or marks")
    for jobs in (1, 3):
        made(tokenizer, place / "a.jsonl", place / "b.txt", "-o", place / "b.tok", "--end", END,
             "--marks", "--jobs", jobs)
        require((place / "b.tok").read_bytes() == (place / "a.tok").read_bytes(),
                f"{jobs} threads make other tokens")


@test
def an_array_is_read_as_lines_are_and_its_errors_have_lines(place):
    tokenizer = tokenizer_of(place)
    records = [{"text": made_text(1 + 97 * i, seed=i) + "\u00e4]},{"} for i in range(110)]
    (place / "a.json").write_text("\ufeff" + json.dumps(records, indent=2), encoding="utf-8")
    (place / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name in ("a.json", "a.jsonl"):
        made(tokenizer, place / name, "-o", place / (name + ".tok"), "--end", END)
    require(tokens_in(place / "a.json.tok") == tokens_in(place / "a.jsonl.tok"), "other tokens")
    for text, words in [('[{"text": "a"},\n{"text": "b"}', "b.json: line 2 is no JSON: ',' is"),
                        ('[{"text": "a"},\n\n {"text": b}]', "b.json: line 3 is no JSON"),
                        ('[{"text": "a"},\n{"text": "b', "b.json: line 2 is no JSON"),
                        ('[{"text": "a"},\n"b"]', "b.json: line 2 has no 'text'"),
                        ('[{"text": "a"}] {"text": "b"}', "b.json: line 1: more follows"),
                        ('[{"text": "a"},]', "b.json: line 1 is no JSON"),
                        ("[]", "there is no text")]:
        (place / "b.json").write_text(text)
        refused([words], tokenizer, place / "b.json", "-o", place / "b.tok", "--no-end")


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
             place / "t.tok", "--jobs", "1"],
            text=True, capture_output=True, check=True, timeout=LIMIT_S)
        return int(done.stdout.split()[-1])

    small = peak(200)  # the tokenizer's own store of words is full by then
    large = peak(600)
    require(large < small * 1.25 + 10_000, f"{small} KiB with 4 MB of text, {large} with 12 MB")


@test
def help_has_examples(place):
    done = made("--help")
    require_words(done.stdout, ["scripts/tokenize tokenizer.json corpus.txt -o corpus.tok"], "help")


if __name__ == "__main__":
    sys.exit(main())
