#!/usr/bin/env python3
"""Says what Vitis HLS would refuse in the kernels, or would make slow without a word: `file:line:
[name] what is wrong`. No vendor tool is needed. Exit code 1 if anything was found.

It stands in for a synthesis only in part: it knows rules, not timing. The pragmas and their options
are those of UG1399 (2021.2 to 2023.1), "HLS Pragmas"."""

import pathlib
import re
import sys
import tomllib

from hls_source import (IDENTIFIER, Loop, Plain, Pragma, Sources, Unreadable, is_template_bracket,
                        parameter_name, split, text_of)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = "hls/link/kernels.toml"

# Pragma -> its options with a value, its words without one. UG1399 writes `type=complete` and, from
# before 2021, plain `complete`; v++ takes both.
PRAGMAS = {
    "aggregate": ({"variable", "compact"}, set()),
    "alias": ({"ports", "distance", "offset"}, set()),
    "allocation": ({"instances", "limit"}, {"function", "operation"}),
    "array_partition": ({"variable", "type", "factor", "dim"}, {"complete", "block", "cyclic"}),
    "array_reshape": ({"variable", "type", "factor", "dim"},
                      {"complete", "block", "cyclic", "object"}),
    "bind_op": ({"variable", "op", "impl", "latency"}, set()),
    "bind_storage": ({"variable", "type", "impl", "latency"}, set()),
    "dataflow": (set(), {"disable_start_propagation"}),
    "dependence": ({"variable", "class", "type", "direction", "distance", "dependent"},
                   {"array", "pointer", "inter", "intra", "raw", "war", "waw", "true", "false"}),
    "disaggregate": ({"variable"}, set()),
    "expression_balance": (set(), {"off"}),
    "function_instantiate": ({"variable"}, set()),
    "inline": (set(), {"off", "recursive"}),
    "interface": ({"mode", "port", "bundle", "offset", "depth", "latency", "name", "register",
                   "max_read_burst_length", "max_write_burst_length", "num_read_outstanding",
                   "num_write_outstanding", "max_widen_bitwidth", "channel", "storage_impl",
                   "storage_type"},
                  {"m_axi", "s_axilite", "ap_ctrl_chain", "ap_ctrl_hs", "ap_ctrl_none"}),
    "latency": ({"min", "max"}, set()),
    "loop_flatten": (set(), {"off"}),
    "loop_merge": (set(), {"force"}),
    "loop_tripcount": ({"min", "max", "avg"}, set()),
    "occurrence": ({"cycle"}, set()),
    "pipeline": ({"ii", "style"}, {"off", "rewind"}),
    "reset": ({"variable"}, {"off"}),
    "stable": ({"variable"}, set()),
    "stream": ({"variable", "depth", "type"}, {"off"}),
    "top": ({"name"}, set()),
    "unroll": ({"factor", "skip_exit_check"}, {"off", "off=true"}),
}

INCLUDES = {"hls_vector.h", "hls_stream.h", "cstdint", "cstddef"}
STD_NAMES = re.compile(r"u?int(8|16|32|64)_t|size_t")

# Word -> name of the error, and why.
WORDS = {
    **dict.fromkeys(("new", "delete", "malloc", "calloc", "realloc", "free", "alloca"),
                    ("heap", "a device has none")),
    "virtual": ("virtual", "there are no tables of functions"),
    **dict.fromkeys(("throw", "try", "catch"), ("exception", "nothing could unwind")),
    **dict.fromkeys(("dynamic_cast", "typeid"), ("rtti", "types are gone by then")),
    **dict.fromkeys(("printf", "fprintf", "puts", "fopen", "fclose", "fread", "fwrite", "exit",
                     "abort", "system", "getenv", "time", "clock", "sleep", "usleep", "assert"),
                    ("system-call", "there is no system under a kernel")),
    **dict.fromkeys(("co_await", "co_yield", "co_return", "requires", "concept", "consteval",
                     "constinit", "thread_local", "volatile", "asm"),
                    ("language", "not of the C++14 that Vitis HLS takes, or not for kernels")),
    "double": ("double", "what it costs on the fabric is not meant: bits are in 64-bit integers"),
}


