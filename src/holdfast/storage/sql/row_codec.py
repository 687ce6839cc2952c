"""Values as rows of their tables and back. What is queried has a column; what is only carried is JSON."""

import json
from collections.abc import Sequence
from typing import Any, Final

from holdfast.core.events import Failure, Usage, failure_from_json
from holdfast.core.memory_ledger import DirtyTurn, Ledger, MemoryCommit, TurnText
from holdfast.core.parts import Json, all_from_json, all_to_json
from holdfast.core.run import Intent, Lease, Recovery, Run
from holdfast.core.session import Message, Session
from holdfast.ports.store import Approval, Fact, ToolGrant
from holdfast.storage.sql.table import Table

Row = Sequence[Any]

_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_load = json.JSONDecoder(parse_constant=lambda _: None).decode
"""NaN and infinite numbers, which versions before 0.2 stored, become null: no response could contain them."""


def _encode(value: Json) -> str:
    """Empty values are encoded without `json`: most values are empty, and `json` takes as long as SQLite's lookup."""
    if not value and (value is None or isinstance(value, tuple | list)):
        return "null" if value is None else "[]"
    return _dump(value)


def decode(text: str) -> Any:
    if text == "null":
        return None
    if text == "[]":
        return []
    value = _load(text)
    if "\\ud" in text:  # perhaps a lone surrogate
        value = _load(_dump(value).encode("utf-8", "replace").decode())
    return value


# ---- sessions ----

SESSIONS: Final = Table(
    "sessions",
    "id, owner, created_at, updated_at, title, titled_by, agent, model, system, settings, previous_session_id, "
    "pinned, archived, tags, project, head, redo, version, deleted_at",
)


def from_session(s: Session) -> Row:
    return (
        s.id, s.owner, s.created_at, s.updated_at, s.title, s.titled_by, s.agent, s.model, s.system,
        _encode(s.settings), s.previous_session_id, s.pinned, s.archived, _encode(s.tags), s.project, s.head,
        _encode(s.redo), s.version, s.deleted_at,
    )  # fmt: skip


def to_session(row: Row) -> Session:
    (
        id, owner, created_at, updated_at, title, titled_by, agent, model, system, settings, previous_session_id,
        pinned, archived, tags, project, head, redo, version, deleted_at,
    ) = row  # fmt: skip
    return Session(
        id, owner, created_at, updated_at, title, titled_by, agent, model, system, decode(settings),
        previous_session_id, bool(pinned), bool(archived), tuple(decode(tags)), project, head,
        tuple(decode(redo)), version, deleted_at,
    )  # fmt: skip


# ---- messages ----

MESSAGES: Final = Table(
    "messages",
    "id, owner, session_id, role, parent_id, created_at, run_id, status, reason, error, recovery, model, usage, key, "
    "in_tree, last_seq, parts",
)


def from_message(m: Message) -> Row:
    return (
        m.id, m.owner, m.session_id, m.role, m.parent_id, m.created_at, m.run_id, m.status, m.reason,
        _from_failure(m.error), m.recovery, m.model, _from_usage(m.usage), m.key, m.in_tree, m.last_seq,
        _encode(all_to_json(m.parts)),
    )  # fmt: skip


def to_message(row: Row) -> Message:
    (
        id, owner, session_id, role, parent_id, created_at, run_id, status, reason, error, recovery, model, usage,
        key, in_tree, last_seq, parts,
    ) = row  # fmt: skip
    return Message(
        id, owner, session_id, role, parent_id, created_at, run_id, status, all_from_json(decode(parts)), reason,
        _to_failure(error), recovery, model, _to_usage(usage), key, bool(in_tree), last_seq,
    )  # fmt: skip


# ---- runs ----

RUNS: Final = Table(
    "runs",
    "id, owner, session_id, message_id, user_message_id, agent, model, settings, lifetime, created_at, rank, in_tree, "
    "status, epoch, lease_holder, lease_until, connection_holder, connection_until, key, fingerprint, continues, "
    "resumes, intent, recovery_state, recovery_since, recovery_attempts, reason, finish_reason, error, usage, "
    "started_at, ended_at, last_seq, pruned",
)


def from_run(r: Run) -> Row:
    return (
        r.id, r.owner, r.session_id, r.message_id, r.user_message_id, r.agent, r.model, _encode(r.settings),
        r.lifetime, r.created_at, r.rank, r.in_tree, r.status, r.epoch, *_from_lease(r.lease),
        *_from_lease(r.connection), r.key, r.fingerprint, r.continues, r.resumes, _from_intent(r.intent),
        *_from_recovery(r.recovery), r.reason, r.finish_reason, _from_failure(r.error), _from_usage(r.usage),
        r.started_at, r.ended_at, r.last_seq, r.pruned,
    )  # fmt: skip


def to_run(row: Row) -> Run:
    (
        id, owner, session_id, message_id, user_message_id, agent, model, settings, lifetime, created_at, rank,
        in_tree, status, epoch, lease_holder, lease_until, connection_holder, connection_until, key, fingerprint,
        continues, resumes, intent, recovery_state, recovery_since, recovery_attempts, reason, finish_reason, error,
        usage, started_at, ended_at, last_seq, pruned,
    ) = row  # fmt: skip
    return Run(
        id, owner, session_id, message_id, user_message_id, agent, model, decode(settings), lifetime, created_at,
        rank, bool(in_tree), status, epoch, _to_lease(lease_holder, lease_until),
        _to_lease(connection_holder, connection_until), key, fingerprint, continues, resumes, _to_intent(intent),
        None if recovery_state is None else Recovery(recovery_state, recovery_since, recovery_attempts), reason,
        finish_reason, _to_failure(error), _to_usage(usage), started_at, ended_at, last_seq, bool(pruned),
    )  # fmt: skip


