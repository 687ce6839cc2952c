"""L5, L6: a watcher that has everything is handed what comes in the moment it is durable."""

from collections.abc import Sequence

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Meet, Say, Tokens
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.engine.service import Service
from tests.harness import GUARD, AnyWorld, collect, running

pytestmark = pytest.mark.anyio


class Client:
    """Follows a run; refuses what comes while it is `full`."""

    def __init__(self) -> None:
        self.got: list[Entry] = []
        self.pushed = 0
        self.refused = 0
        self.full = False
        self.let_go = False

    async def watch(self, service: Service, rid: RunId, after: int = 0) -> None:
        async with service.watch(rid, after) as subscription:
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


async def test_what_comes_is_handed_over_once_and_in_order(world: AnyWorld) -> None:
    """L5: two followers, one of them late, are given exactly the journal, the end included."""
    async with running([Say("one "), Meet("a"), Tokens(50), Meet("b"), Say("last")], world) as it:
        run = await it.send(await it.new_session())
        early, late = Client(), Client()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(early.watch, it.service, run.id)
                await it.reached("a")
                it.release("a")
                await it.reached("b")
                tg.start_soon(late.watch, it.service, run.id)
                it.release("b")
        assert early.got == late.got == await it.events(run.id)
        assert early.pushed
        assert early.let_go
        assert late.let_go


async def test_what_a_follower_refuses_it_can_still_read(world: AnyWorld) -> None:
    """L6: a client whose line is full is not waited for, and finds what it did not take when it looks."""
    async with running([Say("one "), Meet("a"), Tokens(20), Meet("b"), Say("last")], world) as it:
        run = await it.send(await it.new_session())
        client = Client()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(client.watch, it.service, run.id)
                await it.reached("a")
                client.full = True
                it.release("a")
                await it.reached("b")
                client.full = False
                it.release("b")
        assert client.got == await it.events(run.id)


async def test_a_follower_that_fails_stops_nobody(world: AnyWorld, caplog: pytest.LogCaptureFixture) -> None:
    """L6: what goes wrong while a watcher is handed something is that watcher's trouble: the writer goes on, for it
    writes for all, and the others are handed the same."""

    class Broken(Client):
        def take(self, entries: Sequence[Entry]) -> bool:
            self.refused += 1
            raise RuntimeError("the line is gone")

    async with running([Say("one "), Meet("a"), Tokens(50), Meet("b"), Say("last")], world) as it:
        run = await it.send(await it.new_session())
        broken, fine = Broken(), Client()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                for client in (broken, fine):
                    tg.start_soon(client.watch, it.service, run.id)
                await it.reached("a")
                while len(it.engine.feed._tails[run.id].followers) < 2:
                    await checkpoint()
                it.release("a")
                it.release("b")
        assert broken.refused
        assert broken.got == fine.got == await it.events(run.id)
        assert (await it.ended(run.id)).status == "complete"
    assert "could not be handed" in caplog.text


async def test_a_follower_that_left_is_handed_nothing(world: AnyWorld) -> None:
    """L1, L6: a client that is cancelled while it follows is forgotten, and the run goes on."""
    async with running([Say("one "), Meet("a"), Say("two")], world) as it:
        run = await it.send(await it.new_session())
        client = Client()
        async with anyio.create_task_group() as tg:
            tg.start_soon(client.watch, it.service, run.id)
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
        run = await it.send(await it.new_session())
        client = Client()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(client.watch, it.service, run.id)
                await it.reached("a")
                it.engine.feed.stop()
        assert client.let_go
        assert not any(entry.ends for entry in client.got)


async def test_what_is_told_late_is_not_shown_again(world: AnyWorld) -> None:
    """L5: a commit that hung may be told when the run is executed anew, by a tail that was opened behind it."""
    async with running([Say("one "), Meet("a"), Say("two")], world) as it:
        run = await it.send(await it.new_session())
        shown = await collect(it.service, run.id, until=2)
        async with it.service.watch(run.id, after=2) as subscription:
            it.engine.feed.publish(run.id, shown[-1:], seals=False)
            again = None
            with anyio.move_on_after(0):
                again = await subscription.next()
            assert again is None
