"""What is at a path of a directory at a moment, and its content, read without following links."""

import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass
from typing import Final

from holdfast.ports.workspace import StateKind

MAX_FILE: Final = 4 * 1024 * 1024
"""Bytes of a file whose content is kept."""
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
TOO_LARGE: Final = f"it is larger than {MAX_FILE >> 20} MB"


@dataclass(frozen=True, slots=True)
class FileState:
    kind: StateKind
    mode: int | None = None  # None: not known
    size: int = 0
    digest: str | None = None  # Of a file's content or a link's target
    stamp: str = ""  # Tells versions apart whose content was not read
    why: str | None = None  # Why the content is not kept

    def same_as(self, other: "FileState") -> bool:
        """Whether both are the same kind, content and mode, as far as they are known."""
        if self.kind != other.kind:
            return False
        if self.mode is not None and other.mode is not None and self.mode != other.mode:
            return False
        if self.digest is None or other.digest is None:
            return self.digest == other.digest and self.stamp == other.stamp
        return self.digest == other.digest

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value not in (None, "")})


ABSENT: Final = FileState("absent")


def parse_state(text: str) -> FileState:
    return FileState(**json.loads(text))


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_state(directory: int, name: bytes) -> tuple[FileState, bytes | None]:
    """The state, and the content to keep. An unreadable or large file has none."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            return FileState("directory", mode), None
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(name, dir_fd=directory)
            return FileState("link", None, len(target), digest_of(target)), target
        if not stat.S_ISREG(found.st_mode):
            return FileState("other", mode, stamp=_stamp(found), why="it is a pipe, socket or device"), None
        if found.st_size > MAX_FILE:
            return without_content(found, TOO_LARGE), None
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    try:
        return _read_file(directory, name)
    except OSError:
        return without_content(found, "the server's account may not read it"), None


def without_content(found: os.stat_result, why: str) -> FileState:
    return FileState("file", stat.S_IMODE(found.st_mode), found.st_size, None, _stamp(found), why)


def _read_file(directory: int, name: bytes) -> tuple[FileState, bytes | None]:
    fd = os.open(name, _FILE, dir_fd=directory)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError  # put there since it was looked at
        pieces, left = [], MAX_FILE + 1
        while left and (piece := os.read(fd, left)):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(fd)
    data = b"".join(pieces)
    if len(data) > MAX_FILE:
        return without_content(found, TOO_LARGE), None
    return FileState("file", stat.S_IMODE(found.st_mode), len(data), digest_of(data)), data


def _stamp(found: os.stat_result) -> str:
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ino}"
