"""Repairs messages of MCP servers that the SDK could not parse. Half a character somewhere, or deep nesting, must
not drop a message, because the request that it answers would then wait until its time limit."""

from typing import Any

from anyio import to_thread

from holdfast.core import lenient_json
from holdfast.core.json_limits import has_too_many_values
from holdfast.http_limits import MAX_BODY, MAX_STRINGS, MAX_STRUCTURE


async def repaired(error: ValueError) -> Any:
    """The message, parsed leniently; the error if it is something else. In a thread, because a message may be long, and
    is measured only by asking the error for it."""
    return await to_thread.run_sync(_repair, error)


def _repair(error: ValueError) -> Any:
    from pydantic import ValidationError

    text = error.errors()[0]["input"] if isinstance(error, ValidationError) else None
    if not isinstance(text, str | bytes) or len(text) > MAX_BODY:
        return error
    return parse_leniently(text if isinstance(text, bytes) else text.encode("utf-8", "replace")) or error


def parse_leniently(data: bytes) -> Any:
    """A message as the SDK has it; None if it is none."""
    if has_too_many_values(data, MAX_STRUCTURE, MAX_STRINGS):  # more than it seemed to the strict parser
        return None
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(lenient_json.loads(data), by_name=False))
    except ValueError:
        return None
