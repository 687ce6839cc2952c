"""What every `Store` does, over all areas."""

from collections.abc import AsyncIterator

import pytest

from holdfast.ports import Store
from holdfast.testing.contracts.samples import MakeStore
from holdfast.testing.contracts.store_memory import Facts, Ledgers
from holdfast.testing.contracts.store_rest import ApprovalsAndFiles, ChangeFeed
from holdfast.testing.contracts.store_rows import RoundTrips
from holdfast.testing.contracts.store_runs import ClaimableRuns, RunLists
from holdfast.testing.contracts.store_search import Search
from holdfast.testing.contracts.store_sessions import SessionsAndMessages
from holdfast.testing.contracts.store_transactions import Transactions


@pytest.mark.anyio
class StoreContract(
    Transactions,
    RoundTrips,
    SessionsAndMessages,
    RunLists,
    ClaimableRuns,
    ApprovalsAndFiles,
    ChangeFeed,
    Search,
    Ledgers,
    Facts,
):
    """Derive and add the fixture `make_store` (see the package's docstring)."""

    @pytest.fixture
    async def store(self, make_store: MakeStore) -> AsyncIterator[Store]:
        async with make_store() as store:
            yield store
