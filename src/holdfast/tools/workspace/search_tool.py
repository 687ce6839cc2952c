"""The file search tool. It uses the `regex` library, which releases the GIL and stops at a time limit while it
matches: with Python's `re`, one bad pattern of a model would block every run of the process. The library is imported by
the first search, on a worker thread, so that start-up does not wait for it.

Compiling a regular expression has no such limit, and recursion can use much memory while matching, so those searches
run in a process of their own (`search_process`). A plain text needs none."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.core.file_types import SNIFF, is_utf8_text
from holdfast.core.parts import Json
from holdfast.ports.tool import ToolError, ToolResult
from holdfast.tools.workspace.jail import Jail, split_path

if TYPE_CHECKING:
    import regex

MAX_MATCHES: Final = 200
MAX_FILES: Final = 20_000
MAX_FILE: Final = 4 * 1024 * 1024
MAX_LINE: Final = 300
MAX_DEPTH: Final = 40
MAX_PATTERN: Final = 1000
SECONDS: Final = 10.0  # Time limit for matching in one search
_SKIP: Final = frozenset({".git", "node_modules", ".venv", "__pycache__"})


@dataclass(slots=True)
class FileSearch:
    """One search. Setting `stop` ends it."""

    root: Path
    args: Mapping[str, Json]
    stop: threading.Event
    left: float = SECONDS
    found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self) -> ToolResult:
        return self.search(self.compile())

    def search(self, pattern: "regex.Pattern[bytes]") -> ToolResult:
        glob = self.args.get("files", "*")
        path = split_path(self.args.get("path", "."))
        jail = Jail(self.root)
        searched = 0
        for name in _walk(jail, path, 0):
            if self.stop.is_set() or len(self.found) >= MAX_MATCHES:
                break
            if not fnmatch("/".join(name), glob) and not fnmatch(name[-1], glob):
                continue
            searched += 1
            if searched > MAX_FILES:
                self.notes.append(f"[stopped after {MAX_FILES} files]")
                break
            self._search_file(jail, name, pattern)
        if len(self.found) >= MAX_MATCHES:
            self.notes.append(f"[stopped after {MAX_MATCHES} matches; narrow the search]")
        return ToolResult("\n".join(self.found + self.notes) or f"No matches in {searched} files.")

    def compile(self) -> "regex.Pattern[bytes]":
        import regex

        text: str = self.args["pattern"][:MAX_PATTERN]
        flags = regex.IGNORECASE if self.args.get("ignore_case", False) else 0
        try:
            return regex.compile((text if self.args.get("regex", False) else regex.escape(text)).encode(), flags)
        except (regex.error, RecursionError) as error:
            raise ToolError(f"The pattern is invalid: {error}.") from None

    def _search_file(self, jail: Jail, name: tuple[str, ...], pattern: "regex.Pattern[bytes]") -> None:
        try:
            with jail.open_for_reading(name) as file:
                data = file.read(MAX_FILE + 1)
        except ToolError:
            return  # a link, a pipe, or deleted since it was listed
        shown = "/".join(name)
        if len(data) > MAX_FILE:
            self.notes.append(f"[{shown} is larger than {MAX_FILE} bytes and was not searched]")
            return
        if not is_utf8_text(data[:SNIFF]):
            return
        for number, line in enumerate(data.split(b"\n"), 1):
            if self.stop.is_set() or len(self.found) >= MAX_MATCHES:
                return
            if self._matches(pattern, line):
                text = line.decode("utf-8", "replace").rstrip("\r")
                self.found.append(f"{shown}:{number}: {text[:MAX_LINE]}")

    def _matches(self, pattern: "regex.Pattern[bytes]", line: bytes) -> bool:
        began = time.monotonic()
        try:
            return pattern.search(line, timeout=max(self.left, 0.001)) is not None
        except TimeoutError:
            raise ToolError("The pattern takes too long to match. Use a simpler pattern.") from None
        finally:
            self.left -= time.monotonic() - began


def _walk(jail: Jail, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """Files below `path`, sorted by name; links are not followed."""
    with jail.directory(path) as fd, os.scandir(fd) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    for name, is_directory in found:
        if not is_directory:
            yield (*path, name)
        elif name not in _SKIP and depth < MAX_DEPTH:
            try:
                yield from _walk(jail, (*path, name), depth + 1)
            except ToolError:
                continue  # deleted, or replaced by a link
