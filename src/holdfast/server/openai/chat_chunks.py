"""Translates the journal of a run into the chunks of a streamed chat completion, and an ended run into a whole
completion. How a failure is reported: `streaming`."""

import json
from typing import Any, Final

from holdfast.core import events as ev
from holdfast.core.parts import Json, ReasoningPart, TextPart, ToolPart
from holdfast.core.run import Run
from holdfast.core.transcript import Transcript
from holdfast.server.openai import errors
from holdfast.server.openai.ids import completion_id
from holdfast.server.openai.json_bytes import as_text, dump
from holdfast.server.openai.response_object import model_name
from holdfast.server.openai.translator import Translator

DONE: Final = b"data: [DONE]\n\n"
SEPARATOR: Final = "\n\n"  # Between what an agent wrote before its tool calls and after them
CUT_OFF: Final = ev.Failure("stream-cut", "The server closed this stream early. The run is saved: the headers name it.")
_CANCELLED: Final = ev.Failure("run-cancelled", "The run was cancelled. The output so far is saved.")
_INTERRUPTED: Final = ev.Failure("run-interrupted", "The server stopped during this completion.")
_FINISH_REASONS: Final = ("stop", "length", "tool_calls", "content_filter")


def failure_of(ended: ev.RunEnded | Transcript) -> ev.Failure | None:
    """Why an ended run has no completion; None if it has one."""
    match ended.status:
        case "complete":
            return None
        case "failed":
            return ended.error or ev.Failure("internal", "The run failed.")
        case "cancelled":
            return _CANCELLED
        case _:
            return _INTERRUPTED


def _finish_reason(reason: str | None) -> str:
    return reason if reason in _FINISH_REASONS else "stop"


def _usage_fields(usage: ev.Usage | None) -> dict[str, Any]:
    """Clients rely on numbers: what the provider did not report is 0."""
    usage = usage or ev.Usage(0, 0)
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
    }


def constant_fields(run: Run, kind: str) -> bytes:
    """The fields that never change, as a JSON object."""
    return dump({"id": completion_id(run.id), "object": kind, "created": int(run.created_at), "model": model_name(run)})


class ChatChunks(Translator):
    """`constant`: what `constant_fields` returned. `server_tools`: tool calls are calls of the server's tools, which a
    chat completion does not show."""

    def __init__(self, constant: bytes, *, include_usage: bool, server_tools: bool) -> None:
        super().__init__()
        self._head = b"data: " + constant[:-1]
        self._tail = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._include_usage = include_usage
        self._server_tools = server_tools
        self._around_text = self._around(b'{"content":"')
        self._around_reasoning = self._around(b'{"reasoning_content":"')
        self._calls: dict[str, int] = {}
        self._wrote_text = self._called_tool = False

    def _around(self, delta: bytes) -> tuple[bytes, bytes]:
        """The bytes before and after the escaped text of a chunk."""
        head = self._head + b',"choices":[{"index":0,"delta":' + delta
        return head, b'"},"logprobs":null,"finish_reason":null}]' + self._tail

    def cut(self) -> list[bytes]:
        self.ended = True
        return [_error_chunk(CUT_OFF)]

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            self._delta({"role": "assistant", "content": ""})

    def _break_text(self) -> None:
        pass

    def _write_text(self, text: bytes) -> None:
        if text:
            self._begin()
            if self._called_tool and self._wrote_text and self._server_tools:
                self._delta({"content": SEPARATOR})
            self._called_tool, self._wrote_text = False, True
            self._out.append(self._around_text[0] + text + self._around_text[1])

    def _write_reasoning(self, text: bytes, provider: Json = None) -> None:
        if text:
            self._begin()
            self._out.append(self._around_reasoning[0] + text + self._around_reasoning[1])

    def _translate(self, event: ev.Event) -> None:
        if isinstance(event, ev.ToolStarted):
            self._called_tool = True
        super()._translate(event)

    def _write_call(self, call_id: str, name: str | None, args: str | None) -> None:
        self._called_tool = True
        if self._server_tools:
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
        self._out.append(self._head + b',"choices":[' + dump(choice) + b"]" + self._tail)

    def _end(self, ending: ev.RunEnded) -> None:
        self.ended = True
        self.failed = failure_of(ending)
        if self.failed is not None:
            self._out.append(_error_chunk(self.failed))
            return
        self._begin()
        self._delta({}, _finish_reason(ending.finish_reason))
        if self._include_usage:
            usage = dump(_usage_fields(self._usage))
            self._out.append(self._head + b',"choices":[],"usage":' + usage + b"}\n\n")
        self._out.append(DONE)


def _error_chunk(failure: ev.Failure) -> bytes:
    return b"data: " + dump(errors.of_failure(failure)[1]) + b"\n\n"


def render_completion(constant: bytes, ended: Transcript, *, server_tools: bool) -> bytes:
    """The whole completion of a run that is complete."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in ended.parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, ToolPart) and not server_tools:
            function = {"name": part.name, "arguments": as_text(part.args)}
            calls.append({"id": part.call_id, "type": "function", "function": function})
    text = (SEPARATOR if server_tools else "").join(texts)
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    reasoning = "".join(part.text for part in ended.parts if isinstance(part, ReasoningPart))
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    finish_reason = _finish_reason(ended.finish_reason)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return dump(json.loads(constant) | {"choices": [choice], "usage": _usage_fields(ended.usage)})
