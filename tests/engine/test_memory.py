"""Section M: when completed turns are committed to memory, and that none is lost or committed twice."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import CallTool, Fail, Hang, Meet, Say, ScriptedAgent
from holdfast.core.errors import NotFoundError, StorageError
from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.memory_ledger import LedgerPolicy
from holdfast.core.parts import RememberedPart, TextPart
from holdfast.engine.session_memory import MemoryStatus
from holdfast.engine.transactions.memory import CommitOutcome
from holdfast.ports.agent import Turn
from holdfast.testing import Fault
from tests.harness import QUICK, AnyWorld, Running, World, asked, running, texts
from tests.memory_providers import ProviderTable, RecordingProvider
from tests.storage_interceptors import GUARD, Hold, appends, calls, until

pytestmark = pytest.mark.anyio

IDLE = 600.0
SETTINGS = replace(QUICK, memory=LedgerPolicy(idle=IDLE, tries=3, pause=10.0), flush_time=5.0, recall_wait=GUARD)


def script(turn: Turn) -> list[Any]:
    said = asked(turn)
    if said == "fails":
        return [Say("x"), Fail()]
    if said == "hangs":
        return [Say("x"), Hang()]
    if said == "looks":
        return [CallTool("c1", "fetch"), Say("The page says: remember this.")]
    return [Meet("here"), Say("late")] if said == "waits" else [Say(f"re: {said}")]


@asynccontextmanager
async def remembering(
    world: AnyWorld, *providers: RecordingProvider, default: str | None = "a", **options: Any
) -> AsyncIterator[Running]:
    table = ProviderTable({provider.name: provider for provider in providers}, default)
    async with running(ScriptedAgent(script), world, SETTINGS, memory=table, **options) as it:
        yield it


@asynccontextmanager
async def committing(
    world: AnyWorld, **options: Any
) -> AsyncIterator[tuple[Running, RecordingProvider, SessionId, anyio.Event]]:
    """A session whose commit of the turn "one" is under way until the event is set."""
    go = (a := RecordingProvider("a")).hold()
    async with remembering(world, a, **options) as it, anyio.create_task_group() as group:
        sid = await it.new_session("one")
        group.start_soon(it.boundaries.commit, sid)
        await until(a.reached)
        yield it, a, sid, go
        group.cancel_scope.cancel()


async def quiet(it: Running, sid: SessionId) -> MemoryStatus:
    """When nothing is being committed."""
    return await status_when(it, sid, lambda status: not status.committing)


async def clean(it: Running, sid: SessionId) -> MemoryStatus:
    """When nothing is dirty."""
    return await status_when(it, sid, lambda status: not status.dirty_turns)


async def status_when(it: Running, sid: SessionId, reached: Callable[[MemoryStatus], bool]) -> MemoryStatus:
    with anyio.fail_after(GUARD):
        while not reached(status := await it.boundaries.status(sid)):
            await checkpoint()
    return status


def said(provider: RecordingProvider) -> list[list[str]]:
    """What people said in each commit that was taken."""
    return [[texts(turn.user) for turn in batch.turns] for batch in provider.commits]


async def test_a_completed_turn_makes_the_session_dirty(world: AnyWorld) -> None:
    """M1: a completed turn marks the session dirty and tells no provider."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session("one", "two")
        await it.boundaries.tick()
        assert await it.boundaries.status(sid) == MemoryStatus(2, False, 0, None, "a")
        assert a.tried == []


async def test_several_turns_make_one_commit(world: AnyWorld) -> None:
    """M2: the explicit call commits what there is, once, with what was said and answered."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session()
        runs = [await it.turn(sid, text) for text in ("one", "two")]
        assert await it.boundaries.commit(sid) == CommitOutcome(2, "a")
        (batch,) = a.commits
        assert [turn.run_id for turn in batch.turns] == [run.id for run in runs]
        assert [(texts(turn.user), texts(turn.assistant)) for turn in batch.turns] == [
            ("one", "re: one"),
            ("two", "re: two"),
        ]
        assert [turn.message_id for turn in batch.turns] == [run.message_id for run in runs]
        assert await it.boundaries.status(sid) == MemoryStatus(0, False, 2, None, "a")


async def test_a_turn_that_used_tools_is_marked(world: AnyWorld) -> None:
    """M2: its answer may repeat what a page or a server wrote, so a provider gets the user's words alone."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session("looks")
        await it.boundaries.commit(sid)
        (turn,) = a.commits[0].turns
        assert (turn.external, texts(turn.user), list(turn.assistant)) == (True, "looks", [])


