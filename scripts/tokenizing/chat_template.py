"""The tokenizer's own template, chat_template of tokenizer_config.json or a file
chat_template.jinja, where the package jinja2 is to be had. A template is a program of somebody
else: it runs in jinja2's sandbox, without this program's objects."""

import contextlib
import json

from tokenizing.refusal import Refusal

ROLES = {"system": "system", "user": "user", "observation": "tool", "assistant": "assistant",
         "function": "assistant"}
ADVICE = "take a built-in template (--template chatml, alpaca, llama3 or plain)"


def tokenizer_config(tokenizer_path):
    """What lies beside tokenizer.json; empty where nothing does."""
    path = tokenizer_path.with_name("tokenizer_config.json")
    if not path.exists():
        return {}
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path}: is no JSON: {error}") from None
    if not isinstance(config, dict):
        raise Refusal(f"{path}: is no object")
    return config


def special_token(config, key):
    token = config.get(key)
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else ""


def template_source(tokenizer_path, config):
    """(path, text), or None."""
    beside = tokenizer_path.with_name("chat_template.jinja")
    if beside.exists():
        return beside, beside.read_text(encoding="utf-8")
    source = config.get("chat_template")
    if isinstance(source, list):  # several by name
        named = {entry.get("name"): entry.get("template") for entry in source
                 if isinstance(entry, dict)}
        source = named.get("default")
    path = tokenizer_path.with_name("tokenizer_config.json")
    return (path, source) if isinstance(source, str) else None


def jinja2_package():
    with contextlib.suppress(ImportError):
        import jinja2.ext
        import jinja2.sandbox
        return jinja2
    return None


def environment_of(jinja2):
    class Generation(jinja2.ext.Extension):
        """Marks answers for other programs; here it stands for what is in it."""
        tags = {"generation"}

        def parse(self, parser):
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    def refuse(message):
        raise jinja2.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent)
    # No strftime_now: the same data would be other tokens tomorrow. Templates have a date for then.
    environment.globals["raise_exception"] = refuse
    return environment


class ChatTemplate:
    name = "of the tokenizer"
    wants_end = True

    def __init__(self, jinja2, path, source, config):
        self.path = path
        self.tokens = {key: special_token(config, key) for key in
                       ("bos_token", "eos_token", "pad_token", "unk_token")}
        try:
            self.template = environment_of(jinja2).from_string(source)
        except jinja2.TemplateError as error:
            raise Refusal(f"{path}: the chat template is none that jinja2 reads: {error}; "
                          f"{ADVICE}") from None

    def rendered(self, turns, where, is_answer_next=False):
        messages = [{"role": ROLES[turn.role], "content": turn.text} for turn in turns]
        try:
            return self.template.render(messages=messages, add_generation_prompt=is_answer_next,
                                        **self.tokens)
        except Exception as error:  # a program of somebody else raises what it likes
            raise Refusal(f"{where}: the chat template of {self.path} does not take it: {error}; "
                          f"{ADVICE}") from None

    def parts(self, turns, where):
        """By the lengths of what the template makes of the turns before an answer and up to it. An
        answer ends with its last character that is no blank: the end token, as a rule."""
        parts, done = [], ""
        for number, turn in enumerate(turns):
            if not turn.is_learnt:
                continue
            asked = self.rendered(turns[:number], where, is_answer_next=True)
            whole = self.rendered(turns[:number + 1], where)
            answer = self.rest(whole, asked, where)
            if turn.text.strip() not in answer:
                raise Refusal(f"{where}: the chat template of {self.path} leaves out an answer; "
                              f"{ADVICE}")
            learnt = answer.rstrip()
            parts += [(self.rest(asked, done, where), False), (learnt, True),
                      (answer[len(learnt):], False)]
            done = whole
        return [*parts, (self.rest(self.rendered(turns, where), done, where), False)]

    def rest(self, text, begin, where):
        if not text.startswith(begin):
            raise Refusal(f"{where}: the chat template of {self.path} writes earlier turns in "
                          "another way once others follow, so it cannot be said which tokens are "
                          f"the answers; --last-turn-only may do, or {ADVICE}")
        return text[len(begin):]
