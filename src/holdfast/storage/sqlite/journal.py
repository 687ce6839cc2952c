"""`Journal` on one SQLite file. One thread writes (`journal_writer.py`), or the event loop while that thread is idle; a
few read (`journal_reader.py`).

Events of all runs go to the end of one log, a row per commit (`records.py`), without an index, which is kept in memory
(`logged.py`); when a run is settled, its events become a few rows of their own (`segments.py`), and a row of the log
leaves with the last of its runs. A run that is never settled costs memory and opening time, and keeps its rows.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from holdfast.core.errors import Refused
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head
from holdfast.storage.sqlite.journal_reader import JournalReader
from holdfast.storage.sqlite.journal_writer import JournalWriter
from holdfast.storage.threads import Worker

_FEW: Final = 16
"""Appends of a commit that is small: the loop may make it by itself."""
_QUICK: Final = 0.002
"""Seconds of a commit on a disk that keeps up."""
_PROVEN: Final = 50
"""Quick commits, one after the other, after which the next is expected to be quick."""

_CHECKPOINT: Final = 1000
"""Commits of the loop's after which the thread puts the WAL into the file, long before a commit would have to."""


class SqliteJournal:
    """Opens even if its file is damaged: then every call raises StorageUnavailable, `reopen` looks again, and the
    file is left as it is. What the store has does not depend on it."""

    def __init__(self, path: Path, *, max_event_bytes: int = 1 << 20, readers: int = 2) -> None:
        """Blocks while it reads the log. SchemaTooNew: a newer Holdfast wrote the file."""
        self._writer = JournalWriter(path, max_event_bytes)
        self._writer.try_to_open()
        self._worker = Worker("journal-writer")
        self._quick = 0  # commits in a row
        self._here = 0  # commits of the loop's
        self._readers = [(Worker(f"journal-reader-{n}"), JournalReader(path, self._writer)) for n in range(readers)]

    @property
    def torn_records(self) -> int:
        """Damaged records that were dropped when the file was last opened."""
        return self._writer.index.torn

    async def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        """A small commit on a quick disk is made here and now: handing it to the thread and back costs as much again,
        and more delay, in which the loop would have done nothing (docs/decisions.md)."""
        if self._quick >= _PROVEN and len(batch) <= _FEW and self._worker.idle():
            refusals = self._append(batch)
            self._here += 1
            if self._here % _CHECKPOINT == 0:
                self._worker.submit(self._writer.checkpoint)
            return refusals
        return await self._worker.call(lambda: self._append(batch))

    def _append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        began = perf_counter()
        try:
            return self._writer.append(batch)
        finally:
            self._quick = self._quick + 1 if perf_counter() - began < _QUICK else 0

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        return await self._worker.call(lambda: self._writer.fence(epochs))

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]:
        return await self._worker.call(lambda: self._writer.heads(runs))

    async def read(self, run: RunId, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        worker, reader = self._idlest()
        return await worker.call(lambda: reader.read(run, after, limit))

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        worker, reader = self._idlest()
        return await worker.call(lambda: reader.read_whole(runs))

    def _idlest(self) -> tuple[Worker, JournalReader]:
        return min(self._readers, key=lambda pair: pair[0].waiting)

    async def settled(self, runs: Collection[RunId]) -> None:
        left, self._writer.left = self._writer.left, ()
        rest: Sequence[RunId] = list(dict.fromkeys([*left, *runs]))
        while rest:  # in several commits: appends come in between
            rest = await self._worker.call(partial(self._writer.archive, rest))
        while await self._worker.call(self._writer.sweep):
            pass

    async def purge(self, runs: Collection[RunId]) -> None:
        await self._worker.call(lambda: self._writer.purge(runs))

    async def reopen(self) -> None:
        await self._worker.call(self._writer.open)

    async def close(self) -> None:
        """The writer goes last: it puts the WAL into the file."""
        for worker, reader in self._readers:
            await worker.close(reader.disconnect)
        await self._worker.close(self._writer.disconnect)
