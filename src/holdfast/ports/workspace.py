"""The workspace ports: read and change the directory that a session's agent works in. Paths are those of
`core.file_names`.

Each call may raise WorkspaceUnavailableError, PathNotFoundError and PathRefusedError.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from holdfast.core.session import Session

EntryKind = Literal["directory", "file", "link", "other"]
StateKind = Literal["absent", "directory", "file", "link", "other"]
WorkspaceOrigin = Literal["private", "chosen", "agent"]
"""Who decided: nobody, the session's settings, or the agent's."""
Position = tuple[int, str]
"""Where a page of entries ends: 0 for a directory or 1 for anything else, and the path's last name."""


@dataclass(frozen=True, slots=True)
class WorkspaceLocation:
    directory: str
    origin: WorkspaceOrigin
    available: bool
    reason: str | None  # Why it is not


@dataclass(frozen=True, slots=True)
class WorkspaceEntry:
    name: str
    path: str
    kind: EntryKind
    target: Literal["directory", "file"] | None  # What a link leads to, if that is inside
    size: int | None  # Of a file
    modified_at: float


@dataclass(frozen=True, slots=True)
class WorkspacePage:
    path: str
    items: tuple[WorkspaceEntry, ...]
    end: Position | None  # None: there are no more
    total: int  # All that match, on every page
    complete: bool  # False: the directory has more entries than are looked at


@dataclass(frozen=True, slots=True)
class WorkspacePaths:
    """What was found by a part of its path, the best matches first."""

    items: tuple[WorkspaceEntry, ...]
    complete: bool  # False: there are more files than are looked at


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    name: str
    path: str
    size: int
    modified_at: float
    media_type: str  # Detected from the content; the name only tells kinds of text apart
    is_text: bool
    etag: str  # Changes with the content, as far as the file's time and size tell


@dataclass(frozen=True, slots=True)
class WorkspacePreview:
    file: WorkspaceFile
    text: str | None  # None: binary
    truncated: bool
    editable: bool  # The text is complete, and saving it unchanged would leave the same bytes


@dataclass(frozen=True, slots=True)
class TrashedItem:
    """A deleted file or folder that can still be restored."""

    id: str
    path: str  # Where it was
    kind: Literal["directory", "file", "link"]
    size: int  # Of everything in it
    deleted_at: float


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What one run changed, or one restore."""

    id: str  # Of the run, or of the restore
    kind: Literal["run", "restore"]
    created_at: float
    files: int  # That differ; folders do not count
    names: tuple[str, ...]  # Of the first files
    note: str  # Why changes may be missing; empty if none are
    undone: str | None  # The set that a restore undid


@dataclass(frozen=True, slots=True)
class ChangedFile:
    path: str
    kind: Literal["created", "modified", "deleted"]
    what: StateKind  # Of the state that it has, or had if it was deleted
    before_size: int | None
    after_size: int | None
    before_mode: int | None
    after_mode: int | None
    restorable: bool
    reason: str | None  # Why it is not


@dataclass(frozen=True, slots=True)
class ChangedFileDiff:
    file: ChangedFile
    diff: str | None  # Unified; None: a content is not text, or was not kept
    current: Literal["after", "before", "other"]  # Which state the file has now


@dataclass(frozen=True, slots=True)
class RestoredFiles:
    id: str | None  # Of the change set that undoes it; None if nothing was restored
    restored: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]  # Paths, with the reasons


class Workspaces(Protocol):
    async def locate(self, session: Session) -> WorkspaceLocation: ...
    async def entries(
        self, session: Session, path: str, *, hidden: bool, containing: str, limit: int, after: Position | None
    ) -> WorkspacePage:
        """One level: directories first, by name. `containing` is part of the name, in any case."""

    async def find(self, session: Session, query: str, limit: int) -> WorkspacePaths:
        """Files and folders of every level whose path contains `query`, in any case."""

    async def file(self, session: Session, path: str) -> WorkspaceFile: ...
    async def preview(self, session: Session, path: str, limit: int) -> WorkspacePreview:
        """The first `limit` bytes, as text."""

    def content(self, session: Session, file: WorkspaceFile, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Its bytes from `start` to before `end`. EOFError: it has become shorter. PathRefusedError, before the first
        bytes: it is no longer the same."""

    async def archive(self, session: Session, path: str) -> tuple[str, AsyncIterator[bytes]]:
        """The name of a directory, and its files as a zip archive. QuotaExceededError: too many are being made."""


class WorkspaceEditor(Protocol):
    """Changes for a person. None replaces anything except `save`, and none goes through a link. Each may also raise
    PathNotChangedError, and StorageFullError before it would use up the reserve of the disk.

    A call that raises WorkspaceTimeoutError, because the disk does not answer, may still take effect."""

    async def save(self, session: Session, path: str, text: str, etag: str | None) -> WorkspaceFile:
        """Replaces the content of the version `etag`, atomically and durably; None: creates the file. Raises
        FileConflictError for another version, PathExistsError."""

    async def create(self, session: Session, path: str, kind: Literal["directory", "file"]) -> WorkspaceEntry:
        """Raises PathExistsError."""

    async def move(self, session: Session, path: str, to: str) -> WorkspaceEntry:
        """Raises PathExistsError."""

    async def upload(self, session: Session, path: str, chunks: AsyncIterator[bytes]) -> WorkspaceEntry:
        """The file appears when it is complete. Raises PathExistsError, and QuotaExceededError: too many at a time."""

    async def delete(self, session: Session, path: str) -> TrashedItem:
        """Moves a file, a link or a folder to the session's trash, which keeps it for a limited time and size."""

    async def trash(self, session: Session) -> Sequence[TrashedItem]:
        """The newest first."""

    async def erase_trash(self, session: Session, tid: str | None) -> int:
        """Erases one deleted item for good, or all; returns how many. Raises NotFoundError."""

    async def restore(self, session: Session, tid: str) -> WorkspaceEntry:
        """Moves it back to where it was. Raises NotFoundError, PathExistsError."""


class WorkspaceHistory(Protocol):
    """What the runs of a session changed in its directory, as far as it was recorded on this server. `idle`: no run is
    at work, so what a crash left open is compared first."""

    async def sets(self, session: Session, *, idle: bool) -> Sequence[ChangeSet]:
        """Those in which files differ, or a note says why that is not known; the newest first."""

    async def files(self, session: Session, set_id: str, *, idle: bool) -> Sequence[ChangedFile]:
        """By path. Raises NotFoundError."""

    async def diff(self, session: Session, set_id: str, path: str) -> ChangedFileDiff:
        """Raises NotFoundError."""

    async def restore(
        self, session: Session, set_id: str, paths: Sequence[str] | None, *, overwrite: bool
    ) -> RestoredFiles:
        """Gives files, or all of the set, the bytes and modes that they had before it. Raises NotFoundError and, unless
        `overwrite` is set, ChangesConflictError for files that were changed since; nothing is changed then."""
