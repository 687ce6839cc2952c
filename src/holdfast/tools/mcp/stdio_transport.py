"""Runs an MCP server as a program and exchanges messages with it, one per line, over its standard input and output.

The SDK's own transport has no limit for a line, and takes quadratic time to read a long one; it is not used."""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from holdfast.http_limits import MAX_BODY, MAX_STRINGS, MAX_STRUCTURE
from holdfast.tools.json_lines import CLOSED, JsonLineReader, LineLimits
from holdfast.tools.mcp.message_repair import parse_leniently
from holdfast.tools.mcp.server_config import StdioServer
from holdfast.tools.supervised_process import open_supervised_process

MAX_LINE: Final = MAX_BODY
_CHUNK: Final = 64 * 1024
_EXIT_TIME: Final = 2.0  # Seconds that a program has to end after its input has


@asynccontextmanager
async def open_stdio(
    server: StdioServer, errors: int, on_failure: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yields what the SDK's client reads from and writes to. `errors`: the descriptor for the error output.
    `on_failure` is told why no more messages are read, if the program did not end by itself. Raises
    FileNotFoundError."""
    from mcp.client.stdio import get_default_environment

    environment = {**get_default_environment(), **server.env}
    command, cwd = [server.command, *server.args], Path(server.cwd or Path.cwd())
    if not _is_program(server.command, cwd, environment):
        raise FileNotFoundError(server.command)
    async with open_supervised_process(command, cwd, environment, has_input=True, stderr=errors) as supervised:
        process = supervised.process
        assert process.stdin is not None
        assert process.stdout is not None
        received, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, to_send = anyio.create_memory_object_stream[Any](0)
        async with received, incoming, outgoing, to_send, anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process.stdout, received, on_failure)
            tasks.start_soon(_write, process.stdin, to_send, received)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
                await _end(process)


def _is_program(command: str, cwd: Path, environment: Mapping[str, str]) -> bool:
    """A name is sought on the PATH, and a path from the program's directory."""
    if os.sep in command:
        return os.access(cwd / command, os.X_OK)
    return shutil.which(command, path=environment.get("PATH")) is not None


async def _read(output: ByteReceiveStream, received: Any, on_failure: Callable[[str], None]) -> None:
    """The end of `received` is the end of the connection."""
    lines = JsonLineReader(output, LineLimits(MAX_LINE, MAX_STRUCTURE, MAX_STRINGS))
    async with received:
        with suppress(*CLOSED):
            while (message := await lines.next(_parse)) is not None:
                await received.send(message)
        if lines.problem is not None:
            on_failure(f"it sent {lines.problem}")


async def _write(program: ByteSendStream, to_send: Any, received: Any) -> None:
    try:
        async for item in to_send:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await program.send(text.encode("utf-8", "replace") + b"\n")
    except CLOSED:
        await received.aclose()  # or the request would be waited for until its time is up


async def _end(process: Process) -> None:
    """The program ends when its input does; what is left of it then is ended with the block."""
    assert process.stdin is not None
    assert process.stdout is not None
    with anyio.CancelScope(shield=True), anyio.move_on_after(_EXIT_TIME), suppress(*CLOSED):
        await process.stdin.aclose()
        while True:
            await process.stdout.receive(_CHUNK)  # a program that cannot write does not end


def _parse(line: bytes) -> Any:
    """A message as the SDK has it; None if the line is none."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return parse_leniently(line)
