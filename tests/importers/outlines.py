"""Converts samples and draws the result as an outline: one line per message, indented below its parent."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.core.export_format import ExportedFile, ExportedSession, Origin
from holdfast.core.ids import FileId
from holdfast.core.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Compaction, Message, Session
from holdfast.engine.export_lines import ImportReader
from holdfast.importers.sources import ConversionReport, SourceApp, convert


@dataclass(frozen=True)
class ReadSection:
    session: Session
    origin: Origin | None
    messages: list[Message]
    compactions: list[Compaction]
    files: dict[FileId, ExportedFile]


def read_sections(lines: Iterable[bytes]) -> list[ReadSection]:
    reader = ImportReader()
    found: list[ReadSection] = []
    messages: list[Message] = []
    for line in lines:
        step = reader.read(line)
        if isinstance(step, Message):
            messages.append(step)
        elif isinstance(step, ExportedSession):
            found.append(ReadSection(step.session, step.origin, messages, step.compactions, step.files))
            messages = []
    reader.finish()
    return found


def convert_file(path: Path, app: SourceApp | None = None) -> tuple[list[ReadSection], ConversionReport]:
    """The sessions of a source, as the import would read them."""
    lines: list[bytes] = []
    report = convert(path, app, lines.extend, lambda done, total: None)
    return read_sections(line.rstrip(b"\n") for line in lines), report


def convert_json(value: Any, path: Path, app: SourceApp | None = None) -> tuple[list[ReadSection], ConversionReport]:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return convert_file(path, app)


def outline(section: ReadSection) -> list[str]:
    """`u` and `a` are the roles, `*` marks the head, `!` a status other than complete."""
    depths: dict[str, int] = {}
    lines = []
    for message in section.messages:
        depth = depths[message.id] = 0 if message.parent_id is None else depths[message.parent_id] + 1
        status = [] if message.status == "complete" else [f"!{message.status}"]
        head = "*" if message.id == section.session.head else ""
        said = " ".join([*map(_draw, message.parts), *status])
        lines.append(f"{'  ' * depth}{message.role[0]}{head}: {said}".rstrip())
    return lines


def _draw(part: Part) -> str:
    match part:
        case TextPart(text=text):
            return text
        case ReasoningPart(text=text):
            return f"({text})"
        case ToolPart(name=name, args=args, state=state, result=result):
            outcome = result if state == "done" else state
            return f"<{name} {json.dumps(args)} = {outcome}{' ERROR' if part.is_error else ''}>"
        case FilePart(name=name):
            return f"[{name}]"
        case _:
            return "?"
