"""One level of a directory tree, a page at a time, in bounded memory however many files there are."""

import heapq
import os
import stat
import threading
from collections.abc import Iterator
from typing import Final

from holdfast.core.file_names import display_name, escape_name, escape_path, parse_path
from holdfast.ports.workspace import EntryKind, Position, WorkspaceEntry, WorkspacePage
from holdfast.tools.workspace.tree import Names, WorkspaceTree

MAX_SCANNED: Final = 1_000_000
"""Entries that are looked at, which takes about two seconds."""
_CHECK_EVERY: Final = 4096
_Key = tuple[int, str, str]  # 0 for a directory or 1, the name in lowercase, the name


def list_entries(
    tree: WorkspaceTree,
    names: Names,
    *,
    hidden: bool,
    containing: str,
    limit: int,
    after: Position | None,
    stop: threading.Event,
) -> WorkspacePage:
    scan = _Scan(hidden, containing.casefold(), None if after is None else _key_of(after), stop)
    with tree.directory(names) as fd:
        keys = heapq.nsmallest(limit + 1, scan.keys(fd))
        shown = (describe_entry(tree, fd, names, os.fsencode(key[2])) for key in keys[:limit])
        found = [entry for entry in shown if entry is not None]
    end = (keys[limit - 1][0], escape_name(os.fsencode(keys[limit - 1][2]))) if len(keys) > limit else None
    return WorkspacePage(escape_path(names), tuple(found), end, scan.total, scan.complete)


class _Scan:
    """Goes through a directory once. Kinds come from the directory itself, so no file is looked at."""

    def __init__(self, hidden: bool, containing: str, after: _Key | None, stop: threading.Event) -> None:
        self.total = 0
        self.complete = True
        self._hidden = hidden
        self._containing = containing
        self._after = after
        self._stop = stop

    def keys(self, fd: int) -> Iterator[_Key]:
        with os.scandir(fd) as entries:
            for at, entry in enumerate(entries):
                if at == MAX_SCANNED or (at % _CHECK_EVERY == 0 and self._stop.is_set()):
                    self.complete = False
                    return
                name = entry.name
                if not self._hidden and name.startswith("."):
                    continue
                folded = name.casefold()
                if self._containing not in folded:
                    continue
                self.total += 1
                key = (0 if entry.is_dir(follow_symlinks=False) else 1, folded, name)
                if self._after is None or key > self._after:
                    yield key


def _key_of(position: Position) -> _Key:
    rank, path = position
    name = os.fsdecode(b"/".join(parse_path(path)))
    return rank, name.casefold(), name


def describe_entry(tree: WorkspaceTree, fd: int, names: Names, name: bytes) -> WorkspaceEntry | None:
    """None: it is gone. `fd`: of the directory `names`."""
    try:
        about = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    kind = _kind(about.st_mode)
    target = tree.kind((*names, name)) if kind == "link" else None
    return WorkspaceEntry(
        display_name(name),
        escape_path((*names, name)),
        kind,
        "directory" if target == "directory" else "file" if target == "file" else None,
        about.st_size if kind == "file" else None,
        about.st_mtime,
    )


def _kind(mode: int) -> EntryKind:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"
