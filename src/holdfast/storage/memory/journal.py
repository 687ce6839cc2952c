"""`Journal` on dicts of lists."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from anyio.lowlevel import checkpoint

from holdfast.core.errors import Fenced, JournalPruned, Refused, Sealed, SeqConflict, TooLarge
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.core.values import dataclass
from holdfast.ports import Append, Head


@dataclass(slots=True)
class _Log:
    epoch: int = 0
    sealed: bool = False
    pruned: bool = False
    entries: list[Entry] = field(default_factory=list)
    """Entry n is at place n - 1."""

    def head(self) -> Head:
        return Head(self.epoch, len(self.entries), self.sealed, self.pruned)


class MemoryJournal:
    """`max_entry`: bytes of the longest frame that is taken, as every real medium has a limit."""

    def __init__(self, *, max_entry: int = 64 * 1024 * 1024) -> None:
        self._logs: dict[RunId, _Log] = {}
        self._max_entry = max_entry

    async def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        if len({item.run for item in batch}) < len(batch):
            raise ValueError("a batch has at most one append of a run")
        await checkpoint()
        answers = [self._append(item) for item in batch]
        await checkpoint()
        return answers

    def _append(self, item: Append) -> Refused | None:
        log = self._logs.get(item.run) or _Log()
        refusal = self._refusal(item, log)
        if refusal is None:
            log.epoch = item.epoch
            log.sealed = item.seals
            log.entries.extend(item.entries)
            self._logs[item.run] = log
        return refusal

    def _refusal(self, item: Append, log: _Log) -> Refused | None:
        if item.epoch < log.epoch:
            return Fenced(item.run, item.epoch, log.epoch)
        if log.sealed or log.pruned:
            return Sealed(item.run)
        for seq, entry in enumerate(item.entries, len(log.entries) + 1):
            if entry.seq != seq:
                return SeqConflict(item.run, entry.seq, len(log.entries))
            if len(entry.frame) > self._max_entry:
                return TooLarge(item.run, len(entry.frame), self._max_entry)
        return None

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        await checkpoint()
        for run, epoch in epochs.items():
            log = self._logs.setdefault(run, _Log())
            log.epoch = max(log.epoch, epoch)
        heads = self._heads(epochs)
        await checkpoint()
        return heads

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]:
        await checkpoint()
        heads = self._heads(runs)
        await checkpoint()
        return heads

    def _heads(self, runs: Collection[RunId]) -> dict[RunId, Head]:
        return {run: log.head() if (log := self._logs.get(run)) else Head() for run in runs}

    async def read(self, run: RunId, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        await checkpoint()
        log = self._logs.get(run) or _Log()
        if log.pruned:
            raise JournalPruned(run)
        found = log.entries[after : after + limit]
        await checkpoint()
        return found

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        await checkpoint()
        logs = {run: self._logs.get(run) or _Log() for run in runs}
        for run, log in logs.items():
            if log.pruned:
                raise JournalPruned(run)
        found = {run: list(log.entries) for run, log in logs.items()}
        await checkpoint()
        return found

    async def settled(self, runs: Collection[RunId]) -> None:
        await checkpoint()

    async def purge(self, runs: Collection[RunId]) -> None:
        await checkpoint()
        for run in runs:
            old = self._logs.get(run)
            self._logs[run] = _Log(epoch=old.epoch if old else 0, pruned=True)
        await checkpoint()

    async def reopen(self) -> None:
        await checkpoint()

    async def close(self) -> None:
        """The entries stay for the next one."""
