"""Converts samples and draws the result as an outline: one line per message, indented below its parent."""

import json
from pathlib import Path
from typing import Any

from holdfast.core.export_format import ExportedSession
from holdfast.core.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from holdfast.engine.export_lines import ImportReader
from holdfast.importers.sources import ConversionReport, SourceApp, convert


def convert_file(path: Path, app: SourceApp | None = None) -> tuple[list[ExportedSession], ConversionReport]:
    """The sessions of a source, as the import would read them."""
    lines: list[bytes] = []
    report = convert(path, app, lines.extend, lambda done, total: None)
    reader = ImportReader()
    steps = [reader.read(line.rstrip(b"\n")) for line in lines]
    reader.finish()
    return [step for step in steps if isinstance(step, ExportedSession)], report


def convert_json(
    value: Any, path: Path, app: SourceApp | None = None
) -> tuple[list[ExportedSession], ConversionReport]:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return convert_file(path, app)


def outline(section: ExportedSession) -> list[str]:
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
