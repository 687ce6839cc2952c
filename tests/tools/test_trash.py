"""The trash of a session: what is in it goes with time, and comes back from another disk."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.agents.chat.workspaces import WorkspaceDirectories, session_trash
from holdfast.core.errors import NotFoundError, PathNotChangedError, StorageFullError
from holdfast.core.ids import SessionId
from holdfast.tools.workspace import changes, content, transfer
from holdfast.tools.workspace.trash import MAX_AGE, SessionTrash
from holdfast.tools.workspace.tree import WorkspaceTree
from tests.harness import GUARD

NOW = 1_800_000_000.0


def tree(root: Path, data: Path) -> WorkspaceTree:
    return WorkspaceTree(Path(os.path.realpath(root)), data, own=False)


def test_what_was_deleted_long_ago_is_erased(tmp_path: Path) -> None:
    """After seven days an item is neither listed nor restored, and the next sweep erases it."""
    root, sid = tmp_path / "work", SessionId("ses_1")
    root.mkdir()
    (root / "a.txt").write_text("a")
    trash = session_trash(tmp_path / "data", sid)
    item = trash.put(tree(root, tmp_path / "data"), (b"a.txt",), NOW, 0)
    os.utime(trash.directory / item.id, (NOW, NOW))
    directories = WorkspaceDirectories(tmp_path / "data")
    directories.expire(NOW + MAX_AGE)
    assert trash.items(NOW + MAX_AGE) == [item]
    assert trash.items(NOW + MAX_AGE + 1) == []
    directories.expire(NOW + MAX_AGE + 1)
    assert list(trash.directory.iterdir()) == []
    with pytest.raises(NotFoundError):
        trash.restore(tree(root, tmp_path / "data"), item.id, 0)


def test_the_data_directory_cannot_be_taken_away(tmp_path: Path) -> None:
    """In a workspace above it, neither it nor a folder around it is moved or deleted."""
    data = tmp_path / "home" / "share" / "holdfast"
    data.mkdir(parents=True)
    work = tree(tmp_path / "home", data)
    for names in ((b"share",), (b"share", b"holdfast")):
        with pytest.raises(PathNotChangedError, match="data directory"):
            SessionTrash(data / "trash" / "x").put(work, names, NOW, 0)
        with pytest.raises(PathNotChangedError, match="data directory"):
            changes.move_entry(work, names, (b"elsewhere",))
    assert data.is_dir()


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    """A save that would use the reserve of the disk is refused, and the file stays as it is."""
    (tmp_path / "a.txt").write_text("old")
    work, locks = tree(tmp_path, tmp_path / "data"), changes.DirectoryLocks()
    etag = content.read_file_info(work, (b"a.txt",)).etag
    with pytest.raises(StorageFullError):
        changes.save_text(work, (b"a.txt",), "new", etag, locks, 1 << 60)
    assert os.listdir(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


@pytest.fixture
def two_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renames from one directory to another fail, as they do between file systems."""
    rename = os.rename

    def checked(source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if not os.path.samestat(os.fstat(src_dir_fd), os.fstat(dst_dir_fd)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", checked)


@pytest.mark.usefixtures("two_disks")
def test_from_another_disk_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, modes and links come back; what is too large or cannot be copied stays where it was."""
    root = tmp_path / "work"
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "dir" / "sub" / "run.sh").write_text("run")
    (root / "dir" / "sub" / "run.sh").chmod(0o750)
    (root / "dir" / "link").symlink_to("/etc/passwd")
    work, trash = tree(root, tmp_path / "data"), SessionTrash(tmp_path / "data" / "trash" / "x")
    item = trash.put(work, (b"dir",), NOW, 0)
    assert os.listdir(root) == []
    assert trash.restore(work, item.id, 0).path == "dir"
    assert (root / "dir" / "sub" / "run.sh").read_text() == "run"
    assert (root / "dir" / "sub" / "run.sh").stat().st_mode & 0o777 == 0o750
    assert os.readlink(root / "dir" / "link") == "/etc/passwd"
    with monkeypatch.context() as small:
        small.setattr(transfer, "MAX_COPIED", 2)
        with pytest.raises(PathNotChangedError, match="another disk"):
            trash.put(work, (b"dir",), NOW, 0)
    os.mkfifo(root / "dir" / "fifo")
    with pytest.raises(PathNotChangedError, match="pipe"):
        trash.put(work, (b"dir",), NOW, 0)
    assert sorted(os.listdir(root / "dir")) == ["fifo", "link", "sub"]
    assert os.listdir(root) == ["dir"]
    assert trash.items(NOW) == []


KILLED = """
import errno, os, sys
from pathlib import Path
from holdfast.tools.workspace import transfer
from holdfast.tools.workspace.trash import SessionTrash
from holdfast.tools.workspace.tree import WorkspaceTree
from tests.harness import GUARD

root, data, at = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
rename = os.rename

def across(source, target, *, src_dir_fd, dst_dir_fd):
    if not os.path.samestat(os.fstat(src_dir_fd), os.fstat(dst_dir_fd)):
        raise OSError(errno.EXDEV, "another disk")
    rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

def die(*_, **__):
    os._exit(9)

os.rename = across
setattr(*((transfer.os, "read") if at == "copying" else (transfer.shutil, "rmtree")), die)
SessionTrash(data / "trash" / "ses_1").put(WorkspaceTree(root, data, own=False), (b"dir",), 1.0, 0)
"""


@pytest.mark.parametrize("at", ["copying", "erasing the original"])
def test_a_deletion_that_was_killed_loses_nothing(tmp_path: Path, at: str) -> None:
    """X1: killed while it is copied to another disk, the folder is where it was; killed afterwards, it is in the
    trash. One that is under way is left alone."""
    root, data = Path(os.path.realpath(tmp_path)) / "work", tmp_path / "data"
    (root / "dir").mkdir(parents=True)
    (root / "dir" / "a.txt").write_text("precious")
    killed = subprocess.run([sys.executable, "-c", KILLED, root, data, at], timeout=GUARD, check=False)
    assert killed.returncode == 9
    assert not (root / "dir").exists()
    trash = session_trash(data, SessionId("ses_1"))
    (own,) = trash.directory.iterdir()
    with (own / "moving").open() as record:
        fcntl.flock(record, fcntl.LOCK_EX)
        WorkspaceDirectories(data).expire(NOW)
        assert not (root / "dir").exists()
    if at == "copying":
        (root / "dir").write_text("taken meanwhile")
    WorkspaceDirectories(data).expire(1.0)
    found = sorted(os.listdir(root))
    if at == "copying":
        assert found == ["dir", "dir (restored)"]
        assert (root / "dir (restored)" / "a.txt").read_text() == "precious"
        assert trash.items(1.0) == []
    else:
        assert found == []
        (item,) = trash.items(1.0)
        trash.restore(WorkspaceTree(root, data, own=False), item.id, 0)
        assert (root / "dir" / "a.txt").read_text() == "precious"


def test_nothing_is_restored_into_another_directory(tmp_path: Path) -> None:
    """After the chat has changed to another directory, the error names the one it was deleted in."""
    here, there, data = tmp_path / "here", tmp_path / "there", tmp_path / "data"
    for root in (here, there):
        root.mkdir()
    (here / "a.txt").write_text("a")
    trash = session_trash(data, SessionId("ses_1"))
    item = trash.put(tree(here, data), (b"a.txt",), NOW, 0)
    with pytest.raises(PathNotChangedError, match=r"deleted in .*/here"):
        trash.restore(tree(there, data), item.id, 0)
    assert os.listdir(there) == []
    trash.restore(tree(here, data), item.id, 0)
    assert os.listdir(here) == ["a.txt"]
