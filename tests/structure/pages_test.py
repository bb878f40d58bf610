#!/usr/bin/env python3
"""Holds pages to the code where a page repeats it: tables of folders and libraries, commands,
settings, messages, names of files. Each rule is tried on a page with a breach in it before it is
put to the tree's own pages."""

import fnmatch
import pathlib
import re
import sys

from layers_test import EXEMPT, FOREIGN_OWNERS, MAY_USE
from source_tree import ROOT, Report, cpp_files, tracked_files

FILES = tracked_files(ROOT)
FOLDERS = {str(parent) for name in FILES for parent in pathlib.PurePosixPath(name).parents} - {"."}
PAGES = [name for name in FILES if name.endswith(".md")]
HERE = {folder for folder in MAY_USE if folder in FOLDERS}


def text_of(name):
    return (ROOT / name).read_text()


def table_under(text, heading):
    """Rows, each a list of cells, of the table that begins with this heading."""
    lines = iter(text.splitlines())
    for line in lines:
        if line == heading:
            break
    next(lines, None)  # the rule below the heading
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def differences(said, true, what):
    return [f"{what}: {word!r} is {how}" for words, how in (
        (said - true, "not in the code"), (true - said, "missing")) for word in sorted(words)]


# docs/architecture.md -----------------------------------------------------------------------------


def named_folder(word):
    """A folder by its name or by the end of it, if only one ends so."""
    ends = {folder for folder in HERE if folder == word or folder.endswith("/" + word)}
    return ends.pop() if len(ends) == 1 else word


def folders_of(cell):
    """What "rundb, `core/data`, what csd may, all of `core`, not gpt2" stands for."""
    found = set()
    for word in cell.replace("`", "").split(", "):
        if word.startswith("what ") and word.endswith(" may"):
            found |= MAY_USE.get(named_folder(word[5:-4]), {word})
        elif word.startswith("all of "):
            found |= {folder for folder in HERE if folder.startswith(word[7:] + "/")}
        elif word.startswith("not "):
            found.discard(named_folder(word[4:]))
        elif word != "nothing of ours":
            found.add(named_folder(word))
    return found - {"base"}


def folder_table_problems(text):
    rows = {row[0].strip("`"): row[2] for row in table_under(
        text, "| folder | what it knows | may use |")}
    problems = differences(set(rows), HERE, "folders")
    for folder in sorted(set(rows) & HERE):
        problems += differences(folders_of(rows[folder]), MAY_USE[folder] - {"base"},
                                f"what {folder} may use")
    return problems


def library_table_problems(text):
    rows = dict(table_under(text, "| library | folder that includes it |"))
    owners = {library: folders & HERE for library, _, folders in FOREIGN_OWNERS}
    problems = differences(set(rows), {*owners, "Catch2"}, "libraries")
    for library in sorted(set(rows) & set(owners)):
        cell = rows[library]
        said = (HERE - set(cell.split("`")[1::2]) if cell.startswith("everywhere but")
                else set(re.findall(r"`([^`]+)`", cell)))
        problems += differences(said, owners[library], f"folders of {library}")
    if rows.get("Catch2") != "`tests`" or "tests/" not in EXEMPT:
        problems.append("Catch2 belongs to `tests`")
    return problems


# Who contributes items to a run's memory plan.
MEMORY_ITEMS = ("core/model/compute_memory.cpp", "core/model/library/models.cpp",
                "core/offload/offload_memory.cpp", "core/plan/memory_plan.cpp")


def memory_table_problems(text):
    said = {row[0] for row in table_under(text, "| item | size |")}
    source = "".join(text_of(file) for file in MEMORY_ITEMS)
    items = re.findall(r'\{(?:fmt::format\()?"([^"]+)",', source)
    return differences(said, {item.replace("{}", "N") for item in items}, "memory plan")


def composition_problems(text):
    """The numbered steps of a run's composition are calls of TrainingRun::open, in its order."""
    section = text.split("## How a run is composed")[1].split("\n## ")[0]
    said = re.findall(r"^\d+\. `(\w+)`", section, re.MULTILINE)
    source = text_of("core/train/training_run.cpp")
    body = source.split("TrainingRun::open(")[1].split("\n}\n")[0]
    places = [body.find(name + "(") for name in said]
    problems = [f"{name} is not called by TrainingRun::open" for name, place in zip(said, places)
                if place < 0]
    if places != sorted(places):
        problems.append(f"not the order of TrainingRun::open: {', '.join(said)}")
    for name in re.findall(r"RETURN_IF_ERROR\((?:run->|plan::)?(\w+)\(", body):
        if name not in said:
            problems.append(f"{name} of TrainingRun::open is missing")
    return problems


# README.md ----------------------------------------------------------------------------------------