async def test_a_commit_that_could_not_be_recorded_is_no_success(virtual: World) -> None:
    """M5: the provider took it, but the store does not answer in time: the turns stay dirty, and the caller is told."""
    go = (a := RecordingProvider("a")).hold()
    async with remembering(virtual, a, final_save=15.0) as it:
        sid = await it.new_session("one")

        async def commit() -> None:
            with pytest.raises(StorageError):
                await it.boundaries.commit(sid)

        async with anyio.create_task_group() as group:
            group.start_soon(commit)
            await until(a.reached)
            calls = it.store.calls["transact"]
            it.store.plan = {("transact", calls + n): Fault("stall", 100.0) for n in range(1, 1000)}
            go.set()
        it.store.plan = {}
        assert said(a) == [["one"]]
        assert (await it.boundaries.status(sid)).dirty_turns == 1


BOUNDARIES: dict[str, Callable[[Running, SessionId], Awaitable[object]]] = {
    "successor": lambda it, sid: it.engine.sessions.create(previous_session_id=sid),
    "clear": lambda it, sid: it.engine.sessions.clear(sid),
    "delete": lambda it, sid: it.engine.sessions.delete(sid),
    "too many sessions": lambda it, _: it.new_session("elsewhere"),
    "idle": lambda it, _: it.boundaries.tick(),
    "shutdown": lambda it, _: it.shut_down(),
}


@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_every_boundary_commits(world: AnyWorld, boundary: str) -> None:
    """M2: a successor, idleness, clear, delete, shutdown and too many warm sessions each make one commit of all."""
    warm = 1 if boundary == "too many sessions" else 100
    async with remembering(world, a := RecordingProvider("a"), warm_sessions=warm) as it:
        sid = await it.new_session("one", "two")
        await it.boundaries.tick()
        assert a.tried == []
        it.world.clock.advance(IDLE if boundary == "idle" else 0.0)
        await BOUNDARIES[boundary](it, sid)
        if boundary != "shutdown":
            await clean(it, sid)
        assert said(a) == [["one", "two"]]


