"""The kernels' sources as Vitis HLS sees them: what is left under __SYNTHESIS__, as functions,
loops and pragmas. For the linter and the estimate beside it. It reads the C++ that hls/kernels is
written in, not all of C++; what it cannot read it says (Unreadable), so that nothing is passed
over."""

import pathlib
import re

DEFINED = {"__SYNTHESIS__"}
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\d[\w.\']*|::|->|<<=|>>=|'
                   r"<=>|<=|>=|==|!=|&&|\|\||<<|>>|\+\+|--|[-+*/%&|^]=|.")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
OPENING = {"(": ")", "[": "]", "{": "}"}
LOOPS = ("for", "while", "do")
NO_CALLS = {"if", "for", "while", "switch", "return", "sizeof", "static_assert", "catch", "alignas",
            "decltype", "static_cast", "defined", "noexcept", "constexpr"}


class Unreadable(Exception):
    """A place that this reader does not understand."""


class Token(str):
    """A word of the source, with its line."""

    line = 0

    def __new__(cls, text, line):
        token = super().__new__(cls, text)
        token.line = line
        return token


class Pragma:
    """`#pragma HLS kind words... key=value...`; `kind` is "" where it is not of HLS."""

    def __init__(self, text, line):
        self.text = " ".join(text.split())
        self.line = line
        spaced = re.sub(r"\s*=\s*", "=", self.text).split()
        is_hls = spaced[:1] and spaced[0].upper() == "HLS" and len(spaced) > 1
        self.kind = spaced[1].lower() if is_hls else ""
        self.options = dict(word.split("=", 1) for word in spaced[2:] if "=" in word)
        self.options = {key.lower(): value for key, value in self.options.items()}
        self.words = [word.lower() for word in spaced[2:] if "=" not in word]


class Block:
    """Statements in their order: Plain, If, Loop, Block, Pragma."""

    def __init__(self):
        self.items = []

    def pragmas(self):
        """Those that stand in this block itself."""
        return [item for item in self.items if isinstance(item, Pragma)]

    def walk(self):
        """All that is inside, at any depth."""
        for item in self.items:
            yield item
            for inner in item.blocks() if isinstance(item, (Loop, If)) else (
                    [item] if isinstance(item, Block) else []):
                yield from inner.walk()

    def loops(self):
        return [item for item in self.walk() if isinstance(item, Loop)]


class Plain:
    """One statement without a block."""

    def __init__(self, tokens):
        self.tokens = tokens


class If:
    def __init__(self, is_constexpr, condition, then, otherwise):
        self.is_constexpr = is_constexpr
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    def blocks(self):
        return [self.then, self.otherwise]


class Loop:
    def __init__(self, kind, label, header, body, line):
        self.kind = kind
        self.label = label
        self.header = header  # what stands in the parentheses
        self.body = body
        self.line = line

    def blocks(self):
        return [self.body]

    def pragma(self, kind):
        return next((p for p in self.body.pragmas() if p.kind == kind), None)

    def condition(self):
        if self.kind != "for":
            return self.header
        parts = split(self.header, ";")
        return parts[1] if len(parts) == 3 else []


class Function:
    def __init__(self, file, line, scope, name, returns, parameters, templates, body, is_extern_c):
        self.returns = returns  # what stands before the name
        self.file = file
        self.line = line
        self.scope = scope  # its class, or ""
        self.name = name
        self.parameters = parameters  # token lists
        self.templates = templates  # names of its template parameters, and of its class's
        self.body = body
        self.is_extern_c = is_extern_c

    def parameter_names(self):
        return [parameter_name(parameter) for parameter in self.parameters]

    def pragmas(self, kind):
        return [p for p in self.body.pragmas() if p.kind == kind]

    def tokens(self):
        for item in self.body.walk():
            if isinstance(item, Plain):
                yield from item.tokens
            elif isinstance(item, Loop):
                yield from item.header
            elif isinstance(item, If):
                yield from item.condition

    def key(self):
        return f"{self.scope}::{self.name}" if self.scope else self.name


def parameter_name(parameter):
    """Of `Word (&state)[N]` too."""
    text = text_of(parameter)
    match = re.search(r"\(\s*[&*]\s*(\w+)\s*\)", text) or re.search(
        r"(\w+)\s*(\[[^]]*\]\s*)*(=.*)?$", text)
    return match.group(1) if match else ""


