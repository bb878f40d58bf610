#!/usr/bin/env python3
"""A resume that has no step to take leaves the record of the run as it was."""

import hashlib
import sys

from sluice_run import database, main, require, require_equal, require_words, sluice, test


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


@test
def a_resume_that_learns_otherwise_says_so_and_records_it(place):
    place.train("--steps", 4).done()
    said = place.train("--resume", "--steps", 6, lr=1e-3, batch=4, buffers=2).done().out
    require_words(said, ["lr was 0.003, is 0.001 from step 5 on",
                         "batch was 2, is 4 from step 5 on"], "stdout")
    require("buffers was" not in said, f"what decides no number is told: {said}")
    with database(place / "out/run.db") as db:
        rows = db.execute("SELECT step_id, name, old, new, who, safe_point FROM knob_change "
                          "JOIN knob ON knob.id = knob_id ORDER BY name").fetchall()
    require_equal(rows, [(4, "batch", "2", "4", "resume", "resume"),
                         (4, "buffers", "3", "2", "settings", "step"),
                         (4, "lr", "0.003", "0.001", "resume", "resume")], "knob_change")
    shown = sluice("show", place / "out", "--json").json()["knob_changes"]
    require((5, "lr") in [(change["step"], change["knob"]) for change in shown], f"show: {shown}")
    # A run like it has what the run had last.
    like = sluice("train", "--like", place / "out/run.db", "--json", "--steps", 1,
                  "--set", f"output={place / 'like'}", cwd=place.path).json()
    require_equal(like["steps"], 1, "steps of a run like it")
    with open(place / "text.txt", "a", encoding="utf-8") as text:
        text.write("and so on\n")
    place.train("--resume", "--steps", 8).refused(2, ["out/state", "appended", "head -c 20000"])


if __name__ == "__main__":
    sys.exit(main())