async def test_a_predecessor_of_somebody_else_is_left_alone(world: AnyWorld) -> None:
    """M2, M10: naming an unknown session, or one of another owner, as the predecessor commits nothing."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session("hello")
        await it.engine.sessions.create(OwnerId("somebody"), previous_session_id=sid)
        for name in ("", "ses_unknown"):
            await it.engine.sessions.create(previous_session_id=SessionId(name))
        await it.boundaries.tick()
        assert a.tried == []


async def test_a_turn_during_a_commit_is_in_the_next_one(world: AnyWorld) -> None:
    """M4, O4: a commit under way holds up nobody; what completes meanwhile stays dirty and comes next."""
    async with committing(world) as (it, a, sid, go):
        await it.turn(sid, "two")
        await it.engine.sessions.update(sid, {"title": "renamed meanwhile"})
        assert await it.boundaries.status(sid) == MemoryStatus(2, True, 0, None, "a")
        go.set()
        assert await quiet(it, sid) == MemoryStatus(1, False, 1, None, "a")
        await it.boundaries.commit(sid)
        assert said(a) == [["one"], ["two"]]
        assert a.most_at_once == 1


async def test_a_commit_of_a_process_that_is_gone_is_not_under_way(world: AnyWorld) -> None:
    """M11: what died in the middle of a commit is dirty, and shown as that."""
    async with committing(world, flush_time=0.0) as (it, a, sid, _):
        await it.crash()
    async with remembering(world, a, max_runs=0) as after:
        assert await after.boundaries.status(sid) == MemoryStatus(1, False, 0, None, "a")


async def test_a_status_is_of_one_moment(memory: World) -> None:
    """M4: a commit that ends while the status is read is not half in it: dirty as before, and no longer under way."""
    a, hold = RecordingProvider("a"), Hold(calls("store.read"), when="after", armed=False)
    go, found = a.hold(), list[MemoryStatus]()
    async with remembering(memory, a, tap=hold) as it, anyio.create_task_group() as group:
        sid = await it.new_session("one")
        async with anyio.create_task_group() as committing:
            committing.start_soon(it.boundaries.commit, sid)
            await until(a.reached)
            hold.armed = True

            async def look() -> None:
                found.append(await it.boundaries.status(sid))

            group.start_soon(look)
            await hold.held()
            go.set()
        hold.go.set()
    assert found == [MemoryStatus(1, True, 0, None, "a")]


@pytest.mark.parametrize("late", [False, True])
async def test_a_failed_commit_is_tried_again_as_it_was(world: AnyWorld, late: bool) -> None:
    """M5, M11: what failed stays dirty and comes again with the same id, turns and provider, whatever came since."""
    async with remembering(world, a := RecordingProvider("a", fails=2, late=late)) as it:
        sid = await it.new_session("one")
        outcome = await it.boundaries.commit(sid)
        assert outcome.error is not None
        assert "a" in outcome.error
        status = await it.boundaries.status(sid)
        assert (status.dirty_turns, status.committing, status.last_error) == (1, False, outcome.error)
        await it.turn(sid, "two")
        it.world.clock.advance(9.0)
        await it.boundaries.tick()
        assert len(a.tried) == 1
        assert (await it.boundaries.commit(sid)).error is not None
        assert len(a.tried) == 2
        it.world.clock.advance(20.0)
        await it.boundaries.tick()
        assert [batch.id for batch in a.tried] == [f"{sid}/1-1"] * 3
        assert await it.boundaries.status(sid) == MemoryStatus(1, False, 1, None, "a")
        await it.boundaries.commit(sid)
        assert a.commits[-1].id == f"{sid}/2-2"


async def test_a_provider_named_by_the_failed_call_alone_is_tried_again(world: AnyWorld) -> None:
    """M5: turns that belong to no provider are tried again with the one that the failed call named."""
    a, b = RecordingProvider("a"), RecordingProvider("b", fails=1)
    async with remembering(world, a, b, default=None) as it:
        sid = await it.new_session("one")
        assert await it.boundaries.commit(sid) == CommitOutcome(unclaimed=True)
        assert (await it.boundaries.commit(sid, "b")).error is not None
        assert (await it.boundaries.commit(sid)).provider == "b"
        assert (a.tried, said(b)) == ([], [["one"]])


async def test_a_replaced_provider_flushes_its_turns_first(world: AnyWorld) -> None:
    """M6: turns go to the provider they were completed with, one owner's per call, even if the call names the other."""
    a, b = RecordingProvider("a"), RecordingProvider("b")
    async with remembering(world, a, b) as it:
        sid = await it.new_session("one", "two")
        await it.engine.sessions.update(sid, {"settings": {"memory": "b"}})
        await it.turn(sid, "three")
        assert await it.boundaries.commit(sid, "b") == CommitOutcome(2, "a")
        assert (said(a), said(b)) == ([["one", "two"]], [])
        assert (await it.boundaries.status(sid)).dirty_turns == 1
        assert await it.boundaries.commit(sid, "b") == CommitOutcome(1, "b")
        assert said(b) == [["three"]]


async def test_a_provider_that_a_call_names_takes_over(world: AnyWorld) -> None:
    """M6: the old provider's turns are flushed by it, and later turns belong to the one that was named."""
    a, b = RecordingProvider("a"), RecordingProvider("b")
    async with remembering(world, a, b) as it:
        sid = await it.new_session("one")
        assert (await it.boundaries.commit(sid, "b")).provider == "a"
        await it.turn(sid, "two")
        assert (await it.boundaries.commit(sid)).provider == "b"
        assert (said(a), said(b)) == ([["one"]], [["two"]])


async def test_a_boundary_flushes_all_owners(world: AnyWorld) -> None:
    """M6: a boundary that is not a call tells each provider of its own turns, in their order."""
    a, b = RecordingProvider("a"), RecordingProvider("b")
    async with remembering(world, a, b) as it:
        sid = await it.new_session("one")
        await it.engine.sessions.update(sid, {"settings": {"memory": "b"}})
        await it.turn(sid, "two")
        await it.engine.sessions.update(sid, {"settings": {"memory": "a"}})
        await it.turn(sid, "three")
        await it.engine.sessions.delete(sid)
        await clean(it, sid)
        assert (said(a), said(b)) == ([["one"], ["three"]], [["two"]])


