"""Text that the user adds to an active run. Until the run takes it, it is a queued turn like any other, whose `steers`
names the run: `accept.steer`. Each function is one transaction, or a part of one.

An execution takes it (the turn gets its intent and can no longer be edited or canceled), journals it, and the turn
ends. Only the journal of the run decides whether the text was added: whoever settles the run resolves what it finds
taken.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from holdfast.core.events import MessageSteered
from holdfast.core.ids import MessageId, RunId, SessionId
from holdfast.core.parts import TextPart, plain_text
from holdfast.core.run import Intent, Run
from holdfast.engine.transactions.row_access import put_run
from holdfast.ports.store import Tx

STEERED: Final = Intent("cancelled", reason="steered")
MAX_CHARACTERS: Final = 100_000  # Of one text: it is one event


def is_offered(tx: Tx, sid: SessionId, rid: RunId) -> bool:
    """Whether there is anything for `take`."""
    return any(run.steers == rid for run in tx.shown_open_runs(sid))


def take(tx: Tx, rid: RunId, epoch: int, known: Collection[MessageId]) -> Sequence[MessageSteered]:
    """Take what was added to the run and is not in `known`, in order; what an earlier execution took and did not
    journal is taken again. Nothing if the run is to end or is no longer ours."""
    run = tx.run(rid)
    if run is None or run.epoch != epoch or run.status != "running" or run.intent is not None:
        return ()
    taken = []
    for queued in _added_to(tx, run):
        text = _text(tx, queued)
        if text is None or queued.user_message_id in known:
            continue
        if not queued.is_taken:
            put_run(tx, replace(queued, intent=STEERED))
        taken.append(MessageSteered(queued.user_message_id, text))
    return taken


def finish(tx: Tx, rid: RunId, known: Collection[MessageId]) -> list[Run]:
    """Let the turns end whose text is in the run's journal."""
    run = tx.run(rid)
    if run is None:
        return []
    journaled = [queued for queued in _added_to(tx, run) if queued.user_message_id in known]
    return [put_run(tx, replace(queued, steers=None, intent=STEERED)) for queued in journaled]


def resolve(tx: Tx, run: Run, known: Collection[MessageId], *, is_deleted: bool = False) -> list[Run]:
    """The run has ended, and its journal has the text of the messages in `known`: their turns are returned and are to
    end, the others are ordinary queued turns now. Those of a deleted session end in any case."""
    resolved = []
    for queued in _added_to(tx, run):
        ends = is_deleted or queued.user_message_id in known
        resolved.append(put_run(tx, replace(queued, steers=None, intent=STEERED if ends else None)))
    return [queued for queued in resolved if queued.intent is not None]


def release_offered(tx: Tx, run: Run) -> None:
    """The run's journal cannot be read now. What was not taken is not in it and goes on as an ordinary queued turn;
    what was taken waits until the journal can be read."""
    for queued in _added_to(tx, run):
        if not queued.is_taken:
            put_run(tx, replace(queued, steers=None))


def give_up(tx: Tx, run: Run) -> list[Run]:
    """The journal was not found in time, or the run is erased before: what was taken is lost with it, and is not sent a
    day later. Returns the turns that are to end."""
    return [put_run(tx, replace(queued, steers=None, intent=STEERED)) for queued in _added_to(tx, run)]


def drop(tx: Tx, queued: Run) -> Run:
    """Let a turn that was taken end at once: its session is deleted, and with it the run that took it."""
    return put_run(tx, replace(queued, steers=None))


def _added_to(tx: Tx, run: Run) -> list[Run]:
    return [queued for queued in tx.open_runs(run.session_id) if queued.steers == run.id]


def _text(tx: Tx, queued: Run) -> str | None:
    """The text, as it was edited last; None if it is too long by now, or has files."""
    message = tx.message(queued.user_message_id)
    if message is None or not all(isinstance(part, TextPart) for part in message.parts):
        return None
    text = plain_text(message.parts)
    return text if len(text) <= MAX_CHARACTERS else None
