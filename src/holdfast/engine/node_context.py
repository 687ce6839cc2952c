"""What all parts of one node share: its ports, settings, signals and registry of local runs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import anyio

from holdfast.core.errors import StorageError, StorageUnavailableError
from holdfast.core.ids import RunId
from holdfast.core.lease import NodeIdentity
from holdfast.core.run import Run
from holdfast.engine.local_runs import LocalRuns
from holdfast.engine.metrics import EngineMetrics
from holdfast.engine.outage_log import OutageLog
from holdfast.engine.run_tracing import RunTracing
from holdfast.engine.settings import EngineSettings
from holdfast.engine.signals import WakeupHub, wait_for
from holdfast.ports.agent import AgentLookup
from holdfast.ports.clock import Clock, Ids
from holdfast.ports.journal import Journal
from holdfast.ports.store import Store, Tx
from holdfast.ports.wakeups import Wake

T = TypeVar("T")

_POLL: Final = 0.25  # Seconds between two reads while waiting for a run's end, in case a wake-up is lost


@dataclass(frozen=True, slots=True, eq=False)
class NodeContext:
    store: Store
    journal: Journal
    agents: AgentLookup
    clock: Clock
    ids: Ids
    settings: EngineSettings
    identity: NodeIdentity
    hub: WakeupHub
    local: LocalRuns
    metrics: EngineMetrics = field(default_factory=EngineMetrics)
    outages: OutageLog = field(default_factory=OutageLog)
    tracing: RunTracing | None = None  # None: runs are not traced

    async def transact(self, work: Callable[[Tx], T], *, wake_queue: bool | Callable[[T], bool] = True) -> T:
        """Commit `work`, then wake change feeds and, with `wake_queue`, the claim loops. Shielded, so that a client
        that disconnects in between cannot keep others from being notified."""
        with anyio.move_on_after(self.settings.final_save, shield=True):
            result = await self.store.transact(work)
            wakes = wake_queue if isinstance(wake_queue, bool) else wake_queue(result)
            await self.hub.announce(*([Wake("queue")] if wakes else []), Wake("changed"))
            return result
        raise StorageUnavailableError(
            "The storage did not answer in time; the change may or may not have been made. Reload before retrying."
        )

    async def retry_storage(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, which is called again after each StorageError for up to `storage_retry_time`."""
        pause, give_up_at = 0.05, anyio.current_time() + self.settings.storage_retry_time
        while True:
            try:
                return await work()
            except StorageError:
                if anyio.current_time() + pause >= give_up_at:
                    raise
                await anyio.sleep(pause)
                pause = min(pause * 2, 2.0)

    async def wait_until_ended(self, rid: RunId, at_most: float) -> Run | None:
        """The run's row once it has ended, or as it is after `at_most` seconds; None if it was erased."""
        found: Run | None = None
        with anyio.move_on_after(at_most):
            while True:
                signal = self.hub.signals.armed(("control", rid))
                found = await self.store.read(lambda tx: tx.run(rid))
                if found is None or not found.is_open:
                    return found
                await wait_for(signal, _POLL)
        return found
