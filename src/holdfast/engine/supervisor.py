"""Claims queued runs and executes them, cancels them, enforces their limits, renews their leases, drains on shutdown.
Which run is next: `engine.transactions.run_queue`; the limits: `engine.settings`.

Cancel and finish race at the journal, which accepts one terminal event: whichever is appended first decides the run's
status, and the other is refused. Cancelling therefore only records the intent in the store, stops whoever executes the
run, and waits; the executor or the settler writes the ending.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

import anyio
from anyio.abc import TaskGroup

from holdfast.core.errors import StorageError
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.lease import is_live
from holdfast.core.run import Run
from holdfast.engine.executor import Execution, ExecutorDeps
from holdfast.engine.signals import Notifier, wait_for
from holdfast.engine.stop_reasons import HAND_OVER, LOST, SHUTDOWN, StopReason, cancelled, over_limit
from holdfast.engine.transactions import cancel_requests, run_queue
from holdfast.engine.transactions.run_queue import ClaimedRun
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake

_CLAIM_AT_ONCE = 64
_CLAIMING = "claiming queued runs"
_PARKING = "checking parked runs"


class Supervisor:
    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps
        self._node = deps.node
        self._executions: dict[RunId, Execution] = {}
        self._runs: TaskGroup | None = None  # In which runs are executed, while they may be started
        self._starved = False  # Whether runs may be waiting for room
        self._in_doubt: dict[RunId, float] = {}
        """Runs that were perhaps accepted and claimed, because the store did not answer, and until when to look."""
        self._claiming = 0  # Room that a claim under way may fill
        self._over = Notifier()
        self.draining = False
        self._drain_scope = anyio.CancelScope()

    @property
    def executing(self) -> int:
        return len(self._executions)

    # ---- stopping ----

    def stop(self, rid: RunId, why: StopReason) -> None:
        """Stop the run if it is executed here."""
        execution = self._executions.get(rid)
        if execution is not None:
            execution.stop(why)

    def apply_intent(self, row: Run | None) -> bool:
        """Stop the run if its row says that it is to end; whether it is executed here."""
        execution = None if row is None else self._executions.get(row.id)
        if execution is not None:
            execution.apply_intent(row)
        return execution is not None

    async def wait_until_settled(self, rid: RunId) -> bool:
        """Wait until the run is no longer executed here, at most `cancel_wait` seconds; whether it was settled here."""
        execution = self._executions.get(rid)
        if execution is not None:
            with anyio.move_on_after(self._node.settings.cancel_wait):
                await execution.done.wait()
            if not execution.done.is_set():
                return False
        return self._node.local.settled_here(rid)

    async def cancel(self, rid: RunId, owner: OwnerId, reason: str) -> Run:
        """The settled run, or after `cancel_wait` seconds the run with its cancel requested. A run that this node
        executes is stopped even if the store cannot be written."""
        try:
            run = await self._node.transact(
                partial(cancel_requests.request_cancel, rid=rid, owner=owner, reason=reason), wake_queue=False
            )
        except StorageError:
            self.stop(rid, cancelled(reason))
            raise
        return await self.finish_cancel(run)

    async def finish_cancel(self, run: Run) -> Run:
        """The same for a run whose cancel is stored."""
        if run.is_open:
            await self.stop_requested([run])
            run = await self._node.wait_until_ended(run.id, self._node.settings.cancel_wait) or run
        return run

    async def stop_requested(self, runs: Sequence[Run]) -> None:
        """Stop runs whose intent is stored: here, on other nodes, or by ending orphans. The sweeper retries
        failures."""
        elsewhere = [run for run in runs if not self.apply_intent(run)]
        if not elsewhere:
            return
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            with suppress(StorageError):
                now = await self._node.store.read(lambda tx: tx.now)
                await self._deps.recovery.resolve_orphans(self._deps.recovery.find_orphans(elsewhere, now))
            await self._node.hub.announce(*(Wake("control", run.id) for run in elsewhere))

    # ---- loops, each a task for the engine's life ----

    async def claim(self, runs: TaskGroup) -> None:
        """Claim queued runs while there is room: when woken, and at intervals."""
        self._runs = runs
        try:
            while not self.draining:
                signal = self._node.hub.signals.event_for(("queue", None))
                room = max(0, min(self._room(), _CLAIM_AT_ONCE))
                self._starved = not room
                self._claiming = room
                again = (room or self._in_doubt) and await self._claim(runs, room)
                self._claiming = 0
                if not again:
                    await wait_for(signal, self._node.settings.poll_interval)
        finally:
            self._runs = None

    def _room(self) -> int:
        """How many more runs may be claimed. Once the node is full, runs that wait for a person do not count."""
        starting = len(self._node.local.starting) - len(self._in_doubt)
        most = self._node.settings.max_runs - starting - self._claiming
        if most > len(self._executions):
            return most - len(self._executions)
        return most - sum(not execution.waiting for execution in self._executions.values())

    async def _claim(self, runs: TaskGroup, room: int) -> bool:
        """Whether there may be more to claim. Shielded: what was claimed is started or requeued."""
        try:
            with anyio.move_on_after(self._node.settings.final_save, shield=True):
                async with self._node.local.claiming():
                    more = await self._claim_and_start(runs, room)
                    self._node.outages.worked(_CLAIMING)
                    return more
        except Exception as error:  # noqa: BLE001 - any error here would end every run that this node executes
            self._node.outages.failed(_CLAIMING, error)
        return False

    async def _claim_and_start(self, runs: TaskGroup, room: int) -> bool:
        identity, connected, in_doubt = self._node.identity, self._node.local.connected, frozenset(self._in_doubt)

        def work(tx: Tx) -> tuple[list[ClaimedRun], frozenset[RunId], list[ClaimedRun], bool]:
            # Before claiming, so that newly claimed runs are not checked.
            known = frozenset(rid for rid in in_doubt if tx.run(rid) is not None)
            unstarted = run_queue.find_unstarted(tx, identity, in_doubt)
            return unstarted, known, *run_queue.claim(tx, identity, room, connected)

        unstarted, known, claimed, more = await self._node.store.transact(work)
        self._resolve_doubts(in_doubt, known)
        claimed = unstarted + claimed
        if self.draining:
            for each in claimed:
                await self._hand_over(each)
            return False
        for each in claimed:
            self._start(runs, each)
            if self._node.local.has_lost_client(each.run):  # while it was being claimed
                self.stop(each.run.id, cancelled("disconnected"))
        if claimed:
            await self._node.hub.announce(Wake("changed"))
        return bool(known) or (more and bool(claimed))

    def _resolve_doubts(self, looked_for: Collection[RunId], known: Collection[RunId]) -> None:
        """A run that is not there yet may still be committed on another connection."""
        now = anyio.current_time()
        for rid in looked_for:
            if rid in known or now >= self._in_doubt[rid]:
                del self._in_doubt[rid]
                self.release(rid)

    async def _hand_over(self, claimed: ClaimedRun) -> None:
        """Requeue a run that was claimed while the node is stopping."""
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            try:
                await Execution(claimed, self._deps).hand_over()
            except Exception as error:  # noqa: BLE001 - recovery ends it, and the others are handed over
                self._node.outages.failed(_CLAIMING, error)

    # ---- runs that are claimed when they are accepted ----

    def reserve(self, rid: RunId) -> bool:
        """Whether a new run may be claimed in the transaction that accepts it. Every reservation is to be ended by
        `start_accepted`, `release` or `check_acceptance`."""
        if self._runs is None or self.draining or self._room() <= 0:
            return False
        self._node.local.starting.add(rid)
        return True

    def release(self, rid: RunId) -> None:
        """Call if the run was not accepted, or not claimed."""
        self._node.local.starting.discard(rid)
        self._over.notify()
        if self._starved:
            self._node.hub.signals.fire(("queue", None))

    def check_acceptance(self, rid: RunId) -> None:
        """Call if it is unknown whether the store accepted the run: the claim loop checks, and starts it if so."""
        if rid in self._node.local.starting:
            # Outside a cluster nothing else writes, and no transaction is left: a run that the store lacks was refused.
            grace = 0.0 if self._node.identity.lease_time is None else 2 * self._node.settings.final_save
            self._in_doubt[rid] = anyio.current_time() + grace
            self._over.notify()
            self._node.hub.signals.fire(("queue", None))

    async def start_accepted(self, run: Run) -> None:
        """Execute a run that was claimed when it was accepted; without an await, unless the node is stopping."""
        claimed = ClaimedRun(run, may_have_written=False)
        if self._runs is not None and not self.draining:
            self._start(self._runs, claimed)
            self.release(run.id)
            return
        await self._hand_over(claimed)
        self.release(run.id)

    def _start(self, runs: TaskGroup, claimed: ClaimedRun) -> None:
        """A run that was parked and decided at once may still be finishing: its new execution waits for the old one.

        Ends the run's reservation: it may have been accepted into the queue and claimed from there while the store's
        answer to the acceptance is still under way."""
        run = claimed.run
        self._in_doubt.pop(run.id, None)
        self._node.local.starting.discard(run.id)
        previous = self._executions.get(run.id)
        execution = Execution(claimed, self._deps)
        if previous is None:
            execution.open_first()
        self._executions[run.id] = execution
        self._node.local.executing.add(run.id)
        runs.start_soon(self._execute, execution, previous, name=f"run {run.id}")

    async def _execute(self, execution: Execution, previous: Execution | None) -> None:
        rid = execution.run.id
        try:
            if previous is not None:
                # Shielded: an engine that is cancelled meanwhile ends this execution like the others.
                with anyio.CancelScope(shield=True):
                    await previous.done.wait()
            await execution.execute()
        finally:
            execution.done.set()
            if self._executions.get(rid) is execution:
                del self._executions[rid]
                self._node.local.executing.discard(rid)
            self._over.notify()
            if self._starved:
                self._node.hub.signals.fire(("queue", None))
        if execution.parks:
            await self._after_parking(rid)

    async def _after_parking(self, rid: RunId) -> None:
        """Ends the run now if that was requested while it was being parked: the request found it still executing."""
        recovery = self._deps.recovery
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            try:
                now, row = await self._node.store.read(lambda tx: (tx.now, tx.run(rid)))
                await recovery.resolve_orphans(recovery.find_orphans([] if row is None else [row], now))
                self._node.outages.worked(_PARKING)
            except Exception as error:  # noqa: BLE001 - the sweeper does it
                self._node.outages.failed(_PARKING, error)

    async def control(self) -> None:
        """Apply changes that others, perhaps on other nodes, make to the rows of runs that this node executes."""
        hub = self._node.hub
        while True:
            signal = hub.signals.event_for("control")
            named = hub.controlled()
            found = self._executions if named is None else named
            rids = [rid for rid in found if rid in self._executions and not self._node.local.settled_here(rid)]
            if rids:
                await self._apply_intents(rids)
            else:
                await wait_for(signal, self._node.settings.sweep_interval)

    async def _apply_intents(self, rids: list[RunId]) -> None:
        try:
            runs = await self._node.store.read(lambda tx: [tx.run(rid) for rid in rids])
        except StorageError:
            return
        for run in runs:
            self.apply_intent(run)

    async def limits(self) -> None:
        """Enforce wall-clock and idle limits a few times within the shorter one: no timer per run or token."""
        settings = self._node.settings
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
                    execution.stop(over_limit(f"The model sent nothing for {settings.idle_limit:.0f} seconds."))
                elif now - execution.started_at >= settings.wall_limit:
                    execution.stop(over_limit(f"The run was stopped after {settings.wall_limit:.0f} seconds."))

    async def heartbeat(self) -> None:
        """Renew the leases, where they lapse. In doubt, stop: another node may have taken over."""
        lease_time = self._node.identity.lease_time
        if lease_time is None:
            return
        pause = self._node.settings.lease_renewal or lease_time / 3
        renewed_at = anyio.current_time()
        while True:
            await anyio.sleep(pause)
            asked_at, executions = anyio.current_time(), dict(self._executions)
            connected = self._node.local.connected
            work = partial(run_queue.renew, me=self._node.identity, rids=executions.keys(), connections=connected)
            try:
                with anyio.fail_after(lease_time / 3):
                    now, held = await self._node.store.transact(work)
            except (StorageError, TimeoutError):
                if anyio.current_time() - renewed_at >= lease_time * 2 / 3:
                    for execution in executions.values():
                        execution.stop(LOST)
                continue
            renewed_at = asked_at
            rows = {run.id: run for run in held}
            for rid, execution in executions.items():
                row = rows.get(rid)
                execution.apply_intent(row)
                if row is not None and row.lifetime == "attached" and not is_live(row.connection, None, now):
                    execution.stop(cancelled("disconnected"))  # its client's node no longer renews the connection

    # ---- draining ----

    async def drain(self) -> None:
        """Claim nothing more, let runs end for a while, then hand the rest over or seal them as interrupted."""
        self.draining = True
        self._node.hub.signals.fire(("queue", None))
        with self._drain_scope:
            self._drain_scope.deadline = anyio.current_time() + self._node.settings.drain_time
            await self._wait_until_empty()
        for execution in list(self._executions.values()):
            execution.stop(HAND_OVER if self._can_hand_over(execution) else SHUTDOWN)
        with anyio.move_on_after(self._node.settings.final_save):
            await self._wait_until_empty()

    def _can_hand_over(self, execution: Execution) -> bool:
        """Whether another node would continue the run after a crash of this one."""
        run = execution.run
        return (
            self._node.identity.lease_time is not None
            and self._node.settings.recovery.auto_continue
            and run.lifetime == "detached"
            and not execution.waiting
            and self._deps.recovery.abilities(run).resume
        )

    def stop_now(self) -> None:
        """Drain without waiting for runs to end by themselves."""
        self._drain_scope.cancel()

    async def _wait_until_empty(self) -> None:
        while self._executions or len(self._node.local.starting) > len(self._in_doubt):
            await self._over.wait()
