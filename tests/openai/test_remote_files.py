"""Files that a call names by URL, fetched by the real app from a scripted host."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from starlette.types import ASGIApp, Message

from holdfast.core.ids import LOCAL
from holdfast.ports.store import RunQuery, StoredFile
from holdfast.server.openai.file_parts import MAX_FILES
from tests.openai.in_process import fetching
from tests.upstream import GUARD, Hang, Head, Raw, Script, upstream

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(992)


def sends(data: bytes, status: int = 200) -> Script:
    return [Head(status, {"Content-Type": "image/png", "Content-Length": str(len(data))}, chunked=False), Raw(data)]


def call(*urls: str) -> dict[str, Any]:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"model": "agent:chat", "messages": [{"role": "user", "content": images}]}


def inline(n: int) -> str:
    """A small image as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(PNG + n.to_bytes(2)).decode()}"


async def test_the_files_of_a_call_are_counted(tmp_path: Path) -> None:
    """A call with too many URLs is refused before any is fetched."""
    async with upstream(sends(PNG)) as up, fetching(tmp_path) as (_, _, client):
        refused = await client.post("/v1/chat/completions", json=call(*[f"{up.url}/x.png"] * 21))
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "messages[0].content[20].image_url.url"
        assert up.exchanges == []
        accepted = await client.post("/v1/chat/completions", json=call(*[f"{up.url}/x.png"] * 20))
        assert accepted.status_code == 200


async def test_the_files_of_a_call_share_a_size_limit(tmp_path: Path) -> None:
    """Each file is below the limit, both are above it."""
    async with upstream(sends(PNG)) as up, fetching(tmp_path, max_file=1500) as (_, _, client):
        refused = await client.post("/v1/chat/completions", json=call(f"{up.url}/a.png", f"{up.url}/b.png"))
        assert refused.status_code == 400
        assert "larger" in refused.json()["error"]["message"]
        assert refused.json()["error"]["param"] == "messages[0].content[1].image_url.url"


async def test_the_files_of_a_call_share_a_time_limit(tmp_path: Path) -> None:
    """A host that does not answer costs the call its time, not that of each file."""
    async with upstream([Hang()]) as up, fetching(tmp_path, fetch_seconds=0.2) as (_, _, client):
        with anyio.fail_after(GUARD):
            refused = await client.post("/v1/chat/completions", json=call(f"{up.url}/a.png", f"{up.url}/b.png"))
        assert refused.status_code == 400
        assert "seconds" in refused.json()["error"]["message"]
        assert len(up.exchanges) == 1


async def send_and_leave(
    app: ASGIApp, client: httpx.AsyncClient, body: dict[str, Any], wait: Callable[[], Awaitable[object]]
) -> None:
    """Make a call whose client disconnects after `wait`."""
    request = client.build_request("POST", "/v1/chat/completions", json=body)
    messages = iter([{"type": "http.request", "body": await request.aread()}])

    async def receive() -> Message:
        for message in messages:
            return message
        await wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        pass

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/chat/completions",
        "raw_path": b"",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": None,
        "server": ("127.0.0.1", 8484),
    }
    with anyio.fail_after(GUARD / 2):
        await app(scope, receive, send)


async def test_fetching_stops_when_the_client_disconnects(tmp_path: Path) -> None:
    """Nobody waits for the files, and no run begins."""
    async with upstream([Hang()]) as up, fetching(tmp_path) as (it, app, client):
        await send_and_leave(app, client, call(f"{up.url}/a.png"), up.asked)
        await up.closed()
        assert await it.engine.runs.list(RunQuery(LOCAL)) == []


