"""Where the state of an optimizer lies: a folder for the run, and one for each further drive."""

import os
import pathlib

from sluice._error import Error

# The rates in it are nominal: the real clock does not wait for them.
PLAIN_DRIVES = pathlib.Path(__file__).with_name("plain_drives.toml")
PLAIN_DRIVES_MOST = 64

LOG = pathlib.Path("state/commit.slc")  # in a run's folder


def state_id_in(run):
    """The random number that all files of a state have (docs/state_format.md), as text."""
    with (run / LOG).open("rb") as log:
        return log.read(32)[16:].hex()


class Folders:
    """`run` has the database, the control socket and the state; its first drive is the one that it
    lies on itself."""

    def __init__(self, state, ranks):
        places = [state] if isinstance(state, (str, os.PathLike)) else list(state)
        if not places:
            raise Error("state=[]: name a folder for each drive")
        self.places = [ranks.place(place).absolute() for place in places]
        if len(set(self.places)) != len(self.places):
            raise Error(f"state={list(map(str, places))}: a folder comes twice; each drive has its "
                        "own")
        self.given = [pathlib.Path(place).absolute() for place in places]  # by the program
        self.run = self.places[0]
        self.state = self.run / "state"

    def has_state(self):
        return (self.run / LOG).exists()

    def state_id(self):
        return state_id_in(self.run)

    def link_drives(self):
        """Drives behind the first one are symbolic links beside it."""
        for number, place in enumerate(self.places[1:], 1):
            link = self.state / f"dev{number}"
            if link.exists() or link.is_symlink():
                if link.resolve() != place.resolve():
                    raise Error(f"{link} is {link.resolve()}, and state= names {place}: name the "
                                "drives as they were named at first")
                continue
            place.mkdir(parents=True, exist_ok=True)
            self.state.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place, target_is_directory=True)
