"""What runs change is kept before they do: exact bytes and modes come back, and what was not kept is said."""

import os
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.core.errors import ChangesConflictError
from holdfast.tools.workspace.changes import DirectoryLocks
from holdfast.tools.workspace.jail import Jail
from holdfast.tools.workspace.snapshots import database, recorder, states, tree_scan
from holdfast.tools.workspace.snapshots.database import StoredChange, open_snapshots
from holdfast.tools.workspace.snapshots.recorder import RunChanges, compare_unfinished
from holdfast.tools.workspace.snapshots.restorer import (
    RestorePlan,
    RestoreSteps,
    plan_restore,
    read_content,
    record_restore,
)
from holdfast.tools.workspace.tree import WorkspaceTree

Contents = dict[str, tuple[int, bytes | str | None]]
NOW: Final = 1000.0


class Place:
    """A directory with files, and the snapshots of its runs."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "work"
        self.store = tmp_path / "data" / "snapshots" / "s1"
        self.tree = WorkspaceTree(self.root, tmp_path / "data", own=True)
        self.root.mkdir()

    def run(self, name: str = "run_1", now: float = NOW) -> RunChanges:
        return RunChanges(self.store, self.tree, name, lambda: now, 0)

    def write(self, name: str, content: bytes, mode: int = 0o644) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def contents(self) -> Contents:
        found: Contents = {}
        for path in sorted(self.root.rglob("*")):
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path.relative_to(self.root))] = (0 if path.is_symlink() else path.stat().st_mode, content)
        return found

    def changes(self, name: str = "run_1") -> dict[str, StoredChange]:
        with open_snapshots(self.store, create=False) as db:
            assert db is not None
            found = {os.fsdecode(item.path): item for item in db.changes(name)}
        return {path: item for path, item in found.items() if not item.before.same_as(item.after)}

    def note(self, name: str = "run_1") -> str:
        with open_snapshots(self.store, create=False) as db:
            assert db is not None
            found = db.find_set(name)
        assert found is not None
        return found.note

    def restore(self, name: str = "run_1", to: str = "restore_1", *paths: str, overwrite: bool = False) -> RestorePlan:
        with open_snapshots(self.store, create=False) as db:
            assert db is not None
            compare_unfinished(db, self.tree)
            plan = plan_restore(db, self.tree, name, paths or None, overwrite=overwrite)
            record_restore(db, to, name, str(self.root), plan, NOW)
        steps = RestoreSteps(self.tree, partial(read_content, self.store), DirectoryLocks(), 0)
        steps.run(plan.steps)
        assert steps.failed == []
        return plan


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_a_tool_writes_comes_back(place: Place) -> None:
    """A replaced file has its bytes and mode again, a new one and its new folders are gone, and undoing the restore
    gives back what the run left."""
    place.write("run.sh", b"old\0\xff\r\n", 0o750)
    before = place.contents()
    jail = Jail(place.root, place.run())
    jail.write(("run.sh",), b"new")
    jail.write(("run.sh",), b"newer")
    jail.write(("a", "b", "new.txt"), b"fresh")
    after = place.contents()
    assert set(place.changes()) == {"run.sh", "a", "a/b", "a/b/new.txt"}
    place.restore()
    assert place.contents() == before
    place.restore("restore_1", "restore_2")
    assert place.contents() == after


def test_what_a_program_changes_comes_back(place: Place) -> None:
    """Changed, created, deleted, renamed, linked and chmodded files, and whole folders; files that stayed are not
    listed."""
    place.write("same.txt", b"same")
    place.write("edit.txt", b"one")
    place.write("gone/deep/x.bin", bytes(range(256)), 0o600)
    place.write("mode.sh", b"#!", 0o644)
    (place.root / "link").symlink_to("same.txt")
    (place.root / "gone").chmod(0o700)
    before = place.contents()
    run = place.run()
    run.before_program()
    place.write("edit.txt", b"two")
    (place.root / "gone/deep/x.bin").unlink()
    (place.root / "gone/deep").rmdir()
    (place.root / "gone").rmdir()
    place.write("gone", b"a file now")
    (place.root / "mode.sh").chmod(0o755)
    (place.root / "link").unlink()
    (place.root / "link").symlink_to("edit.txt")
    place.write("new/file.txt", b"new")
    run.after_program()
    after = place.contents()
    assert set(place.changes()) >= {"edit.txt", "gone", "gone/deep/x.bin", "mode.sh", "link", "new/file.txt"}
    assert "same.txt" not in place.changes()
    place.restore()
    assert place.contents() == before
    place.restore("restore_1", "restore_2")
    assert place.contents() == after


def test_a_change_of_the_same_size_and_time_is_found(place: Place) -> None:
    """A program that puts the old time back does not hide a change."""
    path = place.write("a.txt", b"one")
    os.utime(path, ns=(10**18, 10**18))
    run = place.run()
    run.before_program()
    path.write_bytes(b"two")
    os.utime(path, ns=(10**18, 10**18))
    run.after_program()
    assert set(place.changes()) == {"a.txt"}


def test_a_crash_while_a_program_runs_loses_nothing(place: Place) -> None:
    """The look after the program is taken when the changes are next read."""
    place.write("a.txt", b"one", 0o640)
    before = place.contents()
    place.run().before_program()
    place.write("a.txt", b"two", 0o600)
    place.write("b.txt", b"new")
    place.restore()
    assert place.contents() == before


def test_a_crash_around_a_write_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the file is replaced there is nothing to restore; after it, without the second look, all of it is."""
    path = place.write("a.txt", b"one")
    run = place.run()
    run.before_write((b"a.txt",), b"two")
    assert place.restore().steps == []
    monkeypatch.setattr(RunChanges, "after_write", lambda *_: None)
    Jail(place.root, run).write(("a.txt",), b"two")
    Jail(place.root, run).write(("b.txt",), b"new")
    place.restore("run_1", "restore_2")
    assert path.read_bytes() == b"one"
    assert not (place.root / "b.txt").exists()


