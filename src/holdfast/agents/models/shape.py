"""Chunks of one answer differ in their text and in nothing else, nearly always. So the bytes around the text are learnt
from a chunk that was parsed, and where they come again, what is between them is the text.

Nothing is guessed: a shape is used only after another text in it has been parsed, with the same result but for that
text, and only for texts that are written in JSON as they are. Whatever differs in any way is parsed.
"""

import re
from typing import Final

from holdfast.agents.models.jsons import loads
from holdfast.core.parts import Json

_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]+')
_BEFORE: Final = b"data: "
_AFTER: Final = b"\n\n"


class Shape:
    __slots__ = ("_end", "_start", "joint", "prefix", "suffix")

    def __init__(self, prefix: bytes, suffix: bytes) -> None:
        self.prefix = prefix
        self.suffix = suffix
        self.joint = suffix + prefix
        self._start = len(prefix)
        self._end = -len(suffix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and (self.prefix, self.suffix) == (other.prefix, other.suffix)

    __hash__ = None  # type: ignore[assignment]

    def text(self, data: bytes) -> str | None:
        """What one or more whole events of this shape say; None: they are not, or not only, of this shape."""
        if not (data.startswith(self.prefix) and data.endswith(self.suffix)):
            return None
        inner = data[self._start : self._end]
        try:
            if _PLAIN.fullmatch(inner):
                return inner.decode()
            texts = inner.split(self.joint)
            for text in texts:
                if not _PLAIN.fullmatch(text):
                    return None
            return "".join([text.decode() for text in texts])
        except UnicodeDecodeError:
            return None


def learn(line: bytes, chunk: Json) -> Shape | None:
    """From the data of an event and what it was parsed to; None where it has more in it than text, or does not show
    plainly where that is."""
    said = only_text(chunk)
    if said is None:
        return None
    quoted = b'"' + said.encode("utf-8", "replace") + b'"'
    if line.count(quoted) != 1 or b"\r" in line or b"\n" in line or not _PLAIN.fullmatch(quoted[1:-1]):
        return None
    before, after = line.split(quoted)
    prefix, suffix = before + b'"', b'"' + after
    other = said + "x"
    try:
        again = loads(prefix + other.encode() + suffix)
    except ValueError:
        return None
    if only_text(again) != other:
        return None
    again["choices"][0]["delta"]["content"] = said
    return Shape(_BEFORE + prefix, suffix + _AFTER) if again == chunk else None


def only_text(chunk: Json) -> str | None:
    """The text of a chunk that says nothing else."""
    if type(chunk) is not dict or chunk.get("error") or chunk.get("usage"):
        return None
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1:
        return None
    choice = choices[0]
    if type(choice) is not dict or choice.get("index") or choice.get("error") or choice.get("finish_reason"):
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or any(value for key, value in delta.items() if key not in ("role", "content")):
        return None
    content = delta.get("content")
    return content if type(content) is str and content else None
