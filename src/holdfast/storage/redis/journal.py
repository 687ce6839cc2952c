"""`Journal` on Redis Streams: a stream per run, whose ids are the numbers of its events. An append of many runs is one
script, which checks fence, seal and sequence and adds the events in one atomic step. A repeated append is refused.

Not for Redis Cluster: a commit uses the keys of many runs.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import redis

from holdfast.core.errors import AppendRefusedError, FencedError, JournalPrunedError, SealedError, SeqConflictError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, JournalHead
from holdfast.storage import append_checks, journal_page_limits
from holdfast.storage.redis import scripts
from holdfast.storage.redis.connection import RedisConfig
from holdfast.storage.worker_thread import ConnectionPool

_KEEP_TOMBSTONES: Final = 30 * 24 * 3600.0  # Seconds for which an erased journal still refuses appends
_READERS: Final = 2
_PREFIX: Final = "holdfast:run"
_HEAD: Final = ("epoch", "last", "sealed", "pruned")
_RUNS_PER_SCRIPT: Final = 200  # Runs that one script settles or erases: every other command waits for it
_MAX_COUNT: Final = 2**53
_FIRST_COUNT: Final = 32  # Events that a read with a limit in bytes begins with


class RedisJournal:
    def __init__(self, config: RedisConfig, *, keep: float | None = None) -> None:
        """`keep`: seconds after which Redis drops the events of settled runs, even if nobody erases them; None:
        never."""
        self._keep = keep
        self._writer = config.worker("journal-writer")
        self._housekeeper = config.worker("journal-housekeeper")
        self._readers = ConnectionPool([config.worker(f"journal-reader-{n}") for n in range(_READERS)])

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        append_checks.check_batch(batch)
        refusals = {item.run: why for item in batch if (why := append_checks.malformed(item)) is not None}
        items = [item for item in batch if item.entries and item.run not in refusals]
        if items:
            answers = await self._writer.run(lambda db: _script(db, scripts.APPEND, *_append(items)))
            for item, answer in zip(items, answers, strict=True):
                refusal = _refusal(item, *answer)
                if refusal is not None:
                    refusals[item.run] = refusal
        return [refusals.get(item.run) for item in batch]

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, JournalHead]:
        if not epochs:
            return {}
        keys = _keys(epochs)
        answers = await self._writer.run(lambda db: _script(db, scripts.FENCE, keys, list(epochs.values())))
        return {run: _head(answer) for run, answer in zip(epochs, answers, strict=True)}

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, JournalHead]:
        names = list(runs)

        def work(db: redis.Redis) -> list[Any]:
            pipe = db.pipeline(transaction=False)
            for run in names:
                pipe.hmget(_head_key(run), _HEAD)
            return list(pipe.execute())

        found = await self._readers.run(work) if names else []
        return {run: _head(answer) for run, answer in zip(names, found, strict=True)}

    async def read(
        self, run: RunId, after: int = 0, limit: int = 1000, max_bytes: int | None = None
    ) -> Sequence[Entry]:
        if max_bytes is None:
            return (await self._read([run], after, limit))[run]
        found: list[Entry] = []
        size, count = 0, _FIRST_COUNT  # Redis limits the number of events alone, so their size is found out first
        while len(found) < limit and size < max_bytes:
            count = min(count, limit - len(found))
            more = (await self._read([run], after + len(found), count))[run]
            found += more
            size += sum(len(frame) for _, frame in more)
            if len(more) < count:
                break
            count = max(1, (max_bytes - size) * len(found) // max(1, size))
        return journal_page_limits.fit(found, max_bytes)

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        return await self._read(list(runs), 0, None)

    async def _read(self, runs: Sequence[RunId], after: int, limit: int | None) -> dict[RunId, list[Entry]]:
        count = None if limit is None else min(limit, _MAX_COUNT)

        def work(db: redis.Redis) -> list[Any]:
            pipe = db.pipeline(transaction=True)  # head and stream of the same moment
            for run in runs:
                pipe.hmget(_head_key(run), _HEAD)
                pipe.xrange(_stream_key(run), f"({after}-0", "+", count)
            return list(pipe.execute())

        found = await self._readers.run(work) if runs else []
        return {
            run: _entries(run, after, _head(head), entries)
            for run, head, entries in zip(runs, found[::2], found[1::2], strict=True)
        }

    async def settled(self, runs: Collection[RunId]) -> None:
        if self._keep is not None:
            await self._in_portions(scripts.SETTLED, runs, self._keep)

    async def purge(self, runs: Collection[RunId]) -> None:
        await self._in_portions(scripts.PURGE, runs, _KEEP_TOMBSTONES)

    async def _in_portions(self, script: str, runs: Collection[RunId], seconds: float) -> None:
        names = list(dict.fromkeys(runs))
        for at in range(0, len(names), _RUNS_PER_SCRIPT):
            keys = _keys(names[at : at + _RUNS_PER_SCRIPT])
            await self._housekeeper.run(lambda db, keys=keys: _script(db, script, keys, [int(seconds * 1000)]))  # type: ignore[misc]

    async def reopen(self) -> None:
        await self._writer.reconnect()

    async def close(self) -> None:
        for connections in (self._readers, self._housekeeper, self._writer):
            await connections.close()


def _script(db: redis.Redis, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
    return db.register_script(script)(keys, arguments)


def _append(items: Sequence[Append]) -> tuple[list[str], list[Any]]:
    about = [
        (*_keys([item.run]), item.epoch, item.entries[0].seq, len(item.entries), int(item.seals)) for item in items
    ]
    return [], [json.dumps(about), *(frame for item in items for _, frame in item.entries)]


def _refusal(item: Append, verdict: int, epoch: int, last: int) -> AppendRefusedError | None:
    if verdict == scripts.FENCED:
        return FencedError(item.run, item.epoch, epoch)
    if verdict == scripts.SEALED:
        return SealedError(item.run)
    return SeqConflictError(item.run, item.entries[0].seq, last) if verdict == scripts.CONFLICT else None


def _head(found: Sequence[bytes | None]) -> JournalHead:
    epoch, last, sealed, pruned = found
    return JournalHead(int(epoch or 0), int(last or 0), sealed == b"1", pruned == b"1")


def _entries(run: RunId, after: int, head: JournalHead, found: Iterable[Any]) -> list[Entry]:
    entries: list[Entry] = []
    for (ident, fields), seq in zip(found, itertools.count(after + 1), strict=False):
        if ident != f"{seq}-0".encode():
            break  # events after a gap cannot be shown
        entries.append(Entry(seq, fields[b"f"]))
    if head.pruned or (not entries and head.last_seq > after):
        raise JournalPrunedError(run)  # erased, or expired
    return entries


def _keys(runs: Iterable[RunId]) -> list[str]:
    return [key for run in runs for key in (_head_key(run), _stream_key(run))]


def _head_key(run: RunId) -> str:
    return f"{_PREFIX}:{run}:head"


def _stream_key(run: RunId) -> str:
    return f"{_PREFIX}:{run}:events"
