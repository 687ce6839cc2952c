"""What a model was shown, as input items. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from holdfast.core.ids import RunId
from holdfast.core.parts import File, Text, Tool
from holdfast.core.session import Message
from holdfast.faces.openai import frames, output
from holdfast.faces.openai.errors import Wrong


def of_path(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Oldest first."""
    return [item for message in messages for item in (_asked(message) if message.role == "user" else _said(message))]


def _asked(message: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for at, part in enumerate(message.parts):
        match part:
            case Tool(call_id, _, _, _, result):
                told = {"type": "function_call_output", "call_id": call_id, "output": frames.arguments(result)}
                found.append({"id": f"fco_{message.id}_{at}", "status": "completed", **told})
            case Text(text):
                content.append({"type": "input_text", "text": text})
            case File(file_id, name, media_type):
                kind = "input_image" if media_type.startswith("image/") else "input_file"
                content.append({"type": kind, "file_id": file_id, "filename": name})
            case _:
                pass
    if content:
        said = {"id": message.id, "type": "message", "role": "user", "status": "completed", "content": content}
        found.append(said)
    return found


def _said(message: Message) -> list[dict[str, Any]]:
    own = any(isinstance(part, Tool) and part.state != "not_run" for part in message.parts)
    run = message.run_id or RunId(message.id)
    complete = message.status == "complete"
    return [json.loads(item) for item in output.items(run, message.parts, complete=complete, own_tools=own)]


def page(found: list[dict[str, Any]], limit: int, order: str, after: str | None) -> dict[str, Any]:
    if order == "desc":
        found = found[::-1]
    if after is not None:
        ids = [item["id"] for item in found]
        if after not in ids:
            raise Wrong("after", f"'{after[:100]}' is no item of this response.")
        found = found[ids.index(after) + 1 :]
    shown = found[:limit]
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return {"object": "list", "data": shown, "first_id": first, "last_id": last, "has_more": len(found) > limit}
