"""A look at a data directory from outside, also while a server uses it. Nothing is changed.

Never call it in the process that serves the directory: closing its files by other means than SQLite's drops locks.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from holdfast.core.errors import HoldfastError
from holdfast.storage import disk
from holdfast.storage.keys import KeyFile
from holdfast.storage.seen import Seen
from holdfast.storage.sqlite import database, schema
from holdfast.storage.sqlite.datadir import lock_holder
from holdfast.storage.sqlite.schema import Migration

RESERVE: Final = 512 * 1024 * 1024
_PRIVATE: Final = ("holdfast.db", "journal.db", "keys.json", "server.json")


def examine(path: Path) -> Sequence[Seen]:
    if not path.is_dir():
        return [Seen("data directory", True, f"{path} is not there yet; the first start makes it")]
    return [*_directory(path), *_store(path), *_journal(path), *_room(path)]


def _directory(path: Path) -> Iterator[Seen]:
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    yield Seen("mode", not mode & 0o077, f"{path} is {mode:04o}" + ("" if not mode & 0o077 else "; chmod 700 it"))
    mine = status.st_uid == os.geteuid()
    yield Seen("owner", mine, "this user" if mine else f"user {status.st_uid}, not this one ({os.geteuid()})")
    for name in _PRIVATE:
        file = path / name
        if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
            yield Seen(name, False, f"others can read it; chmod 600 {file}")
    holder = lock_holder(path)
    yield Seen("lock", True, "nobody uses the directory" if holder is None else f"in use by process {holder}")
    try:
        if (path / "keys.json").exists():
            keyring = KeyFile(path).read()
            word = "a password is set" if keyring.password else "no password"
            yield Seen("keys", True, f"{word}, {len(keyring.tokens)} tokens")
    except HoldfastError as error:
        yield Seen("keys", False, str(error))


def _store(path: Path) -> Iterator[Seen]:
    file = path / "holdfast.db"
    if not file.exists():
        yield Seen("holdfast.db", True, "not there yet")
        return
    try:
        yield from _whole(file, schema.STORE)
        with closing(_open(file)) as db:
            counts = {table: _one(db, f"SELECT count(*) FROM {table}") for table in ("sessions", "messages", "runs")}
            yield Seen("contents", True, ", ".join(f"{n} {table}" for table, n in counts.items()))
            opened = _one(db, "SELECT count(*) FROM runs WHERE status IN ('queued', 'running', 'waiting')")
            yield Seen("open runs", True, str(opened))
            pending = _one(db, "SELECT count(*) FROM runs WHERE recovery_state = 'pending'")
            text = "none" if not pending else f"{pending} runs whose output is still being looked for"
            yield Seen("pending recoveries", not pending, text)
            yield _contents(db, path / "files")
    except (sqlite3.Error, HoldfastError) as error:
        yield Seen("holdfast.db", False, str(error))


def _contents(db: sqlite3.Connection, root: Path) -> Seen:
    found = db.execute("SELECT sha256, max(size) FROM files GROUP BY sha256").fetchall()
    bad = 0
    for digest, size in found:
        file = root / digest[:2] / digest
        bad += not file.exists() or file.stat().st_size != size
    return Seen("files", not bad, f"{len(found)} contents" + (f", {bad} of them missing or cut short" if bad else ""))


def _journal(path: Path) -> Iterator[Seen]:
    file = path / "journal.db"
    if not file.exists():
        yield Seen("journal.db", True, "not there yet")
        return
    try:
        yield from _whole(file, schema.JOURNAL)
        with closing(_open(file)) as db:
            unsettled = _one(db, "SELECT count(*) FROM runs WHERE archived = 0 AND pruned = 0")
            yield Seen("journal", True, f"{unsettled} unsettled, {_one(db, 'SELECT count(*) FROM segments')} segments")
    except (sqlite3.Error, HoldfastError) as error:
        yield Seen("journal.db", False, str(error))


def _whole(file: Path, migrations: Sequence[Migration]) -> Iterator[Seen]:
    version = database.check(file, migrations)
    with closing(_open(file)) as db:
        (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    newest = len(migrations)
    older = "" if version == newest else f"; the next start brings it from version {version} to {newest}"
    text = f"version {version}, whole" if verdict == "ok" else f"damaged: {verdict}. Restore a backup"
    yield Seen(file.name, verdict == "ok", text + older)


def _room(path: Path) -> Iterator[Seen]:
    free = disk.free_bytes(path)
    if free is not None:
        enough = free >= RESERVE
        yield Seen("disk", enough, f"{free / 1e9:.1f} GB free" + ("" if enough else "; make room"))


def _open(file: Path) -> sqlite3.Connection:
    """Whoever has it open keeps a WAL beside it. Where there is none, `immutable` keeps SQLite from making one."""
    used = file.with_name(f"{file.name}-wal").exists()
    return sqlite3.connect(f"{file.absolute().as_uri()}?{'mode=ro' if used else 'immutable=1'}", uri=True, timeout=5.0)


def _one(db: sqlite3.Connection, sql: str) -> int:
    (value,) = db.execute(sql).fetchone()
    return int(value)
