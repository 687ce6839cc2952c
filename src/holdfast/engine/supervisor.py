"""Everything that lives: claims queued runs, executes them, stops them, keeps their leases, and drains on shutdown."""

import logging
from functools import partial

import anyio
from anyio.abc import TaskGroup

from holdfast.core.errors import StorageError
from holdfast.core.ids import RunId
from holdfast.core.run import Run, is_live
from holdfast.engine.book import rows, turns
from holdfast.engine.executor import HAND_OVER, LOST, SHUTDOWN, Deps, Execution, Stop, cancelled, over_limit
from holdfast.engine.hub import wait
from holdfast.ports import Wake

log = logging.getLogger("holdfast.engine")

_CLAIM_AT_ONCE = 64


class Supervisor:
    def __init__(self, deps: Deps, me: rows.Me) -> None:
        self._deps = deps
        self._me = me
        self._executions: dict[RunId, Execution] = {}
        self.draining = False
        self._patience = anyio.CancelScope()

    @property
    def executing(self) -> int:
        return len(self._executions)

    def stop(self, rid: RunId, why: Stop) -> bool:
        """Whether the run is executed here; if so it stops in the middle of whatever it awaits."""
        execution = self._executions.get(rid)
        if execution is not None:
            execution.stop(why)
        return execution is not None

    # ---- loops, each a task for the engine's life ----

    async def claim(self, runs: TaskGroup) -> None:
        """Take up queued runs while there is room; on a hint, else now and then."""
        settings = self._deps.settings
        while not self.draining:
            signal = self._deps.hub.signals.armed(("queue", None))
            busy = sum(not execution.waiting for execution in self._executions.values())
            room = min(settings.max_runs - busy, _CLAIM_AT_ONCE)
            again = room > 0 and await self._claim(runs, room)
            if not again:
                await wait(signal, settings.poll)

    async def _claim(self, runs: TaskGroup, room: int) -> bool:
        """Whether it is worth to look again at once. Shielded: what was claimed is started or put back, also by a node
        that is told to stop meanwhile."""
        settler = self._deps.settler
        try:
            with anyio.move_on_after(self._deps.settings.final_save, shield=True):
                async with settler.claims:
                    settler.claiming += 1
                    try:
                        return await self._take(runs, room)
                    finally:
                        settler.claiming -= 1
        except Exception:  # also one that nobody foresaw: it would end every run that is executed here
            log.warning("queued runs could not be claimed", exc_info=True)
        return False

    async def _take(self, runs: TaskGroup, room: int) -> bool:
        store, connected = self._deps.store, frozenset(self._deps.settler.connections)
        claimed, more = await store.transact(lambda tx: turns.claim(tx, self._me, room, connected))
        if self.draining:
            await store.transact(lambda tx: turns.unclaim(tx, claimed))
            return False
        for run in claimed:
            self._start(runs, run)
            ours = run.connection is not None and run.connection.holder == self._me.node
            if ours and run.id not in self._deps.settler.connections:  # its client left while it was being claimed
                self.stop(run.id, cancelled("disconnected"))
        if claimed:
            await self._deps.hub.announce(Wake("changed"))
        return more and bool(claimed)

    def _start(self, runs: TaskGroup, run: Run) -> None:
        """A run that was parked and decided at once may still be leaving: the new execution waits for the old one."""
        leaving = self._executions.get(run.id)
        execution = Execution(run, self._deps)
        self._executions[run.id] = execution
        self._deps.settler.held.add(run.id)
        runs.start_soon(self._execute, execution, leaving, name=f"run {run.id}")

    async def _execute(self, execution: Execution, leaving: Execution | None) -> None:
        rid = execution.run.id
        try:
            if leaving is not None:
                # Shielded: an engine that is cancelled meanwhile ends this one as it ends the others.
                with anyio.CancelScope(shield=True):
                    await leaving.gone.wait()
            await execution.execute()
        finally:
            execution.gone.set()
            if self._executions.get(rid) is execution:
                del self._executions[rid]
                self._deps.settler.held.discard(rid)
            self._deps.hub.signals.fire(("queue", None))
        if execution.parks:
            await self._after_parking(rid)

    async def _after_parking(self, rid: RunId) -> None:
        """Whoever asked the run to end while it was leaving found it still held: end it now."""
        settler = self._deps.settler
        with anyio.move_on_after(self._deps.settings.final_save, shield=True):
            try:
                now, row = await self._deps.store.read(lambda tx: (tx.now, tx.run(rid)))
                await settler.end_stale(settler.find_stale([] if row is None else [row], now))
            except Exception:
                log.warning("a parked run could not be looked at; the sweeper does", exc_info=True)

    async def control(self) -> None:
        """Somebody, perhaps on another node, changed the row of a run that is executed here."""
        hub = self._deps.hub
        while True:
            signal = hub.signals.armed("control")
            named = hub.controlled()
            rids = [rid for rid in (self._executions if named is None else named) if rid in self._executions]
            if rids:
                await self._obey(rids)
            else:
                await wait(signal, self._deps.settings.sweep)

    async def _obey(self, rids: list[RunId]) -> None:
        try:
            runs = await self._deps.store.read(lambda tx: [tx.run(rid) for rid in rids])
        except StorageError:
            return
        for run in runs:
            self.heed(run)

    def heed(self, row: Run | None) -> bool:
        """Stop a run whose row says that it is to end; whether it is executed here."""
        execution = None if row is None else self._executions.get(row.id)
        if execution is not None:
            execution.heed(row)
        return execution is not None

    async def limits(self) -> None:
        """Wall-clock and idle limits, looked at a few times within the shorter one: no timer per run or per token."""
        settings = self._deps.settings
        pause = min(max(min(settings.wall_limit, settings.idle_limit) / 8, 0.05), 5.0)
        seen: dict[RunId, tuple[int, float]] = {}
        while True:
            await anyio.sleep(pause)
            now = anyio.current_time()
            before, seen = seen, {}
            for rid, execution in self._executions.items():
                writes, since = before.get(rid, (-1, now))
                if execution.waiting:
                    execution.started_at += pause
                if execution.waiting or execution.writes != writes:
                    since = now
                seen[rid] = (execution.writes, since)
                if now - since >= settings.idle_limit:
                    execution.stop(over_limit(f"Nothing came from the model for {settings.idle_limit:.0f} seconds."))
                elif now - execution.started_at >= settings.wall_limit:
                    execution.stop(over_limit(f"The run was stopped after {settings.wall_limit:.0f} seconds."))

    async def heartbeat(self) -> None:
        """Where leases lapse: renew them. In doubt, stop: another node may have taken over."""
        lease_time = self._me.lease_time
        if lease_time is None:
            return
        pause = self._deps.settings.lease_renewal or lease_time / 3
        renewed_at = anyio.current_time()
        while True:
            await anyio.sleep(pause)
            asked_at, executions = anyio.current_time(), dict(self._executions)
            connected = frozenset(self._deps.settler.connections)
            work = partial(turns.renew, me=self._me, rids=executions.keys(), connections=connected)
            try:
                with anyio.fail_after(lease_time / 3):
                    now, held = await self._deps.store.transact(work)
            except (StorageError, TimeoutError):
                if anyio.current_time() - renewed_at >= lease_time * 2 / 3:
                    for execution in executions.values():
                        execution.stop(LOST)
                continue
            renewed_at = asked_at
            rows = {run.id: run for run in held}
            for rid, execution in executions.items():
                self._check(execution, rows.get(rid), now)

    def _check(self, execution: Execution, row: Run | None, now: float) -> None:
        execution.heed(row)
        if row is not None and row.lifetime == "attached" and not is_live(row.connection, None, now):
            execution.stop(cancelled("disconnected"))  # by the node that had its client

    # ---- the end ----

    async def drain(self) -> None:
        """Take nothing new, let runs end by themselves for a while, then hand the rest over, or seal it as
        interrupted."""
        self.draining = True
        self._deps.hub.signals.fire(("queue", None))
        with self._patience:
            self._patience.deadline = anyio.current_time() + self._deps.settings.drain
            await self._empty()
        for execution in list(self._executions.values()):
            execution.stop(HAND_OVER if self._can_hand_over(execution.run) else SHUTDOWN)
        with anyio.move_on_after(self._deps.settings.final_save):
            await self._empty()

    def _can_hand_over(self, run: Run) -> bool:
        """Whether another node may take it up as it is, as it would after a crash of this one."""
        settings = self._deps.settings
        several = self._me.lease_time is not None
        return (
            several
            and settings.recovery.auto_continue
            and run.lifetime == "detached"
            and self._deps.settler.can_continue(run)
        )

    def hurry(self) -> None:
        """Draining, wait for nothing that would end by itself."""
        self._patience.cancel()

    async def _empty(self) -> None:
        while self._executions:
            signal = self._deps.hub.signals.armed(("queue", None))
            if self._executions:
                await wait(signal, self._deps.settings.poll)
