"""How many bits a value of the kernels' types has: in arithmetic, and in a FIFO or an array."""

import math
import re

from hls_source import IDENTIFIER, split, text_of


class Unknown(Exception):
    """A place that the model has no figure for."""


class Types:
    """Of one folder of sources. `bound` is what "this" and templates' parameters are now."""

    def __init__(self, sources):
        self.sources = sources
        self.bound = {}
        self.aliases = {str(t[1]): t[3:] for t in sources.globals if t[:1] == ["using"]}
        self.fields = {}  # field -> bits for arithmetic
        self.members = {}  # class -> [(name, bits, dimensions)]
        for name, statements in sources.classes.items():
            self.members[name] = [m for s in statements for m in self.member(s)]
        for members in self.members.values():
            for name, bits, _ in members:
                if isinstance(bits, int):
                    self.fields[name] = max(bits, self.fields.get(name, 0))

    def member(self, tokens):
        """(name, bits, dimensions) of each variable that a statement declares."""
        if not tokens or tokens[0] in ("using", "static", "friend", "explicit", "enum", "return"):
            return []
        tokens = [t for t in tokens if t not in ("const", "mutable", "constexpr", "inline")]
        kind, rest = self.type_at(tokens)
        if kind is None or not rest or rest[0] in ("(", "=") or not IDENTIFIER.match(rest[0]):
            return []
        found = []
        for part in split(rest, ","):
            if part and IDENTIFIER.match(part[0]) and part[1:2] != ["("]:
                dims = []
                at = 1
                while part[at:at + 1] == ["["]:
                    end = part.index("]", at)
                    dims.append(part[at + 1:end])
                    at = end + 1
                found.append((str(part[0]), kind, dims))
        return found

    def type_at(self, tokens):
        """(bits for arithmetic or a class's name, tokens after the type)."""
        if tokens[:2] == ["std", "::"]:
            match = re.fullmatch(r"u?int(\d+)_t|size_t", tokens[2])
            return (int(match.group(1) or 64) if match else None), tokens[3:]
        if tokens[:2] == ["hls", "::"]:
            end = self.template_end(tokens, 3)
            return text_of(tokens[:end]), tokens[end:]
        if tokens[0] == "typename":
            tokens = tokens[1:]
        if tokens[1:3] == ["::", "Value"]:
            return self.value_bits(str(tokens[0])), tokens[3:]
        if tokens[0] == "Value":
            return self.value_bits(self.bound.get("this")), tokens[1:]
        fixed = {"bool": 1, "int": 12, "float": 32, "auto": 32, "unsigned": 32}
        if tokens[0] in fixed:
            return fixed[tokens[0]], tokens[1:]
        if tokens[0] in self.aliases and tokens[1:2] != ["::"]:
            return str(tokens[0]), tokens[1:]
        if tokens[0] in self.sources.classes:
            end = self.template_end(tokens, 1) if tokens[1:2] == ["<"] else 1
            return str(tokens[0]), tokens[end:]
        if IDENTIFIER.match(tokens[0]) and len(tokens) > 1 and IDENTIFIER.match(tokens[1]) \
                and re.match(r"[A-Z]", tokens[0]):
            return 32, tokens[1:]  # an enum, or a parameter of a template
        return None, tokens

    def value_bits(self, name):
        """Of what a class, or the class of a template's parameter, calls its Value."""
        for statement in self.sources.classes.get(self.bound.get(name, name), []):
            if statement[:3] == ["using", "Value", "="]:
                found, _ = self.type_at([*statement[3:], "x"])
                return found if isinstance(found, int) else 32
        return 32

    @staticmethod
    def template_end(tokens, start):
        depth = 0
        for at in range(start, len(tokens)):
            depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[at], 0)
            if depth == 0:
                return at + 1
        return len(tokens)

    def stored_bits(self, kind, scope):
        """Of a value of this type in a FIFO or an array."""
        if isinstance(kind, int):
            return 32 if kind == 12 else kind
        tokens = kind.split(" ")
        if tokens[0] in self.aliases:
            return self.stored_bits(text_of(self.aliases[tokens[0]]), scope)
        if tokens[:3] == ["std", "::", tokens[2] if len(tokens) > 2 else ""]:
            return int(re.search(r"\d+", tokens[2]).group(0))
        if tokens[:3] == ["hls", "::", "vector"]:
            inner, count = split(tokens[4:-1], ",")
            return self.stored_bits(text_of(inner), scope) * self.value(count, scope)
        if tokens[0] in self.members:
            total = 0
            for _, inner, dims in self.members[tokens[0]]:
                size = math.prod(self.value(d, scope) for d in dims)
                total += size * self.stored_bits(inner, scope)
            return total
        return {"bool": 1, "float": 32, "int": 32}.get(tokens[0], 32)

    def value(self, tokens, scope):
        found = self.sources.value(tokens, scope.values if scope else {})
        if found is None:
            raise Unknown(f"what is {text_of(tokens)}?")
        return found

    def is_vector(self, kind):
        return isinstance(kind, str) and "vector" in text_of(self.aliases.get(kind, [kind]))

    def is_stream(self, kind):
        return isinstance(kind, str) and "stream" in text_of(self.aliases.get(kind, [kind]))

    def resolved(self, name):
        """The class that an alias stands for."""
        while name in self.aliases:
            name = str(self.aliases[name][0])
        return name