async def test_only_completed_turns_are_remembered(world: AnyWorld) -> None:
    """M7: cancelled, failed and interrupted turns, and those of a run without memory, leave nothing to commit."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session()
        assert (await it.turn(sid, "fails")).status == "failed"
        hanging = await it.send(sid, "hangs")
        await it.engine.runs.cancel(hanging.id)
        await it.turn(sid, "ephemeral", settings={"memory": "none"})
        await it.send(sid, "hangs")
        await it.shut_down()
        assert a.tried == []
    async with remembering(world, a) as it:
        assert await it.boundaries.status(sid) == MemoryStatus()
        assert await it.boundaries.commit(sid) == CommitOutcome()
        assert a.tried == []


async def test_an_incognito_session_leaves_no_trace(world: AnyWorld) -> None:
    """M7: a session without memory is asked nothing, marked nowhere and committed never, at any boundary."""
    async with remembering(world, a := RecordingProvider("a", items=({"text": "x", "source": "y"},))) as it:
        sid = (await it.engine.sessions.create(settings={"memory": "none"})).id
        await it.turn(sid, "secret")
        await it.engine.sessions.create(previous_session_id=sid)
        await it.boundaries.commit(sid, "a")
        await it.boundaries.evict(sid)
        assert await it.store.inner.read(lambda tx: tx.ledger(sid)) is None
        await it.engine.sessions.delete(sid)
        await it.boundaries.tick()
        await it.shut_down()
    assert (a.asked, a.tried, a.released) == ([], [], [])


async def test_going_incognito_drops_what_is_dirty(world: AnyWorld) -> None:
    """M7: turns that no provider was told of when the session lost its memory are not told later."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session("secret")
        await it.engine.sessions.update(sid, {"settings": {"memory": "none"}})
        await it.turn(sid, "more")
        assert (await it.boundaries.status(sid)).dirty_turns == 0
        await it.boundaries.commit(sid, "a")
        await it.engine.sessions.update(sid, {"settings": None})
        await it.turn(sid, "open")
        await it.boundaries.commit(sid)
        assert said(a) == [["open"]]


async def test_turns_sent_while_memory_is_off_are_never_remembered(world: AnyWorld) -> None:
    """M7: memory is off for a turn if it was when the turn was sent, also if it is on when the turn completes, and for
    another answer to the same question."""
    async with remembering(world, a := RecordingProvider("a", items=({"text": "x", "source": "y"},))) as it:
        sid = await it.new_session()
        await it.engine.sessions.update(sid, {"memory": "none"})
        run = await it.send_to_gate(sid, "waits")
        await it.engine.sessions.update(sid, {"memory": None})
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        again = (await it.engine.runs.retry(sid, run.message_id)).run
        assert (await it.ended(again.id)).status == "complete"
        assert (await it.boundaries.status(sid), a.asked) == (MemoryStatus(), [])
        await it.turn(sid, "open")
        await it.boundaries.commit(sid)
        assert said(a) == [["open"]]


