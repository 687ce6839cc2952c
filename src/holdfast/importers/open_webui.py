"""Open WebUI: "Export chats", or a single chat downloaded as JSON."""

import html
import re
from collections.abc import Iterator
from typing import Final

from holdfast.core.events import Ending, Failure
from holdfast.core.ids import MessageId
from holdfast.core.parts import FilePart, Part
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.fields import (
    Json,
    Object,
    decode_data_url,
    objects,
    parse_arguments,
    require_object,
    seconds,
    text,
    usage,
)
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles
from holdfast.importers.tree_walk import add_tree

APP: Final = "open-webui"
_OPEN: Final = '<details type="'
_CLOSE: Final = "</details>"
_BLOCK: Final = re.compile(
    r'<details type="(reasoning|tool_calls|code_interpreter)"([^>]*)>\s*(?:<summary>[^<]*</summary>)?(.*)', re.DOTALL
)
_MAX_REFERENCES: Final = 1_000_000
_FIELDS: Final = frozenset({"arguments", "id", "name", "done", "result"})
_ATTRIBUTE: Final = re.compile(r'(?<!\w)(\w++)="([^"]*)"')  # Tries each word once: linear in the text


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    names = files.json_names
    files.total = sum(map(files.size, names))
    for name in names:
        for place, item in files.read_objects(name):
            chat = item.get("chat", item)  # a chat downloaded by itself has no envelope
            if not isinstance(chat, dict) or not isinstance(chat.get("history"), dict):
                skip(text(item.get("title")) or place, f"it has no messages ({place})")
                continue
            yield _build(item, chat, place, skip, files)


def _build(item: Object, chat: Object, place: str, skip: Skip, files: SourceFiles) -> SessionBuilder:
    history = require_object(chat["history"], f"{place}, field history")
    found = require_object(history.get("messages"), f"{place}, field history.messages")
    oid = text(item.get("id")) or text(chat.get("id")) or next(iter(found), "empty")
    title = text(item.get("title")) or text(chat.get("title"))
    created = seconds(item.get("created_at")) or seconds(chat.get("timestamp"))
    builder = SessionBuilder(APP, oid, skip, files.check, files.scratch, title=title, created_at=created)
    builder.archived, builder.pinned = item.get("archived") is True, item.get("pinned") is True
    builder.system = text(chat.get("system")) or None
    meta = item.get("meta")
    tags = meta.get("tags") if isinstance(meta, dict) else chat.get("tags")
    builder.tags = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    if folder := text(item.get("folder_id")):
        builder.project = f"Open WebUI folder {folder[:8]}"
    _add_messages(builder, found, text(history.get("currentId")), f"{place}, field history.messages")
    return builder


def _add_messages(builder: SessionBuilder, found: Object, current: str, place: str) -> None:
    ids: dict[str, MessageId] = {}
    parents: dict[str, str | None] = {}
    questions: set[str] = set()
    for key, value in found.items():
        message = require_object(value, f"{place}.{key}")
        parents[key] = text(message.get("parentId")) or None
        if message.get("role") == "user":
            questions.add(key)

    def add(key: str, parent: MessageId | None, user_follows: bool) -> MessageId | None:
        message, at = found[key], seconds(found[key].get("timestamp"))
        if message.get("role") == "system":
            builder.system = builder.system or text(message.get("content")) or None
            return None
        if key in questions:
            parts = AnswerParts(builder.label)
            parts.add_text(text(message.get("content")))
            for part in _files(builder, message):
                parts.add_file(part)
            ids[key] = builder.add("user", parent, parts.finish(user_follows=False), key=key, at=at)
        else:
            ids[key] = _add_answer(builder, key, message, parent, user_follows=user_follows)
        return ids[key]

    add_tree(parents, questions.__contains__, add)
    builder.head = ids.get(current, builder.head)


def _add_answer(
    builder: SessionBuilder, key: str, message: Object, parent: MessageId | None, *, user_follows: bool
) -> MessageId:
    error = message.get("error")
    failure = None
    if error:
        detail = text(error.get("content")) if isinstance(error, dict) else text(error)
        failure = Failure("upstream", detail or text(message.get("content")) or "The answer failed.")
    ending: Ending = "interrupted" if message.get("done") is False else "complete"
    return builder.add(
        "assistant",
        parent,
        _answer(builder, message, user_follows=user_follows),
        key=key,
        at=seconds(message.get("timestamp")),
        status="failed" if failure is not None else ending,
        error=failure,
        model=text(message.get("model")),
        usage=usage(message.get("usage"), "prompt_tokens", "completion_tokens"),
    )


