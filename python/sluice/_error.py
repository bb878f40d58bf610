"""The exception of the package."""


class Error(RuntimeError):
    """What Sluice refuses or could not do, and what to do about it, as a sentence. `code` is one of
    config, not_found, busy, unsupported, memory, io, no_space, corrupt, cancelled, diverged and
    internal."""

    def __init__(self, message, code="config"):
        super().__init__(message)
        self.code = code
