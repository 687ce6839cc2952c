"""A session's trash: what a person deleted from its directory, in the server's data, for a limited time and size.

An item is a directory `<id>` with `info.json` and, as `item`, what was deleted. It is moved there by name; between two
file systems it is first renamed, so that nobody changes it any more, then copied (`transfer`). If the process dies
meanwhile, `recover` completes or undoes it.
"""

import json
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from holdfast.core.errors import HoldfastError, NotFoundError, PathNotChangedError
from holdfast.core.file_names import MAX_DEPTH, escape_path, parse_path
from holdfast.ports.workspace import TrashedItem, WorkspaceEntry
from holdfast.tools.workspace.changes import describe, refusals, require_movable
from holdfast.tools.workspace.private_directory import create_private_directory, remove_directory
from holdfast.tools.workspace.transfer import Moving, bring_back, resume, take_away
from holdfast.tools.workspace.tree import Names, WorkspaceTree

MAX_BYTES: Final = 1024**3  # Of all items of a session; older ones are erased
MAX_ITEMS: Final = 100
MAX_ENTRIES: Final = 100_000  # Files and folders of an item
MAX_AGE: Final = 7 * 24 * 3600.0  # Seconds
_ITEM: Final = b"item"
_INFO: Final = "info.json"
_MOVING: Final = "moving"  # Exists while it is moved here from another file system
_MAX_INFO: Final = 64 * 1024
_ID: Final = re.compile(r"[0-9a-f]{16}")
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _Info:
    """What is stored of an item."""

    item: TrashedItem
    root: str  # The directory that it was deleted in
    own: bool  # Whether that is the session's own one, which moves with the data directory


@dataclass(frozen=True, slots=True)
class SessionTrash:
    directory: Path

    def put(self, tree: WorkspaceTree, names: Names, now: float, reserve: int) -> TrashedItem:
        shown = escape_path(names)
        with tree.parent(names) as parent, refusals(shown):
            found = require_movable(tree, parent, names)
            size = _measure(parent, names[-1], found, shown)
            item = TrashedItem(secrets.token_hex(8), shown, _kind(found), size, now)
            own = self.directory / item.id
            create_private_directory(own)
            try:
                _write_info(own, _Info(item, str(tree.root), tree.own))
                tree.require_wanted(shown)
                fd = os.open(own, _DIRECTORY)
                try:
                    take_away(parent, names[-1], fd, _ITEM, shown, reserve, _moving(own))
                    os.fsync(fd)
                finally:
                    os.close(fd)
            except BaseException:
                if _read_item(own) is None and not _moving(own).is_recorded:
                    _remove(own)
                raise
            os.fsync(parent)
        self._make_room(now, keep=item.id)
        return item

    def items(self, now: float) -> list[TrashedItem]:
        """The newest first."""
        return [item for item in self._stored() if now - item.deleted_at <= MAX_AGE][:MAX_ITEMS]

    def restore(self, tree: WorkspaceTree, tid: str, reserve: int) -> WorkspaceEntry:
        self.recover(tree.private)
        own = self.directory / tid
        item = _read_item(own) if _ID.fullmatch(tid) else None
        if item is None:
            raise NotFoundError("deleted file", tid)
        _require_same_root(own, tree, item)
        names = parse_path(item.path)
        fd = os.open(own, _DIRECTORY)
        try:
            with tree.parent(names) as parent, refusals(item.path):
                tree.require_wanted(item.path)
                bring_back(fd, _ITEM, parent, names[-1], item.path, reserve, _moving(own))
                os.fsync(parent)
                entry = describe(tree, parent, names)
        finally:
            os.close(fd)
        _remove(own)
        return entry

    def erase(self, tid: str | None) -> int:
        """One item, or all of them; what a move to the trash is not finished with stays."""
        found = [item.id for item in self._stored() if tid in (None, item.id)]
        if tid is not None and not found:
            raise NotFoundError("deleted file", tid)
        for each in found:
            remove_directory(self.directory / each)
        return len(found)

    def expire(self, now: float) -> None:
        """Erases what is too old. The time of the item's directory is that of the deletion."""
        for path in self._paths():
            with suppress(OSError):
                is_old = now - path.stat(follow_symlinks=False).st_mtime > MAX_AGE
                if is_old and not _moving(path).is_recorded:
                    _remove(path)

    def recover(self, data_dir: Path) -> None:
        """Completes or undoes what a process that died was deleting. Where that is not possible now, it is tried again
        by the next call."""
        for own in self._paths():
            with suppress(OSError, HoldfastError), _moving(own).interrupted() as is_interrupted:
                if is_interrupted and (info := _read_info(own)) is not None:
                    _recover(own, info, WorkspaceTree(Path(info.root), data_dir, info.own))

    def _make_room(self, now: float, keep: str) -> None:
        """Erases the oldest items that are too many, too large together, or too old. One that another call is about to
        put there is not complete, and left alone; if a crash left it so, `expire` erases it."""
        size = 0
        for count, item in enumerate(self._stored(), 1):
            size += item.size
            is_old = now - item.deleted_at > MAX_AGE
            if item.id != keep and (is_old or count > MAX_ITEMS or size > MAX_BYTES):
                _remove(self.directory / item.id)

    def _stored(self) -> list[TrashedItem]:
        found = [item for path in self._paths() if (item := _read_item(path)) is not None]
        return sorted(found, key=lambda item: item.deleted_at, reverse=True)

    def _paths(self) -> list[Path]:
        try:
            with os.scandir(self.directory) as entries:
                return [self.directory / entry.name for entry in entries if _ID.fullmatch(entry.name)]
        except OSError:
            return []


