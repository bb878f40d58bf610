"""LLaMA-Factory's registry of data sets: a file dataset_info.json, with a name for each."""

import json

from tokenizing.conversations import (OPENAI_ROLES, SHAREGPT_ROLES, AlpacaRecords, MessageRecords)
from tokenizing.refusal import Refusal, nearest

FORMATTINGS = ("alpaca", "sharegpt", "openai")
COLUMNS = ("prompt", "query", "response", "system", "history", "messages", "tools")
# Pictures, sounds and preferences are nothing that tokens are made of here.
UNREAD_COLUMNS = ("images", "videos", "audios", "chosen", "rejected", "kto_tag")
TAG_OF_ROLE = {"user_tag": "user", "assistant_tag": "assistant", "system_tag": "system",
               "observation_tag": "observation", "function_tag": "function"}
TAGS = ("role_tag", "content_tag", *TAG_OF_ROLE)


def named_dataset(info_path, name):
    """(path of the file, how its records are read)."""
    datasets = loaded(info_path)
    if name not in datasets:
        raise Refusal(f"{info_path}: has no data set {name!r}; {nearest(name, datasets)}")
    entry = datasets[name]
    where = f"{info_path}: {name!r}"
    if not isinstance(entry, dict) or not isinstance(entry.get("file_name"), str):
        raise Refusal(f"{where} has no 'file_name': it does not lie on this machine, and nothing "
                      "is fetched; fetch it and name its file")
    if entry.get("ranking"):
        raise Refusal(f"{where} has better and worse answers ('ranking'), and nothing learns from "
                      "those here")
    formatting = entry.get("formatting", "alpaca")
    if formatting not in FORMATTINGS:
        raise Refusal(f"{where}: 'formatting' is {formatting!r}; "
                      f"{nearest(str(formatting), FORMATTINGS)}")
    columns = checked(entry, "columns", COLUMNS, where)
    tags = checked(entry, "tags", TAGS, where)
    path = info_path.parent / entry["file_name"]
    if formatting == "alpaca":
        return path, alpaca(columns, where)
    return path, messages(formatting, columns, tags)


def loaded(info_path):
    try:
        datasets = json.loads(info_path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{info_path}: is no JSON: {error}") from None
    if not isinstance(datasets, dict):
        raise Refusal(f"{info_path}: is no object with data sets, as LLaMA-Factory's "
                      "dataset_info.json is")
    return datasets


def checked(entry, key, known, where):
    values = entry.get(key) or {}
    if not isinstance(values, dict):
        raise Refusal(f"{where}: {key!r} is no object")
    for name, value in values.items():
        if name in UNREAD_COLUMNS and key == "columns":
            raise Refusal(f"{where}: the column {name!r} is not read: only texts become tokens")
        if name not in known:
            raise Refusal(f"{where}: {key!r} has an unknown {name!r}; {nearest(name, known)}")
        if not isinstance(value, (str, type(None))):
            raise Refusal(f"{where}: {name!r} of {key!r} is no text")
    return values


def alpaca(columns, where):
    """As LLaMA-Factory does it, a column that is not named is not read once one is."""
    if not columns:
        return AlpacaRecords()
    for column in ("prompt", "response"):
        if not columns.get(column):
            raise Refusal(f"{where}: 'columns' does not say which key is the {column!r}")
    return AlpacaRecords(*(columns.get(column) for column in COLUMNS[:5]))


def messages(formatting, columns, tags):
    is_openai = formatting == "openai"
    roles = {**(OPENAI_ROLES if is_openai else SHAREGPT_ROLES)}
    for tag, role in TAG_OF_ROLE.items():
        if tags.get(tag):
            # A word that names another now is no longer one of the usual ones.
            roles = {of: [word for word in words if word != tags[tag]]
                     for of, words in roles.items()}
            roles[role] = [tags[tag]]
    return MessageRecords(
        formatting, columns.get("messages") or ("messages" if is_openai else "conversations"),
        tags.get("role_tag") or ("role" if is_openai else "from"),
        tags.get("content_tag") or ("content" if is_openai else "value"), roles,
        columns.get("system"))
