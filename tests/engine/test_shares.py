"""Share links: a snapshot that never changes, holds nothing private, and ends with its chat."""

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.scripted_agent import Action, CallTool, Fail, Say, Think
from holdfast.core.errors import NotAllowedError, NotFoundError, QuotaExceededError
from holdfast.core.events import (
    Entry,
    Event,
    MemoryRecalled,
    PlanUpdated,
    StepStarted,
    TextDelta,
    ToolDelta,
    ToolFinished,
    Usage,
    entry,
)
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.parts import FilePart, PlanEntry, PlanPart, ReasoningPart, RememberedPart, TextPart, ToolPart
from holdfast.core.session import Message
from holdfast.core.shares import Share
from holdfast.engine import shares as shares_module
from holdfast.engine.attachments import Attachments
from holdfast.engine.export_import import ExportImport
from holdfast.engine.html_export import IncludedParts, write_messages
from holdfast.engine.html_recording import RunRecording
from holdfast.engine.messages import Messages
from holdfast.engine.shares import ShareRequest
from holdfast.storage.file_store import FileStore
from tests import strategies
from tests.harness import GUARD, AnyWorld, Running, in_turn, running

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0
PIXEL = b"\x89PNG\r\n\x1a\n0000"
RICH: list[Action] = [
    MemoryRecalled(({"text": "PRIVATE memory", "source": "ses_0"},)),
    Think("SECRET reasoning"),
    CallTool("c1", "SECRET_tool", {"q": "SECRET args"}, result="SECRET result"),
    PlanUpdated((PlanEntry("SECRET plan", "pending"),)),
    StepStarted(1, "a model"),
    Say("High tide is at **six**."),
    Usage(1234567, 7654321, 0.125),
]
ALL = ShareRequest(with_reasoning=True, with_tools=True, with_files=True)


async def share(it: Running, sid: SessionId, token: str = "t", request: ShareRequest | None = None) -> Share:
    return await it.engine.shares.create(sid, request or ShareRequest(), token)


async def content(it: Running, token: str = "t") -> bytes | None:
    """What the link with this token shows."""
    file = await it.engine.shares.find(token, is_opened=True)
    if file is None:
        return None
    with await it.engine.shares.open(file) as opened:
        return await to_thread.run_sync(opened.read)


async def text(it: Running, token: str = "t") -> str:
    found = await content(it, token)
    assert found is not None
    return found.decode()


async def attach(it: Running, name: str, media_type: str, data: bytes) -> FilePart:
    with await to_thread.run_sync(it.engine.attachments.begin) as incoming:
        incoming.write(data)
        return (await it.engine.attachments.add(incoming, name, media_type)).part()


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


# ------------------------------------------------------------------------------------------------ what is in it


@pytest.mark.parametrize("kind", ["text", "recording"])
async def test_nothing_private_is_shared(world: AnyWorld, files: FileStore, kind: Any) -> None:
    """Neither memories nor the system prompt, settings, ids, usage or messages of errors; reasoning, tools and files
    only if they are asked for."""
    failure = Fail("provider", "PRIVATE http://10.0.0.5 refused")
    async with running(in_turn(RICH, [Say("half"), failure]), world, files=files) as it:
        fields: dict[str, Any] = {"system": "PRIVATE system", "settings": {"temperature": 1.5, "cwd": "/PRIVATE"}}
        session = await it.engine.sessions.create(title="Tides", tags=("PRIVATE",), project="PRIVATE", **fields)
        picture = await attach(it, "SECRET.png", "image/png", PIXEL)
        notes = await attach(it, "SECRET notes.txt", "text/plain", b"SECRET words")
        runs = [(await it.engine.runs.submit(session.id, [TextPart("When?"), picture, notes])).run]
        await it.ended(runs[0].id)
        runs.append(await it.turn(session.id, "And then?"))
        await share(it, session.id, "little", ShareRequest(kind))
        await share(it, session.id, "all", replace(ALL, kind=kind))
        little, everything = await text(it, "little"), await text(it, "all")
    private = ["PRIVATE", session.id, picture.file_id, str(files._root), "1234567", "7654321", "0.125", "<script"]
    private += [each for run in runs for each in (run.id, run.message_id, run.user_message_id)]
    for shown in (little, everything):
        assert [each for each in private if each in shown] == []
        for said in ("Tides", "When?", "And then?", "half", "Failed."):
            assert said in shown
        assert "six" in shown
        assert '<meta name="robots" content="noindex' in shown
    assert "SECRET" not in little
    assert "A file that is not shared" in little
    for said in ("reasoning", "_tool", "args", "result", "plan", ".png", " notes.txt"):
        assert f"SECRET{said}" in everything or f"SECRET {said}" in everything
    assert "data:image/png;base64,iVBORw0KGgowMDAw" in everything
    assert 'href="data:application/octet-stream;base64,U0VDUkVUIHdvcmRz"' in everything


