"""Finds the directory that a session's agent works in, and reads it for the page and the API, in worker threads. Which
directories may be chosen: `agents.acp.directories`; which paths inside can be opened: `tools.workspace.tree`."""

import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
from anyio import CapacityLimiter

from holdfast.agents.chat.workspaces import WORKSPACES, workspace
from holdfast.app.bounded_threads import run_bounded
from holdfast.core.errors import (
    HoldfastError,
    InvalidInputError,
    PathRefusedError,
    QuotaExceededError,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)
from holdfast.core.file_names import archive_name, parse_path
from holdfast.core.session import Session
from holdfast.ports.workspace import (
    Position,
    WorkspaceFile,
    WorkspaceLocation,
    WorkspaceOrigin,
    WorkspacePage,
    WorkspacePaths,
    WorkspacePreview,
)
from holdfast.server.context import AgentPrograms
from holdfast.tools.workspace import archive, content, listing, path_search
from holdfast.tools.workspace.tree import WorkspaceTree, reason_of

T = TypeVar("T")

_SECONDS: Final = 20.0  # A disk or a network file system that takes longer is not waited for
_THREADS: Final = 4  # However slow the files are, other work has the other threads: see `bounded_threads`
_ARCHIVES: Final = 2
_NONE_YET: Final = "the agent has not worked with files in this chat yet"
_ELSEWHERE: Final = (
    "this server of the cluster does not have them. They are on the server that ran the agent, if it worked with files"
)