def _measure(parent: int, name: bytes, found: os.stat_result, shown: str) -> int:
    """The size of all files; refuses what is too much for the trash."""
    if not stat.S_ISDIR(found.st_mode):
        size = found.st_size
        if size > MAX_BYTES:
            raise _too_much(shown, f"it is larger than {MAX_BYTES >> 30} GB")
        return size
    size = entries = 0
    for path, directories, files, fd in os.fwalk(name, dir_fd=parent):
        entries += len(directories) + len(files)
        if entries > MAX_ENTRIES:
            raise _too_much(shown, f"it has more than {MAX_ENTRIES:,} files")
        if path.count(b"/") > MAX_DEPTH:
            raise _too_much(shown, f"its folders are more than {MAX_DEPTH} deep")
        for file in files:
            with suppress(FileNotFoundError):
                size += os.stat(file, dir_fd=fd, follow_symlinks=False).st_size
        if size > MAX_BYTES:
            raise _too_much(shown, f"its files are larger than {MAX_BYTES >> 30} GB together")
    return size


def _too_much(shown: str, why: str) -> PathNotChangedError:
    return PathNotChangedError(shown, f"{why}, which the trash does not keep; delete it in a terminal")


def _kind(found: os.stat_result) -> Literal["directory", "file", "link"]:
    if stat.S_ISDIR(found.st_mode):
        return "directory"
    return "link" if stat.S_ISLNK(found.st_mode) else "file"


def _moving(own: Path) -> Moving:
    return Moving(own / _MOVING, own.name)


def _recover(own: Path, info: _Info, tree: WorkspaceTree) -> None:
    names = parse_path(info.item.path)
    fd = os.open(own, _DIRECTORY)
    try:
        with tree.parent(names) as parent:
            resume(parent, names[-1], fd, _ITEM, info.item.path, _moving(own))
            os.fsync(parent)
    finally:
        os.close(fd)


def _require_same_root(own: Path, tree: WorkspaceTree, item: TrashedItem) -> None:
    info = _read_info(own)
    if info is not None and (info.own, info.own or info.root) != (tree.own, tree.own or str(tree.root)):
        where = "the chat's own directory" if info.own else info.root
        why = f"it was deleted in {where}, and the chat works in another directory now"
        raise PathNotChangedError(item.path, f"{why}; change back to that one to restore it")


def _write_info(own: Path, info: _Info) -> None:
    with (own / _INFO).open("x", encoding="utf-8") as file:
        json.dump({**asdict(info.item), "root": info.root, "own": info.own}, file)
        file.flush()
        os.fsync(file.fileno())


def _read_info(own: Path) -> _Info | None:
    try:
        with (own / _INFO).open(encoding="utf-8") as file:
            fields: dict[str, Any] = json.loads(file.read(_MAX_INFO))
        root, is_own = str(fields.pop("root")), bool(fields.pop("own"))
        item = TrashedItem(**fields)
        parse_path(item.path)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, HoldfastError):
        return None
    return _Info(item, root, is_own)


def _read_item(own: Path) -> TrashedItem | None:
    """None: there is no such item, or it is not, or no longer, complete."""
    info = _read_info(own)
    return info.item if info is not None and os.path.lexists(own / os.fsdecode(_ITEM)) else None


def _remove(own: Path) -> None:
    """What cannot be erased now is erased with the session."""
    with suppress(OSError):
        remove_directory(own)
