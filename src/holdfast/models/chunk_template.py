"""Fast path for chunks that differ only in their text: the bytes around it are learned from a parsed chunk. Nothing is
guessed: a template is used only after a second chunk, parsed in full, has confirmed it, and the bytes in the place of
the text must be a JSON string."""

import re
from dataclasses import dataclass, field
from typing import Final

from jiter import from_json

from holdfast.core.json_limits import LARGE
from holdfast.core.lenient_json import loads
from holdfast.core.parts import Json

_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_QUOTE: Final = b'"'  # The first byte of every suffix
_BEFORE: Final = b"data: "
_AFTER: Final = b"\n\n"


@dataclass(slots=True)
class ChunkTemplate:
    prefix: bytes
    suffix: bytes
    _between: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._between = self.suffix + self.prefix

    def text(self, data: bytes) -> str | None:
        """The text of one or more whole events that match the template; None if any byte differs."""
        if not (data.startswith(self.prefix) and data.endswith(self.suffix)):
            return None
        end = len(data) - len(self.suffix)
        if end < len(self.prefix):
            return None
        texts = self._texts(data, end)
        joined = b"".join(texts)
        if joined.isascii() and _PLAIN.fullmatch(joined):  # most answers, whatever the number of events
            return joined.decode()
        try:
            return "".join(map(_string, texts))
        except ValueError:
            return None

    def _texts(self, data: bytes, end: int) -> list[bytes]:
        """The encoded text of each event. A text ends at the first quote, unless that is escaped; `split` would find
        the same, but takes five times as long to look for something as long as `_between`."""
        texts: list[bytes] = []
        between, skip, start = self._between, len(self._between), len(self.prefix)
        while True:
            quote = data.find(_QUOTE, start, end)
            while quote >= 0 and not data.startswith(between, quote, end):
                quote = data.find(_QUOTE, quote + 1, end)
            if quote < 0:
                texts.append(data[start:end])
                return texts
            texts.append(data[start:quote])
            start = quote + skip


def _string(inner: bytes) -> str:
    """Decodes a JSON string, given without its quotes. Raises ValueError if it is not one string."""
    if _PLAIN.fullmatch(inner):
        return inner.decode()
    value = from_json(b'"' + inner + b'"')
    if type(value) is not str:
        raise ValueError("is not a string")
    return value


def learn(line: bytes, chunk: Json) -> ChunkTemplate | None:
    """A template from the data of an event and its parsed chunk; None if it contains more than text, the place of the
    text is ambiguous, or the event is so large that a template would be no faster."""
    text = only_text(chunk)
    if text is None or len(line) > LARGE:
        return None
    quoted = b'"' + text.encode("utf-8", "replace") + b'"'
    if line.count(quoted) != 1 or b"\r" in line or b"\n" in line or not _PLAIN.fullmatch(quoted[1:-1]):
        return None
    before, after = line.split(quoted)
    prefix, suffix = before + b'"', b'"' + after
    other = text + "x"
    try:
        again = loads(prefix + other.encode() + suffix)
    except ValueError:
        return None
    if only_text(again) != other:
        return None
    again["choices"][0]["delta"]["content"] = text
    return ChunkTemplate(_BEFORE + prefix, suffix + _AFTER) if again == chunk else None


def only_text(chunk: Json) -> str | None:
    """The text of a chunk that contains nothing else."""
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