def command_list_problems(text):
    sentence = re.search(r"is `build/release/bin/sluice`: (.*?), each with", text, re.DOTALL)
    return differences(set(re.findall(r"`(\w+)`", sentence.group(1) if sentence else "")),
                       commands(), "commands")


# What any page names ------------------------------------------------------------------------------


def cli_source():
    return "".join(text_of(name) for name in FILES if re.fullmatch(r"(cli|gui/app)/.*\.cpp", name))


def commands():
    return set(re.findall(r'(?:add_subcommand\(|live_command\(app, exit_code,)\s*"(\w+)"',
                          cli_source()))


def command_problems(text):
    """Commands and options of command lines that begin with `sluice`."""
    known_commands = commands()
    options = set(re.findall(r"--[a-z][a-z-]*", cli_source())) | {"--help"}
    joined = text.replace("\\\n", " ")
    problems = []
    for line in re.findall(r"(?:^ *|`|\$ |bin/)sluice (\w[^`\n|]*)", joined, re.MULTILINE):
        # Behind a bare `--` stands another program's command line.
        words = re.sub(r"#.*", "", line).split(" -- ")[0].split()
        if words[0] not in known_commands:
            problems.append(f"`sluice {line}`: there is no command {words[0]}")
        problems += [f"`sluice {line}`: there is no option {word}" for word in words
                     if word.startswith("--") and word.split("=")[0] not in options]
    return problems


def setting_problems(text):
    """Keys of settings in `key=value`."""
    keys = set(re.findall(r'^    \{"(\w+)", "', text_of("core/settings/setting_table.cpp"),
                          re.MULTILINE))
    said = re.findall(r"`([a-z_]+)=[^`]*`", text) + re.findall(r"--set ([a-z_]+)=", text)
    return [f"there is no setting {key}" for key in sorted(set(said) - keys - {"key"})]


PATH = re.compile(r"(?<![\w./*-])((?:" + "|".join(sorted(
    {name.split("/")[0] for name in FILES if "/" in name and not name.startswith(".")})) +
    r")/[\w./*-]*\w)")


def path_problems(text):
    """Files and folders of the tree, in code; of several with `*` in their name at least one."""
    code = re.findall(r"`([^`]+)`", text) + re.findall(r"^    .*", text, re.MULTILINE)
    paths = {path for line in code for path in PATH.findall(line)}
    return [f"there is no {path}" for path in sorted(paths)
            if not fnmatch.filter([*FILES, *FOLDERS], path)]


def link_problems(text, folder=pathlib.PurePosixPath("docs")):
    problems = []
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target and not (ROOT / folder / target).exists():
            problems.append(f"a link to {target}, which is not there")
    return problems


# Comments of the code ----------------------------------------------------------------------------

FILE_NAME = re.compile(
    r"(?<![\w./*<-])[\w*-][\w./*-]*\.(?:h|cpp|inl|py|js|sql|sh|md|toml)\b(?![\w/])")
# Headers and pages of libraries, headers that the build makes, and names that stand for others.
NOT_OURS = re.compile(
    r"(linux|ATen|c10|doc)/.*|imgui\.h|xrt_mem\.h|(.*/)?(page|sql)_text\.h|-inl\.h|"
    r"(RUN|MODEL|X_conformance|f)\..*")
SCRIPT = re.compile(r"(^|/)(CMakeLists\.txt|run|test|\w+\.(cmake|py|sh)|scripts/\w+)$")
ENDS_OF_FILES = {"/".join(parts[first:]) for parts in (name.split("/") for name in FILES)
                 for first in range(len(parts))}


def comment_path_problems(text):
    """Files, by their path or the end of it, and paths of folders, that comments of C++ name."""
    comments = re.sub(r"\n\s*//", "", "\n".join(re.findall(r"(?:^|\s)//.*", text, re.MULTILINE)))
    named = {word for word in FILE_NAME.findall(comments) if not NOT_OURS.fullmatch(word)}
    problems = [word for word in named if word not in ENDS_OF_FILES
                and not ("*" in word and fnmatch.filter(ENDS_OF_FILES, word))]
    problems += [path for path in set(PATH.findall(comments)) - named if "." not in path
                 and not fnmatch.filter([*FILES, *FOLDERS], path)]
    return [f"there is no {word}" for word in sorted(problems)]


def script_comment_path_problems(text):
    """The same of comments that begin with #: those of CMake, Python and bash."""
    return comment_path_problems(re.sub(r"(^|\s)#(?=\s)", r"\1//", text, flags=re.MULTILINE))


# Single pages -------------------------------------------------------------------------------------


