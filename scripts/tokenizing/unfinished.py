"""A token file that is not finished: beside its name lie its tokens (.part-tokens), their marks
(.part-marks) and a journal (.part-journal), from which the same command goes on.

The journal says what the tokens depend on, at which place of the inputs to go on, and what is in
memory there. It is replaced as a whole, once the tokens that it counts are on the drive; what lies
behind them is written again."""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time

from tokenizing.refusal import Refusal

JOURNAL_VERSION = 1
JOURNAL_SECONDS = 2  # from one to the next; the first one is written at once


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def facts_of(paths):
    """What tells whether files are still the same."""
    found = [(path, path.stat()) for path in paths]
    return [[os.path.abspath(path), fact.st_size, fact.st_mtime_ns] for path, fact in found]


def can_be_read_again(paths):
    return all(stat.S_ISREG(path.stat().st_mode) for path in paths)


def sync(file):
    file.flush()
    os.fdatasync(file.fileno())


class Unfinished:
    """One process has it at a time. `identity` is what the tokens depend on, by name; None where
    the inputs cannot be read again: then there is no journal."""

    def __init__(self, output, identity):
        self.output = output
        self.identity = identity and json.loads(json.dumps(identity))  # as it is read back
        self.tokens_path, self.marks_path, self.journal_path, self.new_path = (
            output.with_name(f"{output.name}.part-{part}") for part in
            ("tokens", "marks", "journal", "journal-new"))
        self.files = ()
        self.has_journal = False
        self.noted = time.monotonic()

    @contextlib.contextmanager
    def opened(self):
        """(file of tokens, file of marks, state to go on from or None). In the end the tokens have
        their name, or there is something to go on from, or nothing."""
        with open(os.open(self.tokens_path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as tokens:
            self.lock(tokens)
            state = self.read_journal(tokens)
            self.has_journal = state is not None
            try:
                with open(self.marks_path, "r+b" if state else "w+b") as marks:
                    self.files = (tokens, marks)
                    yield tokens, marks, state
                    sync(tokens)
                os.replace(self.tokens_path, self.output)
            except Refusal:
                self.remove()
                raise
            except BaseException:
                if not self.has_journal:
                    self.remove()
                raise
            self.remove()

    def lock(self, tokens):
        with contextlib.suppress(OSError):
            # This process alone has it, and none that it begins.
            fcntl.lockf(tokens, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(tokens.fileno()), self.tokens_path.stat()):
                return
        raise Refusal(f"{self.output}: another scripts/tokenize is writing it")

    def read_journal(self, tokens):
        # Without tokens it is of a file that was finished.
        if not self.journal_path.exists() or os.fstat(tokens.fileno()).st_size == 0:
            return None
        advice = (f"go on with what it was begun with, or remove {self.output}.part-* to begin "
                  "anew")
        try:
            journal = json.loads(self.journal_path.read_bytes())
            known, state = journal["identity"], journal["state"]
            version = journal["version"]
        except (ValueError, KeyError, TypeError):
            raise Refusal(f"{self.journal_path}: is no journal of scripts/tokenize; {advice}"
                          ) from None
        if version != JOURNAL_VERSION:
            raise Refusal(f"{self.journal_path}: is of version {version}, and this program's are "
                          f"of version {JOURNAL_VERSION}; {advice}")
        now = self.identity or {}
        other = [name for name in known if known[name] != now.get(name)]
        if other:
            raise Refusal(f"{self.journal_path}: what was begun has other {', '.join(other)} than "
                          f"what was named now; {advice}")
        return state

    def note(self, state):
        """Writes a journal where it is time for one; `state` makes what it says."""
        is_due = not self.has_journal or time.monotonic() - self.noted >= JOURNAL_SECONDS
        if self.identity is None or not is_due:
            return
        for file in self.files:
            sync(file)
        with open(self.new_path, "w", encoding="utf-8") as file:
            json.dump({"version": JOURNAL_VERSION, "identity": self.identity, "state": state()},
                      file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.new_path, self.journal_path)
        self.has_journal = True
        self.noted = time.monotonic()

    def remove(self):
        for path in (self.journal_path, self.new_path, self.marks_path, self.tokens_path):
            path.unlink(missing_ok=True)
