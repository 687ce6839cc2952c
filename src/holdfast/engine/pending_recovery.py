"""Recovers the output of runs whose journal could not be read when they were ended."""

from dataclasses import dataclass
from functools import partial

import anyio

from holdfast.core import recovery
from holdfast.core.errors import BrokenSequenceError, JournalPrunedError, StorageError
from holdfast.core.recovery import Look
from holdfast.core.run import Recovery, Run
from holdfast.core.transcript import EMPTY, Transcript, has_output
from holdfast.engine.node_context import NodeContext
from holdfast.engine.orphaned_runs import OrphanedRuns
from holdfast.engine.settler import Settler
from holdfast.engine.transactions import run_endings
from holdfast.ports.wakeups import Wake


@dataclass(frozen=True, slots=True, eq=False)
class PendingRecovery:
    _node: NodeContext
    _orphans: OrphanedRuns
    _settler: Settler

    async def attempt(self, run: Run, now: float, *, insist: bool = False) -> None:
        """Try once to recover a pending run; one reader at a time does. `insist`: even if it was to be given up."""
        if self._node.local.holds(run.id) or self._orphans.is_live(run, now):
            return
        with self._node.local.ending([run.id]):
            await self._attempt(run, now, insist)

    async def _attempt(self, run: Run, now: float, insist: bool) -> None:
        policy = self._node.settings.recovery
        mine = await self._node.store.transact(lambda tx: run_endings.begin_attempt(tx, self._node.identity, run))
        if mine is None or mine.recovery is None:
            return
        if not insist and not recovery.due(mine.recovery, now, policy):
            await self._end_attempt(mine, Recovery("none"))
            return
        found: Look = "unavailable"
        transcript = EMPTY
        try:
            with anyio.fail_after(self._node.settings.fence_wait):
                transcript = await self._fence_and_seal(mine)
            if transcript.ended:
                found = "output" if has_output(transcript.parts) else "empty"
        except (StorageError, TimeoutError, JournalPrunedError, BrokenSequenceError):
            pass
        after = recovery.after_look(mine.recovery, found, now, policy)
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
