"""Storage that gives way under a real process: a full disk, damaged files, a directory that is taken or read-only."""

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.contract.machine import tmpfs
from tests.crash.client import RefusedError, Server, Turn
from tests.crash.random_restarts import World, ended_as, last
from tests.crash.server import EXIT_STORAGE
from tests.fork_server import ServerForker

QUICK: dict[str, Any] = {"storage_retry_time": 0.3, "final_save": 1.0}
"""Nobody waits long for storage that is gone."""


class Disk:
    """A file system of 4 MiB of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, leave: int = 0) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                file.truncate(max(0, file.tell() - leave) // 4096 * 4096)

    def make_room(self) -> None:
        self._ballast.unlink()

    def remount(self, mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.path)], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with tmpfs(tmp_path / "disk", "size=4m") as path:
        yield Disk(path)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, forker: ServerForker) -> World:
    """On the test's own disk, if it has one."""
    root = request.getfixturevalue("disk").path if "disk" in request.fixturenames else tmp_path
    return World(root / "data", forker)


def settled_turn(world: World, server: Server) -> Turn:
    turn = server.submit(server.create(), f"tool {world.label()}")
    server.until_ended(turn)
    return turn


def streaming(world: World, server: Server, runs: int = 3) -> list[Turn]:
    turns = [server.submit(server.create(), f"tokens {world.label()} 100000 300") for _ in range(runs)]
    for turn in turns:
        server.until(turn, "text.delta")
    return turns


def killed_in_mid_stream(world: World) -> tuple[Turn, list[Turn]]:
    """A life that ends while runs stream: a turn that had ended before, and those that were cut."""
    with world.life() as server:
        before, cut = settled_turn(world, server), streaming(world, server)
        server.kill()
    return before, cut


def refusal(world: World) -> str:
    """What a server says that does not start."""
    with world.start() as server:
        assert server.buried() == EXIT_STORAGE
        assert server.refused is not None
        return str(server.refused["message"])


def send_for_ever(world: World, server: Server, session: str) -> NoReturn:
    """Until it is refused: SQLite may find room in pages that it has already."""
    while True:
        server.submit(session, f"tokens {world.label()} 1", watch=False)


def statuses(dump: Any, turns: list[Turn]) -> set[str]:
    return {dump["runs"][turn.run]["status"] for turn in turns}


def last_life(world: World) -> Any:
    """One more start: all is as it was left, and works."""
    with world.next_life() as (server, dump):
        fresh = settled_turn(world, server)
        assert ended_as(fresh, "complete")
    return dump


# ------------------------------------------------------------------------------------------------ a full disk


def test_full_disk_stops_runs_without_losing_what_was_shown(world: World, disk: Disk) -> None:
    """A1, E1, X1: streams close, new sends are refused as `storage-full`, sessions stay readable; when there is room,
    the runs have failed with that reason and all they had shown, and new sends work, also after a `kill -9`."""
    with world.life(disk_reserve=0, **QUICK) as server:
        before = settled_turn(world, server)
        cut = streaming(world, server)
        disk.fill()
        server.pump(lambda: not server.watching)
        with pytest.raises(RefusedError) as refused:
            send_for_ever(world, server, before.session)
        assert refused.value.code == "storage-full"
        assert "disk space" in refused.value.message
        assert world.dump(server)["messages"][before.message]["status"] == "complete"
        disk.make_room()
        server.ask("tick")
        dump = world.dump(server)
        assert statuses(dump, cut) == {"failed"}
        assert {dump["runs"][turn.run]["error"]["code"] for turn in cut} == {"storage-full"}
        world.go_on(server)
        server.kill()
    last_life(world)


def test_run_waits_for_room_and_goes_on(world: World, disk: Disk) -> None:
    """X1, L1: if room is made in time nobody notices: no stream closes, nothing is lost, the run completes."""
    with world.life(disk_reserve=0, storage_retry_time=60.0) as server:
        turn = server.submit(server.create(), f"tokens {world.label()} 400 400")
        server.until(turn, "text.delta")
        disk.fill()
        while server.ask("retries") < 2:
            pass
        disk.make_room()
        server.until_ended(turn)
        assert ended_as(turn, "complete")
        world.check(server)
        server.stop()
    last_life(world)


