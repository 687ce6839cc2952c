"""A directory as a zip archive, made while it is sent.

Links are left out, even those that stay inside: the archive has each file once. A file that becomes longer while it is
read is cut off where it ended. What cannot be read is left out, and a text in the archive says so.
"""

import os
import stat
import threading
import time
import zipfile
from collections.abc import Iterator
from itertools import chain, count
from typing import Final

from holdfast.core.errors import PathNotFoundError, PathRefusedError
from holdfast.core.file_names import MAX_DEPTH, archive_name, escape_path
from holdfast.tools.workspace.content import CHUNK
from holdfast.tools.workspace.tree import Names, WorkspaceTree, reason_of

MAX_ENTRIES: Final = 20_000  # Links and what else is left out included
MAX_BYTES: Final = 2 * 1024**3  # Of the files, before they are compressed
LEFT_OUT: Final = "LEFT_OUT"  # A text file; a number is appended if there is another of this name
_MAX_NOTES: Final = 1000
_FIRST_DATE: Final = (1980, 1, 1, 0, 0, 0)  # Of the zip format
_LAST_DATE: Final = (2107, 12, 31, 23, 59, 58)

_Item = tuple[Names, os.stat_result]


def check_size(tree: WorkspaceTree, names: Names, stop: threading.Event) -> None:
    """Raises PathRefusedError for a directory with too many or too large files, before anything is sent. Setting `stop`
    ends it, with EOFError."""
    size = 0
    try:
        for _, about in _ArchiveWalk(tree, names, stop):
            size += about.st_size if stat.S_ISREG(about.st_mode) else 0
            if size > MAX_BYTES:
                raise PathRefusedError(_shown(names), f"its files are larger than {MAX_BYTES >> 30} GB together")
    except _TooManyError:
        why = f"it has more than {MAX_ENTRIES:,} files, folders and links; download its folders"
        raise PathRefusedError(_shown(names), why) from None


def zip_chunks(tree: WorkspaceTree, names: Names) -> Iterator[bytes]:
    """EOFError: the directory has grown beyond the limits meanwhile. OSError: a file could be read in part only."""
    sink, walk, size = _Sink(), _ArchiveWalk(tree, names), 0
    try:
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
            for path, about in walk:
                inside = "/".join(map(archive_name, path[len(names) :]))
                if stat.S_ISDIR(about.st_mode):
                    archive.writestr(_zip_info(f"{inside}/", about), b"")
                    yield from sink.take()
                    continue
                try:
                    with tree.file(path) as fd:
                        chunks = _read(fd, path)
                        chunk = next(chunks)
                        with archive.open(_zip_info(inside, about), "w", force_zip64=True) as entry:
                            while chunk:
                                size += len(chunk)
                                if size > MAX_BYTES:
                                    raise EOFError
                                entry.write(chunk)
                                yield from sink.take()
                                chunk = next(chunks, b"")
                except (PathNotFoundError, PathRefusedError) as error:
                    walk.leave_out(str(error))
                yield from sink.take()
            if walk.left_out:
                archive.writestr(_free_name(archive), walk.notes())
    except _TooManyError:
        raise EOFError from None
    yield from sink.take()


def _read(fd: int, path: Names) -> Iterator[bytes]:
    """The file, as long as it is now. PathRefusedError: it cannot be read, before the first chunk, which may be
    empty."""
    left = os.fstat(fd).st_size
    try:
        chunk = os.read(fd, CHUNK)
    except OSError as error:
        raise PathRefusedError(escape_path(path), reason_of(error)) from None
    yield chunk[:left]
    while chunk and len(chunk) < left:
        left -= len(chunk)
        chunk = os.read(fd, min(CHUNK, left))
        yield chunk


def _free_name(archive: zipfile.ZipFile) -> str:
    taken = {name.partition("/")[0].casefold() for name in archive.namelist()}
    names = (f"{LEFT_OUT}{n}.txt" for n in chain([""], count(2)))
    return next(name for name in names if name.casefold() not in taken)


class _Sink:
    """Collects what the archive writes until it is sent. It cannot be rewound."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None: ...
    def close(self) -> None: ...

    def take(self) -> Iterator[bytes]:
        whole = b"".join(self._pieces)
        self._pieces.clear()
        if whole:
            yield whole


class _TooManyError(Exception):
    """There are more than `MAX_ENTRIES`."""


class _ArchiveWalk:
    """Goes through everything below a directory, and notes what is left out."""

    def __init__(self, tree: WorkspaceTree, names: Names, stop: threading.Event | None = None) -> None:
        self.left_out = 0
        self._tree = tree
        self._names = names
        self._stop = stop
        self._found = 0
        self._notes: list[str] = []

    def leave_out(self, note: str) -> None:
        self.left_out += 1
        if len(self._notes) < _MAX_NOTES:
            self._notes.append(note)

    def notes(self) -> str:
        more = self.left_out - len(self._notes)
        return "\n".join([*self._notes, *([f"… and {more} more"] if more else []), ""])

    def __iter__(self) -> Iterator[_Item]:
        """Each directory before what is in it. At most one is open at a time. _TooManyError: nothing more is read."""
        pending = [self._names]
        while pending:
            here = pending.pop()
            for path, about in self._entries(here):
                if stat.S_ISDIR(about.st_mode) and len(path) <= MAX_DEPTH:
                    yield path, about
                    pending.append(path)
                elif stat.S_ISREG(about.st_mode):
                    yield path, about
                else:
                    self.leave_out(f"{escape_path(path)!r} is left out: it is {_kind(about.st_mode)}.")

    def _entries(self, here: Names) -> list[_Item]:
        found: list[_Item] = []
        try:
            with self._tree.directory(here) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    self._count()
                    path = (*here, os.fsencode(entry.name))
                    try:
                        found.append((path, entry.stat(follow_symlinks=False)))
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        self.leave_out(str(PathRefusedError(escape_path(path), reason_of(error))))
        except OSError as error:
            self._skip(here, PathRefusedError(_shown(here), reason_of(error)))
        except (PathNotFoundError, PathRefusedError) as error:
            self._skip(here, error)
        return found

    def _count(self) -> None:
        self._found += 1
        if self._found > MAX_ENTRIES:
            raise _TooManyError
        if self._stop is not None and self._stop.is_set():
            raise EOFError

    def _skip(self, here: Names, error: PathNotFoundError | PathRefusedError) -> None:
        """Without the directory that was asked for, there is nothing to archive."""
        if here == self._names:
            raise error
        self.leave_out(str(error))


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "too deep" if stat.S_ISDIR(mode) else "a pipe, socket or device"


def _zip_info(name: str, about: os.stat_result) -> zipfile.ZipInfo:
    date = min(max(time.gmtime(about.st_mtime)[:6], _FIRST_DATE), _LAST_DATE)
    info = zipfile.ZipInfo(name, date)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (about.st_mode & 0xFFFF) << 16
    return info


def _shown(names: Names) -> str:
    return escape_path(names) or "The workspace"
