"""What is in a file of a directory tree: its type, the beginning of its text, and its bytes."""

import codecs
import os
import stat
from collections.abc import Iterator
from typing import Final

from holdfast.core.errors import PathNotFoundError, PathRefusedError
from holdfast.core.file_names import display_name, escape_path
from holdfast.core.file_types import SNIFF, detect_file_type, text_encoding
from holdfast.ports.workspace import WorkspaceFile, WorkspacePreview
from holdfast.tools.workspace.tree import Names, WorkspaceTree

CHUNK: Final = 256 * 1024


def read_file_info(tree: WorkspaceTree, names: Names) -> WorkspaceFile:
    with tree.file(names) as fd:
        return _describe(fd, names)


def read_preview(tree: WorkspaceTree, names: Names, limit: int) -> WorkspacePreview:
    with tree.file(names) as fd:
        file = _describe(fd, names)
        if not file.is_text:
            return WorkspacePreview(file, None, truncated=False, editable=False)
        data = os.pread(fd, limit, 0)
    decoder = codecs.getincrementaldecoder(text_encoding(data[:SNIFF]) or "utf-8")("replace")
    truncated = file.size > len(data)
    editable = not truncated and is_editable_text(data) and _can_save(tree, names)
    return WorkspacePreview(file, decoder.decode(data, final=not truncated), truncated, editable)


def is_editable_text(data: bytes) -> bool:
    """Whether a save can give back the same bytes, where nothing was edited: UTF-8, with or without a mark."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _can_save(tree: WorkspaceTree, names: Names) -> bool:
    """Whether it is the file itself, not a link to it, and may be written, as far as its permissions tell."""
    try:
        with tree.parent(names) as parent:
            found = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
            return stat.S_ISREG(found.st_mode) and all(
                os.access(name, os.W_OK, dir_fd=parent) for name in (b".", names[-1])
            )
    except (OSError, PathNotFoundError, PathRefusedError):
        return False


def read_chunks(tree: WorkspaceTree, names: Names, etag: str, start: int, end: int) -> Iterator[bytes]:
    """EOFError: the file has become shorter than `end`."""
    with tree.file(names) as fd:
        if etag_of(os.fstat(fd)) != etag:
            raise PathRefusedError(escape_path(names), "it is being changed; try again")
        while start < end:
            chunk = os.pread(fd, min(CHUNK, end - start), start)
            if not chunk:
                raise EOFError
            start += len(chunk)
            yield chunk


def etag_of(found: os.stat_result) -> str:
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"'


def _describe(fd: int, names: Names) -> WorkspaceFile:
    found, name = os.fstat(fd), display_name(names[-1])
    media_type, is_text = detect_file_type(os.pread(fd, SNIFF, 0), name)
    return WorkspaceFile(name, escape_path(names), found.st_size, found.st_mtime, media_type, is_text, etag_of(found))
