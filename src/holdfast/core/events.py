"""The closed union of a run's events, and their one encoding: the bytes that an SSE stream sends.

A frame is written once, when the event is journalled; the journal stores it and every subscriber is sent it. What a
newer version wrote and this one does not know is read as `Unknown` and folded to nothing.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring as quote
from typing import Any, Final, Literal, NamedTuple, assert_never

from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.parts import Json, Part, all_from_json, all_to_json
from holdfast.core.values import dataclass

Ending = Literal["complete", "cancelled", "failed", "interrupted"]
Decision = Literal["once", "session", "always", "deny"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed, in words that a person can act on. `code` is stable."""

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


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The same run goes on in a later epoch: after a decision, or by automatic continue."""

    epoch: int


@dataclass(frozen=True, slots=True)
class MessageSeeded:
    """First event of a continuing run: the message begins with what the earlier run left."""

    from_run: RunId
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class StepStarted:
    index: int


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


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    result: Json
    is_error: bool = False
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    approval_id: ApprovalId
    call_id: str
    name: str
    args: Json
    reason: str = ""
    provider: Json = None
    """As of `ToolStarted`: the run may be another process's when it is started."""


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    approval_id: ApprovalId
    decision: Decision
    reason: str | None = None
    """Why, where no person said it: nobody answered in time."""


@dataclass(frozen=True, slots=True)
class MemoryRecalled:
    items: tuple[Mapping[str, Json], ...]
    note: str | None = None
    """Why there is not more, if something was in the way."""


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The terminal event. There is exactly one in a sealed journal and it is the last."""

    status: Ending
    reason: str | None = None
    finish_reason: str | None = None
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    type: str
    data: Json


Event = (
    RunStarted
    | RunResumed
    | MessageSeeded
    | StepStarted
    | TextDelta
    | ReasoningDelta
    | ToolDelta
    | ToolStarted
    | ToolFinished
    | ApprovalRequested
    | ApprovalResolved
    | MemoryRecalled
    | Usage
    | RunEnded
    | Unknown
)


class Entry(NamedTuple):
    """An event in its place. `frame` is the encoding that was committed."""

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
        """When it was, in milliseconds since the epoch, if it says so."""
        found = _AT.search(self.frame, max(0, len(self.frame) - 40))
        return None if found is None else int(found[1])

    def event(self) -> Event:
        name, _, rest = self.frame.partition(b"event: ")[2].partition(b"\ndata: ")
        return decode(name.decode(), json.loads(rest))


named = tuple.__new__
"""`named(Entry, (seq, frame))` takes half the time of `Entry(seq, frame)`, whose constructor is Python. For what is
made with every token; mypy does not check the fields."""
_TEXT_HEAD: Final = b'\nevent: text.delta\ndata: {"text":"'
_TEXT_TAIL: Final = b'"}\n\n'
_TEXT_AT: Final = b'","at":'
_AT: Final = re.compile(rb'[,{]"at":(\d+)\}\n\n\Z')
_HEAD_LENGTH: Final = len(_TEXT_HEAD)
_TAIL_LENGTH: Final = len(_TEXT_TAIL)
TERMINAL_TYPES: Final = frozenset({"run.complete", "run.cancelled", "run.failed", "run.interrupted"})


def entry(seq: int, event: Event, at: int | None = None) -> Entry:
    """Encode `event` as number `seq`; `at`, milliseconds since the epoch, is for people and folded to nothing. Lone
    surrogates, which UTF-8 cannot carry, become question marks, and numbers that are none become null. TypeError,
    ValueError, RecursionError: it holds what is no JSON."""
    if type(event) is TextDelta:
        return text_entry(seq, event.text, at)
    name, data = encode(event)
    if at is not None:
        data = {**data, "at": at}
    try:
        body = _dump(data)
    except ValueError:  # a tool's NaN or infinity, which JSON cannot write
        body = _dump(_finite(data))
    return Entry(seq, f"id: {seq}\nevent: {name}\ndata: {body}\n\n".encode("utf-8", "replace"))


_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _finite(value: Json) -> Json:
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


def text_entry(seq: int, text: str, at: int | None = None) -> Entry:
    """What `entry` makes of a text delta: the hot path of the hot path."""
    if at is None:
        frame = f'id: {seq}\nevent: text.delta\ndata: {{"text":{quote(text)}}}\n\n'
    else:
        frame = f'id: {seq}\nevent: text.delta\ndata: {{"text":{quote(text)},"at":{at}}}\n\n'
    return named(Entry, (seq, frame.encode("utf-8", "replace")))


def quoted_text(frame: bytes) -> bytes | None:
    """The text in the frame as JSON writes it between the quotes, if it is a text delta: most of a journal is, and
    `Entry.event` costs ten times as much."""
    head = frame.find(_TEXT_HEAD, 0, 64)
    if head < 0:
        return None
    if frame.endswith(_TEXT_TAIL):
        return frame[head + _HEAD_LENGTH : -_TAIL_LENGTH]
    end = frame.rfind(_TEXT_AT)  # a quote inside the text has a backslash, so this cannot be the text's own
    return None if end < 0 else frame[head + _HEAD_LENGTH : end]


def unquoted(pieces: Sequence[bytes]) -> str:
    """The text of several deltas. All at once, unless a piece may hold half of a character (`\\ud83d`)."""
    whole = b"".join(pieces)
    if b"\\" not in whole:
        return whole.decode()
    apart = pieces if b"\\u" in whole else (whole,)
    return "".join(json.loads(b'"' + piece + b'"') for piece in apart)


def encode(event: Event) -> tuple[str, dict[str, Json]]:
    """The event's type and data, as the API documents them; absent optional fields are left out."""
    match event:
        case RunStarted():
            return "run.started", {
                "run_id": event.run_id,
                "session_id": event.session_id,
                "message_id": event.message_id,
                "user_message_id": event.user_message_id,
                "model": event.model,
                "agent": event.agent,
            }
        case RunResumed(epoch):
            return "run.resumed", {"epoch": epoch}
        case MessageSeeded(from_run, parts):
            return "message.seeded", {"from_run": from_run, "parts": all_to_json(parts)}
        case StepStarted(index):
            return "step.started", {"index": index}
        case TextDelta(text):
            return "text.delta", {"text": text}
        case ReasoningDelta(text, provider):
            return "reasoning.delta", _some(text=text, provider=provider)
        case ToolDelta(call_id, name, args_delta, output_delta):
            return "tool.delta", _some(call_id=call_id, name=name, args_delta=args_delta, output_delta=output_delta)
        case ToolStarted(call_id, name, args, provider):
            data = {"call_id": call_id, "name": name, "args": args}
            return "tool.started", data | _some(provider=provider)
        case ToolFinished(call_id, result, is_error, duration_ms):
            data = {"call_id": call_id, "result": result, "is_error": is_error, "duration_ms": duration_ms}
            return "tool.finished", data
        case ApprovalRequested(approval_id, call_id, name, args, reason, provider):
            data = {
                "approval_id": approval_id,
                "call_id": call_id,
                "name": name,
                "args": args,
                "reason": reason,
            }
            return "approval.requested", data | _some(provider=provider)
        case ApprovalResolved(approval_id, decision, reason):
            return "approval.resolved", _some(approval_id=approval_id, decision=decision, reason=reason)
        case MemoryRecalled(items, note):
            return "memory.recalled", {"items": list(items)} | _some(note=note)
        case Usage(input_tokens, output_tokens, cost):
            return "usage", _some(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)
        case RunEnded(status, reason, finish_reason, error):
            data = _some(reason=reason, finish_reason=finish_reason)
            if error is not None:
                data["error"] = {"code": error.code, "message": error.message}
            return f"run.{status}", data
        case Unknown(name, data):
            return name, data
        case _:
            assert_never(event)


