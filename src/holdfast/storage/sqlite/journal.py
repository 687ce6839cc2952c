"""`Journal` on one SQLite file. One thread writes (`journal_writer.py`), a few read (`journal_reader.py`). Damaged
records are dropped at opening, and the run then ends earlier: `journal_index.py`.

Events of all runs are appended to one log, a row per commit (`journal_records.py`). The log has no index on disk; it is
kept in memory (`journal_index.py`). When a run is settled, its events move to a few rows of their own
(`journal_segments.py`), and a row of the log is deleted once all of its runs are settled. A run that is never settled
keeps its rows, and costs memory and time at opening.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from holdfast.core.errors import AppendRefusedError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, JournalHead
from holdfast.storage import append_checks, journal_page_limits
from holdfast.storage.sqlite.journal_reader import JournalReader
from holdfast.storage.sqlite.journal_writer import JournalWriter
from holdfast.storage.worker_thread import WorkerThread

_READERS: Final = 2


class SqliteJournal:
    """Opens even if its file is damaged: then every call raises StorageUnavailableError, `reopen` tries again, and the
    file is left as it is. The store does not depend on it."""

    def __init__(self, path: Path, *, max_event_bytes: int = append_checks.MAX_EVENT_BYTES) -> None:
        """Blocks while it reads the log. SchemaTooNewError: a newer Holdfast wrote the file."""
        self._writer = JournalWriter(path, max_event_bytes)
        self._writer.try_to_open()
        self._worker = WorkerThread("journal-writer")
        self._readers = [
            (WorkerThread(f"journal-reader-{n}"), JournalReader(path, self._writer)) for n in range(_READERS)
        ]

    @property
    def torn_records(self) -> int:
        """The number of damaged records that were dropped when the file was last opened."""
        return self._writer.index.torn

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        return await self._worker.call(lambda: self._writer.append(batch))

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, JournalHead]:
        return await self._worker.call(lambda: self._writer.fence(epochs))

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, JournalHead]:
        return await self._worker.call(lambda: self._writer.heads(runs))

    async def read(
        self, run: RunId, after: int = 0, limit: int = 1000, max_bytes: int | None = None
    ) -> Sequence[Entry]:
        worker, reader = self._least_busy_reader()
        return await worker.call(lambda: journal_page_limits.fit(reader.read(run, after, limit, max_bytes), max_bytes))

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        worker, reader = self._least_busy_reader()
        return await worker.call(lambda: reader.read_whole(runs))

    def _least_busy_reader(self) -> tuple[WorkerThread, JournalReader]:
        return min(self._readers, key=lambda pair: pair[0].waiting)

    async def settled(self, runs: Collection[RunId]) -> None:
        sealed_before, self._writer.sealed_before = self._writer.sealed_before, ()
        rest: Sequence[RunId] = list(dict.fromkeys([*sealed_before, *runs]))
        while rest:  # in several commits, so that appends come in between
            rest = await self._worker.call(partial(self._writer.archive, rest))
        while await self._worker.call(self._writer.sweep):
            pass

    async def purge(self, runs: Collection[RunId]) -> None:
        await self._worker.call(lambda: self._writer.purge(runs))

    async def reopen(self) -> None:
        await self._worker.call(self._writer.open)

    async def close(self) -> None:
        """The writer closes last: it checkpoints the WAL into the file."""
        for worker, reader in self._readers:
            await worker.close(reader.disconnect)
        await self._worker.close(self._writer.disconnect)
