#!/usr/bin/env python3
"""Classification from end to end: records with labels become tokens as the tokenizer's own
post-processor has them, a BERT learns them, its validation says how many it answers rightly, and it
leaves as the class of transformers' that it is."""

import array
import json
import random
import struct
import sys

from family_models import BERT_MODEL
from hugging_face import read_safetensors
from sluice_run import database, main, require, require_equal, require_words, sluice, test
from token_files import fnv1a, made, python, refused

LENGTH = 16
MODEL = """\
family = "bert"
classes = {classes}
layers = 2
hidden = 32
heads = 4
sequence = 64
vocabulary = 64
dropout = 0.1
classifier_dropout = 0.1
"""
WORDS = {"good": "fine great lovely bright".split(), "bad": "poor awful dull grim".split(),
         "other": "the film was a story of two people and their house by sea".split()}
MAKE_TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers, processors
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
vocabulary = {word: number for number, word in enumerate(special + sys.argv[2:])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.add_special_tokens(special)
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
    special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
tokenizer.save(sys.argv[1])
"""
ENCODE = """
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.enable_truncation(int(sys.argv[2]))
tokenizer.enable_padding(length=int(sys.argv[2]), pad_id=0, pad_token="[PAD]")
for texts in json.load(sys.stdin):
    made = tokenizer.encode(*texts)
    print(json.dumps([made.ids, made.attention_mask, made.type_ids]))
"""


def tokenizer_in(place):
    path = place / "tokenizer.json"
    python(MAKE_TOKENIZER, path, *(word for words in WORDS.values() for word in words))
    return path


def sentence(chance, kind, longest):
    words = [chance.choice(WORDS["other"]) for _ in range(chance.randrange(2, longest))]
    words.insert(chance.randrange(len(words)), chance.choice(WORDS[kind]))
    return " ".join(words)


def kinds(count, seed=5):
    chance = random.Random(seed)
    return [(chance, chance.choice(["good", "bad"])) for _ in range(count)]


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def records_in(path):
    """(window length, for each record its tokens, marks and label)."""
    data = path.read_bytes()
    magic, version, width, count, _, window, checksum = struct.unpack_from("<8sIIQIIQ", data)
    require_equal((magic, version, width), (b"SLCTOKEN", 5, 1), "the header")
    require_equal(checksum, fnv1a(data[64:]), "the checksum")
    packed = data[64 + count:64 + count + (count + 3) // 4]
    marks = [byte >> place & 3 for byte in packed for place in (0, 2, 4, 6)]
    labels = array.array("i", data[64 + count + len(packed):])
    require_equal(len(labels), count // window, "labels")
    return [(list(data[64 + at:64 + at + window]), marks[at:at + window], label)
            for at, label in zip(range(0, count, window), labels)]


def tokens_of(place, count=320, name="a"):
    """A token file of texts whose label is a name."""
    records = [{"text": sentence(chance, kind, LENGTH - 3), "label": kind}
               for chance, kind in kinds(count)]
    return made(tokenizer_in(place), written(place / f"{name}.jsonl", records), "-o",
                place / f"{name}.tok", "--length", LENGTH, "--pad", "[PAD]", "--quiet")


@test
def records_are_those_of_the_tokenizers_own_post_processor(place):
    tokenizer = tokenizer_in(place)
    for first, second in (("text", None), ("sentence1", "sentence2"), ("premise", "hypothesis"),
                          ("question", "sentence")):
        records = []
        for number, (chance, kind) in enumerate(kinds(40)):
            record = {first: sentence(chance, kind, 14), "label": number % 3}
            if second:
                record[second] = sentence(chance, kind, 14)
            records.append(record)
        texts = [[record[name] for name in (first, second) if name] for record in records]
        done = made(tokenizer, written(place / "a.jsonl", records), "-o", place / "a.tok",
                    "--length", LENGTH, "--pad", "[PAD]", "--quiet")
        encoded = [json.loads(line) for line in
                   python(ENCODE, tokenizer, LENGTH, stdin=json.dumps(texts)).splitlines()]
        found = records_in(place / "a.tok")
        require_equal([tokens for tokens, _, _ in found], [ids for ids, _, _ in encoded], "tokens")
        require_equal([[mark & 1 for mark in marks] for _, marks, _ in found],
                      [mask for _, mask, _ in encoded], "tokens of records")
        require_equal([[mark >> 1 for mark in marks] for _, marks, _ in found],
                      [types for _, _, types in encoded], "tokens of second texts")
        require_equal([label for _, _, label in found], [i % 3 for i in range(40)], "labels")
        require_words(done.stdout, ["40 records of 16 tokens", "labels: 0: 14, 1: 13, 2: 13"],
                      "what is said")


@test
def labels_that_are_names_have_the_models_numbers_or_sorted_ones(place):
    said = tokens_of(place).stdout
    require_words(said, ["in sorted order: bad = 0, good = 1"], "what is said")
    names = json.loads((place / "a.labels.json").read_text())
    require_equal(names, {"label2id": {"bad": 0, "good": 1}}, "names of labels")
    first = [label for _, _, label in records_in(place / "a.tok")]
    config = {"label2id": {"good": 0, "bad": 1}}
    (place / "config.json").write_text(json.dumps(config))
    require_words(tokens_of(place).stdout, ["config.json: good = 0, bad = 1"], "what is said")
    second = [label for _, _, label in records_in(place / "a.tok")]
    require_equal(second, [1 - label for label in first], "labels by the model's numbers")
    (place / "config.json").write_text(json.dumps({"label2id": {"good": 0, "worse": 1}}))
    refused(["the label 'bad'", "label2id", "config.json"], place / "tokenizer.json",
            place / "a.jsonl", "-o", place / "a.tok", "--length", LENGTH, "--pad", "[PAD]")


@test
def records_that_are_none_are_refused_by_line(place):
    tokenizer = tokenizer_in(place)

    def refused_of(records, words, *flags):
        refused(words, tokenizer, written(place / "b.jsonl", records), "-o", place / "b.tok",
                "--length", 8, "--pad", "[PAD]", *flags)

    good = {"text": "fine", "label": 1}
    refused_of([good, {"text": "dull", "label": -1}], ["b.jsonl: line 2", "'label' is -1"])
    refused_of([good, {"text": "dull"}], ["b.jsonl: line 2", "'label' is missing"])
    refused_of([good, {"label": 1}], ["b.jsonl: line 2", "has no 'text'"])
    refused_of([{"body": "dull", "label": 1}], ["b.jsonl", "no text that --length knows", "body"])
    refused_of([good, {"text": "dull", "label": "bad"}], ["names ('bad')", "numbers"])
    require(not (place / "b.tok").exists(), "a refused input left tokens")


def model_of(place, classes):
    (place / f"bert-{classes}.toml").write_text(MODEL.format(classes=classes))
    return {"model": f"bert-{classes}.toml", "text": "a.tok", "sequence": LENGTH, "batch": 8}


@test
def a_classifier_learns_its_labels_on_host_and_device_alike_and_leaves(place):
    tokens_of(place)
    settings = {**model_of(place, 2), "steps": 60, "lr": 3e-3, "validation_every": 20,
                "validation_fraction": 0.2, "validation_batches": 100}
    device = place.train("--json", **settings).json()
    host = place.train("--json", output="host", method="host", activations="recompute",
                       grad_accum_steps=1, **settings).json()
    require_equal(host["state_digest"], device["state_digest"], "digest of the host's state")
    require_equal(host["losses"], device["losses"], "losses")
    require_equal(host["validation_accuracy"], device["validation_accuracy"], "accuracy")
    require(device["validation_accuracy"] > 0.9, f"too few right: {device['validation_accuracy']}")
    with database(place / "out/run.db") as db:
        rows = db.execute("SELECT loss, accuracy FROM validation ORDER BY step_id").fetchall()
    require_equal(rows[-1], (device["validation_loss"], device["validation_accuracy"]),
                  "the record's last validation")
    require_equal(len(rows), 3, "validations")
    shown = sluice("show", place / "out/run.db").done().out
    require_words(shown, [f"accuracy {100 * rows[-1][1]:.1f} %"], "`sluice show`")

    sluice("weights", "export", place / "out", "-o", place / "hf", cwd=place.path).done()
    config = json.loads((place / "hf/config.json").read_text())
    require_equal((config["architectures"], config["problem_type"], config["id2label"]),
                  (["BertForSequenceClassification"], "single_label_classification",
                   {"0": "LABEL_0", "1": "LABEL_1"}), "config.json")
    tensors = read_safetensors(place / "hf")
    require({"bert.pooler.dense.weight", "classifier.weight", "classifier.bias"} < tensors.keys(),
            f"tensors of the head: {sorted(tensors)}")
    again = place.train("--json", "--model", place / "hf", output="again", lr=1e-30, min_lr=0,
                        weight_decay=0, **{key: value for key, value in settings.items()
                                           if key not in ("model", "lr", "steps")}, steps=1).json()
    require_equal(again["validation_accuracy"], device["validation_accuracy"],
                  "accuracy of the weights that were exported")


@test
def a_classifier_goes_on_as_if_it_had_not_stopped_on_every_device(place):
    tokens_of(place, count=80)
    settings = {**model_of(place, 2), "steps": 3, "batch": 4, "grad_accum_steps": 2}
    whole = place.train("--json", **settings).json()
    place.train(output="half", **{**settings, "steps": 2}).done()
    half = place.train("--json", "--resume", output="half", **settings).json()
    require_equal(half["state_digest"], whole["state_digest"], "digest of a state that went on")
    soft = place.train("--json", output="soft", device="soft", activations="offload",
                       **settings).json()
    require_equal(soft["state_digest"], whole["state_digest"], "digest of the soft device's state")
    require_equal(soft["validation_accuracy"], whole["validation_accuracy"], "accuracy")


@test
def a_pretrained_bert_becomes_a_classifier_with_a_new_head(place):
    (place / "bert.toml").write_text(BERT_MODEL)
    place.train(model="bert.toml", mask_token=256, steps=1, output="pretrained").done()
    sluice("weights", "export", place / "pretrained", "-o", place / "hf", cwd=place.path).done()
    config = json.loads((place / "hf/config.json").read_text())
    config |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"}}
    (place / "hf/config.json").write_text(json.dumps(config))
    tokens_of(place, count=80)
    settings = {"model": "hf", "text": "a.tok", "sequence": LENGTH, "steps": 1}
    said = place.train(output="tuned", **settings).done().out
    require_words(said, ["and new pooler.dense.weight", "classifier.weight, classifier.bias"],
                  "the first lines")
    place.train(output="adapted", lora_rank=2, **settings).refused(
        2, ["lora_rank=2", "trained on a whole model", "has no pooler.dense.weight"])
    sluice("weights", "export", place / "tuned", "-o", place / "tuned-hf", cwd=place.path).done()
    exported = json.loads((place / "tuned-hf/config.json").read_text())
    require_equal(exported["id2label"], config["id2label"], "names of labels")
    require("classifier.weight" in read_safetensors(place / "tuned-hf"), "no head was exported")


@test
def tokens_and_models_that_do_not_belong_together_are_refused(place):
    tokens_of(place, count=80)
    two = model_of(place, 2)
    place.train(**{**two, "text": "text.txt"}).refused(2, ["text.txt", "no records with labels",
                                                           "--length N"])
    place.train(text="a.tok").refused(2, ["a.tok", "the model answers tokens"])
    place.train(**{**two, "sequence": 32}).refused(
        2, ["a.tok", "records of up to 16 tokens", "set sequence = 16"])
    place.train(**two, mask_token=1).refused(2, ["mask_token = 1", "answers classes of records"])
    place.train(**two, documents="apart").refused(2, ["documents = apart", "classifies records"])
    written(place / "c.jsonl", [{"text": "fine", "label": i % 3} for i in range(80)])
    made(place / "tokenizer.json", place / "c.jsonl", "-o", place / "c.tok", "--length", LENGTH,
         "--pad", "[PAD]", "--quiet")
    place.train(**{**two, "text": "c.tok"}).refused(2, ["c.tok", "labels up to 2",
                                                        "the model has 2 classes"])
    (place / "one.toml").write_text(MODEL.format(classes=1))
    place.train(**{**two, "model": "one.toml"}).refused(2, ["one.toml", "'classes' = 1",
                                                            "regression"])


if __name__ == "__main__":
    sys.exit(main())
