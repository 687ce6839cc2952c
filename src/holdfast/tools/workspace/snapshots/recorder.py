"""Records what a run changes in a directory: the state of a file before our own tools write it, and of all files before
a program runs and after it. Everything is durable before the change. What cannot be kept is recorded with the reason.

Not guaranteed: what other programs write to the same directory while a program of the run works counts as the run's."""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.core.errors import (
    HoldfastError,
    PathNotChangedError,
    PathNotFoundError,
    PathRefusedError,
    WorkspaceUnavailableError,
)
from holdfast.tools.workspace.snapshots.database import SeenFile, SnapshotDatabase, open_snapshots
from holdfast.tools.workspace.snapshots.states import ABSENT, FileState, digest_of, read_state
from holdfast.tools.workspace.snapshots.tree_scan import TreeScan, TreeScanner
from holdfast.tools.workspace.tree import Names, WorkspaceTree

log = logging.getLogger("holdfast.tools")

MAX_CHANGES: Final = 5000  # Of one scan
_DIRECTORY: Final = FileState("directory")


@dataclass(frozen=True, slots=True)
class RunChanges:
    """`ports.tool.ChangeRecorder`. A failure is logged and does not keep the tool from working: its changes are then
    not recorded."""

    directory: Path  # Of the session's snapshots
    tree: WorkspaceTree
    run: str
    now: Callable[[], float]
    reserve: int  # Bytes of the disk that stay free

    def before_write(self, names: Names, data: bytes) -> None:
        with self._attempt(), open_snapshots(self.directory, create=True) as db:
            assert db is not None
            self._begin(db)
            for n in range(1, len(names)):
                if self._read(names[:n])[0].kind == "absent":
                    db.put_change(self.run, b"/".join(names[:n]), ABSENT, _DIRECTORY)
            before, content = self._read(names)
            after = FileState("file", before.mode, len(data), digest_of(data))
            self._put(db, names, self._keep(db, before, content), self._keep(db, after, data))

    def after_write(self, names: Names) -> None:
        """Adds the mode that a new file got."""
        with self._attempt(), open_snapshots(self.directory, create=True) as db:
            assert db is not None
            change = db.change(self.run, b"/".join(names))
            if change is not None and change.after.mode is None:
                after, content = self._read(names)
                self._put(db, names, change.before, self._keep(db, after, content))

    def before_program(self) -> None:
        with self._attempt(), open_snapshots(self.directory, create=True) as db:
            assert db is not None
            self._begin(db)
            compare_unfinished(db, self.tree)
            scan = self._scan(db)
            if scan.problem is not None:
                note = (
                    f"{scan.problem[:1].upper()}{scan.problem[1:]}, so what commands and programs changed is not known."
                )
                db.add_note(self.run, note)
            db.set_scanning(self.run, scanning=scan.problem is None)

    def after_program(self) -> None:
        with self._attempt(), open_snapshots(self.directory, create=True) as db:
            assert db is not None
            compare_unfinished(db, self.tree)

    # ---- parts ----

    def _begin(self, db: SnapshotDatabase) -> None:
        now = self.now()
        db.begin_set(self.run, "run", os.fspath(self.tree.root), now)
        db.prune(now, keep=self.run)

    def _read(self, names: Names) -> tuple[FileState, bytes | None]:
        return read_path(self.tree, names)

    def _keep(self, db: SnapshotDatabase, state: FileState, data: bytes | None) -> FileState:
        if data is None:
            return state
        room = os.statvfs(self.directory)
        has_room = room.f_bavail * room.f_frsize - len(data) >= self.reserve
        return db.keep(state, data) if has_room else without_room(state)

    def _put(self, db: SnapshotDatabase, names: Names, before: FileState, after: FileState) -> None:
        db.put_change(self.run, b"/".join(names), before, after)

    def _scan(self, db: SnapshotDatabase) -> TreeScan:
        before = db.seen()
        scan = TreeScanner(self.tree, before, lambda *state: self._keep(db, *state)).scan()
        db.replace_seen(before, scan.files)
        return scan

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, HoldfastError):
            log.warning("changes of run %s were not recorded", self.run, exc_info=True)


def read_path(tree: WorkspaceTree, names: Names) -> tuple[FileState, bytes | None]:
    """Without following links; what is behind one is not there."""
    try:
        with tree.parent(names) as parent:
            return read_state(parent, names[-1])
    except (PathNotFoundError, PathNotChangedError, PathRefusedError, WorkspaceUnavailableError):
        return ABSENT, None


def without_room(state: FileState) -> FileState:
    why = state.why or "the disk of the server was almost full"
    return FileState(state.kind, state.mode, state.size, state.digest, state.stamp, why)


def compare_unfinished(db: SnapshotDatabase, tree: WorkspaceTree) -> None:
    """Records what changed since the last scan for the runs that had started a program then: at its end, or after a
    crash."""
    root = os.fspath(tree.root)
    waiting = [item for item in db.sets() if item.scanning and item.root == root]
    if not waiting:
        return
    before = db.seen()
    scan = TreeScanner(tree, before, db.keep).scan()
    for item in waiting:
        _record(db, item.id, before, scan)
        db.set_scanning(item.id, scanning=False)
    db.replace_seen(before, scan.files)


def _record(db: SnapshotDatabase, sid: str, before: dict[bytes, SeenFile], scan: TreeScan) -> None:
    if scan.problem is not None:
        db.add_note(sid, f"{scan.problem[:1].upper()}{scan.problem[1:]}, so not all changes are known.")
        gone: list[bytes] = []
    else:
        gone = [path for path in before if path not in scan.files]
    none = SeenFile("", ABSENT)
    pairs = [(path, before.get(path, none).state, item.state) for path, item in scan.files.items()]
    pairs += [(path, before[path].state, ABSENT) for path in gone]
    changed = [pair for pair in pairs if not pair[1].same_as(pair[2])]
    if len(changed) > MAX_CHANGES:
        db.add_note(sid, f"More than {MAX_CHANGES:,} files changed at once; {MAX_CHANGES:,} of them are listed.")
    for path, old, new in sorted(changed)[:MAX_CHANGES]:
        db.put_change(sid, path, old, new)
