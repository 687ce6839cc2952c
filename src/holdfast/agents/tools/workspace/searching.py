"""Searching files. Patterns are RE2's: they take time in proportion to the text, whatever the pattern, so that no model
can hold the process up with one."""

import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import re2

from holdfast.agents.tools.port import ToolFailed, ToolResult
from holdfast.agents.tools.workspace.jail import Jail, names
from holdfast.agents.tools.workspace.reading import is_binary
from holdfast.core.parts import Json

MAX_MATCHES: Final = 200
MAX_FILES: Final = 20_000
MAX_FILE: Final = 4 * 1024 * 1024
MAX_LINE: Final = 300
MAX_DEPTH: Final = 40
_SKIP: Final = frozenset({".git", "node_modules", ".venv", "__pycache__"})


@dataclass(slots=True)
class Search:
    """One search. `stop` is set by whoever no longer waits for it."""

    root: Path
    args: Mapping[str, Json]
    stop: threading.Event
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

    def _pattern(self) -> Any:
        options = re2.Options()
        options.log_errors = False
        options.literal = not self.args.get("regex", False)
        options.case_sensitive = not self.args.get("ignore_case", False)
        try:
            return re2.compile(self.args["pattern"].encode(), options)
        except re2.error as error:
            raise ToolFailed(
                f"The pattern cannot be used ({error}). It takes RE2 syntax, without lookaround."
            ) from None

    def _look(self, jail: Jail, name: tuple[str, ...], pattern: Any) -> None:
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
            if pattern.search(line) is not None:
                text = line.decode("utf-8", "replace").rstrip("\r")
                self.found.append(f"{shown}:{number}: {text[:MAX_LINE]}")


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
