"""Translates the journal of a run into the events of a streamed message, and an ended run into a whole message."""

from typing import Any, Final

from pydantic_core import from_json

from holdfast.core import events as ev
from holdfast.core.finite_numbers import find_non_finite
from holdfast.core.parts import Json, ReasoningPart, TextPart, ToolPart
from holdfast.core.run import Run
from holdfast.core.transcript import Transcript
from holdfast.server.anthropic import errors
from holdfast.server.openai.chat_chunks import CUT_OFF, failure_of
from holdfast.server.openai.json_bytes import as_text, dump
from holdfast.server.openai.response_object import model_name
from holdfast.server.openai.translator import Translator

_STOP_REASONS: Final = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def message_fields(run: Run) -> dict[str, Any]:
    name = f"msg_{run.id.removeprefix('run_')}"
    return {"id": name, "type": "message", "role": "assistant", "model": model_name(run), "stop_sequence": None}


def _usage_fields(usage: ev.Usage | None) -> dict[str, int]:
    """Tokens that were read from a cache are counted apart."""
    usage = usage or ev.Usage(0, 0)
    cached = usage.cached_tokens or 0
    fresh = max(0, usage.input_tokens - cached)
    return {"input_tokens": fresh, "cache_read_input_tokens": cached, "output_tokens": usage.output_tokens}


def render_message(run: Run, ended: Transcript, *, server_tools: bool) -> bytes:
    """The whole message of a run that is complete."""
    content: list[dict[str, Any]] = []
    for part in ended.parts:
        match part:
            case TextPart(text):
                content.append({"type": "text", "text": text})
            case ReasoningPart(text) if text:
                content.append({"type": "thinking", "thinking": text, "signature": ""})
            case ToolPart(call_id, name, args) if not server_tools:
                content.append({"type": "tool_use", "id": call_id, "name": name, "input": _input(as_text(args))})
            case _:
                pass
    reason = _STOP_REASONS.get(ended.finish_reason or "", "end_turn")
    return dump({**message_fields(run), "content": content, "stop_reason": reason, "usage": _usage_fields(ended.usage)})


def _input(arguments: str) -> Json:
    """The object that the format has instead of text; a client could not parse one with an infinite number."""
    try:
        value = from_json(arguments or "{}", allow_inf_nan=False)
    except ValueError:
        value = None
    is_valid = isinstance(value, dict) and find_non_finite(value) is None
    return value if is_valid else {"invalid": arguments}


class MessageEvents(Translator):
    """`server_tools`: tool calls are calls of the server's tools, which a message does not show. A call is sent when it
    is complete, because the blocks of a message do not overlap."""

    def __init__(self, message: dict[str, Any], *, server_tools: bool) -> None:
        super().__init__()
        self._message = message
        self._server_tools = server_tools
        self._open: str | None = None  # The type of the open block
        self._index = 0
        self._calls: dict[str, tuple[str, list[str]]] = {}

    def cut(self) -> list[bytes]:
        self.ended = True
        return [_frame("error", errors.of_failure(CUT_OFF)[1])]

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            message = {**self._message, "content": [], "stop_reason": None, "usage": _usage_fields(None)}
            self._write("message_start", {"message": message})

    def _write_text(self, text: bytes) -> None:
        self._write_block("text", "text", "text_delta", text)

    def _write_reasoning(self, text: bytes, provider: Json = None) -> None:
        self._write_block("thinking", "thinking", "thinking_delta", text)

    def _write_block(self, kind: str, field: str, delta: str, text: bytes) -> None:
        if not text:
            return
        if self._open != kind:
            self._begin()
            self._close()
            self._open = kind
            block = {"type": kind, field: "", **({"signature": ""} if kind == "thinking" else {})}
            self._write("content_block_start", {"index": self._index, "content_block": block})
        frame = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":"'
        )
        self._out.append(frame % (self._index, delta.encode(), field.encode()) + text + b'"}}\n\n')

    def _write_call(self, call_id: str, name: str | None, args: str | None) -> None:
        if self._server_tools:
            self._close()
            return
        known, pieces = self._calls.get(call_id, ("", []))
        pieces += [args] if args else []
        self._calls[call_id] = (name or known, pieces)

    def _break_text(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._write("content_block_stop", {"index": self._index})
            self._open = None
            self._index += 1

    def _end(self, ending: ev.RunEnded) -> None:
        self.ended = True
        self.failed = failure_of(ending)
        if self.failed is not None:
            self._out.append(_frame("error", errors.of_failure(self.failed)[1]))
            return
        self._begin()
        self._close()
        for call_id, (name, pieces) in self._calls.items():
            block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            self._write("content_block_start", {"index": self._index, "content_block": block})
            partial = {"type": "input_json_delta", "partial_json": dump(_input("".join(pieces))).decode()}
            self._write("content_block_delta", {"index": self._index, "delta": partial})
            self._open = "tool_use"
            self._close()
        reason = _STOP_REASONS.get(ending.finish_reason or "", "end_turn")
        delta = {"stop_reason": reason, "stop_sequence": None}
        self._write("message_delta", {"delta": delta, "usage": _usage_fields(self._usage)})
        self._write("message_stop", {})

    def _write(self, name: str, fields: dict[str, Any]) -> None:
        self._out.append(_frame(name, {"type": name, **fields}))


def _frame(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), dump(data))
