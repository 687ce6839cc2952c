"""What follows from a run's end is done by one node, and not by each."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import Say
from holdfast.core.session import Message, Session
from holdfast.ports.agent import Titler
from holdfast.storage.postgres import PostgresConfig, PostgresWakeups
from holdfast.system import SystemClock
from tests.cluster.test_clocks import Shared
from tests.harness import running
from tests.http.streams import GUARD
from tests.servers import PostgresServer


class Counting:
    def __init__(self) -> None:
        self.asked = 0

    async def title(self, messages: Sequence[Message]) -> str:
        self.asked += 1
        return f"Title {self.asked}"


@pytest.mark.anyio
async def test_a_session_is_named_once(durable_postgres: PostgresServer) -> None:
    """P8: both nodes hear that a run has ended, and the one that ended it asks for a title."""
    world, titler = Shared(durable_postgres.database("titles")), Counting()
    options: dict[str, Any] = {"cluster": True, "clock": SystemClock()}
    wakeups = [PostgresWakeups(PostgresConfig(world.url)) for _ in range(2)]

    async def the_titler(_: Session) -> Titler:
        return titler

    with anyio.fail_after(GUARD):
        async with (
            running([Say("hello")], world, wakeups=wakeups[0], **options) as first,
            running([Say("hello")], world, wakeups=wakeups[1], **options) as second,
            anyio.create_task_group() as tasks,
        ):
            for node in (first, second):
                tasks.start_soon(node.engine.titles.run, the_titler)
            await anyio.wait_all_tasks_blocked()
            unnamed = {await node.new_session() for node in (first, second) * 4}
            changes = first.engine.subscriptions.watch_changes(None)
            await changes.begin()
            for sid in unnamed:
                await first.send(sid)
            while unnamed:
                unnamed = {sid for sid in unnamed if (await first.session_row(sid)).titled_by == "nobody"}
                if unnamed:
                    await changes.next()
            tasks.cancel_scope.cancel()
        for each in wakeups:
            await each.close()
    assert titler.asked == 8
