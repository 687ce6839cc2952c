"""`Journal` on PostgreSQL. An append of many runs is one statement, a transaction by itself: one round trip, one flush
to disk. Fence, seal and sequence are the condition for updating the run's row in `heads`, so of two writers one finds
it changed; events are inserted for the runs whose row was updated.

Every statement locks rows in the order of the runs' ids, so no two wait for each other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, LiteralString

from holdfast.core.errors import AppendRefusedError, JournalPrunedError, SeqConflictError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, JournalHead
from holdfast.storage import append_checks, journal_page_limits
from holdfast.storage.postgres import database_upgrade, frame_packing, schema
from holdfast.storage.postgres.connection import PostgresConfig, TimedConnection

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
_PARTS: Final[LiteralString] = """
    SELECT first_seq, last_seq, frames FROM log
    WHERE run = head.run AND last_seq > %(after)s AND first_seq <= %(upto)s
    UNION ALL
    SELECT first_seq, last_seq, frames FROM settled
    WHERE run = head.run AND last_seq > %(after)s AND first_seq <= %(upto)s
"""
_READ: Final[LiteralString] = f"""
    SELECT head.run, head.pruned, part.first_seq, part.last_seq, part.frames
    FROM heads AS head LEFT JOIN LATERAL ({_PARTS}) AS part ON true
    WHERE head.run = ANY(%(runs)s::text[]) ORDER BY head.run, part.first_seq
"""
_READ_PAGE: Final[LiteralString] = f"""
    SELECT head.run, head.pruned, part.first_seq, part.last_seq, part.frames
    FROM heads AS head LEFT JOIN LATERAL (
        SELECT *, sum(length(frames)) OVER (ORDER BY first_seq) - length(frames) AS size FROM ({_PARTS}) AS found
    ) AS part ON part.size < %(max_bytes)s
    WHERE head.run = ANY(%(runs)s::text[]) ORDER BY head.run, part.first_seq
"""
_SETTLED: Final[LiteralString] = """
    WITH moved AS (
        DELETE FROM log USING heads WHERE log.run = ANY(%s::text[]) AND heads.run = log.run AND heads.sealed
        RETURNING log.run, log.last_seq, log.first_seq, log.frames
    )
    INSERT INTO settled (run, last_seq, first_seq, frames)
    SELECT run, max(last_seq), min(first_seq), string_agg(frames, ''::bytea ORDER BY last_seq)
    FROM (SELECT *, sum(length(frames)) OVER (PARTITION BY run ORDER BY last_seq) / 262144 AS part FROM moved) AS parts
    GROUP BY run, last_seq / 1024, part
"""
_PURGE: Final[LiteralString] = """
    WITH named AS (SELECT unnest(%s::text[]) AS run),
    marked AS (
        INSERT INTO heads AS head (run, epoch, pruned) SELECT run, 0, true FROM named ORDER BY run
        ON CONFLICT (run) DO UPDATE SET pruned = true
    ), open AS (DELETE FROM log USING named WHERE log.run = named.run)
    DELETE FROM settled USING named WHERE settled.run = named.run
"""
_DROP_TOMBSTONES: Final[LiteralString] = """
    DELETE FROM heads WHERE pruned AND run <= (SELECT run FROM heads WHERE pruned ORDER BY run DESC LIMIT 1 OFFSET %s)
"""
_MAX_TOMBSTONES: Final = 10_000
"""Tombstones (rows of purged runs) that are kept, those of the newest runs. They refuse the first append of a node that
was cut off; a later one needs the run's row, and the store knows which journals were pruned."""
_SETTLED_PER_STATEMENT: Final = 100
_MAX_SEQ: Final = 2**62
_READERS: Final = 2


