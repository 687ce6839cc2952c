"""What owners used earlier in the periods of their budgets, so that the transaction that accepts a run sums only what
ended recently, however many runs a month has. How it is used: `engine.transactions.budgets`.

What ended some time ago does not change: deleting a chat keeps its sums. Only a run whose output is recovered late is
added to its time; the node that settles it calls `forget`, others learn of it with the next period or restart.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import anyio

from holdfast.core.ids import OwnerId
from holdfast.core.usage import merge_sums
from holdfast.engine.transactions.budgets import NotSummedError, OwnerPeriod, SummedUsage, summed_until
from holdfast.ports.store import Store, Tx, UsageQuery

_MAX_PERIODS: Final = 500


class EarlierUsage:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._loading = anyio.Lock()
        self.known: Mapping[OwnerPeriod, SummedUsage] = MappingProxyType({})
        """Replaced and never changed, because transactions on other threads read it."""
        self._forgotten = 0  # How often something was forgotten

    async def load(self, needed: NotSummedError) -> None:
        """Sum what is not known yet: once, for however many messages wait for it."""

        def work(tx: Tx) -> dict[OwnerPeriod, SummedUsage]:
            return {period: _advance(tx, period, self.known.get(period)) for period in needed.periods}

        async with self._loading:
            forgotten = self._forgotten
            found = await self._store.read(work)
            if forgotten != self._forgotten:
                return  # what was read may lack a run; whoever needs it sums again
            newest = [*{**self.known, **found}.items()][-_MAX_PERIODS:]
            self.known = MappingProxyType(dict(newest))

    def forget(self, owner: OwnerId) -> None:
        self._forgotten += 1
        self.known = MappingProxyType({period: known for period, known in self.known.items() if period.owner != owner})


def _advance(tx: Tx, period: OwnerPeriod, known: SummedUsage | None) -> SummedUsage:
    until = summed_until(tx.now)
    if known is None or known.until > until:  # or the clock was set back
        known = SummedUsage(period.since, ())
    if known.until >= until:
        return known
    return SummedUsage(until, merge_sums(known.sums, tx.usage(UsageQuery(period.owner, known.until, until))))
