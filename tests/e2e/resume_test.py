#!/usr/bin/env python3
"""A resume that has no step to take leaves the record of the run as it was."""

import hashlib
import sys

from sluice_run import main, require_equal, require_words, test


def files_of(database):
    """A digest of the run database and of all that lies beside it under its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in database.parent.glob(database.name + "*")}


@test
def a_resume_with_nothing_to_do_leaves_the_database_as_it_was(place):
    place.train("--steps", 6).done()
    database = place / "out/run.db"
    before = files_of(database)
    digest = place.digest()
    for flags, settings in ((["--steps", 4], {}), (["--steps", 6], {}),
                            (["--steps", 3], {"method": "host", "density": 0.5})):
        said = place.train("--resume", *flags, **settings).done().out
        require_words(said, ["Nothing to do", "step 6", "--steps"], "stdout")
        require_equal(files_of(database), before, f"files after {flags} {settings}")
        json = place.train("--resume", "--json", *flags, **settings).json()
        require_equal((json["steps"], json["first_step"], json["losses"], json["state_digest"]),
                      (6, 6, [], digest), "what --json says")
        require_equal(files_of(database), before, f"files after {flags} {settings} with --json")
    # One that has something to do goes on in the same database.
    place.train("--resume", "--steps", 7).done()
    require_equal(files_of(database) == before, False, "a seventh step left no record")


if __name__ == "__main__":
    sys.exit(main())
