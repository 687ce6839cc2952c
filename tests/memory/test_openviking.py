"""The OpenViking provider against a fake server on a real socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.agents.scripted_agent import Say, ScriptedAgent
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.parts import ReasoningPart, RememberedPart, TextPart
from holdfast.memory.openviking import OpenVikingError
from holdfast.ports.memory import MemoryBatch, RememberedTurn
from tests.harness import QUICK, Running, World, running
from tests.memory.fake_openviking import FakeOpenViking, connected, fake_openviking
from tests.memory_providers import ProviderTable

pytestmark = pytest.mark.anyio

SID = SessionId("ses/1 ü")
HIDDEN = ReasoningPart("?")


def batch(count: int) -> MemoryBatch:
    turns = [
        RememberedTurn(n, RunId("run_1"), MessageId("msg_1"), 1.0, (TextPart(f"q{n}"),), (HIDDEN, TextPart(f"a{n}")))
        for n in range(1, count + 1)
    ]
    return MemoryBatch(f"{SID}/1-{count}", LOCAL, SID, None, turns)


@asynccontextmanager
async def remembering() -> AsyncIterator[tuple[Running, FakeOpenViking]]:
    async with fake_openviking() as there, connected(there.url, "secret") as provider:
        table = ProviderTable({"openviking": provider}, "openviking")
        settings = replace(QUICK, flush_time=5.0)
        async with running(ScriptedAgent([Say("ok")]), World(), settings, memory=table) as it:
            yield it, there


async def test_turns_are_added_and_committed() -> None:
    """M2: a commit creates the session, adds the user's words in batches and commits once, with the API key. Answers
    are not sent: they may repeat what others wrote."""
    async with fake_openviking() as there, connected(there.url + "/", "secret") as provider:
        await provider.commit(batch(140))
        (commit,) = there.archived[SID]
        assert [message["content"] for message in commit[:3]] == ["q1", "q2", "q3"]
        assert {message["role"] for message in commit} == {"user"}
        assert len(commit) == 140
        await provider.release(SID)
        await provider.commit(batch(1))
        assert len(there.archived[SID]) == 2
        assert there.keys == {"secret"}


async def test_a_session_that_was_lost_there_is_made_again() -> None:
    """M5: OpenViking has forgotten a session that it had; the next commit makes it again and is whole."""
    async with fake_openviking() as there, connected(there.url, "secret") as provider:
        await provider.commit(batch(1))
        there.pending.clear()
        there.archived.clear()
        await provider.commit(batch(2))
        assert [[message["content"] for message in each] for each in there.archived[SID]] == [["q1", "q2"]]


async def test_a_failed_commit_is_sent_again() -> None:
    """M5, M11: turns whose commit failed stay dirty, with the reason, and are sent again: at least once."""
    async with remembering() as (it, there):
        sid = await it.new_session()
        await it.turn(sid, "I live in Bonn.")
        there.fails["commit"] = 1
        assert "INTERNAL" in ((await it.boundaries.commit(sid)).error or "")
        assert (await it.boundaries.status(sid)).dirty_turns == 1
        assert (await it.boundaries.commit(sid)).committed == 1
        (commit,) = there.archived[sid]
        assert {message["content"] for message in commit} == {"I live in Bonn."}


async def test_found_memories_are_recalled() -> None:
    """Found memories are recalled with their URI; entries without text are skipped."""
    async with remembering() as (it, there):
        there.memories = [
            {"uri": "viking://user/memories/home", "abstract": "Lives in Bonn."},
            {"uri": "viking://user/memories/none"},
            {"uri": "viking://user/memories/long", "abstract": "", "overview": "Likes tea."},
        ]
        sid = await it.new_session()
        await it.turn(sid, "Where do I live?")
        part = (await it.answer(sid)).parts[0]
        assert isinstance(part, RememberedPart)
        assert [dict(item) for item in part.items] == [
            {"text": "Lives in Bonn.", "source": "viking://user/memories/home"},
            {"text": "Likes tea.", "source": "viking://user/memories/long"},
        ]


async def test_a_failing_server_does_not_fail_the_run() -> None:
    """If the server fails or is unreachable, the run completes and has a note."""
    async with remembering() as (it, there):
        there.fails["find"] = 1
        sid = await it.new_session()
        assert (await it.turn(sid, "Where do I live?")).status == "complete"
        part = (await it.answer(sid)).parts[0]
        assert isinstance(part, RememberedPart)
        assert "502" in (part.note or "")
    async with connected("http://127.0.0.1:9") as nowhere:
        assert await nowhere.recall(LOCAL, SID, "  ") == []  # an empty query sends no request
        assert await nowhere.health() is not None
        with pytest.raises(OSError, match=r"127\.0\.0\.1"):
            await nowhere.commit(batch(1))


async def test_forgetting_erases_the_session_there() -> None:
    """A session is erased there; an unknown one is not an error; a refusal has the status, the call and the reason."""
    async with fake_openviking() as there, connected(there.url) as provider:
        assert await provider.health() is None
        there.fails["sessions"] = 1
        assert "UNAVAILABLE" in (await provider.health() or "")
        there.fails["commit"] = 1
        with pytest.raises(OpenVikingError, match=r"500 to POST .*commit: INTERNAL"):
            await provider.commit(batch(1))
        await provider.commit(batch(1))
        await provider.forget(LOCAL, SID)
        assert there.archived == {}
        await provider.forget(LOCAL, SID)
        await provider.commit(batch(1))
        assert list(there.archived) == [SID]
