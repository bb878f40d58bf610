#!/usr/bin/env python3
"""Holds headers and classes to a size: how many of our headers one of ours brings with it, how many
public methods a class has and how many data members. A class that was larger when the rule came has
its number in a list here. It may not grow; once it is within the rule, its line must go. Each rule
is tried on headers that break it before it is put to the tree."""

import pathlib
import re
import sys
import tempfile

from source_tree import ROOT, Report, cpp_files, includes

# Whoever includes a header reads and compiles what it brings.
INCLUDES_MAX = 40
# A class with more is several. Methods count by their names: constructors and destructors not at
# all, overloads as one.
METHODS_MAX = 20
MEMBERS_MAX = 15

# Class (of header) -> public methods.
MANY_METHODS = {
    "Accelerator of soft/accelerator/accelerator.h": 40,
    "ishim of soft/smartssd/xrt_abi.h": 54,
}
# Class (of header) -> data members.
MANY_MEMBERS = {
    "ModelShape of core/model/model_shape.h": 27,
    "RunAnalysis of profiler/analyze/run_analysis.h": 23,
    "TrainReport of core/train/trainer.h": 20,
}


def product_headers(root):
    return [name for name in cpp_files(root)
            if name.endswith(".h") and not name.startswith(("tests/", "bench/"))]


# Includes -----------------------------------------------------------------------------------------


def included_counts(root):
    """Header -> how many others of ours it brings, directly or not."""
    direct = {}

    def of(name):
        if name not in direct:
            direct[name] = [path for _, path, is_ours in includes(root / name)
                            if is_ours and (root / path).is_file()]
        return direct[name]

    counts = {}
    for name in product_headers(root):
        reached = set()
        waiting = list(of(name))
        while waiting:
            header = waiting.pop()
            if header not in reached:
                reached.add(header)
                waiting.extend(of(header))
        counts[name] = len(reached - {name})
    return counts


# Classes ------------------------------------------------------------------------------------------

TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|\[\[|\]\]|[^\s\w]")
NO_MEMBER = {"using", "typedef", "friend", "static_assert", "enum"}


def tokens_of(text):
    """Without comments, literals, preprocessor lines, attributes and macros with arguments, such as
    those that say which lock guards a member."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', "0", text)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[\[.*?\]\]|\balignas\([^)]*\)|\b[A-Z][A-Z_0-9]{2,}\s*\([^()]*\)", " ", text)
    return TOKEN.findall(text)


def after_block(tokens, at):
    """The place behind the bracket that closes the one at `at`."""
    pairs = {"{": "}", "(": ")", "[": "]"}
    depth = 0
    opening, closing = tokens[at], pairs[tokens[at]]
    while True:
        depth += (tokens[at] == opening) - (tokens[at] == closing)
        at += 1
        if depth == 0 or at == len(tokens):
            return at


def after_template(tokens, at):
    """The place behind `<...>` that begins at `at`."""
    depth = 0
    while True:
        if tokens[at] in "([{":
            at = after_block(tokens, at)
            continue
        depth += (tokens[at] == "<") - (tokens[at] == ">")
        at += 1
        if depth == 0 or at == len(tokens):
            return at


class Class:
    def __init__(self, name, is_struct):
        self.name = name
        self.is_struct = is_struct
        self.public_methods = set()
        self.has_methods = False
        self.members = 0

    def is_plain_data(self):
        return self.is_struct and not self.has_methods


def class_head(tokens, at):
    """(name, place of the `{`) where a definition of a class begins at `at`, else None."""
    if tokens[at] not in ("class", "struct") or (at > 0 and tokens[at - 1] in ("enum", "<", ",")):
        return None
    name = None
    at += 1
    while at < len(tokens) and tokens[at] not in ("{", ";", "(", ")", "=", ">", ","):
        if tokens[at] == ":":
            while tokens[at] not in ("{", ";"):
                at = after_template(tokens, at) if tokens[at] == "<" else at + 1
            break
        if tokens[at] == "<":
            at = after_template(tokens, at)
            continue
        if tokens[at] not in ("final", "::"):
            name = tokens[at]
        at += 1
    return (name, at) if at < len(tokens) and tokens[at] == "{" else None


def classes_of(tokens):
    found = []
    at = 0
    while at < len(tokens):
        head = class_head(tokens, at)
        if head is None:
            at += 1
        else:
            at = read_class(tokens, head, tokens[at] == "struct", "", found)
    return found


def read_class(tokens, head, is_struct, outer, found):
    """Reads the body at head's `{` and returns the place behind it."""
    name, at = head
    one = Class(f"{outer}{name}", is_struct)
    found.append(one)
    is_public = is_struct
    at += 1
    while tokens[at] != "}":
        if tokens[at] in ("public", "private", "protected") and tokens[at + 1] == ":":
            is_public = tokens[at] == "public"
            at += 2
            continue
        nested = class_head(tokens, at)
        if nested is not None:
            at = read_class(tokens, nested, tokens[at] == "struct", f"{one.name}::", found)
            # `struct {...} member;` has a member behind it, which the loop reads.
            continue
        at = read_declaration(tokens, at, one, is_public)
    return at + 1


