"""L5, L6: a subscriber that is up to date receives events the moment they are durable."""

from collections.abc import Sequence

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Meet, Say, SayTokens
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.engine.engine import Engine
from tests.harness import AnyWorld, Script, running
from tests.storage_interceptors import GUARD

pytestmark = pytest.mark.anyio


class Client:
    """Follows a run; refuses what comes while it is `full`."""

    def __init__(self) -> None:
        self.got: list[Entry] = []
        self.pushed = 0
        self.refused = 0
        self.full = False
        self.let_go = False

    async def watch(self, engine: Engine, rid: RunId, after: int = 0) -> None:
        async with engine.subscriptions.watch(rid, after) as subscription:
            while (entries := await subscription.next()) is not None:
                self.got += entries
                await subscription.follow(self.take)
        self.let_go = True

    def take(self, entries: Sequence[Entry]) -> bool:
        if self.full:
            self.refused += 1
            return False
        self.pushed += 1
        self.got += entries
        return True


class BrokenClient(Client):
    def take(self, entries: Sequence[Entry]) -> bool:
        self.refused += 1
        raise RuntimeError("the line is gone")


async def test_followers_are_handed_each_event_once_and_in_order(
    world: AnyWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """L5, L6: followers are given exactly the journal, the end included: one that comes late, one that is full for a
    while and finds what it did not take when it looks, and one that fails and stops nobody."""
    async with running([Say("one "), Meet("a"), SayTokens(50), Meet("b"), Say("last")], world) as it:
        run = await it.send()
        early, full, broken, late = clients = Client(), Client(), BrokenClient(), Client()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                for client in (early, full, broken):
                    tg.start_soon(client.watch, it.engine, run.id)
                await it.reached("a")
                while len(it.engine.feed._tails[run.id].followers) < 3:
                    await checkpoint()
                full.full = True
                it.release("a")
                await it.reached("b")
                full.full = False
                tg.start_soon(late.watch, it.engine, run.id)
                it.release("b")
        assert [client.got for client in clients] == [await it.events(run.id)] * 4
        assert [client.let_go for client in clients] == [True] * 4
        assert early.pushed
        assert broken.refused
        assert (await it.ended(run.id)).status == "complete"
    assert "could not be sent to a client" in caplog.text


async def test_a_follower_that_left_is_handed_nothing(world: AnyWorld) -> None:
    """L1, L6: a client that is cancelled while it follows is forgotten, and the run goes on."""
    async with running([Say("one "), Meet("a"), Say("two")], world) as it:
        run = await it.send()
        client = Client()
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.watch, it.engine, run.id)
            await it.reached("a")
            tg.cancel_scope.cancel()
        seen = len(client.got)
        it.release("a")
        await it.until(run.id, "complete")
        assert len(client.got) == seen
        assert it.engine.feed.subscribers == 0


async def test_a_follower_is_let_go_when_the_server_stops(world: AnyWorld) -> None:
    """L5: the stream of a run that goes on elsewhere ends without a terminal event, so that the client comes back."""
    async with running([Say("one "), Meet("a")], world) as it:
        run = await it.send()
        client = Client()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(client.watch, it.engine, run.id)
                await it.reached("a")
                it.engine.feed.stop()
        assert client.let_go
        assert not any(entry.ends for entry in client.got)


async def test_what_is_told_late_is_not_shown_again(world: AnyWorld) -> None:
    """L5: a commit that hung may be told when the run is executed anew, by a tail that was opened behind it."""
    async with running([Say("one "), Meet("a"), Say("two")], world) as it:
        run = await it.send()
        shown = await it.collect(run.id, until=2)
        async with it.engine.subscriptions.watch(run.id, after=2) as subscription:
            it.engine.feed.publish(run.id, shown[-1:], seals=False)
            again = None
            with anyio.move_on_after(0):
                again = await subscription.next()
            assert again is None


@pytest.mark.parametrize("ended", [False, True], ids=["running", "ended"])
async def test_a_page_is_bounded_in_bytes(world: AnyWorld, ended: bool) -> None:
    """L6: a subscriber that is far behind a run of large events holds one bounded page, not the run."""
    script: Script = [*(Say("x" * 50_000) for _ in range(60)), Meet("here")]
    async with running(script, world) as it:
        run = await it.send_to_gate()
        if ended:
            it.release("here")
            await it.ended(run.id)
        got: list[Entry] = []
        async with it.engine.subscriptions.watch(run.id) as subscription:
            while sum(len(entry.frame) for entry in got) < 3_000_000:
                with anyio.fail_after(GUARD):
                    page = await subscription.next()
                assert page is not None
                assert sum(len(entry.frame) for entry in page) <= 600_000
                got += page
        assert [entry.seq for entry in got] == list(range(1, len(got) + 1))