def text_of(tokens):
    return " ".join(tokens)


def split(tokens, separator):
    """At this separator, where no bracket is open. A `<` counts as one only before a type's `>`."""
    parts = [[]]
    depth = 0
    angles = 0
    for at, token in enumerate(tokens):
        if token in OPENING:
            depth += 1
        elif token in OPENING.values():
            depth -= 1
        elif separator == "," and token == "<" and is_template_bracket(tokens, at):
            angles += 1
        elif separator == "," and token == ">" and angles:
            angles -= 1
        if token == separator and depth == 0 and angles == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts != [[]] else []


def is_template_bracket(tokens, at):
    """Whether a `<` opens template arguments: names, numbers and commas up to a `>`."""
    if at == 0 or not IDENTIFIER.match(tokens[at - 1]):
        return False
    depth = 0
    for token in tokens[at:at + 40]:
        if token == "<":
            depth += 1
        elif token in (">", ">>"):
            depth -= len(token)
            if depth <= 0:
                return True
        elif not (IDENTIFIER.match(token) or token[0].isdigit() or token in ("::", ",", "*", "&")):
            return False
    return False


def without_comments(text):
    """The same lines, with comments empty and string literals as they are."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
                         re.DOTALL)
    return pattern.sub(lambda found: found.group(0) if found.group(0)[0] in "\"'"
                       else re.sub(r"[^\n]", " ", found.group(0)), text)


class SourceFile:
    """One file: includes, macros, pragmas outside of functions, and the rest as tokens."""

    def __init__(self, root, name):
        self.name = name
        self.includes = []  # (line, name, is_quoted)
        self.macros = []
        self.tokens = []  # Token or Pragma
        self._read((root / name).read_text())

    def _read(self, text):
        lines = without_comments(text).split("\n")
        kept = []  # for each open #if: whether its lines count, whether one of its branches did
        at = 0
        while at < len(lines):
            first = at + 1
            line = lines[at]
            while line.rstrip().endswith("\\") and at + 1 < len(lines):
                at += 1
                line = line.rstrip()[:-1] + " " + lines[at]
            at += 1
            directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
            if directive:
                self._direct(directive.group(1), directive.group(2).strip(), first, kept)
            elif all(counts for counts, _ in kept):
                self.tokens += [Token(t, first) for t in TOKEN.findall(line) if not t.isspace()]

    def _direct(self, word, rest, line, kept):
        if word in ("if", "ifdef", "ifndef"):
            holds = self._holds(word, rest, line)
            kept.append((holds, holds))
        elif word in ("elif", "else"):
            _, done = kept.pop()
            holds = not done and (word == "else" or self._holds("if", rest, line))
            kept.append((holds, done or holds))
        elif word == "endif":
            kept.pop()
        elif all(counts for counts, _ in kept):
            if word == "include":
                target = re.match(r'"([^"]+)"|<([^>]+)>', rest)
                if not target:
                    raise Unreadable(f"{self.name}:{line}: an include of a macro")
                self.includes.append((line, target.group(1) or target.group(2),
                                      target.group(1) is not None))
            elif word == "define":
                self.macros.append((line, rest))
            elif word == "pragma" and rest != "once":
                self.tokens.append(Pragma(rest, line))

    def _holds(self, word, rest, line):
        if word != "if":
            return (rest.split()[0] in DEFINED) == (word == "ifdef")
        python = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?",
                        lambda found: str(found.group(1) in DEFINED), rest)
        python = python.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
        if not re.fullmatch(r"(True|False|and|or|not|[\s()01])*", python):
            raise Unreadable(f"{self.name}:{line}: '#if {rest}' asks for more than what is defined")
        return bool(eval(python, {"__builtins__": {}}))  # of the six words above


class Reader:
    """Reads a file's tokens into functions and classes."""

    def __init__(self, source):
        self.source = source
        self.tokens = source.tokens
        self.at = 0
        self.functions = []
        self.classes = {}  # name -> statements of its members
        self.namespaces = set()
        self.globals = []  # statements outside of functions, as tokens
        self.stray_pragmas = []
        self._scope("", [], False)

    def fail(self, why):
        line = next((t.line for t in self.tokens[self.at:]), "the end")
        raise Unreadable(f"{self.source.name}:{line}: {why}")

    def _closing(self, start):
        """Past the bracket that closes the one at `start`."""
        depth = 0
        for at in range(start, len(self.tokens)):
            token = self.tokens[at]
            if token in OPENING:
                depth += 1
            elif token in OPENING.values():
                depth -= 1
                if depth == 0:
                    return at + 1
        self.at = start
        return self.fail("a bracket that is not closed")

    def _scope(self, scope, templates, is_extern_c):
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Pragma):
                self.stray_pragmas.append(token)
                self.at += 1
            elif token == "}":
                self.at += 1
                return
            elif token == ";":
                self.at += 1
            elif token in ("public", "private", "protected"):
                self.at += 2
            else:
                self._declaration(scope, templates, is_extern_c)

    def _declaration(self, scope, templates, is_extern_c):
        head = []
        names = list(templates)
        if self.tokens[self.at] == "template":
            end = self._template_end(self.at + 1)
            names += [parameter_name(p) for p in split(self.tokens[self.at + 2:end - 1], ",")]
            self.at = end
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Pragma):
                self.stray_pragmas.append(token)
                self.at += 1
                continue
            if token == ";":
                self.at += 1
                self._member(scope, head)
                return
            if token == "{":
                self._braces(scope, names, is_extern_c, head)
                return
            end = self._closing(self.at) if token in ("(", "[") else self.at + 1
            head += self.tokens[self.at:end]
            self.at = end

    def _template_end(self, start):
        depth = 0
        for at in range(start, len(self.tokens)):
            depth += {"<": 1, ">": -1, ">>": -2}.get(self.tokens[at], 0)
            if depth == 0:
                return at + 1
        return self.fail("a template without an end")

    def _member(self, scope, head):
        self.globals.append(head)
        if scope:
            self.classes[scope].append(head)

    def _braces(self, scope, templates, is_extern_c, head):
        if "namespace" in head:
            self.namespaces.update(h for h in head if IDENTIFIER.match(h) and h != "namespace")
            self.at += 1
            self._scope(scope, templates, is_extern_c)
        elif head[:2] == ["extern", '"C"'] and len(head) == 2:
            self.at += 1
            self._scope(scope, templates, True)
        elif head[0] in ("class", "struct", "union") and "(" not in head:
            name = next((h for h in head[1:] if IDENTIFIER.match(h) and h != "final"), "unnamed")
            self.classes.setdefault(name, [])
            self.at += 1
            self._scope(name, templates, False)
        elif head[0] == "enum" or "=" in self._outside(head) or "(" not in head:
            end = self._closing(self.at)
            self.globals.append(head + self.tokens[self.at:end])
            if scope and head[0] != "enum":
                self.classes[scope].append(head + self.tokens[self.at:end])
            self.at = end
        elif ":" in self._outside(head) and IDENTIFIER.match(head[-1]) and head[-1] != "const":
            self.at = self._closing(self.at)  # `: member_{value}` of a constructor
            self._function_after(scope, templates, is_extern_c, head)
        else:
            self._function(scope, templates, is_extern_c, head)

    def _function_after(self, scope, templates, is_extern_c, head):
        while self.tokens[self.at] != "{":
            self.at += 1
            if self.tokens[self.at] == "{" and IDENTIFIER.match(self.tokens[self.at - 1]):
                self.at = self._closing(self.at)
        self._function(scope, templates, is_extern_c, head)

    @staticmethod
    def _outside(tokens):
        """Those in no bracket."""
        depth = 0
        found = []
        for token in tokens:
            depth += (token in OPENING) - (token in OPENING.values())
            if depth == 0:
                found.append(token)
        return found

    def _function(self, scope, templates, is_extern_c, head):
        opening = head.index("(")
        name = head[opening - 1]
        if "operator" in head[:opening]:
            name = "operator"
        depth = 0
        for closing in range(opening, len(head)):
            depth += (head[closing] == "(") - (head[closing] == ")")
            if depth == 0:
                break
        parameters = split(head[opening + 1:closing], ",")
        line = head[0].line
        body_end = self._closing(self.at)
        body = BodyReader(self.source.name, self.tokens[self.at + 1:body_end - 1]).block()
        self.functions.append(Function(self.source.name, line, scope, name, head[:opening - 1],
                                       parameters, templates, body,
                                       is_extern_c or head[:2] == ["extern", '"C"']))
        self.globals.append(head)
        self.at = body_end


