"""Section C: cancelling keeps what there is, once, and reaches the upstream in the middle of an await."""

from collections.abc import Sequence

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted import Action, Call, Hang, Meet, Say, ScriptedAgent, Think, Tokens
from holdfast.core.errors import NotFound, StorageUnavailable
from holdfast.core.events import Entry, TextDelta, ToolDelta
from holdfast.core.ids import OwnerId
from holdfast.core.parts import Reasoning, Text, Tool
from holdfast.core.run import Run
from holdfast.core.transcript import fold
from holdfast.engine.settings import Settings
from holdfast.ports import Out, Turn
from tests.engine.checks import check_one_end
from tests.harness import GUARD, AnyWorld, Freehand, Hold, Running, Script, World, appends, collect, running, texts

pytestmark = pytest.mark.anyio


async def cancel_at(it: Running, gate: str) -> Run:
    sid = await it.new_session()
    run = await it.send(sid)
    await it.reached(gate)
    cancelled = await it.service.cancel(run.id)
    assert (cancelled.status, cancelled.reason) == ("cancelled", "requested")
    assert [m.role for m in await it.shown(sid)] == ["user", "assistant"]
    await check_one_end(it, run, "cancelled")
    return run


async def test_reasoning_alone_is_kept(world: AnyWorld) -> None:
    """C1: cancelled while only reasoning has streamed, the message carries the reasoning."""
    async with running([Think("let me "), Think("see"), Meet("here"), Hang()], world) as it:
        run = await cancel_at(it, "here")
        assert (await it.answer(run.session_id)).parts == (Reasoning("let me see"),)


async def test_reasoning_and_text_are_kept(world: AnyWorld) -> None:
    """C2: cancelled after reasoning and text, both are kept."""
    async with running([Think("hm"), Say("It is "), Say("so"), Meet("here"), Hang()], world) as it:
        run = await cancel_at(it, "here")
        assert (await it.answer(run.session_id)).parts == (Reasoning("hm"), Text("It is so"))


async def test_tool_calls_are_kept_with_how_far_they_came(world: AnyWorld) -> None:
    """C3: a finished, a failed, a running and a half-written tool call are kept with name, arguments and state."""

    async def play(turn: Turn, out: Out) -> str | None:
        await out.write(ToolDelta("d", "write_file", args_delta='{"path": "a'))
        it.agent.gate("here").reached.set()
        await anyio.sleep_forever()
        return None

    script = ScriptedAgent(
        [
            Call("a", "search", {"q": 1}, result=["found"], output=("so ", "far")),
            Call("b", "shell", {"cmd": "false"}, result="exit 1", is_error=True),
            Meet("both"),
            Call("c", "shell", {"cmd": "sleep"}, output=("one ", "two"), takes=3600.0),
        ]
    )
    async with running(script, world, agents={"half": Freehand(play)}) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("both")
        it.release("both")
        await collect_until_started(it, run, "c")
        await it.service.cancel(run.id)
        assert (await it.answer(sid)).parts == (
            Tool("a", "search", {"q": 1}, "done", ["found"], False, "so far", 0),
            Tool("b", "shell", {"cmd": "false"}, "done", "exit 1", True, "", 0),
            Tool("c", "shell", {"cmd": "sleep"}, "unknown"),
        )
        half = await it.send(sid, agent="half")
        await it.reached("here")
        await it.service.cancel(half.id)
        assert (await it.answer(sid)).parts == (Tool("d", "write_file", '{"path": "a', "not_run"),)
        await check_one_end(it, run, "cancelled")
        await check_one_end(it, half, "cancelled")


async def collect_until_started(it: Running, run: Run, call_id: str) -> None:
    """Until a client has been shown that the tool runs."""
    with anyio.fail_after(GUARD):
        async with it.service.watch(run.id) as subscription:
            while entries := await subscription.next():
                for entry in entries:
                    if entry.type == "tool.started" and f'"{call_id}"'.encode() in entry.frame:
                        return


async def test_tools_and_text_are_kept_in_their_order(world: AnyWorld) -> None:
    """C4: text before, between and after tools stays where it was said."""
    script: Script = [
        Say("First "),
        Call("a", result=1),
        Say("then "),
        Think("?"),
        Call("b", result=2),
        Say("and"),
        Meet("x"),
    ]
    async with running([*script, Hang()], world) as it:
        run = await cancel_at(it, "x")
        first, a, then, thought, b, last = (await it.answer(run.session_id)).parts
        assert (first, then, thought, last) == (Text("First "), Text("then "), Reasoning("?"), Text("and"))
        assert isinstance(a, Tool)
        assert isinstance(b, Tool)
        assert (a.call_id, a.result, b.call_id, b.result) == ("a", 1, "b", 2)