@given(st.lists(strategies.parts()), st.booleans(), st.booleans(), st.booleans())
def test_no_part_shows_more_than_was_chosen(parts: list[Any], reasoning: bool, tools: bool, files: bool) -> None:
    """Whatever an answer consists of: memories and provider data never appear, the rest only if it was chosen; and no
    text becomes an element that runs or loads something."""
    hidden = {
        ReasoningPart: not reasoning,
        ToolPart: not tools,
        PlanPart: not tools,
        RememberedPart: True,
    }
    included = IncludedParts(reasoning, tools, files, files, private=False)
    message = Message(MessageId("m"), LOCAL, SessionId("s"), "assistant", None, 0.0, parts=tuple(parts))
    shown = write_messages([message], included)
    expected = tuple(part for part in parts if not hidden.get(type(part), False))
    assert shown == write_messages([replace(message, parts=expected)], IncludedParts(files=files, downloads=files))
    assert not re.search(rb"<(script|iframe|object|link|style|form)", shown)


@given(strategies.journals(), st.booleans(), st.booleans(), st.booleans())
def test_any_journal_is_recorded(entries: list[Entry], reasoning: bool, tools: bool, files: bool) -> None:
    """Whatever a run did and however it ended: its recording is a whole article, without memories and provider data."""
    message = Message(MessageId("m"), LOCAL, SessionId("s"), "assistant", None, 0.0, run_id=RunId("r"))
    recording = RunRecording(message, IncludedParts(reasoning, tools, files, files, private=False), 1)
    recording.add(entries)
    shown = recording.html().decode()
    for name in ("article", "ol", "li", "details", "div", "span", "p"):
        assert len(re.findall(rf"<{name}[ >]", shown)) == shown.count(f"</{name}>"), name
    assert not re.search(r"<(script|iframe|object|link|style|form)", shown)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_recording_names_its_steps_and_the_calls_that_did_not_start(steps: int) -> None:
    """A single step needs no name; a call that was refused, such as one with invalid arguments, has a line with why."""
    message = Message(MessageId("m"), LOCAL, SessionId("s"), "assistant", None, 0.0, run_id=RunId("r"))
    recording = RunRecording(message, IncludedParts(tools=True), 1)
    refused: list[Event] = [
        ToolDelta("c", "edit_file", "{"),
        ToolFinished("c", "invalid arguments", is_error=True, duration_ms=0),
    ]
    events: list[Event] = []
    for index in range(steps):
        events += [StepStarted(index), TextDelta(f"text {index}"), *refused]
    recording.add(entry(seq, event, seq) for seq, event in enumerate(events, 1))
    shown = re.sub(r"<[^>]+>", "\n", recording.html().decode()).split("\n")
    lines = [line for line in shown if re.match(r"Step|text|edit_file|invalid", line)]
    one = ["text 0", "text 0", "edit_file (not run)", "invalid arguments"]
    both = ["Step 1", *one, "Step 2", *(line.replace("0", "1") for line in one)]
    assert lines == (one if steps == 1 else both)


async def test_the_shown_branch_is_shared(world: AnyWorld, files: FileStore) -> None:
    """Other branches, undone turns and an answer that is still being written are not part of it."""
    async with running(in_turn([Say("alpha")], [Say("beta")], [Say("gamma")]), world, files=files) as it:
        sid = await it.new_session()
        run = await it.turn(sid, "one")
        again = (await it.engine.runs.retry(sid, run.message_id)).run
        await it.ended(again.id)
        await it.turn(sid, "two")
        await it.engine.sessions.undo(sid)
        await share(it, sid)
        shown = await text(it)
    body = shown.partition("<body>")[2]
    assert "beta" in body
    assert not {"alpha", "gamma", "two"} & set(re.findall(r"\w+", body))


async def test_one_run_is_shared(world: AnyWorld, files: FileStore) -> None:
    """With its question, and nothing else of the chat; also if it is not on the shown branch."""
    async with running(in_turn([Say("alpha")], [Say("beta")], [Say("gamma")]), world, files=files) as it:
        sid = await it.new_session()
        await it.turn(sid, "one")
        run = await it.turn(sid, "two")
        await it.ended((await it.engine.runs.retry(sid, run.message_id)).run.id)
        await share(it, sid, request=ShareRequest("recording", run.id))
        shown = await text(it)
        with pytest.raises(NotFoundError):
            await share(it, await it.new_session(), "x", ShareRequest("recording", run.id))
    assert "beta" in shown
    assert "two" in shown
    assert not {"alpha", "gamma", "one"} & set(re.findall(r"\w+", shown.partition("</header>")[2]))


