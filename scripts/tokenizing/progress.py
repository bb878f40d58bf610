"""How far it is, for somebody who waits."""

import sys
import time


class Progress:
    """A line now and then, with the time left."""

    def __init__(self, total_bytes, quiet):
        self.total_bytes = max(1, total_bytes)
        self.done_bytes = 0
        self.first_bytes = self.first_tokens = 0  # that were done before
        self.quiet = quiet
        self.began = self.told = time.monotonic()
        self.is_terminal = sys.stderr.isatty()

    def go_on(self, done_bytes, token_count):
        """What is done so far was done earlier, in no time of this program's."""
        self.first_bytes, self.first_tokens = done_bytes, token_count
        if not self.quiet:
            print(f"tokenize: goes on at {done_bytes / self.total_bytes:.1%} of "
                  f"{self.total_bytes:,} bytes, {token_count:,} tokens", file=sys.stderr)

    def share(self):
        return min(1, self.done_bytes / self.total_bytes)

    def note(self, token_count):
        now = time.monotonic()
        if self.quiet or now - self.told < (1 if self.is_terminal else 10):
            return
        self.told = now
        share = self.share()
        done = share - self.first_bytes / self.total_bytes
        left = (now - self.began) * (1 - share) / max(done, 1e-9)
        rate = (token_count - self.first_tokens) / (now - self.began)
        line = (f"tokenize: {share:.1%} of {self.total_bytes:,} bytes, {token_count:,} tokens, "
                f"{rate:,.0f} a second, {duration(left)} left")
        print(line, end="\r" if self.is_terminal else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.is_terminal and not self.quiet:
            print(" " * 100, end="\r", file=sys.stderr)


def duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
