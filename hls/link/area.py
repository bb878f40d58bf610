"""The area of the kernels, counted in their sources. What an operator costs is in operators.py.

The operators are counted in the sources (hls_source.py): each `*`, `+`, comparison, shift by
what is no constant and so on, at the width of its statement's variables; a loop that is unrolled,
or that stands in a pipelined one, times its count; a pipelined one's shared by its II; a function
once a call, or once a process where it says `inline off`. FIFOs, arrays and m_axi adapters come
from their declarations. An `int` counts as
12 bits: in these kernels it holds an exponent, a distance or a lane, and HLS follows ranges of
values.
"""

import dataclasses
import math
import re

import operators
from hls_source import (IDENTIFIER, If, Loop, Plain, arguments_at, is_template_bracket,
                        parameter_name, split, text_of)
from operators import Cost
from value_types import Types, Unknown

COMPARISONS = {"<", ">", "<=", ">=", "==", "!=", "&&", "||"}
# Statements of which nothing is made.
NOTHING = {"static_assert", "using", "HLS_BEGIN", "HLS_END", "HLS_NAME"}
BINARY = {"*", "/", "%", "+", "-", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^"}


def is_value_end(token):
    return bool(IDENTIFIER.match(token) or token[0].isdigit() or token in (")", "]")) \
        and token not in ("return",)


def without_template_arguments(tokens):
    """`static_cast<std::uint64_t>(x)` keeps its type, in brackets that are no comparison."""
    found = []
    at = 0
    while at < len(tokens):
        if tokens[at] == "<" and is_template_bracket(tokens, at):
            depth = 0
            while True:
                depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[at], 0)
                at += 1
                if depth <= 0:
                    break
            continue
        found.append(tokens[at])
        at += 1
    return found


def closing(tokens, at):
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] in ("(", "[")) - (tokens[end] in (")", "]"))
        if depth == 0:
            return end
    return len(tokens)


def left_of(tokens, at):
    """The operand that ends before `at`."""
    start = at - 1
    while start >= 0:
        if tokens[start] in (")", "]"):
            depth = 0
            while start >= 0:
                depth += (tokens[start] in (")", "]")) - (tokens[start] in ("(", "["))
                if depth == 0:
                    break
                start -= 1
        before = tokens[start - 1] if start else ""
        if before and (before in (".", "::") or (tokens[start] in ("(", "[")
                                                 and IDENTIFIER.match(before)
                                                 and before != "return")):
            start -= 2 if before in (".", "::") else 1
            continue
        break
    return tokens[max(start, 0):at]


def right_of(tokens, at):
    """The operand that begins after `at`."""
    end = at + 1
    while end < len(tokens):
        end = closing(tokens, end) + 1 if tokens[end] in ("(", "[") else end + 1
        if end < len(tokens) and tokens[end] in (".", "::"):
            end += 1
        elif end >= len(tokens) or tokens[end] not in ("(", "["):
            break
    return tokens[at + 1:end]


@dataclasses.dataclass
class Scope:
    """What names mean where a function is estimated."""

    widths: dict  # variable -> bits; None: a stream, a class, what no arithmetic is done on
    arrays: dict  # variable -> (entries, bits) of what is chosen from by an index
    constants: set
    values: dict  # of constants that are known only here
    classes: dict  # variable or template parameter -> class
    templates: tuple
    shared: set  # functions that this process has already
    is_pipelined: bool = False

    def inside(self, **changes):
        return dataclasses.replace(self, **changes)