def page_list_problems(text):
    said = {re.search(r"\(([^)]+)\)", row[0]).group(1)
            for row in table_under(text, "| page | about |")}
    pages = {name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")}
    return differences(said, pages - {"reading_guide.md"}, "pages")


def message_problems(text):
    """Requests and events of the control socket."""
    source = text_of("core/control/messages.cpp")
    kinds = set(re.findall(r'\{"(\w+)", RequestKind::\w+\}', source))
    events = set(re.findall(r'(?:\{"event", |\["event"\] = )"(\w+)"', source))
    said_kinds = {row[0].strip("`") for row in table_under(
        text, "| `do` | further keys | answer, besides `id` and `ok` |")}
    said_events = {row[0].strip("`") for row in table_under(text, "| `event` | keys |")}
    return differences(said_kinds, kinds, "requests") + differences(said_events, events, "events")


RULES = [
    ("docs/architecture.md", [folder_table_problems, library_table_problems,
                              memory_table_problems, composition_problems]),
    ("README.md", [command_list_problems]),
    ("docs/reading_guide.md", [page_list_problems]),
    ("docs/control.md", [message_problems]),
]
RULES_OF_ALL = [command_problems, setting_problems, path_problems]

# A rule, a page, a change of it, and what must be said about the change.
BREACHES = [
    (folder_table_problems, "docs/architecture.md", "| base, storage/io |", "| base |",
     "what storage/state may use: 'storage/io' is missing"),
    (folder_table_problems, "docs/architecture.md", "| `base` |", "| `basement` |",
     "folders: 'basement' is not in the code"),
    (library_table_problems, "docs/architecture.md", "| liburing | `storage/io`",
     "| liburing | `storage/rundb`", "folders of liburing: 'storage/rundb' is not in the code"),
    (library_table_problems, "docs/architecture.md", "| SQLite |", "| Lmdb |",
     "libraries: 'SQLite' is missing"),
    (memory_table_problems, "docs/architecture.md", "| activations |", "| feelings |",
     "memory plan: 'activations' is missing"),
    (composition_problems, "docs/architecture.md", "`open_text`", "`load_files`",
     "load_files is not called"),
    (command_list_problems, "README.md", "`tune`", "`guess`", "commands: 'tune' is missing"),
    (page_list_problems, "docs/reading_guide.md", "(io.md)", "(oi.md)",
     "pages: 'io.md' is missing"),
    (message_problems, "docs/control.md", "| `subscribe` |", "| `listen` |",
     "requests: 'listen' is not in the code"),
    (message_problems, "docs/control.md", "| `end` |", "| `over` |", "events: 'end' is missing"),
    (command_problems, "README.md", "sluice compare", "sluice contrast",
     "there is no command contrast"),
    (command_problems, "docs/guide.md", "--platform mine.toml", "--plan mine.toml",
     "there is no option --plan"),
    (setting_problems, "README.md", "`method=csd`", "`methode=csd`", "no setting methode"),
    (path_problems, "docs/architecture.md", "`core/train/trainer.cpp`", "`core/train/coach.cpp`",
     "there is no core/train/coach.cpp"),
    (comment_path_problems, "core/settings/run_config.h", "core/train/ranks.h",
     "core/train/bands.h", "there is no core/train/bands.h"),
    (comment_path_problems, "core/settings/run_config.h", "RUN.toml says", "detail/run.toml says",
     "there is no detail/run.toml"),
    (script_comment_path_problems, "cmake/SluiceFolder.cmake", "tests/catch_main.cpp",
     "tests/patch_main.cpp", "there is no tests/patch_main.cpp"),
    (link_problems, "docs/architecture.md", "(decisions.md)", "(indecision.md)",
     "a link to indecision.md"),
]


def missed_breaches():
    missed = []
    for rule, page, old, new, expected in BREACHES:
        text = text_of(page)
        if old not in text:
            missed.append(f"{page} has no {old!r} to change")
        elif not any(expected in problem for problem in rule(text.replace(old, new))):
            missed.append(f"{rule.__name__} says nothing about {new!r} in {page}")
    return missed


def main():
    report = Report()
    report.check("planted breaches of pages are found", missed_breaches())
    for page, rules in RULES:
        problems = [problem for rule in rules for problem in rule(text_of(page))]
        report.check(f"{page} says what the code says", problems)
    for rule in RULES_OF_ALL:
        report.check(f"{rule.__name__.replace('_problems', 's')} that pages name are there",
                     [f"{page}: {problem}" for page in PAGES for problem in rule(text_of(page))])
    report.check("paths that comments name are there",
                 [f"{name}: {problem}" for name in cpp_files(ROOT)
                  for problem in comment_path_problems(text_of(name))] +
                 [f"{name}: {problem}" for name in FILES if SCRIPT.search(name)
                  for problem in script_comment_path_problems(text_of(name))])
    report.check("links of pages lead somewhere",
                 [f"{page}: {problem}" for page in PAGES for problem in
                  link_problems(text_of(page), pathlib.PurePosixPath(page).parent)])
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
