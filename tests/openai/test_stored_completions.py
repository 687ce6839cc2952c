"""Stored chat completions: which are listed, and how large a page is."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.agents.scripted_agent import Say
from tests.openai.in_process import fetching

pytestmark = pytest.mark.anyio

CHAT = "/v1/chat/completions"


async def complete(client: httpx.AsyncClient, *messages: str, **more: Any) -> str:
    said = [{"role": "user", "content": text} for text in messages]
    answer = await client.post(CHAT, json={"model": "agent:chat", "messages": said, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def pages(client: httpx.AsyncClient, path: str, **query: Any) -> list[list[str]]:
    """The ids of each page."""
    found: list[list[str]] = []
    after: dict[str, str] = {}
    while True:
        answer = await client.get(path, params={"limit": 100, **query, **after})
        assert answer.status_code == 200, answer.text
        assert len(answer.content) < 9_000_000
        page = answer.json()
        found.append([item["id"] for item in page["data"]])
        assert (page["first_id"], page["last_id"]) == (found[-1][0], found[-1][-1])
        if not page["has_more"]:
            return found
        after = {"after": page["last_id"]}


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_page_of_completions_is_limited_in_bytes(tmp_path: Path, order: str) -> None:
    """It ends where it would have more than 8 MB, and the rest follows."""
    async with fetching(tmp_path, Say("x" * 3_000_000)) as (_, _, client):
        made = [await complete(client, "Hello") for _ in range(5)]
        found = await pages(client, CHAT, order=order)
    made = made if order == "asc" else made[::-1]
    assert found == [made[:2], made[2:4], made[4:]]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_page_of_messages_is_limited_in_bytes(tmp_path: Path, order: str) -> None:
    """So are the messages that a completion answered; those outside the page are not read."""
    async with fetching(tmp_path, max_body=32 * 1024 * 1024) as (_, _, client):
        made = await complete(client, *(f"{n}{'x' * 900_000}" for n in range(12)))
        found = await pages(client, f"{CHAT}/{made}/messages", order=order)
        assert [len(page) for page in found] == [9, 3]
        whole = [mid for page in found for mid in page]
        assert len(set(whole)) == 12
        [rest] = await pages(client, f"{CHAT}/{made}/messages", order=order, after=whole[10])
        assert rest == whole[11:]
        refused = await client.get(f"{CHAT}/{made}/messages", params={"after": "msg_none"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "after")
