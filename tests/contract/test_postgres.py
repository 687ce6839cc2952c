"""The storage contracts over a real PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.ports import Journal, Store, Wakeups
from holdfast.storage.postgres import Place, PostgresJournal, PostgresStore, PostgresWakeups
from holdfast.testing.contracts import (
    JournalContract,
    MakeJournal,
    MakeStore,
    MakeWakeups,
    StoreContract,
    WakeupsContract,
)


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def make_store(self, place: Place) -> MakeStore:
        @asynccontextmanager
        async def make() -> AsyncIterator[Store]:
            store = PostgresStore(place)
            try:
                yield store
            finally:
                await store.close()

        return make


class TestPostgresJournal(JournalContract):
    @pytest.fixture
    def make_journal(self, journal_place: Place) -> MakeJournal:
        @asynccontextmanager
        async def make() -> AsyncIterator[Journal]:
            journal = PostgresJournal(journal_place)
            try:
                yield journal
            finally:
                await journal.close()

        return make


class TestPostgresWakeups(WakeupsContract):
    @pytest.fixture
    def make_wakeups(self, place: Place) -> MakeWakeups:
        @asynccontextmanager
        async def make() -> AsyncIterator[Wakeups]:
            wakeups = PostgresWakeups(place)
            try:
                yield wakeups
            finally:
                await wakeups.close()

        return make
