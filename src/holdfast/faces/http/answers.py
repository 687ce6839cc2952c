"""Values as the JSON that clients get. `descriptions.py` says the same to people and programs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.core.events import Failure, Usage
from holdfast.core.parts import all_to_json
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.engine.book.remembering import chosen
from holdfast.engine.boundaries import Status
from holdfast.engine.views import MessageView, SessionView
from holdfast.ports import Fact, Hit, StoredFile


def time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _time(at: float | None) -> str | None:
    return None if at is None else time(at)


def _usage(usage: Usage | None) -> Any:
    if usage is None:
        return None
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost}


def _error(error: Failure | None) -> Any:
    return None if error is None else {"code": error.code, "message": error.message}


def run(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "session_id": run.session_id,
        "message_id": run.message_id,
        "user_message_id": run.user_message_id,
        "status": run.status,
        "reason": run.reason,
        "finish_reason": run.finish_reason,
        "lifetime": run.lifetime,
        "model": run.model,
        "agent": run.agent,
        "usage": _usage(run.usage),
        "error": _error(run.error),
        "recovery": None if run.recovery is None else {"state": run.recovery.state},
        "cancel_requested": run.cancel_requested,
        "continues": run.continues,
        "created_at": time(run.created_at),
        "started_at": _time(run.started_at),
        "ended_at": _time(run.ended_at),
        "last_seq": run.last_seq,
    }


def message(message: Message, siblings: Sequence[str] | None = None) -> dict[str, Any]:
    return {
        "id": message.id,
        "session_id": message.session_id,
        "role": message.role,
        "parent_id": message.parent_id,
        "run_id": message.run_id,
        "status": message.status,
        "parts": all_to_json(message.parts),
        "reason": message.reason,
        "error": _error(message.error),
        "recovery": None if message.recovery is None else {"state": message.recovery},
        "siblings": [message.id] if siblings is None else list(siblings),
        "model": message.model,
        "usage": _usage(message.usage),
        "idempotency_key": message.key,
        "created_at": time(message.created_at),
        "last_seq": message.last_seq,
    }


def message_view(view: MessageView) -> dict[str, Any]:
    return message(view.message, view.siblings)


def session(session: Session, active_run: str | None = None, queued: Sequence[Any] = ()) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title,
        "titled_by": session.titled_by,
        "agent": session.agent,
        "model": session.model,
        "system": session.system,
        "settings": session.settings,
        "memory": chosen(session.settings),
        "previous_session_id": session.previous_session_id,
        "pinned": session.pinned,
        "archived": session.archived,
        "tags": list(session.tags),
        "project": session.project,
        "head": session.head,
        "can_redo": bool(session.redo),
        "active_run": active_run,
        "queued_runs": list(queued),
        "version": session.version,
        "created_at": time(session.created_at),
        "updated_at": time(session.updated_at),
    }


def session_view(view: SessionView) -> dict[str, Any]:
    queued = [{"run": run(waiting), "message": message(asked)} for waiting, asked in view.queued]
    return session(view.session, None if view.active_run is None else view.active_run.id, queued)


def fact(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "text": fact.text,
        "session_id": fact.session_id,
        "message_id": fact.message_id,
        "created_at": time(fact.created_at),
        "updated_at": time(fact.updated_at),
        "pinned": fact.pinned,
    }


def memory(status: Status) -> dict[str, Any]:
    return {
        "dirty_turns": status.dirty_turns,
        "committing": status.committing,
        "committed_turns": status.committed_turns,
        "last_error": status.last_error,
        "provider": status.provider,
    }


def match(hit: Hit) -> dict[str, Any]:
    return {"message_id": hit.message_id, "excerpt": hit.excerpt}


def file(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "created_at": time(file.created_at),
    }
