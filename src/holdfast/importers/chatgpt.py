"""ChatGPT: `conversations.json` of a data export, alone, in its directory or in its ZIP archive. All
branches are kept; the one of `current_node` is shown."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Final

from holdfast.core.errors import InvalidInputError
from holdfast.core.events import Ending
from holdfast.core.ids import MessageId
from holdfast.core.parts import FilePart, Part, TextPart
from holdfast.engine.export_import import MAX_LINE
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.fields import Json, Object, objects, parse_arguments, require_object, seconds, text
from holdfast.importers.session_builder import MAX_FILE, SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles

APP: Final = "chatgpt"
NAMES: Final = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
_CITATION: Final = re.compile("\ue200[^\ue200\ue201]*+\ue201")
_MAX_CITATIONS: Final = 100_000  # In one message: each is a piece in memory
_PROJECT: Final = "g-p-"  # How the ids of projects begin, as opposed to those of custom GPTs


def read(files: SourceFiles, skip: Skip) -> Iterator[SessionBuilder]:
    names = [name for name in files.names if NAMES.search(name)] or files.json_names
    files.total = sum(map(files.size, names))
    assets = sorted((name.rpartition("/")[2], name) for name in files.names)
    for name in names:
        for place, item in files.read_objects(name):
            title, oid = text(item.get("title")), text(item.get("conversation_id")) or text(item.get("id"))
            if not oid or "mapping" not in item:
                skip(title or place, f"it has no {'messages' if oid else 'id'} ({place})")
                continue
            yield _Conversation(item, place, files, assets, skip).build(oid, title)


_Path = tuple[str, "_Path"] | None
"""The nodes of an answer, the last one first; forks of an answer share their beginning."""


class _Conversation:
    """One conversation: a tree of nodes, of which hidden ones are left out without breaking the tree."""

    def __init__(
        self, item: Object, place: str, files: SourceFiles, assets: Sequence[tuple[str, str]], skip: Skip
    ) -> None:
        self._item = item
        self._place = f"{place}, field mapping"
        self._nodes = require_object(item["mapping"], self._place)
        self._roots = [
            key
            for key, node in self._nodes.items()
            if text(require_object(node, f"{self._place}.{key}").get("parent")) not in self._nodes
        ]
        self._files = files
        self._assets = assets
        self._skip = skip
        self._ids: dict[str, MessageId] = {}  # The message that each node became a part of
        self._instructions: list[str] = []
        self._budget = 10 * len(self._nodes) + 10_000  # Nodes of all answers, so that forks cannot multiply them

    def build(self, oid: str, title: str) -> SessionBuilder:
        item = self._item
        created = seconds(item.get("create_time"))
        self.builder = SessionBuilder(
            APP, oid, self._skip, self._files.check, self._files.scratch, title=title, created_at=created
        )
        self.builder.archived = item.get("is_archived") is True
        self.builder.pinned = item.get("is_starred") is True or item.get("pinned_time") is not None
        project = text(item.get("gizmo_id")) or text(item.get("conversation_template_id"))
        if project.startswith(_PROJECT):
            self.builder.project = f"ChatGPT project {project.removeprefix(_PROJECT)[:8]}"
        self._add_tree()
        self.builder.system = "\n\n".join(dict.fromkeys(self._instructions)) or None
        self.builder.head = self._head() or self.builder.head
        return self.builder

    def _head(self) -> MessageId | None:
        """The message of the current node, or of its nearest ancestor that is shown."""
        key, seen = text(self._item.get("current_node")), set[str]()
        while key in self._nodes and key not in self._ids and key not in seen:
            self._files.check()
            seen.add(key)
            key = text(self._nodes[key].get("parent"))
        return self._ids.get(key)

    # ---- the tree ----

    def _add_tree(self) -> None:
        """Goes through the tree without recursion: a path is as long as the conversation. Nodes of one answer are
        gathered until a person's message follows; where an answer forks, each way is a message of its own."""
        seen: set[str] = set()
        stack: list[tuple[str, _Path, MessageId | None]] = [
            (key, None, None) for root in reversed(self._roots) for key in reversed(self._shown(root, seen))
        ]
        while stack:
            key, answer, parent = stack.pop()
            if self._role(key) == "user":
                mid = self._add_question(key, parent)
                stack += [(child, None, mid) for child in reversed(self._shown_below(key, seen))]
                continue
            answer = (key, answer)
            below = self._shown_below(key, seen)
            questions = [child for child in below if self._role(child) == "user"]
            rest = [child for child in below if self._role(child) != "user"]
            stack += [(child, answer, parent) for child in reversed(rest)]
            if questions or not rest:
                mid = self._add_answer(self._unroll(answer), parent, user_follows=bool(questions))
                stack += [(child, None, mid) for child in reversed(questions)]

    def _unroll(self, path: "_Path") -> list[str]:
        keys: list[str] = []
        while path is not None:
            key, path = path
            keys.append(key)
        self._budget -= len(keys)
        if self._budget < 0:
            raise InvalidInputError(self._place, "has too many forks inside answers")
        return keys[::-1]

    def _shown_below(self, key: str, seen: set[str]) -> list[str]:
        children = self._nodes[key].get("children")
        names = [child for child in children if isinstance(child, str)] if isinstance(children, list) else []
        return [shown for child in names if child in self._nodes for shown in self._shown(child, seen)]

    def _shown(self, key: str, seen: set[str]) -> list[str]:
        """The node itself, or the nearest shown nodes below a hidden one. A node is visited once, so a cycle ends."""
        found: list[str] = []
        stack = [key]
        while stack:
            each = stack.pop()
            if each in seen:
                continue
            seen.add(each)
            if not self._is_hidden(each):
                found.append(each)
                continue
            children = self._nodes[each].get("children")
            if isinstance(children, list):
                stack += [child for child in reversed(children) if isinstance(child, str) and child in self._nodes]
        return found

    def _message(self, key: str) -> Object:
        message = self._nodes[key].get("message")
        return message if isinstance(message, dict) else {}

    def _content(self, key: str) -> Object:
        content = self._message(key).get("content")
        return content if isinstance(content, dict) else {}

    def _metadata(self, key: str) -> Object:
        metadata = self._message(key).get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    def _author(self, key: str) -> Object:
        author = self._message(key).get("author")
        return author if isinstance(author, dict) else {}

    def _role(self, key: str) -> str:
        return text(self._author(key).get("role"))

    def _is_hidden(self, key: str) -> bool:
        message, content = self._message(key), self._content(key)
        if content.get("content_type") == "user_editable_context":
            profile, wishes = text(content.get("user_profile")), text(content.get("user_instructions"))
            self._instructions += [each for each in (profile, wishes) if each]
            return True
        return (
            self._role(key) not in ("user", "assistant", "tool")
            or message.get("weight") in (0, 0.0)
            or self._metadata(key).get("is_visually_hidden_from_conversation") is True
        )

    # ---- messages ----

    def _add_question(self, key: str, parent: MessageId | None) -> MessageId:
        parts = self._text_and_files(key)
        at = seconds(self._message(key).get("create_time"))
        self._ids[key] = mid = self.builder.add("user", parent, parts, key=key, at=at)
        return mid

    def _add_answer(self, keys: Sequence[str], parent: MessageId | None, *, user_follows: bool) -> MessageId:
        answer, model, status = AnswerParts(self.builder.label), "", "complete"
        for key in keys:
            self._add_node(answer, key)
            metadata = self._metadata(key)
            model = text(metadata.get("model_slug")) or model
            details = metadata.get("finish_details")
            stopped = isinstance(details, dict) and details.get("type") == "interrupted"
            status = "interrupted" if stopped or self._message(key).get("status") == "in_progress" else "complete"
        ending: Ending = "interrupted" if status == "interrupted" else "complete"
        at = seconds(self._message(keys[0]).get("create_time"))
        parts = answer.finish(user_follows=user_follows)
        mid = self.builder.add("assistant", parent, parts, key=keys[-1], at=at, status=ending, model=model)
        self._ids |= dict.fromkeys(keys, mid)
        return mid

    def _add_node(self, answer: AnswerParts, key: str) -> None:
        content, kind = self._content(key), text(self._content(key).get("content_type"))
        recipient = text(self._message(key).get("recipient")) or "all"
        if self._role(key) == "tool":
            self._add_result(answer, key, content, kind)
        elif kind == "thoughts":
            thoughts = [
                (text(item.get("summary")), text(item.get("content"))) for item in objects(content.get("thoughts"))
            ]
            answer.add_reasoning("\n\n".join("\n".join(filter(None, pair)) for pair in thoughts))
        elif kind == "reasoning_recap":
            answer.add_reasoning(text(content.get("content")))
        elif recipient != "all":
            source = text(content.get("text")) or _joined(self._text_and_files(key))
            args = {"code": source} if recipient == "python" else parse_arguments(source)
            answer.add_call(key, recipient, args)
        elif kind == "code":
            answer.add_text(
                f"```{text(content.get('language')).replace('unknown', '')}\n{text(content.get('text'))}\n```"
            )
        else:
            self._add_parts(answer, self._text_and_files(key))

    def _add_result(self, answer: AnswerParts, key: str, content: Object, kind: str) -> None:
        parts = self._text_and_files(key)
        result = text(content.get("text")) or text(content.get("result")) or _joined(parts)
        outcome = self._metadata(key).get("aggregate_result")
        failed = isinstance(outcome, dict) and outcome.get("status") not in ("success", None)
        name = text(self._author(key).get("name"))
        answer.add_result("", name, result, is_error=failed or kind == "system_error")
        self._add_parts(answer, [part for part in parts if not isinstance(part, TextPart)])

    @staticmethod
    def _add_parts(answer: AnswerParts, parts: list[Part]) -> None:
        for part in parts:
            if isinstance(part, TextPart):
                answer.add_text(part.text)
            elif isinstance(part, FilePart):
                answer.add_file(part)

    def _text_and_files(self, key: str) -> list[Part]:
        content, metadata = self._content(key), self._metadata(key)
        names = {text(item.get("id")): item for item in objects(metadata.get("attachments"))}
        citations = _Citations(metadata)
        found: list[Part] = []
        pointers: set[str] = set()
        parts = content.get("parts")
        for part in parts if isinstance(parts, list) else [content.get("text")]:
            if isinstance(part, str) and part.strip():
                found.append(TextPart(citations.remove_from(part)))
            elif isinstance(part, dict):
                pointer = _asset_id(part)
                if pointer:
                    pointers.add(pointer)
                    found.append(self._file(pointer, names.get(pointer, {}), part))
                elif text(part.get("text")):
                    found.append(TextPart(text(part.get("text"))))
        found += [self._file(fid, item, {}) for fid, item in names.items() if fid and fid not in pointers]
        return found

    def _file(self, fid: str, attachment: Object, part: Object) -> Part:
        at = bisect_left(self._assets, (fid, ""))  # the name of a file in the archive begins with its id
        member = self._assets[at][1] if at < len(self._assets) and self._assets[at][0].startswith(fid) else None
        name = text(attachment.get("name")) or (member or fid).rpartition("/")[2]
        size = attachment.get("size") or part.get("size_bytes")
        size = size if type(size) is int else 0
        kind = text(attachment.get("mime_type"))
        if member is None:
            return self.builder.add_missing_file(name, kind, size, fid)
        return self.builder.add_file(
            name, kind, self._files.size(member), partial(self._files.read, member, MAX_FILE), fid
        )


