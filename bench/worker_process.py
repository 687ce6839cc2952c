"""A helper process of the bench that executes commands: a line of JSON in, a line of JSON out."""

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

GUARD = 180.0
"""Seconds after which a command has failed."""

Commands = Mapping[str, Callable[..., Awaitable[Any]]]


class BenchError(Exception):
    """A worker or a server failed; the message is shown in the table."""


class WorkerProcess:
    """Runs `python -m MODULE` and calls its commands over pipes."""

    def __init__(self, module: str) -> None:
        self._module = module
        command = [sys.executable, "-m", module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def call(self, command: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchError(f"{self._module} exited unexpectedly")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["done"]


async def serve_commands(commands: Commands) -> None:
    """In the worker: execute one command after the other until stdin closes."""
    raise_limits()
    reader = asyncio.StreamReader(limit=1 << 27)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command, arguments = json.loads(line)
        try:
            async with asyncio.timeout(GUARD):
                answer = {"done": await commands[command](**arguments)}
        except TimeoutError:
            answer = {"error": f"{command} took longer than {GUARD:g} s"}
        except BenchError as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def raise_limits() -> None:
    """Allow as many open sockets as the system permits."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bench_directory() -> str | None:
    """Parent of the data directories, on the disk to measure; None is the default for temporary files."""
    return os.environ.get("HOLDFAST_BENCH_DIR")
