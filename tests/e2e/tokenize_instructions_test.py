#!/usr/bin/env python3
"""scripts/tokenize of instruction data: which tokens, which of them are learnt, and where
conversations begin. The texts are written out here as the templates' authors have them."""

import json
import sys

from sluice_run import (NANO_MODEL, Failure, Skip, main, require, require_equal, require_words,
                        test)
from token_files import (END, encoded, made, marked_tokens_in, python, refused, tokenizer_of)

CHATML = (END, "<|im_start|>", "<|im_end|>")
LLAMA3 = (END, "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
ALPACA_BEGIN = ("Below is an instruction that describes a task. Write a response that "
                "appropriately completes the request.\n\n")
# A conversation of two turns, as ChatML has it: (text, whether it is learnt).
TWO_TURNS = [("<|im_start|>user\nHow are you?<|im_end|>\n<|im_start|>assistant\n", False),
             ("Well, thanks.<|im_end|>", True),
             ("\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n", False),
             ("It is spring.<|im_end|>", True)]
TWO_TURNS_SAID = [("human", "How are you?"), ("gpt", "Well, thanks."), ("human", "Why?"),
                  ("gpt", "It is spring.")]
CHATML_JINJA = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
                "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def sharegpt(said=TWO_TURNS_SAID, **more):
    return {"conversations": [{"from": who, "value": text} for who, text in said], **more}


def require_documents(path, tokenizer, *documents):
    """Each is its parts; tokens are of a part alone."""
    wanted = []
    for parts in documents:
        document = [(token, int(is_learnt)) for ids, (_, is_learnt) in
                    zip(encoded(tokenizer, [text for text, _ in parts]), parts) for token in ids]
        wanted += [(document[0][0], document[0][1] | 2), *document[1:]]
    require_equal(marked_tokens_in(path), wanted, "tokens and marks")


def made_of(place, tokenizer, records, *arguments):
    write_lines(place / "a.jsonl", records)
    return made(tokenizer, place / "a.jsonl", "-o", place / "a.tok", *arguments)


def needs_jinja2():
    try:
        python("import jinja2")
    except Failure:
        raise Skip("the Python package jinja2 is not beside tokenizers (scripts/setup)") from None


@test
def of_a_record_of_alpaca_the_answer_and_its_end_are_learnt(place):
    tokenizer = tokenizer_of(place)
    records = [{"instruction": "Add.", "input": "1 and 2", "output": "3"},
               {"instruction": "Name a colour.", "input": "", "output": "Red."},
               {"instruction": "And now?", "input": None, "output": "Blue.", "system": "Be short.",
                "history": [["Which?", "That."]]}]
    (place / "a.json").write_text(json.dumps(records, indent=1))
    done = made(tokenizer, place / "a.json", "-o", place / "a.tok", "--end", END)
    require_documents(
        place / "a.tok", tokenizer,
        [(ALPACA_BEGIN + "### Instruction:\nAdd.\n1 and 2\n\n### Response:\n", False),
         ("3" + END, True)],
        [(ALPACA_BEGIN + "### Instruction:\nName a colour.\n\n### Response:\n", False),
         ("Red." + END, True)],
        [("Be short.\n\n### Instruction:\nWhich?\n\n### Response:\n", False), ("That." + END, True),
         ("\n\n### Instruction:\nAnd now?\n\n### Response:\n", False), ("Blue." + END, True)])
    require_words(done.stdout, ["tokens are learnt (", "documents: 3, template alpaca"], "output")
    refused(["--end TOKEN", "--no-end"], tokenizer, place / "a.json", "-o", place / "b.tok")
    (place / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": END}}))
    made(tokenizer, place / "a.json", "-o", place / "b.tok")
    require_equal((place / "b.tok").read_bytes(), (place / "a.tok").read_bytes(),
                  "with the end of tokenizer_config.json")
    made_of(place, tokenizer, records[1:2], "--template", "plain", "--no-end")
    require_documents(place / "a.tok", tokenizer, [("Name a colour.\n", False), ("Red.", True)])


@test
def of_a_conversation_of_sharegpt_each_answer_is_learnt_or_the_last_one_or_all(place):
    tokenizer = tokenizer_of(place, special=CHATML)
    made_of(place, tokenizer, [sharegpt(), sharegpt(system="Be kind.")])
    system = ("<|im_start|>system\nBe kind.<|im_end|>\n" + TWO_TURNS[0][0], False)
    require_documents(place / "a.tok", tokenizer, TWO_TURNS, [system, *TWO_TURNS[1:]])
    made_of(place, tokenizer, [sharegpt()], "--last-turn-only", "--end", END)
    before = "".join(text for text, _ in TWO_TURNS[:3])
    require_documents(place / "a.tok", tokenizer,
                      [(before, False), (TWO_TURNS[3][0] + END, True)])
    made_of(place, tokenizer, [sharegpt()], "--train-on-prompt")
    require_documents(place / "a.tok", tokenizer, [(before + TWO_TURNS[3][0], True)])
    called = sharegpt([("human", "Time?"), ("function_call", "{}"), ("observation", "noon"),
                       ("gpt", "Noon.")])
    made_of(place, tokenizer, [called])
    require_documents(
        place / "a.tok", tokenizer,
        [("<|im_start|>user\nTime?<|im_end|>\n<|im_start|>assistant\n", False),
         ("{}<|im_end|>", True),
         ("\n<|im_start|>tool\nnoon<|im_end|>\n<|im_start|>assistant\n", False),
         ("Noon.<|im_end|>", True)])


@test
def messages_of_openai_are_written_as_llama_3_has_them(place):
    tokenizer = tokenizer_of(place, special=LLAMA3)
    record = {"messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("He", "y")]},
        {"role": "assistant", "content": "Yes?", "weight": 0},
        {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Bye!"}]}
    made_of(place, tokenizer, [record])
    head = "<|start_header_id|>{}<|end_header_id|>\n\n".format
    require_documents(
        place / "a.tok", tokenizer,
        [("<|begin_of_text|>" + head("system") + "Be brief.<|eot_id|>" + head("user") +
          "Hey<|eot_id|>" + head("assistant") + "Yes?<|eot_id|>" + head("user") + "Bye<|eot_id|>" +
          head("assistant"), False), ("Bye!<|eot_id|>", True)])
    record["messages"][-1]["weight"] = 0
    write_lines(place / "b.jsonl", [record])
    refused(["none of the", "would be learnt"], tokenizer, place / "b.jsonl", "-o", place / "b.tok")
    require(not (place / "b.tok").exists(), "a file of which nothing is learnt")
    refused(["--template chatml", "no token '<|im_start|>'"], tokenizer, place / "a.jsonl", "-o",
            place / "b.tok", "--template", "chatml")


@test
def a_registry_of_llama_factory_names_files_columns_and_tags(place):
    tokenizer = tokenizer_of(place, special=CHATML)
    (place / "data").mkdir()
    info = place / "data/dataset_info.json"
    said = [{"who": "U", "what": "How are you?"}, {"who": "A", "what": "Well, thanks."},
            {"who": "U", "what": "Why?"}, {"who": "A", "what": "It is spring."}]
    (place / "data/own.json").write_text(json.dumps([{"talk": said, "sys": "Be kind."}]))
    write_lines(place / "data/pairs.jsonl", [{"q": "One?", "a": "Two.", "input": "not read"}])
    sets = {"own": {"file_name": "own.json", "formatting": "sharegpt",
                    "columns": {"messages": "talk", "system": "sys"},
                    "tags": {"role_tag": "who", "content_tag": "what", "user_tag": "U",
                             "assistant_tag": "A"}},
            "pairs": {"file_name": "pairs.jsonl", "columns": {"prompt": "q", "response": "a"}},
            "far": {"hf_hub_url": "somebody/far"}, "liked": {"file_name": "x", "ranking": True},
            "odd": {"file_name": "x", "formatting": "sharegtp"},
            "tags": {"file_name": "x", "formatting": "sharegpt", "tags": {"usr_tag": "U"}}}
    info.write_text(json.dumps(sets))
    chosen = ["-o", place / "a.tok", "--dataset-info", info]
    made(tokenizer, *chosen, "--dataset", "own", "--dataset", "pairs")
    require_documents(
        place / "a.tok", tokenizer,
        [("<|im_start|>system\nBe kind.<|im_end|>\n" + TWO_TURNS[0][0], False), *TWO_TURNS[1:]],
        [("<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n", False),
         ("Two.<|im_end|>", True)])
    for name, words in [("pears", ["no data set 'pears'", "nearest is 'pairs'"]),
                        ("far", ["'far' has no 'file_name'"]), ("liked", ["ranking"]),
                        ("odd", ["'sharegtp'", "nearest is 'sharegpt'"]),
                        ("tags", ["unknown 'usr_tag'", "nearest is 'user_tag'"])]:
        refused(["dataset_info.json", *words], tokenizer, *chosen, "--dataset", name)


@test
def a_bad_record_is_named_by_file_and_line(place):
    tokenizer = tokenizer_of(place, special=CHATML)
    good = sharegpt()
    for bad, words in [
            (sharegpt([("humna", "a"), ("gpt", "b")]),
             ["turn 1 of 'conversations': nobody is called 'humna'", "nearest is 'human'"]),
            (sharegpt([("human", "a")]), ["has no answer"]), ("text", ["is no object"]),
            ({"conversation": []}, ["no list 'conversations'", "nearest is 'conversation'"]),
            ({"conversations": [{"from": "gpt", "valu": "a"}]},
             ["turn 1", "has no 'value'", "nearest is 'valu'"]),
            (sharegpt([("human", "a"), ("gpt", None)]), ["turn 2", "'value' is no text"]),
            (sharegpt([("human", "a"), ("gpt", "\ud800")]), ["half a surrogate pair"])]:
        write_lines(place / "b.jsonl", [good, bad])
        (place / "b.json").write_text(json.dumps([good, bad]).replace("}]}, ", "}]},\n", 1))
        for name in ("b.jsonl", "b.json"):
            refused([f"{name}: line 2", *words], tokenizer, place / name, "-o", place / "b.tok")
    write_lines(place / "c.jsonl", [{"instruction": "a", "output": "b"}, {"instruction": "a"}])
    refused(["c.jsonl: line 2 has no 'output'"], tokenizer, place / "c.jsonl", "-o",
            place / "b.tok")
    write_lines(place / "c.jsonl", [{"instruction": "a", "output": "b", "history": [["a"]]}])
    refused(["c.jsonl: line 1: pair 1 of 'history'"], tokenizer, place / "c.jsonl", "-o",
            place / "b.tok")
    refused(["c.jsonl: line 1 has no list 'messages'"], tokenizer, place / "c.jsonl", "-o",
            place / "b.tok", "--format", "openai")
    write_lines(place / "d.jsonl", [{"text": "a"}])
    refused(["--last-turn-only is for instruction data"], tokenizer, place / "d.jsonl", "-o",
            place / "b.tok", "--no-end", "--last-turn-only")
    require_equal([path.name for path in place.path.glob("b.tok*")], [], "files of what is refused")


@test
def the_tokenizers_own_template_is_taken_where_jinja2_is(place):
    tokenizer = tokenizer_of(place, special=CHATML)
    needs_jinja2()
    config = place / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": CHATML_JINJA}))
    done = made_of(place, tokenizer, [sharegpt()])
    require_documents(place / "a.tok", tokenizer, [*TWO_TURNS, ("\n", False)])
    require_words(done.stdout, ["template of the tokenizer"], "output")
    made_of(place, tokenizer, [sharegpt()], "--template", "chatml")
    require_documents(place / "a.tok", tokenizer, TWO_TURNS)
    # One that shortens earlier answers, as models that think have it.
    shortens = CHATML_JINJA.replace("m['content']", "m['content'] if loop.last else '-'")
    (place / "chat_template.jinja").write_text(shortens)
    refused(["a.jsonl: line 1", "chat_template.jinja", "--last-turn-only"], tokenizer,
            place / "a.jsonl", "-o", place / "b.tok")


@test
def a_template_is_a_foreign_program_in_a_sandbox(place):
    tokenizer = tokenizer_of(place, special=CHATML)
    needs_jinja2()
    write_lines(place / "a.jsonl", [sharegpt()])
    for template, words in [
            ("{{ ''.__class__.__mro__[1].__subclasses__() }}", ["unsafe"]),
            ("{{ messages.append(1) }}", ["does not take it"]),
            ("{{ raise_exception('no systems') }}", ["a.jsonl: line 1", "no systems"]),
            ("{% for m in messages %}", ["tokenizer_config.json", "none that jinja2 reads"]),
            ("{% include 'tokenizer.json' %}", ["does not take it"]),
            ("always the same", ["leaves out an answer", "--template chatml"])]:
        (place / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
        refused(words, tokenizer, place / "a.jsonl", "-o", place / "b.tok")
    (place / "tokenizer_config.json").unlink()
    refused(["no chat template beside it"], tokenizer, place / "a.jsonl", "-o", place / "b.tok",
            "--template", "tokenizer")


@test
def a_run_reads_the_file_and_refuses_a_damaged_one(place):
    tokenizer = tokenizer_of(place, special=CHATML)
    made_of(place, tokenizer, [sharegpt()] * 40)
    (place / "nano.toml").write_text(NANO_MODEL.replace("256", "400"))
    place.train(text="a.tok").done()
    data = bytearray((place / "a.tok").read_bytes())
    data[-1] ^= 1
    (place / "a.tok").write_bytes(data)
    place.train(text="a.tok", output="other").refused(1, ["a.tok: the tokens", "damaged"])


if __name__ == "__main__":
    sys.exit(main())
