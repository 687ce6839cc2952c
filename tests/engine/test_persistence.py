"""Section P: what is stored, when, and in how many steps."""

from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Call, Hang, Meet, Say, Tokens
from holdfast.core.errors import NotFound, VersionMismatch
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import Text
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.engine.titles import FirstWords, Titles
from holdfast.ports import SessionQuery, Titler, Tx
from holdfast.testing import Fault
from tests.engine.checks import check_idle, check_saved_once
from tests.harness import GUARD, AnyWorld, Hold, Running, Script, Tap, World, appends, collect, in_turn, running, texts

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
    async with running([Say("some "), Call("t"), Say("text")], world) as it:
        sid = await it.new_session()
        over = anyio.Event()
        looks = 0

        async def read() -> None:
            nonlocal looks
            while not over.is_set():
                await it.store.inner.read(lambda tx: check_whole(tx, sid))
                page = [item.message for item in (await it.service.messages(sid)).items]
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
                    await it.service.cancel(run.id)
                await it.ended(run.id)
            await it.service.undo(sid)
            await it.service.redo(sid)
            over.set()
        assert looks > 10


@pytest.mark.parametrize("end", ["complete", "cancelled", "interrupted"])
async def test_ending_a_run_clears_everything_active_in_one_step(world: AnyWorld, end: str) -> None:
    """P5: no transaction leaves a session with an ended run that something still calls active, or the other way."""

    class Checked(Tap):
        """Looks at the session after every transaction."""

        sid: SessionId | None = None

        async def after(self, call: str, args: Sequence[object]) -> None:
            if call == "store.transact" and self.sid is not None:
                sid = self.sid
                await it.store.inner.read(lambda tx: check_whole(tx, sid))

    checked = Checked()
    async with running([Say("part "), Meet("here"), Say("whole")], world, tap=checked) as it:
        checked.sid = sid = await it.new_session()
        run = await it.send(sid, lifetime="attached")
        await it.reached("here")
        view = await it.service.session(sid)
        assert view.active_run is not None
        if end == "complete":
            it.release("here")
            await it.ended(run.id)
        elif end == "cancelled":
            await it.service.cancel(run.id)
        else:
            await it.shut_down()
        assert (await it.row(run.id)).status == end
        await check_saved_once(it, run, end)
        if end != "interrupted":
            await check_idle(it, sid)


# ---- P2, P3 ----


async def test_progress_is_durable_without_rewriting_the_session(memory: World) -> None:
    """P2: thousands of tokens are stored without one transaction: session, message and run stay as they were."""
    async with running([Meet("begin"), Tokens(5000), Meet("here"), Hang()], memory, poll=GUARD) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("begin")
        await anyio.wait_all_tasks_blocked()
        before = await it.session_row(sid), await it.stored(run.message_id), await it.row(run.id)
        writes = it.store.faults.calls["transact"]
        it.release("begin")
        await it.reached("here")
        with anyio.fail_after(GUARD):
            while "t4999 " not in texts((await it.folded(run.id)).parts):
                await checkpoint()
        assert it.store.faults.calls["transact"] == writes
        assert (await it.session_row(sid), await it.stored(run.message_id), await it.row(run.id)) == before


async def test_there_is_no_write_without_progress(virtual: World) -> None:
    """P3: an agent that says nothing for a quarter of an hour causes no write to the journal, and then one."""
    async with running([Say("a"), Meet("here"), Say("b"), Hang()], virtual, idle_limit=7200.0, poll=600.0) as it:
        run = await it.send(await it.new_session())
        await collect(it.service, run.id, until=2)
        appends_before = it.journal.faults.calls["append"]
        await anyio.sleep(900)
        assert it.journal.faults.calls["append"] == appends_before
        assert trio.current_time() >= 900
        it.release("here")
        await collect(it.service, run.id, until=3)
        assert it.journal.faults.calls["append"] == appends_before + 1


