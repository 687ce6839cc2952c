"""One suite per storage port. An adapter is right when it passes; the in-process reference passes them all.

How to run a suite over an adapter: derive a `Test…` class and give it one fixture that returns a function; each call of
the function opens the adapter **on the same storage** and closes it on leaving. Durability tests leave the first and
call again, so a durable adapter has its files in `tmp_path`, and one without files hands out the same object again:

    class TestSqliteJournal(JournalContract):
        @pytest.fixture
        def make_journal(self, tmp_path: Path) -> MakeJournal:
            return opening(lambda: SqliteJournal(tmp_path / "journal.db"))

The suites run on the backend that the fixture `anyio_backend` names (`tests/conftest.py`: asyncio). They never sleep,
and call `append` from one task at a time. Rows may name rows that are not there (a run whose message was cleared),
except that a session is always written before the rows that depend on it. Lists without a named order are compared as
sets.

Every adapter answers alike, so these suites also settle what the port's text leaves open:

- a run's approvals are erased with it (`drop_run`); a second run under a taken key is a StorageError;
- a queued run with an intent is not claimable and, while it is queued, holds back those behind it;
- `drop_messages` spares the messages of runs that are *queued* outside the tree, and of no others: a queued turn that
  was cancelled is erased with the rest;
- all words of a search must be in one message or in one title; a query without words finds nothing; hidden (deleted)
  sessions are not found, archived ones are; pages together name each session once;
- a refused append changes nothing, the epoch included; a pruned journal refuses every append;
- `heads` and `fence` answer for every run that was asked for, known or not.
"""

from collections.abc import AsyncIterator

import pytest

from holdfast.ports.journal import Journal
from holdfast.ports.store import Store
from holdfast.testing.contracts.journal_appends import AppendContract, FenceContract
from holdfast.testing.contracts.journal_reads import ReadContract, RetentionContract
from holdfast.testing.contracts.samples import MakeJournal, MakeStore, MakeWakeups, opening
from holdfast.testing.contracts.store_approvals_files_changes import ApprovalsAndFiles, ChangeFeed
from holdfast.testing.contracts.store_memory import FactContract, LedgerContract
from holdfast.testing.contracts.store_personas import PersonaContract
from holdfast.testing.contracts.store_projects import ProjectContract
from holdfast.testing.contracts.store_prompts import PromptContract
from holdfast.testing.contracts.store_pushes import PushOutbox
from holdfast.testing.contracts.store_rows import RoundTrips
from holdfast.testing.contracts.store_runs import ClaimableRuns, RunLists
from holdfast.testing.contracts.store_search import SearchContract
from holdfast.testing.contracts.store_sessions import SessionsAndMessages
from holdfast.testing.contracts.store_shares import ShareRowsContract
from holdfast.testing.contracts.store_transactions import Transactions
from holdfast.testing.contracts.store_usage import UsageSums
from holdfast.testing.contracts.wakeups import WakeupsContract

__all__ = [
    "JournalContract",
    "MakeJournal",
    "MakeStore",
    "MakeWakeups",
    "StoreContract",
    "WakeupsContract",
    "opening",
]


@pytest.mark.anyio
class JournalContract(AppendContract, FenceContract, ReadContract, RetentionContract):
    """Derive and add the fixture `make_journal`."""

    @pytest.fixture
    async def journal(self, make_journal: MakeJournal) -> AsyncIterator[Journal]:
        async with make_journal() as journal:
            yield journal


@pytest.mark.anyio
class StoreContract(
    Transactions,
    RoundTrips,
    SessionsAndMessages,
    RunLists,
    ClaimableRuns,
    UsageSums,
    ApprovalsAndFiles,
    ShareRowsContract,
    ChangeFeed,
    SearchContract,
    LedgerContract,
    FactContract,
    PushOutbox,
    ProjectContract,
    PersonaContract,
    PromptContract,
):
    """Derive and add the fixture `make_store`."""

    @pytest.fixture
    async def store(self, make_store: MakeStore) -> AsyncIterator[Store]:
        async with make_store() as store:
            yield store
