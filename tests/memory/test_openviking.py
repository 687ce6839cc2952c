"""OpenViking as a provider, against a server on a real socket that follows its calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.agents.scripted import Say, ScriptedAgent
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.parts import Reasoning, Remembered, Text
from holdfast.memory.openviking import OpenViking, OpenVikingFailed
from holdfast.ports import Batch, RememberedTurn
from holdfast.testing.memory import ProviderTable
from tests.harness import QUICK, Running, World, running
from tests.memory.viking import Viking, viking

pytestmark = pytest.mark.anyio

SID = SessionId("ses/1 ü")


def batch(count: int) -> Batch:
    turns = [
        RememberedTurn(
            n, RunId(f"run_{n}"), MessageId(f"msg_{n}"), 1.0, (Text(f"q{n}"),), (Reasoning("?"), Text(f"a{n}"))
        )
        for n in range(1, count + 1)
    ]
    return Batch(f"{SID}/1-{count}", LOCAL, SID, None, turns)


@asynccontextmanager
async def remembering() -> AsyncIterator[tuple[Running, Viking]]:
    async with viking() as there, OpenViking(there.url, "secret") as provider:
        table = ProviderTable({"openviking": provider}, "openviking")
        settings = replace(QUICK, flush=5.0)
        async with running(ScriptedAgent([Say("ok")]), World(), settings, memory=table) as it:
            yield it, there


async def test_turns_are_added_and_committed() -> None:
    """M2: a commit makes the session there, adds both sides of each turn in portions, commits once, with the key."""
    async with viking() as there, OpenViking(there.url + "/", "secret") as provider:
        await provider.commit(batch(70))
        (commit,) = there.archived[SID]
        assert [message["content"] for message in commit[:4]] == ["q1", "a1", "q2", "a2"]
        assert [message["role"] for message in commit[:2]] == ["user", "assistant"]
        assert len(commit) == 140
        await provider.release(SID)
        await provider.commit(batch(1))
        assert len(there.archived[SID]) == 2
        assert there.keys == {"secret"}


async def test_a_failed_commit_is_told_again() -> None:
    """M5, M11: a commit that fails there stays dirty, with its reason, and is told again: at least once."""
    async with remembering() as (it, there):
        sid = await it.new_session()
        await it.turn(sid, "I live in Bonn.")
        there.fails["commit"] = 1
        assert "INTERNAL" in ((await it.boundaries.commit(sid)).error or "")
        assert (await it.boundaries.status(sid)).dirty_turns == 1
        assert (await it.boundaries.commit(sid)).committed == 1
        (commit,) = there.archived[sid]
        assert {message["content"] for message in commit} == {"I live in Bonn.", "ok"}


async def test_what_it_finds_is_recalled() -> None:
    """Memories that it finds are in front of the model, with where they are there; others are not taken for any."""
    async with remembering() as (it, there):
        there.memories = [
            {"uri": "viking://user/memories/home", "abstract": "Lives in Bonn."},
            {"uri": "viking://user/memories/none"},
            {"uri": "viking://user/memories/long", "abstract": "", "overview": "Likes tea."},
        ]
        sid = await it.new_session()
        await it.turn(sid, "Where do I live?")
        part = (await it.answer(sid)).parts[0]
        assert isinstance(part, Remembered)
        assert [dict(item) for item in part.items] == [
            {"text": "Lives in Bonn.", "source": "viking://user/memories/home"},
            {"text": "Likes tea.", "source": "viking://user/memories/long"},
        ]


async def test_a_server_that_is_away_or_odd_costs_a_note() -> None:
    """A proxy's page, and no server at all, cost a note and not the run."""
    async with remembering() as (it, there):
        there.fails["find"] = 1
        sid = await it.new_session()
        assert (await it.turn(sid, "Where do I live?")).status == "complete"
        part = (await it.answer(sid)).parts[0]
        assert isinstance(part, Remembered)
        assert "502" in (part.note or "")
    async with OpenViking("http://127.0.0.1:9") as nowhere:
        assert await nowhere.health() is not None
        with pytest.raises(OSError, match=r"127\.0\.0\.1"):
            await nowhere.commit(batch(1))


async def test_forgetting_erases_the_session_there() -> None:
    """A session is erased there once; one that was never there is no mistake; health says what is wrong."""
    async with viking() as there, OpenViking(there.url) as provider:
        assert await provider.health() is None
        there.fails["sessions"] = 1
        assert "UNAVAILABLE" in (await provider.health() or "")
        await provider.commit(batch(1))
        await provider.forget(LOCAL, SID)
        assert there.archived == {}
        await provider.forget(LOCAL, SID)
        await provider.commit(batch(1))
        assert list(there.archived) == [SID]


async def test_an_empty_question_asks_nobody() -> None:
    """Nothing is searched for nothing."""
    async with OpenViking("http://127.0.0.1:9") as nowhere:
        assert await nowhere.recall(LOCAL, SID, "  ") == []


async def test_a_refusal_is_said_in_a_sentence() -> None:
    """What it answered is in the error, for a person to act on."""
    async with viking() as there, OpenViking(there.url) as provider:
        there.fails["commit"] = 1
        with pytest.raises(OpenVikingFailed, match=r"500 to POST .*commit: INTERNAL"):
            await provider.commit(batch(1))
