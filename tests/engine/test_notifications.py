"""Notifications: what is stored with the end of a run, and how the outbox is emptied."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from holdfast.agents.scripted_agent import CallTool, Fail, Hang, Meet, Say
from holdfast.core.errors import InvalidInputError, NotFoundError, QuotaExceededError
from holdfast.core.ids import SubscriptionId
from holdfast.engine.notifications import PushChoices
from holdfast.engine.transactions import notifications
from holdfast.ports.push import PushResult
from holdfast.ports.store import PushMessage
from holdfast.testing import Fault
from tests.engine.push_services import RecordingPush
from tests.harness import GUARD, AnyWorld, Running, World, crash_before_settling, running

pytestmark = pytest.mark.anyio

PHONE = "https://push.example/phone"
API = {"source": "openai"}


async def subscribe(it: Running, endpoint: str = PHONE, *, credential: str | None = None, **wants: bool) -> Any:
    choices = PushChoices(**wants)
    return await it.engine.notifications.subscribe(endpoint, "p", "a", choices, device="Phone", credential=credential)


async def outbox(it: Running) -> list[PushMessage]:
    return list(await it.store.inner.read(lambda tx: tx.due_pushes(float("inf"), 99)))


async def emptied(it: Running) -> None:
    """Until nothing is left to send."""
    with anyio.fail_after(GUARD):
        while await outbox(it):
            await anyio.lowlevel.checkpoint()


async def postponed(it: Running) -> None:
    """Until the first attempt is noted."""
    with anyio.fail_after(GUARD):
        while any(each.due_at != it.world.clock.now() + 15.0 for each in await outbox(it)):
            await anyio.lowlevel.checkpoint()


async def pass_time(it: Running, seconds: float) -> None:
    """The sender looks again, when so much time has passed."""
    it.world.clock.advance(seconds)
    assert it.engine._push_sender is not None
    await it.engine._push_sender.tick()


# ---- what is stored ----


async def test_the_end_of_a_run_is_one_message(world: AnyWorld) -> None:
    """Each device is told once, with the title of the chat or without it; without a title, its first words."""
    push = RecordingPush()
    async with running([Say("done")], world, push=push) as it:
        phone = await subscribe(it)
        await subscribe(it, "https://push.example/desk", shows_title=False)
        sid = (await it.engine.sessions.create(title="Tides")).id
        run = await it.turn(sid)
        await push.count(2)
        content = {"kind": "done", "tag": run.id, "session": sid, "title": "Tides"}
        assert {endpoint: found for endpoint, _, found in push.sent} == {
            PHONE: content,
            "https://push.example/desk": {**content, "title": ""},
        }
        await emptied(it)
        (first, _) = await it.engine.notifications.devices()
        assert (first.id, first.failure) == (phone.id, None)
        assert first.succeeded_at is not None
        await it.turn(text="When is high water in Brest?")
        await push.count(4)
        assert {content["title"] for _, _, content in push.sent[2:]} == {"When is high water in Brest?", ""}


async def test_a_failure_is_told_and_a_cancel_is_not(world: AnyWorld) -> None:
    """Whoever cancels a run knows; a temporary chat, an attached run and a chat of a program are nobody's news."""
    push = RecordingPush()
    async with running([Say("begun"), Meet("here"), Fail()], world, push=push) as it:
        await subscribe(it)
        it.release("here")
        failed = await it.turn()
        await it.turn(lifetime="attached")
        temporary = await it.send((await it.engine.sessions.create(settings={"keep": False})).id)
        await it.collect(temporary.id)
        await it.idle()
        await it.turn((await it.engine.sessions.create(settings={"source": "openai"})).id)
        await push.count(1)
        await emptied(it)
        assert push.kinds == [(failed.id, "failed")]
    async with running([Say("begun"), Hang()], world, push=push) as it:
        run = await it.send_and_see(2)
        await it.engine.runs.cancel(run.id)
        assert await outbox(it) == []


@pytest.mark.parametrize(("settings", "lifetime"), [({}, "attached"), ({"keep": False}, None), (API, None)])
async def test_a_question_whose_client_is_connected_is_not_told(world: AnyWorld, settings: Any, lifetime: Any) -> None:
    """As with the end of a run: an attached run, a temporary chat and a chat of a program are nobody's news."""
    async with running([CallTool("c1", asks=True), Say("done")], world, push=RecordingPush(gate=anyio.Event())) as it:
        await subscribe(it)
        sid = (await it.engine.sessions.create(settings=settings)).id
        run = await (it.send(sid) if lifetime is None else it.send(sid, lifetime=lifetime))
        await it.until(run.id, "waiting")
        assert await outbox(it) == []