def test_a_file_that_changed_since_is_a_conflict(place: Place) -> None:
    """Nothing at all is restored then, unless it is to be overwritten, which can be undone too; one file alone can be
    restored."""
    for name in ("a.txt", "b.txt"):
        place.write(name, b"one")
        Jail(place.root, place.run()).write((name,), b"two")
    place.write("a.txt", b"mine")
    mine = place.contents()
    with pytest.raises(ChangesConflictError) as refused:
        place.restore()
    assert refused.value.paths == ("a.txt",)
    assert place.contents() == mine
    place.restore("run_1", "restore_1", "b.txt")
    assert (place.root / "b.txt").read_bytes() == b"one"
    place.restore("run_1", "restore_2", overwrite=True)
    assert (place.root / "a.txt").read_bytes() == b"one"
    place.restore("restore_2", "restore_3")
    assert (place.root / "a.txt").read_bytes() == b"mine"


@pytest.mark.parametrize("again", [True, False])
def test_a_restore_that_a_crash_cut_short_goes_on_or_back(place: Place, again: bool) -> None:
    """What it was about to replace is durable before the first file is touched, so it can be repeated or undone."""
    for name in ("a.txt", "b.txt", "c/new.txt"):
        if name != "c/new.txt":
            place.write(name, b"one", 0o600)
    before = place.contents()
    for name in ("a.txt", "b.txt", "c/new.txt"):
        Jail(place.root, place.run()).write(tuple(name.split("/")), b"two")
    after = place.contents()
    with open_snapshots(place.store, create=False) as db:
        assert db is not None
        plan = plan_restore(db, place.tree, "run_1", None, overwrite=False)
        record_restore(db, "restore_1", "run_1", str(place.root), plan, NOW)
    RestoreSteps(place.tree, partial(read_content, place.store), DirectoryLocks(), 0).run(plan.steps[:1])
    assert place.contents() not in (before, after)
    if again:
        place.restore("run_1", "restore_2")
    else:
        place.restore("restore_1", "restore_2")
    assert place.contents() == (before if again else after)