def test_reserve_refuses_new_work_and_saves_the_old(world: World, disk: Disk) -> None:
    """A1, L4: below the reserve new sends get `storage-full` and make nothing; a run under way is still saved."""
    with world.life(disk_reserve=1 << 20) as server:
        gate = world.label()
        turn = server.submit(server.create(), f"hold {gate}")
        server.until(turn, "text.delta")
        disk.fill(leave=512 << 10)
        with pytest.raises(RefusedError, match="storage-full"):
            server.submit(turn.session, f"tool {world.label()}")
        server.ask("open", gate)
        server.until_ended(turn)
        assert ended_as(turn, "complete")
        dump = world.check(server)
        assert len(dump["runs"]) == 1
        disk.make_room()
        world.go_on(server)
        server.kill()
    last_life(world)


def test_crash_on_a_full_disk_is_recovered_when_there_is_room(world: World, disk: Disk) -> None:
    """X1, X2, X3: killed while the disk is full and started while it is still full, the server says what is wrong or
    shows what is there; with room, everything is settled."""
    with world.life(disk_reserve=0) as server:
        before = settled_turn(world, server)
        cut = streaming(world, server)
        disk.fill()
        while server.ask("retries") < 1:
            pass
        server.kill()
    with world.start(disk_reserve=0, **QUICK) as server:
        server.pump(lambda: server.node is not None or server.refused is not None)
        if server.refused is not None:
            assert server.buried() == EXIT_STORAGE
            assert "disk space" in server.refused["message"]
        else:
            assert world.dump(server)["messages"][before.message]["status"] == "complete"
            server.kill()
    disk.make_room()
    dump = last_life(world)
    assert statuses(dump, cut) == {"interrupted"}


def test_shutdown_on_a_full_disk_ends(world: World, disk: Disk) -> None:
    """L2, X1: SIGTERM while nothing can be written: the process goes, in time, and the next one settles."""
    with world.life(disk_reserve=0, **QUICK) as server:
        cut = streaming(world, server)
        disk.fill()
        server.terminate()
        assert server.buried() == 0, server.complaints()
    disk.make_room()
    dump = last_life(world)
    assert statuses(dump, cut) <= {"interrupted", "failed"}


# ------------------------------------------------------------------------------------------------ a damaged journal


def cut_short(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2 + 7)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garbage(file: Path) -> None:
    file.write_bytes(b"this is not a database\n" * 1000)


def gone(file: Path) -> None:
    file.unlink()


def checkpoint(file: Path) -> None:
    """Put the write-ahead log into the file, so that damage to the file is damage."""
    db = sqlite3.connect(file)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


@pytest.mark.parametrize("damage", [cut_short, empty, garbage])
def test_damaged_journal_leaves_sessions_readable_and_output_recoverable(
    world: World, damage: Callable[[Path], None]
) -> None:
    """J1, J2, X2: sessions can be read, dead runs are interrupted with recovery pending, errors say what is wrong, the
    file is left as it is; with the file back, the output is recovered, all of it."""
    before, cut = killed_in_mid_stream(world)
    checkpoint(world.directory / "journal.db")
    saved = world.directory.with_name("saved")
    shutil.copytree(world.directory, saved)
    journal = world.directory / "journal.db"
    damage(journal)
    damaged = journal.read_bytes() if journal.exists() else None
    with world.life(**QUICK) as server:
        dump = world.dump(server)
        assert dump["messages"][before.message]["status"] == "complete"
        for turn in cut:
            assert dump["runs"][turn.run]["status"] == "interrupted"
            assert dump["messages"][turn.message]["recovery"] == "pending"
            assert dump["sessions"][turn.session]["active_run"] is None
        assert {dump["journals"][turn.run] for turn in cut} == {"storage-unavailable"}
        with pytest.raises(RefusedError, match="storage-unavailable"):
            server.submit(cut[0].session, f"tool {world.label()}", watch=False)
        server.stop()
    assert (journal.read_bytes() if journal.exists() else None) == damaged
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (world.directory / name).unlink(missing_ok=True)
        if (saved / name).exists():
            shutil.copy2(saved / name, world.directory / name)
    with world.next_life() as (server, dump):
        for turn in cut:
            assert dump["runs"][turn.run]["recovery"]["state"] == "recovered"
            assert dump["messages"][turn.message]["recovery"] == "recovered"
    last_life(world)


