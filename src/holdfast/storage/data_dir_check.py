"""Checks of a data directory for `doctor`, also while a server uses it. Nothing is changed.

Never call it in the process that serves the directory: closing its files there would drop SQLite's locks.
"""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from holdfast.core.errors import HoldfastError
from holdfast.ports.health_check import CheckResult
from holdfast.storage import filesystem
from holdfast.storage.file_store import path_of
from holdfast.storage.key_file import KeyFile
from holdfast.storage.sql.sessions import COMPARISONS
from holdfast.storage.sqlite import database, database_upgrade, schema
from holdfast.storage.sqlite.consistency import count_unknown_runs
from holdfast.storage.sqlite.data_dir import lock_holder
from holdfast.storage.sqlite.schema import Migration

WARN_BELOW: Final = 512 * 1024 * 1024
_PRIVATE: Final = ("holdfast.db", "journal.db", "keys.json", "server.json")


def examine(path: Path) -> Sequence[CheckResult]:
    if not path.is_dir():
        return [CheckResult("data directory", True, f"{path} does not exist yet; the first start creates it")]
    return [
        *_directory(path),
        *_database(path / "holdfast.db", schema.STORE, partial(_store, path / "files")),
        *_database(path / "journal.db", schema.JOURNAL, _journal),
        *_agreement(path),
        *_room(path),
    ]


def _directory(path: Path) -> Iterator[CheckResult]:
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    yield CheckResult(
        "mode", not mode & 0o077, f"{path} is {mode:04o}" + ("" if not mode & 0o077 else "; run chmod 700")
    )
    mine = status.st_uid == os.geteuid()
    yield CheckResult("owner", mine, "this user" if mine else f"user {status.st_uid}, not this one ({os.geteuid()})")
    for name in _PRIVATE:
        file = path / name
        if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
            yield CheckResult(name, False, f"other users can read it; run chmod 600 {file}")
    holder = lock_holder(path)
    yield CheckResult("server", True, "not running" if holder is None else f"running (pid {holder})")
    try:
        if (path / "keys.json").exists():
            keyring = KeyFile(path).read()
            word = "password set" if keyring.password else "no password"
            tokens = len(keyring.tokens)
            yield CheckResult("access", True, f"{word}, {tokens} {'token' if tokens == 1 else 'tokens'}")
    except HoldfastError as error:
        yield CheckResult("access", False, str(error))


def _database(
    file: Path, migrations: Sequence[Migration], look: Callable[[sqlite3.Connection], Iterator[CheckResult]]
) -> Iterator[CheckResult]:
    """Checks that the file is intact, then what `look` finds in it."""
    if not file.exists():
        yield CheckResult(file.name, True, "does not exist yet")
        return
    try:
        version, newest = database_upgrade.check(file, migrations), len(migrations)
        with closing(database.connect_unchanged(file)) as db:
            (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            older = "" if version == newest else f"; the next start upgrades it from version {version} to {newest}"
            text = f"version {version}, intact" if verdict == "ok" else f"damaged: {verdict}. Restore a backup"
            yield CheckResult(file.name, verdict == "ok", text + older)
            yield from look(db)
    except (sqlite3.Error, HoldfastError) as error:
        yield CheckResult(file.name, False, str(error))


def _store(files: Path, db: sqlite3.Connection) -> Iterator[CheckResult]:
    counts = {table: _one(db, f"SELECT count(*) FROM {table}") for table in ("sessions", "messages", "runs")}
    compared = _one(db, "SELECT count(*) FROM sessions WHERE settings LIKE ?", COMPARISONS)
    counts["sessions"] -= compared
    text = ", ".join(f"{n} {table}" for table, n in counts.items())
    yield CheckResult("contents", True, text + (f", {compared} sessions of comparisons" if compared else ""))
    opened = _one(db, "SELECT count(*) FROM runs WHERE status IN ('queued', 'running', 'waiting')")
    yield CheckResult("open runs", True, str(opened))
    pending = _one(db, "SELECT count(*) FROM runs WHERE recovery_state = 'pending'")
    text = "none" if not pending else f"{pending} runs whose output is still being recovered"
    yield CheckResult("pending recoveries", not pending, text)
    found = db.execute("SELECT sha256, max(size) FROM files GROUP BY sha256").fetchall()
    contents = ((path_of(files, sha256), size) for sha256, size in found)
    bad = sum(not file.exists() or file.stat().st_size != size for file, size in contents)
    text = str(len(found)) + (f", {bad} of them missing or truncated" if bad else "")
    yield CheckResult("files", not bad, text)


def _journal(db: sqlite3.Connection) -> Iterator[CheckResult]:
    unsettled = _one(db, "SELECT count(*) FROM runs WHERE archived = 0 AND pruned = 0")
    segments = _one(db, "SELECT count(*) FROM segments")
    yield CheckResult("journal", True, f"{unsettled} unfinished runs, {segments} archived segments")


def _agreement(path: Path) -> Iterator[CheckResult]:
    unknown = count_unknown_runs(path / "holdfast.db", path / "journal.db")
    if unknown:
        text = (
            f"{unknown} runs of journal.db are not in holdfast.db, so its newest sessions are missing. Restore a backup"
        )
        yield CheckResult("store and journal", False, text)


def _room(path: Path) -> Iterator[CheckResult]:
    free = filesystem.free_bytes(path)
    if free is not None:
        enough = free >= WARN_BELOW
        yield CheckResult("disk", enough, f"{free / 1e9:.1f} GB free" + ("" if enough else "; free some disk space"))


def _one(db: sqlite3.Connection, sql: str, *values: str) -> int:
    (value,) = db.execute(sql, values).fetchone()
    return int(value)
