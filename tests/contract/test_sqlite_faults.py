"""SQLite under bad luck: damaged files, torn records, a full disk, kill -9."""

import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from operator import methodcaller
from pathlib import Path

import pytest

from holdfast.core.errors import HoldfastError, StorageFullError, StorageUnavailableError
from holdfast.core.events import RunEnded, entry
from holdfast.core.ids import LOCAL, RunId, SessionId
from holdfast.ports.journal import Append, JournalHead
from holdfast.ports.store import SessionQuery, Tx
from holdfast.storage.file_store import FileStore
from holdfast.storage.sqlite import DataDir, SqliteJournal, SqliteStore, open_embedded
from holdfast.testing import FakeClock
from holdfast.testing.contracts.samples import RID, adding, message, put, session, texts
from tests.contract.machine import OTHER, embedded, filled, next_line, snapshot, sqlite_journal, start, tmpfs
from tests.contract.test_files import save
from tests.journal_damage import tear

pytestmark = pytest.mark.anyio

# ---- damaged files ----

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "a few bytes": lambda good: good[:60],
    "one page": lambda good: good[:4096],
    "half a page missing": lambda good: good[:-2048],
    "garbage": lambda good: os.urandom(len(good)),
    "garbage behind the header": lambda good: good[:100] + os.urandom(len(good) - 100),
    "another format": lambda _: b"%PDF-1.7\n" * 1000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_store_is_refused_and_left_alone(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """A truncated or overwritten holdfast.db is named, with what to do, and nothing is written over it."""
    await filled(tmp_path)
    file = tmp_path / "holdfast.db"
    file.write_bytes(damage(file.read_bytes()))
    before = snapshot(tmp_path)
    with pytest.raises(StorageUnavailableError) as refused:
        open_embedded(tmp_path, FakeClock())
    assert str(file) in str(refused.value)
    assert "backup" in str(refused.value)
    assert snapshot(tmp_path) == before
    DataDir.open(tmp_path).close()  # the lock was let go


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_journal_is_unavailable_and_left_alone(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """J1: with an unreadable journal.db the store serves, every journal call says what is wrong, and `reopen` finds the
    journal when it is back."""
    await filled(tmp_path)
    file = tmp_path / "journal.db"
    good = file.read_bytes()
    bad = damage(good)
    file.write_bytes(bad)
    async with embedded(tmp_path) as (store, journal):
        assert await store.read(lambda tx: tx.session(SessionId("ses_1"))) is not None
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: journal.append([adding(RID, 4, "d")]),
            lambda: journal.fence({RID: 9}),
            lambda: journal.heads([RID]),
            lambda: journal.read(RID),
            lambda: journal.settled([RID]),
            lambda: journal.purge([RID]),
            journal.reopen,
        ]
        for call in calls:
            with pytest.raises(StorageUnavailableError, match=str(file)):
                await call()
        assert file.read_bytes() == bad
        file.write_bytes(good)
        await journal.reopen()
        assert list(await journal.read(RID)) == texts(1, "a", "b", "c")
        assert len(await journal.read(OTHER)) == 3


@pytest.mark.parametrize("name", ["holdfast.db", "journal.db"])
async def test_a_file_that_is_gone_but_for_its_wal_is_not_begun_anew(tmp_path: Path, name: str) -> None:
    """A stray -wal would be played into a new database; its newest rows may be all that is left of the old one."""
    await filled(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / f"{name}-wal").write_bytes(b"pages")
    if name == "holdfast.db":
        with pytest.raises(StorageUnavailableError, match="is missing"):
            open_embedded(tmp_path, FakeClock())
    else:
        async with sqlite_journal(tmp_path) as journal:
            with pytest.raises(StorageUnavailableError, match="is missing"):
                await journal.heads([RID])
    assert not (tmp_path / name).exists()
    assert (tmp_path / f"{name}-wal").read_bytes() == b"pages"


# ---- torn records ----


def spoil(file: Path, change: str) -> None:
    db = sqlite3.connect(file)
    with db:
        assert db.execute(change).rowcount == 1
    db.close()


RECORD_DAMAGE = ["half", "flipped", "checksum"]
ROW_DAMAGE = ["records = 'text'", "records = x'00'", "records = substr(records, 1, 70)"]


@pytest.mark.parametrize("how", [*RECORD_DAMAGE, *ROW_DAMAGE])
async def test_a_torn_record_or_row_loses_only_itself(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """J7: a record with a bad checksum is dropped, or all records of a row that is no longer one; their runs go on from
    the record before it, nothing else is lost, and the log says so."""
    file = tmp_path / "journal.db"
    async with sqlite_journal(tmp_path) as journal:
        await journal.append([adding(RID, 1, "a"), adding(OTHER, 1, "x")])
        await journal.append([adding(RID, 2, "b" * 100), adding(OTHER, 2, "y")])
    if how in RECORD_DAMAGE:
        tear(file, RID, how)
    else:
        spoil(file, f"UPDATE log SET {how} WHERE n = 2")
    kept = 2 if how in RECORD_DAMAGE else 1
    async with sqlite_journal(tmp_path) as journal:
        assert journal.torn_records == 1
        assert "had 1 damaged records" in caplog.text
        assert await journal.heads([RID, OTHER]) == {RID: JournalHead(1, 1), OTHER: JournalHead(1, kept)}
        assert await journal.append([adding(RID, 2, "again"), adding(OTHER, kept + 1, "more")]) == [None, None]
    async with sqlite_journal(tmp_path) as journal:
        assert journal.torn_records == 0
        assert list(await journal.read(RID)) == texts(1, "a", "again")
        assert list(await journal.read(OTHER)) == texts(1, *["x", "y"][:kept], "more")


async def test_a_torn_terminal_record_unseals(tmp_path: Path) -> None:
    """J7: if the terminal event is what was torn, the run is open again and can be sealed once more."""
    end = Append(RID, 1, [entry(2, RunEnded("complete"))], seals=True)
    async with sqlite_journal(tmp_path) as journal:
        await journal.append([adding(RID, 1, "a")])
        await journal.append([end])
    tear(tmp_path / "journal.db", RID, "half")
    async with sqlite_journal(tmp_path) as journal:
        assert await journal.heads([RID]) == {RID: JournalHead(1, 1)}
        assert await journal.append([end]) == [None]
        assert await journal.heads([RID]) == {RID: JournalHead(1, 2, sealed=True)}


async def test_a_torn_record_ends_what_can_be_read(tmp_path: Path) -> None:
    """J7: damage in the middle ends the run there, at once for readers and for good at the next opening."""
    async with sqlite_journal(tmp_path) as journal:
        await journal.append([adding(RID, 1, "a", "b", "c")])
        tear(tmp_path / "journal.db", RID, "checksum", seq=2)
        assert list(await journal.read(RID)) == texts(1, "a")
        await journal.reopen()
        assert journal.torn_records == 2
        assert await journal.heads([RID]) == {RID: JournalHead(1, 1)}


async def test_a_damaged_segment_ends_what_can_be_read(tmp_path: Path) -> None:
    """J7: a settled run with a damaged row is read up to it, and is not an error."""
    await filled(tmp_path)
    spoil(tmp_path / "journal.db", "UPDATE segments SET frames = zeroblob(9)")
    async with sqlite_journal(tmp_path) as journal:
        assert list(await journal.read(OTHER)) == []
        assert len(await journal.read(RID)) == 3


# ---- a full disk ----


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """4 MB, 2 of them taken by a file that can be removed."""
    with tmpfs(tmp_path / "disk", "size=4m") as path:
        (path / "filler").write_bytes(bytes(2_000_000))
        yield path


async def fill(journal: SqliteJournal, kept: list[str]) -> None:
    """Append what is then in `kept`, until it is refused."""
    while True:
        words = [f"{len(kept) + n} " + "x" * 2000 for n in range(10)]
        assert await journal.append([adding(RID, len(kept) + 1, *words)]) == [None]
        kept.extend(words)


async def test_a_full_disk_refuses_appends_and_keeps_what_is_there(disk: Path) -> None:
    """A commit without room raises StorageFullError and leaves nothing of itself; what was there can be read, also
    after a `reopen` without room; when there is room again, the journal goes on where it was."""
    journal = SqliteJournal(disk / "journal.db")
    kept: list[str] = []
    with pytest.raises(StorageFullError):
        await fill(journal, kept)
    for _ in range(2):
        assert await journal.heads([RID]) == {RID: JournalHead(1, len(kept))}
        assert list(await journal.read(RID, limit=10**6)) == texts(1, *kept)
        with suppress(StorageFullError):  # there may be just enough room for it
            await journal.reopen()
    (disk / "filler").unlink()
    await journal.reopen()
    before = len(kept)
    with pytest.raises(StorageFullError):
        await fill(journal, kept)
    assert len(kept) > before > 0
    await journal.close()
    async with sqlite_journal(disk) as journal:
        assert list(await journal.read(RID, limit=10**6)) == texts(1, *kept)


async def test_a_full_disk_refuses_transactions_and_keeps_what_is_there(disk: Path) -> None:
    """P1: a transaction without room is as if it had never been; reads go on; with room again, so do writes."""
    data = DataDir.open(disk)
    store = SqliteStore(data, FakeClock())
    kept: list[SessionId] = []

    async def put_until_full() -> None:
        while True:
            sid = SessionId(f"ses_{len(kept)}")
            await put(store, session(sid, title="word", system="x" * 20_000), message(f"{sid}-msg", sid, text="word"))
            kept.append(sid)

    def look(tx: Tx) -> tuple[set[SessionId], bool]:
        everything = SessionQuery(LOCAL, limit=10**6)
        found = {each.id for each in tx.sessions(everything)}
        return found, {hit.session.id for hit in tx.search(LOCAL, "word", 10**6, None)} == found

    with pytest.raises(StorageFullError):
        await put_until_full()
    assert await store.read(look) == (set(kept), True)
    assert kept
    (disk / "filler").unlink()
    await put(store, session("ses_more", title="word"))
    assert await store.read(look) == ({*kept, SessionId("ses_more")}, True)
    await store.close()
    data.close()


def test_a_full_disk_leaves_no_part_of_a_file(disk: Path) -> None:
    """A content that does not fit is refused and takes up no room afterwards."""
    files = FileStore(disk / "files")
    with pytest.raises(StorageFullError):
        save(files, (bytes(100_000) for _ in range(40)))
    digest = save(files, [b"small" * 200_000])
    with files.open(digest) as file:
        assert len(file.read()) == 1_000_000


async def test_opening_on_a_full_disk_says_so(disk: Path) -> None:
    """A directory on a full disk is refused as full, and opens when there is room."""
    with suppress(OSError):
        (disk / "more").write_bytes(bytes(10_000_000))
    with pytest.raises(StorageFullError):
        open_embedded(disk / "data", FakeClock())
    (disk / "more").unlink()
    await filled(disk / "data")


# ---- kill -9 ----

WRITER = """
    import asyncio, sys
    from pathlib import Path
    from holdfast.core.events import RunEnded, TextDelta, entry
    from holdfast.ports.journal import Append
    from holdfast.storage.sqlite import open_embedded
    from holdfast.testing import FakeClock
    from holdfast.testing.contracts.samples import adding, put, session

    async def main() -> None:
        data, store, journal = open_embedded(Path(sys.argv[1]), FakeClock())
        for n in range(10**6):
            await put(store, session(f"ses_{n}"))
            print("session", n)
            runs = [f"run_{n}_{k}" for k in range(3)]
            for seq in range(1, 9):
                await journal.append([adding(run, seq, f"{run} {seq}") for run in runs[: 1 + n % 3]])
                print("event", n, seq)
            end = entry(9, RunEnded("complete"))
            await journal.append([Append(run, 1, [end], seals=True) for run in runs[: 1 + n % 3]])
            print("sealed", n)
            await journal.settled(runs)
            print("settled", n)

    asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 2, 9, 11, 12, 100, 400])
async def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path, lines: int) -> None:
    """A1, X1: every append and transaction that had returned before the kill is there, whole and in order."""
    with start(WRITER, tmp_path) as writer:
        said = [next_line(writer) for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        assert writer.stdout is not None
        said += writer.stdout.read().decode().rpartition("\n")[0].splitlines()  # the kill may cut a line
    async with embedded(tmp_path) as (store, journal):
        assert journal.torn_records == 0
        for what, n, *rest in map(str.split, said):
            if what == "session":
                assert await store.read(methodcaller("session", SessionId(f"ses_{n}"))) is not None
                continue
            last = int(rest[0]) if rest else 9
            for k in range(1 + int(n) % 3):
                run = RunId(f"run_{n}_{k}")
                found = await journal.read(run)
                assert len(found) >= last
                assert list(found[:8]) == texts(1, *(f"{run} {seq}" for seq in range(1, min(len(found), 8) + 1)))
                head = (await journal.heads([run]))[run]
                assert head.last_seq == len(found)
                assert head.sealed or what == "event"


async def test_errors_of_sqlite_stay_inside(tmp_path: Path) -> None:
    """Whatever SQLite says about a file that is spoilt under way, the caller gets one of our errors."""
    await filled(tmp_path)
    async with embedded(tmp_path) as (store, _):
        with closing(sqlite3.connect(tmp_path / "holdfast.db")) as db:
            db.execute("DROP TABLE files")
            db.commit()
        for call in (store.transact, store.read):
            with pytest.raises(HoldfastError):
                await call(lambda tx: tx.digest_in_use("x"))
        await put(store, session("ses_2"))
