"""The file tools: list, read, write, edit and search, with their schemas. Each runs in a worker thread, so none blocks
the event loop. Their limits of size are here; which paths they reach: `jail`."""

import difflib
import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Final

import anyio
from anyio import to_thread

from holdfast.core.file_types import SNIFF, is_utf8_text
from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec
from holdfast.ports.tool import Tool, ToolContext, ToolError, ToolResult, ToolTraits
from holdfast.tools.result_text import shorten
from holdfast.tools.schemas import object_spec
from holdfast.tools.workspace.jail import Jail, split_path
from holdfast.tools.workspace.search_process import search_files
from holdfast.tools.workspace.search_tool import MAX_PATTERN

MAX_ENTRIES: Final = 1000
MAX_LINES: Final = 2000
MAX_CHARS: Final = 60_000
MAX_BYTES: Final = 64 * 1024 * 1024  # How far into a file a range of lines is searched for
_LINE: Final = 1 << 20
_SEARCHES: Final = 4  # At the same time: each may have a process of its own with much memory
MAX_EDIT: Final = 4 * 1024 * 1024
_MAX_DIFF_LINES: Final = 5000
_MAX_DIFF: Final = 20_000

READ_ONLY: Final = ToolTraits(repeatable=True, read_only=True, rule="allow")
WRITES: Final = ToolTraits(rule="ask")
REPLACES_FILE: Final = ToolTraits(repeatable=True, rule="ask")
"""Writing a whole file again leaves the same file, so it is repeatable."""

_PATH: Final = {"type": "string", "description": "Relative to the workspace."}


@dataclass(frozen=True, slots=True)
class FileTool:
    spec: ToolSpec
    traits: ToolTraits
    work: Callable[[ToolContext, Mapping[str, Json], threading.Event], ToolResult]
    """Runs in a worker thread. Reading ends early if the event is set."""
    limiter: anyio.CapacityLimiter | None = None

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """A change that has started is finished before a cancellation takes effect."""
        stop = threading.Event()
        work = partial(self.work, context, args, stop)
        try:
            return await to_thread.run_sync(work, abandon_on_cancel=self.traits.read_only, limiter=self.limiter)
        finally:
            stop.set()


def file_tools() -> Sequence[Tool]:
    return (
        FileTool(object_spec("list_files", "List a directory.", {"path": _PATH}), READ_ONLY, list_files),
        FileTool(_READ, READ_ONLY, read_file),
        FileTool(_SEARCH, READ_ONLY, _search_files, anyio.CapacityLimiter(_SEARCHES)),
        FileTool(_WRITE, REPLACES_FILE, write_file),
        FileTool(_EDIT, WRITES, edit_file),
    )


_READ: Final = object_spec(
    "read_file",
    "Read a text file, or a range of its lines.",
    {
        "path": _PATH,
        "first_line": {"type": "integer", "minimum": 1, "description": "1 is the first line."},
        "lines": {"type": "integer", "minimum": 1, "description": "How many lines at most."},
    },
    "path",
)
_SEARCH: Final = object_spec(
    "search_files",
    "Find lines that contain a text or match a regular expression.",
    {
        "pattern": {"type": "string", "minLength": 1, "maxLength": MAX_PATTERN},
        "regex": {"type": "boolean", "description": "Treat the pattern as a regular expression."},
        "ignore_case": {"type": "boolean"},
        "path": _PATH,
        "files": {"type": "string", "description": "Only files whose name or path matches, such as '*.py'."},
    },
    "pattern",
)
_WRITE: Final = object_spec(
    "write_file",
    "Create a file or replace its whole content. Missing directories are created.",
    {"path": _PATH, "content": {"type": "string"}},
    "path",
    "content",
)
_EDIT: Final = object_spec(
    "edit_file",
    "Replace exact text in a file. It must occur exactly once, unless `all` is set.",
    {
        "path": _PATH,
        "old": {"type": "string", "description": "The exact text in the file, including whitespace and line breaks."},
        "new": {"type": "string"},
        "all": {"type": "boolean", "description": "Replace every occurrence."},
    },
    "path",
    "old",
    "new",
)


# ---- list and read ----


