#!/usr/bin/env python3
"""One word a concept: base/words.h has it, the window, the page and the terminal take it from
there, and pages say it as it stands there. What a concept is not called stands behind its word; a
phrase of several words that is written out again where the constant belongs is a stray, too. Strays
are planted to show that they are found."""

import pathlib
import re
import sys

from source_tree import ROOT, Report, tracked_files

WORDS = "base/words.h"
SURFACES = ("gui/", "cli/", "profiler/", "core/")
PAGE = ("profiler/report/html/",)
# Pages may use the words in another meaning; decisions tell of what was before.
PAGES_EXEMPT = ("docs/decisions.md", "docs/style.md")

# Sentences that first readers misunderstood, and what is said in their place.
MENDED = {
    "the time in which they could": "Overlap: N % of ... that could run in parallel did",
    "it counts from where the updates": "Forward starts counting when the previous updates end",
    "let it take a few more": "no complete step since the resume; predictions need 4",
    "the others need it": "needed by the other changes",
    "as the platform file says, for no step": "Not measured by this run, taken from the ...",
    "rates that the steps tell": "Rates measured in this run",
    "found span before": "Previous match",
    "fit the step in the middle": "Fit the step under the centre",
    "take it back if": "revert if",
    "taken back by the run": "reverted by the run",
    "what is chosen": "the pending changes",
    "a run that goes on": "a live run",
    "the run went on;": "since the resume",
}

CONSTANT = re.compile(r'inline constexpr const char\* (k\w+) =\s*"([^"]+)";(?:\s*// not (.*))?')


def words(text):
    """name -> (word, what it is not called)."""
    found = {}
    for match in CONSTANT.finditer(text):
        found[match.group(1)] = (match.group(2), re.findall(r'"([^"]+)"', match.group(3) or ""))
    return found


def forbidden(known):
    """(finder, phrase, what is said in its place): a concept's other names as they are written, the
    sentences in any case."""
    names = [(re.compile(re.escape(other)), other, word)
             for word, others in known.values() for other in others]
    return names + [(re.compile(re.escape(phrase), re.IGNORECASE), phrase, instead)
                    for phrase, instead in MENDED.items()]


def without_comments(text):
    return re.sub(r"^\s*//.*$|(?<=[;{},)])\s*//.*$", "", text, flags=re.MULTILINE)


def literals(text):
    """(line, text) of the string literals; those that only a line end parts are one."""
    code = without_comments(text)
    code = re.sub(r"#include[^\n]*", "", code)
    joined = re.sub(r'"(\s*)"', lambda gap: gap.group(1) if "\n" in gap.group(1) else gap.group(0),
                    code)
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"', joined):
        yield joined.count("\n", 0, match.start()) + 1, re.sub(r"\s+", " ", match.group(1))


def strays_of_code(name, text, known):
    phrases = forbidden(known)
    written_out = {word: constant for constant, (word, _) in known.items() if " " in word}
    for line, said in literals(text):
        for finder, phrase, instead in phrases:
            if finder.search(said):
                yield f"{name}:{line}: says {phrase!r} for {instead!r}"
        if said in written_out:
            yield f"{name}:{line}: writes {said!r} out; it is words::{written_out[said]}"


def strays_of_text(name, text, known):
    for finder, phrase, instead in forbidden(known):
        if finder.search(re.sub(r"\s+", " ", text)):
            yield f"{name}: says {phrase!r} for {instead!r}"


def strays(root):
    known = words((root / WORDS).read_text())
    found = []
    for name in tracked_files(root):
        if name == WORDS or name.startswith("hls/"):
            continue
        if name.startswith(SURFACES) and name.endswith((".cpp", ".h")):
            found += strays_of_code(name, (root / name).read_text(), known)
        elif name.startswith(PAGE) and name.endswith((".js", ".html")):
            text = (root / name).read_text()
            found += strays_of_text(name, without_comments(text), known)
            found += [f"{name}: writes {word!r} out; it is words::{constant}"
                      for constant, (word, _) in known.items()
                      if " " in word and f">{word}" in text]
        elif name.endswith(".md") and name not in PAGES_EXEMPT:
            found += strays_of_text(name, (root / name).read_text(), known)
    return found


def unused(root, known):
    """A word that nobody takes is none of the surfaces'."""
    text = "".join((root / name).read_text() for name in tracked_files(root)
                   if name.startswith(("gui/", "cli/", "profiler/"))
                   and name.endswith((".cpp", ".h")))
    return [f"words::{name} is taken by nobody" for name in known if f"words::{name}" not in text]


def views_missing(root, known):
    """Every view has its row in docs/gui.md, by its word."""
    page = (root / "docs/gui.md").read_text()
    views = set()
    for name in tracked_files(root):
        if name.startswith("gui/views/") and name.endswith("_view.cpp"):
            views |= set(re.findall(r"View\(words::(k\w+)\)", (root / name).read_text()))
    return ([] if len(views) > 8 else [f"found only the views {sorted(views)}"]) + [
        f"docs/gui.md does not name {known[view][0]!r}" for view in sorted(views)
        if known[view][0] not in page]


# A file with a stray in it, and what has to be said of it.
PLANTED = [
    ("gui/views/planted.cpp", 'draw_title("What to turn next");', "What to turn next"),
    ("gui/views/planted.cpp", 'draw_title("Where the time went");', "words::kPhases"),
    ("cli/planted.cpp", 'print("bandwidth while "\n      "it moves\\n");', "while it moves"),
    ("profiler/report/html/planted.html", "<h2>How steps divide</h2>", "how steps divide"),
    ("profiler/report/html/planted.html", "<h2>Turn next</h2>", "words::kTurnNext"),
    ("docs/planted.md", "The view *Losses and\nfacts* lists them.", "losses and facts"),
]


def missed(known):
    for name, text, said in PLANTED:
        of = (strays_of_code if name.endswith(".cpp") else strays_of_text)(name, text, known)
        found = list(of)
        if name.endswith(".html"):
            found += [constant for constant, (word, _) in known.items() if f">{word}" in text]
        if not any(said.lower().removeprefix("words::") in one.lower() for one in found):
            yield f"{text!r}: {said!r} is not found in {found}"


def main():
    report = Report()
    known = words((ROOT / WORDS).read_text())
    report.check("the list of words has its rows",
                 [] if len(known) > 20 and any(others for _, others in known.values())
                 else [f"found {known}"])
    report.check("planted strays are found", list(missed(known)))
    report.check("a comment and a word inside a sentence are none",
                 [*strays_of_code("a.cpp", '// What to turn next\nf(words::kTurnNext);\n'
                                  'f("The view Where the time went.");', known)])
    report.check("each concept has one word", strays(ROOT))
    report.check("each word is taken by a surface", unused(ROOT, known))
    report.check("docs/gui.md names the views as they are called", views_missing(ROOT, known))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
