"""Builds the prompts for agents that are other programs: the user's message, the earlier conversation for a new
session, and the state of an interrupted answer. Which part of the conversation a program already knows:
`agents.session_links`."""

import base64
from collections.abc import Collection, Mapping
from typing import Any, Final

from holdfast.agents.chat.attachments import FileReader, read_attachments
from holdfast.agents.message_text import parts_as_text
from holdfast.agents.permissions import allowed_later
from holdfast.core.events import Decision
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import FilePart, TextPart, ToolPart
from holdfast.core.session import Message
from holdfast.core.transcript import Transcript
from holdfast.ports.agent import Turn
from holdfast.ports.model import Media, ModelInfo
from holdfast.tools.result_text import as_text, shorten

_MAX_HISTORY: Final = 200_000  # Characters of the conversation that a new session begins with; the end is kept
_MAX_SHOWN: Final = 20_000  # Characters of the interrupted answer
_MAX_RESULT: Final = 1_000


def question_of(turn: Turn) -> Message | None:
    """The user's message that the run answers."""
    return next((m for m in reversed(turn.input.messages) if m.id == turn.run.user_message_id), None)


async def content_blocks(reader: FileReader, message: Message | None, *, images: bool) -> list[dict[str, Any]]:
    """The user's message as content blocks. A file that the program cannot read is named."""
    if message is None:
        return []
    model = ModelInfo("agent", "agent", "agent", abilities=frozenset(["images"] if images else []))
    files = await read_attachments(reader, [message], model, {})
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text:
            blocks.append(text_block(part.text))
        elif isinstance(part, FilePart):
            found = files[part.file_id]
            blocks.append(_image(found) if isinstance(found, Media) else text_block(found))
    return blocks


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(media: Media) -> dict[str, Any]:
    return {"type": "image", "mimeType": media.media_type, "data": base64.b64encode(media.data).decode()}


def history_text(past: ModelInput, question: Message | None) -> str | None:
    """The conversation before the question, for a session that does not know it."""
    lines = [f"Summary of what came before: {past.summary}"] if past.summary else []
    for message in past.messages:
        if question is not None and message.id == question.id:
            break
        speaker = "User" if message.role == "user" else "Assistant"
        lines.append(f"{speaker}: {parts_as_text(message.parts)}")
    if not lines:
        return None
    text = "\n\n".join(lines)[-_MAX_HISTORY:]
    return f"This conversation has happened before, and you take it up now:\n\n<conversation>\n{text}\n</conversation>"


_INTERRUPTED: Final = "Your answer to the user's last message was interrupted. Continue it now."
_ALLOWED: Final = """You asked for permission, and nobody answered in time. The user has now allowed what is marked \
below: do exactly that, then complete your answer to the user's last message."""


def interruption_text(
    transcript: Transcript, decisions: Mapping[str, Decision], question: Message | None, permitted: Collection[str] = ()
) -> str:
    """Describes an unfinished answer: the text that the user saw, the state of each tool call, and what the user
    decided. `permitted`: ids of calls that the user allowed before the interruption."""
    tools = [part for part in transcript.parts if isinstance(part, ToolPart)]
    allowed = allowed_later(tools, decisions)
    lines = [_ALLOWED if allowed else _INTERRUPTED]
    if question is not None:
        lines.append(f"The message was:\n<message>\n{parts_as_text(question.parts)}\n</message>")
    shown = "".join(part.text for part in transcript.parts if isinstance(part, TextPart))
    if shown:
        lines.append(f"The user has seen this of it; do not repeat it:\n<shown>\n{shown[-_MAX_SHOWN:]}\n</shown>")
    elif not tools:
        lines.append("The user has seen nothing of it. You may have begun: look before you do something again.")
    for part in tools:
        decision = decisions.get(part.call_id) or ("once" if part.call_id in permitted else None)
        lines.append(f"- {_tool_line(part, decision, allowed=part in allowed)}")
    return "\n\n".join(lines)


_STATES: Final = {
    "done": "finished",
    "denied": "was denied by the user; do not do it in another way",
    "unknown": "was started, and its outcome is unknown; look before you do it again",
}


def _tool_line(part: ToolPart, decision: Decision | None, *, allowed: bool) -> str:
    args = part.args if isinstance(part.args, dict) else {}
    what = f"{part.name} ({args.get('title') or shorten(as_text(part.args), 200)})"
    if allowed:
        return f"The tool {what} was not run, because nobody answered in time. The user now allows it: run it."
    is_open = part.state not in ("done", "denied")
    state = _STATES["unknown"] if is_open and part.may_have_run else _STATES.get(part.state, "was not run")
    result = "" if part.result is None else f": {shorten(as_text(part.result), _MAX_RESULT)}"
    asked = " The user had allowed it." if is_open and decision not in (None, "deny") else ""
    return f"The tool {what} {state}{result}.{asked}"