async def test_progress_ends_before_the_final_state_is_written(world: AnyWorld) -> None:
    """P3: the terminal event is the last write to the journal, and the settling transaction comes after it."""
    hold = Hold(appends("run.complete"), when="after")
    async with running([Say("a"), Call("t"), Say("b")], world, tap=hold) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
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
        sid = await it.new_session()
        await it.turn(sid, "first")
        run = await it.send(sid, "second")
        await it.reached("here")
        before = (await it.session_row(sid)).version

        class Titler:
            async def title(self, messages: Sequence[Message]) -> str:
                await checkpoint()
                return "generated"

        async def amend(**fields: object) -> None:
            await it.service.amend(sid, fields)

        async with anyio.create_task_group() as tg:
            it.release("here")
            tg.start_soon(it.service.cancel, run.id)
            tg.start_soon(lambda: amend(pinned=True))
            tg.start_soon(lambda: amend(tags=("a", "b")))
            tg.start_soon(lambda: amend(project="p"))
            tg.start_soon(lambda: amend(model="m"))
            tg.start_soon(it.service.generate_title, sid, Titler())
            tg.start_soon(it.service.undo, sid)
        await it.ended(run.id)
        session = await it.session_row(sid)
        assert (session.pinned, session.tags, session.project, session.model) == (True, ("a", "b"), "p", "m")
        assert session.title == "generated"
        assert session.version >= before + 7
        assert [texts(m.parts) for m in await it.shown(sid)] == ["first", "first"]
        await check_saved_once(it, run, (await it.row(run.id)).status)
        await check_idle(it, sid)


async def test_conflicts_are_retried_inside(memory: World) -> None:
    """P4: with every transaction run twice, as under contention, callers see no conflict and no doubling."""
    async with running([Say("a "), Call("t"), Say("b")], memory) as it:
        it.store.faults.plan = {("transact", n): Fault("conflict") for n in range(1, 1000)}
        sid = await it.new_session()
        run = await it.turn(sid, key="k")
        await it.service.amend(sid, {"title": "t"})
        again = await it.service.retry(sid, run.message_id)
        await it.service.cancel(again.run.id)
        await it.ended(again.run.id)
        await it.service.undo(sid)
        await it.service.redo(sid)
        fork = await it.service.fork(sid, run.message_id)
        assert len(await it.shown(fork.id)) == 2
        assert len(await it.service.runs(sid=sid)) == 2
        assert it.agent.effects.count("t") <= 2
        await check_saved_once(it, run, "complete")
        await check_idle(it, sid)


Edit = Callable[[Running, Session, Run, int | None], Awaitable[object]]
EDITS: dict[str, Edit] = {
    "amend": lambda it, s, run, v: it.service.amend(s.id, {"title": "x"}, if_version=v),
    "undo": lambda it, s, run, v: it.service.undo(s.id, if_version=v),
    "truncate": lambda it, s, run, v: it.service.truncate(s.id, run.user_message_id, if_version=v),
    "switch": lambda it, s, run, v: it.service.switch(s.id, run.message_id, if_version=v),
    "retry": lambda it, s, run, v: it.service.retry(s.id, run.message_id, if_version=v),
    "clear": lambda it, s, run, v: it.service.clear(s.id, if_version=v),
    "delete": lambda it, s, run, v: it.service.delete(s.id, if_version=v),
}


