"""Section O: what people do to sessions, at any moment of a run; and §5 on edits against a live run and compaction."""

from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest

from holdfast.agents.scripted import Call, Fail, Hang, Meet, Say, ScriptedAgent
from holdfast.core.errors import NotAllowed, NotFound, StorageUnavailable
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.parts import Text
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.ports import SessionQuery, Turn
from tests.engine.checks import check_idle, check_one_end
from tests.harness import (
    GUARD,
    AnyWorld,
    Hold,
    Running,
    Script,
    Tap,
    World,
    appends,
    asked,
    collect,
    crash_at,
    in_turn,
    running,
    texts,
)

pytestmark = pytest.mark.anyio


class Summary:
    """A summariser that may be made to take its time."""

    def __init__(self, text: str = "in short", *, slow: bool = False) -> None:
        self.text = text
        self.given: list[tuple[list[str], str | None]] = []
        self.called, self.go = anyio.Event(), anyio.Event()
        if not slow:
            self.go.set()

    async def summarise(self, messages: Sequence[Message], earlier: str | None) -> str:
        self.given.append(([texts(m.parts) for m in messages], earlier))
        self.called.set()
        await self.go.wait()
        return self.text


def echo(turn: Turn) -> Script:
    """Answers "re: …"; the turn "live" stops half-way."""
    return [Say("half "), Meet("here"), Say("whole")] if asked(turn) == "live" else [Say(f"re: {asked(turn)}")]


async def said(it: Running, sid: SessionId) -> list[str]:
    return [texts(m.parts) for m in await it.shown(sid)]


async def live(it: Running, *before: str) -> Run:
    """A session with some turns and a run that streams."""
    sid = await it.new_session()
    for text in before:
        await it.turn(sid, text)
    run = await it.send(sid, "live")
    await it.reached("here")
    await collect(it.service, run.id, until=2)
    return run


# ---- O1: every operation at every moment ----

Operation = Callable[[Running, Run], Awaitable[object]]


async def undo(it: Running, run: Run) -> object:
    return await it.service.undo(run.session_id)


async def retry(it: Running, run: Run) -> object:
    return await it.service.retry(run.session_id, run.message_id)


async def edit(it: Running, run: Run) -> object:
    return await it.service.edit(run.session_id, run.user_message_id, [Text("edited")])


async def truncate(it: Running, run: Run) -> object:
    return await it.service.truncate(run.session_id, (await it.stored(run.user_message_id)).parent_id or MessageId(""))


async def fork(it: Running, run: Run) -> object:
    return await it.service.fork(run.session_id, run.message_id)


async def clear(it: Running, run: Run) -> object:
    return await it.service.clear(run.session_id)


async def delete(it: Running, run: Run) -> object:
    return await it.service.delete(run.session_id)


async def compact(it: Running, run: Run) -> object:
    return await it.service.compact(run.session_id, Summary())


async def switch(it: Running, run: Run) -> object:
    first = (await it.service.runs(sid=run.session_id))[-1]
    return await it.service.retry(run.session_id, first.message_id)


HIDING: list[Operation] = [undo, retry, edit, truncate, clear, delete, switch]
"""They take the active run's message off the shown branch."""
SPARING: list[Operation] = [fork, compact]


