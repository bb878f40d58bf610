"""For the tests of scripts/tokenize: a tokenizer, what it makes of texts, and what is in a token
file (docs/token_format.md).

The package tokenizers is in the environment that scripts/setup makes beside the build's own, or in
the one that SLUICE_TOKENIZERS names."""

import json
import os
import pathlib
import struct
import subprocess

from sluice_run import ROOT, Skip, require_equal, require_words

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
trainer = trainers.BpeTrainer(vocab_size=int(sys.argv[3]), special_tokens=sys.argv[4:],
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


def tokenizer_of(place, vocabulary=400, special=(END,)):
    path = place / "tokenizer.json"
    python(MAKE_TOKENIZER, place / "text.txt", path, vocabulary, *special)
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
    """Those of a file without marks, of 2 bytes each."""
    data = path.read_bytes()
    magic, version, width, count, _ = struct.unpack_from("<8sIIQQ", data)
    require_equal((magic, version, width), (b"SLCTOKEN", 1, 2), "the header")
    require_equal(len(data), 64 + count * width, "the size")
    return list(struct.unpack_from(f"<{count}H", data, 64))


def marked_tokens_in(path):
    """(token, mark) of each, of a file with marks."""
    data = path.read_bytes()
    magic, version, width, count, _, checksum = struct.unpack_from("<8sIIQQQ", data)
    require_equal((magic, version, width), (b"SLCTOKEN", 3, 2), "the header")
    packed = data[64 + count * width:]
    require_equal(len(packed), (count + 3) // 4, "bytes of the marks")
    require_equal(checksum, fnv1a(data[64:]), "the checksum")
    marks = [byte >> place & 3 for byte in packed for place in (0, 2, 4, 6)]
    require_equal(marks[count:], [0] * (len(marks) - count), "bits behind the last mark")
    return list(zip(struct.unpack_from(f"<{count}H", data, 64), marks))


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return value