@pytest.mark.parametrize("name", EDITS)
async def test_only_an_explicit_version_is_checked(world: AnyWorld, name: str) -> None:
    """P4: an edit that names the version it saw is refused if there was another since, and otherwise done."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        seen = await it.session_row(sid)
        await it.service.amend(sid, {"pinned": True})
        now = await it.session_row(sid)
        with pytest.raises(VersionMismatch) as refused:
            await EDITS[name](it, seen, run, seen.version)
        assert (refused.value.expected, refused.value.found) == (seen.version, now.version)
        assert await it.session_row(sid) == now
        await EDITS[name](it, now, run, now.version)


# ---- P6 ----


async def test_what_is_no_activity_leaves_updated_at_alone(world: AnyWorld) -> None:
    """P6: rename, pin, archive, tag, a generated title, undo and redo do not move the session up the list."""

    class Titler:
        async def title(self, messages: Sequence[Message]) -> str:
            return "generated"

    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        active = (await it.session_row(sid)).updated_at
        edits: list[Callable[[], Awaitable[object]]] = [
            lambda: it.service.generate_title(sid, Titler()),
            lambda: it.service.amend(sid, {"title": "renamed"}),
            lambda: it.service.amend(sid, {"pinned": True, "archived": True, "tags": ("x",), "project": "p"}),
            lambda: it.service.undo(sid),
            lambda: it.service.redo(sid),
            lambda: it.service.switch(sid, run.message_id),
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
        sid = await it.new_session()
        world.clock.advance(100)
        run = await it.send(sid)
        assert (await it.session_row(sid)).updated_at == world.clock.now()
        await it.reached("here")
        world.clock.advance(100)
        queued = await it.send(sid, "next")
        assert (await it.session_row(sid)).updated_at == world.clock.now()
        world.clock.advance(100)
        await it.service.cancel(queued.id)
        it.release("here")
        await it.ended(run.id)
        assert (await it.session_row(sid)).updated_at == world.clock.now()


async def test_finished_tools_move_updated_at_at_most_once_in_ten_seconds(world: AnyWorld) -> None:
    """P6: of several tools within ten seconds at most one touches the session, and then one row without a version."""
    script: Script = [Meet("0"), Call("a"), Meet("1"), Call("b"), Meet("2"), Call("c"), Meet("3"), Call("d"), Meet("4")]
    async with running([*script, Say("done")], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        started = world.clock.now()
        await it.reached("0")
        version = (await it.session_row(sid)).version
        moved: list[float] = []
        for gate, pause in enumerate([10.0, 3.0, 6.9, 0.2]):
            world.clock.advance(pause)
            it.release(str(gate))
            await it.reached(str(gate + 1))
            session = await it.session_row(sid)
            assert session.version == version
            moved.append(session.updated_at - started)
        assert moved == pytest.approx([10.0, 10.0, 10.0, 20.1])
        it.release("4")
        await it.ended(run.id)


async def test_text_is_no_activity(world: AnyWorld) -> None:
    """P6: streaming text moves nothing until the run is settled."""
    async with running([Meet("0"), Tokens(50), Meet("1"), Say("done")], world) as it:
        sid = await it.new_session()
        await it.send(sid)
        await it.reached("0")
        before = await it.session_row(sid)
        world.clock.advance(60)
        it.release("0")
        await it.reached("1")
        assert await it.session_row(sid) == before


# ---- P7 ----


async def check_list(it: Running, archived: bool = False) -> None:
    listed = await it.service.sessions(SessionQuery(LOCAL, archived=archived))
    for view in listed:
        assert view == await it.service.session(view.session.id)
    stamps = [(view.session.updated_at, view.session.id) for view in listed]
    assert stamps == sorted(stamps, reverse=True)


async def test_the_list_agrees_with_the_sessions(world: AnyWorld) -> None:
    """P7: after every kind of change, and while runs stream and queue, the list shows what the sessions show."""
    async with running([Say("half "), Meet("here"), Say("whole")], world) as it:
        one, two = await it.new_session(), await it.new_session()
        world.clock.advance(1)
        run = await it.send(one)
        await it.reached("here")
        queued = await it.send(one, "queued")
        await check_list(it)
        await it.service.amend(two, {"title": "renamed", "pinned": True})
        await check_list(it)
        it.release("here")
        await it.ended(run.id)
        await it.ended(queued.id)
        await check_list(it)
        await it.service.undo(one)
        fork = await it.service.fork(one, run.message_id)
        await check_list(it)
        await it.service.amend(two, {"archived": True})
        assert {view.session.id for view in await it.service.sessions(SessionQuery(LOCAL))} == {one, fork.id}
        await check_list(it, archived=True)
        await it.service.delete(one)
        assert [view.session.id for view in await it.service.sessions(SessionQuery(LOCAL))] == [fork.id]
        with pytest.raises(NotFound):
            await it.service.session(one)


async def test_the_list_is_ordered_by_activity_and_paged(world: AnyWorld) -> None:
    """P7: newest activity first; pages join without a gap or a repeat; projects, archives and owners are apart."""
    async with running([Say("ok")], world) as it:
        sids = []
        for _ in range(7):
            world.clock.advance(1)
            sids.append(await it.new_session())
        world.clock.advance(1)
        await it.turn(sids[2])
        expected = [sids[2], *reversed(sids[3:]), sids[1], sids[0]]
        found: list[SessionId] = []
        before: tuple[float, SessionId] | None = None
        while page := await it.service.sessions(SessionQuery(LOCAL, limit=3, before=before)):
            found += [view.session.id for view in page]
            before = (page[-1].session.updated_at, page[-1].session.id)
        assert found == expected
        await it.service.amend(sids[4], {"project": "p"})
        await it.service.amend(sids[5], {"archived": True})
        listed = await it.service.sessions(SessionQuery(LOCAL, project="p"))
        assert [view.session.id for view in listed] == [sids[4]]
        listed = await it.service.sessions(SessionQuery(LOCAL, archived=True))
        assert [view.session.id for view in listed] == [sids[5]]
        assert await it.service.sessions(SessionQuery(OwnerId("somebody"))) == []


async def test_runs_are_listed_newest_first(world: AnyWorld) -> None:
    """P7: by session and by status, in pages."""
    async with running([Say("ok")], world) as it:
        one, two = await it.new_session(), await it.new_session()
        runs = []
        for n in range(6):
            world.clock.advance(1)
            runs.append((await it.turn(two if n % 3 else one)).id)
        assert [run.id for run in await it.service.runs()] == runs[::-1]
        assert [run.id for run in await it.service.runs(sid=one)] == [runs[3], runs[0]]
        assert await it.service.runs(status=["failed"]) == []
        page = await it.service.runs(status=["complete"], limit=4)
        rest = await it.service.runs(before=(page[-1].created_at, page[-1].id))
        assert [run.id for run in [*page, *rest]] == runs[::-1]


# ---- P8 ----


class SlowTitler:
    """Gives a title when the test lets it."""

    def __init__(self, text: str = "generated") -> None:
        self.text = text
        self.called, self.go = anyio.Event(), anyio.Event()

    async def title(self, messages: Sequence[Message]) -> str:
        self.called.set()
        await self.go.wait()
        return self.text


async def test_a_generated_title_gives_way_to_one_set_meanwhile(world: AnyWorld) -> None:
    """P8: a person names the session while its title is being generated: the person's stays."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        await it.turn(sid)
        titler = SlowTitler()
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.service.generate_title, sid, titler)
            with anyio.fail_after(GUARD):
                await titler.called.wait()
            await it.service.amend(sid, {"title": "mine"})
            titler.go.set()
        assert (await it.session_row(sid)).title == "mine"