class BodyReader:
    """Statements of a function."""

    def __init__(self, file, tokens):
        self.file = file
        self.tokens = tokens
        self.at = 0

    def block(self):
        found = Block()
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            self._statement(found)
        self.at += 1
        return found

    def _parentheses(self):
        start = self.at
        depth = 0
        while self.at < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.tokens[self.at], 0)
            self.at += 1
            if depth == 0:
                return self.tokens[start + 1:self.at - 1]
        raise Unreadable(f"{self.file}:{self.tokens[start].line}: a bracket that is not closed")

    def _body(self):
        """Of a loop or an if, in braces or not."""
        found = Block()
        while isinstance(self.tokens[self.at], Pragma):
            found.items.append(self.tokens[self.at])
            self.at += 1
        if self.tokens[self.at] == "{":
            self.at += 1
            found.items += self.block().items
        else:
            self._statement(found)
        return found

    def _statement(self, found):
        token = self.tokens[self.at]
        if isinstance(token, Pragma):
            found.items.append(token)
            self.at += 1
        elif token == ";":
            self.at += 1
        elif token == "{":
            self.at += 1
            found.items.append(self.block())
        elif token in LOOPS:
            found.items.append(self._loop(None))
        elif token == "if":
            found.items.append(self._if())
        elif token in ("switch", "goto"):
            raise Unreadable(f"{self.file}:{token.line}: '{token}' is not for kernels")
        elif self._is_label():
            self.at += 2
            pragmas = []
            while isinstance(self.tokens[self.at], Pragma):
                pragmas.append(self.tokens[self.at])
                self.at += 1
            if self.tokens[self.at] in LOOPS:
                found.items.append(self._loop(token))
            found.items += pragmas
        else:
            found.items.append(Plain(self._plain()))

    def _is_label(self):
        return (IDENTIFIER.match(self.tokens[self.at]) and self.at + 1 < len(self.tokens)
                and self.tokens[self.at + 1] == ":")

    def _plain(self):
        start = self.at
        depth = 0
        tokens = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, Pragma):
                raise Unreadable(f"{self.file}:{token.line}: a pragma inside a statement")
            depth += (token in OPENING) - (token in OPENING.values())
            if depth < 0:
                break
            self.at += 1
            if token == ";" and depth == 0:
                return tokens
            tokens.append(token)
        if self.at == start:
            raise Unreadable(f"{self.file}:{self.tokens[start].line}: a statement without an end")
        return tokens

    def _if(self):
        self.at += 1
        is_constexpr = self.tokens[self.at] == "constexpr"
        self.at += is_constexpr
        condition = self._parentheses()
        then = self._body()
        otherwise = Block()
        if self.at < len(self.tokens) and self.tokens[self.at] == "else":
            self.at += 1
            otherwise = self._body()
        return If(is_constexpr, condition, then, otherwise)

    def _loop(self, label):
        token = self.tokens[self.at]
        self.at += 1
        if token == "do":
            body = self._body()
            self.at += 1  # while
            header = self._parentheses()
        else:
            header = self._parentheses()
            body = self._body()
        return Loop(str(token), label, header, body, token.line)


