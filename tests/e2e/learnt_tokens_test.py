#!/usr/bin/env python3
"""Runs that learn some of their tokens alone: the mean is over those, whichever micro-batch and
rank has them, and the ways to offload have the same bits."""

import random
import struct
import sys

from launched import RANKS, SETTINGS, three_ranks as launched
from sluice_run import main, require, require_equal, require_words, test
from token_files import fnv1a

TOKENS = 6000
WAYS = ({"method": "host", "devices": 1}, {"method": "csd", "devices": 3},
        {"overlap": "exact"}, {"activations": "offload"}, {"activations": "recompute"},
        {"parameter_tier": "storage"})


def write_tokens(path, tokens, is_learnt=None, begins=()):
    """A token file (docs/token_format.md); with marks, if it is told what is learnt. `begins` are
    the numbers of the tokens with which documents begin."""
    payload = bytes(tokens)
    version = 1
    if is_learnt is not None:
        version = 3
        marks = [0] * ((len(tokens) + 3) // 4)
        for number, learnt in enumerate(is_learnt):
            marks[number // 4] |= int(learnt) << number % 4 * 2
        for number in begins:
            marks[number // 4] |= 2 << number % 4 * 2
        payload += bytes(marks)
    header = struct.pack("<8sIIQQQQQ", b"SLCTOKEN", version, 1, len(tokens), 256, fnv1a(payload), 0,
                         0)
    path.write_bytes(header + struct.pack("<Q", fnv1a(header)) + payload)
    return path


def text_of(place):
    text = (place / "text.txt").read_bytes()[:TOKENS]
    require_equal(len(text), TOKENS, "bytes of the test's text")
    return text


def uneven(seed=5):
    """Runs of tokens that are learnt, and longer ones that are not: batches differ in how many."""
    chance = random.Random(seed)
    learnt = []
    while len(learnt) < TOKENS:
        learnt += [True] * chance.randrange(1, 30) + [False] * chance.randrange(1, 90)
    return learnt[:TOKENS]


def near(found, wanted):
    return all(abs(a - b) <= 1e-6 * abs(b) for a, b in zip(found, wanted, strict=True))


def numbers(reply):
    found = reply.json()
    return found["losses"], found["validation_loss"], found["state_digest"]


@test
def a_file_whose_tokens_are_all_learnt_is_a_file_without_marks(place):
    text = text_of(place)
    plain = place.train("--json", output="plain", steps=3,
                        text=write_tokens(place / "plain.tok", text))
    marked = place.train("--json", output="marked", steps=3,
                         text=write_tokens(place / "marked.tok", text, [True] * TOKENS))
    require_equal(numbers(marked), numbers(plain), "losses, validation and state")


@test
def the_mean_is_over_what_is_learnt_in_all_micro_batches_and_ranks(place):
    text = write_tokens(place / "some.tok", text_of(place), uneven())
    settings = {**SETTINGS, "text": text, "precision": "fp32"}
    one = place.train("--json", output="one", **{**settings, "batch": 2 * RANKS}).json()
    parts = place.train("--json", output="parts", grad_accum_steps=RANKS,
                        **{**settings, "batch": 2}).json()
    ranks = launched(place, "--json", output="ranks", **{**settings, "batch": 2}).json()
    require(near(parts["losses"], one["losses"]), f"{parts['losses']} and {one['losses']}")
    require(near(ranks["losses"], one["losses"]), f"{ranks['losses']} and {one['losses']}")


@test
def ways_to_offload_have_the_same_bits_and_so_does_a_resume(place):
    text = write_tokens(place / "some.tok", text_of(place), uneven())
    plain = numbers(place.train("--json", output="plain", steps=4, text=text))
    for number, way in enumerate(WAYS):
        found = numbers(place.train("--json", output=f"way{number}", steps=4, text=text, **way))
        require_equal(found, plain, f"losses, validation and state of {way}")
    place.train("--json", output="half", steps=2, text=text).json()
    resumed = place.train("--resume", "--json", output="half", steps=4, text=text)
    require_equal(numbers(resumed)[1:], plain[1:], "validation and state of a resume")


@test
def documents_apart_have_the_same_bits_whichever_way_and_after_a_resume(place):
    begins = sorted(random.Random(3).sample(range(TOKENS), TOKENS // 20))
    text = write_tokens(place / "some.tok", text_of(place), uneven(), begins)
    settings = {"text": text, "documents": "apart"}
    plain = numbers(place.train("--json", output="plain", steps=4, **settings))
    for number, way in enumerate(({"activations": "offload"}, {"activations": "recompute"},
                                  {"device": "soft"})):
        found = numbers(place.train("--json", output=f"way{number}", steps=4, **settings, **way))
        require_equal(found, plain, f"losses, validation and state of {way}")
    place.train("--json", output="half", steps=2, **settings).json()
    resumed = place.train("--resume", "--json", output="half", steps=4, **settings)
    require_equal(numbers(resumed)[1:], plain[1:], "validation and state of a resume")
    together = numbers(place.train("--json", output="together", steps=4, text=text))
    require(together != plain, "documents that are together have other numbers")


@test
def documents_apart_need_a_file_that_says_where_they_begin(place):
    for text in (write_tokens(place / "plain.tok", text_of(place)), place / "text.txt"):
        reply = place.train(text=text, documents="apart")
        require_equal(reply.code, 2, "exit code")
        require_words(reply.err, [text.name, "documents = apart", "--marks"], "the error")


@test
def a_file_of_which_nothing_is_learnt_is_refused(place):
    text = write_tokens(place / "none.tok", text_of(place), [False] * TOKENS)
    reply = place.train(text=text)
    require_equal(reply.code, 2, "exit code")
    require_words(reply.err, ["none.tok", "learnt"], "the error")


if __name__ == "__main__":
    sys.exit(main())
