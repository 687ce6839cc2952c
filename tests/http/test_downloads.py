"""Responses that are made while they are sent."""

from collections.abc import AsyncIterator

import anyio
import pytest
from starlette.types import Message

from holdfast.core.errors import HoldfastError, NotFoundError
from holdfast.server.downloads import Download


@pytest.mark.parametrize("first", [b"the beginning", b""])
def test_what_is_erased_while_it_is_sent_never_looks_complete(first: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Before the first chunk that is an error response, and later the connection is aborted and the log says why;
    neither is a bug."""
    sent: list[Message] = []
    aborted: list[None] = []

    async def chunks() -> AsyncIterator[bytes]:
        if first:
            yield first
        raise NotFoundError("message", "msg_1")

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def check() -> None:
        download = Download(chunks(), "file", {})
        scope = {
            "type": "http",
            "path": "/share/secret",
            "extensions": {"holdfast.abort": lambda: aborted.append(None)},
        }
        await download(scope, receive, send)

    if first:
        anyio.run(check)
        assert [message.get("body") for message in sent] == [None, first]
        assert aborted
        (line,) = [record.getMessage() for record in caplog.records]
        assert line.startswith("the download of /share/… broke off: ")
        assert "msg_1" in line
    else:
        with pytest.raises(HoldfastError):
            anyio.run(check)
        assert not sent