class Sources:
    """All of a folder: `root / folder` holds the kernels."""

    def __init__(self, root, folder="hls/kernels"):
        self.root = pathlib.Path(root)
        self.folder = folder
        names = sorted(p.name for p in (self.root / folder).iterdir()
                       if p.suffix in (".h", ".cpp"))
        self.files = [SourceFile(self.root, f"{folder}/{name}") for name in names]
        self.functions = []
        self.classes = {}
        self.namespaces = set()
        self.globals = []
        self.stray_pragmas = []
        for source in self.files:
            reader = Reader(source)
            self.functions += reader.functions
            self.classes.update(reader.classes)
            self.namespaces |= reader.namespaces
            self.globals += reader.globals
            self.stray_pragmas += [(source.name, pragma) for pragma in reader.stray_pragmas]
        self.constants = self._constants()

    def tops(self):
        return [f for f in self.functions if f.is_extern_c]

    def _constants(self):
        """Name -> tokens of its value, of every constexpr variable; of enumerators None."""
        found = {}
        statements = list(self.globals)
        for function in self.functions:
            statements += [item.tokens for item in function.body.walk() if isinstance(item, Plain)]
        for tokens in statements:
            if "constexpr" in tokens and "=" in tokens and "(" not in tokens[:tokens.index("=")]:
                at = tokens.index("=")
                name = next((t for t in tokens[at - 1::-1] if IDENTIFIER.match(t)), None)
                if tokens[at - 1] != "]" and name:
                    found[str(name)] = tokens[at + 1:]
            elif tokens[:1] == ["enum"]:
                body = tokens[tokens.index("{") + 1:-1]
                found.update({str(e[0]): e[2:] for e in split(body, ",") if e})
        return found

    def is_constant(self, tokens, templates=()):
        """Whether only constants are in it: numbers, constexpr variables, template parameters."""
        tokens = list(tokens)
        for at, token in enumerate(tokens):
            if not IDENTIFIER.match(token) or token in ("sizeof", "static_cast", "std", "int"):
                continue
            is_qualifier = tokens[at + 1:at + 2] == ["::"]
            is_type = tokens[at - 1:at] == ["::"] and re.fullmatch(r"u?int\d+_t|size_t", token)
            if not (is_qualifier or is_type or token in self.constants or token in templates):
                return False
        return bool(tokens)

    def value(self, tokens, given=()):
        """Of a constant expression; `given` are values of names that it may hold. None: unknown."""
        given = dict(given)
        python = []
        tokens = list(tokens)
        if "?" in tokens:
            at = tokens.index("?")
            chosen = self.value(tokens[:at], given)
            branches = split(tokens[at + 1:], ":")
            if chosen is None or len(branches) != 2:
                return None
            return self.value(branches[0 if chosen else 1], given)
        for at, token in enumerate(tokens):
            if token == "::" or tokens[at + 1:at + 2] == ["::"]:
                continue
            if IDENTIFIER.match(token):
                inner = (given[token] if token in given else
                         self.value(self.constants[token], given)
                         if self.constants.get(token) else None)
                if inner is None:
                    return None
                python.append(str(inner))
            elif token[0].isdigit():
                python.append(re.sub(r"[uUlL']", "", token) if not token.startswith("0x")
                              else re.sub(r"[uUlL']+$", "", token))
            else:
                python.append({"/": "//", "&&": " and ", "||": " or "}.get(token, token))
        text = " ".join(python)
        if not re.fullmatch(r"[\w\s()+\-*/%<>=!&|^]*", text):
            return None
        try:
            return int(eval(text, {"__builtins__": {}}))  # numbers and operators only
        except (SyntaxError, TypeError, NameError, ZeroDivisionError):
            return None

    def calls(self, function):
        """(token, functions that it may be, tokens of its arguments) of each call."""
        return self.calls_in(list(function.tokens()), function)

    def calls_in(self, tokens, function):
        found = []
        for at, token in enumerate(tokens[:-1]):
            if not IDENTIFIER.match(token) or token in NO_CALLS:
                continue
            opening = at + 1
            if tokens[opening] == "<" and is_template_bracket(tokens, opening):
                while tokens[opening] not in (">", ">>"):
                    opening += 1
                opening += 1
            if tokens[opening:opening + 1] != ["("]:
                continue
            arguments = arguments_at(tokens, opening)
            before = tokens[at - 1] if at else ""
            qualifier = tokens[at - 2] if before == "::" and at > 1 else ""
            found.append((token, self.resolve(function, token, before, qualifier, len(arguments)),
                          arguments))
        return found

    def resolve(self, function, name, before, qualifier, count):
        named = [f for f in self.functions if f.name == name and len(f.parameters) == count]
        if before in (".", "->"):
            return [f for f in named if f.scope]
        if before == "::":
            if qualifier in self.classes:
                return [f for f in named if f.scope == qualifier]
            if qualifier in self.namespaces:
                return [f for f in named if not f.scope]
            return [f for f in named if f.scope]  # an alias or a template's parameter
        own = [f for f in named if function.scope and f.scope == function.scope]
        return own or [f for f in named if not f.scope]


def arguments_at(tokens, opening):
    """Token lists between the bracket at `opening` and the one that closes it."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at] in OPENING) - (tokens[at] in OPENING.values())
        if depth == 0:
            return split(tokens[opening + 1:at], ",")
    return []
