#!/usr/bin/env python3
"""What a model writes may be any bytes: the terminal sees them escaped, and --json stays JSON."""

import subprocess
import sys

from sluice_run import SLUICE, main, require, require_equal, require_words, test

ALLOWED = {0x09, 0x0A}


@test
def bytes_that_a_model_writes_do_not_reach_the_terminal_as_they_are(place):
    # Every byte value, so that a model which has learnt little writes every kind.
    (place / "text.txt").write_bytes(bytes(i * 167 % 256 for i in range(20_000)))
    arguments = place.arguments("--steps", 2, sample_tokens=400, temperature=1)
    done = subprocess.run([SLUICE, *map(str, arguments)], cwd=place.path, capture_output=True,
                          check=False, timeout=600)
    require_equal(done.returncode, 0, f"exit code ({done.stderr[-300:]!r})")
    out = done.stdout
    require(b"The model writes:\n" in out, f"no text: {out[-400:]!r}")
    text = out.decode()  # strict: valid UTF-8
    raw = sorted({ord(c) for c in text if (ord(c) < 0x20 and ord(c) not in ALLOWED)
                  or 0x7F <= ord(c) < 0xA0})
    require_equal(raw, [], "control characters on stdout")
    require_words(text.split("The model writes:")[1], ["\\x"], "the text")


@test
def json_with_such_a_text_is_json(place):
    (place / "text.txt").write_bytes(bytes(i * 167 % 256 for i in range(20_000)))
    said = place.train("--steps", 2, "--json", sample_tokens=400, temperature=1).json()
    require(len(said["sample"]) > 100, f"no text: {said.get('sample')!r}")


if __name__ == "__main__":
    sys.exit(main())
