"""Claude: `conversations.json` of a data export, alone, in its directory or in its ZIP archive."""

from collections.abc import Iterator, Mapping
from typing import Final

from holdfast.core.events import Ending
from holdfast.core.ids import MessageId
from holdfast.core.parts import FilePart, Part, TextPart
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.chatgpt import NAMES
from holdfast.importers.fields import (
    Items,
    Json,
    Object,
    bounded,
    decode_data_url,
    objects,
    parse_arguments,
    require_list,
    require_object,
    seconds,
    text,
)
from holdfast.importers.json_objects import read_document
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles
from holdfast.importers.tree_walk import add_tree

APP: Final = "claude"


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    names = [name for name in files.names if NAMES.search(name)] or files.json_names
    files.total = sum(map(files.size, names))
    projects = _read_projects(files)
    for name in names:
        for place, item in files.read_objects(name):
            oid, title = text(item.get("uuid")), text(item.get("name"))
            if not oid:
                skip(title or place, f"it has no id ({place})")
                continue
            created = seconds(item.get("created_at"))
            builder = SessionBuilder(APP, oid, skip, files.check, files.scratch, title=title, created_at=created)
            builder.pinned = item.get("is_starred") is True
            builder.archived = item.get("is_archived") is True
            builder.project = _project(item, projects)
            _add_messages(builder, require_list(item.get("chat_messages"), f"{place}, field chat_messages"), place)
            yield builder


def _read_projects(files: SourceFiles) -> Mapping[str, str]:
    """Names of projects by id."""
    name = next((name for name in files.names if name.rpartition("/")[2] == "projects.json"), None)
    if name is None:
        return {}
    with files.open(name) as stream:
        found = objects(read_document(stream, files.label(name)))
    return {text(item.get("uuid")): text(item.get("name")) for item in found}


def _project(item: Object, projects: Mapping[str, str]) -> str | None:
    project = item.get("project")
    if isinstance(project, dict):
        return text(project.get("name")) or projects.get(text(project.get("uuid")))
    return projects.get(text(item.get("project_uuid")))


def _add_messages(builder: SessionBuilder, messages: Items, place: str) -> None:
    """A tree if messages name their parents, else a list. The export does not say which branch was shown: the one with
    the newest message is."""
    found: dict[str, int] = {}  # The position of each message
    parents: dict[str, str | None] = {}
    questions: set[str] = set()
    previous: str | None = None
    for n, value in enumerate(messages):
        message = require_object(value, f"{place}, field chat_messages.{n}")
        key = text(message.get("uuid")) or f"#{n}"
        found[key] = n
        (questions.add if message.get("sender") == "human" else questions.discard)(key)
        parents[key] = text(message["parent_message_uuid"]) if "parent_message_uuid" in message else previous
        previous = key
    newest: tuple[float, MessageId] | None = None

    def add(key: str, parent: MessageId | None, user_follows: bool) -> MessageId:
        nonlocal newest
        message = messages[found[key]]
        at = seconds(message.get("created_at"))
        if key in questions:
            mid = builder.add("user", parent, _question(builder, message), key=key, at=at)
        else:
            parts, is_cut_off = _answer(builder, message, user_follows=user_follows)
            status: Ending = "interrupted" if is_cut_off or not parts else "complete"
            mid = builder.add("assistant", parent, parts, key=key, at=at, status=status)
        if newest is None or (at or 0.0) >= newest[0]:
            newest = (at or 0.0, mid)
        return mid

    add_tree(parents, questions.__contains__, add)
    if newest is not None:
        builder.head = newest[1]


def _question(builder: SessionBuilder, message: Object) -> list[Part]:
    blocks = objects(message.get("content"))
    texts = [text(block.get("text")) for block in blocks if block.get("type") == "text"]
    parts: list[Part] = [TextPart(each) for each in texts if each.strip()]
    if not parts and text(message.get("text")).strip():
        parts.append(TextPart(text(message.get("text"))))
    parts += [image for block in blocks if (image := _image(builder, block)) is not None]
    return parts + _attachments(builder, message)


def _attachments(builder: SessionBuilder, message: Object) -> list[Part]:
    parts: list[Part] = []
    for item in objects(message.get("attachments")):
        name, content = text(item.get("file_name")) or "attachment.txt", text(item.get("extracted_content"))
        if content:  # the text that was extracted from it, whatever the file was
            parts.append(builder.add_content(name, "text/plain", content.encode("utf-8", "replace")))
        else:
            size = item.get("file_size")
            parts.append(builder.add_missing_file(name, "", size if type(size) is int else 0, text(item.get("id"))))
    seen = set(parts)
    for item in objects(message.get("files")) + objects(message.get("files_v2")):
        name = text(item.get("file_name")) or "file"
        part = builder.add_missing_file(name, "", 0, text(item.get("file_uuid")))
        if part not in seen:
            seen.add(part)
            parts.append(part)
    return parts


def _image(builder: SessionBuilder, block: Object) -> FilePart | None:
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict):
        return None
    kind = text(source.get("media_type")) or "image/png"
    decoded = decode_data_url(f"data:{kind};base64,{text(source.get('data'))}")
    name = f"image.{kind.rpartition('/')[2]}"
    return builder.add_content(name, kind, decoded[1]) if decoded else builder.add_missing_file(name, kind)


def _answer(builder: SessionBuilder, message: Object, *, user_follows: bool) -> tuple[list[Part], bool]:
    answer, is_cut_off = AnswerParts(builder.label), message.get("truncated") is True
    for block in objects(message.get("content")):
        match block.get("type"):
            case "text":
                answer.add_text(text(block.get("text")))
            case "thinking":
                summaries = "\n".join(text(item.get("summary")) for item in objects(block.get("summaries")))
                answer.add_reasoning(text(block.get("thinking")) or summaries)
                is_cut_off = is_cut_off or block.get("cut_off") is True
            case "tool_use":
                answer.add_call(text(block.get("id")), text(block.get("name")), parse_arguments(block.get("input")))
            case "tool_result":
                failed = block.get("is_error") is True
                result = _result(block.get("content"))
                answer.add_result(text(block.get("tool_use_id")), text(block.get("name")), result, is_error=failed)
            case "image":
                if (image := _image(builder, block)) is not None:
                    answer.add_file(image)
            case _:
                pass
    if not answer:
        answer.add_text(text(message.get("text")))
    for part in _attachments(builder, message):
        if isinstance(part, FilePart):
            answer.add_file(part)
    return answer.finish(user_follows=user_follows), is_cut_off


def _result(content: Json) -> Json:
    """The text of a result that consists of text, else the whole."""
    items = objects(content)
    if items and all(item.get("type") == "text" for item in items):
        return "\n".join(text(item.get("text")) for item in items)
    return bounded(content)