async def test_answers_without_a_journal_are_shown_as_text(world: AnyWorld, files: FileStore) -> None:
    """Their journals were deleted after the retention period, or they never had one."""
    async with running([Say("an answer")], world, files=files) as it:
        run = await it.turn()
        fork = await it.engine.sessions.fork(run.session_id, run.message_id)
        world.clock.advance(31 * DAY)
        await it.tick()
        for sid in (run.session_id, fork.id):
            await share(it, sid, sid, ShareRequest("recording"))
            shown = await text(it, sid)
            assert "There is no recording of this answer." in shown
            assert "an answer" in shown


# ------------------------------------------------------------------------------------------------ it never changes


@pytest.mark.parametrize("kind", ["text", "recording"])
async def test_a_link_never_shows_later_content(world: AnyWorld, files: FileStore, kind: Any) -> None:
    """Whatever is done to the chat afterwards, the link shows the same bytes, until what was shared is erased."""
    async with running([Say("an answer")], world, files=files) as it:
        run = await it.turn(text="question")
        sid, sessions = run.session_id, it.engine.sessions
        await share(it, sid, request=replace(ALL, kind=kind))
        before = await content(it)
        assert before is not None
        await sessions.update(sid, {"title": "LATER title"})
        assert await content(it) == before
        await it.turn(sid, "LATER question")
        assert await content(it) == before
        await it.ended((await it.engine.runs.retry(sid, run.message_id)).run.id)
        assert await content(it) == before
        await it.ended((await it.engine.runs.edit(sid, run.user_message_id, [TextPart("LATER edit")])).run.id)
        await sessions.edit_answer(sid, run.message_id, "LATER answer")
        await sessions.undo(sid)
        assert await content(it) == before
        world.clock.advance(100 * DAY)
        await it.tick()
        assert await content(it) == before
    async with running((), world, files=files) as it:
        assert await content(it) == before


# ------------------------------------------------------------------------------------------------ its end


async def test_a_link_ends_when_it_was_to_end(world: AnyWorld, files: FileStore) -> None:
    """At that moment, not with the next sweep; its content is erased with that."""
    async with running([Say("an answer")], world, files=files) as it:
        sid = (await it.turn()).session_id
        made = await share(it, sid, request=ShareRequest(seconds=DAY))
        await share(it, sid, "for ever", ShareRequest("recording"))
        digest = (await it.store.inner.read(lambda tx: tx.file(made.file_id))).sha256  # type: ignore[union-attr]
        world.clock.advance(DAY - 1)
        assert await content(it) is not None
        world.clock.advance(1)
        assert await content(it) is None
        assert len(await it.engine.shares.list()) == 2
        await it.tick()
        assert [each.token_digest for each in await it.engine.shares.list()] == ["for ever"]
        with pytest.raises(NotFoundError):
            files.open(digest)
        assert await content(it, "for ever") is not None


@pytest.mark.parametrize("how", ["revoke", "clear", "delete", "erase"])
async def test_what_is_erased_is_no_longer_shared(world: AnyWorld, files: FileStore, how: str) -> None:
    """O1: the link ends at once, and its content is erased with the files of the chat."""
    async with running([Say("an answer")], world, files=files) as it:
        run = await it.turn()
        await it.turn(run.session_id)
        other = (await it.turn(text="another question")).session_id
        made, kept = await share(it, run.session_id), await share(it, other, "kept")
        digest = (await it.store.inner.read(lambda tx: tx.file(made.file_id))).sha256  # type: ignore[union-attr]
        match how:
            case "revoke":
                await it.engine.shares.revoke(made.id)
                with pytest.raises(NotFoundError):
                    await it.engine.shares.revoke(made.id)
            case "clear":
                await it.engine.sessions.clear(run.session_id)
            case "delete":
                await it.engine.sessions.delete(run.session_id)
            case _:
                await it.engine.runs.erase(run.id)
        assert await content(it) is None
        assert [each.id for each in await it.engine.shares.list()] == [kept.id]
        world.clock.advance(3601)
        async with it.engine.retention.erasing:  # what revoking began
            pass
        await it.tick()
        with pytest.raises(NotFoundError):
            files.open(digest)
        assert await it.store.inner.read(lambda tx: tx.file(made.file_id)) is None
        assert await content(it, "kept") is not None


