"""What only the SQLite journal has: a log that is emptied behind the settled runs, and an index in memory."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from zlib import crc32

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.errors import AppendRefusedError, JournalPrunedError, TooLargeError
from holdfast.core.events import Entry, RunEnded, entry
from holdfast.core.ids import RunId
from holdfast.ports.journal import Append, Journal, JournalHead
from holdfast.storage.in_memory import InMemoryJournal
from holdfast.storage.sqlite import SqliteJournal, journal_index, journal_records, schema
from holdfast.storage.sqlite.database_upgrade import create_or_upgrade
from holdfast.storage.sqlite.journal_segments import pack, unpack
from holdfast.testing.contracts.samples import GUARD, RID, adding, texts
from tests.contract.machine import OTHER, sqlite_journal
from tests.journal_damage import WAYS, tear

pytestmark = pytest.mark.anyio


def whole(run: RunId, length: int) -> list[Entry]:
    """A sealed run's events, `length` of them."""
    return [*texts(1, *(f"{run} {n}" for n in range(1, length))), entry(length, RunEnded("complete"))]


async def write(journal: SqliteJournal, runs: list[RunId], length: int) -> None:
    """All runs side by side, an event of each in every commit."""
    events = {run: whole(run, length) for run in runs}
    for n in range(length):
        last = n == length - 1
        await journal.append([Append(run, 1, [events[run][n]], seals=last) for run in runs])


def log_rows(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("SELECT count(*) FROM log").fetchone()[0])


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    async with sqlite_journal(tmp_path) as journal:
        yield journal


async def test_settled_runs_leave_the_log(tmp_path: Path) -> None:
    """When much of the log belongs to settled runs it is removed; they and the others are read as before, now and after
    a restart."""
    file = tmp_path / "journal.db"
    journal = SqliteJournal(file)
    runs = [RunId(f"run_{n}") for n in range(60)]
    await write(journal, runs[:50], 101)
    await write(journal, runs[50:], 101)
    await journal.settled(runs[:10])
    assert log_rows(file) == 202  # others have events in the same rows
    await journal.settled(runs[:50])
    assert log_rows(file) == 101
    for _ in range(2):
        for run in runs:
            assert list(await journal.read(run)) == whole(run, 101)
            assert list(await journal.read(run, after=40, limit=3)) == whole(run, 101)[40:43]
        assert set((await journal.heads(runs)).values()) == {JournalHead(1, 101, sealed=True)}
        await journal.close()
        journal = SqliteJournal(file)
        assert journal.torn_records == 0
    await journal.settled(runs)
    assert await journal.append([adding(runs[0], 102, "late")]) != [None]
    await journal.close()


async def test_what_an_earlier_life_sealed_leaves_the_log_with_the_next_that_is_settled(tmp_path: Path) -> None:
    """It was settled, and the process ended before it could say so. Otherwise it would be read at every start for as
    long as it is kept. A run that is still open stays."""
    runs = [RunId(f"run_{n}") for n in range(60)]
    async with sqlite_journal(tmp_path) as journal:
        await write(journal, runs, 101)
        await journal.append([adding("run_open", 1, "still open")])
    async with sqlite_journal(tmp_path) as journal:
        await write(journal, [RunId("run_new")], 2)
        await journal.settled([RunId("run_new")])
        assert log_rows(tmp_path / "journal.db") == 1
        assert all([list(await journal.read(run)) == whole(run, 101) for run in runs])
        assert await journal.append([adding("run_open", 2, "goes on")]) == [None]


