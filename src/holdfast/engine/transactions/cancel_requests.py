"""Requests to end a run that the user did not stop: its message was taken off the shown branch, or its client left.
The request is a row; whoever executes the run reads it (`Supervisor.control`)."""

from collections.abc import Iterable
from dataclasses import replace

from holdfast.core import message_tree as tree
from holdfast.core.run import Intent, Run
from holdfast.core.session import Session
from holdfast.engine.transactions.row_access import put_run
from holdfast.ports.store import Tx

SUPERSEDED = Intent("cancelled", reason="superseded")
DISCONNECTED = Intent("cancelled", reason="disconnected")


def set_intent(tx: Tx, run: Run, intent: Intent) -> Run:
    """Record how an open run is to end; the first intent wins."""
    return run if run.intent is not None else put_run(tx, replace(run, intent=intent))


def stop_hidden(tx: Tx, session: Session, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Request the cancel of every open run of the session whose message is no longer on the shown branch."""
    return tuple(
        set_intent(tx, run, SUPERSEDED) for run in runs if run.in_tree and not tree.on_path(tx, session, run.message_id)
    )
