"""Section P: what is stored, when, and in which transactions."""

from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import CallTool, Hang, Meet, Say, SayTokens
from holdfast.core.errors import NotAllowedError, VersionMismatchError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.engine.titles import FirstWords
from holdfast.ports.agent import Titler
from holdfast.ports.store import RunQuery, SessionQuery, Tx
from holdfast.testing import Fault
from tests.engine.checks import check_idle, check_saved_once
from tests.harness import AnyWorld, Running, World, Writer, in_turn, running, texts
from tests.storage_interceptors import GUARD, Hold, Tap, When, appends, calls, until

pytestmark = pytest.mark.anyio


# ---- P1, P5 ----


def check_whole(tx: Tx, sid: SessionId) -> None:
    """What every reader must find at every moment: question and answer together, and one word on what is active."""
    session = tx.session(sid)
    assert session is not None
    path: list[Message] = []
    at = session.head
    while at is not None:
        message = tx.message(at)
        assert message is not None
        path.append(message)
        at = message.parent_id
    assert len(path) % 2 == 0
    for answer, question in zip(path[::2], path[1::2], strict=True):
        assert (answer.role, question.role) == ("assistant", "user")
        assert answer.run_id is not None
        run = tx.run(answer.run_id)
        assert run is not None
        assert run.is_open == (answer.status == "streaming")
        assert run.is_open or (run.lease, run.connection) == (None, None)
        assert run.is_open or run.status == answer.status
    active = [run for run in tx.open_runs(sid) if run.status in ("running", "waiting")]
    assert len(active) <= 1


async def test_a_reader_sees_one_whole_state_or_the_next(world: AnyWorld) -> None:
    """P1: while turns are sent, answered, cancelled and undone, no reader ever finds half of a step."""
    async with running([Say("some "), CallTool("t"), Say("text")], world) as it:
        sid = await it.new_session()
        over = anyio.Event()
        looks = 0

        async def read() -> None:
            nonlocal looks
            while not over.is_set():
                await it.store.inner.read(lambda tx: check_whole(tx, sid))
                page = [item.message for item in (await it.engine.messages.page(sid)).items]
                assert len(page) % 2 == 0
                assert [m.status for m in page[:-1] if m.status == "streaming"] == []
                looks += 1
                await checkpoint()

        async with anyio.create_task_group() as tg:
            for _ in range(3):
                tg.start_soon(read)
            for n in range(6):
                run = await it.send(sid, f"turn {n}")
                if n % 3 == 1:
                    await it.engine.runs.cancel(run.id)
                await it.ended(run.id)
            await it.engine.sessions.undo(sid)
            await it.engine.sessions.redo(sid)
            over.set()
        assert looks > 10


@pytest.mark.parametrize("end", ["complete", "cancelled", "interrupted"])
async def test_ending_a_run_clears_everything_active_in_one_step(world: AnyWorld, end: str) -> None:
    """P5: no transaction leaves a session with an ended run that something still calls active, or the other way."""

    class Checked(Tap):
        """Looks at the session after every transaction."""

        sid: SessionId | None = None

        async def at(self, when: When, call: str, args: Sequence[object]) -> None:
            if when == "after" and call == "store.transact" and self.sid is not None:
                sid = self.sid
                await it.store.inner.read(lambda tx: check_whole(tx, sid))

    checked = Checked()
    async with running([Say("part "), Meet("here"), Say("whole")], world, tap=checked) as it:
        checked.sid = sid = await it.new_session()
        run = await it.send_to_gate(sid, lifetime="attached")
        view = await it.engine.sessions.get(sid)
        assert view.active_run is not None
        if end == "complete":
            it.release("here")
            await it.ended(run.id)
        elif end == "cancelled":
            await it.engine.runs.cancel(run.id)
        else:
            await it.shut_down()
        assert (await it.row(run.id)).status == end
        await check_saved_once(it, run, end)
        if end != "interrupted":
            await check_idle(it, sid)


# ---- P2, P3 ----


async def test_progress_is_durable_without_rewriting_the_session(memory: World) -> None:
    """P2, P6: thousands of tokens are stored without one transaction: session, message and run stay as they were."""
    async with running([Meet("begin"), SayTokens(5000), Meet("here"), Hang()], memory, poll_interval=GUARD) as it:
        run = await it.send_to_gate(gate="begin")
        await anyio.wait_all_tasks_blocked()
        before = await it.session_row(run.session_id), await it.stored(run.message_id), await it.row(run.id)
        writes = it.store.calls["transact"]
        memory.clock.advance(60)
        it.release("begin")
        await it.reached("here")
        with anyio.fail_after(GUARD):
            while "t4999 " not in texts((await it.folded(run.id)).parts):
                await checkpoint()
        assert it.store.calls["transact"] == writes
        assert (await it.session_row(run.session_id), await it.stored(run.message_id), await it.row(run.id)) == before