async def test_a_slow_disk_does_not_stall_the_event_loop(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L6: a commit is made on the writer's thread; while it lasts, the loop and the readers go on."""
    await journal.append([adding(OTHER, 1, "read")])
    append, begun, may_end = journal._writer.append, threading.Event(), threading.Event()

    def slow(batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        begun.set()
        assert may_end.wait(GUARD)
        return append(batch)

    monkeypatch.setattr(journal._writer, "append", slow)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            group.start_soon(journal.append, [adding(RID, 1, "x")])
            await anyio.to_thread.run_sync(begun.wait)
            assert list(await journal.read(OTHER)) == texts(1, "read")
            may_end.set()
    assert list(await journal.read(RID)) == texts(1, "x")


async def test_reading_while_runs_are_settled_finds_every_event(journal: SqliteJournal) -> None:
    """A reader that comes between the log and the segments sees the same events, whichever it finds them in."""
    runs = [RunId(f"run_{n}") for n in range(120)]
    await write(journal, runs, 60)
    done = anyio.Event()
    reads = 0

    async def watch() -> None:
        nonlocal reads
        while not done.is_set():
            for run in runs[reads % 7 :: 7]:
                assert list(await journal.read(run, after=5, limit=50)) == whole(run, 60)[5:55]
            reads += 1

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(watch)
            for run in runs:
                await journal.settled([run])
            done.set()
    assert reads


@pytest.mark.parametrize("settled", [False, True])
async def test_what_was_purged_is_nowhere_in_the_file(tmp_path: Path, settled: bool) -> None:
    """Erasing a run blanks what it has in the log too, where that may have stayed behind after it was settled."""
    async with sqlite_journal(tmp_path) as journal:
        await write(journal, [RID, OTHER], 20)
        if settled:
            await journal.settled([RID])
        await journal.purge([RID])
    assert f"{RID} 7".encode() not in (tmp_path / "journal.db").read_bytes()
    async with sqlite_journal(tmp_path) as journal:
        assert list(await journal.read(OTHER)) == whole(OTHER, 20)
        assert await journal.heads([RID]) == {RID: JournalHead(1, 20, sealed=True, pruned=True)}


async def test_marks_of_purged_runs_do_not_grow_for_ever(tmp_path: Path) -> None:
    """However many runs are erased, the file keeps a bounded number of marks, those of the newest runs."""
    async with sqlite_journal(tmp_path) as journal:
        await write(journal, [OTHER], 3)
        for first in range(0, 15_000, 500):
            await journal.purge([RunId(f"gone_{n}") for n in range(first, first + 500)])
        with pytest.raises(JournalPrunedError):
            await journal.read(RunId("gone_14999"))
        assert list(await journal.read(OTHER)) == whole(OTHER, 3)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (10_001,)


async def test_a_batch_names_each_run_once(journal: SqliteJournal) -> None:
    """Two appends of one run in a batch cannot both follow what is there; the mistake is the caller's and nothing is
    written."""
    with pytest.raises(ValueError, match="at most one"):
        await journal.append([adding(RID, 1, "a"), adding(RID, 1, "b")])
    assert await journal.heads([RID]) == {RID: JournalHead()}


def test_segments_hold_frames_of_any_size() -> None:
    """Frames come back as they were, also empty ones and ones longer than a row; no row is much longer than 1 MiB."""
    frames = [b"", b"\x00", b"\n\n" * 9, bytes(3 << 20), b"x" * 700_000, b"y" * 700_000, b"z"]
    entries = [Entry(seq, frame) for seq, frame in enumerate(frames, 5)]
    rows = list(pack(entries))
    assert [found for row in rows for found in unpack(row)] == entries
    assert [(row.first_seq, row.last_seq) for row in rows] == [(5, 8), (9, 10), (11, 11)]


PIECES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 4), st.binary(max_size=9), st.booleans()),
    max_size=12,
)
"""Alias, seq, frame, whether it is the terminal event."""


@given(PIECES, st.integers(0), st.integers(0, 255))
@settings(max_examples=100, deadline=None)
def test_a_damaged_record_hides_none_before_it(
    pieces: list[tuple[int, int, bytes, bool]], where: int, flips: int
) -> None:
    """J7: every record that was written before the damage is found, none that was not written, and none twice."""
    blob, written = b"", []
    for alias, seq, frame, seals in pieces:
        if alias:
            written.append((len(blob), alias, seq, frame, seals))
        blob += journal_records.head(alias, seq, frame, seals) + frame if alias else journal_records.blank(len(frame))
    damaged = where % len(blob) if blob and flips else len(blob)
    blob = blob[:damaged] + bytes(byte ^ flips for byte in blob[damaged : damaged + 1]) + blob[damaged + 1 :]
    found = [
        (at, some.alias, seq, frame, some.seals and at == some.places[-1])
        for some in journal_records.ranges(blob)
        if some.whole and some.alias in (1, 2, 3)  # the checksum does not cover the upper half of the alias
        for seq, (at, frame) in enumerate(zip(some.places, some.frames, strict=True), some.seq)
    ]
    intact = [each for each in written if each[0] + journal_records.HEAD + len(each[3]) <= damaged]
    assert found[: len(intact)] == intact
    assert set(found) <= set(written)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("room", "least", "most"), [(1 << 20, 99, 99), (3000, 20, 20), (0, 0, 0)])
