"""Checks that must hold for any run or session."""

from holdfast.core.events import TERMINAL_TYPES
from holdfast.core.ids import SessionId
from holdfast.core.run import OPEN, Run
from tests.harness import Running


async def check_one_end(it: Running, run: Run, status: str) -> None:
    """One terminal event, the last; one saved message, which is the fold; and nothing that says it still goes on."""
    types = await it.types(run.id)
    assert [type_ for type_ in types if type_ in TERMINAL_TYPES] == [f"run.{status}"]
    assert types[-1] == f"run.{status}"
    row, message = await it.row(run.id), await it.stored(run.message_id)
    assert (row.status, message.status) == (status, status)
    assert message.parts == (await it.folded(run.id)).parts
    assert (row.lease, row.connection) == (None, None)


async def check_idle(it: Running, where: SessionId | Run) -> None:
    """Nothing of the session is open, and its shown branch is a chain of settled messages."""
    sid = where.session_id if isinstance(where, Run) else where
    view = await it.engine.sessions.get(sid)
    assert view.active_run is None
    assert view.queued == ()
    shown = await it.shown(sid)
    assert view.session.head == (shown[-1].id if shown else None)
    for parent, message in zip([None, *shown], shown, strict=False):
        assert message.parent_id == (None if parent is None else parent.id)
        assert message.status != "streaming"


async def check_saved_once(it: Running, run: Run, status: str) -> None:
    """The run's row came to its end in one step, and never to another."""
    changes = await it.store.inner.read(lambda tx: tx.changes(0, 1_000_000))
    said = [change.status for change in changes if change.run_id == run.id and change.kind == "run.changed"]
    assert [each for each in said if each not in OPEN] == [status]
    await check_one_end(it, run, status)
