"""A run as the object that clients know: what the call asked for, said again, and how it stands."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.parts import Json
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.faces.openai import frames, names, output
from holdfast.faces.openai.requests import ChatIn, ResponseIn
from holdfast.faces.openai.targets import DIRECT


def echo(body: ResponseIn | ChatIn, name: str, ignored: list[str]) -> dict[str, Json]:
    """What of the call is kept with the run, to be said again by every later look at it."""
    kept: dict[str, Json] = {"model": name, "ignored": ignored, "metadata": body.metadata or {}}
    if isinstance(body, ResponseIn):
        kept |= {
            "previous_response_id": body.previous_response_id,
            "background": bool(body.background),
            "store": body.store is not False,
            "reasoning": None if body.reasoning is None else body.reasoning.model_dump(include={"effort", "summary"}),
            "text": None if body.text is None else body.text.format,
            "tools": body.tools,
            "tool_choice": body.tool_choice,
        }
    return kept


def _own(run: Run) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The run's settings, and among them what was kept of the call."""
    settings = run.settings if isinstance(run.settings, dict) else {}
    kept = settings.get("openai")
    return settings, kept if isinstance(kept, dict) else {}


def own_tools(run: Run) -> bool:
    return run.agent != DIRECT


def model_of(run: Run) -> str:
    return str(_own(run)[1].get("model") or run.model or f"agent:{run.agent}")


def ignored_of(run: Run) -> list[str]:
    found = _own(run)[1].get("ignored")
    return [str(name) for name in found] if isinstance(found, list) else []


def is_background(run: Run) -> bool:
    return bool(_own(run)[1].get("background", run.lifetime == "detached"))


def base(run: Run) -> bytes:
    """The fields of the response that never change."""
    settings, kept = _own(run)
    choice = kept.get("tool_choice")
    return frames.dump(
        {
            "id": names.response(run.id),
            "object": "response",
            "created_at": int(run.created_at),
            "background": is_background(run),
            "model": model_of(run),
            "instructions": settings.get("instructions"),
            "metadata": kept.get("metadata") or {},
            "previous_response_id": kept.get("previous_response_id"),
            "conversation": {"id": names.conversation(run.session_id)},
            "tools": kept.get("tools") or [],
            "tool_choice": "auto" if choice is None else choice,
            "parallel_tool_calls": settings.get("parallel_tool_calls") is not False,
            "temperature": settings.get("temperature"),
            "top_p": settings.get("top_p"),
            "max_output_tokens": settings.get("max_tokens"),
            "max_tool_calls": None,
            "reasoning": kept.get("reasoning") or {"effort": None, "summary": None},
            "text": {"format": kept.get("text") or {"type": "text"}},
            "store": kept.get("store", True),
            "truncation": "disabled",
            "service_tier": "default",
            "user": None,
            "holdfast": {"run": run.id, "session": run.session_id, "ignored": ignored_of(run)},
        }
    )


def response(run: Run, message: Message) -> bytes:
    """As it is now: `message` is the answer, saved or folded as far as its journal goes."""
    ended = not run.is_open
    complete = message.status in ("complete", "streaming")
    items = output.items(run.id, message.parts, complete=complete, own_tools=own_tools(run))
    if not ended:
        how = frames.Outcome("queued" if run.status == "queued" else "in_progress")
    else:
        how = frames.outcome(run.status, run.reason, run.finish_reason, run.error, run.usage)
    return frames.response(base(run), how, items)


def headers(run: Run) -> list[tuple[bytes, bytes]]:
    """Name the run, so that it can be found natively."""
    told = [
        (b"holdfast-run", run.id.encode()),
        (b"holdfast-session", run.session_id.encode()),
        (b"x-request-id", run.id.encode()),
    ]
    ignored = ignored_of(run)
    return [*told, (b"holdfast-ignored", ", ".join(ignored).encode("latin-1", "replace"))] if ignored else told
