"""Why there is no token file."""

import difflib


class Refusal(Exception):
    """The reason, in a sentence that names the file."""


def nearest(word, candidates):
    """The end of a message about a wrong name: the right one that is most like it, and all."""
    names = sorted(candidates)
    if not names:
        return "there is none"
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.0)
    return f"the nearest is {close[0]!r}, of {', '.join(map(repr, names[:20]))}"