@pytest.mark.parametrize("how", [None, *WAYS])
async def test_what_the_scan_kept_is_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, least: int, most: int, how: str | None
) -> None:
    """J7: whether opening kept a run's events, had no more room for them or met damage, it is read as by itself; and it
    is not read from what was kept when it has gone on."""
    file = tmp_path / "journal.db"
    *sealed, goes_on = runs = [RunId(f"run_{n}") for n in range(5)]
    before = SqliteJournal(file)
    await before.append([Append(runs[0], 1, whole(runs[0], 20), seals=True)])
    for n in range(20):
        some = sealed[1:] if n == 19 else runs[1:]
        await before.append([Append(run, 1, [whole(run, 20)[n]], seals=n == 19) for run in some])
    await before.close()
    expected = {run: whole(run, 20) for run in sealed} | {goes_on: whole(goes_on, 20)[:19]}
    if how is not None:
        tear(file, runs[1], how, 12)
        lost = runs[1:] if how == "length" else runs[1:2]  # nobody knows where the record behind it begins
        expected |= {run: expected[run][:11] for run in lost}
    monkeypatch.setattr(journal_index, "_MAX_CACHED", room)
    journal = SqliteJournal(file)
    index = journal._writer.index
    assert how is not None or least <= sum(len(log.frames) for log in index.runs.values()) <= most
    assert all(len(log.frames) in (0, log.last_seq) for log in index.runs.values())
    assert {run: list(entries) for run, entries in (await journal.read_whole(runs)).items()} == expected
    assert {run: list(await journal.read(run)) for run in runs} == expected
    await journal.settled(sealed)
    assert index.settled or how == "length"  # of rows that they share with the last one; that damage took their ends
    assert not any(log.frames for log in index.settled.values())
    last = len(expected[goes_on])
    assert await journal.append([Append(goes_on, 1, whole(goes_on, 20)[last:], seals=True)]) == [None]
    assert list((await journal.read_whole(runs))[goes_on]) == whole(goes_on, 20)
    assert index.runs[goes_on].frames == []
    await journal.close()


async def test_what_the_scan_kept_is_not_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a directory with a thousand unfinished runs finds and checks every event once. What is erased is gone
    from there too."""
    file = tmp_path / "journal.db"
    runs = [RunId(f"run_{n}") for n in range(3)]
    journal = SqliteJournal(file)
    await write(journal, runs, 10)
    await journal.close()
    journal = SqliteJournal(file)
    looked_for: list[int] = []
    frames_at = journal_records.frames_at

    def counted(blob: bytes, places: Sequence[int], alias: int, seq: int) -> list[bytes]:
        looked_for.append(seq)
        return frames_at(blob, places, alias, seq)

    monkeypatch.setattr(journal_records, "frames_at", counted)
    assert dict(await journal.read_whole(runs)) == {run: whole(run, 10) for run in runs}
    assert not looked_for
    assert list(await journal.read(runs[0])) == whole(runs[0], 10)
    assert looked_for
    await journal.purge([runs[0]])
    with pytest.raises(JournalPrunedError):
        await journal.read_whole(runs)
    await journal.close()


async def test_a_log_of_rows_per_event_is_taken_over(tmp_path: Path) -> None:
    """The format of earlier versions: every whole event is there afterwards, and a damaged one ends its run."""
    file = tmp_path / "journal.db"
    create_or_upgrade(file, schema.JOURNAL[:1], keep_copy=False)
    with closing(sqlite3.connect(file)) as db, db:
        db.executemany("INSERT INTO runs (alias, run, epoch) VALUES (?, ?, 3)", [(1, "run_1"), (2, "run_2")])
        n = 0
        for place in range(5):
            for alias in (1, 2):
                n += 1
                frame = whole(RunId(f"run_{alias}"), 5)[place].frame
                wrong = (alias, place) == (2, 3)
                db.execute(
                    "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
                    (n, alias, place + 1, crc32(frame) + wrong, place == 4, frame),
                )
    journal = SqliteJournal(file)
    assert list(await journal.read(RID)) == whole(RID, 5)
    assert list(await journal.read(OTHER)) == whole(OTHER, 5)[:3]
    assert await journal.heads([RID, OTHER]) == {RID: JournalHead(3, 5, sealed=True), OTHER: JournalHead(3, 3)}
    await journal.close()


@pytest.mark.parametrize("kind", ["sqlite", "in memory"])
async def test_the_size_limit_is_the_callers(tmp_path: Path, kind: str) -> None:
    """An event over the limit is refused alone, with both numbers; one at the limit is taken."""
    limit = len(texts(1, "x" * 50)[0].frame)
    journal: Journal = (
        SqliteJournal(tmp_path / "journal.db", max_event_bytes=limit)
        if kind == "sqlite"
        else InMemoryJournal(max_entry=limit)
    )
    refused, taken = await journal.append([adding("big", 1, "x" * 51), adding("fits", 1, "x" * 50)])
    assert isinstance(refused, TooLargeError)
    assert (refused.size, refused.limit, taken) == (limit + 1, limit, None)
    assert await journal.read(RunId("big")) == []
    await journal.close()
