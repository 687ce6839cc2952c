"""An item of a response while it grows, and its text as the journal has it: quoted, and never decoded."""

from typing import Final, Literal

from holdfast.core.ids import RunId
from holdfast.core.parts import Tool
from holdfast.faces.openai import names

Kind = Literal["msg", "rs", "fc", "mcp"]

_DELTAS: Final = {
    "msg": ("response.output_text.delta", b'"content_index":0,"logprobs":[],'),
    "rs": ("response.reasoning_summary_text.delta", b'"summary_index":0,'),
    "fc": ("response.function_call_arguments.delta", b""),
    "mcp": ("response.mcp_call_arguments.delta", b""),
}
_TAIL: Final = b'"}\n\n'
_THOUGHT: Final = b'\nevent: reasoning.delta\ndata: {"text":"'
_SIGNED: Final = b'","provider":'
_AT: Final = b'","at":'


class Item:
    __slots__ = ("call", "closed", "delta", "id", "kind", "pieces", "where")

    def __init__(self, kind: Kind, run: RunId, index: int, call: Tool | None) -> None:
        self.kind = kind
        self.id = names.item(kind, run, index)
        self.call = call
        self.pieces: list[bytes] = []
        self.closed = False
        self.where = b'"item_id":"%s","output_index":%d' % (self.id.encode(), index)
        name, more = _DELTAS[kind]
        told = name.encode()
        head = b'event: %s\ndata: {"type":"%s",%s,%s"sequence_number":' % (told, told, self.where, more)
        self.delta = head.replace(b"%", b"%%") + b'%d,"delta":"%b"}\n\n'

    @property
    def text(self) -> bytes:
        if len(self.pieces) > 1:
            self.pieces = [b"".join(self.pieces)]
        return self.pieces[0] if self.pieces else b""


def quoted_thought(frame: bytes) -> bytes | None:
    """The text of a reasoning delta that carries nothing opaque. Quotes in it are escaped, so the end is found."""
    head = frame.find(_THOUGHT, 0, 64)
    if head < 0 or _SIGNED in frame:
        return None
    end = len(frame) - len(_TAIL) if frame.endswith(_TAIL) else frame.rfind(_AT)
    return None if end < 0 else frame[head + len(_THOUGHT) : end]