# ---- approvals, compactions, grants, files, changes, settings ----

APPROVALS: Final = Table(
    "approvals", "id, owner, run_id, session_id, call_id, name, args, reason, created_at, decision, decided_at, note"
)


def from_approval(a: Approval) -> Row:
    return (
        a.id, a.owner, a.run_id, a.session_id, a.call_id, a.name, _encode(a.args), a.reason, a.created_at,
        a.decision, a.decided_at, a.note,
    )  # fmt: skip


def to_approval(row: Row) -> Approval:
    id, owner, run_id, session_id, call_id, name, args, *rest = row
    return Approval(id, owner, run_id, session_id, call_id, name, decode(args), *rest)


COMPACTIONS: Final = Table(
    "compactions", "session_id, owner, message_id, summary, created_at", "session_id, message_id"
)
FILES: Final = Table("files", "id, owner, sha256, name, media_type, size, created_at")
CHANGES: Final = Table("changes", "n, kind, owner, session_id, run_id, approval_id, status", "n")
SETTINGS: Final = Table("settings", "owner, name, value", "owner, name")
GRANTS: Final = Table("grants", "owner, session_id, tool, scope, created_at", "owner, session_id, tool, scope")


def from_grant(g: ToolGrant) -> Row:
    return g.owner, g.session_id or "", g.tool, g.scope, g.created_at


def to_grant(row: Row) -> ToolGrant:
    return ToolGrant(row[0], row[1] or None, *row[2:])


# ---- memory ----

LEDGERS: Final = Table("ledgers", "session_id, owner, due_at, state", "session_id")


def from_ledger(ledger: Ledger) -> Row:
    commit = ledger.commit
    state = {
        "completed": ledger.completed,
        "committed": ledger.committed,
        "applied": ledger.applied,
        "handle": ledger.handle,
        "told": ledger.told,
        "commit": None if commit is None else [commit.handle, commit.first, commit.last, *_from_lease(commit.lease)],
        "boundary": ledger.boundary,
        "attempts": ledger.attempts,
        "last_error": ledger.last_error,
        "forget": ledger.forget,
    }
    return ledger.session_id, ledger.owner, ledger.due_at, _encode(state)


def to_ledger(row: Row) -> Ledger:
    session_id, owner, due_at, text = row
    state = decode(text)
    told, commit = tuple(state.pop("told")), state.pop("commit")
    if commit is not None:
        handle, first, last, holder, until = commit
        commit = MemoryCommit(handle, first, last, _to_lease(holder, until))
    return Ledger(session_id, owner, told=told, commit=commit, due_at=due_at, **state)


DIRTY_TURNS: Final = Table(
    "dirty_turns", "session_id, owner, n, run_id, user_message_id, message_id, said_at, handle, words", "session_id, n"
)


def from_dirty_turn(t: DirtyTurn) -> Row:
    words = None if t.words is None else _encode([all_to_json(t.words.user), all_to_json(t.words.assistant)])
    return t.session_id, t.owner, t.n, t.run_id, t.user_message_id, t.message_id, t.said_at, t.handle, words


def to_dirty_turn(row: Row) -> DirtyTurn:
    words = None if row[-1] is None else TurnText(*map(all_from_json, decode(row[-1])))
    return DirtyTurn(*(*row[:-1], words))


FACTS: Final = Table(
    "facts",
    "n, id, owner, key, text, session_id, message_id, said_at, created_at, updated_at, pinned, vector",
    "n",
)


def from_fact(f: Fact) -> Row:
    return (
        f.id, f.owner, f.key, f.text, f.session_id, f.message_id, f.said_at, f.created_at, f.updated_at, f.pinned,
        f.vector,
    )  # fmt: skip


def to_fact(row: Row) -> Fact:
    n, *rest, pinned, vector = row
    return Fact(*(*rest, bool(pinned), vector, n))


# ---- parts of rows ----


def _from_lease(lease: Lease | None) -> tuple[str | None, float | None]:
    return (None, None) if lease is None else (lease.holder, lease.until)


def _to_lease(holder: Any, until: float | None) -> Lease | None:
    return None if holder is None else Lease(holder, until)


def _from_recovery(recovery: Recovery | None) -> tuple[str | None, float | None, int | None]:
    return (None, None, None) if recovery is None else (recovery.state, recovery.since, recovery.attempts)


def _failure(failure: Failure | None) -> Json:
    return None if failure is None else {"code": failure.code, "message": failure.message}


def _from_failure(failure: Failure | None) -> str | None:
    return None if failure is None else _encode(_failure(failure))


def _to_failure(text: str | None) -> Failure | None:
    return None if text is None else failure_from_json(decode(text))


def _from_intent(intent: Intent | None) -> str | None:
    if intent is None:
        return None
    return _encode({"status": intent.status, "reason": intent.reason, "error": _failure(intent.error)})


def _to_intent(text: str | None) -> Intent | None:
    if text is None:
        return None
    data = decode(text)
    return Intent(data["status"], data["reason"], failure_from_json(data["error"]))


def _from_usage(usage: Usage | None) -> str | None:
    return None if usage is None else _encode([usage.input_tokens, usage.output_tokens, usage.cost])


def _to_usage(text: str | None) -> Usage | None:
    return None if text is None else Usage(*decode(text))