@pytest.mark.parametrize("operation", [*HIDING, *SPARING])
@pytest.mark.parametrize("moment", ["streaming", "saving", "cancelling"])
async def test_every_operation_is_safe_at_every_moment(world: AnyWorld, operation: Operation, moment: str) -> None:
    """O1: against a run that streams, is being saved or cancelled, each is one step and leaves a whole session."""
    ends = Hold(appends("run.complete", "run.cancelled"), armed=moment != "streaming")
    quick = [Say("again")]
    script = in_turn([Say("one")], [Say("half "), Meet("here"), Say("whole")], quick, quick)
    async with running(script, world, tap=ends, cancel_wait=0.0) as it:
        ends.armed = False
        sid = await it.new_session()
        await it.turn(sid, "first")
        run = await it.send(sid, "live")
        await collect(it.service, run.id, until=2)
        ends.armed = moment != "streaming"
        if moment == "saving":
            it.release("here")
        elif moment == "cancelling":
            await it.service.cancel(run.id)
        if moment != "streaming":
            with anyio.fail_after(GUARD):
                await ends.reached.wait()
        await operation(it, run)
        ends.go.set()
        if moment == "streaming" and operation in SPARING:
            it.release("here")
        ended = await it.until(run.id, "complete", "cancelled")
        if moment == "streaming":
            assert ended.status == ("complete" if operation in SPARING else "cancelled")
        for other in await it.store.inner.read(lambda tx: tx.runs(LOCAL, sid=sid)):
            await it.until(other.id, "complete", "cancelled")
        assert (await it.types(run.id)).count(f"run.{ended.status}") == 1
        if operation is delete:
            with pytest.raises(NotFound):
                await it.service.session(sid)
            return
        await check_idle(it, sid)
        if operation is not clear:
            await check_one_end(it, run, ended.status)
            assert texts((await it.stored(run.message_id)).parts) in ("half ", "half whole")
            assert (await it.service.switch(sid, run.message_id)).head == run.message_id


@pytest.mark.parametrize("operation", HIDING)
async def test_the_cancel_of_a_hidden_run_is_part_of_the_same_step(memory: World, operation: Operation) -> None:
    """O1: the process dies right after the edit is stored: the run is settled as cancelled, not as interrupted."""

    class Last(Tap):
        """The next transaction is done, and is the last that storage hears of this process."""

        armed = False

        async def after(self, call: str, args: Sequence[object]) -> None:
            if self.armed and call == "store.transact":
                it.store.away = it.journal.away = True
                raise StorageUnavailable("the process is gone")

    last = Last()
    async with running(in_turn([Say("one")], [Say("half "), Meet("here"), Hang()]), memory, tap=last, poll=GUARD) as it:
        sid = await it.new_session()
        await it.turn(sid, "first")
        run = await it.send(sid, "live")
        await collect(it.service, run.id, until=2)
        await anyio.wait_all_tasks_blocked()
        last.armed = True
        with pytest.raises(StorageUnavailable):
            await operation(it, run)
        await it.crash()
    async with running([Say("next")], memory) as it:
        assert (await it.row(run.id)).status == "cancelled"


async def test_an_edit_that_leaves_the_run_shown_leaves_it_running(world: AnyWorld) -> None:
    """O1: truncating below it, switching to the branch it is on, renaming: the run goes on."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        await it.service.truncate(run.session_id, run.message_id)
        await it.service.switch(run.session_id, run.user_message_id)
        await it.service.amend(run.session_id, {"title": "x"})
        assert (await it.row(run.id)).status == "running"
        assert not (await it.row(run.id)).cancel_requested
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        assert (await said(it, run.session_id))[-1] == "half whole"


async def test_a_hidden_runs_partial_settles_where_it_was(world: AnyWorld) -> None:
    """O2: undone while it streams, the answer is kept as a cancelled partial on its branch, and redo shows it."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        await it.service.undo(run.session_id)
        assert await said(it, run.session_id) == ["first", "re: first"]
        assert (await it.until(run.id, "cancelled")).reason == "superseded"
        await it.service.redo(run.session_id)
        answer = await it.answer(run.session_id)
        assert (answer.id, answer.status, texts(answer.parts)) == (run.message_id, "cancelled", "half ")