@dataclass(frozen=True, slots=True)
class SessionWorkspaces:
    """`ports.workspace.Workspaces`."""

    data_dir: Path
    programs: AgentPrograms | None
    is_cluster: bool
    threads: CapacityLimiter = field(default_factory=partial(CapacityLimiter, _THREADS))
    archives: CapacityLimiter = field(default_factory=partial(CapacityLimiter, _ARCHIVES))

    async def locate(self, session: Session) -> WorkspaceLocation:
        directory = Path(session.cwd or "")
        origin: WorkspaceOrigin = "chosen"
        try:
            directory, origin = await self._directory(session)
            await self._open(directory, origin)
        except WorkspaceUnavailableError as error:
            return WorkspaceLocation(str(directory), origin, available=False, reason=error.reason)
        return WorkspaceLocation(str(directory), origin, available=True, reason=None)

    async def _directory(self, session: Session) -> tuple[Path, WorkspaceOrigin]:
        try:
            found = None if self.programs is None else await self.programs.directory(session)
        except InvalidInputError as error:
            raise WorkspaceUnavailableError(error.problem) from None
        return found or (workspace(self.data_dir / WORKSPACES, session.id), "private")

    async def _open(self, directory: Path, origin: WorkspaceOrigin) -> WorkspaceTree:
        def find() -> WorkspaceTree:
            own = origin == "private"
            if own and not directory.is_dir():
                raise WorkspaceUnavailableError(_ELSEWHERE if self.is_cluster else _NONE_YET)
            tree = WorkspaceTree(_real_parent(directory) if own else _real(directory), self.data_dir, own)
            with tree.directory(()):
                return tree

        return await self._run(find)

    async def _tree(self, session: Session) -> WorkspaceTree:
        """Checked with every call: the rules, the disk or the server may be others by now."""
        return await self._open(*await self._directory(session))

    async def change(self, session: Session, path: str, work: Callable[[WorkspaceTree], T]) -> T:
        """Does work on the session's tree in a thread. `path`: what its errors name. If nobody waits for it any more,
        the tree says so to what has not been changed yet (`WorkspaceTree.require_wanted`)."""
        tree = await self._tree(session)
        try:
            return await self._run(lambda: work(tree), path)
        except WorkspaceTimeoutError as error:
            reason = f"{error.reason}; the change may or may not have been made. Reload before retrying"
            raise WorkspaceTimeoutError(reason) from None
        finally:
            tree.is_abandoned.set()

    async def entries(
        self, session: Session, path: str, *, hidden: bool, containing: str, limit: int, after: Position | None
    ) -> WorkspacePage:
        names, tree = parse_path(path), await self._tree(session)
        stop = threading.Event()
        options = {"hidden": hidden, "containing": containing, "limit": limit, "after": after, "stop": stop}
        try:
            return await self._run(lambda: listing.list_entries(tree, names, **options), path)  # type: ignore[arg-type]
        finally:
            stop.set()

    async def find(self, session: Session, query: str, limit: int) -> WorkspacePaths:
        tree, stop = await self._tree(session), threading.Event()
        try:
            return await self._run(lambda: path_search.find_paths(tree, query, limit, stop))
        finally:
            stop.set()

    async def file(self, session: Session, path: str) -> WorkspaceFile:
        names, tree = parse_path(path), await self._tree(session)
        return await self._run(lambda: content.read_file_info(tree, names), path)

    async def preview(self, session: Session, path: str, limit: int) -> WorkspacePreview:
        names, tree = parse_path(path), await self._tree(session)
        return await self._run(lambda: content.read_preview(tree, names, limit), path)

    async def content(self, session: Session, file: WorkspaceFile, start: int, end: int) -> AsyncGenerator[bytes, None]:
        tree = await self._tree(session)
        chunks = content.read_chunks(tree, parse_path(file.path), file.etag, start, end)
        async with aclosing(self._stream(chunks, file.path)) as stream:
            async for chunk in stream:
                yield chunk

    async def archive(self, session: Session, path: str) -> tuple[str, AsyncIterator[bytes]]:
        names, tree = parse_path(path), await self._tree(session)
        stop = threading.Event()
        try:
            await self._run(lambda: archive.check_size(tree, names, stop), path)
        finally:
            stop.set()
        name = archive_name(names[-1] if names else os.fsencode(tree.root.name) if not tree.own else b"workspace")
        return f"{name}.zip", self._archive(archive.zip_chunks(tree, names), path)

    async def _archive(self, chunks: Iterator[bytes], path: str) -> AsyncIterator[bytes]:
        with _taken(self.archives):
            async with aclosing(self._stream(chunks, path)) as stream:
                async for chunk in stream:
                    yield chunk

    async def _stream(self, chunks: Iterator[bytes], path: str) -> AsyncGenerator[bytes, None]:
        """A generator's pieces, each made in a thread, where it is also closed. After the first one, every error is
        EOFError: what was sent is not complete."""
        source = _ClosableChunks(chunks)
        is_sent = False
        try:
            while chunk := await self._run(source.take, path):
                yield chunk
                is_sent = True
        except (EOFError, HoldfastError) as error:
            if is_sent:
                raise EOFError from error
            if isinstance(error, HoldfastError):
                raise
            raise PathRefusedError(path, "it is being changed; try again") from None
        finally:
            with anyio.move_on_after(_SECONDS, shield=True):
                await run_bounded(self.threads, source.close)

    async def _run(self, work: Callable[[], T], path: str = "") -> T:
        try:
            with anyio.fail_after(_SECONDS):
                return await run_bounded(self.threads, work)
        except TimeoutError:
            raise WorkspaceTimeoutError(f"did not answer within {_SECONDS:.0f} seconds") from None
        except OSError as error:
            raise PathRefusedError(path, reason_of(error)) from None


class _ClosableChunks:
    """Closes a generator, if need be in the thread in which it is still running."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._runs = threading.Lock()
        self._is_closed = False

    def take(self) -> bytes:
        try:
            with self._runs:
                return next(self._chunks, b"")
        finally:
            if self._is_closed:
                self.close()

    def close(self) -> None:
        self._is_closed = True  # before the lock is tried: `take` looks after it has released it
        if self._runs.acquire(blocking=False):
            try:
                self._chunks.close()  # type: ignore[attr-defined]
            finally:
                self._runs.release()


def _real_parent(directory: Path) -> Path:
    """The session's own directory is never a link, but the way to the data directory may contain some."""
    return _real(directory.parent) / directory.name


def _real(directory: Path) -> Path:
    try:
        return Path(os.path.realpath(directory, strict=True))
    except OSError:
        raise WorkspaceUnavailableError(f"there is no directory {directory} on this server") from None


@contextmanager
def _taken(limiter: CapacityLimiter) -> Iterator[None]:
    borrower = object()
    try:
        limiter.acquire_on_behalf_of_nowait(borrower)
    except anyio.WouldBlock:
        raise QuotaExceededError("downloads of folders", _ARCHIVES, "Wait for one to finish.") from None
    try:
        yield
    finally:
        limiter.release_on_behalf_of(borrower)