async def test_nothing_streamed_leaves_a_notice_alone(world: AnyWorld) -> None:
    """C5: cancelled before anything came, the message has no parts, and the next turn does not show it to the model."""
    async with running(ScriptedAgent(hang_then_speak), world) as it:
        run = await cancel_at(it, "here")
        message = await it.answer(run.session_id)
        assert (message.status, message.parts, message.error) == ("cancelled", (), None)
        await it.turn(run.session_id, "again")
        assert [texts(m.parts) for m in it.agent.turns[-1].input.messages] == ["hello", "again"]


def hang_then_speak(turn: Turn) -> Sequence[Action]:
    asked = texts(turn.input.messages[-1].parts)
    return [Say("ok")] if asked == "again" else [Meet("here"), Hang()]


async def test_a_run_that_no_node_has_begun_is_cancelled(world: AnyWorld) -> None:
    """C5: cancelled before its execution began, a run ends with one notice, and the agent is never called."""
    async with running([Say("never")], world, max_runs=0) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        assert (await it.service.cancel(run.id)).status == "cancelled"
        await check_one_end(it, run, "cancelled")
        assert (await it.answer(sid)).parts == ()
        assert it.agent.turns == []


async def test_many_cancels_leave_one_notice(world: AnyWorld) -> None:
    """C6: cancels at the same time, and one after the end, find one cancelled run and change nothing more."""
    async with running([Say("part"), Meet("here"), Hang()], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("here")
        answers: list[Run] = []

        async def cancel() -> None:
            answers.append(await it.service.cancel(run.id))

        async with anyio.create_task_group() as tg:
            for _ in range(5):
                tg.start_soon(cancel)
        assert [answer.status for answer in answers] == ["cancelled"] * 5
        await check_one_end(it, run, "cancelled")
        before = await it.row(run.id), await it.session_row(sid), await it.stored(run.message_id)
        it.world.clock.advance(60)
        assert await it.service.cancel(run.id) == before[0]
        assert (await it.row(run.id), await it.session_row(sid), await it.stored(run.message_id)) == before


async def test_a_cancel_that_races_the_end_leaves_one_state(memory: World) -> None:
    """C6: whatever the moment of a cancel, there is one terminal event, and run and message say the same."""

    def script(turn: Turn) -> Sequence[Action]:
        return [Say("an answer"), Meet(texts(turn.input.messages[-1].parts))]

    async with running(ScriptedAgent(script), memory) as it:
        ended: set[str] = set()
        for offset in range(40):
            run = await it.send(await it.new_session(), f"gate {offset}")
            await it.reached(f"gate {offset}")
            async with anyio.create_task_group() as tg:
                tg.start_soon(it.service.cancel, run.id)
                for _ in range(offset):
                    await checkpoint()
                it.release(f"gate {offset}")
            status = (await it.row(run.id)).status
            await check_one_end(it, run, status)
            assert texts((await it.answer(run.session_id)).parts) == "an answer"
            ended.add(status)
        assert ended == {"cancelled", "complete"}


async def test_a_cancel_during_the_last_append_does_not_make_a_second_end(world: AnyWorld) -> None:
    """C6: the terminal event is on its way to the journal when the cancel comes: the first one counts."""
    hold = Hold(appends("run.complete"))
    async with running([Say("done")], world, tap=hold, cancel_wait=0.0) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        assert (await it.service.cancel(run.id)).cancel_requested
        hold.go.set()
        assert (await it.ended(run.id)).status == "complete"
        await check_one_end(it, run, "complete")


@pytest.mark.parametrize("action", [Hang(), Call("t", takes=3600.0)], ids=["model", "tool"])
async def test_cancel_does_not_wait_for_the_upstream(world: AnyWorld, action: Action) -> None:
    """C7: an upstream that sends nothing is let go of in the middle of the await, before the answer to the cancel."""
    async with running([Say("a"), Meet("here"), action], world) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        await it.reached("here")
        it.release("here")
        if isinstance(action, Call):
            await collect_until_started(it, run, "t")
        else:
            await collect(it.service, run.id, until=2)
        assert it.agent.upstreams == 1
        assert (await it.service.cancel(run.id)).status == "cancelled"
        assert it.agent.upstreams == 0


async def test_cancel_reaches_an_agent_that_waits_for_room(memory: World) -> None:
    """C7: an agent held up by back-pressure is stopped like any other, and what it had handed over is saved."""
    hold = Hold(lambda call, _: call == "journal.append")
    async with running([Tokens(1_000_000)], memory, tap=hold, cancel_wait=0.0) as it:
        run = await it.send(await it.new_session())
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        await it.service.cancel(run.id)
        with anyio.fail_after(GUARD):
            while it.agent.upstreams:
                await checkpoint()
        hold.go.set()
        assert (await it.ended(run.id)).status == "cancelled"
        said = texts((await it.answer(run.session_id)).parts).split()
        assert said == [f"t{n}" for n in range(len(said))]
        assert len(said) > 10


async def test_what_was_shown_is_saved_byte_for_byte(world: AnyWorld) -> None:
    """C8: every event that a client had received before the cancel is in the journal and in the saved message."""
    pieces = ["naïve ", "😀", "\u2028", "\x00", "\ud83d", '"\\\n', "中文 "]

    async def play(turn: Turn, out: Out) -> str | None:
        while True:
            for piece in pieces:
                await out.write(TextDelta(piece))
                await checkpoint()

    async with running((), world, agents={"chat": Freehand(play)}) as it:
        sid = await it.new_session()
        run = await it.send(sid)
        shown = await collect(it.service, run.id, until=12)
        cancelled = await it.service.cancel(run.id)
        saved = (await it.answer(sid)).parts
        assert cancelled.status == "cancelled"
        assert (await it.events(run.id))[: len(shown)] == shown
        seen = texts(fold(shown).parts)
        assert "😀" in seen
        assert texts(saved).startswith(seen)
        assert saved == (await it.folded(run.id)).parts


async def test_everything_handed_over_before_a_cancel_is_saved(world: AnyWorld) -> None:
    """C8: output that was in the middle of a commit, or still waited for it, when the cancel came is in the message."""
    hold = Hold(appends("text.delta"))
    script: Script = [Say("committing "), Meet("one"), Think("hm"), Say("waiting"), Meet("two"), Hang()]
    async with running(script, world, tap=hold, cancel_wait=0.0) as it:
        run = await it.send(await it.new_session())
        await it.reached("one")
        with anyio.fail_after(GUARD):
            await hold.reached.wait()
        it.release("one")
        await it.reached("two")
        await it.service.cancel(run.id)
        hold.go.set()
        assert (await it.ended(run.id)).status == "cancelled"
        assert (await it.answer(run.session_id)).parts == (Text("committing "), Reasoning("hm"), Text("waiting"))


async def test_nothing_was_shown_that_a_cancel_could_lose(world: AnyWorld) -> None:
    """C8: cancelled while its output cannot be stored, a run has shown its clients nothing that is not saved."""
    async with running(
        [Say("stored "), Meet("here"), Say("lost"), Meet("there"), Hang()], world, cancel_wait=0.0
    ) as it:
        run = await it.send(await it.new_session())
        seen: list[Entry] = []
        stored = anyio.Event()

        async def client() -> None:
            async with it.service.watch(run.id) as subscription:
                while entries := await subscription.next():
                    seen.extend(entries)
                    if seen[-1].seq >= 2:
                        stored.set()

        async with anyio.create_task_group() as tg:
            tg.start_soon(client)
            with anyio.fail_after(GUARD):
                await stored.wait()
            it.journal.away = True
            it.release("here")
            await it.reached("there")
            await it.service.cancel(run.id)
            with anyio.fail_after(GUARD):
                while it.engine.supervisor.executing:
                    await checkpoint()
            it.journal.away = False
            await it.tick()
            tg.cancel_scope.cancel()
        assert (await it.ended(run.id)).status in ("cancelled", "failed")
        assert texts((await it.answer(run.session_id)).parts) == "stored "
        assert texts(fold(seen).parts) == "stored "


# ---- §5 Cancel ----


async def test_cancel_answers_in_time_with_the_request(world: AnyWorld) -> None:
    """C7: a cancel that cannot be settled in time answers with `cancel_requested`, and is carried out later."""
    tidy = anyio.Event()

    async def play(turn: Turn, out: Out) -> str | None:
        await out.write(TextDelta("part"))
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await tidy.wait()
        return None

    assert Settings().cancel_wait == 2.0
    async with running((), world, agents={"chat": Freehand(play)}, cancel_wait=0.05) as it:
        run = await it.send(await it.new_session())
        await collect(it.service, run.id, until=2)
        answer = await it.service.cancel(run.id)
        assert (answer.status, answer.cancel_requested) == ("running", True)
        tidy.set()
        assert (await it.ended(run.id)).status == "cancelled"
        assert texts((await it.answer(run.session_id)).parts) == "part"


async def test_cancel_stops_the_run_even_if_the_store_is_away(world: AnyWorld) -> None:
    """C7: with the store unreachable the caller gets an error, but the upstream call is ended all the same."""
    async with running([Say("part"), Meet("here"), Hang()], world) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        it.store.away = True
        with pytest.raises(StorageUnavailable):
            await it.service.cancel(run.id)
        with anyio.fail_after(GUARD):
            while it.engine.supervisor.executing:
                await checkpoint()
        assert it.agent.upstreams == 0
        it.store.away = False
        await it.tick()
        await check_one_end(it, run, "cancelled")


async def test_a_cancelled_run_says_who_asked(world: AnyWorld) -> None:
    """C6: the reason that was given is the run's, and somebody else's run cannot be cancelled."""
    async with running([Meet("here"), Hang()], world) as it:
        run = await it.send(await it.new_session())
        await it.reached("here")
        with pytest.raises(NotFound):
            await it.service.cancel(run.id, OwnerId("somebody"))
        assert (await it.row(run.id)).status == "running"
        assert (await it.service.cancel(run.id, reason="impatience")).reason == "impatience"
        assert (await it.answer(run.session_id)).reason == "impatience"
