"""`Journal` on PostgreSQL. An append of many runs is one statement, which is a transaction by itself: one round trip,
one flush to disk. Fence, seal and sequence are the condition under which the run's row in `heads` is moved on, so that
of two writers one finds it moved; the events are inserted for those runs whose row did move.

Rows are taken in the order of the runs' names by everybody, so that no two wait for each other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, LiteralString

from holdfast.core.errors import Fenced, JournalPruned, Refused, Sealed, SeqConflict, TooLarge
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head
from holdfast.storage.postgres import frames, schema
from holdfast.storage.postgres.lanes import Lane, Lanes
from holdfast.storage.postgres.link import Place, TimedConnection

_APPEND: Final[LiteralString] = """
    WITH items AS (
        SELECT run, epoch, base, last_seq, seals, substring(%(frames)b::bytea FROM start FOR size) AS frames
        FROM unnest(
            string_to_array(%(run)s, E'\\n'), string_to_array(%(epoch)s, ',')::bigint[],
            string_to_array(%(base)s, ',')::bigint[], string_to_array(%(last_seq)s, ',')::bigint[],
            string_to_array(%(seals)s, ',')::boolean[], string_to_array(%(start)s, ',')::integer[],
            string_to_array(%(size)s, ',')::integer[]
        ) AS item (run, epoch, base, last_seq, seals, start, size)
    ), taken AS (
        INSERT INTO heads AS head (run, epoch, base, last_seq, sealed)
        SELECT run, epoch, base, last_seq, seals FROM items
        WHERE base = 0 OR EXISTS (SELECT 1 FROM heads WHERE heads.run = items.run)
        ORDER BY run
        ON CONFLICT (run) DO UPDATE
        SET epoch = excluded.epoch, base = excluded.base, last_seq = excluded.last_seq, sealed = excluded.sealed
        WHERE head.epoch <= excluded.epoch AND NOT head.sealed AND NOT head.pruned AND head.last_seq = excluded.base
        RETURNING run
    ), added AS (
        INSERT INTO log (run, last_seq, first_seq, frames)
        SELECT run, last_seq, base + 1, frames FROM items JOIN taken USING (run)
    )
    SELECT run FROM taken
"""
_FENCE: Final[LiteralString] = """
    INSERT INTO heads AS head (run, epoch)
    SELECT run, epoch FROM unnest(%s::text[], %s::bigint[]) AS item (run, epoch) ORDER BY run
    ON CONFLICT (run) DO UPDATE SET epoch = greatest(head.epoch, excluded.epoch)
    RETURNING run, epoch, last_seq, sealed, pruned
"""
_HEADS: Final[LiteralString] = "SELECT run, epoch, last_seq, sealed, pruned FROM heads WHERE run = ANY(%s::text[])"
_READ: Final[LiteralString] = """
    SELECT head.pruned, part.first_seq, part.last_seq, part.frames FROM heads AS head LEFT JOIN LATERAL (
        SELECT first_seq, last_seq, frames FROM log
        WHERE run = head.run AND last_seq > %(after)s AND first_seq <= %(upto)s
        UNION ALL
        SELECT first_seq, last_seq, frames FROM settled
        WHERE run = head.run AND last_seq > %(after)s AND first_seq <= %(upto)s
    ) AS part ON true
    WHERE head.run = %(run)s ORDER BY part.first_seq
"""
_READ_WHOLE: Final[LiteralString] = """
    SELECT head.run, head.pruned, part.first_seq, part.last_seq, part.frames FROM heads AS head LEFT JOIN LATERAL (
        SELECT first_seq, last_seq, frames FROM log WHERE run = head.run
        UNION ALL
        SELECT first_seq, last_seq, frames FROM settled WHERE run = head.run
    ) AS part ON true
    WHERE head.run = ANY(%s::text[]) ORDER BY head.run, part.first_seq
"""
_SETTLED: Final[LiteralString] = """
    WITH moved AS (
        DELETE FROM log USING heads WHERE log.run = ANY(%s::text[]) AND heads.run = log.run AND heads.sealed
        RETURNING log.run, log.last_seq, log.first_seq, log.frames
    )
    INSERT INTO settled (run, last_seq, first_seq, frames)
    SELECT run, max(last_seq), min(first_seq), string_agg(frames, ''::bytea ORDER BY last_seq)
    FROM moved GROUP BY run, last_seq / 1024
"""
_PURGE: Final[LiteralString] = """
    WITH named AS (SELECT unnest(%s::text[]) AS run),
    marked AS (
        INSERT INTO heads AS head (run, epoch, pruned) SELECT run, 0, true FROM named ORDER BY run
        ON CONFLICT (run) DO UPDATE SET pruned = true
    ), open AS (DELETE FROM log USING named WHERE log.run = named.run)
    DELETE FROM settled USING named WHERE settled.run = named.run
