#!/usr/bin/env python3
"""scripts/tokenize --pack: records lie whole in windows of one length, what fills these is not
learnt, and a run reads them window by window."""

import json
import random
import struct
import sys

from sluice_run import NANO_MODEL, main, made_text, require, require_equal, require_words, test
from token_files import END, encoded, fnv1a, made, refused, tokenizer_of

WINDOW = 64
RUN_WINDOW = 32  # as far as the model sees
PAD = "<|pad|>"


def packed_tokens_in(path):
    """The windows, as lists of (token, mark)."""
    data = path.read_bytes()
    magic, version, width, count, _, window, checksum = struct.unpack_from("<8sIIQIIQ", data)
    require_equal((magic, version, width, window), (b"SLCTOKEN", 4, 2, WINDOW), "the header")
    require_equal(count % window, 0, "tokens that are in no window")
    require_equal(checksum, fnv1a(data[64:]), "the checksum")
    marks = [byte >> place & 3 for byte in data[64 + count * width:] for place in (0, 2, 4, 6)]
    tokens = list(zip(struct.unpack_from(f"<{count}H", data, 64), marks))
    return [tokens[at:at + window] for at in range(0, count, window)]


def documents_in(window):
    documents = []
    for token, mark in window:
        if mark & 2:
            documents.append([])
        documents[-1].append((token, mark & 1))
    return documents


def records(seed=4, count=150, longest=250):
    chance = random.Random(seed)
    return [made_text(chance.randrange(1, longest), seed=number) for number in range(count)]


def written(place, texts):
    path = place / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@test
def each_record_lies_whole_in_one_window_and_the_rest_is_not_learnt(place):
    tokenizer = tokenizer_of(place, special=(END, PAD))
    texts = records()
    done = made(tokenizer, written(place, texts), "-o", place / "a.tok", "--end", END, "--pack",
                WINDOW, "--pad", PAD)
    pad, end = (ids[0] for ids in encoded(tokenizer, [PAD, END]))
    wanted, cut = [], 0
    for ids in encoded(tokenizer, texts):
        ids = [*ids, end]
        cut += len(ids) > WINDOW
        wanted += [tuple(ids[at:at + WINDOW]) for at in range(0, len(ids), WINDOW)]
    found, pads = [], 0
    windows = packed_tokens_in(place / "a.tok")
    for window in windows:
        for document in documents_in(window):
            tokens = tuple(token for token, _ in document)
            if tokens[0] == pad:
                require_equal(set(document), {(pad, 0)}, "what fills a window")
                pads += len(document)
            else:
                require(all(learnt for _, learnt in document), "tokens that are not learnt")
                found.append(tokens)
    require_equal(sorted(found), sorted(wanted), "documents")
    share = pads / (len(windows) * WINDOW)
    require(0 < share < 0.1, f"{share:.1%} of the tokens fill windows")
    require_words(done.stdout, [f"{len(windows):,} windows of {WINDOW} tokens", f"{share:.1%} fill",
                                f"{cut:,} of {len(texts):,} records are longer",
                                f"documents: {len(texts):,}"], "what is said")


@test
def a_run_reads_a_packed_file_by_its_own_windows_alone(place):
    tokenizer = tokenizer_of(place)
    made(tokenizer, written(place, records()), "-o", place / "a.tok", "--end", END, "--pack",
         RUN_WINDOW)
    (place / "nano.toml").write_text(NANO_MODEL.replace("256", "400"))
    settings = {"text": "a.tok", "documents": "apart", "sample_tokens": 0}
    said = place.train("--json", steps=3, sequence=RUN_WINDOW, **settings).json()
    require(len(said["losses"]) == 3 and said["validation_loss"] > 0, f"no losses: {said}")
    place.train(output="other", sequence=RUN_WINDOW // 2, **settings).refused(
        2, ["a.tok", f"windows of {RUN_WINDOW} tokens", f"sequence = {RUN_WINDOW // 2}",
            f"set sequence = {RUN_WINDOW}"])


@test
def what_fills_a_window_has_to_be_said(place):
    tokenizer = tokenizer_of(place)
    path = written(place, records(count=5))
    refused(["--pad TOKEN"], tokenizer, path, "-o", place / "a.tok", "--no-end", "--pack", WINDOW)
    refused(["--pad: the tokenizer has no token '<pad>'"], tokenizer, path, "-o", place / "a.tok",
            "--no-end", "--pack", WINDOW, "--pad", "<pad>")


if __name__ == "__main__":
    sys.exit(main())
