"""Converts stored messages into model messages, with the same code for a live run and a resumed one. Which messages are
sent: `core.model_input`."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar, assert_never

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

T = TypeVar("T")

_MANY: Final = 1000  # Messages, which take 5 to 10 ms
Attached = Mapping[FileId, Media | str]  # Attachments read for the model; a string says why one could not be read


async def beside_loop(messages: Sized, work: Callable[[], T]) -> T:
    """The result of `work`, which is done in a thread if it has many messages to go through."""
    return work() if len(messages) < _MANY else await to_thread.run_sync(work, abandon_on_cancel=True)


async def compose_conversation(messages: Sequence[Message], files: Attached) -> list[ChatMessage]:
    """`conversation`, of many messages beside the event loop."""
    return await beside_loop(messages, partial(conversation, messages, files))


def conversation(messages: Sequence[Message], files: Attached) -> list[ChatMessage]:
    """Earlier messages without their reasoning: providers want it back only within a turn, which includes a client's
    results for its own tools."""
    built = ConversationBuilder()
    for at, message in enumerate(messages):
        if message.role == "user":
            before = messages[at - 1] if at else None
            sent_apart = before is not None and before.role == "user" and before.id == message.parent_id
            built.add_user(_content(message.parts, files), merge=not sent_apart)
        else:
            results = _client_results(messages, at + 1)
            built.add_answer(answer(message.parts, files, reasoning=bool(results), results=results))
    return built.finish()


def with_answer(messages: Sequence[ChatMessage], found: Sequence[ChatMessage]) -> list[ChatMessage]:
    """`messages` and an answer to them."""
    built = ConversationBuilder(messages)
    built.add_answer(found)
    return built.finish()


class ConversationBuilder:
    """Collects model messages in time linear in their number. Their roles must alternate: what the user says after an
    answer that had no output joins the question before it."""

    def __init__(self, messages: Sequence[ChatMessage] = ()) -> None:
        self.messages: list[ChatMessage] = []
        self._question: list[str | Media] = []  # Of the user message at the end, while it may grow
        self.add_answer(messages)

    def add_user(self, content: Sequence[str | Media], *, merge: bool) -> None:
        """Messages that a client sent one after another are not to be merged."""
        if content and not merge:
            self._close_question()
        self._question += content

    def add_answer(self, found: Sequence[ChatMessage]) -> None:
        """One that begins with what the user added, because its first step had no output, extends the question."""
        for at, message in enumerate(found):
            if isinstance(message, UserMessage):
                self.add_user(message.content, merge=at == 0)
            else:
                self._close_question()
                self.messages.append(message)

    def finish(self) -> list[ChatMessage]:
        self._close_question()
        return self.messages

    def _close_question(self) -> None:
        if self._question:
            self.messages.append(UserMessage(tuple(self._question)))
            self._question = []


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
    built = ConversationBuilder()
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
                    built.add_user([text], merge=True)
                case FilePart() | RememberedPart() | PlanPart():
                    pass
                case _:
                    assert_never(part)
        if any(not isinstance(part, ReasoningPart) for part in content):
            built.add_answer([AssistantMessage(tuple(content)), *tool_messages])
    return built.finish()


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


def ask_to_continue(messages: Sequence[ChatMessage], model: ModelInfo) -> tuple[ChatMessage, ...]:
    """Asks a model that cannot continue a partial answer (prefill) to go on with it."""
    if not messages:
        raise AgentError("no-question", "The message to answer was deleted.")
    if isinstance(messages[-1], AssistantMessage) and "prefill" not in model.abilities:
        return (*messages, UserMessage((CONTINUE,)))
    return tuple(messages)
