"""Conversations out of instruction data: Alpaca's records, ShareGPT's and OpenAI's."""

import dataclasses

from tokenizing.records import TextRecords, text_of
from tokenizing.refusal import Refusal, nearest

FORMATS = ("text", "alpaca", "sharegpt", "openai")
ANSWERS = ("assistant", "function")
# Who says it in the file, for each of the roles that templates have.
SHAREGPT_ROLES = {"system": ["system"], "user": ["human", "user"],
                  "observation": ["observation", "tool"], "assistant": ["gpt", "assistant"],
                  "function": ["function_call"]}
OPENAI_ROLES = {"system": ["system", "developer"], "user": ["user"],
                "observation": ["tool", "function"], "assistant": ["assistant"],
                "function": ["function_call"]}


@dataclasses.dataclass
class Turn:
    role: str  # system, user, observation, assistant or function
    text: str
    is_learnt: bool = False


def object_of(record, where):
    if not isinstance(record, dict):
        raise Refusal(f"{where} is no object, as a record of instruction data has to be")
    return record


def checked_turns(turns, where):
    if not any(turn.role in ANSWERS for turn in turns):
        raise Refusal(f"{where} has no answer, so nothing of it can be learnt; remove the record")
    return turns


def optional_text(record, key, where):
    """Empty where the record does not have it, or has null."""
    return "" if key is None or record.get(key) is None else text_of(record, key, where)


class AlpacaRecords:
    """Question and answer, after those of a history. A key that is None is not read."""
    name = "alpaca"

    def __init__(self, prompt="instruction", query="input", response="output", system="system",
                 history="history"):
        self.prompt, self.query, self.response = prompt, query, response
        self.system, self.history = system, history

    def turns(self, record, where):
        object_of(record, where)
        for key in (self.prompt, self.response):
            if key not in record:
                raise Refusal(f"{where} has no {key!r}; {nearest(key, record)}")
        system = optional_text(record, self.system, where)
        asked = [text_of(record, self.prompt, where), optional_text(record, self.query, where)]
        return [*([Turn("system", system)] if system else []),
                *self.turns_of_history(record, where),
                Turn("user", "\n".join(filter(None, asked))),
                Turn("assistant", text_of(record, self.response, where), True)]

    def turns_of_history(self, record, where):
        history = record.get(self.history) if self.history else None
        if not isinstance(history, (list, type(None))):
            raise Refusal(f"{where}: {self.history!r} is no list of pairs")
        for number, pair in enumerate(history or [], 1):
            if not isinstance(pair, list) or len(pair) != 2:
                raise Refusal(f"{where}: pair {number} of {self.history!r} is no question with its "
                              "answer")
            place = f"{where}: pair {number} of {self.history!r}"
            yield Turn("user", text_of(pair, 0, place))
            yield Turn("assistant", text_of(pair, 1, place), True)


class MessageRecords:
    """A list of turns, each with who says it and what."""

    def __init__(self, name, messages, role_tag, content_tag, roles, system="system"):
        self.name = name
        self.messages, self.system = messages, system
        self.role_tag, self.content_tag = role_tag, content_tag
        self.roles = {said: role for role, words in roles.items() for said in words}

    def turns(self, record, where):
        messages = object_of(record, where).get(self.messages)
        if not isinstance(messages, list):
            raise Refusal(f"{where} has no list {self.messages!r}; "
                          f"{nearest(self.messages, record)}")
        system = optional_text(record, self.system, where)
        return checked_turns(
            [*([Turn("system", system)] if system else []),
             *(self.turn(message, f"{where}: turn {number} of {self.messages!r}")
               for number, message in enumerate(messages, 1))], where)

    def turn(self, message, where):
        object_of(message, where)
        for key in (self.role_tag, self.content_tag):
            if key not in message:
                raise Refusal(f"{where} has no {key!r}; {nearest(key, message)}")
        said = text_of(message, self.role_tag, where)
        if said not in self.roles:
            raise Refusal(f"{where}: nobody is called {said!r}; {nearest(said, self.roles)}")
        role = self.roles[said]
        # OpenAI's way to leave an answer out of the loss.
        is_left_out = message.get("weight", 1) == 0
        return Turn(role, self.content(message, where), role in ANSWERS and not is_left_out)

    def content(self, message, where):
        parts = message[self.content_tag]
        if not isinstance(parts, list):
            return text_of(message, self.content_tag, where,
                           "; calls of tools are read as texts only")
        for part in parts:
            if not isinstance(part, dict) or part.get("type") != "text" or "text" not in part:
                raise Refusal(f"{where}: a part of {self.content_tag!r} is no text")
        return "".join(text_of(part, "text", where) for part in parts)


def sharegpt_records(messages="conversations"):
    return MessageRecords("sharegpt", messages, "from", "value", SHAREGPT_ROLES)


def openai_records(messages="messages"):
    return MessageRecords("openai", messages, "role", "content", OPENAI_ROLES)


def recognised_records(record):
    """By the first record of a file; what is nothing else has a text."""
    if isinstance(record, dict):
        for column in ("messages", "conversations"):
            turns = record.get(column)
            if isinstance(turns, list) and turns and isinstance(turns[0], dict):
                return (sharegpt_records if "from" in turns[0] else openai_records)(column)
        if "instruction" in record and "output" in record:
            return AlpacaRecords()
    return TextRecords("text")


def records_called(name, field):
    """Where a field is named and no format, it is a text."""
    instructions = {"alpaca": AlpacaRecords, "sharegpt": sharegpt_records, "openai": openai_records}
    return instructions[name]() if name in instructions else TextRecords(field)
