"""Restores files to their state before a change set. What is replaced is kept as a change set of its own, durable
before the first file is touched, so that a restore can be undone, also one that a crash cut short."""

import os
import stat
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.core.errors import ChangesConflictError, HoldfastError, NotFoundError
from holdfast.core.file_names import escape_path
from holdfast.tools.workspace.changes import DirectoryLocks, refusals, require_space, write_all
from holdfast.tools.workspace.snapshots.database import SnapshotDatabase, StoredChange, open_snapshots
from holdfast.tools.workspace.snapshots.recorder import read_path
from holdfast.tools.workspace.snapshots.states import FileState
from holdfast.tools.workspace.tree import Names, WorkspaceTree

_TEMPORARY: Final = b".holdfast-restore.tmp"
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
NOT_UNDOABLE: Final = "what is there now could not be kept, so this could not be undone"


@dataclass(frozen=True, slots=True)
class PlannedRestore:
    names: Names
    now: FileState
    target: FileState


@dataclass(frozen=True, slots=True)
class RestorePlan:
    steps: Sequence[PlannedRestore]
    skipped: Sequence[tuple[str, str]]  # Paths, with why they are left as they are


def plan_restore(
    db: SnapshotDatabase, tree: WorkspaceTree, sid: str, paths: Collection[str] | None, *, overwrite: bool
) -> RestorePlan:
    """Raises ChangesConflictError, before anything is changed, for files that are neither as the set left them nor as
    they were before it."""
    steps: list[PlannedRestore] = []
    skipped: list[tuple[str, str]] = []
    conflicts: list[str] = []
    for change in db.changes(sid):
        names = tuple(change.path.split(b"/"))
        shown = escape_path(names)
        if change.before.same_as(change.after) or (paths is not None and shown not in paths):
            continue
        now, data = read_path(tree, names)
        if now.same_as(change.before):
            continue
        if not now.same_as(change.after) and change.before.kind != "directory":
            conflicts.append(shown)
        kept = db.keep(now, data)
        why = _why_not(db, change, kept)
        if why is not None:
            skipped.append((shown, why))
            continue
        steps.append(PlannedRestore(names, kept, change.before))
    if conflicts and not overwrite:
        raise ChangesConflictError(tuple(conflicts))
    return RestorePlan(steps, skipped)


def _why_not(db: SnapshotDatabase, change: StoredChange, now: FileState) -> str | None:
    before = change.before
    if before.kind == "other" or now.kind == "other":
        return "it is a pipe, socket or device"
    if before.kind in ("file", "link") and (before.digest is None or not db.has(before.digest)):
        return f"its earlier content was not kept: {before.why or 'it was dropped since'}"
    if now.kind in ("file", "link") and (now.digest is None or not db.has(now.digest)):
        return NOT_UNDOABLE
    return None


