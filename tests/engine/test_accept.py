"""Section A: accepted means stored, once, and §5 on idempotency keys."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from holdfast.agents.scripted_agent import Fail, Hang, Meet, Say, ScriptedAgent
from holdfast.core.errors import (
    DrainingError,
    KeyReusedError,
    NotFoundError,
    SessionBusyError,
    StorageError,
    StorageFullError,
    VersionMismatchError,
)
from holdfast.core.ids import LOCAL, FileId, OwnerId, SessionId
from holdfast.core.parts import FilePart, TextPart
from holdfast.core.run import Run
from holdfast.engine.transactions.accept import Accepted
from holdfast.ports.store import RunQuery, Tx
from holdfast.testing import Fault
from tests.engine.checks import check_idle
from tests.harness import AnyWorld, Running, Script, World, in_turn, running, texts
from tests.storage_interceptors import GUARD

pytestmark = pytest.mark.anyio


# ---- A1 ----


async def test_the_head_points_at_the_empty_answer_from_the_start(world: AnyWorld) -> None:
    """A1: user message, empty answer, run and head are one step; settling fills the answer and moves nothing."""
    async with running([Meet("here"), Say("yes")], world) as it:
        sid = await it.new_session()
        accepted = await it.engine.runs.submit(sid, [TextPart("?")])
        run, head = accepted.run, (await it.session_row(sid)).head
        assert head == run.message_id
        assert (await it.stored(run.message_id)).parent_id == accepted.message.id == run.user_message_id
        it.release("here")
        await it.ended(run.id)
        assert (await it.session_row(sid)).head == head
        assert texts((await it.stored(run.message_id)).parts) == "yes"


async def test_a_refused_transaction_leaves_nothing(memory: World) -> None:
    """A1: storage that refuses the commit leaves no message, no run and the head where it was."""
    async with running([Say("ok")], memory, max_runs=0) as it:
        sid = await it.new_session()
        before = await it.session_row(sid)
        it.store.away = True
        with pytest.raises(StorageError):
            await it.send(sid, key="k")
        it.store.away = False
        assert await it.session_row(sid) == before
        assert await it.shown(sid) == []
        assert await it.engine.runs.list(RunQuery(LOCAL)) == []


async def test_an_attachment_must_exist_and_be_ones_own(world: AnyWorld) -> None:
    """A1: a message that names a missing or somebody else's file is refused, and nothing is stored of it."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        theirs = await it.add_file(owner=OwnerId("somebody"))
        for file in (theirs, FilePart(FileId("fil_none"), "x", "text/plain", 1)):
            with pytest.raises(NotFoundError):
                await it.engine.runs.submit(sid, [file])
        assert await it.shown(sid) == []
        with pytest.raises(NotFoundError):
            await it.send(SessionId("ses_none"))
        with pytest.raises(NotFoundError):
            await it.send(sid, owner=OwnerId("somebody"))


# ---- A2, and §5 Idempotency keys ----

Ask = Callable[[Running, Run, str | None], Awaitable[Accepted]]
"""One of the calls that make a run, aimed at an earlier one, with a key."""


ASKS: dict[str, Ask] = {
    "submit": lambda it, run, key: it.engine.runs.submit(run.session_id, [TextPart("more")], key=key),
    "retry": lambda it, run, key: it.engine.runs.retry(run.session_id, run.message_id, key=key),
    "edit": lambda it, run, key: it.engine.runs.edit(run.session_id, run.user_message_id, [TextPart("x")], key=key),
    "continue": lambda it, run, key: it.engine.runs.continue_run(run.id, key=key),
}
each_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)

FAILING: Script = [Say("part"), Fail()]


async def everything(it: Running, sid: SessionId) -> tuple[int, int]:
    """How many runs and messages a session has, on all branches."""

    def count(tx: Tx) -> int:
        found, level = 0, list(tx.children(sid, None))
        while level:
            found += len(level)
            level = [child for mid in level for child in tx.children(sid, mid)]
        return found

    return len(await it.engine.runs.list(RunQuery(LOCAL, sid))), await it.store.inner.read(count)


@each_ask
async def test_a_repeat_with_the_same_key_is_the_same_run(world: AnyWorld, ask: Ask) -> None:
    """A2: repeated with its key, a send, retry, edit or continue makes one run and returns it as it is now."""
    async with running(FAILING, world) as it:
        first = await it.turn()
        made = await ask(it, first, "k")
        assert made.fresh
        repeated = await ask(it, first, "k")
        assert (repeated.run.id, repeated.message.id, repeated.fresh) == (made.run.id, made.message.id, False)
        await it.ended(made.run.id)
        late = await ask(it, first, "k")
        assert (late.run.id, late.run.status, late.fresh) == (made.run.id, "failed", False)
        count = await everything(it, first.session_id)
        assert count[0] == 2
        await it.crash()
    async with running(FAILING, world) as it:
        assert (await ask(it, first, "k")).run.id == made.run.id
        assert await everything(it, first.session_id) == count
        another = await ask(it, first, "k2")
        assert another.fresh
        assert another.run.id != made.run.id


