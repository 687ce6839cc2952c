"""What runs changed in the directories of sessions: recorded for agents, and shown and undone for the page and the API,
in the worker threads of `session_workspaces`."""

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from holdfast.agents.chat.workspaces import WORKSPACES, session_snapshots, workspace
from holdfast.app.session_workspaces import SessionWorkspaces
from holdfast.core.errors import NotFoundError, WorkspaceUnavailableError
from holdfast.core.file_names import escape_path, parse_path
from holdfast.core.file_types import is_utf8_text
from holdfast.core.session import Session
from holdfast.engine.settings import EngineSettings
from holdfast.ports.agent import Turn
from holdfast.ports.tool import ChangeRecorder
from holdfast.ports.workspace import ChangedFile, ChangedFileDiff, ChangeSet, RestoredFiles
from holdfast.system import SystemClock
from holdfast.tools.workspace.changes import DirectoryLocks
from holdfast.tools.workspace.file_tools import diff
from holdfast.tools.workspace.snapshots.database import SnapshotDatabase, StoredChange, StoredSet, open_snapshots
from holdfast.tools.workspace.snapshots.recorder import RunChanges, compare_unfinished, read_path
from holdfast.tools.workspace.snapshots.restorer import RestoreSteps, plan_restore, read_content, record_restore
from holdfast.tools.workspace.tree import WorkspaceTree

T = TypeVar("T")

_MAX_LISTED: Final = 20_000  # Changes that are counted for a list of sets; older sets are left out
_NAMES: Final = 20  # That a set is listed with


def record_changes(data_dir: Path, turn: Turn, directory: Path | None) -> ChangeRecorder:
    """The recorder of a run. `directory`: where its program works; None: in the session's own directory."""
    sid = turn.session.id
    own = Path(os.path.realpath(data_dir / WORKSPACES)) / workspace(data_dir / WORKSPACES, sid).name
    root = own if directory is None else Path(os.path.realpath(directory))
    tree = WorkspaceTree(root, data_dir, own=root == own)
    reserve = EngineSettings().disk_reserve
    return RunChanges(session_snapshots(data_dir, sid), tree, turn.run.id, SystemClock().now, reserve)


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """`ports.workspace.WorkspaceHistory`."""

    workspaces: SessionWorkspaces
    now: Callable[[], float]
    reserve: int  # Bytes of a disk that stay free
    locks: DirectoryLocks = field(default_factory=DirectoryLocks)

    async def sets(self, session: Session, *, idle: bool) -> Sequence[ChangeSet]:
        def read(tree: WorkspaceTree, db: SnapshotDatabase) -> list[ChangeSet]:
            found: list[ChangeSet] = []
            left = _MAX_LISTED
            for item in db.sets():
                if left > 0 and item.root == str(tree.root):
                    changes = db.changes(item.id)
                    left -= len(changes)
                    found.append(_describe_set(item, changes))
            return [item for item in found if item.files or item.note]

        return await self._with(session, "", read, idle=idle, nothing=[])

    async def files(self, session: Session, set_id: str, *, idle: bool) -> Sequence[ChangedFile]:
        def read(tree: WorkspaceTree, db: SnapshotDatabase) -> list[ChangedFile]:
            _require_set(db, tree, set_id)
            return [_describe(db, change) for change in _differing(db.changes(set_id))]

        return await self._with(session, set_id, read, idle=idle)

    async def diff(self, session: Session, set_id: str, path: str) -> ChangedFileDiff:
        names = parse_path(path)

        def read(tree: WorkspaceTree, db: SnapshotDatabase) -> ChangedFileDiff:
            _require_set(db, tree, set_id)
            change = db.change(set_id, b"/".join(names))
            if change is None or change.before.same_as(change.after):
                raise NotFoundError("changed file", path)
            now, _ = read_path(tree, names)
            current: Literal["after", "before", "other"] = "other"
            if now.same_as(change.after):
                current = "after"
            elif now.same_as(change.before):
                current = "before"
            return ChangedFileDiff(_describe(db, change), _text_diff(db, change), current)

        return await self._with(session, set_id, read, idle=False)

    async def restore(
        self, session: Session, set_id: str, paths: Sequence[str] | None, *, overwrite: bool
    ) -> RestoredFiles:
        wanted = None if paths is None else {escape_path(parse_path(path)) for path in paths}
        directory = session_snapshots(self.workspaces.data_dir, session.id)

        def work(tree: WorkspaceTree) -> RestoredFiles:
            new_id = f"restore_{secrets.token_hex(8)}"
            with _opened(directory) as db:
                if db is None:
                    raise NotFoundError("change set", set_id)
                item = _require_set(db, tree, set_id)
                plan = plan_restore(db, tree, set_id, wanted, overwrite=overwrite)
                if plan.steps:
                    record_restore(db, new_id, item.id, item.root, plan, self.now())
            steps = RestoreSteps(tree, partial(read_content, directory), self.locks, self.reserve)
            steps.run(plan.steps)
            skipped = (*plan.skipped, *steps.failed)
            return RestoredFiles(new_id if plan.steps else None, tuple(sorted(steps.restored)), tuple(skipped))

        await self.sets(session, idle=True)  # what a crash left open is compared first
        return await self.workspaces.change(session, set_id, work)

    async def _with(
        self,
        session: Session,
        set_id: str,
        read: Callable[[WorkspaceTree, SnapshotDatabase], T],
        *,
        idle: bool,
        nothing: T | None = None,
    ) -> T:
        """Reads the snapshots. What a crash left open is compared first, when no run is at work."""
        directory = session_snapshots(self.workspaces.data_dir, session.id)

        def work(tree: WorkspaceTree) -> T:
            with _opened(directory) as db:
                if db is None:
                    if nothing is None:
                        raise NotFoundError("change set", set_id)
                    return nothing
                if idle:
                    compare_unfinished(db, tree)
                return read(tree, db)

        return await self.workspaces.change(session, "", work)