class RestoreSteps:
    """Carries out a plan: first what is in the way goes, then directories, files and modes come."""

    def __init__(
        self, tree: WorkspaceTree, content: Callable[[FileState], bytes], locks: DirectoryLocks, reserve: int
    ) -> None:
        self.failed: list[tuple[str, str]] = []
        self.restored: list[str] = []
        self._tree = tree
        self._content = content
        self._locks = locks
        self._reserve = reserve

    def run(self, steps: Sequence[PlannedRestore]) -> None:
        deepest_first = sorted(steps, key=lambda step: len(step.names), reverse=True)
        failed: set[Names] = set()
        gone = [s for s in deepest_first if s.now.kind not in ("absent", s.target.kind)]
        for step in sorted(gone, key=lambda step: step.now.kind == "directory"):
            if not self._attempt(step, self._remove):
                failed.add(step.names)
        for step in reversed(deepest_first):
            if step.names in failed:
                continue
            act = {"directory": self._make_directory, "absent": _nothing}.get(step.target.kind, self._write)
            if not self._attempt(step, act):
                failed.add(step.names)
        for step in deepest_first:
            is_directory = step.target.kind == "directory"
            if step.names in failed or (is_directory and not self._attempt(step, self._set_directory_mode)):
                continue
            if {step.now.kind, step.target.kind} != {"absent", "directory"}:  # those are told by what is in them
                self.restored.append(escape_path(step.names))
        self._sync({step.names[:n] for step in steps for n in range(len(step.names))})

    def _sync(self, directories: set[Names]) -> None:
        """Makes new, renamed and removed names durable, once per directory. Those that are gone need nothing."""
        for names in directories:
            with suppress(OSError, HoldfastError), self._tree.directory(names) as fd:
                os.fsync(fd)

    def _attempt(self, step: PlannedRestore, act: Callable[[PlannedRestore], None]) -> bool:
        shown = escape_path(step.names)
        try:
            with refusals(shown):
                act(step)
        except HoldfastError as error:
            self.failed.append((shown, str(error)))
            return False
        return True

    def _remove(self, step: PlannedRestore) -> None:
        with self._tree.parent(step.names) as parent, suppress(FileNotFoundError):
            if step.now.kind == "directory":
                with suppress(OSError):  # something else is in it now, which stays
                    os.rmdir(step.names[-1], dir_fd=parent)
            else:
                os.unlink(step.names[-1], dir_fd=parent)

    def _make_directory(self, step: PlannedRestore) -> None:
        self._make_parents(step.names)
        with self._tree.parent(step.names) as parent, suppress(FileExistsError):
            os.mkdir(step.names[-1], 0o700, dir_fd=parent)

    def _make_parents(self, names: Names) -> None:
        for n in range(1, len(names)):
            with self._tree.parent(names[:n]) as parent, suppress(FileExistsError):
                os.mkdir(names[n - 1], 0o755, dir_fd=parent)

    def _set_directory_mode(self, step: PlannedRestore) -> None:
        if step.target.mode is None:
            return
        with self._tree.parent(step.names) as parent:
            fd = os.open(step.names[-1], _DIRECTORY, dir_fd=parent)
            try:
                os.fchmod(fd, step.target.mode)
            finally:
                os.close(fd)

    def _write(self, step: PlannedRestore) -> None:
        content = self._content(step.target)
        self._make_parents(step.names)
        with self._tree.parent(step.names) as parent, self._locks.hold(parent, escape_path(step.names)):
            with suppress(FileNotFoundError):
                os.unlink(_TEMPORARY, dir_fd=parent)
            try:
                if step.target.kind == "link":
                    os.symlink(content, _TEMPORARY, dir_fd=parent)
                else:
                    require_space(parent, len(content), self._reserve)
                    self._write_file(parent, content, step)
                self._require_unchanged(step)
                os.rename(_TEMPORARY, step.names[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(_TEMPORARY, dir_fd=parent)
                raise

    def _require_unchanged(self, step: PlannedRestore) -> None:
        """A directory that is there now is never replaced, and only what was kept is."""
        now, _ = read_path(self._tree, step.names)
        if not now.same_as(step.now) and now.kind != "absent":
            raise ChangesConflictError((escape_path(step.names),))

    def _write_file(self, parent: int, content: bytes, step: PlannedRestore) -> None:
        fd = os.open(_TEMPORARY, _CREATE, 0o600, dir_fd=parent)
        try:
            write_all(fd, content)
            with suppress(FileNotFoundError, PermissionError):
                like = os.stat(step.names[-1], dir_fd=parent, follow_symlinks=False)
                os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, stat.S_IMODE(step.target.mode if step.target.mode is not None else 0o644))
            os.fsync(fd)
        finally:
            os.close(fd)


def _nothing(_: PlannedRestore) -> None: ...


def record_restore(db: SnapshotDatabase, sid: str, of: str, root: str, plan: RestorePlan, now: float) -> None:
    """The change set that undoes this restore."""
    db.begin_set(sid, "restore", root, now, of)
    for step in plan.steps:
        db.put_change(sid, b"/".join(step.names), step.now, step.target)


def read_content(directory: Path, state: FileState) -> bytes:
    """A content that a plan needs: they are read one by one, because all together may be large."""
    with open_snapshots(directory, create=False) as db:
        data = None if db is None else db.content(state)
    if data is None:
        raise NotFoundError("snapshot", state.digest or "")
    return data
