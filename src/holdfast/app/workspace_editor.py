"""Changes the directory that a session's agent works in, for the page and the API, in the worker threads of
`session_workspaces`. What may be changed: `tools.workspace.changes`; the trash: `tools.workspace.trash`."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import anyio
from anyio import to_thread

from holdfast.agents.chat.workspaces import session_trash
from holdfast.app.session_workspaces import SessionWorkspaces
from holdfast.core.errors import QuotaExceededError
from holdfast.core.file_names import parse_path
from holdfast.core.session import Session
from holdfast.ports.workspace import TrashedItem, WorkspaceEntry, WorkspaceFile
from holdfast.tools.workspace import changes
from holdfast.tools.workspace.trash import SessionTrash
from holdfast.tools.workspace.tree import Names, WorkspaceTree

_UPLOADS: Final = 4  # At the same time
_CHUNK: Final = 1024 * 1024  # Bytes that are written at a time


@dataclass(frozen=True, slots=True)
class SessionWorkspaceEditor:
    """`ports.workspace.WorkspaceEditor`."""

    files: SessionWorkspaces
    now: Callable[[], float]
    reserve: int  # Bytes of a disk that stay free
    locks: changes.DirectoryLocks = field(default_factory=changes.DirectoryLocks)
    slots: set[int] = field(default_factory=partial(set, range(_UPLOADS)))  # Numbers of uploads that may begin

    async def save(self, session: Session, path: str, text: str, etag: str | None) -> WorkspaceFile:
        names = parse_path(path)
        return await self.files.change(
            session, path, lambda tree: changes.save_text(tree, names, text, etag, self.locks, self.reserve)
        )

    async def create(self, session: Session, path: str, kind: Literal["directory", "file"]) -> WorkspaceEntry:
        names = parse_path(path)
        return await self.files.change(session, path, lambda tree: changes.create_entry(tree, names, kind))

    async def move(self, session: Session, path: str, to: str) -> WorkspaceEntry:
        names, target = parse_path(path), parse_path(to)
        return await self.files.change(session, path, lambda tree: changes.move_entry(tree, names, target))

    async def upload(self, session: Session, path: str, chunks: AsyncIterator[bytes]) -> WorkspaceEntry:
        names, opened = parse_path(path), _OpenedUpload()
        with self._slot() as slot:
            threads = self.files.threads
            try:
                file = await self.files.change(session, path, lambda tree: opened.open(tree, names, slot, self.reserve))
                pending = bytearray()
                async for chunk in chunks:
                    pending += chunk
                    if len(pending) >= _CHUNK:
                        await to_thread.run_sync(file.write, bytes(pending), limiter=threads)
                        pending.clear()
                await to_thread.run_sync(file.write, bytes(pending), limiter=threads)
                return await to_thread.run_sync(file.finish, limiter=threads)
            finally:
                if opened.is_open:  # otherwise no thread may be free
                    with anyio.CancelScope(shield=True):
                        await to_thread.run_sync(opened.close, limiter=threads)

    async def delete(self, session: Session, path: str) -> TrashedItem:
        names, trash = parse_path(path), self._trash(session)
        return await self.files.change(session, path, lambda tree: trash.put(tree, names, self.now(), self.reserve))

    async def trash(self, session: Session) -> Sequence[TrashedItem]:
        return await self.files.change(session, "", lambda _: self._trash(session).items(self.now()))

    async def restore(self, session: Session, tid: str) -> WorkspaceEntry:
        trash = self._trash(session)
        return await self.files.change(session, tid, lambda tree: trash.restore(tree, tid, self.reserve))

    async def erase_trash(self, session: Session, tid: str | None) -> int:
        trash = self._trash(session)
        return await self.files.change(session, tid or "", lambda _: trash.erase(tid))

    def _trash(self, session: Session) -> SessionTrash:
        return session_trash(self.files.data_dir, session.id)

    @contextmanager
    def _slot(self) -> Iterator[int]:
        if not self.slots:
            raise QuotaExceededError("uploads", _UPLOADS, "Wait for one to finish.")
        slot = self.slots.pop()
        try:
            yield slot
        finally:
            self.slots.add(slot)


class _OpenedUpload:
    """Closes an upload once, whether it was opened before nobody waited for it any more, or after."""

    def __init__(self) -> None:
        self._files: list[changes.WorkspaceUpload] = []

    @property
    def is_open(self) -> bool:
        return bool(self._files)

    def open(self, tree: WorkspaceTree, names: Names, slot: int, reserve: int) -> changes.WorkspaceUpload:
        file = changes.WorkspaceUpload(tree, names, slot, reserve)
        self._files.append(file)
        if tree.is_abandoned.is_set():
            self.close()
        return file

    def close(self) -> None:
        with suppress(IndexError):  # closed already, or not opened
            self._files.pop().close()
