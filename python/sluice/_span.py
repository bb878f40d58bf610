"""sluice.span: a part of a program with a name, for `sluice record`."""

import contextlib
import ctypes


def _recorder():
    """The functions of the library that `sluice record` puts into a program; None without it."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "sluice_inject_range_begins"):
        return None
    library.sluice_inject_range_begins.argtypes = [ctypes.c_char_p]
    library.sluice_inject_range_begins.restype = ctypes.c_int64
    library.sluice_inject_range_ends.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    library.sluice_inject_range_ends.restype = None
    return library


_RECORDER = _recorder()


class span(contextlib.ContextDecorator):  # pylint: disable=invalid-name
    """with sluice.span("data"): ... or @sluice.span("data")

    Under `sluice record` a range of this name: what it means, the rules say (docs/recording.md);
    `--step-marker NAME` makes each of them a step. Without it nothing happens."""

    def __init__(self, name):
        self._name = str(name).encode()
        self._begins = []

    def _recreate_cm(self):
        return span(self._name.decode())

    def __enter__(self):
        if _RECORDER is not None:
            self._begins.append(_RECORDER.sluice_inject_range_begins(self._name))
        return self

    def __exit__(self, *_):
        if _RECORDER is not None:
            _RECORDER.sluice_inject_range_ends(self._name, self._begins.pop())
        return False
