"""Documents of all that was named: texts, records with a text, and conversations."""

import pathlib

from tokenizing import chat_template, templates
from tokenizing.conversations import ANSWERS, recognised_records, records_called
from tokenizing.dataset_info import named_dataset
from tokenizing.encoding import Document, Place
from tokenizing.records import TextRecords, first_record, is_json, records_of
from tokenizing.refusal import Refusal
from tokenizing.texts import pieces_of, text_document
from tokenizing.tokenizer import added_tokens


def named_sources(arguments):
    """(path, how its records are read, or None for a text) of each, in the order it was named."""
    sources = []
    for path in arguments.texts:
        if arguments.format in ("auto", "text") and not is_json(path):
            sources.append((path, None))
        elif arguments.format == "auto" and arguments.field is None:
            sources.append((path, recognised_records(first_record(path))))
        else:
            sources.append((path, records_called(arguments.format, arguments.field or "text")))
    return sources + [named_dataset(arguments.dataset_info, name) for name in arguments.dataset]


def has_conversations(sources):
    return any(records is not None and not isinstance(records, TextRecords)
               for _, records in sources)


def chosen_template(arguments, tokenizer):
    """(template, a note or None)."""
    config = chat_template.tokenizer_config(arguments.tokenizer)
    own, note = None, None
    if arguments.template in ("auto", "tokenizer"):
        own = chat_template.template_source(arguments.tokenizer, config)
    if own is None and arguments.template == "tokenizer":
        raise Refusal(f"{arguments.tokenizer}: has no chat template beside it, in "
                      "tokenizer_config.json or chat_template.jinja; name a built-in one")
    if own is not None:
        jinja2 = chat_template.jinja2_package()
        if jinja2 is not None:
            return chat_template.ChatTemplate(jinja2, *own, config), None
        note = (f"the chat template of {own[0]} needs the Python package jinja2 (scripts/setup "
                "installs it)")
        if arguments.template == "tokenizer":
            raise Refusal(note)
    added = added_tokens(tokenizer)
    name = arguments.template
    name = templates.default_name(added) if name in ("auto", "tokenizer") else name
    note = note and f"{note}; the built-in {name} takes its place"
    end = end_of_answers(arguments, config, added) if name in ("alpaca", "plain") else ""
    return templates.built_in(name, added, end), note


def end_of_answers(arguments, config, added):
    """The text of the token behind each answer, for templates that have none."""
    if arguments.no_end:
        return ""
    end = arguments.end or chat_template.special_token(config, "eos_token")
    if not end:
        raise Refusal("an answer has an end that is learnt: say which token it is (--end TOKEN), "
                      "or that there is none (--no-end)")
    if end not in added:
        raise Refusal(f"{end!r} cannot end an answer: it is none of the tokenizer's added tokens, "
                      f"which are {', '.join(sorted(added)[:20]) or 'none'}; name one with --end")
    return end


def parts_of(turns, where, template, arguments):
    if arguments.last_turn_only:
        last = max(number for number, turn in enumerate(turns) if turn.role in ANSWERS)
        for turn in turns[:last]:
            turn.is_learnt = False
    if arguments.train_on_prompt:
        for turn in turns:
            turn.is_learnt = False  # the template need not tell them apart
        return [("".join(text for text, _ in template.parts(turns, where)), True)]
    joined = []
    for text, is_learnt in template.parts(turns, where):
        if joined and joined[-1][1] == is_learnt:
            joined[-1] = (joined[-1][0] + text, is_learnt)
        elif text:
            joined.append((text, is_learnt))
    return joined


def documents_of(sources, template, arguments, progress, start):
    """From a place on."""
    for number, (path, records) in enumerate(sources):
        if number < start.source:
            progress.done_bytes += path.stat().st_size
            continue
        begin = start if number == start.source else Place(source=number)
        progress.done_bytes += begin.offset
        if records is None:
            pieces = text_document(path, progress, begin.offset)
            yield Document(((piece, True) for piece in pieces), True, begin,
                           Place(source=number + 1), is_text=True)
            continue
        for where, record, (offset, line) in records_of(pathlib.Path(path), progress, begin.offset,
                                                        begin.line):
            end = Place(number, offset, line)
            if isinstance(records, TextRecords):
                text = records.text(record, where)
                yield Document(((piece, True) for piece in pieces_of([text])), True, begin, end)
            else:
                turns = records.turns(record, where)
                yield Document(parts_of(turns, where, template, arguments), template.wants_end,
                               begin, end)
            begin = end