def _answer(builder: SessionBuilder, message: Object, *, user_follows: bool) -> list[Part]:
    answer = AnswerParts(builder.label)
    output = objects(message.get("output"))
    if output:
        for item in output:
            _add_item(answer, item)
    else:
        _add_markup(answer, text(message.get("content")))
    for part in _files(builder, message):
        answer.add_file(part)
    return answer.finish(user_follows=user_follows)


def _add_item(answer: AnswerParts, item: Object) -> None:
    """An item of the Responses API."""
    match item.get("type"):
        case "reasoning":
            duration = item.get("duration")
            answer.add_reasoning(
                _text_of(item.get("content")) or _text_of(item.get("summary")),
                duration if isinstance(duration, int | float) and 0 <= duration < 1e9 else None,
            )
        case "function_call":
            call_id = text(item.get("call_id")) or text(item.get("id"))
            answer.add_call(call_id, text(item.get("name")), parse_arguments(item.get("arguments")))
        case "function_call_output":
            output = item.get("output")
            failed = item.get("status") in ("failed", "incomplete")
            answer.add_result(text(item.get("call_id")), "", _text_of(output) or output, is_error=failed)
        case "message":
            answer.add_text(_text_of(item.get("content")))
        case _:
            pass


def _text_of(content: Json) -> str:
    return content if isinstance(content, str) else "".join(text(part.get("text")) for part in objects(content))


def _add_markup(answer: AnswerParts, content: str) -> None:
    """Text with `<details>` blocks, in which older versions keep reasoning and tool calls."""
    at = 0
    while (start := content.find(_OPEN, at)) >= 0 and (end := content.find(_CLOSE, start)) >= 0:
        answer.add_text(content[at:start].strip("\n"))
        at = end + len(_CLOSE)
        block = _BLOCK.match(content, start, end)
        if block is None:
            answer.add_text(content[start:at])
        else:
            _add_block(answer, block[1], block[2], block[3])
    answer.add_text(content[at:].lstrip("\n") if at else content)


def _add_block(answer: AnswerParts, kind: str, attributes: str, body: str) -> None:
    if kind == "reasoning":
        answer.add_reasoning(_unquote(_unescape(body).strip()))
    elif kind == "tool_calls":
        found = {match[1]: match[2] for match in _ATTRIBUTE.finditer(attributes) if match[1] in _FIELDS}
        fields = {name: _unescape(value) for name, value in found.items()}
        args = parse_arguments(fields.get("arguments", ""))
        call = answer.add_call(fields.get("id", ""), fields.get("name", ""), args)
        if fields.get("done") == "true":
            answer.add_result(call, "", parse_result(fields.get("result", "")))
    else:
        answer.add_text(_unescape(body))


def _unquote(quoted: str) -> str:
    """The text without the mark of a quotation at the beginning of each line. Makes no list of lines, which can take
    much more memory than the text."""
    lines = "\n" + quoted.replace("\r\n", "\n").replace("\0", "\ufffd")
    return lines.replace("\n>", "\n\0").replace("\0 ", "").replace("\0", "")[1:]


def _unescape(value: str) -> str:
    """A text of very many references stays as it is: each takes time and is a piece in memory."""
    if value.count("&") > _MAX_REFERENCES:
        return value
    try:
        return html.unescape(value)
    except ValueError:  # a character reference of thousands of digits
        return value


def parse_result(value: str) -> Json:
    """A result in its JSON form: text stays text."""
    parsed = parse_arguments(value)
    return parsed["input"] if isinstance(parsed, dict) and set(parsed) == {"input"} else parsed


def _files(builder: SessionBuilder, message: Object) -> Iterator[FilePart]:
    for item in objects(message.get("files")):
        file = item.get("file")
        file = file if isinstance(file, dict) else {}
        meta = file.get("meta")
        meta = meta if isinstance(meta, dict) else {}
        url = text(item.get("url"))
        decoded = decode_data_url(url)
        is_image = item.get("type") == "image"
        kind = text(meta.get("content_type")) or text(item.get("content_type")) or ("image/png" if is_image else "")
        name = text(item.get("name")) or text(file.get("filename")) or ("image.png" if is_image else "file")
        data = file.get("data")
        content = text(data.get("content")) if isinstance(data, dict) else ""
        if decoded is not None:
            yield builder.add_content(name, decoded[0], decoded[1])
        elif content:  # the text that was extracted from the file, whatever the file was
            yield builder.add_content(name, "text/plain", content.encode("utf-8", "replace"))
        else:
            size = meta.get("size")
            yield builder.add_missing_file(
                name, kind, size if type(size) is int else 0, text(item.get("id")) or url[:200]
            )