class Lint:
    def __init__(self, sources, table):
        self.sources = sources
        self.table = table
        self.found = []

    def say(self, file, line, name, what):
        self.found.append(f"{file}:{line}: [{name}] {what}")

    def run(self):
        for source in self.sources.files:
            self.includes(source)
            self.words(source)
        for file, pragma in self.sources.stray_pragmas:
            self.pragma(file, pragma)
            self.say(file, pragma.line, "stray-pragma", "a pragma outside of a function's body")
        for function in self.sources.functions:
            self.function(function)
        for function in self.sources.tops():
            self.interface(function)
        self.recursion()
        self.linking()
        return sorted(set(self.found), key=place)

    # What may not be there at all ----------------------------------------------------------------

    def includes(self, source):
        for line, name, is_quoted in source.includes:
            is_own = is_quoted and name.startswith(self.sources.folder + "/")
            if not is_own and (is_quoted or name not in INCLUDES):
                self.say(source.name, line, "include", f"{name}: only {self.sources.folder} and "
                         f"{', '.join(sorted(INCLUDES))} are there for v++")

    def words(self, source):
        tokens = source.tokens
        for at, token in enumerate(tokens):
            if isinstance(token, Pragma):
                continue
            after = tokens[at + 1] if at + 1 < len(tokens) else ""
            if token in WORDS and not (token == "delete" and tokens[at - 1] == "="):
                name, why = WORDS[token]
                self.say(source.name, token.line, name, f"{token}: {why}")
            if token == "std" and after == "::" and not STD_NAMES.fullmatch(tokens[at + 2]):
                self.say(source.name, token.line, "std",
                         f"std::{tokens[at + 2]}: of the library only the integers are for kernels")
            if token == "(" and after == "*" and tokens[at + 3:at + 5] == [")", "("] \
                    and IDENTIFIER.match(tokens[at - 1]):
                self.say(source.name, token.line, "function-pointer",
                         f"{tokens[at + 2]}: what is called must be known")

    # Pragmas -------------------------------------------------------------------------------------

    def pragma(self, file, pragma):
        if not pragma.kind or pragma.kind not in PRAGMAS:
            self.say(file, pragma.line, "unknown-pragma", f"#pragma {pragma.text}")
            return
        options, words = PRAGMAS[pragma.kind]
        wrong = sorted(set(pragma.options) - options) + sorted(set(pragma.words) - words)
        for word in wrong:
            self.say(file, pragma.line, "unknown-option", f"{word} of #pragma HLS {pragma.kind}")
        if pragma.kind == "dependence" and pragma.words and \
                set(pragma.options) & {"class", "type", "direction", "dependent"}:
            self.say(file, pragma.line, "two-forms", f"{' '.join(pragma.words)} beside "
                     "`key=value`: the manual has the one form or the other")

    # Functions and loops -------------------------------------------------------------------------

    def function(self, function):
        for item in function.body.walk():
            if isinstance(item, Pragma):
                self.pragma(function.file, item)
            elif isinstance(item, Loop):
                self.loop(function, item)
            elif isinstance(item, Plain):
                self.array(function, item.tokens)
        self.divisions(function)
        labels = [loop.label for loop in function.body.loops() if loop.label]
        for label in sorted({str(each) for each in labels if labels.count(each) > 1}):
            self.say(function.file, function.line, "label-twice",
                     f"{label} names two loops of {function.name}")
        for pragma in function.pragmas("pipeline"):
            self.pipeline(function, pragma)
        if function.pragmas("dataflow"):
            self.dataflow(function)

    def pipeline(self, function, pragma):
        if "ii" not in pragma.options and "off" not in pragma.words:
            self.say(function.file, pragma.line, "pipeline-without-ii",
                     "say which II is meant: what is not met is then an error and not slow")

    def loop(self, function, loop):
        where = (function.file, loop.line)
        if not loop.label:
            self.say(*where, "unlabelled-loop", f"a loop of {function.name} has no name in reports")
        pipeline = loop.pragma("pipeline")
        if pipeline:
            self.pipeline(function, pipeline)
        tripcount = loop.pragma("loop_tripcount")
        if tripcount and not {"min", "max"} <= set(tripcount.options):
            self.say(function.file, tripcount.line, "tripcount",
                     "loop_tripcount says min and max")
        if not tripcount and not self.is_bounded(function, loop):
            self.say(*where, "unbounded-loop", f"{loop.label or 'a loop'}: neither a constant "
                     "bound nor a loop_tripcount")
        unroll = loop.pragma("unroll")
        if unroll and "factor" not in unroll.options and not self.is_bounded(function, loop):
            self.say(function.file, unroll.line, "unbounded-unroll",
                     f"{loop.label or 'a loop'}: how many copies?")

    def is_bounded(self, function, loop):
        """`for (int i = A; i < B; ...)` with constants A and B, and a count that is not beyond
        all."""
        if loop.kind != "for":
            return False
        parts = split(loop.header, ";")
        if len(parts) != 3 or "=" not in parts[0]:
            return False
        first = parts[0][parts[0].index("=") + 1:]
        condition = parts[1]
        sign = next((t for t in condition if t in ("<", "<=", ">", ">=", "!=")), None)
        if sign is None:
            return False
        at = condition.index(sign)
        templates = function.templates
        return (self.sources.is_constant(first, templates)
                and self.sources.is_constant(condition[at + 1:], templates)
                and [str(t) for t in condition[:at]] == [str(parts[0][parts[0].index("=") - 1])])

    def array(self, function, tokens):
        """`type name[n]` needs a constant n."""
        if "[" not in tokens:
            return
        at = tokens.index("[")
        declared = tokens[:at]
        is_declaration = (len(declared) >= 2 and IDENTIFIER.match(declared[-1])
                          and (IDENTIFIER.match(declared[-2]) or declared[-2] == ">")
                          and declared[0] not in ("return", "delete", "else")
                          and not set(declared) & {"=", "(", "."})
        if is_declaration:
            size = tokens[at + 1:tokens.index("]", at)]
            if size and not self.sources.is_constant(size, function.templates):
                self.say(function.file, tokens[at].line, "variable-length",
                         f"{declared[-1]}[{text_of(size)}]: how large is it?")

    def divisions(self, function):
        """`/` and `%` by what is no constant are a stage and a subtraction a bit."""
        tokens = list(function.tokens())
        for at, token in enumerate(tokens[:-1]):
            if token not in ("/", "%", "/=", "%="):
                continue
            end = at + 2
            while tokens[end:end + 1] in (["::"], ["."], ["("]):
                if tokens[end] == "(":
                    break
                end += 2
            divisor = tokens[at + 1:end]
            if divisor == ["("]:
                depth = 0
                for end in range(at + 1, len(tokens)):
                    depth += (tokens[end] == "(") - (tokens[end] == ")")
                    if depth == 0:
                        break
                divisor = tokens[at + 2:end]
            is_call = tokens[end:end + 1] == ["("]
            if is_call or not self.sources.is_constant(divisor, function.templates):
                self.say(function.file, token.line, "division", f"{text_of(divisor)} in "
                         f"{function.name} is no constant: a divider as deep as it is wide")

    # Dataflow ------------------------------------------------------------------------------------

    def dataflow(self, function):
        """A stream of a region has one process that writes and one that reads it."""
        streams = {}  # name -> (line, elements or None)
        uses = {}  # name -> {element or "all": how often}
        for tokens in plain_statements(function.body):
            for name, line, size in declared_streams(self.sources, tokens):
                streams[name] = (line, size)
        for tokens in plain_statements(function.body):
            if not is_process(tokens):
                continue
            for argument in process_arguments(tokens):
                if argument and argument[0] in streams:
                    element = text_of(argument[1:]) or "all"
                    uses.setdefault(str(argument[0]), []).append(element)
        for name, (line, is_array) in streams.items():
            seen = uses.get(name, [])
            whole = seen.count("all")
            elements = [each for each in set(seen) if each != "all"]
            right = (whole == 2 and not elements) or (elements and all(
                seen.count(each) + whole == 2 for each in elements))
            if not right:
                self.say(function.file, line, "stream-ends",
                         f"{name}: a FIFO has one process that writes and one that reads it, here "
                         f"it is given to {describe(seen)}")

    # The top's interface, and the link -----------------------------------------------------------

    def interface(self, function):
        table = self.table["kernels"].get(function.name)
        where = (function.file, function.line)
        pragmas = function.pragmas("interface")
        masters = {p.options["port"]: p for p in pragmas
                   if "m_axi" in (p.words + [p.options.get("mode")]) and "port" in p.options}
        lites = {p.options.get("port") for p in pragmas
                 if "s_axilite" in (p.words + [p.options.get("mode")])}
        pointers = {parameter_name(p) for p in function.parameters if "*" in p}
        scalars = {parameter_name(p) for p in function.parameters if "*" not in p}
        for name in sorted(pointers - set(masters)):
            self.say(*where, "pointer-without-port", f"{name} of {function.name} has no m_axi port")
        for name in sorted(set(masters) - pointers):
            self.say(function.file, masters[name].line, "port-without-pointer",
                     f"{function.name} has no pointer {name}")
        for name in sorted(scalars - lites):
            self.say(*where, "scalar-without-register",
                     f"{name} of {function.name} is not reachable by s_axilite")
        if "return" not in lites:
            self.say(*where, "return-without-register",
                     f"{function.name} cannot be started: s_axilite port=return is missing")
        for name in sorted(lites - pointers - scalars - {"return", None}):
            self.say(*where, "register-without-argument", f"{function.name} has no {name}")
        for name, pragma in sorted(masters.items()):
            if "bundle" not in pragma.options:
                self.say(function.file, pragma.line, "no-bundle", f"{name} would share a port")
            if pragma.options.get("offset") != "slave":
                self.say(function.file, pragma.line, "no-offset",
                         f"{name}: offset=slave is how a run gives its address")
        for parameter in function.parameters:
            if parameter.count("*") > 1 or "&" in parameter or "[" in parameter:
                self.say(*where, "argument", f"{text_of(parameter)}: a kernel takes pointers and "
                         "scalars")
        if table is None:
            self.say(*where, "not-linked", f"{function.name} is not in {TABLE}")
            return
        linked = table["bundle_of"]
        for name in sorted(set(masters) & pointers):
            bundle = masters[name].options.get("bundle")
            if name not in linked:
                self.say(function.file, masters[name].line, "not-linked",
                         f"{name} of {function.name} is not in {TABLE}")
            elif linked[name] != bundle:
                self.say(function.file, masters[name].line, "other-bundle",
                         f"{name} is in bundle {bundle}, in {TABLE} in {linked[name]}")
        for name in sorted(set(linked) - pointers):
            self.say(TABLE, 1, "linked-without-pointer", f"{function.name} has no pointer {name}")
        if table["source"] != function.file:
            self.say(TABLE, 1, "other-source", f"{function.name} is in {function.file}")

    def linking(self):
        tops = {function.name for function in self.sources.tops()}
        for name in sorted(set(self.table["kernels"]) - tops):
            self.say(TABLE, 1, "linked-without-kernel", f"there is no kernel {name}")
        for image, entry in self.table.get("images", {}).items():
            for name in entry["kernels"]:
                if name not in self.table["kernels"]:
                    self.say(TABLE, 1, "linked-without-kernel", f"{image} has no kernel {name}")

    def recursion(self):
        calls = {}
        for function in self.sources.functions:
            calls[id(function)] = [called for _, named, _ in self.sources.calls(function)
                                   for called in named]
        for function in self.sources.functions:
            waiting = list(calls[id(function)])
            seen = set()
            while waiting:
                called = waiting.pop()
                if called is function:
                    self.say(function.file, function.line, "recursion",
                             f"{function.key()} reaches itself")
                    break
                if id(called) not in seen:
                    seen.add(id(called))
                    waiting += calls[id(called)]


