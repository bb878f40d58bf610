"""Records with a label: a text, or two, and a class. Each fills a window of its own, as the
tokenizer's post-processor writes it ([CLS] a [SEP] b [SEP])."""

import io
import json

from tokenizing.progress import Progress
from tokenizing.records import first_record, is_json, records_of, text_of
from tokenizing.refusal import Refusal
from tokenizing.token_file import OF_RECORD, OF_SECOND_TEXT, TokenWriter, new_file

LABEL = "label"
# Names of GLUE's tasks.
PAIRS = (("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"),
         ("question", "sentence"))
SINGLE = ("text", "sentence")
RECORDS_AT_ONCE = 1024
LABELS_MAX = 1_000_000


def columns_of(path, record):
    """The one or two texts of a file's records, by its first."""
    has = record if isinstance(record, dict) else {}
    for columns in (*PAIRS, *((name,) for name in SINGLE)):
        if all(column in has for column in columns):
            return columns
    wanted = ", ".join([*SINGLE, *(" and ".join(pair) for pair in PAIRS)])
    raise Refusal(f"{path}: the first record has no text that --length knows ({wanted}); it has: "
                  f"{', '.join(has) or 'no keys'}")


def texts_in(record, columns, where):
    for column in columns:
        if not isinstance(record, dict) or column not in record:
            raise Refusal(f"{where} has no {column!r}, and the file's first record has")
    return tuple(text_of(record, column, where) for column in columns)


def label_in(record, where):
    label = record.get(LABEL)
    if isinstance(label, str) and label:
        return label
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < LABELS_MAX:
        return label
    said = f"is {json.dumps(label)}" if LABEL in record else "is missing"
    raise Refusal(f"{where}: {LABEL!r} {said}; a label is a name, or a number from 0 to "
                  f"{LABELS_MAX - 1}")


def records_with_labels(paths, progress):
    """(texts, label) of each."""
    for path in paths:
        if not is_json(path):
            raise Refusal(f"{path}: --length takes records with a label, of .jsonl or .json")
        columns = columns_of(path, first_record(path))
        for where, record, _ in records_of(path, progress):
            yield texts_in(record, columns, where), label_in(record, where)


def config_labels(tokenizer_path):
    """label2id of the model's config.json beside the tokenizer; empty where there is none."""
    path = tokenizer_path.with_name("config.json")
    if not path.exists():
        return {}
    try:
        labels = json.loads(path.read_bytes()).get("label2id") or {}
    except (ValueError, RecursionError, AttributeError) as error:
        raise Refusal(f"{path}: is no model's configuration: {error}") from None
    if not isinstance(labels, dict) or not all(isinstance(each, int) for each in labels.values()):
        raise Refusal(f"{path}: 'label2id' has not a number for each name")
    return labels


def numbered(names, tokenizer_path):
    """(the number of each name, where it is from): by the model's configuration where it has one of
    them, else in sorted order."""
    known = config_labels(tokenizer_path)
    if not names & known.keys():
        return {name: number for number, name in enumerate(sorted(names))}, "in sorted order"
    if missing := sorted(names - known.keys()):
        raise Refusal(f"the label {missing[0]!r} is none of 'label2id' in "
                      f"{tokenizer_path.with_name('config.json')}, which has "
                      f"{', '.join(map(repr, sorted(known)[:20]))}")
    return known, f"by {tokenizer_path.with_name('config.json')}"


def numbers_of(labels, tokenizer_path):
    """(numbers, names and their numbers or None, where these are from)."""
    names = {label for label in labels if isinstance(label, str)}
    if not names:
        return labels, None, ""
    if any(isinstance(label, int) for label in labels):
        raise Refusal(f"some labels are names ({min(names)!r}) and some are numbers; keep to one")
    by_name, origin = numbered(names, tokenizer_path)
    return [by_name[label] for label in labels], by_name, origin


def check_tokenizer(tokenizer, path, length):
    """A classifier reads the first token, which stands for the record."""
    added = tokenizer.num_special_tokens_to_add(True)
    if added == 0:
        raise Refusal(f"{path}: its post-processor puts no token around a text, such as [CLS], and "
                      "a model that classifies reads the first one; take a BERT's tokenizer")
    if length <= added:
        raise Refusal(f"--length {length} leaves no token of a pair of texts beside the {added} "
                      "that the tokenizer adds")
    tokenizer.enable_truncation(length)


class Windows:
    """Each record in one, filled up."""

    def __init__(self, writer, length, pad):
        self.writer, self.length, self.pad = writer, length, pad
        self.cut = self.pads = 0

    def add(self, encoding):
        fill = self.length - len(encoding.ids)
        marks = bytes(OF_RECORD | (OF_SECOND_TEXT if kind else 0) for kind in encoding.type_ids)
        self.writer.add([*encoding.ids, *[self.pad] * fill], marks + bytes(fill))
        self.cut += bool(encoding.overflowing)
        self.pads += fill


def batches(records):
    batch = []
    for record in records:
        batch.append(record)
        if len(batch) == RECORDS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def write_labelled(arguments, tokenizer, vocabulary, pad):
    """What was written, as sentences. Labels and marks of all records are in memory."""
    check_tokenizer(tokenizer, arguments.tokenizer, arguments.length)
    progress = Progress(sum(path.stat().st_size for path in arguments.texts), arguments.quiet)
    names_path = arguments.output.with_suffix(".labels.json")
    with new_file(arguments.output) as file:
        writer = TokenWriter(file, io.BytesIO(), vocabulary, is_new=True)
        windows, labels = Windows(writer, arguments.length, pad), []
        for batch in batches(records_with_labels(arguments.texts, progress)):
            texts = [texts if len(texts) == 2 else texts[0] for texts, _ in batch]
            for encoding in tokenizer.encode_batch(texts):
                windows.add(encoding)
            labels += [label for _, label in batch]
            progress.note(writer.count)
        numbers, by_name, origin = numbers_of(labels, arguments.tokenizer)
        writer.finish(arguments.length, numbers)
        if by_name:
            check_names(names_path)
            names_path.write_text(json.dumps({"label2id": by_name}, indent=2) + "\n")
    progress.end()
    return said_of(arguments, writer, windows, numbers, by_name, origin)


def check_names(path):
    """A file that is not ours is somebody's."""
    if not path.exists():
        return
    try:
        is_ours = "label2id" in json.loads(path.read_bytes())
    except (ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise Refusal(f"{path}: exists and has no label2id, so it is not overwritten; name another "
                      "output or remove it")


def said_of(arguments, writer, windows, numbers, by_name, origin):
    counts = [numbers.count(number) for number in range(max(numbers) + 1)]
    lines = [f"{arguments.output}: {len(numbers):,} records of {arguments.length:,} tokens of "
             f"{writer.width} bytes, vocabulary {writer.vocabulary:,}",
             f"{windows.pads / writer.count:.1%} of the tokens fill records; {windows.cut:,} "
             "records are longer and were cut",
             f"labels: {', '.join(f'{number}: {count:,}' for number, count in enumerate(counts))}"]
    if by_name:
        named = ", ".join(f"{name} = {number}" for name, number in by_name.items())
        lines.append(f"names of labels, {origin}: {named}")
    return lines
