"""What the model is shown, made from messages and parts: the same function for a live run and for one taken up."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, assert_never

from holdfast.agents.chat.calls import complete_args
from holdfast.agents.models.port import AssistantSaid, Media, Said, ToolCall, ToolSaid, UserSaid
from holdfast.agents.tools.port import as_text
from holdfast.core.ids import FileId
from holdfast.core.parts import File, Json, Part, Reasoning, Remembered, Text, Tool
from holdfast.core.session import Message
from holdfast.core.values import replace

DENIED = "The person denied this call. Do not try it again in another way; say what you need, or go on without it."
UNKNOWN = "This call was started and then cut off. It may or may not have taken effect."
NOT_RUN = "This call was not run."

ABANDONED: Final[Mapping[str, Json]] = {}
"""Closes a block of reasoning that was cut off: what the model thinks next is another block, and no provider takes half
a one back."""

Attached = Mapping[FileId, Media | str]
"""Files that were read for the model; a string says why one was not."""


def conversation(messages: Sequence[Message], files: Attached) -> list[Said]:
    """Earlier messages. Their reasoning is left out: providers want it back only within a turn, which goes on where the
    asker answers calls of its own tools."""
    said: list[Said] = []
    for at, message in enumerate(messages):
        if message.role == "user":
            _add_user(said, _content(message.parts, files))
        else:
            given = _given(messages[at + 1 : at + 2])
            said += answer(message.parts, reasoning=bool(given), given=given)
    return said


def _given(after: Sequence[Message]) -> Mapping[str, Tool]:
    """Results that the asker brings with the next message, by call id."""
    return {p.call_id: p for message in after if message.role == "user" for p in message.parts if isinstance(p, Tool)}


def answer(
    parts: Sequence[Part],
    marks: Sequence[int] = (),
    *,
    reasoning: bool = True,
    given: Mapping[str, Tool] = MappingProxyType({}),
) -> list[Said]:
    """An assistant's parts as messages: per step what it said and asked for, then the answers of its tools; those in
    `given` came later."""
    said: list[Said] = []
    for step in _steps([_with_result(part, given) for part in parts], marks):
        calls = [(part, call) for part in step if isinstance(part, Tool) and (call := _call(part)) is not None]
        told = _spoken(step, {id(part): call for part, call in calls}, reasoning)
        if any(not isinstance(part, Reasoning) for part in told):
            said.append(AssistantSaid(tuple(told)))
            said += [_answered(part) for part, _ in calls]
    return said


def _with_result(part: Part, given: Mapping[str, Tool]) -> Part:
    if not isinstance(part, Tool) or part.state != "not_run" or part.call_id not in given:
        return part
    result = given[part.call_id]
    return replace(part, state="done", result=result.result, is_error=result.is_error)


def _spoken(step: Sequence[Part], calls: Mapping[int, ToolCall], reasoning: bool) -> list[Text | Reasoning | ToolCall]:
    told: list[Text | Reasoning | ToolCall] = []
    for part in step:
        match part:
            case Text(text):
                told += [part] if text else []
            case Reasoning(_, provider):
                told += [part] if reasoning and provider != ABANDONED else []
            case Tool():
                told += [calls[id(part)]] if id(part) in calls else []
            case File() | Remembered():
                pass
            case _:
                assert_never(part)
    return told


def _steps(parts: Sequence[Part], marks: Sequence[int]) -> Iterator[list[Part]]:
    """Cut at the marks; without any, where words follow tools; and where a call id comes again."""
    step: list[Part] = []
    ids: set[str] = set()
    for at, part in enumerate(parts):
        after_tool = bool(step) and isinstance(step[-1], Tool) and not isinstance(part, Tool)
        again = isinstance(part, Tool) and part.call_id in ids
        if step and (at in marks or again or (after_tool and not marks)):
            yield step
            step, ids = [], set()
        if isinstance(part, Tool):
            ids.add(part.call_id)
        step.append(part)
    if step:
        yield step


def _call(part: Tool) -> ToolCall | None:
    args = complete_args(part)
    if args is not None:
        return ToolCall(part.call_id, part.name, args, part.provider)
    if part.state == "done" and part.name:
        return ToolCall(part.call_id, part.name, part.args, part.provider, invalid="The arguments were no JSON object.")
    return None


def _answered(part: Tool) -> ToolSaid:
    match part.state:
        case "done":
            return ToolSaid(part.call_id, part.name, as_text(part.result), part.is_error)
        case "denied":
            said = DENIED if part.result is None else f"{part.result} Go on without it, or say what you need."
            return ToolSaid(part.call_id, part.name, said, is_error=True)
        case "unknown" | "running":
            return ToolSaid(part.call_id, part.name, UNKNOWN, is_error=True)
        case "pending" | "waiting" | "not_run":
            return ToolSaid(part.call_id, part.name, NOT_RUN, is_error=True)
        case _:
            assert_never(part.state)


def _content(parts: Sequence[Part], files: Attached) -> list[str | Media]:
    content: list[str | Media] = []
    for part in parts:
        if isinstance(part, Text) and part.text:
            content.append(part.text)
        elif isinstance(part, File):
            content.append(files.get(part.file_id, f"[The file {part.name!r} could not be read.]"))
    return content


def _add_user(said: list[Said], content: Sequence[str | Media]) -> None:
    """Neighbouring messages of the person become one: an answer between them had no output, and roles take turns."""
    if said and isinstance(said[-1], UserSaid):
        said[-1] = UserSaid((*said[-1].content, *content))
    elif content:
        said.append(UserSaid(tuple(content)))
