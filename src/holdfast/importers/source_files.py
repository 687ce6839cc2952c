"""The files of an import: a file, a directory or a ZIP archive, read without changing or unpacking anything.

Names are only compared, never used as paths, so an archive cannot reach outside itself. What is read is counted: an
archive that expands to far more than its size is refused while it is read, whatever its directory says.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, cast

from holdfast.core.errors import InvalidInputError
from holdfast.core.size_text import size_text
from holdfast.importers.json_objects import Json, read_objects
from holdfast.importers.scratch import Scratch

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_FILES: Final = 200_000
_MAX_DIRECTORY: Final = 64 * 1024**2  # Bytes of the directory of an archive
_ENTRY: Final = b"PK\1\2"  # How each entry of that directory begins
MAX_BYTES: Final = 16 * 1024**3  # Read from one source in total
MAX_RATIO: Final = 400  # Of an archive member's size to its packed size, beyond the first few megabytes
_FREE: Final = 16 * 1024**2
_MAX_FOLDER_DEPTH: Final = 6


class SourceFiles:
    """`names` are relative and use slashes. `done` counts the bytes that were read, of `total`, for a progress bar.
    `check` is called while something is read; what it raises stops the import. `scratch` is closed with the files."""

    def __init__(
        self,
        path: Path,
        shown_as: str | None = None,
        *,
        check: Callable[[], object] = lambda: None,
        scratch: Scratch | None = None,
    ) -> None:
        self.path = path
        self.shown_as = shown_as or str(path)  # Its name in error messages: an upload has a temporary path
        self.check = check
        self.scratch = scratch or Scratch(check=check)
        self.done = 0
        self.total = 0
        self._open_files = ExitStack()
        self._archive: zipfile.ZipFile | None = None
        self._members: dict[str, zipfile.ZipInfo] = {}
        try:
            path.stat()
            if path.is_file() and zipfile.is_zipfile(path):
                file = self._open_files.enter_context(_ArchiveFile(path, self.shown_as))
                self._archive = self._open_files.enter_context(zipfile.ZipFile(file))
                file.is_directory_read = True
        except InvalidInputError:
            self.close()
            raise
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            self.close()
            raise InvalidInputError(self.shown_as, f"is a damaged ZIP archive: {error}") from None
        except OSError as error:
            self.close()
            raise InvalidInputError(self.shown_as, f"cannot be read: {error.strerror or error}") from None

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """By name. A directory is listed only if it is needed: the home of an agent can be large."""
        if self.path.is_dir():
            return dict(_walk(self.path))
        if self._archive is not None:
            members = [member for member in self._archive.infolist() if not member.is_dir()]
            if len(members) > MAX_FILES:
                raise InvalidInputError(self.shown_as, f"has more than {MAX_FILES} files")
            self._members = {member.filename.replace("\\", "/"): member for member in members}
            return {name: member.file_size for name, member in self._members.items()}
        return {self.path.name: self.path.stat().st_size}

    @property
    def names(self) -> Sequence[str]:
        return list(self._sizes)

    @property
    def json_names(self) -> Sequence[str]:
        """The JSON files; a single file is one, whatever its name."""
        if self.is_archive or self.path.is_dir():
            return [name for name in self._sizes if name.lower().endswith(".json")]
        return self.names

    @property
    def is_archive(self) -> bool:
        return self._archive is not None

    def size(self, name: str) -> int:
        return self._sizes[name]

    def label(self, name: str) -> str:
        """The name for an error message."""
        return name if self.path.is_dir() or self.is_archive else self.shown_as

    def close(self) -> None:
        self._open_files.close()
        self.scratch.close()

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Raises InvalidInputError for a member that is damaged, encrypted or expands too much."""
        label = self.label(name)
        try:
            with self._open(name) as stream:
                packed = None if self._archive is None else self._members[name].compress_size
                yield cast(BinaryIO, BufferedReader(_Counted(self, stream, label, packed), 256 * 1024))
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise InvalidInputError(label, f"cannot be unpacked: {error}") from None
        except OSError as error:
            raise InvalidInputError(label, f"cannot be read: {error.strerror or error}") from None

    def read_objects(self, name: str, *, keep: bool = False) -> Generator[tuple[str, dict[str, Json]], None, None]:
        with self.open(name) as stream:
            yield from read_objects(stream, self.label(name), self.scratch, keep=keep)

    def read(self, name: str, limit: int) -> bytes | None:
        """The content, or None if it is larger than `limit`."""
        if self.size(name) > limit:
            return None
        with self.open(name) as stream:
            data = stream.read(limit + 1)
        return None if len(data) > limit else data

    def _open(self, name: str) -> IO[bytes]:
        if self._archive is not None:
            return self._archive.open(self._members[name])
        return (self.path / name if self.path.is_dir() else self.path).open("rb")


class _ArchiveFile(FileIO):
    """A ZIP archive. `zipfile` reads the whole directory at once and makes an object of each entry, so one that is too
    large is refused here, as it is read."""

    def __init__(self, path: Path, shown_as: str) -> None:
        super().__init__(path)
        self._shown_as = shown_as
        self.is_directory_read = False

    def read(self, size: int | None = -1) -> bytes:
        if not self.is_directory_read and size is not None and size > _MAX_DIRECTORY:
            raise InvalidInputError(self._shown_as, f"has a directory of more than {size_text(_MAX_DIRECTORY)}")
        data = super().read(-1 if size is None else size)
        if not self.is_directory_read and data.count(_ENTRY) > MAX_FILES:
            raise InvalidInputError(self._shown_as, f"has more than {MAX_FILES} files")
        return data


class _Counted(RawIOBase):
    """Counts what is read, and stops at the limits."""

    def __init__(self, files: SourceFiles, stream: IO[bytes], label: str, packed: int | None) -> None:
        self._files = files
        self._stream = stream
        self._label = label
        self._limit = None if packed is None else packed * MAX_RATIO + _FREE
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._files.check()
        view = memoryview(buffer).cast("B")
        data = self._stream.read(len(view))
        view[: len(data)] = data
        self._size += len(data)
        self._files.done += len(data)
        if self._limit is not None and self._size > self._limit:
            raise InvalidInputError(self._label, "expands to far more than its packed size; it is not an export")
        if self._files.done > MAX_BYTES:
            raise InvalidInputError(self._label, f"the import is larger than {size_text(MAX_BYTES)} in total")
        return len(data)


def _walk(root: Path) -> Iterator[tuple[str, int]]:
    """The regular files below a directory; links are not followed."""
    count = 0
    for folder, folders, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        if len(relative.parts) >= _MAX_FOLDER_DEPTH:
            folders.clear()
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES:
                raise InvalidInputError(str(root), f"has more than {MAX_FILES} files; name the folder of the export")
            yield (relative / name).as_posix(), path.stat().st_size