async def test_a_deleted_sessions_run_settles_nowhere(world: AnyWorld) -> None:
    """O1: a session deleted under a run is gone at once; the run ends, and then nothing of it is left."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it)
        await it.service.delete(run.session_id)
        with pytest.raises(NotFound):
            await it.service.messages(run.session_id)
        with pytest.raises(NotFound):
            await it.service.run(run.id)
        with pytest.raises(NotFound):
            await it.send(run.session_id, "too late")
        assert await it.service.sessions(SessionQuery(LOCAL)) == []
        await it.until(run.id, "cancelled")
        assert it.agent.upstreams == 0
        await it.tick()
        assert await it.store.inner.read(lambda tx: (tx.run(run.id), tx.message(run.message_id))) == (None, None)
        assert await it.erased(run.id)


async def test_a_cleared_session_is_empty_and_usable(world: AnyWorld) -> None:
    """O1: cleared under a run, a session keeps its id and title, shows nothing, and takes the next turn."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        sid = run.session_id
        await it.service.amend(sid, {"title": "kept"})
        await it.service.clear(sid)
        assert await it.shown(sid) == []
        await it.until(run.id, "cancelled")
        assert await it.shown(sid) == []
        await it.turn(sid, "anew")
        assert await said(it, sid) == ["anew", "re: anew"]
        assert (await it.session_row(sid)).title == "kept"
        assert [texts(m.parts) for m in it.agent.turns[-1].input.messages] == ["anew"]


# ---- O2 ----


async def test_undo_and_redo_walk_the_branch(world: AnyWorld) -> None:
    """O2: undo takes back one turn after another; redo brings them back; a new turn makes the old a branch."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        runs = [await it.turn(sid, text) for text in ("a", "b", "c")]
        await it.service.undo(sid)
        assert await said(it, sid) == ["a", "re: a", "b", "re: b"]
        await it.service.undo(sid)
        await it.service.undo(sid)
        assert await said(it, sid) == []
        with pytest.raises(NotAllowed):
            await it.service.undo(sid)
        for _ in range(3):
            await it.service.redo(sid)
        assert len(await said(it, sid)) == 6
        with pytest.raises(NotAllowed):
            await it.service.redo(sid)
        await it.service.undo(sid)
        await it.turn(sid, "d")
        with pytest.raises(NotAllowed):
            await it.service.redo(sid)
        assert await said(it, sid) == ["a", "re: a", "b", "re: b", "d", "re: d"]
        await it.service.switch(sid, runs[2].user_message_id)
        assert await said(it, sid) == ["a", "re: a", "b", "re: b", "c", "re: c"]


async def test_retry_is_another_answer_beside_the_first(world: AnyWorld) -> None:
    """O2: both answers can be shown, and the question is there once."""
    async with running(in_turn([Say("one")], [Say("two")], [Say("three")]), world) as it:
        sid = await it.new_session()
        first = await it.turn(sid, "q")
        second = await it.ended((await it.service.retry(sid, first.message_id, model="m2")).run.id)
        third = await it.ended((await it.service.retry(sid, first.user_message_id)).run.id)
        assert await said(it, sid) == ["q", "three"]
        item = (await it.service.messages(sid)).items[-1]
        assert item.siblings == (first.message_id, second.message_id, third.message_id)
        assert (await it.stored(second.message_id)).model == "m2"
        for run, text in ((first, "one"), (second, "two"), (third, "three")):
            await it.service.switch(sid, run.message_id)
            assert await said(it, sid) == ["q", text]


async def test_edit_is_another_question_beside_the_first(world: AnyWorld) -> None:
    """O2: the earlier question with all that followed it can be reached again."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        await it.turn(sid, "a")
        old = await it.turn(sid, "b")
        await it.turn(sid, "c")
        accepted = await it.service.edit(sid, old.user_message_id, [Text("B")])
        await it.ended(accepted.run.id)
        assert await said(it, sid) == ["a", "re: a", "B", "re: B"]
        assert (await it.service.message(accepted.message.id)).siblings == (old.user_message_id, accepted.message.id)
        await it.service.switch(sid, old.user_message_id)
        assert await said(it, sid) == ["a", "re: a", "b", "re: b", "c", "re: c"]
        with pytest.raises(NotAllowed):
            await it.service.edit(sid, old.message_id, [Text("not mine")])


