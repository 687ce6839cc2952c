"""Reads the states of all files of a directory tree, and the contents that have changed since the last time."""

import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.core.errors import PathNotFoundError, PathRefusedError, WorkspaceUnavailableError
from holdfast.core.file_names import MAX_DEPTH
from holdfast.tools.workspace.path_search import SKIPPED
from holdfast.tools.workspace.snapshots.database import SeenFile
from holdfast.tools.workspace.snapshots.states import FileState, read_state, without_content
from holdfast.tools.workspace.tree import Names, WorkspaceTree

MAX_ENTRIES: Final = 20_000
MAX_READ: Final = 96 * 1024**2  # Bytes of contents per scan
SECONDS: Final = 5.0
_LEFT_OUT: Final = SKIPPED | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox"}
"""Folders that are not looked into: what is in them can be made again, and git has its own history."""
_FRESH: Final = 2 * 10**9
"""Nanoseconds after its last change in which a file may change again without another time on some file systems."""
_BUSY: Final = "too much had changed at once"
_TEMPORARY: Final = b".holdfast-"

Keep = Callable[[FileState, bytes | None], FileState]


@dataclass(frozen=True, slots=True)
class TreeScan:
    files: Mapping[bytes, SeenFile]
    problem: str | None  # Why it is not complete


class TreeScanner:
    def __init__(self, tree: WorkspaceTree, seen: Mapping[bytes, SeenFile], keep: Keep) -> None:
        self._tree = tree
        self._seen = seen
        self._keep = keep
        self._ends_at = time.monotonic() + SECONDS
        self._left = MAX_READ
        self._found: dict[bytes, SeenFile] = {}

    def scan(self) -> TreeScan:
        pending: list[Names] = [()]
        while pending:
            pending += self._directory(pending.pop())
            if len(self._found) > MAX_ENTRIES:
                return TreeScan(self._found, f"this folder has more than {MAX_ENTRIES:,} files")
            if time.monotonic() > self._ends_at:
                return TreeScan(self._found, "reading this folder takes too long")
        return TreeScan(self._found, None)

    def _directory(self, here: Names) -> list[Names]:
        below: list[Names] = []
        try:
            with self._tree.directory(here) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    name = os.fsencode(entry.name)
                    if name.startswith(_TEMPORARY):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name in _LEFT_OUT:
                            continue
                        if len(here) < MAX_DEPTH - 1:
                            below.append((*here, name))
                    self._entry(fd, here, name)
                    if len(self._found) > MAX_ENTRIES or time.monotonic() > self._ends_at:
                        break
        except (OSError, PathNotFoundError, PathRefusedError, WorkspaceUnavailableError):
            pass  # gone or closed since: what is in it is not known
        return below

    def _entry(self, fd: int, here: Names, name: bytes) -> None:
        path = b"/".join((*here, name))
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return
        stamp, before = _stamp(found), self._seen.get(path)
        if before is not None and before.stamp == stamp:
            self._found[path] = before
            return
        if stat.S_ISREG(found.st_mode) and found.st_size > self._left:
            self._found[path] = SeenFile("", without_content(found, _BUSY))
            return
        state, data = read_state(fd, name)
        if state.kind == "absent":
            return
        self._left -= len(data or b"")
        kept = self._keep(state, data)
        is_final = time.time_ns() - found.st_ctime_ns > _FRESH and (kept.why is None or kept.digest is None)
        self._found[path] = SeenFile(stamp if is_final else "", kept)


def _stamp(found: os.stat_result) -> str:
    return f"{found.st_mode}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}"
