"""§4, storage failures: what is not durable is not shown, nothing is duplicated, and runs are stopped in time."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import CallTool, Fail, Hang, Meet, Say, SayTokens, ScriptedAgent
from holdfast.core.errors import StorageError, StorageFullError
from holdfast.core.events import Entry, ReasoningDelta, StepStarted, TextDelta, ToolFinished, ToolStarted
from holdfast.core.ids import LOCAL, MessageId, NodeId
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.core.transcript import fold
from holdfast.ports.agent import AgentOutput, Turn
from holdfast.ports.wakeups import Wake
from holdfast.storage.in_memory import InMemoryJournal, InMemoryWakeups
from holdfast.testing import Fault
from tests.engine.checks import check_idle, check_one_end, check_saved_once
from tests.harness import (
    AnyWorld,
    Freehand,
    Running,
    Script,
    SqliteWorld,
    World,
    crash_at,
    failure,
    in_turn,
    running,
    texts,
)
from tests.storage_interceptors import GUARD, Hold, Tap, When, appends, until

pytestmark = pytest.mark.anyio

PATIENT: dict[str, Any] = {"storage_retry_time": GUARD}
BUSY: Script = [Say("one "), CallTool("a", result=1), Say("two "), CallTool("b", result=2), Say("three")]


# ---- durable, then visible ----


async def test_an_event_is_shown_when_its_commit_is_done(virtual: World) -> None:
    """X1: while an append is on its way to the journal, what is in it reaches nobody, neither as a stream nor as a
    message."""
    async with running(
        [StepStarted(0), Meet("go"), Say("soon")], virtual, tap=(hold := Hold(appends("text.delta")))
    ) as it:
        run = await it.send()
        got: list[str] = []

        async def client() -> None:
            async with it.engine.subscriptions.watch(run.id) as subscription:
                while (entries := await subscription.next()) is not None:
                    got.extend(entry.type for entry in entries)

        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            await it.reached("go")
            it.release("go")
            await hold.reached.wait()
            try:
                await anyio.wait_all_tasks_blocked()
                assert got == ["run.started", "step.started"]
                assert (await it.answer(run)).last_seq == 2
            finally:
                hold.go.set()
        assert got == ["run.started", "step.started", "text.delta", "run.complete"]


async def test_output_that_waits_for_a_commit_becomes_one_event(memory: World) -> None:
    """P3: one append of a run is under way at a time; what comes meanwhile is gathered into one event."""
    async with running([SayTokens(1000), Meet("here")], memory, tap=(hold := Hold(appends("run.started")))) as it:
        run = await it.send_to_gate()
        hold.go.set()
        it.release("here")
        await it.ended(run.id)
        assert await it.types(run.id) == ["run.started", "text.delta", "run.complete"]
        assert hold.seen.count("journal.append") <= 3


async def test_runs_share_a_commit(memory: World) -> None:
    """P3: what many runs have gathered while one commit was under way becomes the next one."""
    batches: list[int] = []

    def append(call: str, args: Sequence[Any]) -> bool:
        if call != "journal.append":
            return False
        batches.append(len(args[0]))
        return len(batches) == 1

    async with running([Say("x")], memory, tap=(hold := Hold(append, every=True))) as it:
        runs = [await it.send() for _ in range(30)]
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
            while it.engine.supervisor.executing < 30:
                await checkpoint()
        await anyio.wait_all_tasks_blocked()
        hold.go.set()
        for run in runs:
            assert (await it.ended(run.id)).status == "complete"
        assert max(batches) > 20


# ---- a refusal touches one append ----

BIG = "x" * 20_000


async def too_large(turn: Turn, out: AgentOutput) -> str | None:
    await out.write(TextDelta("before "))
    await out.commit(ToolStarted("t", "tool", {}))
    await out.commit(ToolFinished("t", BIG))
    return "stop"


async def test_a_refused_append_touches_its_run_alone() -> None:
    """E1: an event that is too large fails its own run; the others of the same commit are stored."""
    world = World()
    world.journal = InMemoryJournal(max_entry=10_000)
    hold = Hold(appends("tool.started"))
    async with running(
        [Say("a "), Meet("here"), Say("fine")], world, agents={"big": Freehand(too_large)}, tap=hold
    ) as it:
        others = [await it.send() for _ in range(5)]
        bad = await it.send(agent="big")
        await hold.held()
        it.release("here")
        hold.go.set()
        failed = await it.ended(bad.id)
        assert failed.status == "failed"
        assert failure(failed).code == "event-too-large"
        await check_saved_once(it, bad, "failed")
        for run in others:
            assert (await it.ended(run.id)).status == "complete"
            assert await it.answer_text(run) == "a fine"


async def test_what_came_before_a_refused_event_is_kept() -> None:
    """E1: output that was gathered together with an event that is too large is part of the partial."""

    async def play(turn: Turn, out: AgentOutput) -> str | None:
        await out.write(TextDelta("before "))
        await out.write(ReasoningDelta(BIG))
        await out.commit(ToolStarted("t", "tool", {}))
        return "stop"

    world = World()
    world.journal = InMemoryJournal(max_entry=10_000)
    async with running(play, world) as it:
        run = await it.turn()
        assert run.status == "failed"
        assert (await it.answer(run)).parts[0] == TextPart("before ")


# ---- a failed commit ----


@pytest.mark.parametrize("fault", [Fault("refuse"), Fault("doubt")], ids=lambda fault: fault.kind)
async def test_a_failed_commit_is_retried_and_shown_once(memory: World, fault: Fault) -> None:
    """X1: every single append fails once in turn, or is done and reported as failed: clients see each event once,
    nothing is stored twice, and the run completes."""
    async with running(BUSY, memory, **PATIENT) as it:
        for n in range(1, 9):
            before = it.journal.calls["append"]
            it.journal.plan = {("append", before + n): fault}
            run = await it.send()
            got = await it.collect(run.id)
            assert got == await it.events(run.id)
            assert [entry.seq for entry in got] == list(range(1, len(got) + 1))
            assert (await it.ended(run.id)).status == "complete"
            assert texts(fold(got).parts) == "one two three"
            await check_one_end(it, run, "complete")


async def test_a_doubtful_commit_of_several_runs_is_sorted_out_run_by_run(memory: World) -> None:
    """X1: after a commit in doubt the last seqs are read again, and only what is missing is repeated."""

    class Partial(Tap):
        """The first commit of several runs is done for some of them and reported as failed."""

        struck = False

        async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
            if call == "journal.append" and len(args[0]) > 1 and not self.struck:
                self.struck = True
                await it.journal.inner.append(args[0][: len(args[0]) // 2])
                raise StorageError("some of it may have happened")

    tap = Partial()
    async with running(BUSY, memory, tap=tap, **PATIENT) as it:
        runs = [await it.send() for _ in range(8)]
        for run in runs:
            got = await it.collect(run.id)
            assert got == await it.events(run.id)
            assert (await it.ended(run.id)).status == "complete"
            assert texts(fold(got).parts) == "one two three"
        assert tap.struck


async def test_an_outage_shorter_than_the_patience_is_only_a_pause(world: AnyWorld) -> None:
    """P2: storage is away for a while: nothing is shown meanwhile, then everything, and the run completes."""
    async with running([Say("a "), Meet("here"), *BUSY], world, **PATIENT) as it:
        run = await it.send_and_see(2)
        it.journal.away = True
        it.release("here")
        await until(lambda: it.engine.writer.retries >= 2)
        assert len(await it.events(run.id)) == 2
        it.journal.away = False
        got = await it.collect(run.id)
        assert (await it.ended(run.id)).status == "complete"
        assert texts(fold(got).parts) == "a one two three"
        await check_saved_once(it, run, "complete")


# ---- after the patience ----


async def give_up(it: Running) -> tuple[Run, list[Entry]]:
    """The journal goes away for longer than the patience while a client watches; what the client was shown."""
    run = await it.send()
    with anyio.fail_after(GUARD):
        async with it.engine.subscriptions.watch(run.id) as subscription:
            got: list[Entry] = []
            while len(got) < 2:
                got += await subscription.next() or ()
            it.journal.away = True
            it.release("here")
            assert await subscription.next() is None  # the stream closes, without a terminal event
        while it.engine.supervisor.executing:
            await checkpoint()
    assert it.agent.upstreams == 0
    return run, got


GIVING_UP: Script = [Say("a "), Meet("here"), Say("b"), CallTool("t"), Hang()]
SILENT: Script = [Say("a "), Meet("here"), Say("b"), Hang()]


async def test_who_follows_the_changes_hears_that_a_run_was_given_up(memory: World) -> None:
    """E1: whoever reads the session then settles the run (X2): not only when it is time to look anyway."""
    heard: list[str | None] = []
    async with (
        running(GIVING_UP, memory, storage_retry_time=0.1, poll_interval=3600.0) as it,
        anyio.create_task_group() as tg,
    ):
        changes = it.engine.subscriptions.watch_changes(None)
        await changes.begin()

        async def follow() -> None:
            while len(heard) < 3 and (found := await changes.next()) is not None:
                heard.extend(change.status for change in found.items if change.run_id is not None)

        tg.start_soon(follow)
        await give_up(it)
        await anyio.wait_all_tasks_blocked()
        assert heard == ["running", "running"]  # accepted, given up
        it.journal.away = False
        tg.cancel_scope.cancel()


@pytest.mark.parametrize("script", [GIVING_UP, SILENT], ids=["goes on", "waits for its upstream"])
@pytest.mark.parametrize("first", ["sweeper", "reader", "early reader"])
async def test_after_the_retry_time_the_run_is_stopped_and_sealed_as_failed(
    world: AnyWorld, script: Script, first: str
) -> None:
    """E1, C7, J1: storage stays away: the run is stopped at once and its stream closes without an end. Whoever settles
    it first, also a reader who came during the outage and found it pending, it is failed and not interrupted."""
    async with running(script, world, storage_retry_time=0.1) as it:
        run, got = await give_up(it)
        assert await it.types(run.id) == ["run.started", "text.delta"]
        if first == "early reader":
            with anyio.fail_after(GUARD):
                while (await it.engine.runs.get(run.id)).is_open:
                    await checkpoint()
            assert (await it.answer(run)).recovery == "pending"
        it.journal.away = False
        await (it.ended(run.id) if first == "reader" else it.tick())
        row = await it.row(run.id)
        assert (row.status, failure(row).code[:7]) == ("failed", "storage")
        assert (await it.events(run.id))[:2] == got
        assert await it.answer_text(run) == "a "
        await check_one_end(it, run, "failed")
        await check_idle(it, run)


async def test_a_given_up_run_does_not_hold_up_the_session(world: AnyWorld) -> None:
    """E3: also if the store was away as well, a run that was given up is failed afterwards, and the queue goes on."""
    async with running(in_turn(GIVING_UP, [Say("fine")]), world) as it:
        run = await it.send_and_see(2)
        queued = await it.send(run, "next")
        it.journal.away = it.store.away = True
        it.release("here")
        await it.idle()
        await it.tick()
        it.journal.away = it.store.away = False
        await it.tick()
        assert (await it.ended(queued.id)).status == "complete"
        assert await it.said(run) == ["hello", "a ", "next", "fine"]
        assert (await it.row(run.id)).status == "failed"
        await check_idle(it, run)


ENDINGS: list[tuple[Script, str, str | None]] = [
    ([], "failed", "storage-unavailable"),
    ([Fail()], "failed", "provider"),
]


@pytest.mark.parametrize(("rest", "status", "code"), ENDINGS, ids=["complete", "failed"])
async def test_an_end_that_could_not_be_stored_in_time_is_not_a_crash(
    virtual: World, rest: Script, status: str, code: str | None
) -> None:
    """E1: the journal goes away before the end, for longer than the final save: no process went away, so the run is not
    interrupted. It failed, for its own reason if it had one."""
    async with running([Say("a "), Meet("here"), *rest], virtual, storage_retry_time=60.0) as it:
        run = await it.send_and_see(2)
        it.journal.away = True
        it.release("here")
        while it.engine.supervisor.executing:  # noqa: ASYNC110  virtual time: nobody waits here
            await anyio.sleep(1)
        it.journal.away = False
        await it.tick()
        row = await it.row(run.id)
        assert (row.status, row.error and row.error.code) == (status, code)
        await check_one_end(it, run, status)


@pytest.mark.parametrize("store_away", [False, True], ids=["journal", "journal and store"])
async def test_a_cancel_during_an_outage_is_carried_out_afterwards(virtual: World, store_away: bool) -> None:
    """C6: cancelled while the journal is away, or the store too: what a person asked for is what the run ends as."""
    async with running([Say("a "), Meet("here"), Hang()], virtual, storage_retry_time=60.0, cancel_wait=0.0) as it:
        run = await it.send_and_see(2)
        it.store.away, it.journal.away = store_away, True
        if store_away:
            with pytest.raises(StorageError):
                await it.engine.runs.cancel(run.id)
        else:
            assert (await it.engine.runs.cancel(run.id)).cancel_requested
        while it.engine.supervisor.executing:  # noqa: ASYNC110  virtual time: nobody waits here
            await anyio.sleep(1)
        it.store.away = it.journal.away = False
        await it.tick()
        assert await it.outcome(run) == ("cancelled", "requested")
        assert await it.answer_text(run) == "a "
        await check_one_end(it, run, "cancelled")


async def test_who_ends_a_run_meets_no_earlier_words_of_it_in_one_commit(virtual: World) -> None:
    """E3: a commit hangs while a run ends, and while others try to end it in its stead: what each of them had to write
    never comes to the journal together, which takes one append of a run at a time and could not tell them apart."""
    other = ScriptedAgent([Say("x "), Meet("slow"), Say("y")])
    async with running([Say("a "), Meet("here"), Fail("broken")], virtual, agents={"other": other}) as it:
        run = await it.send()
        slow = await it.send(agent="other")
        await it.collect(run.id, until=2)
        await it.collect(slow.id, until=2)
        it.journal.plan = {("append", it.journal.calls["append"] + 1): Fault("stall", 60.0)}
        other.gate("slow").open.set()
        await anyio.sleep(1)
        it.release("here")
        while it.engine.supervisor.executing > 1:  # noqa: ASYNC110  virtual time: nobody waits here
            await anyio.sleep(1)
        for _ in range(2):
            await it.tick()
        await anyio.sleep(60)
        await it.tick()
        assert (await it.ended(slow.id)).status == "complete"
        await check_one_end(it, run, "failed")
        await check_idle(it, run)


async def test_a_run_that_finishes_while_a_commit_hangs_is_complete_afterwards(virtual: World) -> None:
    """E3: its last words and its end wait together for the journal, as long as any output may."""
    other = ScriptedAgent([Say("x "), Meet("slow"), Say("y")])
    async with running([Say("a "), Meet("here"), Say("b")], virtual, agents={"other": other}) as it:
        run = await it.send()
        slow = await it.send(agent="other")
        await it.collect(run.id, until=2)
        await it.collect(slow.id, until=2)
        it.journal.plan = {("append", it.journal.calls["append"] + 1): Fault("stall", 60.0)}
        other.gate("slow").open.set()
        await anyio.sleep(1)
        appends = it.journal.calls["append"]
        it.release("here")
        await anyio.sleep(61)
        assert (await it.ended(run.id)).status == "complete"
        assert it.journal.calls["append"] == appends + 1
        assert await it.answer_text(run) == "a b"
        await check_one_end(it, run, "complete")
        await check_idle(it, run)


async def test_a_finished_tool_needs_the_journal_alone(memory: World) -> None:
    """P2: the store is away when a tool finishes: that the session was active is not said, and nothing else is lost."""
    script: Script = [Meet("here"), CallTool("t"), Meet("there"), Say("done")]
    async with running(script, memory, touch_every=0.0) as it:
        run = await it.send_to_gate()
        it.store.away = True
        it.release("here")
        await it.reached("there")
        it.store.away = False
        it.release("there")
        assert (await it.ended(run.id)).status == "complete"


async def test_a_store_that_is_away_for_a_moment_ends_no_question(virtual: World) -> None:
    """P2: an agent that keeps its task while a person thinks looks again when the store is back."""
    agent = ScriptedAgent([CallTool("t", asks=True), Say("done")], can_park=False)
    async with running(agent, virtual, storage_retry_time=60.0) as it:
        run = await it.send()
        await it.until(run.id, "waiting")
        it.store.away = True
        await anyio.sleep(10)
        it.store.away = False
        await it.decide(run, "once")
        assert (await it.ended(run.id)).status == "complete"


async def test_a_store_that_is_away_does_not_stop_a_stream(world: AnyWorld) -> None:
    """P2: progress needs the journal alone: with the store away, output goes on being stored and shown."""
    async with running([Say("a "), Meet("here"), Say("b "), Meet("there"), Say("c")], world) as it:
        run = await it.send_to_gate()
        async with it.engine.subscriptions.watch(run.id) as subscription:
            it.store.away = True
            it.release("here")
            got: list[Entry] = []
            with anyio.fail_after(GUARD):
                while "b" not in texts(fold(got).parts):
                    got += await subscription.next() or ()
            it.store.away = False
            it.release("there")
        assert (await it.ended(run.id)).status == "complete"


# ---- a full disk ----


async def test_open_runs_are_saved_on_a_low_disk(world: AnyWorld) -> None:
    """E3: runs that are under way when the disk runs low go on, seal and settle; also a cancel works."""
    async with running([Say("a "), Meet("here"), Say("b")], world) as it:
        one, two = await it.send(), await it.send()
        await until(lambda: it.agent.upstreams >= 2)
        await it.reached("here")
        it.store.free = 0
        assert (await it.engine.runs.cancel(two.id)).status == "cancelled"
        it.release("here")
        assert (await it.ended(one.id)).status == "complete"
        await check_saved_once(it, one, "complete")
        await check_saved_once(it, two, "cancelled")


async def test_a_dead_run_is_settled_on_a_low_disk(world: AnyWorld) -> None:
    """X2: a restart on a low disk settles what the last process left."""
    run = await crash_at(world, [Say("a "), Meet("here"), Hang()], seen=2)
    async with running((), world, disk_reserve=1 << 62) as it:
        assert (await it.row(run.id)).status == "interrupted"
        assert await it.answer_text(run) == "a "


async def test_a_low_disk_refuses_every_call_that_stores_much(world: AnyWorld) -> None:
    """What copies or adds content needs the space that new turns need; what makes room, or is small, does not."""
    async with running([Say("answer")], world, disk_reserve=1000) as it:
        run = await it.turn()
        sid, sessions = run.session_id, it.engine.sessions
        made = await sessions.create(key="k")
        message = Message(MessageId("msg_added"), LOCAL, sid, "user", run.message_id, 0.0, parts=(TextPart("x"),))
        it.store.free = 999
        calls: tuple[Callable[[], Awaitable[Session]], ...] = (
            sessions.create,
            lambda: sessions.create(key="another"),
            lambda: sessions.fork(sid, run.message_id),
            lambda: sessions.append(sid, [message]),
            lambda: sessions.update(sid, {"system": "x" * 100_000}),
            lambda: sessions.compact(sid, _NoSummarizer()),
        )
        for refused in calls:
            with pytest.raises(StorageFullError):
                await refused()
        assert (await sessions.create(key="k")).id == made.id
        assert (await sessions.update(sid, {"title": "renamed", "archived": True})).archived
        await sessions.delete(made.id)


async def test_a_fork_must_fit_before_the_reserve(memory: World) -> None:
    """The copied messages may not use up the space that open runs are saved in."""
    async with running([Say("answer" * 1000)], memory, disk_reserve=1000) as it:
        run = await it.turn()
        it.store.free = 6000
        with pytest.raises(StorageFullError):
            await it.engine.sessions.fork(run.session_id, run.message_id)
        it.store.free = 9000
        await it.engine.sessions.fork(run.session_id, run.message_id)


async def test_space_inside_the_store_counts_as_free(memory: World) -> None:
    """After chats were deleted turns are accepted again, although the store's file is no smaller; a part of the reserve
    must be free outside of it, for the journal."""
    async with running([Say("answer")], memory, disk_reserve=1000) as it:
        sid = await it.new_session()
        it.store.free, it.store.reusable = 400, 599
        with pytest.raises(StorageFullError):
            await it.send(sid)
        it.store.reusable = 600
        assert (await it.turn(sid)).status == "complete"
        it.store.free, it.store.reusable = 249, 1_000_000
        with pytest.raises(StorageFullError):
            await it.send(sid)


async def test_deleted_sessions_leave_space_that_is_known(sqlite: SqliteWorld) -> None:
    """The file of the SQLite store keeps its size; the pages inside it that are free are counted."""
    async with running([Say("x" * 300_000)], sqlite) as it:
        run = await it.turn()
        before = await it.store.reusable_bytes()
        await it.engine.sessions.delete(run.session_id)
        await it.tick()
        assert await it.store.reusable_bytes() >= before + 300_000


class _NoSummarizer:
    async def summarize(self, messages: Sequence[Message], earlier: str | None) -> str:
        raise AssertionError("must not be asked")


async def test_an_outage_is_two_lines_in_the_log_for_each_activity(
    memory: World, caplog: pytest.LogCaptureFixture
) -> None:
    """However often something is tried meanwhile: when it begins to fail, and when it works again; no traceback."""
    async with running([Meet("here"), Say("one")], memory) as it:
        it.store.away = it.journal.away = True
        for _ in range(5):
            await it.tick()
        it.store.away = it.journal.away = False
        await it.tick()
        sid = await it.new_session()
        await it.send_to_gate(sid)
        queued = await it.send(sid)
        it.release("here")
        assert (await it.ended(queued.id)).status == "complete"
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == len(set(lines))
    failing = {line.partition(" fails ")[0] for line in lines if " fails " in line}
    assert failing
    assert failing == {line.partition(" works ")[0] for line in lines if " works " in line}
    assert not any(record.exc_info for record in caplog.records)


async def test_a_retried_commit_is_counted_and_told_to_other_nodes(memory: World) -> None:
    """A commit that succeeds at the second attempt counts like any other, and nodes that follow the run are woken."""
    heard: list[Wake] = []

    class Hearing(InMemoryWakeups):
        async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
            heard.extend(wake for wake in wakes if wake.kind == "appended")
            await super().notify(node, wakes)

    async with running([Say("one")], memory, cluster=True, wakeups=Hearing(), storage_retry_time=GUARD) as it:
        before = it.engine.writer.commits
        it.journal.plan = {("append", it.journal.calls["append"] + 1): Fault("refuse")}
        run = await it.turn()
        assert it.engine.writer.retries == 1
        assert it.engine.writer.commits > before
        assert sum(it.engine.metrics.commit.counts) == it.engine.writer.commits
        assert len([wake for wake in heard if wake.run == run.id]) == it.engine.writer.commits - before
