"""LibreChat: a conversation exported as JSON, nested or flat; several of them in a directory or ZIP archive."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from holdfast.core.events import Failure
from holdfast.core.ids import MessageId
from holdfast.core.parts import FilePart, Part
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.fields import (
    Json,
    Object,
    decode_data_url,
    objects,
    parse_arguments,
    require_list,
    require_object,
    require_text,
    seconds,
    text,
)
from holdfast.importers.json_objects import read_objects
from holdfast.importers.message_tree import add_tree
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles

APP: Final = "librechat"
_SHOWN: Final = 100  # Characters of an id in error messages


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    names = files.json_names
    files.total = sum(map(files.size, names))
    for name in names:
        with files.open(name) as stream:
            for place, item in read_objects(stream, files.label(name)):
                if not item.get("conversationId") or not ({"messagesTree", "messages"} & item.keys()):
                    skip(text(item.get("title")) or place, f"it is not a LibreChat conversation ({place})")
                    continue
                yield _build(item, place, skip, files.check)


def _build(item: Object, place: str, skip: Skip, check: Callable[[], object]) -> SessionBuilder:
    oid = require_text(item["conversationId"], f"{place}, conversationId")
    created = seconds(item.get("createdAt"))
    builder = SessionBuilder(APP, oid, skip, check, title=text(item.get("title")), created_at=created)
    options = item.get("options")
    if isinstance(options, dict):
        builder.system = text(options.get("promptPrefix")) or text(options.get("system")) or None
    builder.archived = item.get("isArchived") is True
    tags = item.get("tags")
    builder.tags = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    found, parents = _flatten(item, place)
    newest: tuple[float, MessageId] | None = None

    def is_user(key: str) -> bool:
        return found[key].get("isCreatedByUser") is True

    def add(key: str, parent: MessageId | None, user_follows: bool) -> MessageId:
        nonlocal newest
        message = found[key]
        at = seconds(message.get("createdAt"))
        parts, error = _parts(builder, message, user_follows=user_follows)
        if is_user(key):
            mid = builder.add("user", parent, parts, key=key, at=at)
        else:
            model = text(message.get("model"))
            mid = builder.add("assistant", parent, parts, key=key, at=at, error=error, model=model)
            if error is not None:
                builder.mark(mid, "failed")
            elif message.get("unfinished") is True:
                builder.mark(mid, "interrupted")
        if newest is None or (at or 0.0) >= newest[0]:
            newest = (at or 0.0, mid)
        return mid

    add_tree(parents, is_user, add)
    if newest is not None:
        builder.head = newest[1]
    return builder


def _flatten(item: Object, place: str) -> tuple[dict[str, Object], dict[str, str | None]]:
    """The messages and their parents by id, of a list or of nested replies."""
    field = "messagesTree" if "messagesTree" in item else "messages"
    found: dict[str, Object] = {}
    parents: dict[str, str | None] = {}
    stack: list[tuple[Json, str, str | None]] = _entries(require_list(item[field], f"{place}, {field}"), field, None)
    while stack:
        value, path, above = stack.pop()
        message = require_object(value, f"{place}, {path}")
        key = require_text(message.get("messageId"), f"{place}, {path}.messageId")
        found[key] = message
        parents[key] = above or text(message.get("parentMessageId")) or None
        children = message.get("children")
        if isinstance(children, list):
            stack += _entries(children, "children", key)
    return found, parents


def _entries(values: Sequence[Json], field: str, above: str | None) -> list[tuple[Json, str, str | None]]:
    path = field if above is None else f"{field} of {above[:_SHOWN]}"  # a copy for each child, so it must be short
    return [(value, f"{path}.{n}", above) for n, value in enumerate(values)][::-1]


def _parts(builder: SessionBuilder, message: Object, *, user_follows: bool) -> tuple[list[Part], Failure | None]:
    answer, error = AnswerParts(), None
    for part in objects(message.get("content")):
        match part.get("type"):
            case "text":
                answer.add_text(_value(part.get("text")))
            case "think":
                answer.add_reasoning(_value(part.get("think")))
            case "tool_call":
                _add_call(answer, part.get("tool_call"))
            case "error":
                error = Failure("upstream", _value(part.get("error")) or "The answer failed.")
            case "image_file" | "image_url":
                answer.add_file(_image(builder, part))
            case _:
                pass
    if not answer and error is None:
        if message.get("error") is True:
            error = Failure("upstream", text(message.get("text")) or "The answer failed.")
        else:
            answer.add_text(text(message.get("text")))
    for item in objects(message.get("files")):
        name = text(item.get("filename")) or text(item.get("name")) or "file"
        size = item.get("bytes")
        key = text(item.get("file_id"))
        answer.add_file(builder.add_missing_file(name, text(item.get("type")), size if type(size) is int else 0, key))
    return answer.finish(user_follows=user_follows), error


def _value(value: Json) -> str:
    """Text is a string or an object with one."""
    return text(value.get("value")) if isinstance(value, dict) else text(value)


def _add_call(answer: AnswerParts, call: Json) -> None:
    if not isinstance(call, dict):
        return
    function = call.get("function")
    source: Object = function if isinstance(function, dict) else call
    args = source.get("args", source.get("arguments"))
    cid = answer.add_call(
        text(call.get("id")), text(source.get("name")), parse_arguments(args if args is not None else {})
    )
    output = source.get("output", call.get("output"))
    progress = call.get("progress")
    if output is not None and (output != "" or progress == 1):
        answer.add_result(cid, "", output)


def _image(builder: SessionBuilder, part: Object) -> FilePart:
    image = part.get("image_file") or part.get("image_url")
    image = image if isinstance(image, dict) else {"url": image}
    url = text(image.get("url")) or text(image.get("filepath"))
    name, kind = text(image.get("filename")) or "image.png", text(image.get("type")) or "image/png"
    decoded = decode_data_url(url)
    if decoded is None:
        return builder.add_missing_file(name, kind, 0, text(image.get("file_id")) or url)
    return builder.add_content(name, decoded[0], decoded[1])
