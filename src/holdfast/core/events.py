"""The events of a run, and their one encoding: the bytes that an SSE stream sends. Which event a run begins with after
a continue: `core.seed_events`.

A frame is encoded once, when the event is journalled; the journal stores it and every subscriber receives it. An event
type of a newer version is read as `UnknownEvent` and ignored by the fold.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from json.encoder import encode_basestring as quote
from typing import Any, Final, Literal, NamedTuple, get_args

from holdfast.core.finite_numbers import without_non_finite
from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanEntry,
    all_from_json,
    all_to_json,
    construct,
    entries_from_json,
    entries_to_json,
    to_json,
)

Ending = Literal["complete", "cancelled", "failed", "interrupted"]
Decision = Literal["once", "session", "always", "deny"]
InputKind = Literal["form", "sampling"]
"""What is asked for: values for the fields of a form, or permission to use the run's model."""
InputAction = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed. `code` is stable; `message` says what to do."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: RunId
    session_id: SessionId
    message_id: MessageId
    user_message_id: MessageId
    model: str | None
    agent: str
    traceparent: str | None = None  # The trace of the request, if runs are traced


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run continues in a later epoch: after a decision, or by automatic continue."""

    epoch: int


@dataclass(frozen=True, slots=True)
class MessageSeeded:
    """First event of a continuing run: the message starts with the earlier run's parts."""

    from_run: RunId
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class StepStarted:
    index: int
    model: str | None = None  # The model that is called, also if the run names none and gets the default one


@dataclass(frozen=True, slots=True)
class StepRetrying:
    """The model's provider did not answer, and is asked again. Says what people wait for; changes no message."""

    attempt: int  # The number of the attempt that follows, from 2 to `attempts`
    attempts: int
    delay_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str
    provider: Json = None


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """Arguments while the model writes them, or output while the tool runs."""

    call_id: str
    name: str | None = None
    args_delta: str | None = None
    output_delta: str | None = None


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """Journalled immediately before the effect. Without it, the tool did not run."""

    call_id: str
    name: str
    args: Json
    provider: Json = None
    args_text: str | None = None  # `args` as the model wrote them, if that is not their compact JSON


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    result: Json
    is_error: bool = False
    duration_ms: int | None = None
    files: tuple[FilePart, ...] = ()  # Images that it returned, stored before this event


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    approval_id: ApprovalId
    call_id: str
    name: str
    args: Json
    reason: str = ""
    provider: Json = None  # As in `ToolStarted`: another process may start the tool after the decision
    args_text: str | None = None
    always: bool | None = None  # False: the decision *always* would count as *once*
    options: Json = None
    """The choices of an agent that has its own: `[{"id", "name", "decision"}]`. The note of an answer names one."""
    expires_at: int | None = None  # When the agent denies by itself, in milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    approval_id: ApprovalId
    decision: Decision
    reason: str | None = None  # Why, if no person decided: nobody answered in time. Otherwise the chosen option


@dataclass(frozen=True, slots=True)
class InputRequested:
    """A tool's server asks a person something while the call runs, which cannot be parked: the run waits with its task,
    and the question ends with it."""

    request_id: ApprovalId
    call_id: str
    server: str
    kind: InputKind
    message: str
    schema: Json = None  # Of a form
    expires_in: float | None = None  # Seconds


@dataclass(frozen=True, slots=True)
class InputResolved:
    """The values that a person entered go to the server and are not journalled."""

    request_id: ApprovalId
    action: InputAction
    reason: str | None = None  # Why, if no person decided


@dataclass(frozen=True, slots=True)
class MemoryRecalled:
    items: tuple[Mapping[str, Json], ...]
    note: str | None = None  # Why recall returned less than it could, if something failed


@dataclass(frozen=True, slots=True)
class PlanUpdated:
    """The agent's plan as a whole: it replaces the earlier one."""

    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class MessageSteered:
    """What the user added while the run was active; the model reads it in the step that follows."""

    id: MessageId  # Of the queued message that it was until then
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int
    cost: float | None = None
    cached_tokens: int | None = None  # Of the input tokens, those that the provider had cached
    reasoning_tokens: int | None = None  # Of the output tokens, those of reasoning

    def __post_init__(self) -> None:
        """A part is not more than the whole, whatever was reported: in a sum it would make other tokens free."""
        if self.cached_tokens is not None and self.cached_tokens > self.input_tokens:
            object.__setattr__(self, "cached_tokens", self.input_tokens)
        if self.reasoning_tokens is not None and self.reasoning_tokens > self.output_tokens:
            object.__setattr__(self, "reasoning_tokens", self.output_tokens)


