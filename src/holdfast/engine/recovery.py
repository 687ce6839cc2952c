"""Finds runs that nobody executes, and ends them or, with automatic continue, puts them back into the queue.

`core.recovery_rules.decide_orphan` decides. To end one: raise the epoch in the store, fence the journal, read, seal,
settle. A journal that cannot be fenced or read leaves the run interrupted with its recovery pending: its output is
looked for again later, by one reader at a time (`attempt_pending`).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio

from holdfast.core import recovery_rules
from holdfast.core.errors import BrokenSequenceError, JournalPrunedError, StorageError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.core.lease import is_live
from holdfast.core.recovery_rules import AgentAbilities, JournalReading
from holdfast.core.run import Intent, Recovery, Run
from holdfast.core.transcript import EMPTY, Transcript, fold, has_output
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settler import Settler
from holdfast.engine.transactions import approvals, run_endings, run_queue, takeover
from holdfast.engine.transactions.cancel_requests import DISCONNECTED
from holdfast.ports.journal import JournalHead
from holdfast.ports.wakeups import Wake

log = logging.getLogger("holdfast.engine")

_BATCH: Final = 500  # Runs taken over in one transaction
_EVENTS_AT_ONCE: Final = 5000  # Events read in one call: folding them takes some milliseconds of the event loop


@dataclass(frozen=True, slots=True, eq=False)
class RunRecovery:
    _node: NodeContext
    _settler: Settler

    # ---- finding orphans ----

    def find_orphans(self, runs: Sequence[Run], now: float) -> list[Run]:
        """The orphans among `runs`, read at the store's time `now`: nobody executes them, and they are neither queued
        nor parked."""
        known = map(self._with_local_knowledge, runs)
        return [run for run in known if not self.is_live(run, now) and self._decide(run, now) != "leave"]

    def _decide(self, run: Run, now: float) -> recovery_rules.OrphanDecision:
        policy, incarnation = self._node.settings.recovery, self._node.identity.incarnation
        agent = self.abilities(run)
        return recovery_rules.decide_orphan(
            run, incarnation=incarnation, now=now, agent=agent, policy=policy, holder_gone=True
        )

    def is_live(self, run: Run, now: float) -> bool:
        """Whether somebody holds the run's lease. For its own leases, a node also checks its registry."""
        if not is_live(run.lease, self._node.identity.incarnation, now):
            return False
        assert run.lease is not None
        return run.lease.holder != self._node.identity.node or self._node.local.may_hold(run)

    def abilities(self, run: Run) -> AgentAbilities:
        try:
            agent = self._node.agents.get(run.agent)
        except Exception:
            log.warning("agent %s could not be loaded", run.agent, exc_info=True, extra=run.log_extra)
            return AgentAbilities()
        return AgentAbilities() if agent is None else AgentAbilities(agent.can_park, agent.can_resume, agent.can_steer)

    def _with_local_knowledge(self, run: Run) -> Run:
        left = self._node.local.abandoned_run(run)
        if left is not None:
            run = replace(run, started_at=left[0].started_at, intent=run.intent or left[1])
        intent = run.intent
        if run.is_open and self._node.local.has_lost_client(run):
            return replace(run, connection=None, intent=intent or DISCONNECTED)
        return run

    # ---- ending orphans ----

    async def resolve_orphans(self, found: Iterable[Run]) -> None:
        """End or requeue orphaned runs whose rows are still as found; one that this process holds is left alone."""
        local = self._node.local
        runs = [run for run in found if local.can_end and not local.holds(run.id)]
        for at in range(0, len(runs), _BATCH):
            batch = runs[at : at + _BATCH]
            # Shielded: a reader that disconnects in the middle would leave them to the next sweep.
            with (
                local.ending([run.id for run in batch]),
                anyio.move_on_after(self._node.settings.final_save, shield=True),
            ):
                await self._resolve(batch)

    async def _resolve(self, found: Sequence[Run]) -> None:
        policy = self._node.settings.recovery
        sealed = await self._sealed(found) if policy.auto_continue else frozenset()
        ours = await self._node.store.transact(
            lambda tx: takeover.take_over(tx, self._node.identity, found, self.abilities, policy, sealed)
        )
        if len(ours) < len(found):  # some may have been requeued
            await self._node.hub.announce(Wake("queue"), Wake("changed"))
        unfinished = {run.id: run for run in ours}
        transcripts: dict[RunId, Transcript] = {}
        try:
            with self._time_limit():
                heads = await self._node.journal.fence({run.id: run.epoch for run in ours})
            for some in _read_batches(ours, heads):
                pages = await self._read_pages(some) if len(some) > 1 else {}
                for run in some:
                    # A damaged journal leaves this run pending; one that does not answer, all that remain.
                    with suppress(BrokenSequenceError, JournalPrunedError):
                        transcript = await self._transcript(run.id, pages)
                        if await self._park_again(run, transcript):
                            del unfinished[run.id]
                        else:
                            transcripts[run.id] = transcript
            with self._time_limit():
                transcripts = await self._settler.seal(
                    [(unfinished[rid], transcript) for rid, transcript in transcripts.items()]
                )
        except (StorageError, TimeoutError):
            transcripts = {}
        await self._mark_pending([run for rid, run in unfinished.items() if rid not in transcripts])
        ended = {rid: transcript for rid, transcript in transcripts.items() if transcript.ended}
        if ended:
            await self._settler.settle_recovered(ended)

    def _time_limit(self) -> AbstractContextManager[anyio.CancelScope]:
        return anyio.fail_after(self._node.settings.fence_wait)

    async def _sealed(self, runs: Sequence[Run]) -> frozenset[RunId] | None:
        """Runs whose journal is sealed: after a crash between seal and settle they are settled, not continued. None if
        the journal does not answer."""
        try:
            with self._time_limit():
                heads = await self._node.journal.heads([run.id for run in runs])
        except (StorageError, TimeoutError):
            return None
        return frozenset(rid for rid, head in heads.items() if head.sealed)

    async def _read_pages(self, runs: Sequence[Run]) -> Mapping[RunId, Sequence[Entry]]:
        with self._time_limit(), suppress(JournalPrunedError):  # one of them is pruned: each is then read by itself
            return await self._node.journal.read_whole([run.id for run in runs])
        return {}

    async def _transcript(self, rid: RunId, pages: Mapping[RunId, Sequence[Entry]]) -> Transcript:
        if rid in pages:
            return fold(pages[rid])
        with self._time_limit():
            return await self._settler.transcript(rid)

    async def _park_again(self, run: Run, transcript: Transcript) -> bool:
        """Park a run whose process died between asking and parking, if its agent can park: the question is still
        open."""
        asked = transcript.approval
        if asked is None or run.intent is not None or run.status != "running":
            return False
        if run.lifetime == "attached" or not self.abilities(run).park:
            return False
        with self._time_limit():
            parked = await self._node.store.transact(
                lambda tx: approvals.park(tx, run.id, run.epoch, asked.approval_id, keep_lease=False)
            )
        if parked is None:
            return False
        await self._node.hub.announce(Wake("queue"), Wake("changed"))  # it may have been answered, and be queued
        return True

    async def _mark_pending(self, runs: Sequence[Run]) -> None:
        if runs:
            await self._node.store.transact(lambda tx: takeover.mark_pending(tx, runs))
            await self._node.hub.announce(*(Wake("control", run.id) for run in runs), Wake("queue"), Wake("changed"))

    # ---- pending recoveries ----

    async def attempt_pending(self, run: Run, now: float, *, insist: bool = False) -> None:
        """Try once to recover a pending run; one reader at a time does. `insist`: even if it was to be given up."""
        if not self._node.local.can_end or self._node.local.holds(run.id) or self.is_live(run, now):
            return
        with self._node.local.ending([run.id]):
            await self._attempt(run, now, insist)

    async def _attempt(self, run: Run, now: float, insist: bool) -> None:
        policy = self._node.settings.recovery
        mine = await self._node.store.transact(lambda tx: run_endings.begin_attempt(tx, self._node.identity, run))
        if mine is None or mine.recovery is None:
            return
        if not insist and not recovery_rules.should_retry(mine.recovery, now, policy):
            await self._end_attempt(mine, Recovery("none"))
            return
        found: JournalReading = "unavailable"
        transcript = EMPTY
        try:
            with self._time_limit():
                transcript = await self._fence_and_seal(mine)
            if transcript.ended:
                found = "output" if has_output(transcript.parts) else "empty"
        except (StorageError, TimeoutError, JournalPrunedError, BrokenSequenceError):
            pass
        after = recovery_rules.after_read(mine.recovery, found, now, policy)
        if found == "unavailable" or after.state == "pending":
            await self._end_attempt(mine, after)
        elif after.state == "none":
            if await self._node.store.transact(partial(run_endings.settle_empty, held=mine, transcript=transcript)):
                await self._settler.announce_settled({mine.id: transcript})
        else:
            await self._settler.settle_recovered({mine.id: transcript}, after)

    async def _end_attempt(self, run: Run, after: Recovery) -> None:
        await self._node.store.transact(partial(run_endings.end_attempt, held=run, recovery=after))
        if after.state != "pending":
            await self._node.hub.announce(Wake("control", run.id), Wake("changed"))

    async def _fence_and_seal(self, run: Run) -> Transcript:
        await self._node.journal.fence({run.id: run.epoch})
        transcript = await self._settler.transcript(run.id)
        return (await self._settler.seal([(run, transcript)]))[run.id]

    # ---- abandoning ----

    async def abandon(self, run: Run, intent: Intent | None) -> None:
        """Give up a run of this process that could not be ended. If the store cannot be told, the process remembers."""
        self._node.local.abandon(run, intent)
        with anyio.move_on_after(self._node.settings.fence_wait, shield=True), suppress(StorageError):
            await self.hand_back()

    async def hand_back(self) -> None:
        """Release the leases of abandoned runs, so that any node may end them."""
        for run, intent in self._node.local.abandoned():
            await self._node.store.transact(partial(run_queue.release, me=self._node.identity, left=run, intent=intent))
            self._node.local.forget_abandoned(run.id)
            await self._node.hub.announce(Wake("changed"))


def _read_batches(runs: Sequence[Run], heads: Mapping[RunId, JournalHead]) -> Iterator[list[Run]]:
    """Batches that are read in one call each; a long journal is a batch by itself and is read in pages."""
    batch: list[Run] = []
    events = 0
    for run in runs:
        if batch and events + heads[run.id].last_seq > _EVENTS_AT_ONCE:
            yield batch
            batch, events = [], 0
        batch.append(run)
        events += heads[run.id].last_seq
    if batch:
        yield batch
