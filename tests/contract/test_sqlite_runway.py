"""The WAL is kept longer than it is filled, and nothing depends on that."""

import os
import shutil
from pathlib import Path

import pytest

from holdfast.storage.sqlite import SqliteJournal, open_embedded
from holdfast.storage.sqlite.runway import Runway
from holdfast.testing import FakeClock
from holdfast.testing.contracts.samples import RID, adding, put, session, texts
from tests.contract.machine import tmpfs

pytestmark = pytest.mark.anyio

STEP = 256 << 10


async def test_commits_overwrite_what_is_there(tmp_path: Path) -> None:
    """Of fifty commits only the first makes the file longer."""
    journal = SqliteJournal(tmp_path / "journal.db")
    wal = tmp_path / "journal.db-wal"
    lengths = set()
    for n in range(1, 51):
        await journal.append([adding(RID, n, f"word {n}")])
        lengths.add(wal.stat().st_size)
    assert len(lengths) == 1
    assert lengths.pop() >= STEP
    await journal.close()
    assert not wal.exists()


async def test_the_stores_file_has_room_too(tmp_path: Path) -> None:
    data, store, journal = open_embedded(tmp_path, FakeClock())
    lengths = set()
    for n in range(20):
        await put(store, session(f"ses_{n}", title="kept"))
        lengths.add((tmp_path / "holdfast.db-wal").stat().st_size)
    assert len(lengths) < 10  # a transaction has some twenty pages
    await store.close()
    await journal.close()
    data.close()


async def test_it_grows_when_it_is_used_up_and_is_whole_after_a_crash(tmp_path: Path) -> None:
    """A copy of the files as a killed process leaves them, taken at every length, has all that was committed: what is
    behind it is not mistaken for anything."""
    place, copy = tmp_path / "live", tmp_path / "left"
    place.mkdir()
    journal = SqliteJournal(place / "journal.db")
    words: list[str] = []
    seen: dict[int, int] = {}
    while len(seen) < 4:
        words.append(f"{len(words)} " + "x" * 5000)
        await journal.append([adding(RID, len(words), words[-1])])
        length = (place / "journal.db-wal").stat().st_size
        if length in seen:
            continue
        seen[length] = len(words)
        shutil.copytree(place, copy)
        found = SqliteJournal(copy / "journal.db")
        assert list(await found.read(RID, limit=10**6)) == texts(1, *words)
        await found.append([adding(RID, len(words) + 1, "more")])
        await found.close()
        found = SqliteJournal(copy / "journal.db")
        assert list(await found.read(RID, limit=10**6)) == texts(1, *words, "more")
        await found.close()
        shutil.rmtree(copy)
    assert all(n >= 20 for n in (b - a for a, b in zip(seen.values(), list(seen.values())[1:], strict=False)))
    await journal.close()


def wal(directory: Path, size: int) -> Path:
    file = directory / "x.db-wal"
    file.write_bytes(b"w" * size)
    return file


def test_what_a_killed_process_left_is_room_enough(tmp_path: Path) -> None:
    """Or every start after a kill would make the file longer."""
    file = wal(tmp_path, STEP)
    runway = Runway(tmp_path / "x.db")
    runway.keep()
    assert file.stat().st_size == STEP
    with file.open("ab") as grown:
        grown.write(b"w")
    runway.keep()
    assert file.stat().st_size == STEP + 1 + STEP
    runway.close()


def test_the_last_of_a_disk_is_for_commits(tmp_path: Path) -> None:
    """Where the room does not fit, none of it is taken, and nobody tries again."""
    with tmpfs(tmp_path / "disk", "size=500k") as disk:
        file, filler = wal(disk, 50_000), disk / "filler"
        filler.write_bytes(bytes(300_000))
        free = os.statvfs(disk).f_bavail
        runway = Runway(disk / "x.db")
        runway.keep()
        assert file.read_bytes() == b"w" * 50_000
        assert os.statvfs(disk).f_bavail == free
        filler.unlink()
        runway.keep()
        assert file.read_bytes() == b"w" * 50_000
        runway.close()


def test_a_file_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    runway = Runway(tmp_path / "x.db")
    runway.keep()
    runway.close()
    assert list(tmp_path.iterdir()) == []
