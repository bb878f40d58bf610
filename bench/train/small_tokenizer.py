#!/usr/bin/env python3
"""A tokenizer of few tokens (byte-level BPE), so that a small model can learn tokens.

    PYTHON bench/train/small_tokenizer.py out/data/kjv.txt 2048 out/data/kjv-2048.json
    scripts/tokenize out/data/kjv-2048.json out/data/kjv.txt -o out/data/kjv-2048.tok --no-end

PYTHON is one with `tokenizers`: ~/.cache/sluice/tokenizers/bin/python, which scripts/setup makes.
"""
import sys

import tokenizers


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    text, size, out = sys.argv[1:]
    made = tokenizers.ByteLevelBPETokenizer()
    made.train([text], vocab_size=int(size), min_frequency=2, show_progress=False)
    made.save(out)
    print(f"{out}: {made.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