class PostgresJournal:
    def __init__(self, config: PostgresConfig) -> None:
        """Create or upgrade the schema. Blocks."""
        database_upgrade.create_or_upgrade(config, schema.JOURNAL)
        self._writer = config.worker("journal-writer")
        self._housekeeper = config.worker("journal-housekeeper")
        """Settles and purges, so that no append waits for either."""
        self._readers = config.pool("journal-reader", _READERS)

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        return await self._writer.run(lambda db: self._append(db, batch)) if batch else []

    def _append(self, db: TimedConnection, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        append_checks.check_batch(batch)
        refusals = {item.run: why for item in batch if (why := append_checks.malformed(item)) is not None}
        items = [item for item in batch if item.run not in refusals and item.entries]
        accepted = _insert(db, items) if items else set()
        refused = [item for item in items if item.run not in accepted]
        if refused:
            # A head only advances, so the reason that is found now also held then.
            heads = _heads(db, [item.run for item in refused])
            for item in refused:
                head = heads[item.run]
                reason = append_checks.refusal(item, head)
                refusals[item.run] = reason or SeqConflictError(item.run, item.entries[0].seq, head.last_seq)
        return [refusals.get(item.run) for item in batch]

    async def fence(self, epochs: Mapping[RunId, int]) -> Mapping[RunId, JournalHead]:
        if not epochs:
            return {}
        rows = (list(epochs), list(epochs.values()))
        return await self._writer.run(lambda db: dict(map(_head, db.execute(_FENCE, rows))))

    async def heads(self, runs: Collection[RunId]) -> Mapping[RunId, JournalHead]:
        return await self._readers.run(lambda db: _heads(db, runs)) if runs else {}

    async def read(
        self, run: RunId, after: int = 0, limit: int = 1000, max_bytes: int | None = None
    ) -> Sequence[Entry]:
        upto = min(after + limit, _MAX_SEQ)
        found = (await self._read([run], after, upto, max_bytes))[run]
        return journal_page_limits.fit([entry for entry in found if after < entry.seq <= upto], max_bytes)

    async def read_whole(self, runs: Collection[RunId]) -> Mapping[RunId, Sequence[Entry]]:
        return await self._read(list(runs), 0, _MAX_SEQ)

    async def _read(
        self, runs: list[RunId], after: int, upto: int, max_bytes: int | None = None
    ) -> dict[RunId, list[Entry]]:
        """The events of the rows that have any of these numbers, up to the row in which `max_bytes` are reached."""
        query = _READ if max_bytes is None else _READ_PAGE
        parameters = {"runs": runs, "after": after, "upto": upto, "max_bytes": max_bytes}

        def work(db: TimedConnection) -> dict[RunId, list[Entry]]:
            parts: dict[RunId, list[Any]] = {run: [] for run in runs}
            for run, *part in db.execute(query, parameters, binary=True):
                parts[run].append(part)
            return {run: _joined(run, found) for run, found in parts.items()}

        return await self._readers.run(work)

    async def settled(self, runs: Collection[RunId]) -> None:
        names = list(dict.fromkeys(runs))
        for at in range(0, len(names), _SETTLED_PER_STATEMENT):
            some = names[at : at + _SETTLED_PER_STATEMENT]
            await self._housekeeper.run(lambda db, some=some: db.execute(_SETTLED, (some,)).close())  # type: ignore[misc]

    async def purge(self, runs: Collection[RunId]) -> None:
        if not runs:
            return

        def work(db: TimedConnection) -> None:
            db.execute(_PURGE, (list(dict.fromkeys(runs)),)).close()
            db.execute(_DROP_TOMBSTONES, (_MAX_TOMBSTONES,)).close()

        await self._housekeeper.run(work)

    async def reopen(self) -> None:
        await self._writer.reconnect()

    async def close(self) -> None:
        for connections in (self._readers, self._housekeeper, self._writer):
            await connections.close()


def _insert(db: TimedConnection, items: Sequence[Append]) -> set[RunId]:
    """Each column is sent as one string: psycopg takes longer for an array than PostgreSQL for the whole commit."""
    packed = [frame_packing.pack(item.entries) for item in items]
    sizes = [len(each) for each in packed]
    values = {
        "run": "\n".join(item.run for item in items),  # ids contain no line breaks
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


def _heads(db: TimedConnection, runs: Collection[RunId]) -> dict[RunId, JournalHead]:
    return dict.fromkeys(runs, JournalHead()) | dict(map(_head, db.execute(_HEADS, (list(runs),))))


def _head(row: Sequence[Any]) -> tuple[RunId, JournalHead]:
    run, epoch, last_seq, sealed, pruned = row
    return run, JournalHead(epoch, last_seq, sealed, pruned)


def _joined(run: RunId, parts: Iterable[Sequence[Any]]) -> list[Entry]:
    found: list[Entry] = []
    for pruned, first, last, packed in parts:
        if pruned:
            raise JournalPrunedError(run)
        if first is None or (found and first != found[-1].seq + 1):
            break  # no events, or a gap after a damaged part
        some, whole = frame_packing.unpack(first, last, packed)
        found += some
        if not whole:
            break
    return found
