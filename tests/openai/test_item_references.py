"""References to output items of earlier responses, instead of the items."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.scripted_agent import Say, Think
from tests.openai.in_process import fetching

pytestmark = pytest.mark.anyio


def referring(item: str, count: int) -> dict[str, Any]:
    references = [{"type": "item_reference", "id": item}] * count
    return {"model": "agent:chat", "input": [*references, {"role": "user", "content": "And?"}]}


async def test_repeated_references_are_read_once(tmp_path: Path) -> None:
    """Many references to one response make as many storage calls as one; a wrong index among them is found."""
    async with fetching(tmp_path) as (it, _, client):
        made = (await client.post("/v1/responses", json={"model": "agent:chat", "input": "Hello"})).json()
        item = made["output"][0]["id"]
        reads = []
        for count in (1, 19):
            before = it.store.calls["read"]
            answer = await client.post("/v1/conversations", json={"items": referring(item, count)["input"]})
            assert answer.status_code == 200, answer.text
            reads.append(it.store.calls["read"] - before)
        assert reads[0] == reads[1] > 0
        wrong = referring(item, 2)
        wrong["input"][1] = {"type": "item_reference", "id": f"{item[:-1]}7"}
        refused = await client.post("/v1/responses", json=wrong)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[1].id")


async def test_the_bytes_of_referenced_items_are_limited(tmp_path: Path) -> None:
    """A small call cannot become a large one by referring to a long item again and again."""
    async with fetching(tmp_path, Say("x" * 1_000_000)) as (_, _, client):
        made = (await client.post("/v1/responses", json={"model": "agent:chat", "input": "Hello"})).json()
        item = made["output"][0]["id"]
        refused = await client.post("/v1/responses", json=referring(item, 40))
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[33].id")
        assert (await client.post("/v1/responses", json=referring(item, 2))).status_code == 200


async def test_what_is_not_referred_to_is_not_kept(tmp_path: Path) -> None:
    """References to short items of many responses do not hold all of these in memory."""
    async with fetching(tmp_path, Think("x" * 2_000_000), Say("short")) as (_, _, client):
        items = []
        for _ in range(15):
            made = (await client.post("/v1/responses", json={"model": "agent:chat", "input": "Hello"})).json()
            items.append({"type": "item_reference", "id": made["output"][1]["id"]})
        tracemalloc.start()
        try:
            answer = await client.post("/v1/conversations", json={"items": items})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert answer.status_code == 200, answer.text
        assert peak < 18_000_000
