"""A run's journal as chunks of a chat completion, and a finished one as a whole completion. Pure and incremental, as
`events.py` is."""

import json
from collections.abc import Sequence
from typing import Any, Final

from holdfast.core import events as ev
from holdfast.core.parts import Part, Reasoning, Text, Tool
from holdfast.core.transcript import Transcript
from holdfast.faces.openai import errors, frames
from holdfast.faces.openai.growing import quoted_thought

DONE: Final = b"data: [DONE]\n\n"
BETWEEN: Final = "\n\n"
"""Between what an agent said before its tools and after them."""
_FINISHES: Final = ("stop", "length", "tool_calls", "content_filter")
CUT: Final = ev.Failure("stream-cut", "The server let go of this stream. The run is kept: its id is in the headers.")
_CANCELLED: Final = ev.Failure("run-cancelled", "The run was cancelled. What was said is kept.")
_INTERRUPTED: Final = ev.Failure("run-interrupted", "The server stopped while this was being answered.")


def failure(ending: str, error: ev.Failure | None) -> ev.Failure | None:
    """Why a run that has ended is no completion."""
    match ending:
        case "complete":
            return None
        case "failed":
            return error or ev.Failure("internal", "The run failed.")
        case "cancelled":
            return _CANCELLED
        case _:
            return _INTERRUPTED


def finish(reason: str | None) -> str:
    return reason if reason in _FINISHES else "stop"


def about(completion_id: str, created: int, model: str, kind: str) -> bytes:
    """The fields that never change, as an object."""
    return frames.dump({"id": completion_id, "object": kind, "created": created, "model": model})


class ChatChunks:
    """`base`: the fields that never change. `own_tools`: calls are of tools of ours, which a chat does not show."""

    def __init__(self, base: bytes, *, include_usage: bool, own_tools: bool) -> None:
        self._head = b"data: " + base[:-1]
        self._tail = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._include_usage = include_usage
        self._own = own_tools
        self._text = self._around(b'{"content":"', b'"}')
        self._thought = self._around(b'{"reasoning_content":"', b'"}')
        self._calls: dict[str, int] = {}
        self._begun = self._spoke = self._since = False
        self._usage: ev.Usage | None = None
        self._out: list[bytes] = []
        self.failed: ev.Failure | None = None
        self.ended = False

    def _around(self, before: bytes, after: bytes) -> tuple[bytes, bytes]:
        choice = b',"choices":[{"index":0,"delta":'
        return self._head + choice + before, after + b',"logprobs":null,"finish_reason":null}]' + self._tail

    @property
    def begun(self) -> bool:
        """Something was said: an error can no longer be a status."""
        return self._begun

    def feed(self, entries: Sequence[ev.Entry]) -> list[bytes]:
        for entry in entries:
            frame = entry.frame
            quoted = ev.quoted_text(frame)
            if quoted:
                if self._since or not self._begun:
                    self._begin(speaks=True)
                self._spoke = True
                self._out.append(self._text[0] + quoted + self._text[1])
            elif quoted is None and (quoted := quoted_thought(frame)) is not None:
                self._think(quoted)
            elif quoted is None:
                self._take(entry.event())
        out, self._out = self._out, []
        return out

    def cut(self) -> list[bytes]:
        self.ended = True
        return [broken(CUT)]

    def _begin(self, *, speaks: bool = False) -> None:
        if not self._begun:
            self._begun = True
            self._delta({"role": "assistant", "content": ""})
        if self._since and speaks:
            self._since = False
            if self._spoke and self._own:
                self._delta({"content": BETWEEN})

    def _think(self, quoted: bytes) -> None:
        if quoted:
            self._begin()
            self._out.append(self._thought[0] + quoted + self._thought[1])

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.ReasoningDelta(text):
                self._think(frames.quote(text))
            case ev.ToolDelta(call_id, name, args, _) if name is not None or args is not None:
                self._call(call_id, name, args)
            case ev.ToolStarted():
                self._since = True
            case ev.MessageSeeded(_, parts):
                for part in parts:
                    self._seed(part)
            case ev.Usage():
                before = self._usage or ev.Usage(0, 0)
                inward, outward = before.input_tokens + event.input_tokens, before.output_tokens + event.output_tokens
                self._usage = ev.Usage(inward, outward)
            case ev.RunEnded():
                self._end(event)
            case _:
                pass

    def _seed(self, part: Part) -> None:
        match part:
            case Text(text):
                self._begin(speaks=True)
                self._spoke = True
                self._delta({"content": text})
            case Reasoning(text):
                self._think(frames.quote(text))
            case Tool(call_id, name, args):
                self._call(call_id, name, frames.arguments(args))
            case _:
                pass

    def _call(self, call_id: str, name: str | None, args: str | None) -> None:
        self._since = True
        if self._own:
            return
        self._begin()
        if call_id not in self._calls:
            index = self._calls[call_id] = len(self._calls)
            function = {"name": name or "", "arguments": ""}
            self._delta({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
        if args:
            self._delta({"tool_calls": [{"index": self._calls[call_id], "function": {"arguments": args}}]})

    def _delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        self._out.append(self._head + b',"choices":[' + frames.dump(choice) + b"]" + self._tail)

    def _end(self, ending: ev.RunEnded) -> None:
        self.ended = True
        self.failed = failure(ending.status, ending.error)
        if self.failed is not None:
            self._out.append(broken(self.failed))
            return
        self._begin()
        self._delta({}, finish(ending.finish_reason))
        if self._include_usage:
            usage = frames.dump(frames.chat_usage(self._usage))
            self._out.append(self._head + b',"choices":[],"usage":' + usage + b"}\n\n")
        self._out.append(DONE)


def broken(why: ev.Failure) -> bytes:
    return b"data: " + frames.dump(errors.of_failure(why)[1]) + b"\n\n"


def whole(base: bytes, told: Transcript, *, own_tools: bool) -> bytes:
    """The completion that a run has come to."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in told.parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Tool) and not own_tools:
            function = {"name": part.name, "arguments": frames.arguments(part.args)}
            calls.append({"id": part.call_id, "type": "function", "function": function})
    text = (BETWEEN if own_tools else "").join(texts)
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    thought = "".join(part.text for part in told.parts if isinstance(part, Reasoning))
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish(told.finish_reason)}
    more = json.loads(base) | {"choices": [choice], "usage": frames.chat_usage(told.usage)}
    return frames.dump(more)
