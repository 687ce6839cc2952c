"""Moves a file or a directory between two directories that may be on different file systems. Nothing is overwritten."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from holdfast.core.errors import PathNotChangedError
from holdfast.core.file_names import MAX_DEPTH
from holdfast.tools.workspace.changes import place, require_space, write_all

MAX_COPIED: Final = 256 * 1024**2
"""Bytes between two file systems, which take their time."""
_CHUNK: Final = 256 * 1024
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0) | _NO_LINK
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


def transfer(source: int, name: bytes, parent: int, target: bytes, shown: str, reserve: int) -> None:
    """Raises PathExistsError. After any error it is where it was."""
    try:
        place(source, name, parent, target, shown)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_across(source, name, parent, target, _Copy(shown, reserve))


def _copy_across(source: int, name: bytes, parent: int, target: bytes, copy: "_Copy") -> None:
    """Renamed first, so that no program writes to it by its name while it is copied."""
    token = secrets.token_hex(8).encode()
    aside, copied = b".holdfast-moving-" + token, b".holdfast-copy-" + token
    os.rename(name, aside, src_dir_fd=source, dst_dir_fd=source)
    try:
        copy.entry(source, aside, parent, copied, 0)
        place(parent, copied, parent, target, copy.shown)
    except BaseException:
        _remove(parent, copied)
        place(source, aside, source, name, copy.shown)
        raise
    _remove(source, aside)


class _Copy:
    """Copies files, directories and links, within limits, and counts their bytes."""

    def __init__(self, shown: str, reserve: int) -> None:
        self.shown = shown
        self._reserve = reserve
        self._size = 0

    def entry(self, source: int, name: bytes, parent: int, target: bytes, depth: int) -> None:
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), target, dir_fd=parent)
        elif stat.S_ISDIR(found.st_mode):
            self._directory(source, name, parent, target, depth)
        elif stat.S_ISREG(found.st_mode):
            self._file(source, name, parent, target)
        else:
            raise PathNotChangedError(self.shown, "there is a pipe, socket or device in it")

    def _directory(self, source: int, name: bytes, parent: int, target: bytes, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise PathNotChangedError(self.shown, f"its folders are more than {MAX_DEPTH} deep")
        os.mkdir(target, 0o700, dir_fd=parent)
        with _opened(name, _DIRECTORY, source) as fd, _opened(target, _DIRECTORY, parent) as into:
            with os.scandir(fd) as entries:
                for entry in entries:
                    below = os.fsencode(entry.name)
                    self.entry(fd, below, into, below, depth + 1)
            _keep(os.fstat(fd), into)

    def _file(self, source: int, name: bytes, parent: int, target: bytes) -> None:
        with _opened(name, _FILE, source) as fd, _opened(target, _CREATE, parent) as into:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise PathNotChangedError(self.shown, "there is a pipe, socket or device in it")
            require_space(parent, found.st_size, self._reserve)
            while chunk := os.read(fd, _CHUNK):
                self._size += len(chunk)
                if self._size > MAX_COPIED:
                    why = f"it is on another disk than the server's data, and larger than {MAX_COPIED >> 20} MB"
                    raise PathNotChangedError(self.shown, f"{why}; change it in a terminal")
                write_all(into, chunk)
            _keep(found, into)
            os.fsync(into)


def _keep(found: os.stat_result, fd: int) -> None:
    """Mode and times of the original."""
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))


def _remove(parent: int, name: bytes) -> None:
    with suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)


@contextmanager
def _opened(name: bytes, flags: int, directory: int) -> Iterator[int]:
    fd = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)
