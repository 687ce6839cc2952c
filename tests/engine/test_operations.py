"""Section O: session edits at any moment of a run; §5 on edits against a live run and compaction."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import Fail, Hang, Meet, Say, ScriptedAgent
from holdfast.core.errors import NotAllowedError, NotFoundError, StorageUnavailableError
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.engine import messages
from holdfast.engine.messages import MAX_PAGE_BYTES
from holdfast.engine.transactions import imports
from holdfast.ports.agent import Turn
from holdfast.ports.store import RunQuery, SessionQuery, Tx
from tests.engine.checks import check_idle, check_one_end
from tests.harness import AnyWorld, Running, Script, World, Writer, asked, crash_at, in_turn, running, texts
from tests.storage_interceptors import GUARD, Both, Hold, Strike, When, appends, calls, until

pytestmark = pytest.mark.anyio


def echo(turn: Turn) -> Script:
    """Answers "re: …"; the turn "live" stops half-way."""
    return [Say("half "), Meet("here"), Say("whole")] if asked(turn) == "live" else [Say(f"re: {asked(turn)}")]


async def live(it: Running, *before: str) -> Run:
    """A session with some turns and a run that streams."""
    sid = await it.new_session()
    for text in before:
        await it.turn(sid, text)
    run = await it.send_to_gate(sid, "live")
    await it.collect(run.id, until=2)
    return run


# ---- O1: every operation at every moment ----

Operation = Callable[[Running, Run], Awaitable[object]]


async def truncate(it: Running, run: Run) -> object:
    above = (await it.stored(run.user_message_id)).parent_id or MessageId("")
    return await it.engine.sessions.truncate(run.session_id, above)


async def retry_first(it: Running, run: Run) -> object:
    first = (await it.engine.runs.list(RunQuery(LOCAL, run.session_id)))[-1]
    return await it.engine.runs.retry(run.session_id, first.message_id)


HIDING: dict[str, Operation] = {
    "undo": lambda it, run: it.engine.sessions.undo(run.session_id),
    "retry": lambda it, run: it.engine.runs.retry(run.session_id, run.message_id),
    "edit": lambda it, run: it.engine.runs.edit(run.session_id, run.user_message_id, [TextPart("edited")]),
    "truncate": truncate,
    "clear": lambda it, run: it.engine.sessions.clear(run.session_id),
    "delete": lambda it, run: it.engine.sessions.delete(run.session_id),
    "retry of an earlier answer": retry_first,
}
"""They take the active run's message off the shown branch."""
SPARING: dict[str, Operation] = {
    "fork": lambda it, run: it.engine.sessions.fork(run.session_id, run.message_id),
    "compact": lambda it, run: it.engine.sessions.compact(run.session_id, Writer()),
}


@pytest.mark.parametrize("name", [*HIDING, *SPARING])
@pytest.mark.parametrize("moment", ["streaming", "saving", "cancelling"])
async def test_every_operation_is_safe_at_every_moment(world: AnyWorld, name: str, moment: str) -> None:
    """O1: against a run that streams, is being saved or cancelled, each is one step and leaves a whole session."""
    ends = Hold(appends("run.complete", "run.cancelled"), armed=False)
    quick = [Say("again")]
    script = in_turn([Say("one")], [Say("half "), Meet("here"), Say("whole")], quick, quick)
    async with running(script, world, tap=ends, cancel_wait=0.0) as it:
        sid = await it.new_session("first")
        run = await it.send_and_see(2, sid, "live")
        ends.armed = moment != "streaming"
        if moment == "saving":
            it.release("here")
        elif moment == "cancelling":
            await it.engine.runs.cancel(run.id)
        if moment != "streaming":
            await ends.held()
        await {**HIDING, **SPARING}[name](it, run)
        ends.go.set()
        if moment == "streaming" and name in SPARING:
            it.release("here")
        ended = await it.until(run.id, "complete", "cancelled")
        if moment == "streaming":
            assert ended.status == ("complete" if name in SPARING else "cancelled")
        for other in await it.store.inner.read(lambda tx: tx.runs(RunQuery(LOCAL, sid))):
            await it.until(other.id, "complete", "cancelled")
        assert (await it.types(run.id)).count(f"run.{ended.status}") == 1
        if name == "delete":
            with pytest.raises(NotFoundError):
                await it.engine.sessions.get(sid)
            return
        await check_idle(it, sid)
        if name != "clear":
            await check_one_end(it, run, ended.status)
            assert texts((await it.stored(run.message_id)).parts) in ("half ", "half whole")
            assert (await it.engine.sessions.update(sid, {}, show=run.message_id)).head == run.message_id


