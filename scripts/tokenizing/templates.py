"""How a conversation is written as one text: the built-in templates.

A template gives parts, (text, whether it is learnt), which are encoded apart, so no token is of
both. A model meets them so, too: what was asked is encoded alone, and the answer follows."""

import dataclasses

from tokenizing.refusal import Refusal

ALPACA_SYSTEM = ("Below is an instruction that describes a task. Write a response that "
                 "appropriately completes the request.")
NAMES = ("chatml", "alpaca", "llama3", "plain")


@dataclasses.dataclass
class Around:
    """Text of the template around that of a turn; `between` only where another turn follows."""
    before: str
    after: str
    between: str = ""


@dataclasses.dataclass
class BuiltIn:
    name: str
    turns: dict
    begin: str = ""
    system: str = ""  # where the conversation has none
    wants_end: bool = False  # else the end of the last answer is that of the document

    def parts(self, turns, _where):
        parts = [(self.begin, False)]
        if self.system and turns[0].role != "system":
            around = self.turns["system"]
            parts.append((around.before + self.system + around.after + around.between, False))
        for number, turn in enumerate(turns, 1):
            around = self.turns[turn.role]
            parts += [(around.before, False), (turn.text + around.after, turn.is_learnt)]
            if number < len(turns):
                parts.append((around.between, False))
        return parts


def marked_turns(called, before, after, between=""):
    """One shape for all: `called` says how a role is named in it."""
    return {role: Around(before.format(name), after, between) for role, name in called.items()}


def chatml():
    called = {"system": "system", "user": "user", "observation": "tool", "assistant": "assistant",
              "function": "assistant"}
    return BuiltIn("chatml", marked_turns(called, "<|im_start|>{}\n", "<|im_end|>", "\n"),
                   wants_end=True)


def llama3(has_begin):
    called = {"system": "system", "user": "user", "observation": "ipython",
              "assistant": "assistant", "function": "assistant"}
    return BuiltIn("llama3",
                   marked_turns(called, "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>"),
                   "<|begin_of_text|>" if has_begin else "", wants_end=True)


def alpaca(end):
    asked = Around("### Instruction:\n", "\n\n### Response:\n")
    answer = Around("", end, "\n\n")
    return BuiltIn("alpaca", {"system": Around("", "\n\n"), "user": asked, "observation": asked,
                              "assistant": answer, "function": answer}, system=ALPACA_SYSTEM)


def plain(end):
    asked, answer = Around("", "\n"), Around("", end, "\n")
    return BuiltIn("plain", {"system": asked, "user": asked, "observation": asked,
                             "assistant": answer, "function": answer})


def default_name(added):
    """The one whose tokens the tokenizer has."""
    if "<|im_start|>" in added and "<|im_end|>" in added:
        return "chatml"
    return "llama3" if "<|start_header_id|>" in added else "alpaca"


def built_in(name, added, end):
    """`added` are the tokenizer's added tokens; `end` is the text behind an answer of a template
    that has none of its own."""
    needed = {"chatml": ["<|im_start|>", "<|im_end|>"],
              "llama3": ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]}
    for token in needed.get(name, []):
        if token not in added:
            raise Refusal(f"--template {name}: the tokenizer has no token {token!r}; take alpaca "
                          "or plain, which need none")
    if name == "chatml":
        return chatml()
    if name == "llama3":
        return llama3("<|begin_of_text|>" in added)
    return alpaca(end) if name == "alpaca" else plain(end)