async def test_a_device_is_told_what_it_wants(world: AnyWorld) -> None:
    """The switches are read when the run ends, and can be changed one by one."""
    push = RecordingPush()
    async with running([CallTool("c1", asks=True), Say("done")], world, push=push) as it:
        phone = await subscribe(it, done=False)
        run = await it.send()
        await it.until(run.id, "waiting")
        question = await it.question(run.id)
        await push.count(1)
        assert push.kinds == [(question.id, "approval")]
        changed = await it.engine.notifications.change(phone.id, PushChoices(done=True, approval=False))
        assert (changed.done, changed.failed, changed.approval) == (True, True, False)
        await it.decide(run, "once")
        await it.until(run.id, "complete")
        await push.count(2)
        assert push.kinds[1:] == [(run.id, "done")]


async def test_without_a_device_nothing_is_stored(world: AnyWorld) -> None:
    """Neither while nobody has subscribed, nor after the last one has left."""
    push = RecordingPush()
    async with running([Say("done")], world, push=push) as it:
        await it.turn()
        assert await outbox(it) == []
        phone = await subscribe(it)
        await it.engine.notifications.unsubscribe(phone.id)
        await it.turn()
        assert (await outbox(it), push.sent) == ([], [])


async def test_a_run_that_a_crash_interrupted_is_told_once(world: AnyWorld) -> None:
    """X3: whoever settles it stores the message; a run that had completed is told as done."""
    push = RecordingPush()
    async with running([Say("one"), Hang()], world, push=push) as it:
        await subscribe(it)
        run = await it.send_and_see(2)
        await it.crash()
    assert push.sent == []
    async with running((), world, push=push) as it:
        await push.count(1)
        assert push.kinds == [(run.id, "failed")]
        await emptied(it)
    complete = await crash_before_settling(world, [Say("done")])
    async with running((), world, push=push) as it:
        await push.count(2)
        assert push.kinds[1:] == [(complete.id, "done")]
        await emptied(it)


async def test_a_recovered_answer_replaces_the_message_about_its_interruption(memory: World) -> None:
    """J2: the journal was away: the run is interrupted at first, and done when its journal is back."""
    run = await crash_before_settling(memory, [Say("done")])
    push = RecordingPush()
    async with running((), memory, push=push, journal_away=True, fence_wait=0.01) as it:
        await subscribe(it)
        await it.until(run.id, "interrupted")
    async with running((), memory, journal_away=True, fence_wait=0.01) as it:
        assert [each.kind for each in await outbox(it)] in ([], ["failed"])
        it.journal.away = False
        await it.tick()
        await it.until(run.id, "complete")
        assert [(each.tag, each.kind) for each in await outbox(it)] == [(run.id, "done")]


# ---- how it is sent ----


async def test_a_push_service_that_is_away_is_tried_again(memory: World) -> None:
    """With growing pauses, or those that it asks for; the device shows why."""
    push = RecordingPush([PushResult("retry", "it is down"), PushResult("retry", "it is busy", retry_after=600.0)])
    async with running([Say("done")], memory, push=push) as it:
        await subscribe(it)
        run = await it.turn()
        await push.count(1)
        await postponed(it)
        (device,) = await it.engine.notifications.devices()
        assert (device.failure, device.failed_at) == ("it is down", memory.clock.now())
        await pass_time(it, 14.0)
        assert len(push.sent) == 1
        await pass_time(it, 1.0)
        assert len(push.sent) == 2
        await pass_time(it, 599.0)
        assert len(push.sent) == 2
        await pass_time(it, 1.0)
        assert push.kinds == [(run.id, "done")] * 3
        assert await outbox(it) == []
        (device,) = await it.engine.notifications.devices()
        assert device.failure is None


async def test_a_message_is_given_up_when_it_is_no_news(memory: World) -> None:
    """After a day, however often it was tried, and after twenty attempts."""
    push = RecordingPush([PushResult("retry", "down")] * 99)
    async with running([Say("done")], memory, push=push) as it:
        await subscribe(it)
        await it.turn()
        await push.count(1)
        await postponed(it)
        for _ in range(40):
            await pass_time(it, 3600.0)
        assert await outbox(it) == []
        assert len(push.sent) == 20
        await it.turn()
        await push.count(21)
        await postponed(it)
        await pass_time(it, notifications.MAX_AGE)
        assert (await outbox(it), len(push.sent)) == ([], 21)


@pytest.mark.parametrize(("outcome", "devices"), [("gone", 0), ("refused", 1)])
async def test_a_message_that_is_not_taken_is_not_repeated(memory: World, outcome: Any, devices: int) -> None:
    """A subscription that has ended goes with its messages; one that is refused says why."""
    push = RecordingPush([PushResult(outcome, "no")])
    async with running([Say("done")], memory, push=push) as it:
        await subscribe(it)
        await it.turn()
        await push.count(1)
        await emptied(it)
        found = await it.engine.notifications.devices()
        assert [each.failure for each in found] == ["no"] * devices