def test_what_was_not_kept_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files, full snapshots and folders with too many files: nothing is guessed, and the rest is restored."""
    monkeypatch.setattr(states, "MAX_FILE", 10)
    place.write("large.bin", b"x" * 20)
    place.write("small.txt", b"one")
    run = place.run()
    run.before_program()
    place.write("large.bin", b"y" * 21)
    place.write("small.txt", b"two")
    run.after_program()
    plan = place.restore()
    assert [path for path, _ in plan.skipped] == ["large.bin"]
    assert "larger than" in plan.skipped[0][1]
    assert (place.root / "small.txt").read_bytes() == b"one"
    monkeypatch.setattr(tree_scan, "MAX_ENTRIES", 1)
    place.run("run_2").before_program()
    assert "has more than 1 files" in place.note("run_2")
    monkeypatch.setattr(database, "MAX_STORED", 0)
    Jail(place.root, place.run("run_3")).write(("small.txt",), b"three")
    assert place.changes("run_3")["small.txt"].after.why == database.FULL


def test_nothing_is_followed_or_waited_for(place: Place, tmp_path: Path) -> None:
    """Links out, pipes and folders of dependencies are not read; a link that was swapped in is not written through."""
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "a.txt"
    secret.write_text("secret")
    (place.root / "out").symlink_to(outside)
    os.mkfifo(place.root / "pipe")
    place.write("node_modules/x.js", b"x")
    place.write("dir/a.txt", b"one")
    run = place.run()
    run.before_program()
    with open_snapshots(place.store, create=False) as db:
        assert db is not None
        assert set(db.seen()) == {b"out", b"pipe", b"dir", b"dir/a.txt"}
    place.write("dir/a.txt", b"two")
    run.after_program()
    (place.root / "dir/a.txt").unlink()
    (place.root / "dir").rmdir()
    (place.root / "dir").symlink_to(outside)
    with pytest.raises(ChangesConflictError):
        place.restore()
    with open_snapshots(place.store, create=False) as db:
        assert db is not None
        plan = plan_restore(db, place.tree, "run_1", None, overwrite=True)
    RestoreSteps(place.tree, partial(read_content, place.store), DirectoryLocks(), 0).run(plan.steps)
    assert secret.read_text() == "secret"


def test_snapshots_have_limits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old sets and the oldest of too many go, with their contents; a content that another set has stays."""
    monkeypatch.setattr(database, "MAX_SETS", 2)
    for n in range(5):
        Jail(place.root, place.run(f"run_{n}", NOW + n)).write(("a.txt",), os.urandom(1000))
    with open_snapshots(place.store, create=False) as db:
        assert db is not None
        assert [item.id for item in db.sets()] == ["run_4", "run_3", "run_2"]
        assert 3000 < db.stored() < 4500
    Jail(place.root, place.run("run_9", NOW + database.MAX_AGE + 10)).write(("a.txt",), b"x")
    with open_snapshots(place.store, create=False) as db:
        assert db is not None
        assert [item.id for item in db.sets()] == ["run_9"]
    database.expire_snapshots(place.store, (place.store / database.FILE).stat().st_mtime + database.MAX_AGE + 1)
    assert not place.store.exists()


def test_a_tool_works_without_its_snapshots(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """If they cannot be written, the log says so, and the file is written."""
    place.store.parent.parent.mkdir()
    place.store.parent.write_text("in the way")
    Jail(place.root, place.run()).write(("a.txt",), b"x")
    assert (place.root / "a.txt").read_bytes() == b"x"
    assert "were not recorded" in caplog.text


def test_a_scan_reads_only_what_has_changed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were not touched for some seconds are not read again."""
    for n in range(5):
        place.write(f"{n}.txt", b"x")
    monkeypatch.setattr(tree_scan, "_FRESH", -(10**18))
    read: list[bytes] = []
    real: Any = states.read_state

    def count(directory: int, name: bytes) -> Any:
        read.append(name)
        return real(directory, name)

    monkeypatch.setattr(tree_scan, "read_state", count)
    place.run().before_program()
    assert len(read) == 5
    place.write("3.txt", b"y")
    place.run().after_program()
    assert read[5:] == [b"3.txt"]
    assert set(place.changes()) == {"3.txt"}
    assert recorder.MAX_CHANGES > 1
