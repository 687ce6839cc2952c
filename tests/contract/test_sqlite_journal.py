"""What only the SQLite journal has: a log that is emptied behind the settled runs, and an index in memory."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from zlib import crc32

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.errors import JournalPruned, Refused, TooLarge
from holdfast.core.events import Entry, RunEnded, entry
from holdfast.core.ids import RunId
from holdfast.ports import Append, Head
from holdfast.storage.sqlite import SqliteJournal, logged, records, schema
from holdfast.storage.sqlite import journal as journal_module
from holdfast.storage.sqlite.database import prepare
from holdfast.storage.sqlite.segments import pack, unpack
from holdfast.testing.contracts.samples import GUARD, RID, adding, texts
from tests.torn import WAYS, tear

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


def rows(file: Path, table: str) -> int:
    db = sqlite3.connect(file)
    (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    db.close()
    return int(count)


async def test_settled_runs_leave_the_log(tmp_path: Path) -> None:
    """When much of the log belongs to settled runs it is removed; they and the others are read as before, now and after
    a restart."""
    file = tmp_path / "journal.db"
    journal = SqliteJournal(file)
    runs = [RunId(f"run_{n}") for n in range(60)]
    await write(journal, runs[:50], 101)
    await write(journal, runs[50:], 101)
    await journal.settled(runs[:10])
    assert rows(file, "log") == 202  # others have events in the same rows
    await journal.settled(runs[:50])
    assert rows(file, "log") == 101
    for _ in range(2):
        for run in runs:
            assert list(await journal.read(run)) == whole(run, 101)
            assert list(await journal.read(run, after=40, limit=3)) == whole(run, 101)[40:43]
        assert set((await journal.heads(runs)).values()) == {Head(1, 101, sealed=True)}
        await journal.close()
        journal = SqliteJournal(file)
        assert journal.torn_records == 0
    await journal.settled(runs)
    assert await journal.append([adding(runs[0], 102, "late")]) != [None]
    await journal.close()


async def test_what_an_earlier_life_sealed_leaves_the_log_with_the_next_that_is_settled(tmp_path: Path) -> None:
    """It was settled, and the process ended before it could say so. Otherwise it would be read at every start for as
    long as it is kept. A run that is still open stays."""
    file = tmp_path / "journal.db"
    journal = SqliteJournal(file)
    runs = [RunId(f"run_{n}") for n in range(60)]
    await write(journal, runs, 101)
    await journal.append([adding("run_open", 1, "still open")])
    await journal.close()
    journal = SqliteJournal(file)
    await write(journal, [RunId("run_new")], 2)
    await journal.settled([RunId("run_new")])
    assert rows(file, "log") == 1
    assert all([list(await journal.read(run)) == whole(run, 101) for run in runs])
    assert await journal.append([adding("run_open", 2, "goes on")]) == [None]
    await journal.close()


class Observed:
    """On which threads a journal's commits are made."""

    def __init__(self, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here: list[bool] = []
        append = journal._writer.append

        def seen(batch: Sequence[Append]) -> Sequence[Refused | None]:
            self.here.append(threading.current_thread() is threading.main_thread())
            return append(batch)

        monkeypatch.setattr(journal._writer, "append", seen)


async def test_small_commits_of_a_quick_disk_are_made_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When enough have been quick, and not before; one of many runs is left to the thread, as always."""
    monkeypatch.setattr(journal_module, "_QUICK", GUARD)
    journal = SqliteJournal(tmp_path / "journal.db")
    observed = Observed(journal, monkeypatch)
    for n in range(1, journal_module._PROVEN + 3):
        assert await journal.append([adding(RID, n, "x")]) == [None]
    many = [adding(RunId(f"other_{n}"), 1, "y") for n in range(journal_module._FEW + 1)]
    assert await journal.append(many) == [None] * len(many)
    assert observed.here == [False] * journal_module._PROVEN + [True, True, False]
    await journal.close()


async def test_the_wal_is_put_into_the_file_by_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that has to do it takes long, so the loop's never come to that: the WAL begins anew before."""
    monkeypatch.setattr(journal_module, "_PROVEN", 0)
    monkeypatch.setattr(journal_module, "_QUICK", GUARD)
    monkeypatch.setattr(journal_module, "_CHECKPOINT", 10)
    file = tmp_path / "journal.db"
    journal = SqliteJournal(file)
    observed = Observed(journal, monkeypatch)
    sizes = set()
    for n in range(1, 201):
        await journal.append([adding(RID, n, "x" * 3000)])
        sizes.add((tmp_path / "journal.db-wal").stat().st_size)
    assert max(sizes) < 40 * 4120 + (256 << 10)  # with the room that is kept ahead
    assert observed.here.count(True) > 100
    await journal.close()


async def test_commits_of_a_slow_disk_never_hold_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes too long is the last that the loop makes."""
    monkeypatch.setattr(journal_module, "_PROVEN", 1)
    monkeypatch.setattr(journal_module, "_QUICK", GUARD)
    journal = SqliteJournal(tmp_path / "journal.db")
    observed = Observed(journal, monkeypatch)
    for n in range(1, 6):
        if n == 3:
            monkeypatch.setattr(journal_module, "_QUICK", 0.0)
        await journal.append([adding(RID, n, "x")])
    assert observed.here == [False, True, True, False, False]
    await journal.close()


async def test_a_commit_waits_for_what_the_thread_is_doing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where it could be made at once: there is one connection."""
    monkeypatch.setattr(journal_module, "_PROVEN", 0)
    journal = SqliteJournal(tmp_path / "journal.db")
    observed, begun, may_end = Observed(journal, monkeypatch), threading.Event(), threading.Event()

    def sweep() -> bool:
        begun.set()
        assert may_end.wait(GUARD)
        return False

    monkeypatch.setattr(journal._writer, "sweep", sweep)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            tg.start_soon(journal.settled, [])
            await anyio.to_thread.run_sync(begun.wait)
            tg.start_soon(journal.append, [adding(RID, 1, "x")])
            await anyio.lowlevel.checkpoint()
            assert observed.here == []
            may_end.set()
    assert observed.here == [False]
    await journal.close()


async def test_reading_while_runs_are_settled_finds_every_event(tmp_path: Path) -> None:
    """A reader that comes between the log and the segments sees the same events, whichever it finds them in."""
    journal = SqliteJournal(tmp_path / "journal.db")
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
    await journal.close()


@pytest.mark.parametrize("settled", [False, True])
async def test_what_was_purged_is_nowhere_in_the_file(tmp_path: Path, settled: bool) -> None:
    """Erasing a run blanks what it has in the log too, where that may have stayed behind after it was settled."""
    file = tmp_path / "journal.db"
    journal = SqliteJournal(file)
    other = RunId("run_2")
    await write(journal, [RID, other], 20)
    if settled:
        await journal.settled([RID])
    await journal.purge([RID])
    await journal.close()
    assert f"{RID} 7".encode() not in file.read_bytes()
    journal = SqliteJournal(file)
    assert list(await journal.read(other)) == whole(other, 20)
    assert await journal.heads([RID]) == {RID: Head(1, 20, sealed=True, pruned=True)}
    with pytest.raises(JournalPruned):
        await journal.read(RID)
    await journal.close()


async def test_reopening_finds_what_is_on_disk(tmp_path: Path) -> None:
    """After `reopen` the index is that of the file: live, settled, fenced and erased runs are what they were."""
    journal = SqliteJournal(tmp_path / "journal.db")
    live, old, fenced, gone = (RunId(name) for name in ("live", "old", "fenced", "gone"))
    await write(journal, [old, gone], 5)
    await journal.append([adding(live, 1, "a", "b", epoch=3)])
    await journal.settled([old])
    await journal.purge([gone])
    await journal.fence({fenced: 7, live: 4})
    before = await journal.heads([live, old, fenced, gone])
    await journal.reopen()
    assert await journal.heads([live, old, fenced, gone]) == before
    assert before[live] == Head(4, 2)
    assert list(await journal.read(live)) == texts(1, "a", "b")
    assert await journal.append([adding(live, 3, "c", epoch=4), adding(fenced, 1, "x", epoch=7)]) == [None, None]
    await journal.close()


async def test_the_size_limit_is_the_callers(tmp_path: Path) -> None:
    """An event over the limit is refused alone, with both numbers; one at the limit is taken."""
    frame = texts(1, "x" * 50)[0].frame
    journal = SqliteJournal(tmp_path / "journal.db", max_event_bytes=len(frame))
    refused, taken = await journal.append([adding("big", 1, "x" * 51), adding("fits", 1, "x" * 50)])
    assert isinstance(refused, TooLarge)
    assert (refused.size, refused.limit, taken) == (len(frame) + 1, len(frame), None)
    await journal.close()


async def test_a_batch_names_each_run_once(tmp_path: Path) -> None:
    """Two appends of one run in a batch cannot both follow what is there; the mistake is the caller's and nothing is
    written."""
    journal = SqliteJournal(tmp_path / "journal.db")
    with pytest.raises(ValueError, match="at most one"):
        await journal.append([adding(RID, 1, "a"), adding(RID, 1, "b")])
    assert await journal.heads([RID]) == {RID: Head()}
    await journal.close()


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
@settings(max_examples=100)
def test_stretches_are_what_the_walk_finds_up_to_the_first_damage(
    pieces: list[tuple[int, int, bytes, bool]], where: int, flips: int
) -> None:
    """Opening reads the log by stretches and goes on by single records where something is not as it should be: both
    must see the same rows."""
    blob = b"".join(
        records.head(alias, seq, frame, seals) + frame if alias else records.blank(len(frame))
        for alias, seq, frame, seals in pieces
    )
    if blob:
        at = where % len(blob)
        blob = blob[:at] + bytes([blob[at] ^ flips]) + blob[at + 1 :]
    found, end = [], 0
    for stretch in records.stretches(blob):
        last = len(stretch.places) - 1
        for n, place in enumerate(stretch.places):
            found.append((place, stretch.alias, stretch.seq + n, stretch.seals and n == last))
        end = stretch.end
    walked = list(records.walk(blob))
    assert [(one.at, one.alias, one.seq, one.seals) for one in walked[: len(found)]] == found
    assert all(one.whole for one in walked[: len(found)])
    assert list(records.walk(blob, end)) == walked[len(found) :]
    if not flips:
        blank = next((n for n, piece in enumerate(pieces) if not piece[0]), len(pieces))
        assert len(found) == blank


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
    monkeypatch.setattr(logged, "_KEPT", room)
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
    frames_at = records.frames_at

    def counted(blob: bytes, places: Sequence[int], alias: int, seq: int) -> list[bytes]:
        looked_for.append(seq)
        return frames_at(blob, places, alias, seq)

    monkeypatch.setattr(records, "frames_at", counted)
    assert {run: list(found) for run, found in (await journal.read_whole(runs)).items()} == {
        run: whole(run, 10) for run in runs
    }
    assert not looked_for
    assert list(await journal.read(runs[0])) == whole(runs[0], 10)
    assert looked_for
    await journal.purge([runs[0]])
    with pytest.raises(JournalPruned):
        await journal.read_whole(runs)
    await journal.close()


async def test_a_log_of_rows_per_event_is_taken_over(tmp_path: Path) -> None:
    """The format of earlier versions: every whole event is there afterwards, and a damaged one ends its run."""
    file = tmp_path / "journal.db"
    prepare(file, schema.JOURNAL[:1], keep_copy=False)
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
    assert list(await journal.read(RunId("run_1"))) == whole(RunId("run_1"), 5)
    assert list(await journal.read(RunId("run_2"))) == whole(RunId("run_2"), 5)[:3]
    assert await journal.heads([RunId("run_1"), RunId("run_2")]) == {
        RunId("run_1"): Head(3, 5, sealed=True),
        RunId("run_2"): Head(3, 3),
    }
    await journal.close()