@pytest.mark.parametrize("operation", HIDING.values(), ids=HIDING)
async def test_the_cancel_of_a_hidden_run_is_part_of_the_same_step(memory: World, operation: Operation) -> None:
    """O1: the process dies right after the edit is stored: the run is settled as cancelled, not as interrupted."""
    stored = Hold(calls("store.transact"), when="after", armed=False)
    script = in_turn([Say("one")], [Say("half "), Meet("here"), Hang()])
    async with running(script, memory, tap=stored, poll_interval=GUARD) as it:
        run = await it.send_and_see(2, await it.new_session("first"), "live")
        await anyio.wait_all_tasks_blocked()
        stored.armed = True

        async def edit() -> None:
            with contextlib.suppress(StorageUnavailableError):
                await operation(it, run)

        async with anyio.create_task_group() as tg:
            tg.start_soon(edit)
            await stored.held()
            it.store.away = it.journal.away = True
            stored.go.set()
        await it.crash()
    async with running([Say("next")], memory) as it:
        assert (await it.row(run.id)).status == "cancelled"


async def test_an_edit_that_leaves_the_run_shown_leaves_it_running(world: AnyWorld) -> None:
    """O1: truncating below it, switching to the branch it is on, renaming: the run goes on."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        await it.engine.sessions.truncate(run.session_id, run.message_id)
        await it.engine.sessions.update(run.session_id, {}, show=run.user_message_id)
        await it.engine.sessions.update(run.session_id, {"title": "x"})
        assert (await it.row(run.id)).status == "running"
        assert not (await it.row(run.id)).cancel_requested
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        assert (await it.said(run))[-1] == "half whole"


async def test_a_hidden_runs_partial_settles_where_it_was(world: AnyWorld) -> None:
    """O2: undone while it streams, the answer is kept as a cancelled partial on its branch, and redo shows it."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        await it.engine.sessions.undo(run.session_id)
        assert await it.said(run) == ["first", "re: first"]
        assert (await it.until(run.id, "cancelled")).reason == "superseded"
        await it.engine.sessions.redo(run.session_id)
        answer = await it.answer(run)
        assert (answer.id, answer.status, texts(answer.parts)) == (run.message_id, "cancelled", "half ")


async def test_a_deleted_sessions_run_settles_nowhere(world: AnyWorld) -> None:
    """O1: a session deleted under a run is gone at once; the run ends, and then nothing of it is left."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it)
        await it.engine.sessions.delete(run.session_id)
        with pytest.raises(NotFoundError):
            await it.engine.messages.page(run.session_id)
        with pytest.raises(NotFoundError):
            await it.engine.runs.get(run.id)
        with pytest.raises(NotFoundError):
            await it.send(run, "too late")
        assert await it.engine.sessions.list(SessionQuery(LOCAL)) == []
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
        await it.engine.sessions.update(sid, {"title": "kept"})
        await it.engine.sessions.clear(sid)
        assert await it.shown(sid) == []
        await it.until(run.id, "cancelled")
        assert await it.shown(sid) == []
        await it.turn(sid, "anew")
        assert await it.said(sid) == ["anew", "re: anew"]
        assert (await it.session_row(sid)).title == "kept"
        assert it.model_input[1] == ["anew"]


# ---- O2 ----


async def test_operations_are_for_the_owner(world: AnyWorld) -> None:
    """O1: nothing can be done to somebody else's session, and it is not told apart from one that does not exist."""
    somebody = OwnerId("somebody")
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        run = await it.turn(sid)
        engine = it.engine
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: engine.sessions.get(sid, somebody),
            lambda: engine.messages.page(sid, somebody),
            lambda: engine.messages.get(run.message_id, somebody),
            lambda: engine.runs.get(run.id, somebody),
            lambda: engine.sessions.update(sid, {"title": "x"}, somebody),
            lambda: engine.sessions.undo(sid, somebody),
            lambda: engine.sessions.truncate(sid, run.message_id, somebody),
            lambda: engine.sessions.clear(sid, somebody),
            lambda: engine.sessions.delete(sid, somebody),
            lambda: engine.sessions.fork(sid, run.message_id, somebody),
            lambda: engine.sessions.compact(sid, Writer(), somebody),
            lambda: engine.runs.retry(sid, run.message_id, owner=somebody),
        ]
        before = await it.session_row(sid)
        for attempt in attempts:
            with pytest.raises(NotFoundError):
                await attempt()
        assert await it.session_row(sid) == before
        assert await engine.sessions.search("hello", somebody) == []


