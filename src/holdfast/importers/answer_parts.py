"""Collects the parts of one answer: reasoning, text, and tool calls with their results. An answer can consist of any
number of messages of the source, so its size is limited here."""

from dataclasses import replace

from holdfast.core.errors import InvalidInputError
from holdfast.core.parts import FilePart, Json, Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session_limits import MAX_PARTS
from holdfast.core.size_text import size_text
from holdfast.engine.export_import import MAX_LINE
from holdfast.importers.fields import bounded, memory_size


class AnswerParts:
    """Raises InvalidInputError, which names `label`, for an answer that no message of ours can be."""

    def __init__(self, label: str = "An answer") -> None:
        self._label = label
        self._size = 0
        self._parts: list[Part] = []
        self._calls: dict[str, int] = {}  # The position of each call, by id
        self._open: dict[str, None] = {}  # Ids of the calls without a result, in order
        self._recent: list[str] = []  # Ids of calls, the nearest one last; some may have a result already
        self._recent_by_name: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add_text(self, text: str) -> None:
        if text.strip():
            self._append(TextPart(text), len(text))

    def add_reasoning(self, text: str, duration: float | None = None) -> None:
        if text.strip():
            milliseconds = None if duration is None else round(duration * 1000)
            self._append(ReasoningPart(text, duration_ms=milliseconds), len(text))

    def add_file(self, part: FilePart) -> None:
        self._append(part, len(part.name))

    def add_call(self, call_id: str, name: str, args: Json) -> str:
        """The id under which a result is expected; it is made up if the source has none, or has it twice."""
        if not call_id or call_id in self._calls:
            call_id = f"call_{len(self._calls) + 1}"
            while call_id in self._calls:
                call_id += "_"
        self._calls[call_id] = len(self._parts)
        self._open[call_id] = None
        name = name or "tool"
        self._recent.append(call_id)
        self._recent_by_name.setdefault(name, []).append(call_id)
        self._append(ToolPart(call_id, name, args, "unknown"), memory_size(args))
        return call_id

    def add_result(self, call_id: str, name: str, result: Json, *, is_error: bool = False) -> None:
        """Without a known id, the result is that of the nearest call of this name, else of the nearest call."""
        if call_id not in self._calls:
            call_id = self._take_nearest(self._recent_by_name.get(name, []) if name else self._recent)
        if not call_id:
            call_id = self.add_call("", name, {})
        self._open.pop(call_id, None)
        self._grow(memory_size(result))
        done = replace(self._call(call_id), state="done", result=bounded(result), is_error=is_error)
        self._parts[self._calls[call_id]] = done

    def _append(self, part: Part, size: int) -> None:
        self._grow(size)
        if len(self._parts) >= MAX_PARTS:
            raise InvalidInputError(self._label, f"has a message of more than {MAX_PARTS} parts")
        self._parts.append(part)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_LINE:
            raise InvalidInputError(self._label, f"has a message of more than {size_text(MAX_LINE)}")

    def finish(self, *, user_follows: bool) -> list[Part]:
        """The parts. A call without a result did not run if the person went on, and has an unknown outcome if the
        conversation ends here."""
        if user_follows:
            for call_id in self._open:
                self._parts[self._calls[call_id]] = replace(self._call(call_id), state="not_run")
        return self._parts

    def _take_nearest(self, recent: list[str]) -> str:
        """The last open call, or an empty string. Each id leaves the list once, so many results are linear."""
        while recent:
            if (call_id := recent.pop()) in self._open:
                return call_id
        return ""

    def _call(self, call_id: str) -> ToolPart:
        part = self._parts[self._calls[call_id]]
        assert isinstance(part, ToolPart)
        return part