async def test_storing_stops_when_the_client_disconnects(tmp_path: Path) -> None:
    """Of the files in its call not all are stored, and no run begins."""
    async with fetching(tmp_path) as (it, app, client):
        first = anyio.Event()

        async def stored() -> Sequence[StoredFile]:
            return await it.store.inner.read(lambda tx: tx.orphan_files(float("inf"), 1000))

        async def first_is_stored() -> None:
            while not await stored():
                await anyio.lowlevel.checkpoint()
            first.set()

        await send_and_leave(app, client, call(*[inline(n) for n in range(MAX_FILES)]), first_is_stored)
        assert first.is_set()
        assert len(await stored()) < MAX_FILES
        assert await it.engine.runs.list(RunQuery(LOCAL)) == []


@pytest.mark.parametrize("path", ["chat/completions", "responses", "conversations"])
async def test_all_files_of_a_call_are_counted(tmp_path: Path, path: str) -> None:
    """Also those that are in the call itself: with one too many, none is stored."""
    async with fetching(tmp_path) as (it, _, client):

        def body(count: int) -> dict[str, Any]:
            urls = [inline(n) for n in range(count)]
            if path == "chat/completions":
                return call(*urls)
            content = [{"type": "input_image", "image_url": url} for url in urls]
            items = [{"type": "message", "role": "user", "content": content}]
            return {"items": items} if path == "conversations" else {"model": "agent:chat", "input": items}

        refused = await client.post(f"/v1/{path}", json=body(MAX_FILES + 1))
        assert refused.status_code == 400, refused.text
        assert f"content[{MAX_FILES}]" in refused.json()["error"]["param"]
        assert str(MAX_FILES) in refused.json()["error"]["message"]
        assert await it.store.inner.read(lambda tx: tx.orphan_files(float("inf"), 1000)) == []
        assert (await client.post(f"/v1/{path}", json=body(MAX_FILES))).status_code == 200


async def test_a_repeated_call_fetches_nothing(tmp_path: Path) -> None:
    """The run of the first call is returned although the file is gone; another body is refused."""
    async with upstream(sends(PNG), sends(b"", 404)) as up, fetching(tmp_path) as (_, _, client):
        for path, change in (("chat/completions", {}), ("responses", {"store": True})):
            up.exchanges.clear()
            image = {"type": "input_image", "image_url": f"{up.url}/a.png"}
            body = call(f"{up.url}/a.png") if path.startswith("chat") else {"model": "agent:chat", **change}
            if path == "responses":
                body["input"] = [{"role": "user", "content": [image]}]
            key = {"Idempotency-Key": f"key of {path}"}
            first = await client.post(f"/v1/{path}", json=body, headers=key)
            again = await client.post(f"/v1/{path}", json=body, headers=key)
            assert (first.status_code, again.status_code) == (200, 200), again.text
            assert again.headers["holdfast-run"] == first.headers["holdfast-run"]
            assert len(up.exchanges) == 1
            other = await client.post(f"/v1/{path}", json={**body, "temperature": 0.5}, headers=key)
            assert (other.status_code, len(up.exchanges)) == (400, 1)


async def test_a_repeated_branch_fetches_nothing(tmp_path: Path) -> None:
    """A repeat below an earlier response finds the run in that response's session."""
    async with upstream(sends(PNG), sends(b"", 404)) as up, fetching(tmp_path) as (_, _, client):
        first = (await client.post("/v1/responses", json={"model": "agent:chat", "input": "Hello"})).json()
        image = {"type": "input_image", "image_url": f"{up.url}/a.png"}
        body = {"model": "agent:chat", "input": [{"role": "user", "content": [image]}]}
        body["previous_response_id"] = first["id"]
        answers = [await client.post("/v1/responses", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].json()["id"] == answers[1].json()["id"]
        assert len(up.exchanges) == 1


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
async def test_the_content_of_a_message_is_limited(tmp_path: Path, path: str) -> None:
    """A message cannot have any number of parts."""
    content = [{"type": "text", "text": "x"}] * 2001
    body = {"model": "agent:chat", "max_tokens": 5, "messages": [{"role": "user", "content": content}]}
    async with fetching(tmp_path) as (_, _, client):
        refused = await client.post(f"/v1/{path}", json=body)
        assert refused.status_code == 400
        assert "messages[0].content" in refused.json()["error"]["message"]
