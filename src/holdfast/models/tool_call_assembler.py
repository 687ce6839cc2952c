"""Assembles tool calls from the pieces in which a model streams them. What a call with invalid arguments gets:
`agents.chat.tool_runner`."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import jiter

from holdfast.core.finite_numbers import find_non_finite
from holdfast.core.json_limits import LARGE, MAX_STRINGS, MAX_STRUCTURE, JsonCounter, is_too_deep
from holdfast.core.lenient_json import loads
from holdfast.core.parts import Json
from holdfast.core.size_text import MIB
from holdfast.ports.model import ToolCall

MAX_CALLS: Final = 1_000  # Calls of one answer that are assembled; what follows is ignored
_MAX_ARGS: Final = 16 * MIB  # Bytes of the arguments of all calls of one answer
_TOO_LARGE: Final = "the arguments of the calls of one answer are too large"


@dataclass(slots=True, eq=False)
class PartialToolCall:
    index: int | None
    raw_id: str | None
    call_id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Json = None

    def complete(self, measure: "ArgsMeasure") -> ToolCall:
        text = "".join(self.pieces)
        provider = None if self.extra is None else {"extra_content": self.extra}
        args, invalid = parse_args(text, measure)
        if not self.name:
            args, invalid = text, "the model requested a tool without a name"
        return ToolCall(self.call_id, self.name, args, provider, invalid, text)


class ArgsMeasure:
    """The arguments of all calls of one answer: so many values are parsed at most, because nothing else runs while they
    are."""

    def __init__(self) -> None:
        self._size = self._structure = self._strings = 0

    def add(self, data: bytes) -> bool:
        """Whether they are within the limits, these included."""
        self._size += len(data)
        counter = JsonCounter(lenient=True)
        for start in range(0, len(data), LARGE):
            if not self._fits(counter):
                break
            counter.add(data[start : start + LARGE])
        fits = self._fits(counter)
        self._structure += counter.structure
        self._strings += counter.strings
        return fits

    def _fits(self, counter: JsonCounter) -> bool:
        structure, strings = self._structure + counter.structure, self._strings + counter.strings
        return self._size <= _MAX_ARGS and structure <= MAX_STRUCTURE and strings <= MAX_STRINGS


def parse_args(text: str, measure: ArgsMeasure) -> tuple[Json, str | None]:
    """The arguments as an object, or the text and what is wrong with it. Empty text is an object without fields."""
    if not text.strip():
        return {}, None
    data = text.encode("utf-8", "replace")
    if not measure.add(data):
        return text, _TOO_LARGE
    try:
        args = jiter.from_json(data, allow_inf_nan=False)
    except ValueError as error:
        return text, f"the arguments are not valid JSON: {error}"
    if isinstance(args, str):  # some models encode the object twice
        data = args.encode("utf-8", "replace")
        if not measure.add(data):
            return text, _TOO_LARGE
        try:
            inner = loads(data)
        except ValueError:
            inner = None
        if is_too_deep(inner):  # the lenient parser goes deeper than the strict one
            return text, "the arguments are nested too deeply"
        args = inner if isinstance(inner, dict) else args
    if not isinstance(args, dict):
        return text, "the arguments are not a JSON object"
    if find_non_finite(args) is not None:
        return text, "the arguments contain a number that is not finite"
    return args, None


def claim_id(proposed: str, used: set[str]) -> str:
    """Adds an unused id to `used` and returns it: the proposed one, or that with a number."""
    call_id, n = proposed, 1
    while call_id in used:
        n += 1
        call_id = f"{proposed}-{n}"
    used.add(call_id)
    return call_id


class ToolCallAssembler:
    """Assigns pieces to the calls that they belong to. Call ids differ from each other and from `used_ids`."""

    def __init__(self, used_ids: Collection[str] = ()) -> None:
        self._used_ids = set(used_ids)
        self._calls: list[PartialToolCall] = []
        self._by_index: dict[int, PartialToolCall] = {}  # The newest call of each index
        self._is_full = False

    def complete(self) -> Sequence[ToolCall]:
        measure = ArgsMeasure()
        return [call.complete(measure) for call in self._calls]

    def write(self, piece: dict[str, Json]) -> tuple[PartialToolCall, str, bool] | None:
        """Adds a piece. Returns its call, the text added to the arguments, and whether the name is new; None if the
        answer has had too many calls."""
        function = piece.get("function")
        if type(function) is not dict:
            function = piece
        name = function.get("name")
        name = name if type(name) is str else ""
        found = None if self._is_full else self._find(piece, name)
        if found is None and len(self._calls) >= MAX_CALLS:
            self._is_full = True
            return None
        call = found or self._open(piece)
        named = bool(name) and not call.name
        if named:
            call.name = name
        text = args_text(function.get("arguments"))
        call.pieces.append(text)
        extra = piece.get("extra_content")  # carries Google's thought signatures
        if extra is not None:
            call.extra = extra
        return call, text, named

    def _find(self, piece: dict[str, Json], name: str) -> PartialToolCall | None:
        """The open call that the piece continues. A different id under the same index starts another call; so does,
        without an index, a name without an id."""
        index, raw = _index(piece), _id(piece)
        if index is None:
            last = self._calls[-1] if self._calls else None
            if last is None or (raw is not None and raw != last.raw_id):
                return None
            return None if name and raw is None else last
        call = self._by_index.get(index)
        is_other = call is not None and raw is not None and call.raw_id is not None and raw != call.raw_id
        return None if is_other else call

    def _open(self, piece: dict[str, Json]) -> PartialToolCall:
        raw = _id(piece)
        call_id = claim_id(raw or f"call_{len(self._calls) + 1}", self._used_ids)
        call = PartialToolCall(_index(piece), raw, call_id)
        self._calls.append(call)
        if call.index is not None:
            self._by_index[call.index] = call
        return call


def _index(piece: dict[str, Json]) -> int | None:
    index = piece.get("index")
    return index if type(index) is int else None


def _id(piece: dict[str, Json]) -> str | None:
    raw = piece.get("id")
    return raw[:200] if type(raw) is str and raw else None


def args_text(args: Json) -> str:
    """Arguments as the model wrote them, or as a library parsed them."""
    if type(args) is str:
        return args
    return "" if args is None else json.dumps(args, ensure_ascii=False, separators=(",", ":"))
