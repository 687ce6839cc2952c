"""`Journal` on Redis Streams: a stream for each run, whose ids are the events' numbers. An append of many runs is one
script: fence, seal and sequence are checked and the events added in one step that nothing can come between. Repeated,
it is refused and doubles nothing.

Not for Redis Cluster: a commit names the keys of many runs at once.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import redis

from holdfast.core.errors import Fenced, JournalPruned, Refused, Sealed, SeqConflict, TooLarge
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head
from holdfast.storage.redis import scripts
from holdfast.storage.redis.link import RedisLane, RedisPlace

DAY: Final = 24 * 3600.0
_PREFIX: Final = "holdfast:run"
_HEAD: Final = ("epoch", "last", "sealed", "pruned")
_AT_ONCE: Final = 200
"""Runs that one script settles or erases: all others wait for it."""
_FAR: Final = 2**53


class RedisJournal:
    def __init__(
        self,
        place: RedisPlace,
        *,
        keep: float | None = None,
        keep_marks: float = 30 * DAY,
        max_event_bytes: int = 1 << 20,
        readers: int = 2,
    ) -> None:
        """`keep`: seconds after which events of settled runs go by themselves, whoever forgets to erase them; None:
        they do not. `keep_marks`: for how long an erased journal still refuses appends."""
        self._keep = keep
        self._keep_marks = keep_marks
        self._limit = max_event_bytes
        self._writer = RedisLane("journal-writer", place)
        self._keeper = RedisLane("journal-keeper", place)
        self._readers = [RedisLane(f"journal-reader-{n}", place) for n in range(readers)]

    async def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        if len({item.run for item in batch}) < len(batch):
            raise ValueError("a batch has at most one append of a run")
        refusals = {item.run: why for item in batch if (why := _malformed(item, self._limit)) is not None}
        items = [item for item in batch if item.entries and item.run not in refusals]
        if items:
            answers = await self._writer.run(lambda db: _script(db, scripts.APPEND, *_append(items)))
            for item, answer in zip(items, answers, strict=True):
                refusal = _refusal(item, *answer)
                if refusal is not None:
                    refusals[item.run] = refusal
        return [refusals.get(item.run) for item in batch]

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        if not epochs:
            return {}
        keys = _keys(epochs)
        answers = await self._writer.run(lambda db: _script(db, scripts.FENCE, keys, list(epochs.values())))
        return {run: _head(answer) for run, answer in zip(epochs, answers, strict=True)}

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]:
        names = list(runs)

        def work(db: redis.Redis) -> list[Any]:
            pipe = db.pipeline(transaction=False)
            for run in names:
                pipe.hmget(_head_key(run), _HEAD)
            return list(pipe.execute())

        found = await self._idlest().run(work) if names else []
        return {run: _head(answer) for run, answer in zip(names, found, strict=True)}

    async def read(self, run: RunId, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        return (await self._read([run], after, limit))[run]

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        return await self._read(list(runs), 0, None)

    async def _read(self, runs: Sequence[RunId], after: int, limit: int | None) -> dict[RunId, list[Entry]]:
        count = None if limit is None else min(limit, _FAR)

        def work(db: redis.Redis) -> list[Any]:
            pipe = db.pipeline(transaction=True)  # head and stream of one moment
            for run in runs:
                pipe.hmget(_head_key(run), _HEAD)
                pipe.xrange(_stream_key(run), f"({after}-0", "+", count)
            return list(pipe.execute())

        found = await self._idlest().run(work) if runs else []
        return {
            run: _entries(run, after, _head(head), entries)
            for run, head, entries in zip(runs, found[::2], found[1::2], strict=True)
        }

    def _idlest(self) -> RedisLane:
        return min(self._readers, key=lambda lane: lane.waiting)

    async def settled(self, runs: Collection[RunId]) -> None:
        if self._keep is not None:
            await self._in_portions(scripts.SETTLED, runs, self._keep)

    async def purge(self, runs: Collection[RunId]) -> None:
        await self._in_portions(scripts.PURGE, runs, self._keep_marks)

    async def _in_portions(self, script: str, runs: Collection[RunId], seconds: float) -> None:
        names = list(dict.fromkeys(runs))
        for at in range(0, len(names), _AT_ONCE):
            keys = _keys(names[at : at + _AT_ONCE])
            await self._keeper.run(lambda db, keys=keys: _script(db, script, keys, [int(seconds * 1000)]))  # type: ignore[misc]

    async def reopen(self) -> None:
        await self._writer.reconnect()

    async def close(self) -> None:
        for lane in (*self._readers, self._keeper, self._writer):
            await lane.close()


def _script(db: redis.Redis, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
    return db.register_script(script)(keys, arguments)


def _append(items: Sequence[Append]) -> tuple[list[str], list[Any]]:
    about = [
        (
            _head_key(item.run),
            _stream_key(item.run),
            item.epoch,
            item.entries[0].seq,
            len(item.entries),
            int(item.seals),
        )
        for item in items
    ]
    return [], [json.dumps(about), *(frame for item in items for _, frame in item.entries)]


def _malformed(item: Append, limit: int) -> Refused | None:
    """What needs no look at the journal."""
    before = item.entries[0].seq - 1 if item.entries else 0
    for seq, frame in item.entries:
        if seq != before + 1 or seq < 1:
            return SeqConflict(item.run, seq, max(before, 0))
        before = seq
        if len(frame) > limit:
            return TooLarge(item.run, len(frame), limit)
    return None


def _refusal(item: Append, verdict: int, epoch: int, last: int) -> Refused | None:
    if verdict == scripts.FENCED:
        return Fenced(item.run, item.epoch, epoch)
    if verdict == scripts.SEALED:
        return Sealed(item.run)
    return SeqConflict(item.run, item.entries[0].seq, last) if verdict == scripts.CONFLICT else None


def _head(found: Sequence[bytes | None]) -> Head:
    epoch, last, sealed, pruned = found
    return Head(int(epoch or 0), int(last or 0), sealed == b"1", pruned == b"1")


def _entries(run: RunId, after: int, head: Head, found: Iterable[Any]) -> list[Entry]:
    entries: list[Entry] = []
    for (ident, fields), seq in zip(found, itertools.count(after + 1), strict=False):
        if ident != f"{seq}-0".encode():
            break  # whatever is behind a gap cannot be shown
        entries.append(Entry(seq, fields[b"f"]))
    if head.pruned or (not entries and head.last_seq > after):
        raise JournalPruned(run)  # erased, or gone by itself
    return entries


def _keys(runs: Iterable[RunId]) -> list[str]:
    return [key for run in runs for key in (_head_key(run), _stream_key(run))]


def _head_key(run: RunId) -> str:
    return f"{_PREFIX}:{run}:head"


def _stream_key(run: RunId) -> str:
    return f"{_PREFIX}:{run}:events"