async def test_there_is_no_write_without_progress(virtual: World) -> None:
    """P3: an agent that says nothing for a quarter of an hour causes no write to the journal, and then one."""
    async with running(
        [Say("a"), Meet("here"), Say("b"), Hang()], virtual, idle_limit=7200.0, poll_interval=600.0
    ) as it:
        run = await it.send_and_see(2)
        appends_before = it.journal.calls["append"]
        await anyio.sleep(900)
        assert it.journal.calls["append"] == appends_before
        assert trio.current_time() >= 900
        it.release("here")
        await it.collect(run.id, until=3)
        assert it.journal.calls["append"] == appends_before + 1


async def test_progress_ends_before_the_final_state_is_written(world: AnyWorld) -> None:
    """P3: the terminal event is the last write to the journal, and the settling transaction comes after it."""
    hold = Hold(appends("run.complete"), when="after")
    async with running([Say("a"), CallTool("t"), Say("b")], world, tap=hold) as it:
        run = await it.send()
        await hold.held()
        assert (await it.row(run.id)).status == "running"
        assert (await it.stored(run.message_id)).parts == ()
        last = hold.seen.count("journal.append")
        hold.go.set()
        await it.ended(run.id)
        await it.tick()
        assert hold.seen.count("journal.append") == last
        assert (await it.types(run.id))[-1] == "run.complete"


# ---- P4 ----


async def test_writers_of_one_session_serialise_and_none_is_lost(world: AnyWorld) -> None:
    """P4: a run's end, a cancel, renames, pins, tags, a title job and an undo at the same time: all take effect."""
    async with running(in_turn([Say("first")], [Say("half"), Meet("here"), Say("whole")]), world) as it:
        sid = await it.new_session("first")
        run = await it.send_to_gate(sid, "second")
        before = (await it.session_row(sid)).version

        async def amend(**fields: object) -> None:
            await it.engine.sessions.update(sid, fields)

        async with anyio.create_task_group() as tg:
            it.release("here")
            tg.start_soon(it.engine.runs.cancel, run.id)
            tg.start_soon(lambda: amend(pinned=True))
            tg.start_soon(lambda: amend(tags=("a", "b")))
            tg.start_soon(lambda: amend(project="p"))
            tg.start_soon(lambda: amend(model="m"))
            tg.start_soon(it.engine.titles.generate, sid, Writer("generated"))
            tg.start_soon(it.engine.sessions.undo, sid)
        await it.ended(run.id)
        session = await it.session_row(sid)
        assert (session.pinned, session.tags, session.project, session.model) == (True, ("a", "b"), "p", "m")
        assert session.title == "generated"
        assert session.version >= before + 7
        assert await it.said(sid) == ["first", "first"]
        await check_saved_once(it, run, (await it.row(run.id)).status)
        await check_idle(it, sid)


async def test_conflicts_are_retried_inside(memory: World) -> None:
    """P4: with every transaction run twice, as under contention, callers see no conflict and no doubling."""
    async with running([Say("a "), CallTool("t"), Say("b")], memory) as it:
        it.store.plan = {("transact", n): Fault("conflict") for n in range(1, 1000)}
        sid = await it.new_session()
        run = await it.turn(sid, key="k")
        await it.engine.sessions.update(sid, {"title": "t"})
        again = await it.engine.runs.retry(sid, run.message_id)
        await it.engine.runs.cancel(again.run.id)
        await it.ended(again.run.id)
        await it.engine.sessions.undo(sid)
        await it.engine.sessions.redo(sid)
        fork = await it.engine.sessions.fork(sid, run.message_id)
        assert len(await it.shown(fork.id)) == 2
        assert len(await it.engine.runs.list(RunQuery(LOCAL, sid))) == 2
        assert it.agent.effects.count("t") <= 2
        await check_saved_once(it, run, "complete")
        await check_idle(it, sid)


