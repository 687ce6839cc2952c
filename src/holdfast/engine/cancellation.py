"""Cancels runs.

Cancel and finish race at the journal, which accepts one terminal event: whichever is appended first decides the run's
status, and the other is refused. Cancelling therefore only records the intent in the store, stops whoever executes the
run, and waits; the executor or the settler writes the ending.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio

from holdfast.core.errors import StorageError
from holdfast.core.ids import OwnerId, RunId
from holdfast.core.run import Run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.stop_reasons import cancelled
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import run_endings
from holdfast.ports.wakeups import Wake


@dataclass(frozen=True, slots=True, eq=False)
class RunCanceller:
    _node: NodeContext
    _supervisor: Supervisor
    _recovery: RunRecovery

    async def cancel(self, rid: RunId, owner: OwnerId, reason: str) -> Run:
        """The settled run, or after `cancel_wait` seconds the run with its cancel requested. A run that this node
        executes is stopped even if the store cannot be written."""
        try:
            run = await self._node.transact(
                partial(run_endings.request_cancel, rid=rid, owner=owner, reason=reason), wake_queue=False
            )
        except StorageError:
            self._supervisor.stop(rid, cancelled(reason))
            raise
        if run.is_open:
            await self.stop([run])
            run = await self._node.wait_until_ended(rid, self._node.settings.cancel_wait) or run
        return run

    async def stop(self, runs: Sequence[Run]) -> None:
        """Stop runs whose intent is stored: here, on other nodes, or by ending orphans. The sweeper retries
        failures."""
        elsewhere = [run for run in runs if not self._supervisor.apply_intent(run)]
        if not elsewhere:
            return
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            with suppress(StorageError):
                now = await self._node.store.read(lambda tx: tx.now)
                await self._recovery.resolve_orphans(self._recovery.find_orphans(elsewhere, now))
            await self._node.hub.announce(*(Wake("control", run.id) for run in elsewhere))
