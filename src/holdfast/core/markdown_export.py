"""Writes a session as Markdown for people to read. This format cannot be imported back. What an export that can be
imported contains: `core.export_format`."""

import json
from typing import Final, assert_never

from holdfast.core.export_format import iso_timestamp
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
)
from holdfast.core.session import Message, Session

NOTICES: Final = {"cancelled": "Stopped.", "failed": "Failed.", "interrupted": "Interrupted."}
_MAX_VALUE: Final = 2000


def write_heading(session: Session) -> str:
    return f"# {_one_line(session.title) or 'Conversation'}\n\n*{session.id}, created {_day(session.created_at)}*\n"


def write_message(message: Message) -> str:
    author = "You" if message.role == "user" else _one_line(message.model or "") or "Assistant"
    parts = [text for part in message.parts if (text := _part(part))]
    notice = NOTICES.get(message.status)
    if notice is not None:
        why = message.error.message if message.error is not None else ""
        parts.append(f"*{_one_line(f'{notice} {why}'.strip())}*")
    return "\n".join([f"\n## {author} · {_day(message.created_at)}\n", "\n\n".join(parts), ""])


def _part(part: Part) -> str:
    match part:
        case TextPart(text):
            return text
        case ReasoningPart(text):
            return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
        case ToolPart():
            result = "" if part.result is None else f"\n\n{_fenced(_value(part.result))}"
            return f"**{_one_line(part.name)}** ({part.state})\n\n{_fenced(_value(part.args))}{result}"
        case FilePart(_, name, media_type, size):
            return f"*File: {_one_line(name)} ({media_type}, {size} bytes)*"
        case RememberedPart(items):
            return "\n".join(f"> Remembered: {_one_line(str(item.get('text', '')))}" for item in items)
        case PlanPart(entries):
            marks = [
                f"- [{'x' if entry.status == 'completed' else ' '}] {_one_line(entry.content)}" for entry in entries
            ]
            return "\n".join(marks)
        case SteeredPart(_, text):
            return "\n".join(["> **You:**", ">", *(f"> {line}".rstrip() for line in text.splitlines())])
        case _:
            assert_never(part)


def _value(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]} …"


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _day(at: float) -> str:
    return iso_timestamp(at)[:16].replace("T", " ") + " UTC"
