"""What all parts of one node share: its ports, settings, signals and registry of local runs. Limits:
`engine.settings`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import anyio

from holdfast.core.costs import FindPrice
from holdfast.core.errors import StorageError, StorageUnavailableError
from holdfast.core.ids import RunId
from holdfast.core.lease import NodeIdentity
from holdfast.core.run import Run
from holdfast.engine.earlier_usage import EarlierUsage
from holdfast.engine.local_runs import LocalRuns
from holdfast.engine.metrics import EngineMetrics
from holdfast.engine.run_tracing import RunTracing
from holdfast.engine.settings import EngineSettings
from holdfast.engine.signals import WakeupHub, wait_for
from holdfast.engine.storage_outage_log import OutageLog
from holdfast.engine.transactions.budgets import BudgetInputs, NotSummedError
from holdfast.ports.agent import AgentLookup
from holdfast.ports.clock import Clock, Ids
from holdfast.ports.journal import Journal
from holdfast.ports.prices import PricesNotLoadedError, PriceTable
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
    earlier_usage: EarlierUsage
    metrics: EngineMetrics = field(default_factory=EngineMetrics)
    outages: OutageLog = field(default_factory=OutageLog)
    tracing: RunTracing | None = None  # None: runs are not traced
    prices: PriceTable | None = None  # None: only the prices that owners set are known

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

    async def with_prices(self, work: Callable[[FindPrice | None], Awaitable[T]]) -> T:
        """The result of `work`, which is given the prices of models without one of the owner's own. It is called again
        if it is the first that needs the table: most servers never do."""
        if self.prices is None:
            return await work(None)
        try:
            return await work(self.prices.snapshot())
        except PricesNotLoadedError:
            return await work(await self.prices.load())

    async def with_budget_inputs(self, work: Callable[[BudgetInputs], Awaitable[T]]) -> T:
        """The result of `work`, which is called again if budgets need what it was not given. The last time, it sums
        everything by itself: the budgets were changed meanwhile."""

        async def attempt(prices: FindPrice | None) -> T:
            for _ in range(2):
                try:
                    return await work(BudgetInputs(prices, self.earlier_usage.known))
                except NotSummedError as error:
                    await self.earlier_usage.load(error)
            return await work(BudgetInputs(prices))

        return await self.with_prices(attempt)

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
                signal = self.hub.signals.event_for(("control", rid))
                found = await self.store.read(lambda tx: tx.run(rid))
                if found is None or not found.is_open:
                    return found
                await wait_for(signal, _POLL)
        return found
