"""The storage contracts over SQLite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.ports.store import Store
from holdfast.storage.sqlite import DataDir, SqliteJournal, SqliteStore
from holdfast.testing import FakeClock
from holdfast.testing.contracts import JournalContract, MakeJournal, MakeStore, StoreContract, opening


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> MakeStore:
        @asynccontextmanager
        async def make() -> AsyncIterator[Store]:
            data = DataDir.open(tmp_path / "data")
            async with opening(lambda: SqliteStore(data, FakeClock()))() as store:
                yield store
            data.close()

        return make


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    def make_journal(self, tmp_path: Path) -> MakeJournal:
        return opening(lambda: SqliteJournal(tmp_path / "journal.db"))
