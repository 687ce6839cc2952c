"""Tool results as text: how a model reads them, and how long they may be (`MAX_RESULT`). When an
older result is left out of a request: `agents.chat.context_window`."""

import json
from dataclasses import replace

from holdfast.core.json_limits import is_too_deep
from holdfast.core.parts import Json
from holdfast.ports.tool import ToolResult

MAX_RESULT = 100_000  # Characters of one result: several fit into a model's context, and one into a journal event


def as_text(content: Json) -> str:
    """A result as the model reads it."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, default=str)


def cap_result(result: ToolResult, limit: int = MAX_RESULT) -> ToolResult:
    """The result, shortened to its head and tail if it exceeds the limit. What JSON or UTF-8 cannot carry is
    replaced."""
    text = as_text(result.content)
    if len(text) <= limit and _is_json(result.content):
        return result
    return replace(result, content=shorten(text.encode("utf-8", "replace").decode(), limit))


def shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return join_ends(text[:head], len(text) - limit, text[len(text) - tail :])


def join_ends(head: str, left_out: int, tail: str) -> str:
    """A text that lacks its middle, and says so."""
    return f"{head}\n[… {left_out} characters left out …]\n{tail}"


def _is_json(content: Json) -> bool:
    if is_too_deep(content):
        return False
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True
