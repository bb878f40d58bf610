"""How far it is, for somebody who waits."""

import sys
import time


class Progress:
    """A line now and then, with the time left."""

    def __init__(self, total_bytes, quiet):
        self.total_bytes = max(1, total_bytes)
        self.done_bytes = 0
        self.quiet = quiet
        self.began = self.told = time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def note(self, token_count):
        now = time.monotonic()
        if self.quiet or now - self.told < (1 if self.is_terminal else 10):
            return
        self.told = now
        share = min(1, self.done_bytes / self.total_bytes)
        left = (now - self.began) * (1 - share) / max(share, 1e-9)
        line = (f"tokenize: {share:.1%} of {self.total_bytes:,} bytes, {token_count:,} tokens, "
                f"{token_count / (now - self.began):,.0f} a second, {duration(left)} left")
        print(line, end="\r" if self.is_terminal else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.is_terminal and not self.quiet:
            print(" " * 100, end="\r", file=sys.stderr)


def duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