# ---- fork ----


async def test_fork_leaves_out_what_is_still_being_recovered(world: AnyWorld) -> None:
    """J1: a message whose output is pending is not copied as if it were empty."""
    run = await crash_at(world, [Say("part"), Meet("here"), Hang()], seen=2)
    async with running((), world, journal_away=True) as it:
        forked = await it.engine.sessions.fork(run.session_id, run.message_id)
        assert await it.said(forked.id) == ["hello"]


async def long_session(it: Running, length: int) -> tuple[SessionId, list[MessageId]]:
    """A session with a chain of messages that no run wrote."""
    sid = await it.new_session()
    mids = [MessageId(f"msg_{sid}_{n:05}") for n in range(length)]
    parents = [None, *mids]
    chain = [
        Message(
            mid, LOCAL, sid, "user" if n % 2 == 0 else "assistant", parent, float(n), parts=(TextPart(f"text {n}"),)
        )
        for n, (mid, parent) in enumerate(zip(mids, parents, strict=False))
    ]
    await it.engine.sessions.append(sid, chain)
    return sid, mids


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "PIECE", 4)


@pytest.mark.usefixtures("small_pieces")
async def test_a_long_fork_is_stored_in_pieces_that_nobody_sees(world: AnyWorld) -> None:
    """O1: each transaction has few messages, so that others can write in between; the copy appears when it is whole."""
    hold = Hold(calls("store.transact", "finish"))
    sizes: list[int] = []

    def note(call: str, args: Sequence[Any]) -> bool:
        if call == "store.transact" and isinstance(args[0], partial) and "fork" in args[0].keywords:
            sizes.append(len(args[0].keywords["copies"]))
        return False

    async with running([Say("yes")], world, tap=Both(Hold(note), hold)) as it:
        sid, mids = await long_session(it, 11)
        copy: list[SessionId] = []

        async def fork() -> None:
            copy.append((await it.engine.sessions.fork(sid, mids[-1])).id)

        async with anyio.create_task_group() as tg:
            tg.start_soon(fork)
            await hold.held()
            assert [view.session.id for view in await it.engine.sessions.list(SessionQuery(LOCAL))] == [sid]
            assert len(await it.engine.sessions.search("text")) == 1
            hold.go.set()
        assert sizes == [4, 4, 3]
        assert await it.said(copy[0]) == await it.said(sid)
        assert len(await it.engine.sessions.search("text")) == 2


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("step", ["stage", "finish"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_repeated_fork_goes_on_where_it_failed(world: AnyWorld, step: str, when: When) -> None:
    """O1: with the same key there is one copy, whichever of its transactions failed; with another one there are two."""
    strike = Strike(calls("store.transact", step), StorageUnavailableError("away"), when, armed=True)
    async with running([Say("yes")], world, tap=strike) as it:
        sid, mids = await long_session(it, 11)
        with pytest.raises(StorageUnavailableError):
            await it.engine.sessions.fork(sid, mids[-1], key="k")
        copy = await it.engine.sessions.fork(sid, mids[-1], key="k")
        assert await it.said(copy.id) == await it.said(sid)
        assert (await it.engine.sessions.fork(sid, mids[-1], key="k")).id == copy.id
        assert len(await it.engine.sessions.list(SessionQuery(LOCAL))) == 2
        await it.engine.sessions.fork(sid, mids[-1], key="another")
        assert len(await it.engine.sessions.list(SessionQuery(LOCAL))) == 3
        await it.engine.sessions.clear(sid)
        assert (await it.engine.sessions.fork(sid, mids[-1], key="k")).id == copy.id


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("step", ["stage", "finish"])
async def test_nothing_is_copied_of_a_session_that_is_cleared_meanwhile(world: AnyWorld, step: str) -> None:
    """O1: the fork is refused, and no part of it is shown."""
    hold = Hold(calls("store.transact", step))
    async with running([Say("yes")], world, tap=hold) as it:
        sid, mids = await long_session(it, 11)

        async def fork() -> None:
            with pytest.raises(NotFoundError):
                await it.engine.sessions.fork(sid, mids[-1])

        async with anyio.create_task_group() as tg:
            tg.start_soon(fork)
            await hold.held()
            await it.engine.sessions.clear(sid)
            hold.go.set()
        assert [view.session.id for view in await it.engine.sessions.list(SessionQuery(LOCAL))] == [sid]


# ---- O3, O4: compaction ----


async def test_compaction_is_a_record_beside_the_tree(world: AnyWorld) -> None:
    """O3: id, head and messages stay; the model is given the summary and what follows it."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session("a", "b")
        before, head = await it.shown(sid), (await it.session_row(sid)).head
        summary = Writer("they greeted")
        session = await it.engine.sessions.compact(sid, summary)
        assert (session.id, session.head) == (sid, head)
        assert await it.shown(sid) == before
        assert summary.given == [(["a", "re: a", "b", "re: b"], None)]
        await it.turn(sid, "c")
        assert it.model_input == ("they greeted", ["c"])
        later = Writer("and went on")
        await it.engine.sessions.compact(sid, later)
        assert later.given == [(["c", "re: c"], "they greeted")]
        await it.turn(sid, "d")
        assert it.model_input == ("and went on", ["d"])
        assert len(await it.shown(sid)) == 8
        assert len(await it.engine.sessions.search("re")) == 1


async def test_a_branch_before_the_compaction_is_not_summarized(world: AnyWorld) -> None:
    """O3: the model is given the path from the head back to the nearest record on it, and no other."""
    async with running(ScriptedAgent(echo), world) as it:
        first = await it.turn(text="a")
        await it.turn(first, "b")
        await it.engine.sessions.compact(first.session_id, Writer())
        await it.engine.sessions.truncate(first.session_id, first.message_id)
        await it.turn(first, "other")
        assert it.model_input == (None, ["a", "re: a", "other"])


async def test_compaction_during_a_run_is_for_the_next_turn(world: AnyWorld) -> None:
    """O3: the run that streams keeps its input and its end; what is settled is summarized for the turn after it."""
    async with running(ScriptedAgent(echo), world) as it:
        run = await live(it, "first")
        await it.engine.sessions.compact(run.session_id, Writer("early days"))
        assert (await it.row(run.id)).status == "running"
        it.release("here")
        assert (await it.ended(run.id)).status == "complete"
        await it.turn(run, "next")
        shown = it.agent.turns[-1].input
        assert shown.summary == "early days"
        assert [texts(m.parts) for m in shown.messages][-2:] == ["half whole", "next"]


@pytest.mark.parametrize("then", ["retry", "continue"])
async def test_a_question_is_not_summarized_away_while_it_is_answered(world: AnyWorld, then: str) -> None:
    """O3: compacted during a run that then fails, the question is still put to the model when it is asked again."""

    def script(turn: Turn) -> Script:
        first_time = [t.run.user_message_id for t in it.agent.turns].count(turn.run.user_message_id) == 1
        if asked_or_none(turn) == "live" and first_time:
            return [Say("half "), Meet("here"), Fail()]
        return [Say("half whole")]

    async with running(ScriptedAgent(script), world) as it:
        sid = await it.new_session("first")
        run = await it.send_to_gate(sid, "live")
        await it.engine.sessions.compact(sid, Writer("early days"))
        it.release("here")
        await it.ended(run.id)
        if then == "retry":
            accepted = await it.engine.runs.retry(sid, run.message_id)
        else:
            accepted = await it.engine.runs.continue_run(run.id)
        await it.ended(accepted.run.id)
        assert it.model_input == ("early days", ["live"])


def asked_or_none(turn: Turn) -> str | None:
    return asked(turn) if turn.input.messages else None


async def test_there_must_be_something_to_compact(world: AnyWorld) -> None:
    """O3: an empty session, or one with nothing new since the last time, is left as it is."""
    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session()
        with pytest.raises(NotAllowedError):
            await it.engine.sessions.compact(sid, Writer())
        await it.turn(sid, "a")
        await it.engine.sessions.compact(sid, Writer())
        summary = Writer()
        with pytest.raises(NotAllowedError):
            await it.engine.sessions.compact(sid, summary)
        assert summary.given == []


@pytest.mark.parametrize("how", ["delete", "clear"])
async def test_what_is_erased_while_it_is_summarized_stays_erased(world: AnyWorld, how: str) -> None:
    """O3: a delete or clear during the summary wins; the compaction is refused and leaves nothing behind."""
    async with running(ScriptedAgent(echo), world) as it:
        run, summary = await it.turn(text="a"), Writer(slow=True)

        async def compact() -> None:
            with pytest.raises(NotFoundError):
                await it.engine.sessions.compact(run.session_id, summary)

        async with anyio.create_task_group() as tg:
            tg.start_soon(compact)
            await until(summary.called)
            await HIDING[how](it, run)
            summary.go.set()
        await it.tick()
        assert await it.store.inner.read(lambda tx: dict(tx.compactions(run.session_id))) == {}


async def test_no_writer_waits_for_slow_work(world: AnyWorld) -> None:
    """O4: while a summary and a title are being made, everything else can be done to the session, and counts."""

    async with running(ScriptedAgent(echo), world) as it:
        sid = await it.new_session("a")
        summary, titler = Writer("short", slow=True), Writer("generated", slow=True)
        async with anyio.create_task_group() as tg:
            tg.start_soon(it.engine.sessions.compact, sid, summary)
            tg.start_soon(it.engine.titles.generate, sid, titler)
            with anyio.fail_after(GUARD):
                await summary.called.wait()
                await titler.called.wait()
                await it.engine.sessions.update(sid, {"pinned": True})
                await it.turn(sid, "b")
                await it.engine.sessions.undo(sid)
                await it.engine.sessions.redo(sid)
                assert len(await it.shown(sid)) == 4
            summary.go.set()
            titler.go.set()
        session = await it.session_row(sid)
        assert (session.title, session.pinned) == ("generated", True)
        await it.turn(sid, "c")
        assert it.model_input == ("short", ["b", "re: b", "c"])


# ---- search ----


async def test_search_finds_tags(world: AnyWorld) -> None:
    """P7: a session is found by its tags, with or without a title, together with words of its title, until a tag is
    removed."""

    async def found(text: str) -> set[str]:
        return {result.view.session.id for result in await it.engine.sessions.search(text)}

    async with running(ScriptedAgent(echo), world) as it:
        one = (await it.engine.sessions.create(title="The pier", tags=("harbor", "to-do"))).id
        two = (await it.engine.sessions.create(tags=("harbor",))).id
        assert await found("#harbor") == await found("harb") == {one, two}
        assert await found("pier #to-do") == {one}
        await it.engine.sessions.update(one, {"tags": ("town",)})
        assert (await found("harbor"), await found("town")) == ({two}, {one})
        await it.engine.sessions.update(one, {"title": "The quay"})
        assert await found("town") == {one}


async def test_search_finds_what_is_settled_newest_first(world: AnyWorld) -> None:
    """P7: questions, answers and titles are found, each session once with its newest hit; open answers are not."""

    def script(turn: Turn) -> Script:
        return [Say("an aardvark "), Meet("here"), Say("slept")] if asked(turn) == "live" else [Say("of badgers")]

    async with running(ScriptedAgent(script), world) as it:
        one = await it.new_session()
        await it.turn(one, "tell me")
        two = (await it.engine.sessions.create(title="badgers at night")).id
        run = await it.send_to_gate(two, "live")
        assert [found.view.session.id for found in await it.engine.sessions.search("badgers")] == [two, one]
        assert await it.engine.sessions.search("aardvark") == []
        await it.engine.runs.cancel(run.id)
        (hit,) = await it.engine.sessions.search("aardvark")
        assert (hit.view.session.id, hit.hit.message_id) == (two, run.message_id)
        assert "aardvark" in hit.hit.excerpt
        await it.turn(one, "badgers again")
        hits = await it.engine.sessions.search("badgers")
        assert [hit.view.session.id for hit in hits] == [one, two]
        page = await it.engine.sessions.search("badgers", limit=1)
        rest = await it.engine.sessions.search("badgers", before=page[-1].hit.at)
        assert [hit.view.session.id for hit in [*page, *rest]] == [one, two]
        assert await it.engine.sessions.search("badgers unicorns") == []


async def test_a_page_of_messages_ends_before_a_large_answer_that_is_being_written(memory: World) -> None:
    """What was said so far counts, though only the journal has it; the cursor leads to the messages before."""
    large = "x" * (MAX_PAGE_BYTES + 100_000)
    async with running(in_turn([Say("one")], [Say(large), Meet("here"), Say("end")]), memory) as it:
        first = await it.turn()
        run = await it.send_to_gate(first.session_id)
        page = await it.engine.messages.page(first.session_id)
        assert [view.message.id for view in page.items] == [run.message_id]
        assert page.next == run.message_id
        before = await it.engine.messages.page(first.session_id, before=page.next)
        assert [view.message.id for view in before.items] == [
            first.user_message_id,
            first.message_id,
            run.user_message_id,
        ]
        assert before.next is None
        it.release("here")
        await it.ended(run.id)


async def test_the_ids_of_siblings_count_in_the_size_of_a_page(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page names all siblings of its messages, so it ends before they are too many."""
    async with running([Say("yes")], memory) as it:
        first = await it.turn()
        sid = first.session_id
        before = await it.engine.messages.page(sid)
        answers = [replace(before.items[1].message, id=MessageId(f"msg_{n}"), run_id=None) for n in range(100)]

        def add(tx: Tx) -> None:
            for answer in answers:
                tx.add_message(answer)

        await it.store.inner.transact(add)
        page = await it.engine.messages.page(sid)
        assert page.size - before.size == sum(len(each.id) + 3 for each in answers)
        monkeypatch.setattr(messages, "MAX_PAGE_BYTES", page.size - 1)
        page = await it.engine.messages.page(sid)
        assert [view.message.id for view in page.items] == [first.message_id]
        assert len(page.items[0].siblings) == 101


async def test_the_times_of_a_page_of_answers_are_one_statement(memory: World) -> None:
    """However many answers it has: the row of a run, which may be long, is never read for them."""
    async with running([Say("yes")], memory) as it:
        sid = await it.new_session()
        for _ in range(4):
            run = (await it.engine.runs.submit(sid, [TextPart("?")])).run
            memory.clock.advance(2.5)
            await it.ended(run.id)
        statements: list[str] = []
        memory.base._db.set_trace_callback(statements.append)
        page = await it.engine.messages.page(sid)
        memory.base._db.set_trace_callback(None)
        durations = [view.duration for view in page.items]
        assert durations[::2] == [None] * 4
        assert None not in durations[1::2]
        assert (await it.engine.messages.get(page.items[1].message.id)).duration == durations[1]
    assert len([each for each in statements if " FROM runs WHERE id" in each]) == 1