async def test_truncate_moves_the_head_and_erases_nothing(world: AnyWorld) -> None:
    """O2: what follows is off the shown branch, found by search, and shown again by a switch."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        first = await it.turn(sid, "a")
        last = await it.turn(sid, "zebra")
        await it.service.truncate(sid, first.message_id)
        assert await said(it, sid) == ["a", "re: a"]
        assert len(await it.service.search("zebra")) == 1
        with pytest.raises(NotAllowed):
            await it.service.truncate(sid, last.message_id)
        await it.service.switch(sid, last.message_id)
        assert len(await said(it, sid)) == 4


async def test_messages_are_paged_from_the_newest(world: AnyWorld) -> None:
    """O2: without a cursor the newest page, oldest first in it; the cursor leads to older ones, to the first."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        for n in range(5):
            await it.turn(sid, str(n))
        pages: list[list[str]] = []
        before: MessageId | None = None
        while True:
            page = await it.service.messages(sid, limit=4, before=before)
            pages.append([texts(item.message.parts) for item in page.items])
            before = page.next
            if before is None:
                break
        assert pages == [["3", "re: 3", "4", "re: 4"], ["1", "re: 1", "2", "re: 2"], ["0", "re: 0"]]


async def test_operations_are_for_the_owner(world: AnyWorld) -> None:
    """O1: nothing can be done to somebody else's session, and it is not told apart from one that does not exist."""
    somebody = OwnerId("somebody")
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        service = it.service
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: service.session(sid, somebody),
            lambda: service.messages(sid, somebody),
            lambda: service.message(run.message_id, somebody),
            lambda: service.run(run.id, somebody),
            lambda: service.amend(sid, {"title": "x"}, somebody),
            lambda: service.undo(sid, somebody),
            lambda: service.truncate(sid, run.message_id, somebody),
            lambda: service.clear(sid, somebody),
            lambda: service.delete(sid, somebody),
            lambda: service.fork(sid, run.message_id, somebody),
            lambda: service.compact(sid, Summary(), somebody),
            lambda: service.retry(sid, run.message_id, owner=somebody),
        ]
        before = await it.session_row(sid)
        for attempt in attempts:
            with pytest.raises(NotFound):
                await attempt()
        assert await it.session_row(sid) == before
        assert await service.search("hello", somebody) == []


# ---- fork ----


async def test_fork_copies_settled_messages_only(world: AnyWorld) -> None:
    """O1: a fork taken while a run streams has everything but the open answer, and the run goes on undisturbed."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        forked = await it.service.fork(run.session_id, run.message_id)
        assert await said(it, forked.id) == ["first", "re: first", "live"]
        assert (await it.row(run.id)).status == "running"
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        assert await said(it, forked.id) == ["first", "re: first", "live"]
        assert (await it.service.session(forked.id)).active_run is None
        await check_idle(it, forked.id)


async def test_fork_leaves_out_what_is_still_being_recovered(world: AnyWorld) -> None:
    """J1: a message whose output is pending is not copied as if it were empty."""
    run = await crash_at(world, [Say("part"), Meet("here"), Hang()], seen=2)
    async with running((), world, journal_away=True) as it:
        forked = await it.service.fork(run.session_id, run.message_id)
        assert await said(it, forked.id) == ["hello"]


async def test_a_fork_is_a_session_of_its_own(world: AnyWorld) -> None:
    """O2: what happens to the one, also its deletion, does not touch the other."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        first = await it.turn(sid, "a")
        await it.turn(sid, "b")
        forked = await it.service.fork(sid, first.message_id)
        assert await said(it, forked.id) == ["a", "re: a"]
        await it.turn(forked.id, "c")
        assert await said(it, sid) == ["a", "re: a", "b", "re: b"]
        await it.service.delete(sid)
        await it.tick()
        assert await said(it, forked.id) == ["a", "re: a", "c", "re: c"]
        again = (await it.shown(forked.id))[1]
        await it.ended((await it.service.retry(forked.id, again.id)).run.id)
        await check_idle(it, forked.id)