@each_ask
async def test_repeats_at_the_same_time_make_one_run(world: AnyWorld, ask: Ask) -> None:
    """A2: a double click, or a client that retries while the first answer is on its way, makes one run."""
    async with running(FAILING, world) as it:
        first = await it.turn()
        made: list[Accepted] = []

        async def once() -> None:
            made.append(await ask(it, first, "k"))

        async with anyio.create_task_group() as tg:
            for _ in range(6):
                tg.start_soon(once)
        assert len({accepted.run.id for accepted in made}) == 1
        assert [accepted.fresh for accepted in made].count(True) == 1
        await it.ended(made[0].run.id)
        assert (await everything(it, first.session_id))[0] == 2
        assert len(it.agent.turns) == 2
        await check_idle(it, first)


@each_ask
async def test_a_lost_answer_is_repeated_without_harm(memory: World, ask: Ask) -> None:
    """A2: the commit happened and was reported as failed; the repeat with the same key finds it."""
    async with running(FAILING, memory, poll_interval=5.0) as it:
        first = await it.turn()
        await anyio.wait_all_tasks_blocked()
        it.store.plan = {("transact", it.store.calls["transact"] + 1): Fault("doubt")}
        with pytest.raises(StorageError):
            await ask(it, first, "k")
        repeated = await ask(it, first, "k")
        assert not repeated.fresh
        assert (await everything(it, first.session_id))[0] == 2


