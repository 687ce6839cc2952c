"""A part of the bench in a process of its own, that is told what to do in lines of JSON and answers each with one."""

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
"""Seconds after which something that was waited for is not coming."""

Orders = Mapping[str, Callable[..., Awaitable[Any]]]


class Trouble(Exception):
    """What a child or a server could not do, in words for the table."""


class Child:
    """`python -m MODULE`, at the other end of two pipes."""

    def __init__(self, module: str) -> None:
        self._module = module
        command = [sys.executable, "-m", module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def tell(self, order: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([order, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Trouble(f"{self._module} ended")
        answer = json.loads(line)
        if "trouble" in answer:
            raise Trouble(answer["trouble"])
        return answer["done"]


async def obey(orders: Orders) -> None:
    """In the child: one order after the other, until nobody gives any more."""
    raise_limits()
    reader = asyncio.StreamReader(limit=1 << 27)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order, arguments = json.loads(line)
        try:
            async with asyncio.timeout(GUARD):
                answer = {"done": await orders[order](**arguments)}
        except TimeoutError:
            answer = {"trouble": f"{order} took longer than {GUARD:g} s"}
        except Trouble as trouble:
            answer = {"trouble": str(trouble)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def raise_limits() -> None:
    """As many open sockets as the system lets us have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def directory() -> str | None:
    """Where data directories go: on the disk that is to be measured."""
    return os.environ.get("HOLDFAST_BENCH_DIR")