@pytest.mark.parametrize("point", ["pending.before-commit", "pending.after-commit"])
def test_crash_while_the_journal_is_away(world: World, point: str) -> None:
    """J1, J2, X2: killed while dead runs are being shown as interrupted, and once more while they are; with the file
    back, their output is recovered."""
    _, cut = killed_in_mid_stream(world)
    journal = world.directory / "journal.db"
    checkpoint(journal)
    good = journal.read_bytes()
    garbage(journal)
    with world.start(die=point, **QUICK) as server:
        assert server.buried() == -signal.SIGKILL
    with world.life(**QUICK) as server:
        dump = world.dump(server)
        assert {dump["messages"][turn.message]["recovery"] for turn in cut} == {"pending"}
        server.kill()
    journal.write_bytes(good)
    dump = last_life(world)
    assert {dump["messages"][turn.message]["recovery"] for turn in cut} == {"recovered"}


@pytest.mark.parametrize("damage", [cut_short, gone])
def test_damage_that_the_wal_makes_good_or_not_loses_nothing(world: World, damage: Callable[[Path], None]) -> None:
    """J1, J2, X1: the newest pages are in the write-ahead log: either they are enough, or recovery is pending until the
    file is back. Nothing in between."""
    _, cut = killed_in_mid_stream(world)
    saved = world.directory.with_name("saved")
    shutil.copytree(world.directory, saved)
    damage(world.directory / "journal.db")
    with world.life(**QUICK) as server:
        dump = world.check(server)
        assert statuses(dump, cut) == {"interrupted"}
        pending = {dump["messages"][turn.message]["recovery"] for turn in cut} == {"pending"}
        server.kill()
    if pending:
        for name in ("journal.db", "journal.db-wal"):
            shutil.copy2(saved / name, world.directory / name)
        (world.directory / "journal.db-shm").unlink(missing_ok=True)
    last_life(world)


@pytest.mark.parametrize("cut", [1, 100, 4096, 9000])
def test_torn_end_of_the_wal_loses_only_the_last_commits(world: World, cut: int) -> None:
    """J7: as after a power cut on a disk that lied: the end of the write-ahead log is missing. Every run keeps a
    beginning of what was shown, without gaps, and is settled."""
    before, streamed = killed_in_mid_stream(world)
    turns = [before, *streamed]
    wal = world.directory / "journal.db-wal"
    with wal.open("r+b") as file:
        file.truncate(wal.stat().st_size - cut)
    (world.directory / "journal.db-shm").unlink()  # after a power cut it would be gone
    with world.life() as server:
        runs, messages = [turn.run for turn in turns], [turn.message for turn in turns]
        dump = server.ask("dump", runs, messages)
        lost = 0
        for turn in turns:
            frames = [frame.encode() for frame in dump["journals"][turn.run]]
            kept = frames if turn is turns[0] else frames[:-1]
            if b"event: run.resumed" in frames[0]:  # all of it was lost, and the run says so
                kept = []
            both = min(len(kept), len(turn.frames))  # what was committed and not yet shown may be there too
            assert kept[:both] == turn.frames[:both]
            lost += len(turn.frames) - both
        assert lost <= 2 * 3 * (1 + cut // 4096)  # a commit may have two events of a run: its start and first text
        assert statuses(dump, turns[1:]) == {"interrupted"}
        assert dump["messages"][turns[0].message]["status"] == "complete"
        server.stop()


# ------------------------------------------------------------------------------------------------ a directory


def test_read_only_directory_is_refused_and_unharmed(world: World, disk: Disk) -> None:
    """X1, X3: after a crash, on a disk that came back read-only: a clear error and exit code; writable again, nothing
    is lost."""
    _, cut = killed_in_mid_stream(world)
    log = world.directory.with_name("data.log")
    shutil.move(log, disk.path.with_name("data.log"))
    os.symlink(disk.path.with_name("data.log"), log)
    disk.remount("ro")
    message = refusal(world)
    assert "read-only" in message
    assert str(world.directory) in message
    disk.remount("rw")
    dump = last_life(world)
    assert statuses(dump, cut) == {"interrupted"}
    assert [last(turn) for turn in world.turns[:1]] == ["run.complete"]
