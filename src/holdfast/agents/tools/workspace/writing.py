"""Changing files: write a whole one, or replace an exact piece of one. What changed is told as a diff."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from holdfast.agents.tools.port import ToolFailed, ToolResult, shorten
from holdfast.agents.tools.workspace.jail import Jail, names
from holdfast.core.parts import Json

MAX_EDIT: Final = 4 * 1024 * 1024
_MAX_DIFF_LINES: Final = 5000
_MAX_DIFF: Final = 20_000


def write_file(root: Path, args: Mapping[str, Json]) -> ToolResult:
    path = names(args["path"])
    data = args["content"].encode("utf-8", "replace")
    is_new = Jail(root).write(path, data)
    return ToolResult(f"{'Created' if is_new else 'Replaced'} {'/'.join(path)} ({len(data)} bytes).")


def edit_file(root: Path, args: Mapping[str, Json]) -> ToolResult:
    path, shown = names(args["path"]), args["path"]
    jail = Jail(root)
    with jail.reading(path) as file:
        raw = file.read(MAX_EDIT + 1)
    if len(raw) > MAX_EDIT:
        raise ToolFailed(f"{shown!r} is larger than {MAX_EDIT} bytes. Use another tool to change it.")
    try:
        before = raw.decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{shown!r} is not text in UTF-8 and cannot be edited.") from None
    after = replaced(before, args["old"], args["new"], everywhere=args.get("all", False))
    jail.write(path, after.encode("utf-8", "replace"))
    return ToolResult(diff("/".join(path), before, after))


def replaced(text: str, old: str, new: str, *, everywhere: bool) -> str:
    """An exact replacement that says exactly why it cannot be made."""
    if not old:
        raise ToolFailed("`old` is empty. Give the exact text that is to be replaced.")
    if old == new:
        raise ToolFailed("`old` and `new` are the same: there is nothing to change.")
    count = text.count(old)
    if count == 0:
        raise ToolFailed("`old` does not occur in the file. Read it again and copy the text exactly, blanks included.")
    if count > 1 and not everywhere:
        raise ToolFailed(f"`old` occurs {count} times. Give more of the text around it, or set `all`.")
    return text.replace(old, new)


def diff(name: str, before: str, after: str) -> str:
    """A unified diff, or a line that says why there is none."""
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(a), len(b)) > _MAX_DIFF_LINES:
        return f"Changed {name}. (A diff of {len(b)} lines is not shown.)"
    lines = difflib.unified_diff(a, b, f"a/{name}", f"b/{name}")
    whole = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return shorten(whole, _MAX_DIFF)
