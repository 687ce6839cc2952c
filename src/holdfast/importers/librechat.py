"""LibreChat: a conversation exported as JSON, nested or flat; several of them in a directory or ZIP archive."""

from collections.abc import Iterator
from typing import Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Ending, Failure
from holdfast.core.ids import MessageId
from holdfast.core.parts import FilePart, Part
from holdfast.core.size_text import size_text
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.fields import (
    Items,
    Json,
    Object,
    decode_data_url,
    memory_size,
    objects,
    parse_arguments,
    require_list,
    require_object,
    require_text,
    seconds,
    text,
)
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles
from holdfast.importers.tree_walk import add_tree

APP: Final = "librechat"
_MAX_NESTED: Final = 256 * 1024 * 1024  # Bytes of memory that nested replies of one chat take
_SHOWN: Final = 100  # Characters of an id in error messages


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    names = files.json_names
    files.total = sum(map(files.size, names))
    for name in names:
        for place, item in files.read_objects(name):
            if not item.get("conversationId") or not ({"messagesTree", "messages"} & item.keys()):
                skip(text(item.get("title")) or place, f"it is not a LibreChat conversation ({place})")
                continue
            yield _build(item, place, skip, files)


def _build(item: Object, place: str, skip: Skip, files: SourceFiles) -> SessionBuilder:
    oid = require_text(item["conversationId"], f"{place}, field conversationId")
    created = seconds(item.get("createdAt"))
    builder = SessionBuilder(
        APP, oid, skip, files.check, files.scratch, title=text(item.get("title")), created_at=created
    )
    options = item.get("options")
    if isinstance(options, dict):
        builder.system = text(options.get("promptPrefix")) or text(options.get("system")) or None
    builder.archived = item.get("isArchived") is True
    tags = item.get("tags")
    builder.tags = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    messages, found, parents, questions = _flatten(item, place)
    newest: tuple[float, MessageId] | None = None

    def add(key: str, parent: MessageId | None, user_follows: bool) -> MessageId:
        nonlocal newest
        stored = found[key]
        message: Object = messages[stored] if isinstance(stored, int) else stored
        at = seconds(message.get("createdAt"))
        parts, error = _parts(builder, message, user_follows=user_follows)
        if key in questions:
            mid = builder.add("user", parent, parts, key=key, at=at)
        else:
            model = text(message.get("model"))
            status: Ending = "interrupted" if message.get("unfinished") is True else "complete"
            status = "failed" if error is not None else status
            mid = builder.add("assistant", parent, parts, key=key, at=at, status=status, error=error, model=model)
        if newest is None or (at or 0.0) >= newest[0]:
            newest = (at or 0.0, mid)
        return mid

    add_tree(parents, questions.__contains__, add)
    if newest is not None:
        builder.head = newest[1]
    return builder


def _flatten(item: Object, place: str) -> tuple[Items, dict[str, int | Object], dict[str, str | None], set[str]]:
    """A list, or nested replies. Returns the outer list; by id, the position of each message in it or, of a reply, the
    message; the parents by id; and the ids of questions."""
    field = "messagesTree" if "messagesTree" in item else "messages"
    outer = require_list(item[field], f"{place}, field {field}")
    found: dict[str, int | Object] = {}
    parents: dict[str, str | None] = {}
    questions: set[str] = set()
    size = 0
    for n, each in enumerate(outer):
        if isinstance(each, dict) and each.get("children"):  # all of it is held until the chat is complete
            size += memory_size(each)
            if size > _MAX_NESTED:
                raise InvalidInputError(place, f"has nested replies of more than {size_text(_MAX_NESTED)}")
        stack: list[tuple[Json, str, str | None]] = [(each, f"{field}.{n}", None)]
        while stack:
            value, path, above = stack.pop()
            message = require_object(value, f"{place}, field {path}")
            key = require_text(message.get("messageId"), f"{place}, field {path}.messageId")
            children = message.get("children")
            is_alone = above is None and not (isinstance(children, list) and children)
            found[key] = n if is_alone else message
            parents[key] = above or text(message.get("parentMessageId")) or None
            (questions.add if message.get("isCreatedByUser") is True else questions.discard)(key)
            if isinstance(children, list):
                path = f"children of {key[:_SHOWN]}"  # a copy for each child, so it must be short
                stack += [(child, f"{path}.{m}", key) for m, child in enumerate(children)][::-1]
    return outer, found, parents, questions


def _parts(builder: SessionBuilder, message: Object, *, user_follows: bool) -> tuple[list[Part], Failure | None]:
    answer, error = AnswerParts(builder.label), None
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
