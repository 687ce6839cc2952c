"""Periodic work, every `sweep_interval` seconds (`engine.settings`): ends orphaned runs, retries pending recoveries,
denies questions that nobody answered within `answer_within`, moves the chats of projects that were renamed or deleted
(`engine.projects`), erases what is due (`engine.retention`), trims the change
feed and the usage of erased runs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import anyio

from holdfast.engine.node_context import NodeContext
from holdfast.engine.projects import ProjectMoves
from holdfast.engine.readiness import Readiness
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.retention import Retention
from holdfast.engine.session_memory import SessionMemory
from holdfast.engine.settings import DAY
from holdfast.engine.signals import ERASE, wait_for
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import approvals
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake

_BATCH: Final = 500
_KEEP_USAGE: Final = 400 * DAY  # Of erased runs: more than the longest period that can be asked for


@dataclass(frozen=True, slots=True, eq=False)
class Sweeper:
    _node: NodeContext
    _recovery: RunRecovery
    _supervisor: Supervisor
    _retention: Retention
    _readiness: Readiness
    _projects: ProjectMoves
    _memory: SessionMemory | None = None

    async def run(self) -> None:
        """Runs as long as the engine: sweeps at intervals, and erases at once when asked to."""
        event_for, pause = self._node.hub.signals.event_for, self._node.settings.sweep_interval
        signal, due = event_for(ERASE), anyio.current_time() + pause
        await self._run_all(self._projects.resume)
        while True:
            await wait_for(signal, max(0.0, due - anyio.current_time()))
            signal = event_for(ERASE)  # before erasing, so that a request meanwhile is not missed
            if anyio.current_time() < due:
                await self._retention.erase()
            else:
                await self.tick()
                due = anyio.current_time() + pause

    async def tick(self) -> None:
        """Do every task once. One that fails does not stop the others and is tried again at the next tick."""
        await self._run_all(
            self._readiness.refusal,  # opens a journal that was damaged and has been replaced
            self._recovery.hand_back,
            self.end_orphans,
            self.retry_pending,
            self.expire_approvals,
            self._projects.resume,
            self._retention.erase,
            self.trim,
        )

    async def start(self) -> None:
        """Before anybody is served: no run of an earlier process is shown as running."""
        await self._run_all(self._readiness.check_journal, self.end_orphans, self.retry_pending)
        if self._memory is not None and self._node.settings.max_runs > 0:
            await self._run_all(self._memory.start)

    async def finish(self) -> None:
        """Before the node stops: release what it could not end."""
        await self._run_all(self._recovery.hand_back)

    async def _run_all(self, *tasks: Callable[[], Awaitable[object]]) -> None:
        await self._node.outages.try_each("periodic work", tasks)

    async def end_orphans(self) -> None:
        """Settle every run that nobody executes."""
        last = None
        while True:
            async with self._node.local.claiming(False):
                now, runs = await self._node.store.read(
                    lambda tx, last=last: (tx.now, tx.all_open_runs(_BATCH, last))  # type: ignore[misc]
                )
                orphans = self._recovery.find_orphans(runs, now)
            for run in runs:
                if run.intent is not None:  # the node that requested its end may have failed to reach this one
                    self._supervisor.apply_intent(run)
            await self._recovery.resolve_orphans(orphans)
            if len(runs) < _BATCH:
                return
            last = runs[-1].id

    async def retry_pending(self) -> None:
        now, runs = await self._node.store.read(lambda tx: (tx.now, tx.pending_runs(_BATCH)))
        for run in runs:
            await self._recovery.attempt_pending(run, now)

    async def expire_approvals(self) -> None:
        """Deny questions that nobody answered in time."""
        limit = self._node.settings.answer_within
        if limit <= 0:
            return
        note = f"Nobody answered within {_duration(limit)}, so it was denied."
        while runs := await self._node.store.transact(lambda tx: approvals.expire(tx, tx.now - limit, note, _BATCH)):
            await self._node.hub.announce(*(Wake("control", run.id) for run in runs), Wake("queue"), Wake("changed"))

    async def trim(self) -> None:
        keep = self._node.settings.keep_changes

        def work(tx: Tx) -> None:
            tx.trim_changes(keep)
            tx.trim_erased_usage(tx.now - _KEEP_USAGE)

        await self._node.store.transact(work)
        await self._node.hub.announce(Wake("changed"))


def _duration(seconds: float) -> str:
    """`7 days`, `2 hours`."""
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        if seconds >= length:
            count = round(seconds / length)
            return f"{count} {unit}" + ("s" if count != 1 else "")
    return "a moment"
