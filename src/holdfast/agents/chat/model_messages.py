"""Converts stored messages into model messages, with the same code for a live run and a resumed one. Which messages are
sent: `core.model_input`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, assert_never

from anyio import to_thread

from holdfast.agents.chat.requested_calls import written_args
from holdfast.agents.chat.system_prompt import CONTINUE
from holdfast.core.ids import FileId
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
from holdfast.core.session import Message
from holdfast.core.steps import complete_args, step_starts
from holdfast.ports.agent import AgentError
from holdfast.ports.model import AssistantMessage, ChatMessage, Media, ModelInfo, ToolCall, ToolMessage, UserMessage
from holdfast.tools.result_text import as_text

DENIED = "The user denied this call. Do not retry it in another way; say what you need, or continue without it."
UNKNOWN = "This call was interrupted. It may or may not have taken effect."
NOT_RUN = "This call was not run."

ABANDONED: Final[Mapping[str, Json]] = {}
"""Closes a reasoning block that was cut off: later reasoning begins a new block, and no provider accepts half a one."""

_MANY: Final = 1000  # Messages, which take 5 to 10 ms
Attached = Mapping[FileId, Media | str]  # Attachments read for the model; a string says why one could not be read


async def compose_conversation(messages: Sequence[Message], files: Attached) -> list[ChatMessage]:
    """`conversation`, of many messages beside the event loop."""
    if len(messages) < _MANY:
        return conversation(messages, files)
    return await to_thread.run_sync(conversation, messages, files, abandon_on_cancel=True)


def conversation(messages: Sequence[Message], files: Attached) -> list[ChatMessage]:
    """Earlier messages without their reasoning: providers want it back only within a turn, which includes a client's
    results for its own tools."""
    result: list[ChatMessage] = []
    for at, message in enumerate(messages):
        if message.role == "user":
            before = messages[at - 1] if at else None
            sent_apart = before is not None and before.role == "user" and before.id == message.parent_id
            _add_user(result, _content(message.parts, files), merge=not sent_apart)
        else:
            results = _client_results(messages, at + 1)
            result = with_answer(result, answer(message.parts, files, reasoning=bool(results), results=results))
    return result


def with_answer(messages: list[ChatMessage], found: Sequence[ChatMessage]) -> list[ChatMessage]:
    """`messages` and an answer to them. One that begins with what the user added, because its first step had no output,
    extends the question: roles must alternate."""
    if found and isinstance(found[0], UserMessage):
        _add_user(messages, found[0].content, merge=True)
        found = found[1:]
    return [*messages, *found]


def _client_results(messages: Sequence[Message], start: int) -> Mapping[str, ToolPart]:
    """Tool results that the client sent in the messages before the next answer, by call id."""
    found: dict[str, ToolPart] = {}
    for at in range(start, len(messages)):
        if messages[at].role != "user":
            break
        found |= {part.call_id: part for part in messages[at].parts if isinstance(part, ToolPart)}
    return found


def answer(
    parts: Sequence[Part],
    files: Attached = MappingProxyType({}),
    *,
    reasoning: bool = True,
    results: Mapping[str, ToolPart] = MappingProxyType({}),
) -> list[ChatMessage]:
    """An assistant message as model messages: for each step its text and calls, then their results with the images
    among `files` that the tools returned. What the user added is a message between the steps.

    `results` holds the results that a client sent later."""
    result: list[ChatMessage] = []
    for step in _steps([_with_result(part, results) for part in parts]):
        content: list[TextPart | ReasoningPart | ToolCall] = []
        tool_messages: list[ToolMessage] = []
        for part in step:
            match part:
                case TextPart(text):
                    content += [part] if text else []
                case ReasoningPart(_, provider):
                    content += [part] if reasoning and provider != ABANDONED else []
                case ToolPart():
                    if (call := _call(part)) is not None:
                        content.append(call)
                        tool_messages.append(replace(_tool_message(part), images=_images(part.call_id, step, files)))
                case SteeredPart(_, text):
                    _add_user(result, [text], merge=True)
                case FilePart() | RememberedPart() | PlanPart():
                    pass
                case _:
                    assert_never(part)
        if any(not isinstance(part, ReasoningPart) for part in content):
            result += [AssistantMessage(tuple(content)), *tool_messages]
    return result


def _with_result(part: Part, results: Mapping[str, ToolPart]) -> Part:
    if not isinstance(part, ToolPart) or part.state != "not_run" or part.call_id not in results:
        return part
    result = results[part.call_id]
    return replace(part, state="done", result=result.result, is_error=result.is_error)


def _steps(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts of each step. A call id that another agent repeated begins a step too. What the user added between
    steps stands alone."""
    starts = set(step_starts(parts))
    step: list[Part] = []
    ids: set[str] = set()
    for at, part in enumerate(parts):
        again = isinstance(part, ToolPart) and part.call_id in ids
        if step and (at in starts or again or isinstance(part, SteeredPart) or isinstance(step[-1], SteeredPart)):
            yield step
            step, ids = [], set()
        if isinstance(part, ToolPart):
            ids.add(part.call_id)
        step.append(part)
    if step:
        yield step


def _call(part: ToolPart) -> ToolCall | None:
    args = complete_args(part)
    if args is not None:
        return ToolCall(part.call_id, part.name, args, part.provider, text=written_args(part))
    if part.state == "done" and part.name:
        return ToolCall(part.call_id, part.name, part.args, part.provider, invalid="They were not a JSON object.")
    return None


def _tool_message(part: ToolPart) -> ToolMessage:
    match part.state:
        case "done":
            return ToolMessage(part.call_id, part.name, as_text(part.result), part.is_error)
        case "denied":
            text = DENIED if part.result is None else f"{part.result} Continue without it, or say what you need."
            return ToolMessage(part.call_id, part.name, text, is_error=True)
        case "unknown" | "running":
            return ToolMessage(part.call_id, part.name, UNKNOWN, is_error=True)
        case "pending" | "waiting" | "not_run":
            return ToolMessage(part.call_id, part.name, NOT_RUN, is_error=True)
        case _:
            assert_never(part.state)


def _images(call_id: str, step: Sequence[Part], files: Attached) -> tuple[Media, ...]:
    found = (files.get(part.file_id) for part in step if isinstance(part, FilePart) and part.call_id == call_id)
    return tuple(image for image in found if isinstance(image, Media))


def _content(parts: Sequence[Part], files: Attached) -> list[str | Media]:
    content: list[str | Media] = []
    for part in parts:
        if isinstance(part, TextPart) and part.text:
            content.append(part.text)
        elif isinstance(part, FilePart):
            content.append(files.get(part.file_id, f"[The file {part.name!r} could not be read.]"))
    return content


def _add_user(messages: list[ChatMessage], content: Sequence[str | Media], *, merge: bool) -> None:
    """`merge`: join it with a user message before it, because the answer between them had no output and roles must
    alternate. Messages that a client sent one after another stay as they are."""
    if merge and messages and isinstance(messages[-1], UserMessage):
        messages[-1] = UserMessage((*messages[-1].content, *content))
    elif content:
        messages.append(UserMessage(tuple(content)))


def ask_to_continue(messages: Sequence[ChatMessage], model: ModelInfo) -> tuple[ChatMessage, ...]:
    """Asks a model that cannot continue a partial answer (prefill) to go on with it."""
    if not messages:
        raise AgentError("no-question", "The message to answer was deleted.")
    if isinstance(messages[-1], AssistantMessage) and "prefill" not in model.abilities:
        return (*messages, UserMessage((CONTINUE,)))
    return tuple(messages)