async def test_the_default_turns_memory_off_unless_the_chat_turns_it_on(world: AnyWorld) -> None:
    """M7: the owner's default counts for chats that have no choice of their own, from the next turn on."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        first, second = await it.new_session(), (await it.engine.sessions.create(memory="default")).id
        await it.engine.preferences.change({"chat_defaults": {"memory": "none"}})
        for sid in (first, second):
            await it.turn(sid, "secret" if sid == first else "open")
        assert [(await it.boundaries.status(sid)).dirty_turns for sid in (first, second)] == [0, 1]
        await it.engine.preferences.change({"chat_defaults": None})
        assert (await it.boundaries.status(first)).dirty_turns == 0
        await it.turn(first, "later")
        for sid in (first, second):
            await it.boundaries.commit(sid)
        assert sorted(said(a)) == [["later"], ["open"]]


async def test_shutdown_waits_and_then_flushes_the_rest(world: AnyWorld) -> None:
    """M8: a commit under way is waited for, and what came after it is committed too, before the engine is gone."""
    async with committing(world) as (it, a, sid, go):
        await it.turn(sid, "two")
        await it.draining()
        assert not it.finished.is_set()
        go.set()
        await it.shut_down()
        assert said(a) == [["one"], ["two"]]
        assert a.released == [sid]


async def test_shutdown_has_a_deadline_and_forgets_nothing(world: AnyWorld) -> None:
    """M8, M11: a provider that never answers holds up shutdown for a limited time; the next life commits the turn."""
    stuck = RecordingProvider("a")
    stuck.hold()
    async with remembering(world, stuck, flush_time=0.05) as it:
        run = await it.turn(text="one")
        await it.shut_down()
        assert stuck.commits == []
    well = RecordingProvider("a")
    async with remembering(world, well) as it:
        await clean(it, run.session_id)
        assert well.runs == [[run.id]]
        assert [batch.id for batch in well.commits] == [f"{run.session_id}/1-1"]


async def test_eviction_commits_then_closes_once(world: AnyWorld) -> None:
    """M9: eviction waits for the commit under way, commits the rest, and lets go of the session once; twice is no
    more."""
    a = RecordingProvider("a")
    go = a.hold()
    async with remembering(world, a) as it:
        sid = await it.new_session("one")
        async with anyio.create_task_group() as group:
            group.start_soon(it.boundaries.commit, sid)
            await until(a.reached)
            await it.turn(sid, "two")
            group.start_soon(it.boundaries.evict, sid)
            group.start_soon(it.boundaries.evict, sid)
            await it.turn(text="elsewhere")
            assert a.released == []
            go.set()
        assert said(a) == [["one"], ["two"]]
        assert a.released == [sid]
        assert sid not in it.boundaries.warm


async def test_a_turn_after_eviction_is_not_committed_by_the_old_handle(world: AnyWorld) -> None:
    """M9: the handle is gone with eviction; a later turn without one waits for a provider to be named."""
    a, b = RecordingProvider("a"), RecordingProvider("b")
    async with remembering(world, a, b, default=None) as it:
        sid = (await it.engine.sessions.create(settings={"memory": "a"})).id
        await it.turn(sid, "one")
        await it.engine.sessions.update(sid, {"settings": {}})
        await it.boundaries.evict(sid)
        await it.turn(sid, "two")
        assert await it.boundaries.commit(sid) == CommitOutcome(unclaimed=True)
        assert (said(a), a.released) == ([["one"]], [sid])
        assert (await it.boundaries.commit(sid, "b")).provider == "b"


async def test_a_failing_eviction_forgets_no_turn(world: AnyWorld) -> None:
    """M8, M9: letting go of a session whose commit failed leaves its turns dirty, with their provider."""
    async with remembering(world, a := RecordingProvider("a", fails=1)) as it:
        sid = await it.new_session("one")
        await it.boundaries.evict(sid)
        assert (await it.boundaries.status(sid)).dirty_turns == 1
        assert a.released == [sid]
        assert await it.boundaries.commit(sid) == CommitOutcome(1, "a")


async def test_the_calls_are_safe_on_any_session_id(world: AnyWorld) -> None:
    """M10: an empty, unknown or foreign session id makes nothing and raises nothing."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        mine = await it.new_session()
        await it.turn(mine)
        stranger = OwnerId("somebody")
        for sid, owner in ((SessionId(""), stranger), (SessionId("ses_unknown"), stranger), (mine, stranger)):
            assert await it.boundaries.commit(sid, owner=owner) == CommitOutcome()
            assert await it.boundaries.status(sid, owner) == MemoryStatus()
        for name in ("", "ses_unknown"):
            await it.boundaries.evict(SessionId(name))
        assert a.tried == []


@pytest.mark.parametrize("late", [False, True])
async def test_a_crash_in_a_commit_repeats_it_under_its_id(world: AnyWorld, late: bool) -> None:
    """M11: after a crash, what is dirty is committed by the next life; a commit that was under way comes again as it
    was."""
    before = RecordingProvider("a")
    before.hold()
    async with remembering(world, before, flush_time=0.1) as it:
        one = await it.turn(text="one")
        async with anyio.create_task_group() as group:
            if late:
                group.start_soon(it.boundaries.commit, one.session_id)
                await until(before.reached)
            two = await it.turn(one, "two")
            await it.crash()
            group.cancel_scope.cancel()
    after = RecordingProvider("a")
    async with remembering(world, after) as it:
        await clean(it, one.session_id)
        assert after.runs == ([[one.id], [two.id]] if late else [[one.id, two.id]])
        assert (await it.boundaries.status(one.session_id)).committed_turns == 2