Edit = Callable[[Running, Session, Run, int | None], Awaitable[object]]
EDITS: dict[str, Edit] = {
    "amend": lambda it, s, run, v: it.engine.sessions.update(s.id, {"title": "x"}, if_version=v),
    "undo": lambda it, s, run, v: it.engine.sessions.undo(s.id, if_version=v),
    "truncate": lambda it, s, run, v: it.engine.sessions.truncate(s.id, run.user_message_id, if_version=v),
    "switch": lambda it, s, run, v: it.engine.sessions.update(s.id, {}, show=run.message_id, if_version=v),
    "retry": lambda it, s, run, v: it.engine.runs.retry(s.id, run.message_id, if_version=v),
    "clear": lambda it, s, run, v: it.engine.sessions.clear(s.id, if_version=v),
    "delete": lambda it, s, run, v: it.engine.sessions.delete(s.id, if_version=v),
}


@pytest.mark.parametrize("name", EDITS)
async def test_only_an_explicit_version_is_checked(world: AnyWorld, name: str) -> None:
    """P4: an edit that names the version it saw is refused if there was another since, and otherwise done."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        seen = await it.session_row(sid)
        await it.engine.sessions.update(sid, {"pinned": True})
        now = await it.session_row(sid)
        with pytest.raises(VersionMismatchError) as refused:
            await EDITS[name](it, seen, run, seen.version)
        assert (refused.value.expected, refused.value.found) == (seen.version, now.version)
        assert await it.session_row(sid) == now
        await EDITS[name](it, now, run, now.version)


# ---- P6 ----


async def test_what_is_no_activity_leaves_updated_at_alone(world: AnyWorld) -> None:
    """P6: rename, pin, archive, tag, a generated title, undo and redo do not move the session up the list."""

    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        active = (await it.session_row(sid)).updated_at
        edits: list[Callable[[], Awaitable[object]]] = [
            lambda: it.engine.titles.generate(sid, Writer("generated")),
            lambda: it.engine.sessions.update(sid, {"title": "renamed"}),
            lambda: it.engine.sessions.update(sid, {"pinned": True, "archived": True, "tags": ("x",), "project": "p"}),
            lambda: it.engine.sessions.undo(sid),
            lambda: it.engine.sessions.redo(sid),
            lambda: it.engine.sessions.update(sid, {}, show=run.message_id),
        ]
        for edit in edits:
            world.clock.advance(100)
            version = (await it.session_row(sid)).version
            await edit()
            session = await it.session_row(sid)
            assert session.updated_at == active
            assert session.version > version


async def test_accepting_and_settling_are_activity(world: AnyWorld) -> None:
    """P6: a turn moves `updated_at` when it is accepted, also into the queue, and when it is settled."""
    async with running([Meet("here"), Say("ok")], world) as it:
        world.clock.advance(100)
        run = await it.send()
        assert (await it.session_row(run.session_id)).updated_at == world.clock.now()
        await it.reached("here")
        world.clock.advance(100)
        queued = await it.send(run, "next")
        assert (await it.session_row(run.session_id)).updated_at == world.clock.now()
        world.clock.advance(100)
        await it.engine.runs.cancel(queued.id)
        it.release("here")
        await it.ended(run.id)
        assert (await it.session_row(run.session_id)).updated_at == world.clock.now()


async def test_finished_tools_move_updated_at_at_most_once_in_ten_seconds(world: AnyWorld) -> None:
    """P6: of several tools within ten seconds at most one touches the session, and then one row without a version."""
    script = [step for n, call in enumerate("abcd") for step in (Meet(str(n)), CallTool(call))]
    async with running([*script, Meet("4"), Say("done")], world) as it:
        run = await it.send()
        started = world.clock.now()
        await it.reached("0")
        version = (await it.session_row(run.session_id)).version
        moved: list[float] = []
        for gate, pause in enumerate([10.0, 3.0, 6.9, 0.2]):
            world.clock.advance(pause)
            it.release(str(gate))
            await it.reached(str(gate + 1))
            session = await it.session_row(run.session_id)
            assert session.version == version
            moved.append(session.updated_at - started)
        assert moved == pytest.approx([10.0, 10.0, 10.0, 20.1])
        it.release("4")
        await it.ended(run.id)


# ---- P8 ----


async def test_a_session_is_titled_by_its_first_message(world: AnyWorld) -> None:
    """The first words are the title from the moment the message is stored, and follow an edit of it, but not a later
    message; without titles there is none."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session("one two three four five six seven eight nine")
        session = await it.session_row(sid)
        assert (session.title, session.titled_by) == ("one two three four five six seven eight…", "nobody")
        first = (await it.shown(sid))[0]
        edited = await it.engine.runs.edit(sid, first.id, (TextPart("another"),))
        await it.ended(edited.run.id)
        await it.turn(sid, "later")
        assert (await it.session_row(sid)).title == "another"
    async with running([Say("ok")], world, titles=False) as it:
        assert (await it.session_row(await it.new_session("hello"))).title == ""


