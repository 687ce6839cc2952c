"""The file ports: attachment contents by digest, and agents' working directories. Where contents are:
`storage.file_store`, in a cluster `storage.postgres.files`; where directories are: `agents.chat.workspaces`."""

from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from holdfast.core.ids import SessionId


class IncomingFile(AbstractContextManager["IncomingFile"], Protocol):
    """A content that is being written. Leaving it without `finish` discards the content."""

    def write(self, chunk: bytes) -> None: ...
    def finish(self) -> tuple[str, int]:
        """Make the content durable under its digest and return digest and size."""


class Files(Protocol):
    """Contents by digest. Synchronous: called from worker threads."""

    def begin(self) -> IncomingFile: ...
    def open(self, sha256: str) -> BinaryIO:
        """NotFoundError: there is no such content."""

    def delete(self, sha256: str) -> None: ...


class WorkspaceEraser(Protocol):
    """The working directories of sessions. Synchronous: called from worker threads."""

    def erase(self, sid: SessionId) -> None:
        """Delete a session's directory, if it exists, and what people deleted in it. OSError: some of it is left; try
        again."""

    def expire(self, now: float) -> None:
        """Delete what people deleted, and what runs replaced, long ago."""
