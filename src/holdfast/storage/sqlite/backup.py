"""Backup of a data directory that is in use, to another data directory.

SQLite's backup API reads each database on one snapshot while writers continue. The process that serves the files must
not open them in any other way, because closing them would drop its locks. The store is copied first: if the journal is
newer than the store, its runs are simply settled again. `app.lifecycle` pauses erasure meanwhile.
Everything here blocks: call it on a worker thread.
"""

import hashlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.core.errors import InvalidInputError, StorageError, StorageUnavailableError
from holdfast.storage import filesystem
from holdfast.storage.file_store import path_of
from holdfast.storage.sqlite import database, database_upgrade, errors, schema
from holdfast.storage.sqlite.consistency import drop_unknown_runs
from holdfast.storage.sqlite.journal_writer import JournalWriter

Report = Callable[[str, int, int], None]
"""Called with the name of the current part, the amount copied, and the total. It may raise to stop the backup."""

STORE: Final = "holdfast.db"
JOURNAL: Final = "journal.db"
OTHER_FILES: Final = ("keys.json", "holdfast.toml")
WORKSPACES: Final = "workspaces"
"""The working directories of tools. A file that changes while it is copied has no defined content in the copy."""
_PAGES: Final = 2000
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupSummary:
    sessions: int
    messages: int
    runs: int
    files: int
    bytes: int


def copy(source: Path, target: Path, report: Report) -> BackupSummary:
    """Copy under a temporary name until the copy is complete and verified: `target` is a good backup or does not
    exist."""
    check_target(source, target)
    work = target.with_name(f".{target.name}.{secrets.token_hex(6)}.partial")
    try:
        with filesystem.translated(f"The backup cannot be written to {target}"):
            work.mkdir(mode=0o700)
            copied = _copy(source, work, report)
            work.rename(target)
            filesystem.sync_directory(target.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return copied


def check_target(source: Path, target: Path) -> None:
    if not target.is_absolute():
        raise InvalidInputError("path", f"{target} is not an absolute path")
    if target.resolve().is_relative_to(source.resolve()):
        raise InvalidInputError("path", f"{target} is inside the data directory; choose a path outside of it")
    if not target.parent.is_dir():
        raise InvalidInputError("path", f"the directory {target.parent} does not exist; create it first")
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise InvalidInputError("path", f"{target} already exists; choose a new or empty directory")


def _copy(source: Path, work: Path, report: Report) -> BackupSummary:
    counted = _database(source / STORE, work / STORE, report)
    if (source / JOURNAL).exists():
        _database(source / JOURNAL, work / JOURNAL, report)
        with errors.translated(work / JOURNAL), closing(_opened(work / JOURNAL)) as db:
            drop_unknown_runs(work / STORE, db)
    for name in OTHER_FILES:
        if (source / name).is_file():
            filesystem.write_private(work / name, (source / name).read_bytes())
    files = _contents(work / STORE)
    _copy_files(source / "files", work / "files", files, report)
    _copy_workspaces(source / WORKSPACES, work / WORKSPACES, report)
    report("verifying the copy", 0, 1)
    _verify(work, counted)
    report("verifying the copy", 1, 1)
    size = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    return BackupSummary(*counted, files=len(files), bytes=size)


def _database(source: Path, target: Path, report: Report) -> tuple[int, int, int]:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def progress(_: int, remaining: int, total: int) -> None:
        report(source.name, total - remaining, total)

    with errors.translated(source), closing(database.connect(source, read_only=True)) as old:
        # The open transaction keeps the snapshot: without it every commit would restart the copy.
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        counted = _count(old) if source.name == STORE else (0, 0, 0)
        with closing(sqlite3.connect(target, isolation_level=None)) as new:
            old.backup(new, pages=_PAGES, progress=progress, sleep=0)
            if source.name == STORE:
                # A restored copy must not pass for the file whose change numbers clients have.
                new.execute("DELETE FROM meta WHERE key IN ('generation', 'place')")
        old.execute("ROLLBACK")
    return counted


def _count(db: sqlite3.Connection) -> tuple[int, int, int]:
    tables = ("sessions", "messages", "runs")
    sessions, messages, runs = (db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    return sessions, messages, runs


def _contents(store: Path) -> dict[str, int]:
    """Digest and size of every content that a file row of the copy has."""
    with errors.translated(store), closing(_opened(store)) as db:
        return dict(db.execute("SELECT sha256, max(size) FROM files GROUP BY sha256").fetchall())


def _copy_files(source: Path, target: Path, wanted: dict[str, int], report: Report) -> None:
    total, done = sum(wanted.values()), 0
    for digest, size in wanted.items():
        old, new = path_of(source, digest), path_of(target, digest)
        if not old.exists():  # lost before: the copy is as good as its source
            continue
        for directory in (target, new.parent):
            directory.mkdir(mode=0o700, exist_ok=True)
        _copy_file(old, new, digest)
        done += size
        report("files", done, total)
    for directory in {path_of(target, digest).parent for digest in wanted if path_of(target, digest).exists()}:
        filesystem.sync_directory(directory)


def _copy_workspaces(source: Path, target: Path, report: Report) -> None:
    """Copy regular files, directories and symbolic links; skip everything else."""
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
        raise StorageUnavailableError(f"{old} is damaged: its content does not match its digest.")


def _verify(work: Path, counted: tuple[int, int, int]) -> None:
    for name, migrations in ((STORE, schema.STORE), (JOURNAL, schema.JOURNAL)):
        path = work / name
        if database_upgrade.check(path, migrations) is None:
            continue
        with errors.translated(path), closing(_opened(path)) as db:
            (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise StorageUnavailableError(f"The copy of {name} is damaged: {verdict}.")
            if name == STORE and _count(db) != counted:
                raise StorageError(f"The copy of {name} differs from its source.")
    if (work / JOURNAL).exists():
        journal = JournalWriter(work / JOURNAL)
        journal.open()  # reads every record of the log, as a server does
        journal.disconnect()


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)