@pytest.mark.parametrize("mine", ["mine", ""])
async def test_a_title_that_a_person_set_is_not_generated_over(world: AnyWorld, mine: str) -> None:
    """P8: nor is one set before, at creation, meanwhile, or deliberately left empty."""
    async with running([Say("ok")], world) as it:
        titler, slow = Writer(), Writer(slow=True)
        renamed, meanwhile = await it.new_session("hello"), await it.new_session("hello")
        await it.engine.sessions.update(renamed, {"title": mine})
        assert (await it.engine.titles.generate(renamed, titler)).title == mine
        named = (await it.engine.sessions.create(title="given")).id
        assert (await it.engine.titles.generate(named, titler)).title == "given"
        assert not titler.called.is_set()
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.engine.titles.generate, meanwhile, slow)
            await until(slow.called)
            await it.engine.sessions.update(meanwhile, {"title": mine})
            slow.go.set()
        assert (await it.session_row(meanwhile)).title == mine


async def test_a_title_that_a_person_asks_for_replaces_only_what_they_saw(world: AnyWorld) -> None:
    """P8: a person's own title is replaced on demand, but not by one that they set meanwhile."""
    async with running([Say("ok")], world) as it:
        slow = Writer(slow=True)
        sid, meanwhile = await it.new_session("hello"), await it.new_session("hello")
        await it.engine.sessions.update(sid, {"title": "mine"})
        await it.engine.titles.regenerate(sid, Writer("generated"))
        assert ((await it.session_row(sid)).title, (await it.session_row(sid)).titled_by) == ("generated", "model")
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.engine.titles.regenerate, meanwhile, slow)
            await until(slow.called)
            await it.engine.sessions.update(meanwhile, {"title": "mine"})
            slow.go.set()
        assert (await it.session_row(meanwhile)).title == "mine"
        with pytest.raises(NotAllowedError):
            await it.engine.titles.regenerate((await it.engine.sessions.create()).id, FirstWords())


class BrokenTitler:
    async def title(self, messages: Sequence[Message]) -> str:
        raise KeyError("choices")


async def test_a_titler_that_breaks_takes_nothing_with_it(memory: World, caplog: pytest.LogCaptureFixture) -> None:
    """P8: titles are made in the background of the server: what goes wrong with one is not the server's end."""
    async with running([Say("ok")], memory) as it:
        first, second = await it.new_session(), await it.new_session()

        async def titler(session: Session) -> Titler:
            return BrokenTitler() if session.id == first else FirstWords()

        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(it.engine.titles.run, titler)
                await anyio.wait_all_tasks_blocked()
                await it.turn(first)
                while "got no title" not in caplog.text:
                    await checkpoint()
                await it.turn(second, "On giraffes")
                while not (await it.session_row(second)).title:
                    await checkpoint()
                tg.cancel_scope.cancel()
        assert (await it.session_row(second)).title == "On giraffes"


# ---- what has been seen is so ----


async def test_who_has_seen_the_end_is_not_shown_a_run_that_goes_on(world: AnyWorld) -> None:
    """P5: the terminal event is out and its settling is under way: a reader and a sender who come now wait for it, and
    find the session free."""
    hold = Hold(calls("store.transact", "_settle"))
    async with running([Say("x"), Say("y")], world, tap=hold) as it:
        run = await it.send()
        await hold.held()
        assert (await it.collect(run.id))[-1].type == "run.complete"
        found: list[bool] = []

        async def read() -> None:
            views = [await it.engine.sessions.get(run.session_id), *await it.engine.sessions.list(SessionQuery(LOCAL))]
            found.extend(view.active_run is None or view.active_run.id != run.id for view in views)
            found.append((await it.engine.runs.get(run.id)).status == "complete")

        async def send() -> None:
            found.append((await it.engine.runs.submit(run.session_id, [TextPart("next")], on_busy="reject")).fresh)

        async with anyio.create_task_group() as tg:
            tg.start_soon(read)
            tg.start_soon(send)
            await until(lambda: ("control", run.id) in it.engine._context.hub.signals._waiting)  # for the end
            assert found == []
            hold.go.set()
        assert found == [True] * 4
