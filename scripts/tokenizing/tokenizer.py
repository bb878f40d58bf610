"""The tokenizer of a file tokenizer.json, by the Python package tokenizers."""

import contextlib
import json
import os
import pathlib
import struct
import sys

from tokenizing.refusal import Refusal
from tokenizing.token_file import fnv1a

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sluice")
ENVIRONMENT = pathlib.Path(os.environ.get("SLUICE_TOKENIZERS") or CACHE / "tokenizers")
VOCABULARY_MAGIC = b"SLCVOCAB"


def tokenizers_package():
    """The package, of this Python or of the environment that scripts/setup makes."""
    with contextlib.suppress(ImportError):
        import tokenizers
        return tokenizers
    python = ENVIRONMENT / "bin/python"
    # Not resolved: the environment's python may be a link to this one.
    if python.exists() and str(ENVIRONMENT) != sys.prefix:
        os.execv(python, [str(python), *sys.argv])
    raise Refusal("the Python package tokenizers is not here: scripts/setup installs it in "
                  f"{ENVIRONMENT}")


def load_tokenizer(path):
    package = tokenizers_package()
    try:
        tokenizer = package.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises this very class
        raise Refusal(f"{path}: no tokenizer.json that the package tokenizers "
                      f"{package.__version__} reads: {error}") from None
    # Those of models for short texts pad and cut every text to a length of theirs.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def added_tokens(tokenizer):
    """The tokens that stand for themselves wherever they are in a text."""
    return {token.content: token_id for token_id, token in
            tokenizer.get_added_tokens_decoder().items()}


def id_of(tokenizer, token, asked_by):
    token_id = tokenizer.token_to_id(token)
    if token_id is None:
        special = sorted(added_tokens(tokenizer))
        raise Refusal(f"{asked_by}: the tokenizer has no token {token!r}; its added ones are "
                      f"{', '.join(special[:20]) or 'none'}")
    return token_id


# The vocabulary file ------------------------------------------------------------------------------


def byte_of_character():
    """The byte that each character of a byte-level token stands for: printable ones stand for
    themselves, the others for 256 and up, in order."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {**{chr(byte): byte for byte in own},
            **{chr(256 + i): byte for i, byte in enumerate(others)}}


def is_byte_level(tokenizer):
    decoder = json.loads(tokenizer.to_str()).get("decoder") or {}
    return any(part.get("type") == "ByteLevel" for part in [decoder, *decoder.get("decoders", [])])


def vocabulary_file(tokenizer, vocabulary):
    """The bytes of OUT.vocab (docs/tokens.md)."""
    table = byte_of_character()
    added = {token_id: content for content, token_id in added_tokens(tokenizer).items()}
    texts = [b""] * vocabulary
    for token, token_id in tokenizer.get_vocab(with_added_tokens=True).items():
        if token_id in added:
            texts[token_id] = added[token_id].encode()
        elif all(character in table for character in token):
            texts[token_id] = bytes(table[character] for character in token)
    text = b"".join(texts)
    body = struct.pack(f"<{vocabulary}I", *map(len, texts)) + text
    return struct.pack("<8sIIQQ", VOCABULARY_MAGIC, 1, vocabulary, len(text), fnv1a(body)) + body
