"""Ends work for a client that has disconnected. What becomes of an attached run: `engine.client_connections`."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive

T = TypeVar("T")


async def wait_for_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancels the scope when the client disconnects. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


@contextmanager
def allow_drop(request: Request) -> Iterator[None]:
    """Meanwhile the server may drop the connection if it needs room for others: see `connection_limits`."""
    tell = request.scope.get("extensions", {}).get("holdfast.may_drop", lambda _: None)
    tell(True)
    try:
        yield
    finally:
        tell(False)


async def run_while_connected(receive: Receive, work: Callable[[], Awaitable[T]]) -> T:
    """The result of the work. It is cancelled if the client disconnects, which raises HTTPException."""
    results: list[T] = []
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_disconnect, receive, tasks.cancel_scope)
        try:
            results.append(await work())
        except Exception as error:  # noqa: BLE001 - raised outside the task group, which would wrap it
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    if not results:
        raise HTTPException(400, "The client disconnected before its request was accepted.")
    return results[0]