async def test_a_turn_that_only_recovery_settled_is_remembered(world: AnyWorld) -> None:
    """M11: a run that was sealed as complete and not settled when the process died is dirty once it is settled."""
    sealed = Hold(appends("run.complete"), when="after")
    async with remembering(world, a := RecordingProvider("a"), tap=sealed) as it:
        sid = await it.new_session()
        await it.send(sid, "one")
        await sealed.held()
        it.store.away = it.journal.away = True
        sealed.go.set()
        await it.crash()
    async with remembering(world, a) as it:
        assert (await clean(it, sid)).committed_turns == 1
        assert said(a) == [["one"]]


async def test_tries_end_and_another_boundary_begins_them_anew(world: AnyWorld) -> None:
    """M5: a provider that stays away is asked a limited number of times per boundary, and never forgotten."""
    async with remembering(world, a := RecordingProvider("a", fails=5)) as it:
        sid = await it.new_session("one")
        await it.boundaries.commit(sid)
        for _ in range(5):
            it.world.clock.advance(100.0)
            await it.boundaries.tick()
        assert len(a.tried) == 3
        await it.engine.sessions.create(previous_session_id=sid)
        await until(lambda: len(a.tried) == 4)
        await quiet(it, sid)
        it.world.clock.advance(10.0)
        await it.boundaries.tick()
        it.world.clock.advance(20.0)
        await it.boundaries.tick()
        assert said(a) == [["one"]]


# ---- clear, delete, forget ----


async def gone(it: Running, sid: SessionId) -> bool:
    await it.tick()
    return await it.store.inner.read(lambda tx: tx.session(sid)) is None


async def erased(it: Running, sid: SessionId) -> None:
    with anyio.fail_after(GUARD):
        while not await gone(it, sid):
            await checkpoint()


@pytest.mark.parametrize(("fails", "tries"), [(1, 2), (99, 3)], ids=["soon back", "stays away"])
async def test_a_deleted_session_is_erased_after_its_commit(world: AnyWorld, fails: int, tries: int) -> None:
    """M2: delete hides at once, keeps the words until the provider has them or the last try is over, and then erases
    everything."""
    async with remembering(world, a := RecordingProvider("a", fails=fails)) as it:
        sid = await it.new_session("one")
        await it.engine.sessions.delete(sid)
        with pytest.raises(NotFoundError):
            await it.engine.sessions.get(sid)
        await until(lambda: a.tried)
        await quiet(it, sid)
        assert not await gone(it, sid)
        for _ in range(tries - 1):
            it.world.clock.advance(100.0)
            await it.boundaries.tick()
        await erased(it, sid)
        assert (len(a.tried), said(a)) == (tries, [["one"]] if fails == 1 else [])
        assert await it.store.inner.read(lambda tx: tx.ledger(sid)) is None


async def test_forgetting_commits_nothing_and_erases_what_is_known(world: AnyWorld) -> None:
    """M2: delete with `forget` commits nothing; providers that were told of the session forget it, and it is erased."""
    a, b = RecordingProvider("a"), RecordingProvider("b")
    async with remembering(world, a, b) as it:
        known, fresh = await it.new_session(), await it.new_session()
        await it.turn(known, "one")
        await it.boundaries.commit(known)
        await it.turn(known, "two")
        await it.turn(fresh, "three")
        for sid in (known, fresh):
            await it.engine.sessions.delete(sid, forget=True)
        await erased(it, known)
        await erased(it, fresh)
        assert said(a) == [["one"]]
        assert (a.forgotten, b.forgotten) == ([known], [])


async def test_forgetting_is_tried_again(world: AnyWorld) -> None:
    """M5: a provider that is away when it is to forget is asked again before the session is erased."""
    async with remembering(world, a := RecordingProvider("a")) as it:
        sid = await it.new_session("one")
        await it.boundaries.commit(sid)
        a.fails = 1
        await it.engine.sessions.delete(sid, forget=True)
        await until(lambda: not a.fails)
        await quiet(it, sid)
        assert not await gone(it, sid)
        it.world.clock.advance(10.0)
        await it.boundaries.tick()
        await erased(it, sid)
        assert a.forgotten == [sid]


