"""The snapshots of one session: a small SQLite database beside its trash, with each content once.

Every transaction is synced before the change that it is for. What is too old or too much is dropped, the oldest change
sets first; a content goes with the last set that refers to it."""

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from holdfast.tools.workspace.private_directory import create_private_directory, remove_directory
from holdfast.tools.workspace.snapshots.states import FileState, parse_state

MAX_STORED: Final = 256 * 1024**2  # Bytes of a session's contents, compressed
MAX_SETS: Final = 200
MAX_AGE: Final = 30 * 24 * 3600.0  # Seconds
FULL: Final = f"the snapshots of this chat have reached {MAX_STORED >> 20} MB"
FILE: Final = "snapshots.db"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS objects (digest TEXT PRIMARY KEY, stored INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sets (id TEXT PRIMARY KEY, kind TEXT NOT NULL, root TEXT NOT NULL, created_at REAL NOT NULL,
  scanning INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '', undone TEXT);
CREATE TABLE IF NOT EXISTS changes (set_id TEXT NOT NULL REFERENCES sets ON DELETE CASCADE, path BLOB NOT NULL,
  before TEXT NOT NULL, before_digest TEXT, after TEXT NOT NULL, after_digest TEXT,
  PRIMARY KEY (set_id, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (path BLOB PRIMARY KEY, stamp TEXT NOT NULL, state TEXT NOT NULL, digest TEXT)
  WITHOUT ROWID;
PRAGMA user_version = 1;
"""
_ORPHANS: Final = """DELETE FROM objects WHERE digest NOT IN (
  SELECT before_digest FROM changes WHERE before_digest IS NOT NULL
  UNION SELECT after_digest FROM changes WHERE after_digest IS NOT NULL
  UNION SELECT digest FROM seen WHERE digest IS NOT NULL)"""

SetKind = Literal["run", "restore"]


@dataclass(frozen=True, slots=True)
class StoredSet:
    id: str
    kind: SetKind
    root: str
    created_at: float
    scanning: bool  # A program was started, and what it changed was not compared yet
    note: str
    undone: str | None  # The set that a restore undid


@dataclass(frozen=True, slots=True)
class StoredChange:
    path: bytes
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class SeenFile:
    stamp: str  # Changes when the file may have changed
    state: FileState


class SnapshotDatabase:
    """One transaction. Only `open_snapshots` makes it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._stored: int | None = None  # Counted once

    # ---- sets ----

    def sets(self) -> list[StoredSet]:
        """The newest first."""
        rows = self._db.execute("SELECT id, kind, root, created_at, scanning, note, undone FROM sets")
        found = [
            StoredSet(sid, kind, root, at, bool(open_), note, undone)
            for sid, kind, root, at, open_, note, undone in rows
        ]
        return sorted(found, key=lambda item: item.created_at, reverse=True)

    def find_set(self, sid: str) -> StoredSet | None:
        return next((item for item in self.sets() if item.id == sid), None)

    def begin_set(self, sid: str, kind: SetKind, root: str, now: float, undone: str | None = None) -> None:
        """Nothing, if it has begun already."""
        values = (sid, kind, root, now, undone)
        self._db.execute(
            "INSERT OR IGNORE INTO sets (id, kind, root, created_at, undone) VALUES (?, ?, ?, ?, ?)", values
        )

    def set_scanning(self, sid: str, *, scanning: bool) -> None:
        self._db.execute("UPDATE sets SET scanning = ? WHERE id = ?", (scanning, sid))

    def add_note(self, sid: str, note: str) -> None:
        self._db.execute("UPDATE sets SET note = ? WHERE id = ?", (note, sid))

    def changes(self, sid: str) -> list[StoredChange]:
        rows = self._db.execute("SELECT path, before, after FROM changes WHERE set_id = ? ORDER BY path", (sid,))
        return [StoredChange(path, parse_state(before), parse_state(after)) for path, before, after in rows]

    def change(self, sid: str, path: bytes) -> StoredChange | None:
        rows = self._db.execute("SELECT before, after FROM changes WHERE set_id = ? AND path = ?", (sid, path))
        row = rows.fetchone()
        return None if row is None else StoredChange(path, parse_state(row[0]), parse_state(row[1]))

    def put_change(self, sid: str, path: bytes, before: FileState, after: FileState) -> None:
        """Keeps the state before the first change of the set, and that after the last one."""
        values = (sid, path, before.to_json(), before.digest, after.to_json(), after.digest)
        self._db.execute(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
            "SET after = excluded.after, after_digest = excluded.after_digest",
            values,
        )

    # ---- contents ----

    def keep(self, state: FileState, data: bytes | None) -> FileState:
        """Stores a content, if there is room; otherwise the state says why it is not kept."""
        if data is None or state.digest is None or self.has(state.digest):
            return state
        packed = zlib.compress(data, 1)
        if self.stored() + len(packed) > MAX_STORED:
            return FileState(state.kind, state.mode, state.size, state.digest, why=FULL)
        self._stored = self.stored() + len(packed)
        self._db.execute("INSERT INTO objects VALUES (?, ?, ?)", (state.digest, len(packed), packed))
        return state

    def has(self, digest: str) -> bool:
        return self._db.execute("SELECT 1 FROM objects WHERE digest = ?", (digest,)).fetchone() is not None

    def content(self, state: FileState) -> bytes | None:
        row = self._db.execute("SELECT data FROM objects WHERE digest = ?", (state.digest,)).fetchone()
        return None if row is None else zlib.decompress(row[0])

    def stored(self) -> int:
        if self._stored is None:
            self._stored = int(self._db.execute("SELECT coalesce(sum(stored), 0) FROM objects").fetchone()[0])
        return self._stored

    # ---- what the last scan has seen ----

    def seen(self) -> dict[bytes, SeenFile]:
        rows = self._db.execute("SELECT path, stamp, state FROM seen")
        return {path: SeenFile(stamp, parse_state(state)) for path, stamp, state in rows}

    def replace_seen(self, before: Mapping[bytes, SeenFile], after: Mapping[bytes, SeenFile]) -> None:
        self._db.executemany("DELETE FROM seen WHERE path = ?", ((path,) for path in before if path not in after))
        changed = ((path, item) for path, item in after.items() if before.get(path) != item)
        rows = ((path, item.stamp, item.state.to_json(), item.state.digest) for path, item in changed)
        self._db.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", rows)

    # ---- limits ----

    def prune(self, now: float, keep: str) -> None:
        """Drops sets that are too old or too many, and the oldest ones while the contents are too large. Three
        quarters of the room are used again before the next ones go, so that this is rare."""
        sets = [item for item in self.sets() if item.id != keep]
        gone = [item for n, item in enumerate(sets) if n >= MAX_SETS or now - item.created_at > MAX_AGE]
        left = [item for item in sets if item not in gone]
        self._drop(gone)
        if self.stored() <= MAX_STORED * 7 // 8:
            return
        while left and self.stored() > MAX_STORED * 3 // 4:
            self._drop([left.pop()])

    def _drop(self, gone: list[StoredSet]) -> None:
        if gone:
            self._db.executemany("DELETE FROM sets WHERE id = ?", ((item.id,) for item in gone))
            self._db.execute(_ORPHANS)
            self._stored = None


def expire_snapshots(directory: Path, now: float) -> None:
    """Erases those of a session whose runs have changed nothing for long. Older sets of others go with new ones."""
    with suppress(OSError):
        if now - (directory / FILE).stat(follow_symlinks=False).st_mtime > MAX_AGE:
            remove_directory(directory)


@contextmanager
def open_snapshots(directory: Path, *, create: bool) -> Iterator[SnapshotDatabase | None]:
    """A transaction that is durable afterwards. None: there are no snapshots, and they are not to be created."""
    path = directory / FILE
    if not create and not path.exists():
        yield None
        return
    if create:
        create_private_directory(directory)
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=10.0, isolation_level=None)) as db:
        for pragma in ("synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}").close()
        if db.execute("PRAGMA user_version").fetchone() == (0,):
            db.execute("PRAGMA auto_vacuum = FULL").close()
            db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        db.execute("BEGIN IMMEDIATE")
        try:
            yield SnapshotDatabase(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