def read_declaration(tokens, at, one, is_public):
    """Counts what is declared at `at` and returns the place behind it."""
    begin = at
    if tokens[at] == ";":
        return at + 1
    if tokens[at] == "template":
        at = begin = after_template(tokens, at + 1)
    is_method = is_initialized = has_list = False
    commas = 0
    while tokens[at] != ";":
        token = tokens[at]
        if token == "operator":
            is_method = True
            at += 1
            while tokens[at] != "(":
                at += 1
            if tokens[at + 1] == ")" and tokens[at + 2] == "(":  # operator()()
                at += 2
        elif token == "<" and not is_initialized and not is_method:
            at = after_template(tokens, at)
        elif token == "(":
            is_pointer = tokens[at + 1] == "*" and not is_method
            is_method = is_method or (not is_initialized and not is_pointer)
            at = after_block(tokens, at)
            if is_pointer:  # a pointer to a function: its arguments follow
                at = after_block(tokens, at)
        elif token == "{":
            is_list_item = has_list and re.match(r"\w|>", tokens[at - 1])
            at = after_block(tokens, at)
            if is_method and not is_initialized and not is_list_item:
                return counted(tokens[begin:at], at, one, is_public, True, 0)
        else:
            has_list = has_list or (token == ":" and is_method)
            is_initialized = (is_initialized or token == "=") and token != ","
            commas += token == "," and not is_method
            at += 1
    return counted(tokens[begin:at], at + 1, one, is_public, is_method, commas)


def counted(words, after, one, is_public, is_method, commas):
    if not words or words[0] in NO_MEMBER:
        return after
    if not is_method:
        is_of_class = "static" in words or (words[0] == "constexpr")
        one.members += 0 if is_of_class else 1 + commas
        return after
    if "operator" in words:
        at = words.index("operator")
        name = "".join(words[at:words.index("(", at + 2)])
    else:
        name = words[words.index("(") - 1]
    if name != one.name.split("::")[-1] and words[-2:] != ["=", "delete"]:
        one.has_methods = True
        if is_public:
            one.public_methods.add(name)
    return after


def class_counts(root):
    """(public methods, data members), each by "Class of header", of what is not plain data."""
    methods, members = {}, {}
    for name in product_headers(root):
        for one in classes_of(tokens_of((root / name).read_text())):
            if one.is_plain_data():
                continue
            methods[f"{one.name} of {name}"] = len(one.public_methods)
            members[f"{one.name} of {name}"] = one.members
    return methods, members


# The rule -----------------------------------------------------------------------------------------


def problems_of(counts, most, excepted, what):
    problems = []
    for name, count in sorted(counts.items()):
        if count > excepted.get(name, most):
            problems.append(f"{name}: {count} {what}, {excepted.get(name, most)} at most")
        elif name in excepted and count <= most:
            problems.append(f"{name}: {count} {what} are within the rule: take its line out of "
                            "house_test.py")
        elif count < excepted.get(name, 0):
            problems.append(f"{name}: {count} {what} now, not {excepted[name]}: lower its number "
                            "in house_test.py")
    problems += [f"{name} is not there: take its line out of house_test.py"
                 for name in sorted(set(excepted) - set(counts))]
    return problems


PLANTED_CLASS = """#pragma once
enum class Kind { one, two };
template <class T, class U>
class Wide final : public Base<T, 2> {
 public:
  explicit Wide(int a) : a_(a), b_{2} { run(); }
  Wide(const Wide&) = delete;
  ~Wide() override;
  bool operator==(const Wide&) const = default;
  void run(int x = 3, Options o = {}) const { if (x) { stop(); } }
  void run(double x);
  void operator()() const;
  std::function<void(int)> taken() const;
  template <typename V> V as(V v);
  static int made();
  using Number = int;
  struct Plain { int x = 0, y; std::vector<int> z; };

 private:
  void stop();
  static constexpr int kMost = 3;
  int a_ = 0, c_;
  std::function<void(int, int)> use_ = {};
  int b_{0};
  Mutex mutex_;
  int guarded_ GUARDED_BY(mutex_) = 0;
  void (*pointer_)(int) = nullptr;
};
"""


def unfound_plants():
    """What the rules miss, and what they blame without a reason."""
    with tempfile.TemporaryDirectory(prefix="sluice-house-") as scratch:
        root = pathlib.Path(scratch)
        (root / "base").mkdir()
        for number in range(4):
            (root / f"base/h{number}.h").write_text(
                f'#include "base/h{number - 1}.h"\n#include <vector>\n' if number else "")
        (root / "base/wide.h").write_text(PLANTED_CLASS)
        methods, members = class_counts(root)
        found = [
            (included_counts(root)["base/h3.h"], 3, "includes"),
            (methods, {"Wide of base/wide.h": 6}, "public methods"),
            (members, {"Wide of base/wide.h": 7}, "data members"),
            (len(problems_of({"a": 4}, 3, {}, "x")), 1, "too many"),
            (len(problems_of({"a": 3}, 3, {}, "x")), 0, "just enough"),
            (len(problems_of({"a": 4}, 3, {"a": 4}, "x")), 0, "excepted"),
            (len(problems_of({"a": 5}, 3, {"a": 4}, "x")), 1, "grown"),
            (len(problems_of({"a": 4}, 3, {"a": 5}, "x")), 1, "shrunk"),
            (len(problems_of({"a": 3}, 3, {"a": 4}, "x")), 1, "within the rule"),
            (len(problems_of({}, 3, {"a": 4}, "x")), 1, "gone"),
        ]
        return [f"{what}: {count} in place of {expected}" for count, expected, what in found
                if count != expected]


def main():
    report = Report()
    report.check("planted headers and classes are counted", unfound_plants())
    report.check(f"no header brings more than {INCLUDES_MAX} others of ours",
                 problems_of(included_counts(ROOT), INCLUDES_MAX, {}, "headers"))
    methods, members = class_counts(ROOT)
    report.check(f"no class has more than {METHODS_MAX} public methods",
                 problems_of(methods, METHODS_MAX, MANY_METHODS, "public methods"))
    report.check(f"no class has more than {MEMBERS_MAX} data members",
                 problems_of(members, MEMBERS_MAX, MANY_MEMBERS, "data members"))
    return report.exit_code()


if __name__ == "__main__":
    sys.exit(main())