async def test_what_is_erased_while_it_is_rendered_is_not_shared(world: AnyWorld, files: FileStore) -> None:
    """The snapshot is ready when the chat is cleared: it is not stored."""
    async with running([Say("an answer")], world, files=files) as it:
        run = await it.turn()
        sid, begin = run.session_id, it.engine.attachments.add_with

        async def clear_first(*args: Any, **options: Any) -> Any:
            await it.engine.sessions.clear(sid)
            return await begin(*args, **options)

        class Clearing:
            def __getattr__(self, name: str) -> Any:
                return clear_first if name == "add_with" else getattr(it.engine.attachments, name)

        shares = replace(it.engine.shares, _attachments=cast(Attachments, Clearing()))
        with pytest.raises(NotFoundError):
            await shares.create(sid, ShareRequest(), "t")
        assert await it.engine.shares.list() == []
        assert await content(it) is None


async def test_a_share_of_a_deleted_chat_is_not_opened(world: AnyWorld, files: FileStore) -> None:
    """Also if a node of the version before deleted the chat, which knows no shares."""
    async with running([Say("an answer")], world, files=files) as it:
        sid = (await it.turn()).session_id
        await share(it, sid)
        session = await it.session_row(sid)
        await it.store.inner.transact(lambda tx: tx.put_session(replace(session, deleted_at=tx.now)))
        assert await content(it) is None


# ------------------------------------------------------------------------------------------------ limits


async def test_shares_are_limited(world: AnyWorld, files: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """In size, in number, and in all; what is refused leaves nothing behind."""
    async with running([Say("x" * 5000)], world, files=files) as it:
        sid = (await it.turn()).session_id
        monkeypatch.setattr(shares_module, "MAX_SHARE_BYTES", 2000)
        for kind in ("text", "recording"):
            with pytest.raises(NotAllowedError, match="larger than"):
                await share(it, sid, "large", ShareRequest(kind))
        monkeypatch.undo()
        monkeypatch.setattr(shares_module, "MAX_JOURNAL_BYTES", 2000)
        with pytest.raises(NotAllowedError, match="share the text"):
            await share(it, sid, "long", ShareRequest("recording"))
        monkeypatch.undo()
        size = (await share(it, sid)).size
        monkeypatch.setattr(shares_module, "MAX_SHARED_BYTES", 2 * size - 1)
        with pytest.raises(QuotaExceededError):
            await share(it, sid, "second")
        monkeypatch.undo()
        monkeypatch.setattr(shares_module, "MAX_SHARES", 1)
        with pytest.raises(QuotaExceededError):
            await share(it, sid, "second")
        assert len(await it.engine.shares.list()) == 1
        assert len([path for path in files._root.rglob("*") if path.is_file()]) == 1


class HeldMessages:
    """Reads of the transcript that wait until their task is cancelled."""

    def __init__(self, inner: Messages) -> None:
        self._inner = inner
        self.reached = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def read_all(self, *_: Any) -> AsyncGenerator[Sequence[Message], None]:
        self.reached.set()
        await anyio.sleep_forever()
        yield ()


async def test_a_share_does_not_wait_for_a_large_one(
    world: AnyWorld, files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a large one take longer than two minutes; one that is stopped leaves nothing."""
    async with running([Say("an answer")], world, files=files) as it:
        sid = (await it.turn()).session_id
        held = HeldMessages(it.engine.messages)
        large = replace(it.engine.shares, _messages=cast(Messages, held), _export=replace_messages(it, held))
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(large.create, sid, ShareRequest(), "large")
                await held.reached.wait()
                await share(it, sid, "small")
                tasks.cancel_scope.cancel()
            monkeypatch.setattr(shares_module, "_TIME_LIMIT", 0.001)
            with pytest.raises(NotAllowedError, match="longer than"):
                await large.create(sid, ShareRequest(), "large")
        assert [each.token_digest for each in await it.engine.shares.list()] == ["small"]


def replace_messages(it: Running, held: HeldMessages) -> ExportImport:
    return replace(it.engine.export_import, _messages=cast(Messages, held))


async def test_an_empty_chat_is_not_shared(world: AnyWorld, files: FileStore) -> None:
    async with running((), world, files=files) as it:
        with pytest.raises(NotAllowedError, match="no messages"):
            await share(it, await it.new_session())


async def test_when_a_share_was_opened_is_recorded(world: AnyWorld, files: FileStore) -> None:
    """At most once a minute, so that nobody can make the server write all the time; a HEAD request does not count."""
    async with running([Say("an answer")], world, files=files) as it:
        sid = (await it.turn()).session_id
        await share(it, sid)

        async def opened() -> float | None:
            return (await it.engine.shares.list())[0].last_opened_at

        await it.engine.shares.find("t", is_opened=False)
        assert await opened() is None
        await content(it)
        first = await opened()
        assert first == world.clock.now()
        world.clock.advance(59)
        await content(it)
        assert await opened() == first
        world.clock.advance(1)
        await content(it)
        assert await opened() == world.clock.now()