class Area(Types):
    """One kernel at a time: kernel() counts it, and leaves its processes in `processes`."""

    def __init__(self, sources):
        super().__init__(sources)
        self.under_way = None  # the function
        self.processes = []  # (function, scope, cost)

    def declare(self, scope, name, kind, dims, is_pointer=False):
        """Takes a variable into the scope; its storage's cost."""
        width = kind if isinstance(kind, int) else None
        if isinstance(kind, str) and kind in self.sources.classes:
            scope.classes[name] = kind
        scope.arrays.pop(name, None)
        if is_pointer or self.is_stream(kind):
            scope.widths[name] = None
            return Cost()
        scope.widths[name] = width if width is not None else (32 if self.is_vector(kind) else None)
        bits = self.stored_bits(kind, scope)
        if dims:
            scope.arrays[name] = (self.value(dims[0], scope), bits)
        elif self.is_vector(kind):
            scope.arrays[name] = (bits // 32, 32)
        return Cost()

    def kernel(self, top):
        """The cost of a compute unit; its processes are in `processes` afterwards."""
        self.processes = []
        cost = self.function(top, self.scope_of(top, None, []), False)
        return cost + self.interface(top)

    def interface(self, top):
        cost = Cost()
        ports = {}
        for pragma in top.pragmas("interface"):
            if "m_axi" in pragma.words:
                parameter = next(p for p in top.parameters
                                 if parameter_name(p) == pragma.options["port"])
                way = "read" if "const" in parameter else "write"
                key = (pragma.options["bundle"], way)
                size = tuple(int(pragma.options.get(word, operators.AXI_DEFAULT)) for word in
                             (f"max_{way}_burst_length", f"num_{way}_outstanding"))
                ports[key] = max(size, ports.get(key, size))
                cost += operators.REGISTER.copies(2)
            else:
                cost += operators.REGISTER.copies(2)
        for burst, outstanding in ports.values():
            cost += operators.adapter(512, burst, outstanding)
        return cost

    def scope_of(self, function, outer, arguments):
        scope = Scope({}, {}, set(), {}, {}, tuple(function.templates),
                      outer.shared if outer else set())
        if outer:
            scope.values.update(outer.values)
            scope.is_pipelined = outer.is_pipelined
        for parameter, argument in zip(function.parameters, arguments or [[]] * 99):
            tokens = [t for t in parameter if t != "const"]
            kind, rest = self.type_at(tokens)
            name = parameter_name(parameter)
            if tokens[0] in function.templates and argument:
                self.bind(scope, str(tokens[0]), outer.classes.get(text_of(argument)))
                scope.classes[name] = scope.classes.get(str(tokens[0]))
                continue
            if kind is None:
                continue
            dims = re.findall(r"\[ ([^]]*) \]", text_of(rest))
            if "(" in rest and "&" in rest:  # a reference to an array
                self.declare(scope, name, kind, [])
                if dims and not self.is_stream(kind):
                    bits = 32 if self.is_vector(kind) else self.stored_bits(kind, scope)
                    scope.arrays[name] = (self.value(dims[0].split(), scope), bits)
            else:
                self.declare(scope, name, kind, [], is_pointer="*" in parameter)
            if argument and self.is_fixed(argument, outer):
                scope.constants.add(name)
        if function.scope and outer and outer.classes.get("this"):
            scope.classes["this"] = outer.classes["this"]
        if function.scope in self.members:
            for name, kind, dims in self.members[function.scope]:
                self.declare(scope, name, kind, [])
                if dims:
                    scope.arrays.pop(name, None)
        return scope

    def bind(self, scope, template, name):
        """A template's parameter is this class: its constants are known."""
        if name is None:
            return
        name = self.resolved(name)
        scope.classes[template] = name
        for statement in self.sources.classes[name]:
            if "constexpr" in statement and "=" in statement:
                at = statement.index("=")
                scope.values[str(statement[at - 1])] = self.value(statement[at + 1:], scope)

    def is_fixed(self, tokens, scope):
        """Whether HLS knows it when it makes the hardware."""
        tokens = without_template_arguments(tokens)
        known = {*scope.constants, *scope.templates, "std", "static_cast"}
        return bool(tokens) and all(
            token in known or token in self.sources.constants
            or tokens[at + 1:at + 2] in (["("], ["::"])
            for at, token in enumerate(tokens) if IDENTIFIER.match(token))

    def function(self, function, scope, is_process):
        cost = operators.PROCESS if is_process else Cost()
        if function.pragmas("pipeline"):
            scope.is_pipelined = True
        before = (self.bound, self.under_way)
        self.bound, self.under_way = scope.classes, function
        cost += self.block(function.body, scope)
        self.bound, self.under_way = before
        return cost

    def block(self, block, scope):
        cost = Cost()
        for item in block.items:
            if isinstance(item, Plain):
                cost += self.statement(item.tokens, scope)
            elif isinstance(item, If):
                cost += self.choice(item, scope)
            elif isinstance(item, Loop):
                cost += self.loop(item, scope)
            elif hasattr(item, "items"):
                cost += self.block(item, scope)
        return cost

    def choice(self, item, scope):
        if item.is_constexpr:
            taken = self.value(item.condition, scope)
            return self.block(item.then if taken else item.otherwise, scope)
        cost = self.expression(item.condition, scope)
        is_known = self.is_fixed(item.condition, scope)
        for branch in item.blocks():
            cost += self.block(branch, scope)
            for tokens in [i.tokens for i in branch.items if isinstance(i, Plain)]:
                if any(t in ("=", "+=", "-=", "|=", "return") for t in tokens):
                    cost += Cost() if is_known else operators.mux(
                        self.assigned_width(tokens, scope))
        return cost

    def trip_count(self, loop, scope):
        """Of a `for` with constant bounds, else None."""
        parts = split(loop.header, ";")
        if loop.kind != "for" or len(parts) != 3:
            return None
        at = parts[0].index("=")
        first = self.sources.value(parts[0][at + 1:], scope.values)
        sign = next((t for t in parts[1] if t in ("<", "<=")), None)
        last = None
        if sign:
            last = self.sources.value(parts[1][parts[1].index(sign) + 1:], scope.values)
        step = self.sources.value(parts[2][parts[2].index("+=") + 1:],
                                  scope.values) if "+=" in parts[2] else 1
        if first is None or last is None:
            return None
        return max(0, math.ceil((last + (sign == "<=") - first) / step))

    def loop(self, loop, scope):
        parts = split(loop.header, ";")
        variable = str(parts[0][parts[0].index("=") - 1]) if "=" in parts[0] else ""
        trip = self.trip_count(loop, scope)
        if loop.pragma("unroll") or scope.is_pipelined:
            if trip is None:
                raise Unknown(f"how many copies of {loop.label} are there?")
            known = scope.inside(constants=scope.constants | {variable})
            return self.block(loop.body, known).copies(trip)
        kind, _ = self.type_at([t for t in parts[0] if t != "const"]) if parts[0] else (32, [])
        inner = scope.inside(widths={**scope.widths, variable: kind or 32})
        header = operators.adder(kind or 32) + self.expression(loop.condition(), inner)
        pipeline = loop.pragma("pipeline")
        if pipeline and "off" not in pipeline.words:
            body = self.block(loop.body, inner.inside(is_pipelined=True))
            return header + body.shared(int(pipeline.options["ii"]))
        return header + self.block(loop.body, inner)

    def statement(self, tokens, scope):
        if not tokens or tokens[0] in NOTHING:
            return Cost()
        if tokens[0] == "HLS_PROCESS":
            return self.process(tokens[2:-1], scope)
        if tokens[0] == "constexpr" or tokens[:2] == ["static", "constexpr"]:
            at = tokens.index("=")
            value = self.sources.value(tokens[at + 1:], scope.values)
            if value is not None:
                scope.values[str(tokens[at - 1])] = value
            scope.constants.add(str(tokens[at - 1]))
            return Cost()
        cost = self.declarations(tokens, scope)
        return cost + self.expression(tokens, scope)

    def declarations(self, tokens, scope):
        plain = [t for t in tokens if t not in ("const", "&")]
        cost = self.streams(plain, scope)
        if cost is not None:
            return cost
        cost = Cost()
        kind, rest = self.type_at(plain) if plain else (None, [])
        if isinstance(kind, str) and rest and rest[1:2] == ["("]:  # made by its constructor
            self.declare(scope, str(rest[0]), kind, [])
            return self.object(kind, scope, arguments_at(rest, 1))
        for name, kind, dims in self.member(tokens):
            cost += self.declare(scope, name, kind, dims)
            if dims and not scope.is_pipelined:  # in a pipeline they are wires between its stages
                cost += self.array(self.under_way, name, kind, dims, scope)
            is_fixed = "=" in tokens and "const" in tokens and \
                self.is_fixed(tokens[tokens.index("=") + 1:], scope)
            if is_fixed:
                scope.constants.add(name)
            if isinstance(kind, str) and kind in self.members and not dims:
                cost += self.object(kind, scope, [])
        return cost

    def object(self, kind, scope, arguments):
        """A class's own arrays, and its constructor."""
        cost = Cost()
        constructors = [f for f in self.sources.functions if f.scope == kind and f.name == kind
                        and len(f.parameters) == len(arguments)]
        for constructor in constructors:
            for name, inner, dims in self.members[kind]:
                if dims:
                    cost += self.array(constructor, name, inner, dims, scope)
            cost += self.function(constructor, self.scope_of(constructor, scope, arguments), False)
        return cost

    def array(self, function, name, kind, dims, scope):
        """Banks are the dimensions that are partitioned completely; one word of the rest each."""
        sizes = [self.value(d, scope) for d in dims]
        banks = 1
        rest = list(sizes)
        for pragma in function.pragmas("array_partition"):
            is_complete = "complete" in pragma.words or pragma.options.get("type") == "complete"
            if pragma.options.get("variable") == name and is_complete:
                dim = int(pragma.options.get("dim", 1))
                for which in (range(len(sizes)) if dim == 0 else [dim - 1]):
                    banks *= sizes[which]
                    rest[which] = 1
        bits = self.stored_bits(kind, scope)
        depth = math.prod(rest)
        return (Cost(ff=bits * banks) if depth == 1
                else operators.memory(bits, depth).copies(banks))

    def streams(self, tokens, scope):
        """The FIFOs that a statement declares; None if it declares none."""
        kind, rest = self.type_at(tokens) if tokens else (None, [])
        if not self.is_stream(kind) or not rest or not IDENTIFIER.match(rest[0]):
            return None
        stream = list(self.aliases.get(kind, [])) or kind.split(" ")
        inner = split(stream[4:-1], ",")
        depth = self.value(inner[1], scope) if len(inner) > 1 else 2
        element, _ = self.type_at([*inner[0], "x"])
        bits = self.stored_bits(element if element is not None else text_of(inner[0]), scope)
        cost = Cost()
        for part in split(rest, ","):
            count = 1
            if part[1:2] == ["["]:
                count = self.value(part[2:part.index("]")], scope)
            scope.widths[str(part[0])] = None
            cost += operators.fifo(bits, depth).copies(count)
        return cost

    def process(self, tokens, scope):
        before = set(scope.shared)
        scope.shared.clear()
        caller = type("Caller", (), {"scope": ""})
        (_, named, arguments), *_ = self.sources.calls_in(tokens, caller)
        if not named:
            raise Unknown(f"no process {text_of(tokens)}")
        inner = self.scope_of(named[0], scope, arguments)
        self.explicit(named[0], tokens, inner, scope)
        cost = self.function(named[0], inner, True)
        self.processes.append((named[0], inner, cost))
        scope.shared.clear()
        scope.shared.update(before)
        return cost

    def explicit(self, function, tokens, inner, scope):
        """`f<3>(...)`: the template's parameters are given."""
        if tokens[1:2] == ["<"] and is_template_bracket(tokens, 1):
            given = split(tokens[2:tokens.index(">")], ",")
            for name, argument in zip(function.templates, given):
                value = self.sources.value(argument, scope.values)
                if value is not None:
                    inner.values[str(name)] = value
                elif len(argument) == 1:
                    known = scope.classes.get(str(argument[0]), str(argument[0]))
                    if known in self.sources.classes or known in self.aliases:
                        self.bind(inner, str(name), known)
                        inner.classes[str(name)] = self.resolved(known)

    def width(self, tokens, scope):
        """Bits of what an expression gives: its widest variable's, a call's by the function's type,
        one of a comparison."""
        tokens = list(tokens)
        while tokens[:1] == ["("] and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        outer = self.outside(tokens)
        if "?" in outer:
            branches = tokens[self.place(tokens, "?") + 1:]
            return max(self.width(branch, scope) for branch in split(branches, ":"))
        if any(t in COMPARISONS for t in outer):
            return 1
        widest = 1
        at = 0
        while at < len(tokens):
            token = tokens[at]
            found, at = self.width_at(tokens, at, scope) if IDENTIFIER.match(token) else (
                self.literal_bits(token), at + 1)
            widest = max(widest, found)
        return widest

    def width_at(self, tokens, at, scope):
        """(bits, what follows) of the name at `at`."""
        token = tokens[at]
        match = re.fullmatch(r"u?int(\d+)_t", token)
        if match:  # of a cast: what is cast is not wider
            return int(match.group(1)), at + 1
        if tokens[at + 1:at + 2] == ["("] and token != "static_cast":
            return self.returned_bits(token), closing(tokens, at + 1) + 1
        if tokens[at + 1:at + 2] == ["["]:
            end = closing(tokens, at + 1) + 1
            return scope.widths.get(token) or self.fields.get(token, 1), end
        if tokens[at - 1:at] in (["."], ["->"]) and at:
            return self.fields.get(token, 1), at + 1
        if token in self.sources.constants:
            value = self.sources.value([token], scope.values)
            return max(1, value.bit_length()) if value is not None else 1, at + 1
        return scope.widths.get(token) or 1, at + 1

    @staticmethod
    def literal_bits(token):
        return max(1, int(re.sub(r"[uUlL']", "", token), 0).bit_length()) if re.fullmatch(
            r"(0x[0-9a-fA-F]+|[1-9]\d*)[uUlL]*", token) else 1

    def returned_bits(self, name):
        """Of a function with this name, as many as it returns."""
        widest = 1
        for function in self.sources.functions:
            if function.name == name and function.returns:
                tokens = [t for t in function.returns if t not in ("inline", "static", "constexpr",
                                                                   "const", "explicit")]
                kind, _ = self.type_at([*tokens, "x"]) if tokens else (1, [])
                widest = max(widest, kind if isinstance(kind, int) else 1)
        return 24 if name == "significand_of" else widest

    @staticmethod
    def outside(tokens):
        depth = 0
        found = []
        for token in tokens:
            depth -= token in (")", "]", "}")
            if depth == 0:
                found.append(token)
            depth += token in ("(", "[", "{")
        return found

    @staticmethod
    def place(tokens, wanted):
        """Where it stands in no bracket."""
        depth = 0
        for at, token in enumerate(tokens):
            depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
            if depth == 0 and token == wanted:
                return at
        return -1

    def assigned_width(self, tokens, scope):
        """Of what a statement gives a value to, or returns."""
        for sign in ("=", "+=", "-=", "|=", "^=", "*="):
            at = self.place(tokens, sign)
            if at > 0:
                return self.width(tokens[:at], scope)
        return self.width(tokens[1:], scope)

    def expression(self, tokens, scope):
        whole = tokens
        tokens = without_template_arguments(tokens)
        cost = Cost()
        for at, token in enumerate(tokens):
            if token in BINARY and at and is_value_end(tokens[at - 1]) and at + 1 < len(tokens):
                cost += self.operator(token, left_of(tokens, at), right_of(tokens, at), scope)
            elif token in ("++", "--", "+=", "-="):
                cost += operators.adder(self.width(left_of(tokens, at) if is_value_end(
                    tokens[at - 1]) else right_of(tokens, at), scope))
            elif token == "?":
                cost += operators.mux(self.width(self.branches_of(tokens, at), scope))
            elif token == "[" and at and IDENTIFIER.match(tokens[at - 1]):
                cost += self.index(tokens, at, scope)
            elif token == "*=":
                cost += self.product(left_of(tokens, at), right_of(tokens, at), scope)
        caller = type("Caller", (), {"scope": ""})
        for called, named, arguments in self.sources.calls_in(whole, caller):
            cost += self.call(called, named, arguments, whole, scope)
        return cost

    @staticmethod
    def branches_of(tokens, at):
        """The two values of the `?` at `at`, up to the bracket or comma that ends them."""
        depth = 0
        for end in range(at + 1, len(tokens)):
            depth += (tokens[end] in ("(", "[")) - (tokens[end] in (")", "]"))
            if depth < 0 or (depth == 0 and tokens[end] in (",", ";")):
                return [t if t != ":" else "|" for t in tokens[at + 1:end]]
        return [t if t != ":" else "|" for t in tokens[at + 1:]]

    def operator(self, token, left, right, scope):
        left_fixed, right_fixed = self.is_fixed(left, scope), self.is_fixed(right, scope)
        if left_fixed and right_fixed:
            return Cost()
        widths = (self.width(left, scope), self.width(right, scope))
        if token == "*":
            return self.product(left, right, scope)
        if token in ("/", "%"):
            return Cost() if right_fixed else operators.divider(widths[0])
        if token in ("<<", ">>"):
            if right_fixed:
                return Cost()
            return operators.decoder(32) if left_fixed else operators.shifter(widths[0])
        if token in ("+", "-"):
            return operators.adder(max(widths))
        if token in ("&", "|", "^"):
            return Cost() if left_fixed or right_fixed else operators.logic(min(widths))
        if token in ("==", "!=") and (left_fixed or right_fixed):
            return operators.constant_comparator(widths[1 if left_fixed else 0])
        return operators.comparator(max(widths))

    def product(self, left, right, scope):
        sides = []
        for side in (left, right):
            value = self.sources.value(side, scope.values)
            if value is not None and value & (value - 1) == 0:
                return Cost()
            # A constant of the unrolled copy, such as `8 * i`: HLS multiplies it itself.
            if value is None and self.is_fixed(side, scope):
                sides.append(4)
            else:
                sides.append(value.bit_length() if value is not None
                             else self.bits(side, scope))
        return operators.product(*sides, kept=64 if sum(sides) > 64 else None)

    def bits(self, tokens, scope):
        """Of an operand, by its mask, its shift, or its variables."""
        text = text_of(tokens)
        if "significand" in text:
            return 24
        mask = re.search(r"& (0x[0-9a-fA-F]+)u?\b", text)
        if mask:
            return int(mask.group(1), 16).bit_length()
        width = self.width(tokens, scope)
        shift = re.search(r">> (\d+)", text)
        return width - int(shift.group(1)) if shift and "|" not in tokens else width

    def index(self, tokens, at, scope):
        array = scope.arrays.get(str(tokens[at - 1]))
        end = closing(tokens, at)
        if array is None or self.is_fixed(tokens[at + 1:end], scope):
            return Cost()
        return operators.selector(*array)

    def call(self, called, named, arguments, tokens, scope):
        if not named:
            return Cost()
        at = next(i for i, t in enumerate(tokens) if t is called)
        function = named[0]
        if tokens[at - 1:at] == ["."] and at:
            owner = scope.classes.get(str(tokens[at - 2]))
            matching = [f for f in named if f.scope == owner]
            function = matching[0] if matching else named[0]
        elif tokens[at - 1:at] == ["::"] and at:
            # An alias of the arithmetic; what is synthesised is the one of integers.
            owner = scope.classes.get(str(tokens[at - 2]), "IntegerArithmetic")
            function = next((f for f in named if f.scope == owner), named[0])
        own = [f for f in self.sources.functions if f.name == called
               and f.scope and f.scope == scope.classes.get("this")]
        is_own = tokens[at - 1:at] not in (["."], ["::"]) and own
        function = own[0] if is_own else function
        inner = self.scope_of(function, scope, arguments)
        self.explicit(function, tokens[at:], inner, scope)
        if function.scope:
            inner.classes["this"] = function.scope
        is_shared = any("off" in p.words for p in function.pragmas("inline"))
        if is_shared and not scope.is_pipelined:
            if id(function) in scope.shared:
                return Cost()
            scope.shared.add(id(function))
        cost = self.function(function, inner, False)
        return cost if function.scope else operators.calibrated(function.name, cost)
