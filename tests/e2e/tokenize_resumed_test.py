#!/usr/bin/env python3
"""scripts/tokenize that was killed goes on where it was with the same command; whichever way, and
by however many processes, the bytes are those of one go."""

import json
import resource
import signal
import subprocess
import sys
import time

from sluice_run import main, require, require_equal, require_words, test
from token_files import END, LIMIT_S, SCRIPT, made, refused, tokenizer_of

sys.path.insert(0, str(SCRIPT.parent))
from tokenizing.encoding import Place, pieces_of_documents
from tokenizing.progress import Progress
from tokenizing.records import TextRecords
from tokenizing.sources import documents_of

# The bytes that a file may have: a drive without room for more. A journal is smaller.
ROOM_BYTES = 900_000


def killed(output, *command):
    """Once it has written a journal."""
    journal = output.with_name(output.name + ".part-journal")
    process = subprocess.Popen([SCRIPT, *map(str, command), "-o", output],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + LIMIT_S
    while not journal.exists():
        require(process.poll() is None, "it ended before it could be killed")
        require(time.monotonic() < until, "no journal")
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    require_equal(process.wait(LIMIT_S), -signal.SIGKILL, "exit code")


def without_room(output, *command):
    """Files that grow no further stand for a full drive."""
    done = subprocess.run(
        [SCRIPT, *map(str, command), "-o", output], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, ROOM_BYTES)))
    require_equal(done.returncode, 1, "exit code")
    require_words(done.stderr, ["File too large"], "the error")


def require_same_bytes(place, cut_off, *command):
    whole = made(*command, "-o", place / "whole.tok", "--jobs", 1)
    cut_off(place / "cut.tok", *command, "--jobs", 2)
    require(not (place / "cut.tok").exists(), "it was finished")
    resumed = made(*command, "-o", place / "cut.tok", "--jobs", 2)
    require_words(resumed.stderr, ["goes on at"], "what is said")
    require((place / "cut.tok").read_bytes() == (place / "whole.tok").read_bytes(), "other bytes")
    require_equal(resumed.stdout.replace("cut.", "whole."), whole.stdout, "the report")
    require_equal([path.name for path in place.path.glob("*.part-*")], [], "parts of files")


def write_records(place, end="\n"):
    text = (place / "text.txt").read_text()
    lines = [json.dumps({"text": text[number % 700:][:200 + number % 3000]})
             for number in range(1100)]
    if end == ",":
        (place / "a.json").write_text("[" + ",\n".join(lines) + "]")
        return place / "a.json"
    (place / "a.jsonl").write_text(end.join(lines) + end)
    return place / "a.jsonl"


@test
def a_text_that_was_cut_off_goes_on(place):
    tokenizer = tokenizer_of(place)
    (place / "b.txt").write_text("Ä ß 漢字" + (place / "text.txt").read_text() * 90)
    require_same_bytes(place, killed, tokenizer, place / "b.txt")


@test
def packed_records_that_were_cut_off_go_on(place):
    tokenizer = tokenizer_of(place)
    require_same_bytes(place, without_room, tokenizer, write_records(place), place / "text.txt",
                       "--end", END, "--pack", 1024)


@test
def an_array_that_was_cut_off_goes_on_with_its_marks(place):
    tokenizer = tokenizer_of(place)
    require_same_bytes(place, without_room, tokenizer, write_records(place, ","), "--end", END,
                       "--marks")


@test
def behind_each_piece_reading_goes_on_with_the_next(place):
    text = (place / "text.txt").read_text()
    texts = ["a", text * 4, "", "\u00e4\n" * 9, text * 3 + "\u6f22", "last"]
    (place / "a.txt").write_text("\ufeff" + "\u00e4\n" * 70_000 + text * 30 + "no end" * 90_000)
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (place / "b.jsonl").write_text("\ufeff" + "\n\n".join(lines))
    (place / "c.json").write_text(" [" + "\n,\n".join(lines) + "]\n")
    sources = [(place / name, None if name == "a.txt" else TextRecords("text"))
               for name in ("a.txt", "b.jsonl", "c.json", "a.txt")]

    def pieces(start):
        documents = documents_of(sources, None, None, Progress(0, True), start)
        return list(pieces_of_documents(documents))

    def told(some):
        return [(piece.text, piece.is_begin, piece.is_end, piece.after) for piece in some]

    whole = pieces(Place())
    require(len(whole) > 20, f"{len(whole)} pieces")
    require_equal(sum(piece.is_begin for piece in whole), 12, "documents")
    for number, piece in enumerate(whole):
        require(told(pieces(piece.after)) == told(whole[number + 1:]), f"behind {piece.after}")


@test
def another_command_or_input_does_not_go_on(place):
    tokenizer = tokenizer_of(place)
    command = [tokenizer, write_records(place), "--end", END]
    without_room(place / "cut.tok", *command)
    output = ["-o", place / "cut.tok"]
    advice = ["cut.tok.part-journal", "remove", "cut.tok.part-*"]
    refused(["other options than", *advice], *command, *output, "--marks")
    refused(["other texts than", *advice], tokenizer, place / "text.txt", *command[1:], *output)
    tokenizer.write_text(tokenizer.read_text() + "\n")
    refused(["other tokenizer than", *advice], *command, *output)
    for part in place.path.glob("cut.tok.part-*"):
        part.unlink()
    made(*command, *output)


if __name__ == "__main__":
    sys.exit(main())
