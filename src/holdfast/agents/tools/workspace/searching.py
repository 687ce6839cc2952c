"""Searching files. Patterns are matched by `regex`, which lets other threads run meanwhile and stops at a time limit:
Python's own `re` does neither, and one bad pattern of a model would hold up every run of the process. It is imported
where a search begins, which is on a thread: no start waits for it."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.agents.tools.port import ToolFailed, ToolResult
from holdfast.agents.tools.workspace.jail import Jail, names
from holdfast.agents.tools.workspace.reading import is_binary
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

if TYPE_CHECKING:
    import regex

MAX_MATCHES: Final = 200
MAX_FILES: Final = 20_000
MAX_FILE: Final = 4 * 1024 * 1024
MAX_LINE: Final = 300
MAX_DEPTH: Final = 40
MAX_PATTERN: Final = 1000
SECONDS: Final = 10.0
"""Of matching, in one search."""
_SKIP: Final = frozenset({".git", "node_modules", ".venv", "__pycache__"})


@dataclass(slots=True)
class Search:
    """One search. `stop` is set by whoever no longer waits for it."""

    root: Path
    args: Mapping[str, Json]
    stop: threading.Event
    left: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self) -> ToolResult:
        pattern, glob = self._pattern(), self.args.get("files", "*")
        path = names(self.args.get("path", "."))
        jail = Jail(self.root)
        looked = 0
        for name in _walk(jail, path, 0):
            if self.stop.is_set() or len(self.found) >= MAX_MATCHES:
                break
            if not fnmatch("/".join(name), glob) and not fnmatch(name[-1], glob):
                continue
            looked += 1
            if looked > MAX_FILES:
                self.notes.append(f"[stopped after {MAX_FILES} files]")
                break
            self._look(jail, name, pattern)
        if len(self.found) >= MAX_MATCHES:
            self.notes.append(f"[stopped after {MAX_MATCHES} matches; search more narrowly]")
        return ToolResult("\n".join(self.found + self.notes) or f"No match in {looked} files.")

    def _pattern(self) -> "regex.Pattern[bytes]":
        import regex

        text: str = self.args["pattern"][:MAX_PATTERN]
        flags = regex.IGNORECASE if self.args.get("ignore_case", False) else 0
        try:
            return regex.compile((text if self.args.get("regex", False) else regex.escape(text)).encode(), flags)
        except (regex.error, RecursionError) as error:
            raise ToolFailed(f"The pattern cannot be used: {error}.") from None

    def _look(self, jail: Jail, name: tuple[str, ...], pattern: "regex.Pattern[bytes]") -> None:
        try:
            with jail.reading(name) as file:
                data = file.read(MAX_FILE + 1)
        except ToolFailed:
            return  # a link, a pipe, or gone since it was listed
        shown = "/".join(name)
        if len(data) > MAX_FILE:
            self.notes.append(f"[{shown} is larger than {MAX_FILE} bytes and was not searched]")
            return
        if is_binary(data[:8192]):
            return
        for number, line in enumerate(data.split(b"\n"), 1):
            if self.stop.is_set() or len(self.found) >= MAX_MATCHES:
                return
            if self._matches(pattern, line):
                text = line.decode("utf-8", "replace").rstrip("\r")
                self.found.append(f"{shown}:{number}: {text[:MAX_LINE]}")

    def _matches(self, pattern: "regex.Pattern[bytes]", line: bytes) -> bool:
        began = self.clock()
        try:
            return pattern.search(line, timeout=max(self.left, 0.001)) is not None
        except TimeoutError:
            raise ToolFailed("The pattern takes too long to match. Search for something simpler.") from None
        finally:
            self.left -= self.clock() - began


def _walk(jail: Jail, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """Files below `path`, in order of name; links are not followed."""
    with jail.directory(path) as fd, os.scandir(fd) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    for name, is_directory in found:
        if not is_directory:
            yield (*path, name)
        elif name not in _SKIP and depth < MAX_DEPTH:
            try:
                yield from _walk(jail, (*path, name), depth + 1)
            except ToolFailed:
                continue  # gone, or a link by now