def list_files(context: ToolContext, args: Mapping[str, Json], _: threading.Event) -> ToolResult:
    path = split_path(args.get("path", "."))
    with Jail(context.workspace).directory(path) as fd:
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
        return f"{name} (not a regular file)"
    return f"{name} ({about.st_size} bytes)"


def _search_files(context: ToolContext, args: Mapping[str, Json], stop: threading.Event) -> ToolResult:
    return search_files(context.workspace, args, stop)


def read_file(context: ToolContext, args: Mapping[str, Json], _: threading.Event) -> ToolResult:
    first: int = args.get("first_line", 1)
    count: int = min(args.get("lines", MAX_LINES), MAX_LINES)
    path = split_path(args["path"])
    with Jail(context.workspace).open_for_reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not is_utf8_text(file.read(SNIFF)):
            return ToolResult(f"[{'/'.join(path)} is a binary file ({size} bytes) and is not shown.]")
        file.seek(0)
        return ToolResult(_lines(file, first, count))


def _lines(file: BinaryIO, first: int, count: int) -> str:
    taken: list[str] = []
    at, chars = 0, 0
    while raw := file.readline(_LINE):
        at += 1
        if at < first:
            if file.tell() > MAX_BYTES:
                raise ToolError(f"Line {first} is more than {MAX_BYTES} bytes into the file. Use search_files instead.")
            continue
        line = raw.decode("utf-8", "replace")
        if len(taken) == count or chars + len(line) > MAX_CHARS:
            return _cut(taken, line, first, at)
        taken.append(line)
        chars += len(line)
    if not taken:
        return "(empty)" if at == 0 else f"[The file has only {at} lines; line {first} does not exist.]"
    return "".join(taken)


def _cut(taken: list[str], line: str, first: int, at: int) -> str:
    if not taken:
        return f"{line[:MAX_CHARS]}\n[… line {at} continues; only its first {MAX_CHARS} characters are shown]"
    gap = "" if taken[-1].endswith("\n") else "\n"
    return f"{''.join(taken)}{gap}[… lines {first} to {at - 1} shown; continue with first_line={at}]"


# ---- write and edit ----


def write_file(context: ToolContext, args: Mapping[str, Json], _: threading.Event) -> ToolResult:
    path = split_path(args["path"])
    data = args["content"].encode("utf-8", "replace")
    is_new = Jail(context.workspace, context.changes).write(path, data)
    return ToolResult(f"{'Created' if is_new else 'Replaced'} {'/'.join(path)} ({len(data)} bytes).")


def edit_file(context: ToolContext, args: Mapping[str, Json], _: threading.Event) -> ToolResult:
    path, shown = split_path(args["path"]), args["path"]
    jail = Jail(context.workspace, context.changes)
    with jail.open_for_reading(path) as file:
        raw = file.read(MAX_EDIT + 1)
    if len(raw) > MAX_EDIT:
        raise ToolError(f"{shown!r} is larger than {MAX_EDIT} bytes. Use another tool to change it.")
    try:
        before = raw.decode()
    except UnicodeDecodeError:
        raise ToolError(f"{shown!r} is not UTF-8 text and cannot be edited.") from None
    after = replace_text(before, args["old"], args["new"], everywhere=args.get("all", False))
    jail.write(path, after.encode("utf-8", "replace"))
    return ToolResult(diff("/".join(path), before, after))


def replace_text(text: str, old: str, new: str, *, everywhere: bool) -> str:
    """Replaces exact text; raises ToolError with the reason if that is not possible."""
    if not old:
        raise ToolError("`old` is empty. Pass the exact text to replace.")
    if old == new:
        raise ToolError("`old` and `new` are the same, so there is nothing to change.")
    count = text.count(old)
    if count == 0:
        raise ToolError(
            "`old` does not occur in the file. Read the file again and copy the text exactly, including whitespace."
        )
    if count > 1 and not everywhere:
        raise ToolError(f"`old` occurs {count} times. Include more of the surrounding text, or set `all`.")
    return text.replace(old, new)


def diff(name: str, before: str, after: str) -> str:
    """A unified diff, or one line if it would be too long."""
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(a), len(b)) > _MAX_DIFF_LINES:
        return f"Changed {name}. (A diff of {len(b)} lines is not shown.)"
    lines = difflib.unified_diff(a, b, f"a/{name}", f"b/{name}")
    whole = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return shorten(whole, _MAX_DIFF)