@contextmanager
def _opened(directory: Path) -> Iterator[SnapshotDatabase | None]:
    try:
        with open_snapshots(directory, create=False) as db:
            yield db
    except sqlite3.Error as error:
        raise WorkspaceUnavailableError(f"the recorded changes cannot be read ({error})") from None


def _require_set(db: SnapshotDatabase, tree: WorkspaceTree, set_id: str) -> StoredSet:
    found = db.find_set(set_id)
    if found is None or found.root != str(tree.root):
        raise NotFoundError("change set", set_id)
    return found


def _differing(changes: Sequence[StoredChange]) -> list[StoredChange]:
    """Files that differ, and folders whose mode does; those that came or went are told by what is in them."""
    return [
        change
        for change in changes
        if not change.before.same_as(change.after)
        and {change.before.kind, change.after.kind} != {"absent", "directory"}
    ]


def _describe_set(item: StoredSet, changes: Sequence[StoredChange]) -> ChangeSet:
    paths = [escape_path(tuple(change.path.split(b"/"))) for change in _differing(changes)]
    return ChangeSet(item.id, item.kind, item.created_at, len(paths), tuple(paths[:_NAMES]), item.note, item.undone)


def _describe(db: SnapshotDatabase, change: StoredChange) -> ChangedFile:
    before, after = change.before, change.after
    lost = before.kind in ("file", "link") and (before.digest is None or not db.has(before.digest))
    return ChangedFile(
        escape_path(tuple(change.path.split(b"/"))),
        "created" if before.kind == "absent" else "deleted" if after.kind == "absent" else "modified",
        before.kind if after.kind == "absent" else after.kind,
        before.size if before.kind == "file" else None,
        after.size if after.kind == "file" else None,
        before.mode,
        after.mode,
        restorable=not lost and before.kind != "other",
        reason=(before.why or "its earlier content is no longer kept") if lost else before.why,
    )


def _text_diff(db: SnapshotDatabase, change: StoredChange) -> str | None:
    texts = []
    for state in (change.before, change.after):
        data = b"" if state.kind == "absent" else db.content(state)
        if data is None or not is_utf8_text(data):
            return None
        texts.append(data.decode("utf-8", "replace"))
    return diff(escape_path(tuple(change.path.split(b"/"))), *texts)
