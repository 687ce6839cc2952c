"""Turns the parsed chunks of a chat completion into deltas, complete tool calls and usage, for servers with OpenAI's
format and the local model. Differences between the answers of providers are handled here, those between requests in
`models.dialects`; unknown fields are ignored."""

from collections.abc import Collection, Sequence
from typing import Final

from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage
from holdfast.core.parts import Json
from holdfast.models.tool_call_assembler import PartialToolCall, ToolCallAssembler
from holdfast.models.upstream_errors import UpstreamError, from_error
from holdfast.models.usage import parse_usage
from holdfast.ports.model import Delta, ToolCall

_TEXT: Final = object()
_REASONING: Final = object()
_CALLS: Final = object()
_GROWING: Final = ("text", "summary", "data")  # Fields of reasoning details that arrive in pieces


class ChunkAssembler:
    """`add` chunks, then `take` the deltas so far. Adjacent deltas of one kind are merged. `error` is set by the first
    chunk that ends the answer; deltas before it can still be taken."""

    def __init__(self, used_ids: Collection[str] = ()) -> None:
        self.error: UpstreamError | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.produced = False
        self._calls = ToolCallAssembler(used_ids)
        self._kind: object = None  # what the pieces belong to: text, reasoning or tool calls
        self._pieces: list[str] = []
        self._call_pieces: dict[PartialToolCall, list[str]] = {}
        """Of calls that are written at the same time, merged for each: a server may alternate with every token."""
        self._named: set[PartialToolCall] = set()  # Those whose name became known with these pieces
        self._deltas: list[Delta] = []
        self._details: list[dict[str, Json]] = []
        self._grown: dict[str, list[str]] = {}  # The pieces of fields of the last detail

    @property
    def calls(self) -> Sequence[ToolCall]:
        return self._calls.complete()

    def take(self) -> list[Delta]:
        self._flush()
        deltas = self._deltas
        self._deltas = []
        return deltas

    def end(self) -> bool:
        """Call after the last chunk. Returns whether there was an answer; usage without one is not reported."""
        self._close_reasoning()
        self._flush()
        answered = self.produced or self.finish_reason not in (None, "content_filter")
        if answered and self.usage is not None:
            self._deltas.append(self.usage)
        return answered

    def add_text(self, text: str) -> list[Delta]:
        """Adds a chunk that contains only text and takes it. For text that follows other text, when everything before
        it has been taken."""
        if self._details:
            self._content(text)
            return self.take()
        return [TextDelta(text)]

    def add(self, chunk: Json) -> None:
        if type(chunk) is not dict:
            self.error = UpstreamError("protocol", f"a chunk is {_kind_of(chunk)}, not an object", retry=True)
            return
        if chunk.get("error"):
            self.error = from_error(chunk["error"])
            return
        choices = chunk.get("choices")
        if type(choices) is list and choices:
            for choice in choices:
                if type(choice) is dict and not choice.get("index"):
                    self._choice(choice)
        elif choices is None and _is_error(chunk):
            self.error = from_error(chunk)
            return
        usage = chunk.get("usage")
        if type(usage) is dict:
            self.usage = parse_usage(usage) or self.usage

    # ---- one choice ----

    def _choice(self, choice: dict[str, Json]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if type(delta) is dict:
            details = delta.get("reasoning_details")
            reasoning = delta.get("reasoning_content") or delta.get("reasoning") or delta.get("thinking")
            reasoning = reasoning or (_detail_text(details) if details else None)
            if reasoning:
                self._reason(reasoning)
            if details:
                self._detail(details)
            content = delta.get("content") or delta.get("refusal")
            if content:
                self._content(content)
            calls = delta.get("tool_calls")
            if type(calls) is list:
                for call in calls:
                    self._call(call)
        if choice.get("error"):
            self.error = from_error(choice["error"])
            return
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = str(reason)
            if reason == "error":
                self.error = UpstreamError("unavailable", "it ended the answer with an error", retry=True)

    def _content(self, content: Json) -> None:
        if type(content) is str:
            if self._kind is not _TEXT:
                self._close_reasoning()
                self._begin(_TEXT)
            self._pieces.append(content)
        elif type(content) is list:  # Mistral's format, in which thinking is part of the content
            for part in content:
                if type(part) is dict:
                    self._part(part)

    def _part(self, part: dict[str, Json]) -> None:
        text = part.get("text")
        if type(text) is str and text:
            self._content(text)
        thinking = part.get("thinking")
        if type(thinking) is list:
            thinking = "".join(str(p["text"]) for p in thinking if type(p) is dict and p.get("text"))
        if thinking:
            self._reason(thinking)

    def _reason(self, text: Json) -> None:
        if type(text) is str:
            self._begin(_REASONING)
            self._pieces.append(text)

    def _detail(self, details: Json) -> None:
        """OpenRouter's format of reasoning that has to be sent back unchanged: the pieces of one block are joined."""
        for detail in details if type(details) is list else ():
            if type(detail) is not dict:
                continue
            last = self._details[-1] if self._details else None
            if last is None or (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
                self._join_detail()
                self._details.append(dict(detail))
                continue
            for key, value in detail.items():
                old = last.get(key)
                if key in _GROWING and type(old) is str and type(value) is str:
                    self._grown.setdefault(key, [old]).append(value)
                elif value is not None:
                    last[key] = value
                    self._grown.pop(key, None)

    def _join_detail(self) -> None:
        for key, pieces in self._grown.items():
            self._details[-1][key] = "".join(pieces)
        self._grown.clear()

    def _close_reasoning(self) -> None:
        if self._details:
            self._join_detail()
            details, self._details = self._details, []
            self._flush()
            self._deltas.append(ReasoningDelta("", {"reasoning_details": details}))
            self.produced = True

    def _call(self, piece: Json) -> None:
        if type(piece) is not dict:
            self.error = UpstreamError("protocol", f"a tool call is {_kind_of(piece)}, not an object", retry=True)
            return
        self._close_reasoning()
        written = self._calls.write(piece)
        if written is None:
            return
        call, text, named = written
        if named and call in self._call_pieces:
            self._flush()  # a delta has the name first, then arguments
        self._begin(_CALLS)
        if named:
            self._named.add(call)
        self._call_pieces.setdefault(call, []).append(text)

    # ---- merging ----

    def _begin(self, kind: object) -> None:
        if kind is not self._kind:
            self._flush()
            self._kind = kind

    def _flush(self) -> None:
        kind, self._kind = self._kind, None
        if kind is None:
            return
        self.produced = True
        if kind is _CALLS:
            for call, pieces in self._call_pieces.items():
                name = call.name if call in self._named else None
                self._deltas.append(ToolDelta(call.call_id, name, "".join(pieces)))
            self._call_pieces.clear()
            self._named.clear()
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        self._deltas.append(TextDelta(text) if kind is _TEXT else ReasoningDelta(text))


def _detail_text(details: Json) -> str:
    """The reasoning of a server that sends it in `reasoning_details` only."""
    items = [detail for detail in details if type(detail) is dict] if type(details) is list else []
    texts = (detail.get("text") or detail.get("summary") for detail in items)
    return "".join(text for text in texts if type(text) is str)


def _is_error(chunk: dict[str, Json]) -> bool:
    has_message = isinstance(chunk.get("message"), str) and ("code" in chunk or "type" in chunk)
    return has_message or chunk.get("object") == "error" or bool(chunk.get("detail"))


def _kind_of(value: Json) -> str:
    names: dict[type, str] = {list: "a list", str: "a string", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number")