@pytest.mark.parametrize("mine", ["mine", ""])
async def test_a_title_that_a_person_set_is_not_generated_over(world: AnyWorld, mine: str) -> None:
    """P8: nor is one set before, at creation, or deliberately left empty."""
    async with running([Say("ok")], world) as it:
        titler = SlowTitler()
        titler.go.set()
        renamed = await it.new_session()
        await it.turn(renamed)
        await it.service.amend(renamed, {"title": mine})
        assert (await it.service.generate_title(renamed, titler)).title == mine
        named = (await it.service.create_session(title="given")).id
        assert (await it.service.generate_title(named, titler)).title == "given"
        assert not titler.called.is_set()


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
                tg.start_soon(Titles(it.service, titler).run)
                await anyio.wait_all_tasks_blocked()
                await it.turn(first)
                while "was not named" not in caplog.text:
                    await checkpoint()
                await it.turn(second, "On giraffes")
                while not (await it.session_row(second)).title:
                    await checkpoint()
                tg.cancel_scope.cancel()
        assert (await it.session_row(second)).title == "On giraffes"


async def test_a_generated_title_is_kept_until_a_person_changes_it(world: AnyWorld) -> None:
    """P8: without a person's title the generated one is taken, found by search, and can be replaced."""
    async with running([Say("ok")], world) as it:
        sid = await it.new_session()
        await it.turn(sid)
        titler = SlowTitler("  On giraffes  ")
        titler.go.set()
        assert (await it.service.generate_title(sid, titler)).title == "On giraffes"
        assert [hit.session.id for hit in await it.service.search("giraffes")] == [sid]
        await it.service.amend(sid, {"title": "On okapis"})
        assert await it.service.search("giraffes") == []
        assert [hit.session.id for hit in await it.service.search("okapis")] == [sid]


# ---- what has been seen is so ----


async def test_who_has_seen_the_end_is_not_shown_a_run_that_goes_on(world: AnyWorld) -> None:
    """P5: the terminal event is out and its settling is under way: a reader and a sender who come now wait for it, and
    find the session free."""
    hold = Hold(lambda call, _: call == "store.transact", armed=False)
    async with running([Say("x"), Meet("here"), Say("y")], world, tap=hold) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        hold.armed = True
        it.release("here")
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        assert (await collect(it.service, run.id))[-1].type == "run.complete"
        found: list[bool] = []

        async def read() -> None:
            views = [await it.service.session(run.session_id), *await it.service.sessions(SessionQuery(LOCAL))]
            found.extend(view.active_run is None or view.active_run.id != run.id for view in views)
            found.append((await it.service.run(run.id)).status == "complete")

        async def send() -> None:
            found.append((await it.service.submit(run.session_id, [Text("next")], on_busy="reject")).fresh)

        async with anyio.create_task_group() as tg:
            tg.start_soon(read)
            tg.start_soon(send)
            while ("control", run.id) not in it.engine._hub.signals._waiting:  # somebody waits for the end
                await checkpoint()
            assert found == []
            hold.go.set()
        assert found == [True] * 4
