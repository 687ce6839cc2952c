"""The storage contracts over SQLite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.ports import Journal, Store
from holdfast.storage.sqlite import DataDir, SqliteJournal, SqliteStore
from holdfast.storage.sqlite import journal as journal_module
from holdfast.testing import FakeClock
from holdfast.testing.contracts import JournalContract, MakeJournal, MakeStore, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        @asynccontextmanager
        async def make() -> AsyncIterator[Store]:
            data = DataDir.open(tmp_path / "data")
            store = SqliteStore(data, FakeClock())
            try:
                yield store
            finally:
                await store.close()
                data.close()

        return make


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    def make_journal(self, tmp_path: Path) -> MakeJournal:
        @asynccontextmanager
        async def make() -> AsyncIterator[Journal]:
            journal = SqliteJournal(tmp_path / "journal.db")
            try:
                yield journal
            finally:
                await journal.close()

        return make


class TestSqliteJournalOnTheLoop(TestSqliteJournal):
    """The same where every commit is expected to be quick, and is made by the event loop."""

    @pytest.fixture(autouse=True)
    def trusting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(journal_module, "_PROVEN", 0)
        monkeypatch.setattr(journal_module, "_FEW", 1 << 30)
