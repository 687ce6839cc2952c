"""The journal port: the append-only events of each run. The checks of an append (epoch, seal, sequence):
`storage.append_checks`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from holdfast.core.errors import AppendRefusedError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId


class Append(NamedTuple):
    """Events that follow the last one of a run's journal. A newer epoch raises the fence; an older one is refused."""

    run: RunId
    epoch: int
    entries: Sequence[Entry]
    seals: bool = False  # The last entry is the terminal event


@dataclass(frozen=True, slots=True)
class JournalHead:
    """The state of a journal. `pruned`: its events were erased."""

    epoch: int = 0
    last_seq: int = 0
    sealed: bool = False
    pruned: bool = False


class Journal(Protocol):
    """The append-only events of each run; an unknown run is an empty, open journal of epoch 0. Only one `append` is
    under way at a time in a process; other calls may overlap it."""

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        """Append in one durable commit, at most one item per run. Returns per item None or why it alone was refused.
        StorageError: the commit failed or is in doubt; call `heads` before repeating."""

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, JournalHead]:
        """Raise the epoch durably, so that no older append can follow, and return the head. An epoch that is not higher
        changes nothing. StorageError: not fenced, or in doubt."""

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, JournalHead]: ...

    async def read(
        self, run: RunId, after: int = 0, limit: int = 1000, max_bytes: int | None = None
    ) -> Sequence[Entry]:
        """Read committed entries in order, up to a damaged one; of more than `max_bytes` only the first ones, at least
        one. None, or without `max_bytes` fewer than `limit`: there are no more at the moment. JournalPrunedError after
        pruning."""

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        """Read all entries of several short journals at once. JournalPrunedError if one of them is pruned."""

    async def settled(self, runs: Collection[RunId]) -> None:
        """The runs are settled in the store: their journals may be archived, like those that were sealed at opening."""

    async def purge(self, runs: Collection[RunId]) -> None:
        """Erase the events. A mark remains for as long as a late append may come: that is refused, and a read raises
        JournalPrunedError."""

    async def reopen(self) -> None:
        """Reconnect after a failed commit. StorageError: not possible yet."""

    async def close(self) -> None: ...
