"""Requests to end a run: the user stopped it, its message was taken off the shown branch, or its client left. The
request is a row; whoever executes the run reads it (`Supervisor.control`)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from holdfast.core import message_tree as tree
from holdfast.core.errors import NotAllowedError, QuotaExceededError
from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.run import Intent, Run
from holdfast.core.session import Session
from holdfast.engine.transactions.row_access import get_run, get_session, put_run
from holdfast.ports.store import Tx

SUPERSEDED = Intent("cancelled", reason="superseded")
DISCONNECTED = Intent("cancelled", reason="disconnected")
KEYS_CANCELLED_FOR: Final = 600.0  # Seconds within which a request that was canceled before it came is refused
_MAX_CANCELLED_KEYS: Final = 100  # Of one session


def set_intent(tx: Tx, run: Run, intent: Intent) -> Run:
    """Record how an open run is to end; the first intent wins, but not over a person's if it was an outage of storage,
    after which the run may go on. Text for another run is no longer added to it."""
    if run.intent is not None and not run.intent.is_outage:
        return run
    return put_run(tx, replace(run, intent=intent, steers=None))


def request_cancel(tx: Tx, rid: RunId, owner: OwnerId, reason: str) -> Run:
    """Record the intent to cancel an open run; one that has ended stays as it is."""
    run = get_run(tx, rid, owner)
    if run.is_taken:
        raise NotAllowedError("cancel the message", "the running answer has taken it")
    return set_intent(tx, run, Intent("cancelled", reason=reason)) if run.is_open else run


def request_session_cancel(tx: Tx, sid: SessionId, owner: OwnerId, reason: str) -> Run | None:
    """The same for the active run of a session, if there is one."""
    get_session(tx, sid, owner)
    active = [request_cancel(tx, run.id, owner, reason) for run in tx.open_runs(sid) if run.in_tree]
    return active[-1] if active else None


def request_cancel_by_key(tx: Tx, sid: SessionId, owner: OwnerId, key: str, reason: str) -> Run | None:
    """The same for the run that was accepted with an idempotency key. If there is none, the key is noted, and a request
    with it that comes later is refused (`accept.find_repeated`)."""
    get_session(tx, sid, owner)
    run = tx.run_with_key(owner, sid, key)
    if run is not None:
        return request_cancel(tx, run.id, owner, reason)
    tx.trim_cancelled_keys(sid, tx.now - KEYS_CANCELLED_FOR)
    if tx.count_cancelled_keys(sid) >= _MAX_CANCELLED_KEYS:
        raise QuotaExceededError("canceled requests in this session", _MAX_CANCELLED_KEYS, "Try again in ten minutes.")
    tx.cancel_key(sid, key)
    return None


def stop_hidden(tx: Tx, session: Session, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Request the cancel of every open run of the session whose message is no longer on the shown branch."""
    return tuple(
        set_intent(tx, run, SUPERSEDED) for run in runs if run.in_tree and not tree.on_path(tx, session, run.message_id)
    )