# ---- O3, O4: compaction ----


async def test_compaction_is_a_record_beside_the_tree(world: AnyWorld) -> None:
    """O3: id, head and messages stay; the model is given the summary and what follows it."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        await it.turn(sid, "a")
        await it.turn(sid, "b")
        before, head = await it.shown(sid), (await it.session_row(sid)).head
        summary = Summary("they greeted")
        session = await it.service.compact(sid, summary)
        assert (session.id, session.head) == (sid, head)
        assert await it.shown(sid) == before
        assert summary.given == [(["a", "re: a", "b", "re: b"], None)]
        await it.turn(sid, "c")
        shown = it.agent.turns[-1].input
        assert (shown.summary, [texts(m.parts) for m in shown.messages]) == ("they greeted", ["c"])
        later = Summary("and went on")
        await it.service.compact(sid, later)
        assert later.given == [(["c", "re: c"], "they greeted")]
        await it.turn(sid, "d")
        shown = it.agent.turns[-1].input
        assert (shown.summary, [texts(m.parts) for m in shown.messages]) == ("and went on", ["d"])
        assert len(await it.shown(sid)) == 8
        assert len(await it.service.search("re")) == 1


async def test_a_branch_before_the_compaction_is_not_summarised(world: AnyWorld) -> None:
    """O3: the model is given the path from the head back to the nearest record on it, and no other."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        first = await it.turn(sid, "a")
        await it.turn(sid, "b")
        await it.service.compact(sid, Summary())
        await it.service.truncate(sid, first.message_id)
        await it.turn(sid, "other")
        shown = it.agent.turns[-1].input
        assert (shown.summary, [texts(m.parts) for m in shown.messages]) == (None, ["a", "re: a", "other"])


async def test_compaction_during_a_run_is_for_the_next_turn(world: AnyWorld) -> None:
    """O3: the run that streams keeps its input and its end; what is settled is summarised for the turn after it."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        await it.service.compact(run.session_id, Summary("early days"))
        assert (await it.row(run.id)).status == "running"
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        await it.turn(run.session_id, "next")
        shown = it.agent.turns[-1].input
        assert shown.summary == "early days"
        assert [texts(m.parts) for m in shown.messages][-2:] == ["half whole", "next"]


@pytest.mark.parametrize("then", ["retry", "continue"])
async def test_a_question_is_not_summarised_away_while_it_is_answered(world: AnyWorld, then: str) -> None:
    """O3: compacted during a run that then fails, the question is still put to the model when it is asked again."""

    def script(turn: Turn) -> Script:
        first_time = [t.run.user_message_id for t in it.agent.turns].count(turn.run.user_message_id) == 1
        if asked_or_none(turn) == "live" and first_time:
            return [Say("half "), Meet("here"), Fail()]
        return [Say("half whole")]

    async with running(ScriptedAgent(script), world) as it:
        sid = await it.new_session()
        await it.turn(sid, "first")
        run = await it.send(sid, "live")
        await it.reached("here")
        await it.service.compact(sid, Summary("early days"))
        it.release("here")
        await it.ended(run.id)
        if then == "retry":
            accepted = await it.service.retry(sid, run.message_id)
        else:
            accepted = await it.service.continue_run(run.id)
        await it.ended(accepted.run.id)
        shown = it.agent.turns[-1].input
        assert (shown.summary, [texts(m.parts) for m in shown.messages]) == ("early days", ["live"])


def asked_or_none(turn: Turn) -> str | None:
    return asked(turn) if turn.input.messages else None


async def test_there_must_be_something_to_compact(world: AnyWorld) -> None:
    """O3: an empty session, or one with nothing new since the last time, is left as it is."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        with pytest.raises(NotAllowed):
            await it.service.compact(sid, Summary())
        await it.turn(sid, "a")
        await it.service.compact(sid, Summary())
        summary = Summary()
        with pytest.raises(NotAllowed):
            await it.service.compact(sid, summary)
        assert summary.given == []