def place(problem):
    file, line, _ = problem.split(":", 2)
    return file, int(line), problem


def describe(uses):
    return f"{len(uses)} ({', '.join(sorted(set(uses)))})" if uses else "none"


def plain_statements(block):
    return [item.tokens for item in block.walk() if isinstance(item, Plain)]


def is_process(tokens):
    """HLS_PROCESS of a call, or a plain call; the other macros are nothing to v++."""
    return (len(tokens) > 2 and IDENTIFIER.match(tokens[0]) and tokens[1] in ("(", "<")
            and tokens[-1] == ")" and (tokens[0] == "HLS_PROCESS" or tokens[0][:4] != "HLS_"))


def process_arguments(tokens):
    """Of `HLS_PROCESS(f(a, b))` or `f<3>(a, b)`: token lists."""
    inner = tokens[2:-1] if tokens[0] == "HLS_PROCESS" else tokens
    opening = 1
    if inner[1:2] == ["<"] and is_template_bracket(inner, 1):
        opening = inner.index(">") + 1
    return split(inner[opening + 1:-1], ",") if inner[opening:opening + 1] == ["("] else []


def stream_types(sources):
    """Alias -> tokens of the stream type that it stands for."""
    found = {}
    for tokens in sources.globals:
        if tokens[:1] == ["using"] and "stream" in tokens:
            found[str(tokens[1])] = tokens[3:]
    return found


def declared_streams(sources, tokens):
    """(name, line, whether it is an array) of each stream that a statement declares."""
    aliases = stream_types(sources)
    if not tokens:
        return
    rest = None
    if tokens[0] in aliases:
        rest = tokens[1:]
    elif tokens[:3] == ["hls", "::", "stream"]:
        depth = 0
        for at in range(3, len(tokens)):
            depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[at], 0)
            if depth == 0:
                rest = tokens[at + 1:]
                break
    for part in split(rest or [], ","):
        if part and IDENTIFIER.match(part[0]):
            yield str(part[0]), part[0].line, part[1:2] == ["["]


def load_table(root=ROOT):
    return tomllib.loads((root / TABLE).read_text())


def problems_of(root, table):
    """All that is wrong with root's kernels."""
    try:
        return Lint(Sources(root), table).run()
    except Unreadable as error:
        return [f"{error} [unreadable]"]


def main():
    found = problems_of(ROOT, load_table())
    for problem in found:
        print(problem)
    print(f"{len(found)} problems in hls/kernels" if found else "hls/kernels is clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
