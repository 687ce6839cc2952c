"""JSON-RPC messages, one per line, over an agent program's standard input and output."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream

from holdfast.core.nesting import JsonCounter

_LONG: Final = 64 * 1024  # A longer line is measured, and parsed in a thread, because it takes milliseconds
_MAX_STRUCTURE: Final = 128 * 1024  # Bytes of a long line outside of strings
_MAX_STRINGS: Final = 20_000  # Of a long line
_CHUNK: Final = 64 * 1024
_MAX_OPEN: Final = 200  # Requests of the program that are not answered yet
_TOO_MANY_REQUESTS: Final = -32000


class LineTransport:
    """The transport of `acp.connection.Connection`. Lines that are not JSON-RPC messages are skipped; a line over the
    limit ends the connection. It reads on only when there is room for more messages. Each request of the program is a
    task: while many are open, more are refused, and it reads on only when the program has read the refusal."""

    def __init__(
        self,
        incoming: ByteReceiveStream,
        outgoing: ByteSendStream,
        max_line: int,
        wait_for_room: Callable[[], Awaitable[None]],
        closed: anyio.Event,
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._max_line = max_line
        self._wait_for_room = wait_for_room
        self._closed = closed  # Set at the end of the program's output
        self._sending = anyio.Lock()
        self._open = 0  # Requests of the program
        self._pieces: list[bytes] = []  # of a line that is not complete
        self._size = 0
        self._lines: list[bytes] = []  # complete, the next one last
        self.failure: str | None = None  # Why it stopped reading, if the program did not end the stream

    async def send(self, message: dict[str, Any]) -> None:
        is_answer = "method" not in message
        try:
            await self._write(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            if not is_answer:  # nobody waits for an answer to be sent
                raise ConnectionError("The program no longer reads its input.") from error
        finally:
            if is_answer:
                self._open -= 1

    async def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        async with self._sending:
            await self._outgoing.send(data + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        await self._wait_for_room()
        while (line := await self._next_line()) is not None:
            if not line.strip():
                continue
            if len(line) > _LONG and await to_thread.run_sync(_has_too_many_values, line):
                self.failure = "It sent a message with too many values."
                break
            message = await to_thread.run_sync(_parse, line) if len(line) > _LONG else _parse(line)
            if message is None:
                continue
            if "method" in message and "id" in message:
                if self._open >= _MAX_OPEN:
                    await self._refuse(message["id"])
                    continue
                self._open += 1
            return message
        self._closed.set()
        return None

    async def _refuse(self, request_id: str | int | None) -> None:
        error = {"code": _TOO_MANY_REQUESTS, "message": f"More than {_MAX_OPEN} requests are open"}
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._write({"jsonrpc": "2.0", "id": request_id, "error": error})

    async def close(self) -> None:
        await self._outgoing.aclose()

    async def _next_line(self) -> bytes | None:
        while not self._lines:
            try:
                chunk = await self._incoming.receive(_CHUNK)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return None
            *complete, rest = chunk.split(b"\n")
            if complete:
                complete[0] = b"".join([*self._pieces, complete[0]])
                self._pieces, self._size = [], 0
                self._lines = complete[::-1]
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self._max_line:
                self.failure = f"It sent a line of more than {self._max_line // 2**20} MB."
                return None
        return self._lines.pop()


def _has_too_many_values(line: bytes) -> bool:
    """Whether parsing would take long: the parser lets no other thread run. Counts in chunks, between which other
    threads run."""
    counter = JsonCounter()
    for at in range(0, len(line), _CHUNK):
        counter.add(line[at : at + _CHUNK])
        if counter.strings > _MAX_STRINGS or counter.structure > _MAX_STRUCTURE:
            return True
    return False


def _parse(line: bytes) -> dict[str, Any] | None:
    """The message, or None for anything else: the library takes the shape of a message for granted."""
    try:
        message = json.loads(line)
        if len(line) > _LONG or b"\\ud" in line or b"\\uD" in line:
            message = _without_surrogates(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("id"), str | int | None):
        return None
    if not isinstance(message.get("method"), str | None) or not isinstance(message.get("error"), dict | None):
        return None
    if "method" in message and message["method"] is None:
        return None
    return message


def _without_surrogates(value: Any) -> Any:
    """Replaces half characters, which UTF-8 cannot carry."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value
