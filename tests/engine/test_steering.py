"""Text that is added to an active run: it is part of the run, at its next step, or the next message, never both."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast.agents.scripted_agent import Action, CallTool, Hang, Meet, Say, ScriptedAgent, TakeSteering
from holdfast.core.errors import HoldfastError, KeyReusedError, NotAllowedError, StorageUnavailableError
from holdfast.core.parts import SteeredPart, TextPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run, RunStatus
from holdfast.core.session import Message
from holdfast.engine.transactions import run_endings
from holdfast.engine.transactions.steering import MAX_CHARACTERS
from holdfast.ports.agent import Turn
from tests.engine.checks import check_idle, check_one_end
from tests.harness import GUARD, QUICK, AnyWorld, Running, World, asked, running
from tests.storage_interceptors import Fuse, Hold, Strike, appends, calls, until

pytestmark = pytest.mark.anyio


def steps(turn: Turn) -> Sequence[Action]:
    """The turn "first" has two steps, with a gate before the second; every other answers at once."""
    if asked(turn) != "first":
        return [Say(f"re: {asked(turn)}")]
    return [Say("one"), CallTool("c1"), Meet("here"), TakeSteering(), Say("two")]


async def steer(it: Running, run: Run, text: str, key: str | None = None) -> Run:
    return (await it.engine.runs.steer(run.id, text, key=key)).run


def added(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, SteeredPart)]


async def found(it: Running, run: Run, text: str) -> int:
    """How often the shown branch has the text: as a message, or inside an answer."""
    messages = await it.shown(run)
    return sum(added(message).count(text) + ((TextPart(text),) == message.parts) for message in messages)


async def test_the_next_step_takes_the_text(world: AnyWorld) -> None:
    """A1, A2: until then it is a queued message; then it is a part of the answer, where it was read, and the queued run
    has ended. A repeat with the same key finds it."""
    async with running(ScriptedAgent(steps), world) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter", key="k")
        assert (queued.status, queued.in_tree, queued.steers) == ("queued", False, run.id)
        assert [each.id for each, _ in (await it.engine.sessions.get(run.session_id)).queued] == [queued.id]
        it.release("here")
        await check_one_end(it, await it.ended(run.id), "complete")
        answer = await it.answer(run)
        assert [type(part).__name__ for part in answer.parts] == ["TextPart", "ToolPart", "SteeredPart", "TextPart"]
        assert answer.parts[2] == SteeredPart(queued.user_message_id, "shorter")
        assert await it.outcome(queued) == ("cancelled", "steered")
        assert (await steer(it, run, "shorter", key="k")).id == queued.id
        with pytest.raises(KeyReusedError):
            await steer(it, run, "longer", key="k")
        assert await it.said(run) == ["first", "onetwo"]
        assert await it.types(queued.id) == ["run.cancelled"]
        await check_idle(it, run)


async def test_texts_are_added_in_order(world: AnyWorld) -> None:
    """A3: several are read in the order in which they were sent; messages of the queue stay in it."""
    async with running(ScriptedAgent(steps), world) as it:
        run = await it.send_to_gate(text="first")
        await steer(it, run, "a")
        later = await it.send(run, "later")
        await steer(it, run, "b")
        it.release("here")
        await it.ended(later.id)
        assert added((await it.shown(run))[1]) == ["a", "b"]
        assert await it.said(run) == ["first", "onetwo", "later", "re: later"]
        await check_idle(it, run)


@pytest.mark.parametrize("end", ["complete", "cancelled"])
async def test_a_run_that_ends_before_its_next_step_leaves_the_text_as_the_next_message(
    world: AnyWorld, end: str
) -> None:
    """A3: nothing is lost if the run takes no further step; it goes before what waits for the end of the answer."""
    script: list[Action] = [Say("one"), Meet("here"), *([Hang()] if end == "cancelled" else [])]
    agent = ScriptedAgent(lambda turn: script if asked(turn) == "first" else [Say(f"re: {asked(turn)}")])
    async with running(agent, world) as it:
        run = await it.send_to_gate(text="first")
        later = await it.send(run, "later")
        queued, last = await steer(it, run, "shorter"), await steer(it, run, "simpler")
        order = [each.id for each, _ in (await it.engine.sessions.get(run.session_id)).queued]
        assert order == [queued.id, last.id, later.id]
        if end == "cancelled":
            await it.engine.runs.cancel(run.id)
        it.release("here")
        assert (await it.ended(later.id)).status == "complete"
        assert (await it.row(queued.id)).steers is None
        texts = ("shorter", "simpler", "later")
        assert await it.said(run) == ["first", "one", *(said for text in texts for said in (text, f"re: {text}"))]
        await check_idle(it, run)


@pytest.mark.parametrize("why", ["unable", "ended"])
async def test_what_cannot_be_added_is_the_next_message(world: AnyWorld, why: str) -> None:
    """A3: the agent cannot be steered, or the run has ended: the text is sent like any other message."""
    agent = ScriptedAgent(steps, can_steer=why == "ended")
    async with running(agent, world) as it:
        run = await it.send_to_gate(text="first")
        if why == "ended":
            it.release("here")
            await it.ended(run.id)
        queued = await steer(it, run, "shorter")
        assert queued.steers is None
        it.release("here")
        assert (await it.ended(queued.id)).status == "complete"
        assert await it.said(run) == ["first", "onetwo", "shorter", "re: shorter"]


async def test_a_text_is_editable_until_it_is_taken(world: AnyWorld) -> None:
    """A3: what the model reads is the text as it was edited last; one that was removed is not read."""
    async with running(ScriptedAgent(steps), world) as it:
        run = await it.send_to_gate(text="first")
        edited, removed = await steer(it, run, "a"), await steer(it, run, "b")
        await it.engine.runs.edit_queued(edited.id, [TextPart("a, but better")])
        await it.engine.runs.cancel(removed.id)
        it.release("here")
        await it.ended(run.id)
        assert added(await it.answer(run)) == ["a, but better"]
        assert await it.outcome(removed) == ("cancelled", "requested")
        await check_idle(it, run)


async def test_a_text_that_is_being_journaled_can_no_longer_be_changed(world: AnyWorld) -> None:
    """A3: between the moment it is taken and its place in the journal, edit and cancel are refused."""
    tap = Hold(appends("message.steered"))
    async with running(ScriptedAgent(steps), world, tap=tap) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter")
        it.release("here")
        await until(tap.reached)
        with pytest.raises(NotAllowedError):
            await it.engine.runs.cancel(queued.id)
        with pytest.raises(NotAllowedError):
            await it.engine.runs.edit_queued(queued.id, [TextPart("longer")])
        await it.tick()  # nor does the sweeper end it
        assert (await it.row(queued.id)).is_open
        tap.go.set()
        await it.ended(run.id)
        assert await found(it, run, "shorter") == 1
        await check_idle(it, run)


@pytest.mark.parametrize("grown", ["file", "long"])
async def test_a_text_that_no_longer_fits_into_an_event_is_the_next_message(world: AnyWorld, grown: str) -> None:
    """A3: an edit gave it a file, or made it very long."""
    async with running(ScriptedAgent(steps), world) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter")
        parts = [await it.add_file()] if grown == "file" else [TextPart("x" * (MAX_CHARACTERS + 1))]
        await it.engine.runs.edit_queued(queued.id, parts)
        it.release("here")
        assert (await it.ended(queued.id)).status == "complete"
        assert len(await it.shown(run)) == 4


@pytest.mark.parametrize("moment", ["offered", "taken"])
@pytest.mark.parametrize("how", ["delete", "clear", "undo"])
async def test_edits_of_the_session_leave_nothing_behind(world: AnyWorld, how: str, moment: str) -> None:
    """O1: the session is deleted, cleared or its turn undone while a text is on its way into the run."""
    tap = Hold(appends("message.steered"))
    brief = replace(QUICK, final_save=0.5)  # How long a delete waits for a journal that does not answer
    async with running(ScriptedAgent(steps), world, brief, tap=tap) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter")
        if moment == "taken":
            it.release("here")
            await until(tap.reached)
        await getattr(it.engine.sessions, how)(run.session_id)
        tap.go.set()
        it.release("here")
        with anyio.fail_after(GUARD):
            while (row := await it.store.inner.read(lambda tx: tx.run(queued.id))) is not None and row.is_open:
                await it.tick()
        if how == "delete":
            return
        if moment == "offered":
            assert await it.said(run) == ["shorter", "re: shorter"]
        await check_idle(it, run)


def journal_has_it(runs: Sequence[str]) -> bool:
    return "message.steered" in runs


@pytest.mark.parametrize("journaled", [False, True])
async def test_a_journal_that_cannot_be_read_decides_later(journaled: bool) -> None:
    """J1, J2: the process died around the append and the journal is away: the session is usable, and the text is
    neither sent nor lost until the journal can be read; then it is in the answer, or it is the next message."""
    world = World()
    tap = Hold(appends("message.steered"), when="after" if journaled else "before")
    async with running(ScriptedAgent(steps), world, tap=tap) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter")
        it.release("here")
        await until(tap.reached)
        it.store.away = it.journal.away = True
        tap.go.set()
        await it.crash()
    async with running(ScriptedAgent(steps), world, journal_away=True) as it:
        assert (await it.row(run.id)).is_pending
        assert (await it.row(queued.id)).is_taken
        assert not (await it.turn(run, "meanwhile", on_busy="reject")).is_open  # executed, in vain
        assert (await it.row(queued.id)).is_taken
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
        await it.tick()
        assert (await it.ended(queued.id)).status == ("cancelled" if journaled else "complete")
        assert await found(it, run, "shorter") == 1
        await check_idle(it, run)


async def test_a_journal_that_never_comes_back_takes_the_text_with_it() -> None:
    """J6: a text that was taken is not sent a day later."""
    world = World()
    tap = Hold(appends("message.steered"))
    async with running(ScriptedAgent(steps), world, tap=tap) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter")
        it.release("here")
        await until(tap.reached)
        it.store.away = it.journal.away = True
        tap.go.set()
        await it.crash()
    policy = RecoveryPolicy(give_up_after=10.0)
    async with running(ScriptedAgent(steps), world, journal_away=True, recovery=policy) as it:
        world.clock.advance(11.0)
        await it.tick()
        assert not (await it.row(run.id)).is_pending
        it.journal.away = False
        await it.engine.sessions.get(run.session_id)
        assert await it.outcome(queued) == ("cancelled", "steered")
        await check_idle(it, run)


async def drive(it: Running, run: Run, fuse: Fuse) -> None:
    """A turn that is steered while it waits, until it ends or its process is gone."""
    await it.until(run.id, "waiting")
    await it.engine.runs.steer(run.id, "shorter", key="s")
    await it.decide(run, "once")
    with anyio.fail_after(GUARD):
        while (await it.row(run.id)).is_open and not fuse.blown.is_set():
            await checkpoint()


async def accepted_with(it: Running, run: Run, key: str) -> Run | None:
    return await it.store.inner.read(lambda tx: tx.run_with_key(run.owner, run.session_id, key))


ENDED: Sequence[RunStatus] = ("complete", "cancelled", "failed", "interrupted")
ASKS: Sequence[Action] = [
    Say("one"),
    CallTool("c1", asks=True),
    TakeSteering(),
    Say("two"),
    TakeSteering(),
    Say("three"),
]


@pytest.mark.parametrize("done", [False, True], ids=["not-done", "done"])
@pytest.mark.parametrize("how", ["end", "automatic"])
async def test_a_text_is_there_once_after_a_crash_at_any_call(done: bool, how: str) -> None:
    """A1, X1: wherever the process died after the text was accepted, it is in the answer or it is the next message."""
    both: set[str] = set()

    def agent() -> ScriptedAgent:
        return ScriptedAgent(lambda turn: ASKS if asked(turn) == "first" else [Say(f"re: {asked(turn)}")])

    for at in range(1, 1000):
        world, fuse = World(), Fuse(at, done)
        run: Run | None = None
        async with running(agent(), world, tap=fuse) as it:
            try:
                run = await it.send(await it.new_session(), "first")
                await drive(it, run, fuse)
            except HoldfastError:
                assert fuse.blown.is_set()
            await it.crash()
        if run is not None:
            recovery = RecoveryPolicy(auto_continue=how == "automatic")
            async with running(agent(), world, recovery=recovery) as it:
                accepted = await accepted_with(it, run, "s")
                while (await it.until(run.id, "waiting", *ENDED)).status == "waiting":
                    await it.decide(run, "once")
                if accepted is not None:
                    ended = await it.ended(accepted.id)
                    assert await found(it, run, "shorter") == 1, f"call {at}"
                    is_added = bool(added((await it.shown(run))[1]))
                    assert ended.status == ("cancelled" if is_added else "complete"), f"call {at}"
                    both.add(ended.status)
                assert journal_has_it(await it.types(run.id)) == bool(added((await it.shown(run))[1]))
                await check_idle(it, run)
        if not fuse.blown.is_set():
            break
    assert at > 20
    assert both == {"cancelled"} | ({"complete"} if how == "end" else set())


async def test_a_store_that_fails_at_a_taken_text_fails_no_run(world: AnyWorld) -> None:
    """E3: ending the turn of a text that the journal has, or is about to have, is tried again later."""
    error = StorageUnavailableError("away")
    for skipped in (0, 1):  # before the text is taken, and after it is journaled
        tap = Strike(calls("store.transact", "_finish_steering"), error, arms=appends("message.steered"))
        tap.armed = not skipped
        async with running(ScriptedAgent(steps), world, tap=tap) as it:
            run = await it.send_to_gate(text="first")
            await steer(it, run, "shorter")
            it.release("here")
            assert (await it.ended(run.id)).status == "complete"
            assert tap.struck.is_set()
            assert added(await it.answer(run)) == ["shorter"]
            await check_idle(it, run)


async def test_a_run_that_is_settled_twice_releases_its_texts_once(world: AnyWorld) -> None:
    """C6: a late settling changes nothing of the turns that followed."""
    async with running(ScriptedAgent(steps), world) as it:
        run = await it.send_to_gate(text="first")
        queued = await steer(it, run, "shorter")
        it.release("here")
        await it.ended(run.id)
        folded = await it.folded(run.id)
        await it.store.inner.transact(lambda tx: run_endings.settle(tx, run.id, folded))
        assert await it.outcome(queued) == ("cancelled", "steered")
