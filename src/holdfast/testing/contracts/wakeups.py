"""What every `Wakeups` does. Hints may be lost in general; these must arrive as long as nothing fails."""

from collections.abc import AsyncIterator

import anyio
import pytest

from holdfast.core.ids import NodeId, RunId
from holdfast.ports.wakeups import Listener, Wake, Wakeups
from holdfast.testing.contracts.samples import GUARD, NODE, MakeWakeups

OTHER_NODE = NodeId("node_2")
QUEUE = Wake("queue")


async def until(listener: Listener, wanted: set[Wake]) -> set[Wake]:
    """All wakes up to the point where `wanted` has come: hints may be gathered or come one by one."""
    seen: set[Wake] = set()
    with anyio.fail_after(GUARD):
        while not wanted <= seen:
            some = await listener.next()
            assert some
            seen |= set(some)
    return seen


@pytest.mark.anyio
class WakeupsContract:
    """Derive and add the fixture `make_wakeups` (see the package's docstring)."""

    @pytest.fixture
    async def wakeups(self, make_wakeups: MakeWakeups) -> AsyncIterator[Wakeups]:
        async with make_wakeups() as wakeups:
            yield wakeups

    async def test_a_node_hears_every_other(self, wakeups: Wakeups) -> None:
        """Every listener of another node hears every notification."""
        third = NodeId("node_3")
        async with wakeups.listen(NODE) as mine, wakeups.listen(OTHER_NODE) as other:
            for listener, sender in ((mine, OTHER_NODE), (other, NODE), (mine, third), (other, third)):
                await wakeups.notify(sender, [QUEUE])
                assert await until(listener, {QUEUE}) == {QUEUE}

    async def test_kinds_and_runs_are_passed_on(self, wakeups: Wakeups) -> None:
        """A wake says of what kind it is and which run it concerns."""
        run = RunId("run_é")
        wakes = {QUEUE, Wake("control", run), Wake("appended", run), Wake("appended", RunId("b")), Wake("changed")}
        async with wakeups.listen(NODE) as listener:
            await wakeups.notify(OTHER_NODE, wakes)
            assert await until(listener, wakes) == wakes

    async def test_next_waits_for_a_wake(self, wakeups: Wakeups) -> None:
        """A listener with nothing pending sleeps until something comes, each time; an empty notification is nothing."""
        heard: list[set[Wake]] = []
        async with wakeups.listen(NODE) as listener:
            with anyio.fail_after(GUARD):
                for n in range(3):
                    wake = Wake("control", RunId(f"run_{n}"))
                    async with anyio.create_task_group() as group:

                        async def wait(wake: Wake = wake) -> None:
                            heard.append(await until(listener, {wake}))

                        group.start_soon(wait)
                        await wakeups.notify(OTHER_NODE, [])
                        await anyio.wait_all_tasks_blocked()
                        assert len(heard) == n
                        await wakeups.notify(OTHER_NODE, [wake])
        assert heard == [{Wake("control", RunId(f"run_{n}"))} for n in range(3)]

    async def test_a_listener_that_does_not_listen_holds_up_nobody(self, wakeups: Wakeups) -> None:
        """L6: notifying returns however much is pending, and what is pending is bounded: the same hint is held once."""
        third = NodeId("node_3")
        async with wakeups.listen(NODE) as deaf, wakeups.listen(OTHER_NODE) as other:
            with anyio.fail_after(GUARD):
                for _ in range(2_000):
                    await wakeups.notify(third, [QUEUE, Wake("changed")])
                last = Wake("control", RunId("run_last"))
                await wakeups.notify(third, [last])
            assert await until(other, {last}) <= {QUEUE, Wake("changed"), last}
            assert await until(deaf, {last}) <= {QUEUE, Wake("changed"), last}

    async def test_a_node_that_listens_again_hears_again(self, wakeups: Wakeups) -> None:
        """Leaving and coming back is a new listener; others go on undisturbed, and notifying nobody is harmless."""
        await wakeups.notify(NODE, [QUEUE])
        async with wakeups.listen(OTHER_NODE) as other:
            for n in range(3):
                wake = Wake("appended", RunId(f"run_{n}"))
                async with wakeups.listen(NODE) as listener:
                    await wakeups.notify(NodeId("node_3"), [wake])
                    await until(listener, {wake})
                    await until(other, {wake})
        await wakeups.notify(NODE, [QUEUE])

    async def test_a_cancelled_wait_loses_nothing_that_comes_later(self, wakeups: Wakeups) -> None:
        """A listener whose wait was cancelled hears the next wake."""
        async with wakeups.listen(NODE) as listener:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await listener.next()
            await wakeups.notify(OTHER_NODE, [QUEUE])
            await until(listener, {QUEUE})