async def test_without_a_key_every_send_is_another(world: AnyWorld) -> None:
    """A2: nothing but the key makes two sends one; the message carries it."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session("same", "same")
        await it.turn(sid, "same", key="k")
        questions = [m for m in await it.shown(sid) if m.role == "user"]
        assert [texts(m.parts) for m in questions] == ["same"] * 3
        assert [m.key for m in questions] == [None, None, "k"]


async def test_a_key_belongs_to_its_session(world: AnyWorld) -> None:
    """A2: the same key in another session is another key."""
    async with running([Say("ok")], world) as it:
        one, two = await it.new_session(), await it.new_session()
        assert (await it.turn(one, key="k")).id != (await it.turn(two, key="k")).id
        theirs = await it.engine.sessions.create(OwnerId("somebody"))
        run = await it.send(theirs.id, key="k", owner=OwnerId("somebody"))
        assert run.session_id == theirs.id


async def test_a_key_with_another_body_is_refused(world: AnyWorld) -> None:
    """A2: the same key for a different request names the run that it was used for, and makes nothing."""
    async with running(FAILING, world) as it:
        first = await it.turn(text="first", key="k")
        sid, runs = first.session_id, it.engine.runs
        others: list[Callable[[], Awaitable[object]]] = [
            lambda: it.send(sid, "second", key="k"),
            lambda: it.send(sid, "first", key="k", model="m"),
            lambda: it.send(sid, "first", key="k", agent="a"),
            lambda: it.send(sid, "first", key="k", settings={"temperature": 1}),
            lambda: it.send(sid, "first", key="k", lifetime="attached"),
            lambda: it.send(sid, "first", key="k", on_busy="interrupt"),
            lambda: runs.retry(sid, first.message_id, key="k"),
            lambda: runs.edit(sid, first.user_message_id, [TextPart("first")], key="k"),
            lambda: runs.continue_run(first.id, key="k"),
        ]
        for other in others:
            with pytest.raises(KeyReusedError) as refused:
                await other()
            assert refused.value.run == first.id
        assert await everything(it, sid) == (1, 2)
        again = await runs.retry(sid, first.message_id, key="r")
        await it.ended(again.run.id)
        with pytest.raises(KeyReusedError):
            await runs.retry(sid, first.message_id, key="r", model="m")
        with pytest.raises(KeyReusedError):
            await runs.retry(sid, again.run.message_id, key="r")


async def test_a_refused_call_uses_up_no_key(world: AnyWorld) -> None:
    """A1, A2: after a refusal (busy, no such file, another version, no room) the key is as good as new."""
    async with running([Meet("here"), *FAILING], world, disk_reserve=1000) as it:
        run = await it.send()
        with pytest.raises(SessionBusyError):
            await it.send(run, key="a", on_busy="reject")
        it.release("here")
        await it.ended(run.id)
        with pytest.raises(NotFoundError):
            await it.engine.runs.submit(run.session_id, [FilePart(FileId("fil_none"), "x", "text/plain", 1)], key="b")
        with pytest.raises(VersionMismatchError):
            await it.engine.runs.retry(run.session_id, run.message_id, key="c", if_version=0)
        with pytest.raises(VersionMismatchError):
            await it.engine.runs.edit(run.session_id, run.user_message_id, [TextPart("x")], key="d", if_version=0)
        it.store.free = 999
        for ask in ASKS.values():
            with pytest.raises(StorageFullError):
                await ask(it, run, "e")
        it.store.free = 1000
        for key in "abcde":
            assert (await it.turn(run, f"now {key}", key=key)).key == key


async def test_a_continue_that_found_the_session_busy_uses_up_no_key(world: AnyWorld) -> None:
    """A2: a continue refused with 409 can be repeated with its key when the session is idle again."""
    async with running(
        ScriptedAgent(lambda turn: FAILING if len(it.agent.turns) == 1 else [Meet("here")]), world
    ) as it:
        first = await it.turn()
        second = await it.send(first, "next")
        with pytest.raises(SessionBusyError) as busy:
            await it.engine.runs.continue_run(first.id, key="k")
        assert busy.value.run == second.id
        assert len(await it.engine.runs.list(RunQuery(LOCAL, first.session_id))) == 2
        await it.engine.runs.cancel(second.id)
        assert (await it.engine.runs.continue_run(first.id, key="k")).fresh


async def test_a_stopping_server_takes_no_new_turn_and_uses_up_no_key(world: AnyWorld) -> None:
    """A2: a call refused because the server stops is repeated with its key when it is back."""
    async with running(in_turn(FAILING, [Meet("here"), Say("ok")]), world, drain_time=GUARD) as it:
        failed = await it.turn()
        await it.send_to_gate()
        await it.draining()
        for ask in ASKS.values():
            with pytest.raises(DrainingError):
                await ask(it, failed, "k")
        it.release("here")
    async with running([Say("ok")], world) as it:
        assert (await it.engine.runs.continue_run(failed.id, key="k")).fresh


async def test_a_repeat_is_answered_while_no_new_turns_are_taken(world: AnyWorld) -> None:
    """A2: a repeat makes nothing new, so neither a full disk nor a stopping server keeps its answer back."""
    async with running([Meet("here"), Say("ok")], world, drain_time=GUARD) as it:
        run = await it.send(key="k")
        it.store.free = 0
        assert (await it.send(run, key="k")).id == run.id
        it.store.free = None
        await it.draining()
        assert (await it.send(run, key="k")).id == run.id
        it.release("here")


async def test_a_repeated_attached_send_is_the_first_one_s_run(world: AnyWorld) -> None:
    """A2: the second client of an attached run is a plain subscriber: the answer says that it made nothing."""
    async with running([Say("part"), Meet("here"), Hang()], world) as it:
        sid = await it.new_session()
        first = await it.engine.runs.submit(sid, [TextPart("x")], key="k", lifetime="attached")
        async with it.engine.connections.attached(first.run.id):
            await it.reached("here")
            again = await it.engine.runs.submit(sid, [TextPart("x")], key="k", lifetime="attached")
            assert (again.run.id, again.fresh) == (first.run.id, False)
            async with it.engine.subscriptions.watch(first.run.id) as subscription:
                assert await subscription.next()
            assert (await it.row(first.run.id)).status == "running"
        assert (await it.ended(first.run.id)).status == "cancelled"


# ---- A3 (more of it in test_queue.py) ----


async def test_reject_names_the_active_run(world: AnyWorld) -> None:
    """A3: `reject` on a busy session answers with the active run and leaves everything as it was; on an idle one
    there is nothing to reject or interrupt."""
    async with running([Meet("here"), Say("done")], world) as it:
        run = await it.send_to_gate(on_busy="reject")
        before = await it.session_row(run.session_id)
        with pytest.raises(SessionBusyError) as busy:
            await it.send(run, "more", on_busy="reject")
        assert (busy.value.run, busy.value.session) == (run.id, run.session_id)
        assert await it.session_row(run.session_id) == before
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        for on_busy in ("reject", "interrupt"):
            assert (await it.turn(run, "more", on_busy=on_busy)).status == "complete"


async def test_queue_is_the_default_and_runs_in_order(world: AnyWorld) -> None:
    """A3: turns sent to a busy session run afterwards, each once, in the order in which they were sent."""
    async with running([Meet("here"), Say("done")], world) as it:
        sid = await it.new_session()
        runs = [await it.send(sid, "turn 0")]
        await it.reached("here")
        for n in range(1, 5):
            runs.append(await it.send(sid, f"turn {n}"))
            world.clock.advance(-1 if n == 2 else 1)
        it.release("here")
        for run in runs:
            assert (await it.ended(run.id)).status == "complete"
        assert [texts(m.parts) for m in await it.shown(sid) if m.role == "user"] == [f"turn {n}" for n in range(5)]
        assert [turn.run.id for turn in it.agent.turns] == [run.id for run in runs]
        await check_idle(it, sid)


async def test_queued_turns_survive_a_crash(world: AnyWorld) -> None:
    """A3: after a restart the queue goes on in its order, and no turn is there twice."""
    async with running([Say("half"), Meet("here"), Hang()], world) as it:
        first = await it.send_and_see(2, text="one")
        rest = [await it.send(first, "two"), await it.send(first, "three")]
        await it.crash()
    async with running([Say("done")], world) as it:
        for run in rest:
            assert (await it.ended(run.id)).status == "complete"
        assert (await it.row(first.id)).status == "interrupted"
        assert await it.said(first) == ["one", "half", "two", "done", "three", "done"]
        await check_idle(it, first)