def add_usage(total: Usage | None, more: Usage | None) -> Usage | None:
    """The sum, or None if neither was reported. What only one of them reports is counted as zero in the other."""
    if total is None or more is None:
        return total if more is None else more
    return Usage(
        total.input_tokens + more.input_tokens,
        total.output_tokens + more.output_tokens,
        None if total.cost is None and more.cost is None else (total.cost or 0.0) + (more.cost or 0.0),
        _add_known(total.cached_tokens, more.cached_tokens),
        _add_known(total.reasoning_tokens, more.reasoning_tokens),
    )


def _add_known(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The terminal event: a sealed journal has exactly one, and it is the last."""

    status: Ending
    reason: str | None = None
    finish_reason: str | None = None
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    type: str
    data: Json


Event = (
    RunStarted
    | RunResumed
    | MessageSeeded
    | StepStarted
    | StepRetrying
    | TextDelta
    | ReasoningDelta
    | ToolDelta
    | ToolStarted
    | ToolFinished
    | ApprovalRequested
    | ApprovalResolved
    | InputRequested
    | InputResolved
    | MemoryRecalled
    | PlanUpdated
    | MessageSteered
    | Usage
    | RunEnded
    | UnknownEvent
)


class Entry(NamedTuple):
    """A numbered event. `frame` is the encoding that was committed."""

    seq: int
    frame: bytes

    @property
    def type(self) -> str:
        rest = self.frame.partition(b"event: ")[2]
        return rest[: rest.index(b"\n")].decode()

    @property
    def ends(self) -> bool:
        return self.type in TERMINAL_TYPES

    @property
    def at(self) -> int | None:
        """Its time in milliseconds since the epoch, if recorded."""
        found = _AT.search(self.frame, max(0, len(self.frame) - 40))
        return None if found is None else int(found[1])

    def event(self) -> Event:
        name, _, rest = self.frame.partition(b"event: ")[2].partition(b"\ndata: ")
        return decode(name.decode(), json.loads(rest.decode()))

    def json(self) -> bytes:
        """As an object with its number and type, for clients that do not read frames."""
        name, _, data = self.frame.partition(b"event: ")[2].partition(b"\ndata: ")
        return b'{"seq":%d,"type":"%b","data":%b}' % (self.seq, name, data.rstrip())


_TEXT_HEAD: Final = b'\nevent: text.delta\ndata: {"text":"'
_TEXT_TAIL: Final = b'"}\n\n'
_TEXT_AT: Final = b'","at":'
_AT: Final = re.compile(rb'[,{]"at":(\d+)\}\n\n\Z')
_ENDINGS: Final[Mapping[str, Ending]] = {f"run.{ending}": ending for ending in get_args(Ending)}
TERMINAL_TYPES: Final = frozenset(_ENDINGS)


def entry(seq: int, event: Event, at: int | None = None) -> Entry:
    """Encode `event` as number `seq`, with its time `at` in milliseconds. Lone surrogates become question marks, NaN
    and infinities null. Raises TypeError, ValueError or RecursionError if a value is not JSON."""
    if type(event) is TextDelta:
        return text_entry(seq, event.text, at)
    name, data = encode(event)
    if at is not None:
        data = {**data, "at": at}
    try:
        body = _dump(data)
    except ValueError:  # NaN or infinity in a tool's arguments or result
        body = _dump(without_non_finite(data))
    return Entry(seq, f"id: {seq}\nevent: {name}\ndata: {body}\n\n".encode("utf-8", "replace"))


_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def text_entry(seq: int, text: str, at: int | None = None) -> Entry:
    """The same for a text delta: called for every token."""
    time = "" if at is None else f',"at":{at}'
    frame = f'id: {seq}\nevent: text.delta\ndata: {{"text":{quote(text)}{time}}}\n\n'
    return Entry(seq, frame.encode("utf-8", "replace"))


def quoted_text(frame: bytes, head: bytes = _TEXT_HEAD) -> bytes | None:
    """The JSON-escaped text, if the frame is a text delta, or has another `head` before its text. Ten times as fast as
    `Entry.event`."""
    at = frame.find(head, 0, 64)
    if at < 0:
        return None
    if frame.endswith(_TEXT_TAIL):
        return frame[at + len(head) : -len(_TEXT_TAIL)]
    end = frame.rfind(_TEXT_AT)  # quotes inside the text are escaped, so this is not part of it
    return None if end < 0 else frame[at + len(head) : end]


def unquoted(pieces: Sequence[bytes]) -> str:
    """The text of several deltas, decoded at once unless a piece may end in half a surrogate pair (`\\ud83d`)."""
    whole = b"".join(pieces)
    if b"\\" not in whole:
        return whole.decode()
    apart = pieces if b"\\u" in whole else (whole,)
    return "".join(json.loads(b'"' + piece + b'"') for piece in apart)


def encode(event: Event) -> tuple[str, dict[str, Json]]:
    """The event's type and data as the API documents them, without absent optional fields."""
    if isinstance(event, UnknownEvent):
        return event.type, event.data
    kind = type(event)
    data = {name: value for name, required in _FIELDS[kind] if (value := getattr(event, name)) is not None or required}
    if isinstance(event, RunEnded):
        del data["status"]
        return f"run.{event.status}", data if event.error is None else data | {"error": asdict(event.error)}
    if isinstance(event, MessageSeeded):
        data["parts"] = all_to_json(event.parts)
    elif isinstance(event, MemoryRecalled):
        data["items"] = list(event.items)
    elif isinstance(event, PlanUpdated):
        data["entries"] = entries_to_json(event.entries)
    elif isinstance(event, ToolFinished):
        data["duration_ms"] = event.duration_ms  # sent even if it is null
        data.pop("files")
        if event.files:
            data["files"] = [to_json(file) for file in event.files]
    return _NAMES[kind], data


def decode(name: str, data: Mapping[str, Any]) -> Event:
    """The inverse of `encode`; unknown fields are ignored."""
    kind = _TYPES.get(name)
    if kind is None:
        if name not in _ENDINGS:
            return UnknownEvent(name, data)
        error = failure_from_json(data.get("error"))
        return RunEnded(_ENDINGS[name], data.get("reason"), data.get("finish_reason"), error)
    values = {**data}
    values.pop("at", None)
    if kind is MessageSeeded:
        values["parts"] = all_from_json(data["parts"])
    elif kind is MemoryRecalled:
        values["items"] = tuple(data["items"])
    elif kind is PlanUpdated:
        values["entries"] = entries_from_json(data["entries"])
    elif "files" in values and kind is ToolFinished:
        values["files"] = tuple(part for part in all_from_json(data["files"]) if isinstance(part, FilePart))
    event: Event = construct(kind, values)
    return event


def failure_from_json(data: Mapping[str, Any] | None) -> Failure | None:
    return None if data is None else Failure(data["code"], data["message"])


_TYPES: Final[Mapping[str, type[Any]]] = {
    "run.started": RunStarted,
    "run.resumed": RunResumed,
    "message.seeded": MessageSeeded,
    "step.started": StepStarted,
    "step.retrying": StepRetrying,
    "text.delta": TextDelta,
    "reasoning.delta": ReasoningDelta,
    "tool.delta": ToolDelta,
    "tool.started": ToolStarted,
    "tool.finished": ToolFinished,
    "approval.requested": ApprovalRequested,
    "approval.resolved": ApprovalResolved,
    "input.requested": InputRequested,
    "input.resolved": InputResolved,
    "memory.recalled": MemoryRecalled,
    "plan.updated": PlanUpdated,
    "message.steered": MessageSteered,
    "usage": Usage,
}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_FIELDS: Final = {
    kind: tuple((field.name, field.default is MISSING) for field in fields(kind)) for kind in (*_NAMES, RunEnded)
}
"""The fields of each event, and whether each is required."""


def merge(first: Event, second: Event) -> Event | None:
    """One event equivalent to both, if they are deltas of the same kind."""
    match first, second:
        case TextDelta(a), TextDelta(b):
            return TextDelta(a + b)
        case ReasoningDelta(a, None), ReasoningDelta(b, provider):
            return ReasoningDelta(a + b, provider)
        case ToolDelta(c1, name, str(a), None), ToolDelta(c2, None, str(b), None) if c1 == c2:
            return ToolDelta(c1, name, a + b)
        case ToolDelta(c1, None, None, str(a)), ToolDelta(c2, None, None, str(b)) if c1 == c2:
            return ToolDelta(c1, output_delta=a + b)
        case _:
            return None
