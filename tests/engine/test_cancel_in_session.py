"""Cancel before the id of the run is known: by its session, or by the idempotency key of the request."""

import anyio
import pytest

from holdfast.agents.scripted_agent import Action, Hang, Meet, Say
from holdfast.core.errors import KeyCancelledError, NotFoundError, QuotaExceededError
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import TextPart
from holdfast.engine.transactions.cancel_requests import KEYS_CANCELLED_FOR
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, World, running
from tests.storage_interceptors import Hold, When, calls, until

pytestmark = pytest.mark.anyio

ANSWERING: list[Action] = [Say("part"), Meet("here"), Hang()]


async def test_the_active_run_of_a_session_is_cancelled(world: AnyWorld) -> None:
    """C1: without its id; the queue goes on. A session without one has nothing to cancel."""
    async with running(ANSWERING, world) as it:
        sid = await it.new_session()
        assert await it.engine.runs.cancel_in_session(sid) is None
        run = await it.send_to_gate(sid)
        queued = await it.send(sid)
        cancelled = await it.engine.runs.cancel_in_session(sid)
        assert cancelled is not None
        assert (cancelled.id, cancelled.status) == (run.id, "cancelled")
        await check_one_end(it, run, "cancelled")
        await it.until(queued.id, "running")
        assert await it.engine.runs.cancel_in_session(sid) is not None
        await check_idle(it, sid)


async def test_a_run_is_cancelled_by_the_key_of_its_request(world: AnyWorld) -> None:
    """C1: the active one or a queued one; one that has ended stays as it is."""
    async with running(ANSWERING, world) as it:
        run = await it.send_to_gate(key="a")
        queued = await it.send(run, key="b")
        sid = run.session_id
        for key, each in (("b", queued), ("a", run), ("a", run)):
            found = await it.engine.runs.cancel_in_session(sid, key=key)
            assert found is not None
            assert (found.id, found.status) == (each.id, "cancelled")
        await check_idle(it, sid)


async def test_a_request_that_comes_after_its_cancel_is_refused(world: AnyWorld) -> None:
    """C1, A2: whatever kind of request it is; it stores nothing. After ten minutes the key is free again."""
    async with running([Say("x")], world) as it:
        run = await it.turn()
        sid = run.session_id
        assert await it.engine.runs.cancel_in_session(sid, key="k") is None
        runs = it.engine.runs
        for late in (
            runs.submit(sid, [TextPart("late")], key="k"),
            runs.retry(sid, run.message_id, key="k"),
            runs.edit(sid, run.user_message_id, [TextPart("late")], key="k"),
            runs.steer(run.id, "late", key="k"),
        ):
            with pytest.raises(KeyCancelledError):
                await late
        assert await it.said(sid) == ["hello", "x"]
        other = await it.new_session()
        assert (await it.turn(other, key="k")).status == "complete"
        it.world.clock.advance(KEYS_CANCELLED_FOR + 1)
        assert (await it.turn(sid, key="k")).status == "complete"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_cancel_and_its_request_at_the_same_time(when: When) -> None:
    """C6: whichever is stored first, the request does not go on: it is refused, or its run is cancelled."""
    tap = Hold(calls("store.transact"), when=when, armed=False)
    async with running(ANSWERING, World(), tap=tap) as it:
        sid = await it.new_session()
        refused: list[KeyCancelledError] = []

        async def send() -> None:
            try:
                await it.engine.runs.submit(sid, [TextPart("hello")], key="k")
            except KeyCancelledError as error:
                refused.append(error)

        async with anyio.create_task_group() as tg:
            tap.armed = True
            tg.start_soon(send)
            await until(tap.reached)
            tap.armed = False
            if when == "after":
                tap.go.set()  # it is stored, and its client may not know yet
            cancelled = await it.engine.runs.cancel_in_session(sid, key="k")
            tap.go.set()
        assert (cancelled is None) == bool(refused) == (when == "before")
        if cancelled is not None:
            assert (await it.ended(cancelled.id)).status == "cancelled"
        await check_idle(it, sid)


async def test_canceled_keys_are_bounded() -> None:
    """E3: a session has a hundred at most, and only the owner's sessions have any."""
    async with running() as it:
        sid = await it.new_session()
        for n in range(100):
            await it.engine.runs.cancel_in_session(sid, key=f"k{n}")
        with pytest.raises(QuotaExceededError):
            await it.engine.runs.cancel_in_session(sid, key="more")
        it.world.clock.advance(KEYS_CANCELLED_FOR + 1)
        await it.engine.runs.cancel_in_session(sid, key="more")
        with pytest.raises(NotFoundError):
            await it.engine.runs.cancel_in_session(SessionId("ses_unknown"))
        with pytest.raises(NotFoundError):
            await it.engine.runs.cancel_in_session(sid, OwnerId(f"not {LOCAL}"), key="k")
