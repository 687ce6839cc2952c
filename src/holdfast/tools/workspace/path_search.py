"""Finds files and folders of a directory tree by a part of their path, the best matches first, in bounded time and
memory. Links are listed and not followed."""

import heapq
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

from holdfast.core.errors import PathNotFoundError, PathRefusedError
from holdfast.core.file_names import MAX_DEPTH
from holdfast.ports.workspace import WorkspaceEntry, WorkspacePaths
from holdfast.tools.workspace.listing import describe_entry
from holdfast.tools.workspace.tree import Names, WorkspaceTree

MAX_SCANNED: Final = 50_000  # Entries that are looked at
SECONDS: Final = 3.0
SKIPPED: Final = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__"})
"""Folders that are not entered: they have many files, and none that people name."""
_CHECK_EVERY: Final = 512
_Rank = tuple[int, int, str]


def find_paths(tree: WorkspaceTree, query: str, limit: int, stop: threading.Event) -> WorkspacePaths:
    """`query` is part of the path in any case; hidden entries are found by a part that begins with a dot."""
    search = _PathSearch(tree, query.casefold(), stop)
    best = heapq.nsmallest(limit, search.matches())
    items = [entry for _, names in best if (entry := _describe(tree, names)) is not None]
    return WorkspacePaths(tuple(items), complete=search.complete)


class _PathSearch:
    """Goes through a tree level by level, so that a limit leaves out what is deepest."""

    def __init__(self, tree: WorkspaceTree, query: str, stop: threading.Event) -> None:
        self.complete = True
        self._tree = tree
        self._query = query
        self._name = query.rpartition("/")[2]
        self._hidden = query.startswith(".") or "/." in query
        self._stop = stop
        self._ends_at = time.monotonic() + SECONDS
        self._scanned = 0

    def matches(self) -> Iterator[tuple[_Rank, Names]]:
        pending: deque[Names] = deque([()])
        while pending and self.complete:
            here = pending.popleft()
            for name, is_directory in self._entries(here):
                names = (*here, name)
                rank = self._rank(names)
                if rank is not None:
                    yield rank, names
                if is_directory and len(names) < MAX_DEPTH and os.fsdecode(name) not in SKIPPED:
                    pending.append(names)

    def _entries(self, here: Names) -> list[tuple[bytes, bool]]:
        found: list[tuple[bytes, bool]] = []
        try:
            with self._tree.directory(here) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    if not self._goes_on():
                        break
                    if self._hidden or not entry.name.startswith("."):
                        found.append((os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)))
        except (OSError, PathNotFoundError, PathRefusedError):
            if not here:
                raise
        return found

    def _goes_on(self) -> bool:
        self._scanned += 1
        is_due = self._scanned % _CHECK_EVERY == 0
        if self._scanned > MAX_SCANNED or (is_due and (self._stop.is_set() or time.monotonic() > self._ends_at)):
            self.complete = False
        return self.complete

    def _rank(self, names: Names) -> _Rank | None:
        """The smaller the better: names that begin with what was typed, then names, then paths that contain it."""
        path = os.fsdecode(b"/".join(names)).casefold()
        at = path.find(self._query)
        if at < 0:
            return None
        name = path.rpartition("/")[2]
        if name.startswith(self._name) and path.endswith(self._query[: len(self._query) - len(self._name)] + name):
            grade = 0
        else:
            grade = 1 if self._name in name else 2
        return grade, len(names), path


def _describe(tree: WorkspaceTree, names: Names) -> WorkspaceEntry | None:
    try:
        with tree.directory(names[:-1]) as fd:
            return describe_entry(tree, fd, names[:-1], names[-1])
    except (OSError, PathNotFoundError, PathRefusedError):
        return None  # gone since
