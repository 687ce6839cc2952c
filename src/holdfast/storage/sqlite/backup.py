"""A copy of a data directory that is in use, as another data directory.

SQLite's own backup interface reads each database on one snapshot, so that writers go on; no other way of opening the
files may be used in the process that serves them, because closing them would drop its locks. The store is copied
first: a journal that is newer than its store only settles again. Whoever calls sees to it that nothing is erased
meanwhile. Everything here blocks: call it on a worker thread.
"""

import hashlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from holdfast.core.errors import Invalid, StorageError, StorageUnavailable
from holdfast.core.values import dataclass
from holdfast.storage import disk
from holdfast.storage.files import place
from holdfast.storage.sqlite import database, errors, schema
from holdfast.storage.sqlite.journal_writer import JournalWriter

Report = Callable[[str, int, int], None]
"""What is being copied, how much of it is done, and of how much. It may raise to stop."""

STORE: Final = "holdfast.db"
JOURNAL: Final = "journal.db"
ALSO: Final = ("keys.json", "holdfast.toml")
WORKSPACES: Final = "workspaces"
"""Where tools have worked. They may be at it: what changes while it is copied is copied somehow."""
_PAGES: Final = 2000
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Copied:
    sessions: int
    messages: int
    runs: int
    files: int
    bytes: int


def copy(source: Path, target: Path, report: Report) -> Copied:
    """Under another name until it is whole and was looked through: at `target` there is a good backup or none."""
    check_target(source, target)
    work = target.with_name(f".{target.name}.{secrets.token_hex(6)}.partial")
    try:
        work.mkdir(mode=0o700)
        copied = _copy(source, work, report)
        work.rename(target)
        disk.sync_directory(target.parent)
    except OSError as error:
        raise disk.from_os(error, f"The backup cannot be written to {target}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return copied


def check_target(source: Path, target: Path) -> None:
    if not target.is_absolute():
        raise Invalid("path", f"{target} is not an absolute path")
    if target.resolve().is_relative_to(source.resolve()):
        raise Invalid("path", f"{target} is inside the data directory; choose a place outside")
    if not target.parent.is_dir():
        raise Invalid("path", f"the directory {target.parent} is not there; make it first")
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise Invalid("path", f"{target} is there already; a backup goes to a new or empty directory")


def _copy(source: Path, work: Path, report: Report) -> Copied:
    counted = _database(source / STORE, work / STORE, report)
    if (source / JOURNAL).exists():
        _database(source / JOURNAL, work / JOURNAL, report)
    for name in ALSO:
        if (source / name).is_file():
            disk.write_private(work / name, (source / name).read_bytes())
    files = _contents(work / STORE)
    _copy_files(source / "files", work / "files", files, report)
    _copy_workspaces(source / WORKSPACES, work / WORKSPACES, report)
    report("looking through the copy", 0, 1)
    _look_through(work, counted)
    report("looking through the copy", 1, 1)
    size = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    return Copied(*counted, files=len(files), bytes=size)


def _database(source: Path, target: Path, report: Report) -> tuple[int, int, int]:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def progress(_: int, remaining: int, total: int) -> None:
        report(source.name, total - remaining, total)

    with _speaking_of(source), closing(database.connect(source, reads_only=True)) as old:
        # The open transaction keeps the snapshot: without it every commit would make the copying begin anew.
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        counted = _count(old) if source.name == STORE else (0, 0, 0)
        with closing(sqlite3.connect(target, isolation_level=None)) as new:
            old.backup(new, pages=_PAGES, progress=progress, sleep=0)
            if source.name == STORE:
                # A restored copy must not be taken for the file whose change numbers clients have.
                new.execute("DELETE FROM meta WHERE key IN ('generation', 'place')")
        old.execute("ROLLBACK")
    return counted


def _count(db: sqlite3.Connection) -> tuple[int, int, int]:
    tables = ("sessions", "messages", "runs")
    sessions, messages, runs = (db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    return sessions, messages, runs


def _contents(store: Path) -> dict[str, int]:
    """Digest and size of every content that a row of the copy names."""
    with _speaking_of(store), closing(_opened(store)) as db:
        return dict(db.execute("SELECT sha256, max(size) FROM files GROUP BY sha256").fetchall())


def _copy_files(source: Path, target: Path, wanted: dict[str, int], report: Report) -> None:
    total, done = sum(wanted.values()), 0
    for digest, size in wanted.items():
        old, new = place(source, digest), place(target, digest)
        if not old.exists():  # lost before: the copy is as good as what it is of
            continue
        for directory in (target, new.parent):
            directory.mkdir(mode=0o700, exist_ok=True)
        _copy_file(old, new, digest)
        done += size
        report("files", done, total)
    for directory in {place(target, digest).parent for digest in wanted if place(target, digest).exists()}:
        disk.sync_directory(directory)


def _copy_workspaces(source: Path, target: Path, report: Report) -> None:
    """Plain files, directories and links as links; whatever else a tool has made is left out."""
    if not source.is_dir():
        return
    report(WORKSPACES, 0, 1)
    for at, directories, names in os.walk(source):
        there = target / Path(at).relative_to(source)
        there.mkdir(mode=0o700)
        for name in [*names, *(name for name in directories if (Path(at) / name).is_symlink())]:
            old = Path(at) / name
            with suppress(FileNotFoundError):
                if old.is_symlink():
                    (there / name).symlink_to(old.readlink())
                elif old.is_file():
                    shutil.copy2(old, there / name)
        report(WORKSPACES, 0, 1)
    report(WORKSPACES, 1, 1)


def _copy_file(old: Path, new: Path, digest: str) -> None:
    seen = hashlib.sha256()
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out, old.open("rb") as content:
        while chunk := content.read(_CHUNK):
            seen.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if seen.hexdigest() != digest:
        raise StorageUnavailable(f"{old} is damaged: its content is not the one it is named after.")


def _look_through(work: Path, counted: tuple[int, int, int]) -> None:
    for name, migrations in ((STORE, schema.STORE), (JOURNAL, schema.JOURNAL)):
        path = work / name
        if database.check(path, migrations) is None:
            continue
        with _speaking_of(path), closing(_opened(path)) as db:
            (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise StorageUnavailable(f"The copy of {name} is damaged: {verdict}.")
            if name == STORE and _count(db) != counted:
                raise StorageError(f"The copy of {name} has other rows than what it was made of.")
    if (work / JOURNAL).exists():
        journal = JournalWriter(work / JOURNAL, max_event_bytes=1)
        journal.open()  # as a server does: every record in the log is read
        journal.disconnect()


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)


@contextmanager
def _speaking_of(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise errors.from_sqlite(error, path) from error