"""
_AT_ONCE: Final = 100
"""Runs that one statement settles."""
_FAR: Final = 2**62


class PostgresJournal:
    def __init__(self, place: Place, *, max_event_bytes: int = 1 << 20, readers: int = 2) -> None:
        """Make or upgrade the schema. Blocks."""
        schema.prepare(place, schema.JOURNAL)
        self._limit = max_event_bytes
        self._writer = Lane("journal-writer", place)
        self._keeper = Lane("journal-keeper", place)
        """For what nobody waits for, so that no append waits for it either."""
        self._readers = Lanes("journal-reader", place, readers)

    async def append(self, batch: Sequence[Append]) -> Sequence[Refused | None]:
        return await self._writer.run(lambda db: self._append(db, batch)) if batch else []

    def _append(self, db: TimedConnection, batch: Sequence[Append]) -> Sequence[Refused | None]:
        if len({item.run for item in batch}) < len(batch):
            raise ValueError("a batch has at most one append of a run")
        refusals = {item.run: why for item in batch if (why := _malformed(item, self._limit)) is not None}
        items = [item for item in batch if item.run not in refusals and item.entries]
        taken = _take(db, items) if items else set()
        left = [item for item in items if item.run not in taken]
        if left:
            # What was found then can only have grown since: a reason that is there now was there then.
            heads = _heads(db, [item.run for item in left])
            refusals.update({item.run: _refusal(item, heads[item.run]) for item in left})
        return [refusals.get(item.run) for item in batch]

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, Head]:
        if not epochs:
            return {}
        rows = (list(epochs), list(epochs.values()))
        return await self._writer.run(lambda db: dict(map(_head, db.execute(_FENCE, rows))))

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, Head]:
        return await self._readers.run(lambda db: _heads(db, runs)) if runs else {}

    async def read(self, run: RunId, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        upto = min(after + limit, _FAR)

        def work(db: TimedConnection) -> list[Entry]:
            parts = db.execute(_READ, {"run": run, "after": after, "upto": upto}, binary=True).fetchall()
            return [entry for entry in _joined(run, parts) if after < entry.seq <= upto]

        return await self._readers.run(work)

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        def work(db: TimedConnection) -> dict[RunId, Sequence[Entry]]:
            parts: dict[RunId, list[Any]] = {run: [] for run in runs}
            for run, *part in db.execute(_READ_WHOLE, (list(runs),), binary=True):
                parts[run].append(part)
            return {run: _joined(run, found) for run, found in parts.items()}

        return await self._readers.run(work)

    async def settled(self, runs: Collection[RunId]) -> None:
        names = list(dict.fromkeys(runs))
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            await self._keeper.run(lambda db, some=some: db.execute(_SETTLED, (some,)).close())  # type: ignore[misc]

    async def purge(self, runs: Collection[RunId]) -> None:
        if runs:
            await self._keeper.run(lambda db: db.execute(_PURGE, (list(dict.fromkeys(runs)),)).close())

    async def reopen(self) -> None:
        await self._writer.reconnect()

    async def close(self) -> None:
        for lane in (self._readers, self._keeper, self._writer):
            await lane.close()


def _take(db: TimedConnection, items: Sequence[Append]) -> set[RunId]:
    """Each column as one text: psycopg takes longer for an array than PostgreSQL for the whole commit."""
    packed = [frames.pack(item.entries) for item in items]
    sizes = [len(each) for each in packed]
    values = {
        "run": "\n".join(item.run for item in items),
        "epoch": _listed(item.epoch for item in items),
        "base": _listed(item.entries[0].seq - 1 for item in items),
        "last_seq": _listed(item.entries[-1].seq for item in items),
        "seals": _listed(item.seals for item in items),
        "start": _listed(start + 1 for start in accumulate(sizes[:-1], initial=0)),
        "size": _listed(sizes),
        "frames": b"".join(packed),
    }
    return {run for (run,) in db.execute(_APPEND, values)}


def _listed(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _malformed(item: Append, limit: int) -> Refused | None:
    """What needs no look at the journal."""
    before = item.entries[0].seq - 1 if item.entries else 0
    if before < 0:
        return SeqConflict(item.run, before + 1, 0)
    if "\n" in item.run:
        raise ValueError(f"{item.run!r} is no name for a run")
    for seq, frame in item.entries:
        if seq != before + 1:
            return SeqConflict(item.run, seq, before)
        before = seq
        if len(frame) > limit:
            return TooLarge(item.run, len(frame), limit)
    return None


def _refusal(item: Append, head: Head) -> Refused:
    if item.epoch < head.epoch:
        return Fenced(item.run, item.epoch, head.epoch)
    if head.sealed or head.pruned:
        return Sealed(item.run)
    return SeqConflict(item.run, item.entries[0].seq, head.last_seq)


def _heads(db: TimedConnection, runs: Collection[RunId]) -> dict[RunId, Head]:
    return dict.fromkeys(runs, Head()) | dict(map(_head, db.execute(_HEADS, (list(runs),))))


def _head(row: Sequence[Any]) -> tuple[RunId, Head]:
    run, epoch, last_seq, sealed, pruned = row
    return run, Head(epoch, last_seq, sealed, pruned)


def _joined(run: RunId, parts: Iterable[Sequence[Any]]) -> list[Entry]:
    found: list[Entry] = []
    for pruned, first, last, packed in parts:
        if pruned:
            raise JournalPruned(run)
        if first is None or (found and first != found[-1].seq + 1):
            break  # nothing there, or a gap behind a damaged part
        some, whole = frames.unpack(first, last, packed)
        found += some
        if not whole:
            break
    return found
