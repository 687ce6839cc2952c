"""Looking at files: list and read. Nothing here changes anything."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.agents.tools.port import ToolFailed, ToolResult
from holdfast.agents.tools.workspace.jail import Jail, names
from holdfast.core.parts import Json

MAX_ENTRIES: Final = 1000
MAX_LINES: Final = 2000
MAX_CHARS: Final = 60_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""How far into a file a range of lines is looked for."""
_LINE: Final = 1 << 20
_SNIFF: Final = 8192


def list_files(root: Path, args: Mapping[str, Json]) -> ToolResult:
    path = names(args.get("path", "."))
    with Jail(root).directory(path) as fd:
        found = sorted(os.listdir(fd))
        lines = [_describe(fd, name) for name in found[:MAX_ENTRIES]]
    if len(found) > MAX_ENTRIES:
        lines.append(f"[… {len(found) - MAX_ENTRIES} more entries]")
    return ToolResult("\n".join(lines) or "(empty)")


def _describe(directory: int, name: str) -> str:
    try:
        about = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return f"{name} (gone)"
    if stat.S_ISDIR(about.st_mode):
        return f"{name}/"
    if stat.S_ISLNK(about.st_mode):
        return f"{name} (link, not followed)"
    if not stat.S_ISREG(about.st_mode):
        return f"{name} (not a plain file)"
    return f"{name} ({about.st_size} bytes)"


def read_file(root: Path, args: Mapping[str, Json]) -> ToolResult:
    first: int = args.get("first_line", 1)
    count: int = min(args.get("lines", MAX_LINES), MAX_LINES)
    path = names(args["path"])
    with Jail(root).reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        if is_binary(file.read(_SNIFF)):
            return ToolResult(f"[{'/'.join(path)} is a binary file of {size} bytes; its contents are not shown.]")
        file.seek(0)
        return ToolResult(_lines(file, first, count))


def is_binary(head: bytes) -> bool:
    """A zero byte, or no UTF-8. A character that was cut at the end does not count."""
    if b"\0" in head:
        return True
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start < len(head) - 3
    return False


def _lines(file: BinaryIO, first: int, count: int) -> str:
    taken: list[str] = []
    at, chars = 0, 0
    while raw := file.readline(_LINE):
        at += 1
        if at < first:
            if file.tell() > MAX_BYTES:
                raise ToolFailed(f"Line {first} is more than {MAX_BYTES} bytes into the file. Search instead.")
            continue
        line = raw.decode("utf-8", "replace")
        if len(taken) == count or chars + len(line) > MAX_CHARS:
            return _cut(taken, line, first, at)
        taken.append(line)
        chars += len(line)
    if not taken:
        return "(empty)" if at == 0 else f"[The file has {at} lines; there is none from line {first} on.]"
    return "".join(taken)


def _cut(taken: list[str], line: str, first: int, at: int) -> str:
    if not taken:
        return f"{line[:MAX_CHARS]}\n[… line {at} goes on; only its first {MAX_CHARS} characters are shown]"
    gap = "" if taken[-1].endswith("\n") else "\n"
    return f"{''.join(taken)}{gap}[… lines {first} to {at - 1} shown; read on with first_line={at}]"