async def test_forget_during_a_commit_has_the_last_word(world: AnyWorld) -> None:
    """M2: a commit that was under way when its session was to be forgotten is followed by the forgetting."""
    async with committing(world) as (it, a, sid, go):
        await it.engine.sessions.delete(sid, forget=True)
        go.set()
        await quiet(it, sid)
        await it.boundaries.tick()
        await erased(it, sid)
        assert a.forgotten == [sid]


async def test_clear_keeps_the_words_until_they_are_committed(world: AnyWorld) -> None:
    """M2: cleared turns are erased from the session at once and committed with their words, also after a crash."""
    async with remembering(world, a := RecordingProvider("a", fails=1)) as it:
        sid = await it.new_session("one")
        await it.engine.sessions.clear(sid)
        assert await it.shown(sid) == []
        await until(lambda: a.tried)
        await quiet(it, sid)
        await it.crash()
    async with remembering(world, a) as it:
        await clean(it, sid)
        assert said(a) == [["one"]]
        assert await it.store.inner.read(lambda tx: tx.dirty_turns(sid, 9)) == []


# ---- recall ----


async def test_what_is_recalled_is_in_front_of_the_model_and_in_the_transcript(world: AnyWorld) -> None:
    """Recalled items are the run's first part, journalled, given to the agent, and asked for once."""
    items = ({"text": "Prefers tea.", "source": "ses_0"},)
    async with remembering(world, a := RecordingProvider("a", items=items)) as it:
        run = await it.turn(text="what do I drink?")
        assert a.asked == ["what do I drink?"]
        assert (await it.answer(run)).parts == (RememberedPart(items), TextPart("re: what do I drink?"))
        assert await it.types(run.id) == ["run.started", "memory.recalled", "text.delta", "run.complete"]
        assert it.agent.turns[0].transcript.parts == (RememberedPart(items),)


async def test_recall_is_bounded_in_length(memory: World) -> None:
    """Only as many items as fit the set number of tokens go in front of the model, the first ones first."""
    a = RecordingProvider("a", items=[{"text": f"{n} " + "x" * 98, "source": ""} for n in range(9)])
    async with remembering(memory, a, recall_tokens=60) as it:
        sid = await it.new_session("hello")
        (remembered, _) = (await it.answer(sid)).parts
        assert isinstance(remembered, RememberedPart)
        assert [item["text"][0] for item in remembered.items] == ["0", "1"]


@pytest.mark.parametrize("how", ["down", "slow", "gone"])
async def test_a_failing_provider_costs_a_note_and_not_the_run(memory: World, how: str) -> None:
    """A provider that is down, slow or not configured costs a limited time and a note; the run completes."""
    a = RecordingProvider("a", down=how == "down", slow=anyio.Event() if how == "slow" else None)
    async with remembering(memory, a, default="x" if how == "gone" else "a", recall_wait=0.05) as it:
        sid = await it.new_session()
        assert (await it.turn(sid)).status == "complete"
        remembered, text = (await it.answer(sid)).parts
        assert isinstance(remembered, RememberedPart)
        assert remembered.items == ()
        assert remembered.note is not None
        assert text == TextPart("re: hello")


@pytest.mark.parametrize("items", [(), ({"text": "x", "source": "y"},)], ids=["nothing known", "something known"])
async def test_a_run_that_is_continued_is_not_reminded_twice(world: AnyWorld, items: tuple[Any, ...]) -> None:
    """What an earlier run recalled, or that there was nothing, stays so in the continued message: the provider is not
    asked again, and if it is away by then no note comes in between."""
    async with remembering(world, a := RecordingProvider("a", items=items)) as it:
        run = await it.turn(text="fails")
        a.down = True
        await it.continue_to_end(run)
        assert len(a.asked) == 1
        recalled = [part for part in (await it.answer(run)).parts if isinstance(part, RememberedPart)]
        assert recalled == [RememberedPart(items) for _ in items]


async def test_an_engine_without_memory_keeps_no_ledger(world: AnyWorld) -> None:
    """Without providers nothing is recalled, marked or waited for, and a deleted session goes at once."""
    async with running([Say("x")], world) as it:
        sid = await it.new_session("hello")
        assert it.engine.session_memory is None
        assert await it.store.inner.read(lambda tx: tx.ledger(sid)) is None
        await it.engine.sessions.delete(sid)
        assert await gone(it, sid)
