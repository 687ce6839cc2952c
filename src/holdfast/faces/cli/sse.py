"""Server-sent events, read from bytes that come in any pieces. Pure."""

from typing import Final, NamedTuple

MAX_EVENT: Final = 64 * 1024 * 1024


class Frame(NamedTuple):
    id: str
    event: str
    data: str


class TooLong(ValueError):
    pass


class Parser:
    """Comments and unknown fields are skipped, as are frames without data. What is half there when the line breaks is
    forgotten: it will come again."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._id = ""
        self._event = ""
        self._data: list[str] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        self._rest += chunk
        if len(self._rest) + self._held > MAX_EVENT:
            raise TooLong(f"an event is longer than {MAX_EVENT} bytes")
        if b"\n" not in chunk:
            return []
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        return [frame for line in lines if (frame := self._line(line)) is not None]

    def _line(self, raw: bytearray) -> Frame | None:
        line = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                self._id = value
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
                self._held += len(raw)
            case _:
                pass
        return None

    def _dispatch(self) -> Frame | None:
        frame = Frame(self._id, self._event or "message", "\n".join(self._data)) if self._data else None
        self._event, self._data, self._held = "", [], 0
        return frame
