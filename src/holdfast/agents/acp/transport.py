"""JSON-RPC messages, one per line, over an agent program's standard input and output. The longest line:
`AcpLimits.max_line`."""

import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from holdfast.core.json_limits import MAX_STRINGS, MAX_STRUCTURE
from holdfast.tools.json_lines import JsonLineReader, LineLimits

_HALF: Final = re.compile(rb"\\u[dD]|\xed")  # What every half character looks like
_MAX_OPEN: Final = 200  # Requests of the program that are not answered yet
_TOO_MANY_REQUESTS: Final = -32000


class LineTransport:
    """The transport of `acp.connection.Connection`. Lines that are not JSON-RPC messages are skipped; too many of them
    in a row, or a line over the limit, end the connection. It reads on only when there is room for more messages. Each
    request of the program is a task: while many are open, more are refused, and it reads on only when the program has
    read the refusal."""

    def __init__(
        self,
        incoming: ByteReceiveStream,
        outgoing: ByteSendStream,
        max_line: int,
        wait_for_room: Callable[[], Awaitable[None]],
        closed: anyio.Event,
    ) -> None:
        self._outgoing = outgoing
        self._wait_for_room = wait_for_room
        self._closed = closed  # Set at the end of the program's output
        self._sending = anyio.Lock()
        self._open = 0  # Requests of the program
        self._lines = JsonLineReader(incoming, LineLimits(max_line, MAX_STRUCTURE, MAX_STRINGS))
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
        while (message := await self._lines.next(_parse)) is not None:
            if "method" in message and "id" in message:
                if self._open >= _MAX_OPEN:
                    await self._refuse(message["id"])
                    continue
                self._open += 1
            return message
        if self._lines.problem is not None:
            self.failure = f"It sent {self._lines.problem}."
        self._closed.set()
        return None

    async def _refuse(self, request_id: str | int | None) -> None:
        error = {"code": _TOO_MANY_REQUESTS, "message": f"More than {_MAX_OPEN} requests are open"}
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._write({"jsonrpc": "2.0", "id": request_id, "error": error})

    async def close(self) -> None:
        await self._outgoing.aclose()


def _parse(line: bytes) -> dict[str, Any] | None:
    """The message, None for anything else: the library takes the shape of a message for granted."""
    try:
        message = json.loads(line)
        if _HALF.search(line):
            message = _without_surrogates(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("id"), str | int | None):
        return None
    if not isinstance(message.get("method"), str | None) or not isinstance(message.get("error"), dict | None):
        return None
    if message.get("method") is None and ("method" in message or "id" not in message):
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