def _asset_id(part: Object) -> str:
    """The id in a pointer such as `sediment://file_…`; audio has it one level deeper."""
    pointer = part.get("asset_pointer")
    if not isinstance(pointer, str):
        inner = part.get("audio_asset_pointer")
        pointer = inner.get("asset_pointer") if isinstance(inner, dict) else None
    return pointer.rpartition("://")[2].partition("#")[0] if isinstance(pointer, str) else ""


class _Citations:
    """The marks of citations in one message, which can have many parts and many references."""

    def __init__(self, metadata: Object) -> None:
        self._metadata = metadata
        self._left = MAX_LINE  # one reference can be cited often
        self._marks_left = _MAX_CITATIONS

    @cached_property
    def _shown(self) -> dict[str, str]:
        references = objects(self._metadata.get("content_references"))
        return {text(reference.get("matched_text")): text(reference.get("alt")) for reference in references}

    def remove_from(self, value: str) -> str:
        marks = value.count("\ue200")
        self._marks_left -= marks
        if self._marks_left < 0:
            raise InvalidInputError("content_references", f"are cited more than {_MAX_CITATIONS} times in one message")
        return _CITATION.sub(self._show, value) if marks else value

    def _show(self, mark: re.Match[str]) -> str:
        found = self._shown.get(mark[0], "")
        self._left -= len(found)
        if self._left < 0:
            raise InvalidInputError("content_references", f"have more than {MAX_LINE} characters in one message")
        return found


def _joined(parts: list[Part]) -> Json:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))
