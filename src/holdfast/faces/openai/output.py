"""The output of a response, made from a message's parts: the same items, under the same ids, as `events.py` makes from
the journal while they grow."""

import json
from collections.abc import Iterable, Sequence

from holdfast.core.ids import RunId
from holdfast.core.parts import File, Part, Reasoning, Remembered, Text, Tool
from holdfast.faces.openai import frames, names


def shown(parts: Iterable[Part]) -> list[Part]:
    """Those that are items, in order: an item's index is its place here."""
    return [part for part in parts if not isinstance(part, Remembered | File)]


def items(run: RunId, parts: Sequence[Part], *, complete: bool, own_tools: bool) -> list[bytes]:
    """`complete`: the run ended so, or is still open; otherwise what was being said last was cut off. `own_tools`:
    calls are of tools of ours, not of the client's."""
    found = shown(parts)
    last = len(found) - 1
    return [_item(run, at, part, cut=not complete and at == last, own_tools=own_tools) for at, part in enumerate(found)]


def _item(run: RunId, at: int, part: Part, *, cut: bool, own_tools: bool) -> bytes:
    match part:
        case Text(text):
            return frames.message(names.item("msg", run, at), "incomplete" if cut else "completed", frames.quote(text))
        case Reasoning(text, provider):
            status = "incomplete" if cut and provider is None else "completed"
            return frames.reasoning(names.item("rs", run, at), status, frames.quote(text))
        case Tool() if own_tools:
            return own_call(names.item("mcp", run, at), part)
        case Tool(call_id, name, args):
            text = frames.arguments(args)
            return frames.function_call(names.item("fc", run, at), call_status(text), call_id, name, frames.quote(text))
        case _:
            raise AssertionError(part)


def own_call(item_id: str, part: Tool) -> bytes:
    args = frames.quote(frames.arguments(part.args))
    failed = part.state == "denied" or (part.state == "done" and part.is_error)
    return frames.own_call(item_id, own_status(part), part.name, args, part.result, failed=failed)


def own_status(part: Tool) -> str:
    if part.state == "done" and not part.is_error:
        return "completed"
    if part.state in ("done", "denied"):
        return "failed"
    return "in_progress" if part.state in ("running", "pending", "waiting") else "incomplete"


def call_status(args: str) -> str:
    """A call is complete if its arguments are: the beginning of a JSON object is none itself."""
    try:
        return "completed" if isinstance(json.loads(args), dict) else "incomplete"
    except ValueError:
        return "incomplete"
