"""Files that a request names by URL."""

import pytest

from holdfast.ports.tool import ToolError
from holdfast.tools.fetch.file_fetcher import FileFetcher
from tests.upstream import GUARD, Hang, Head, Raw, Script, upstream

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def sends(data: bytes, status: int = 200, **headers: str) -> Script:
    about = {"Content-Type": "image/png", "Content-Length": str(len(data)), **headers}
    return [Head(status, about, chunked=False), Raw(data)]


async def test_a_file_is_fetched_with_its_name_and_type() -> None:
    """The contents come as they are, named after the last part of the path."""
    async with upstream(sends(PNG)) as up:
        found = await FileFetcher(allowed=lambda address: True).fetch(f"{up.url}/a/tide.png?x=1", 1000)
    assert found == ("tide.png", "image/png", PNG)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (sends(PNG, 404), "status 404"),
        (sends(b"", 302, Location="http://127.0.0.1/"), "status 302"),
        (sends(bytes(2000)), "larger than 1,000 bytes"),
        ([Hang()], "did not answer"),
    ],
    ids=["missing", "redirect", "large", "hangs"],
)
async def test_what_cannot_be_used_is_refused(script: Script, problem: str) -> None:
    """E1: a failure, a redirect, too many bytes and too long a wait each have a reason."""
    async with upstream(script) as up:
        seconds = 0.5 if script == [Hang()] else GUARD
        with pytest.raises(ToolError, match=problem):
            await FileFetcher(seconds, allowed=lambda address: True).fetch(f"{up.url}/x.png", 1000)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x", "http://[::1]/x", "file:///etc/passwd", "http://u:p@example.com/"]
)
async def test_only_public_addresses_are_fetched(url: str) -> None:
    """A request cannot make the server read its own machine or network."""
    with pytest.raises(ToolError):
        await FileFetcher().fetch(url, 1000)
