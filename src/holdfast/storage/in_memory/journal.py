"""`Journal` in process memory: a list of entries per run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from anyio.lowlevel import checkpoint

from holdfast.core.errors import AppendRefusedError, JournalPrunedError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, JournalHead
from holdfast.storage import append_checks, journal_page_limits

T = TypeVar("T")


@dataclass(slots=True)
class _Log:
    epoch: int = 0
    sealed: bool = False
    pruned: bool = False
    entries: list[Entry] = field(default_factory=list)  # Entry n has index n - 1

    def head(self) -> JournalHead:
        return JournalHead(self.epoch, len(self.entries), self.sealed, self.pruned)


class InMemoryJournal:
    """`max_entry`: the largest accepted frame in bytes, as every durable adapter has a limit."""

    def __init__(self, *, max_entry: int = 64 * 1024 * 1024) -> None:
        self._logs: dict[RunId, _Log] = {}
        self._max_entry = max_entry

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        append_checks.check_batch(batch)
        return await _step(lambda: [self._append(item) for item in batch])

    def _append(self, item: Append) -> AppendRefusedError | None:
        log = self._log(item.run)
        refusal = append_checks.refusal(item, log.head(), self._max_entry)
        if refusal is None:
            log.epoch = item.epoch
            log.sealed = item.seals
            log.entries.extend(item.entries)
            self._logs[item.run] = log
        return refusal

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, JournalHead]:
        def work() -> dict[RunId, JournalHead]:
            for run, epoch in epochs.items():
                log = self._logs.setdefault(run, _Log())
                log.epoch = max(log.epoch, epoch)
            return {run: self._logs[run].head() for run in epochs}

        return await _step(work)

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, JournalHead]:
        return await _step(lambda: {run: self._log(run).head() for run in runs})

    async def read(
        self, run: RunId, after: int = 0, limit: int = 1000, max_bytes: int | None = None
    ) -> Sequence[Entry]:
        return await _step(lambda: journal_page_limits.fit(self._entries(run)[after : after + limit], max_bytes))

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        return await _step(lambda: {run: list(self._entries(run)) for run in runs})

    def _entries(self, run: RunId) -> list[Entry]:
        log = self._log(run)
        if log.pruned:
            raise JournalPrunedError(run)
        return log.entries

    def _log(self, run: RunId) -> _Log:
        return self._logs.get(run) or _Log()

    async def settled(self, runs: Collection[RunId]) -> None:
        await checkpoint()

    async def purge(self, runs: Collection[RunId]) -> None:
        await _step(lambda: self._logs.update({run: _Log(self._log(run).epoch, pruned=True) for run in runs}))

    async def reopen(self) -> None:
        await checkpoint()

    async def close(self) -> None:
        """The entries remain for the next engine."""


async def _step(work: Callable[[], T]) -> T:
    await checkpoint()
    result = work()
    await checkpoint()
    return result