async def test_a_device_whose_login_has_ended_is_told_nothing_more(memory: World) -> None:
    """A lost phone that was logged out shows no titles of chats."""
    push = RecordingPush(ended={"login_1"})
    async with running([Say("done")], memory, push=push) as it:
        await subscribe(it, credential="login_1")
        await subscribe(it, "https://push.example/desk", credential="login_2")
        await it.turn()
        await push.count(1)
        await emptied(it)
        assert [endpoint for endpoint, _, _ in push.sent] == ["https://push.example/desk"]
        assert [each.credential for each in await it.engine.notifications.devices()] == ["login_2"]


async def test_a_question_that_is_answered_is_not_told(memory: World) -> None:
    """The push service was away; when it is back, there is nothing to decide any more. A deleted chat is not told."""
    push = RecordingPush([PushResult("retry", "down")] * 2)
    async with running([CallTool("c1", asks=True), Say("done")], memory, push=push) as it:
        await subscribe(it, done=False)
        runs = [await it.send() for _ in range(2)]
        await push.count(2)
        await postponed(it)
        await it.until(runs[0].id, "waiting")
        await it.decide(runs[0], "deny")
        await it.engine.sessions.delete(runs[1].session_id)
        await pass_time(it, 60.0)
        assert (await outbox(it), len(push.sent)) == ([], 2)


async def test_one_node_of_a_cluster_sends_a_message(memory: World) -> None:
    """Whoever claims it; the other finds it claimed. If that node dies, the other repeats it, with the same tag."""
    first, second = RecordingPush(gate=anyio.Event()), RecordingPush()
    async with running((), memory, push=second, cluster=True) as there:
        async with running([Say("done")], memory, push=first, cluster=True, agents={}) as it:
            await subscribe(it)
            run = await it.turn()
            await first.begun.wait()
            assert there.engine._push_sender is not None
            await there.engine._push_sender.tick()
            assert second.sent == []
            await it.crash()
        await pass_time(there, 30.0)
        assert second.kinds == [(run.id, "done")]
        assert await outbox(there) == []


async def test_an_outcome_that_is_not_stored_is_repeated(memory: World) -> None:
    """The message was sent, and the commit that says so failed: it is sent again later, with the same tag."""
    push = RecordingPush()
    async with running([Say("done")], memory, push=push) as it:
        await subscribe(it)
        push.gate = anyio.Event()
        run = await it.turn()
        await push.begun.wait()
        it.store.plan = {("transact", it.store.calls["transact"] + 1): Fault("refuse")}
        push.gate.set()
        await push.count(1)
        await anyio.wait_all_tasks_blocked()
        await pass_time(it, 30.0)
        assert push.kinds == [(run.id, "done")] * 2
        assert await outbox(it) == []


# ---- devices ----


async def test_a_device_subscribes_again(world: AnyWorld) -> None:
    """With the same endpoint it is the same device, with new keys; its choices stay, unless they are made again."""
    async with running((), world, push=RecordingPush()) as it:
        first = await subscribe(it, failed=False)
        again = await it.engine.notifications.subscribe(
            PHONE, "p2", "a2", PushChoices(approval=False), device="Other", credential="login_2"
        )
        changes = {"p256dh": "p2", "auth": "a2", "device": "Other", "credential": "login_2", "approval": False}
        assert again == replace(first, **changes)
        assert list(await it.engine.notifications.devices()) == [again]


async def test_devices_are_limited(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an owner; an unknown device is not found, and an address that is refused stores nothing."""
    monkeypatch.setattr(notifications, "MAX_SUBSCRIPTIONS", 2)
    async with running((), memory, push=RecordingPush()) as it:
        await subscribe(it, "https://push.example/1")
        await subscribe(it, "https://push.example/2")
        with pytest.raises(QuotaExceededError):
            await subscribe(it, "https://push.example/3")
        await subscribe(it, "https://push.example/2")
        with pytest.raises(InvalidInputError):
            await subscribe(it, "http://push.example/4")
        unknown = SubscriptionId("push_x")
        for call in (it.engine.notifications.unsubscribe, it.engine.notifications.test):
            with pytest.raises(NotFoundError):
                await call(unknown)


async def test_a_test_message_is_sent_at_once(memory: World) -> None:
    """Its outcome is the answer, and is kept with the device."""
    push = RecordingPush([PushResult("sent"), PushResult("refused", "no"), PushResult("gone", "over")])
    async with running((), memory, push=push) as it:
        phone = await subscribe(it)
        assert (await it.engine.notifications.test(phone.id)).outcome == "sent"
        assert push.sent == [(PHONE, "test", {"kind": "test", "tag": "test", "session": None, "title": ""})]
        assert (await it.engine.notifications.test(phone.id)).reason == "no"
        assert [each.failure for each in await it.engine.notifications.devices()] == ["no"]
        assert (await it.engine.notifications.test(phone.id)).outcome == "gone"
        assert list(await it.engine.notifications.devices()) == []
