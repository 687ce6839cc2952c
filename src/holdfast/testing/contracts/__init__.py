"""One suite per storage port. An adapter is right when it passes; the in-process reference passes them all.

How to run a suite over an adapter: derive a `Test…` class and give it one fixture that returns a function; each call of
the function opens the adapter **on the same place** and closes it on leaving. Durability tests leave the first and call
again, so a durable adapter has its files in `tmp_path`, and one without files hands out the same object again:

    class TestSqliteStore(StoreContract):
        @pytest.fixture
        def make_store(self, tmp_path: Path) -> MakeStore:
            @asynccontextmanager
            async def make() -> AsyncIterator[Store]:
                store = await SqliteStore.open(tmp_path, clock=FakeClock(), …)
                try:
                    yield store
                finally:
                    await store.close()

            return make

    class TestSqliteJournal(JournalContract):
        @pytest.fixture
        def make_journal(self, tmp_path: Path) -> MakeJournal: …

The suites run on the backend that the fixture `anyio_backend` names (`tests/conftest.py`: asyncio). They never sleep,
and call `append` from one task at a time. Rows may name rows that are not there (a run whose message was cleared),
except that a session is always written before what hangs on it. Lists without a named order are compared as sets.

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

from holdfast.testing.contracts.journal import JournalContract
from holdfast.testing.contracts.samples import MakeJournal, MakeStore, MakeWakeups
from holdfast.testing.contracts.store import StoreContract
from holdfast.testing.contracts.wakeups import WakeupsContract

__all__ = [
    "JournalContract",
    "MakeJournal",
    "MakeStore",
    "MakeWakeups",
    "StoreContract",
    "WakeupsContract",
]
