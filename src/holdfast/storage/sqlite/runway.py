"""Room for the commits to come. A commit that makes the WAL longer has the file's new length synced as well, which
takes as long again as its own bytes; one that overwrites what is there does not.

SQLite overwrites its WAL from the beginning after every checkpoint, so this is about the first some thousand commits of
a process, and about those that come faster than checkpoints.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

_STEP: Final = bytes(256 << 10)
"""Zeros: SQLite reads a WAL up to the first frame that does not continue the one before."""


class Runway:
    """Of one connection that writes, to be used by the thread that has just committed there: nobody else may make the
    file longer meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + "-wal")
        self._fd = -1
        self._end = 0

    def keep(self) -> None:
        """After a commit. Never raises: without room ahead a commit is slower and nothing else."""
        try:
            if self._fd < 0:
                self._open()
            # Not `fstat`: after that Linux gives the next write a time of its own, and syncs that too.
            size = os.lseek(self._fd, 0, os.SEEK_END)
            if size > self._end:
                self._lengthen(size)
        except OSError:
            self._end = sys.maxsize

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        size = os.lseek(self._fd, 0, os.SEEK_END)
        self._end = size if size >= len(_STEP) else 0  # what a killed process left is room enough

    def _lengthen(self, size: int) -> None:
        try:
            written = os.pwrite(self._fd, _STEP, size)
        except OSError:
            written = 0
        if written < len(_STEP):  # the disk is all but full, and what is left is for commits
            os.ftruncate(self._fd, size)
            raise OSError
        self._end = size + written

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)
