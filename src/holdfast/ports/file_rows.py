"""Attached files, as a store transaction reads and writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.ids import FileId, OwnerId
from holdfast.core.parts import FilePart


@dataclass(frozen=True, slots=True)
class StoredFile:
    id: FileId
    owner: OwnerId
    sha256: str
    name: str
    media_type: str
    size: int
    created_at: float

    def part(self) -> FilePart:
        return FilePart(self.id, self.name, self.media_type, self.size)


class FileRows(Protocol):
    def file(self, fid: FileId) -> StoredFile | None: ...
    def put_file(self, file: StoredFile) -> None: ...
    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        """List files that no message refers to, oldest first."""

    def drop_file(self, fid: FileId) -> None: ...
    def digest_in_use(self, sha256: str) -> bool:
        """Whether any file row has this content."""
