"""Tool calls while a model writes them."""

import json
from collections.abc import Collection, Sequence
from dataclasses import field

import jiter

from holdfast.agents.models.jsons import loads
from holdfast.agents.models.port import ToolCall
from holdfast.core.parts import Json
from holdfast.core.values import dataclass


@dataclass(slots=True, eq=False)
class OpenCall:
    index: int | None
    raw_id: str | None
    call_id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Json = None

    def complete(self) -> ToolCall:
        text = "".join(self.pieces)
        provider = None if self.extra is None else {"extra_content": self.extra}
        args, invalid = parse_args(text)
        if not self.name:
            args, invalid = text, "the model asked for a tool without saying which"
        return ToolCall(self.call_id, self.name, args, provider, invalid)


def parse_args(text: str) -> tuple[Json, str | None]:
    """The object, or the text with what is wrong about it. Nothing at all is an object without fields."""
    if not text.strip():
        return {}, None
    try:
        args = jiter.from_json(text.encode("utf-8", "replace"), allow_inf_nan=False)
    except ValueError as error:
        return text, f"the arguments are no valid JSON: {error}"
    if isinstance(args, str):  # some models write the object as a text within the text
        try:
            inner = loads(args.encode("utf-8", "replace"))
        except ValueError:
            inner = None
        args = inner if isinstance(inner, dict) else args
    if not isinstance(args, dict):
        return text, "the arguments are no JSON object"
    return args, None


class CallWriter:
    """Puts pieces to the calls that they belong to. Ids are unique among themselves and those in `taken`."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = set(taken)
        self._calls: list[OpenCall] = []

    def complete(self) -> Sequence[ToolCall]:
        return [call.complete() for call in self._calls]

    def write(self, piece: dict[str, Json]) -> tuple[OpenCall, str, bool]:
        """The call, the text that its arguments grew by, and whether its name is new."""
        function = piece.get("function")
        if type(function) is not dict:
            function = piece
        name = function.get("name")
        name = name if type(name) is str else ""
        call = self._find(piece, name) or self._open(piece)
        named = bool(name) and not call.name
        if named:
            call.name = name
        text = _text(function.get("arguments"))
        call.pieces.append(text)
        extra = piece.get("extra_content")  # Google's thought signatures come this way
        if extra is not None:
            call.extra = extra
        return call, text, named

    def _find(self, piece: dict[str, Json], name: str) -> OpenCall | None:
        """The open call that goes on. Another id under the same index is another call, and so is, where there is no
        index, another name without an id."""
        index, raw = _index(piece), _id(piece)
        if index is None:
            last = self._calls[-1] if self._calls else None
            if last is None or (raw is not None and raw != last.raw_id):
                return None
            return None if name and raw is None else last
        for call in reversed(self._calls):
            if call.index == index:
                return None if raw is not None and call.raw_id is not None and raw != call.raw_id else call
        return None

    def _open(self, piece: dict[str, Json]) -> OpenCall:
        raw = _id(piece)
        wanted = raw or f"call_{len(self._calls) + 1}"
        call_id, n = wanted, 1
        while call_id in self._taken:
            n += 1
            call_id = f"{wanted}-{n}"
        self._taken.add(call_id)
        call = OpenCall(_index(piece), raw, call_id)
        self._calls.append(call)
        return call


def _index(piece: dict[str, Json]) -> int | None:
    index = piece.get("index")
    return index if type(index) is int else None


def _id(piece: dict[str, Json]) -> str | None:
    raw = piece.get("id")
    return raw[:200] if type(raw) is str and raw else None


def _text(arguments: Json) -> str:
    if type(arguments) is str:
        return arguments
    if arguments is None:
        return ""
    return json.dumps(arguments, ensure_ascii=False)