@pytest.mark.parametrize("operation", [delete, clear])
async def test_what_is_erased_while_it_is_summarised_stays_erased(world: AnyWorld, operation: Operation) -> None:
    """O3: a delete or clear during the summary wins; the compaction is refused and leaves nothing behind."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        run = await it.turn(sid, "a")
        summary = Summary(slow=True)
        refused: list[Exception] = []

        async def compacting() -> None:
            try:
                await it.service.compact(sid, summary)
            except NotFound as error:
                refused.append(error)

        async with anyio.create_task_group() as tg:
            tg.start_soon(compacting)
            with anyio.fail_after(GUARD):
                await summary.called.wait()
            await operation(it, run)
            summary.go.set()
        assert len(refused) == 1
        await it.tick()
        assert await it.store.inner.read(lambda tx: dict(tx.compactions(sid))) == {}


async def test_no_writer_waits_for_slow_work(world: AnyWorld) -> None:
    """O4: while a summary and a title are being made, everything else can be done to the session, and counts."""

    class Titler:
        called, go = anyio.Event(), anyio.Event()

        async def title(self, messages: Sequence[Message]) -> str:
            self.called.set()
            await self.go.wait()
            return "generated"

    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        await it.turn(sid, "a")
        summary, titler = Summary("short", slow=True), Titler()
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.service.compact, sid, summary)
            tg.start_soon(it.service.generate_title, sid, titler)
            with anyio.fail_after(GUARD):
                await summary.called.wait()
                await titler.called.wait()
                await it.service.amend(sid, {"pinned": True})
                await it.turn(sid, "b")
                await it.service.undo(sid)
                await it.service.redo(sid)
                assert len(await it.shown(sid)) == 4
            summary.go.set()
            titler.go.set()
        session = await it.session_row(sid)
        assert (session.title, session.pinned) == ("generated", True)
        await it.turn(sid, "c")
        shown = it.agent.turns[-1].input
        assert (shown.summary, [texts(m.parts) for m in shown.messages]) == ("short", ["b", "re: b", "c"])


async def test_no_transaction_is_open_while_an_agent_works(world: AnyWorld) -> None:
    """O4: a hanging upstream or tool keeps nobody from the store."""
    async with running([Say("a"), Call("t", takes=3600.0)], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await collect(it.service, run.id, until=3)
        with anyio.fail_after(GUARD):
            await it.service.amend(sid, {"title": "x"})
            await it.service.fork(sid, run.user_message_id)
            await it.service.cancel(run.id)


# ---- search ----


async def test_search_finds_what_is_settled_newest_first(world: AnyWorld) -> None:
    """P7: questions, answers and titles are found, each session once with its newest hit; open answers are not."""

    def script(turn: Turn) -> Script:
        return [Say("an aardvark "), Meet("here"), Say("slept")] if asked(turn) == "live" else [Say("of badgers")]

    async with running(ScriptedAgent(script), world) as it:
        one = await it.new_session()
        await it.turn(one, "tell me")
        two = (await it.service.create_session(title="badgers at night")).id
        run = await it.send(two, "live")
        await it.reached("here")
        assert [hit.session.id for hit in await it.service.search("badgers")] == [two, one]
        assert await it.service.search("aardvark") == []
        await it.service.cancel(run.id)
        (hit,) = await it.service.search("aardvark")
        assert (hit.session.id, hit.hit.message_id) == (two, run.message_id)
        assert "aardvark" in hit.hit.excerpt
        await it.turn(one, "badgers again")
        hits = await it.service.search("badgers")
        assert [hit.session.id for hit in hits] == [one, two]
        page = await it.service.search("badgers", limit=1)
        rest = await it.service.search("badgers", before=page[-1].hit.at)
        assert [hit.session.id for hit in [*page, *rest]] == [one, two]
        assert await it.service.search("badgers unicorns") == []