def decode(name: str, data: Mapping[str, Any]) -> Event:
    """The inverse of `encode`; fields that this version does not know are ignored."""
    maker = _DECODERS.get(name)
    return Unknown(name, data) if maker is None else maker(data)


def failure_from_json(data: Mapping[str, Any] | None) -> Failure | None:
    return None if data is None else Failure(data["code"], data["message"])


def _some(**fields: Json) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _ended(status: Ending) -> Callable[[Mapping[str, Any]], Event]:
    return lambda d: RunEnded(status, d.get("reason"), d.get("finish_reason"), failure_from_json(d.get("error")))


_DECODERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "run.started": lambda d: RunStarted(
        d["run_id"], d["session_id"], d["message_id"], d["user_message_id"], d["model"], d["agent"]
    ),
    "run.resumed": lambda d: RunResumed(d["epoch"]),
    "message.seeded": lambda d: MessageSeeded(d["from_run"], all_from_json(d["parts"])),
    "step.started": lambda d: StepStarted(d["index"]),
    "text.delta": lambda d: TextDelta(d["text"]),
    "reasoning.delta": lambda d: ReasoningDelta(d["text"], d.get("provider")),
    "tool.delta": lambda d: ToolDelta(d["call_id"], d.get("name"), d.get("args_delta"), d.get("output_delta")),
    "tool.started": lambda d: ToolStarted(d["call_id"], d["name"], d["args"], d.get("provider")),
    "tool.finished": lambda d: ToolFinished(d["call_id"], d["result"], d.get("is_error", False), d.get("duration_ms")),
    "approval.requested": lambda d: ApprovalRequested(
        d["approval_id"], d["call_id"], d["name"], d["args"], d.get("reason", ""), d.get("provider")
    ),
    "approval.resolved": lambda d: ApprovalResolved(d["approval_id"], d["decision"], d.get("reason")),
    "memory.recalled": lambda d: MemoryRecalled(tuple(d["items"]), d.get("note")),
    "usage": lambda d: Usage(d["input_tokens"], d["output_tokens"], d.get("cost")),
    "run.complete": _ended("complete"),
    "run.cancelled": _ended("cancelled"),
    "run.failed": _ended("failed"),
    "run.interrupted": _ended("interrupted"),
}


def merge(first: Event, second: Event) -> Event | None:
    """One event that says the same as both, if there is one: neighbouring deltas of the same kind."""
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
