"""The file tools as the agent sees them. Each runs in a worker thread: nothing of it blocks the event loop."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from anyio import to_thread

from holdfast.agents.models.port import ToolSpec
from holdfast.agents.tools.port import Tool, ToolContext, ToolResult, Traits
from holdfast.agents.tools.workspace.reading import list_files, read_file
from holdfast.agents.tools.workspace.searching import MAX_PATTERN, Search
from holdfast.agents.tools.workspace.writing import edit_file, write_file
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

LOOKS: Final = Traits(repeatable=True, read_only=True, rule="allow")
CHANGES: Final = Traits(rule="ask")
REPLACES: Final = Traits(repeatable=True, rule="ask")
"""Writing a whole file twice leaves the same file."""

_PATH: Final = {"type": "string", "description": "Relative to the workspace."}


@dataclass(frozen=True, slots=True)
class FileTool:
    spec: ToolSpec
    traits: Traits
    work: Callable[[Path, Mapping[str, Json]], ToolResult]

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        """A change that has begun is finished: cancellation waits the moment that takes."""
        work = partial(self.work, context.workspace, args)
        return await to_thread.run_sync(work, abandon_on_cancel=self.traits.read_only)


@dataclass(frozen=True, slots=True)
class SearchTool:
    spec: ToolSpec
    traits: Traits = LOOKS

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        stop = threading.Event()
        search = Search(context.workspace, args, stop)
        try:
            return await to_thread.run_sync(search.run, abandon_on_cancel=True)
        finally:
            stop.set()


def file_tools() -> Sequence[Tool]:
    return (
        FileTool(_spec("list_files", "List a directory.", {"path": _PATH}), LOOKS, list_files),
        FileTool(_READ, LOOKS, read_file),
        SearchTool(_SEARCH),
        FileTool(_WRITE, REPLACES, write_file),
        FileTool(_EDIT, CHANGES, edit_file),
    )


def _spec(name: str, description: str, properties: Mapping[str, Json], *required: str) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


_READ: Final = _spec(
    "read_file",
    "Read a text file, or a range of its lines.",
    {
        "path": _PATH,
        "first_line": {"type": "integer", "minimum": 1, "description": "1 is the first line."},
        "lines": {"type": "integer", "minimum": 1, "description": "How many lines at most."},
    },
    "path",
)
_SEARCH: Final = _spec(
    "search_files",
    "Find lines that contain a text, or that match a regular expression.",
    {
        "pattern": {"type": "string", "minLength": 1, "maxLength": MAX_PATTERN},
        "regex": {"type": "boolean", "description": "Take the pattern as a regular expression."},
        "ignore_case": {"type": "boolean"},
        "path": _PATH,
        "files": {"type": "string", "description": "Only files whose name or path matches, like '*.py'."},
    },
    "pattern",
)
_WRITE: Final = _spec(
    "write_file",
    "Create a file or replace all of it. Missing directories are made.",
    {"path": _PATH, "content": {"type": "string"}},
    "path",
    "content",
)
_EDIT: Final = _spec(
    "edit_file",
    "Replace an exact piece of a text file. It must occur exactly once, unless `all` is set.",
    {
        "path": _PATH,
        "old": {"type": "string", "description": "The text as it is in the file, blanks and line ends included."},
        "new": {"type": "string"},
        "all": {"type": "boolean", "description": "Replace every occurrence."},
    },
    "path",
    "old",
    "new",
)
