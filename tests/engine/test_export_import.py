"""Export and import of whole sessions: everything, under new ids, all or nothing."""

import json
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from holdfast.agents.scripted_agent import Action, CallTool, Fail, Hang, Meet, Say, Think
from holdfast.core import markdown_export
from holdfast.core.errors import InvalidInputError, StorageFullError
from holdfast.core.events import MemoryRecalled, Usage
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.parts import TextPart, approximate_size
from holdfast.core.session import Message
from holdfast.engine import export_import, export_lines
from holdfast.engine import messages as messages_module
from holdfast.engine.export_import import ExportImport, FileRules, ImportedSession
from holdfast.engine.sessions import Sessions
from holdfast.ports.agent import Summarizer
from holdfast.ports.store import RunQuery, SessionQuery, Tx
from holdfast.storage.file_store import FileStore
from tests.engine.test_import_reader import END, MESSAGE, SESSION
from tests.harness import AnyWorld, Running, World, in_turn, running
from tests.storage_interceptors import GUARD

pytestmark = pytest.mark.anyio

RICH: list[Action] = [
    MemoryRecalled(({"text": "likes tea", "source": "ses_0"},)),
    Think("hm"),
    CallTool("c1", "search", {"q": "tide"}, result={"high": 6}, output=("looking",)),
    Say("At six."),
    Usage(10, 20),
]


RULES = FileRules(10_000_000, lambda start, said: "text/plain" if start.startswith(b"some") else None, str.strip)


class Short(Summarizer):
    async def summarize(self, messages: Any, earlier: str | None) -> str:
        return "what was said"


def export_import_of(it: Running) -> ExportImport:
    return it.engine.export_import


async def export(it: Running, sid: SessionId) -> bytes:
    return b"".join([piece async for piece in export_import_of(it).export(sid)])


async def take(it: Running, data: bytes, pieces: int = 7) -> list[ImportedSession]:
    importing = export_import_of(it).start_import(RULES)
    try:
        taken: list[ImportedSession] = []
        for at in range(0, len(data), max(1, len(data) // pieces)):
            taken += await importing.feed(data[at : at + max(1, len(data) // pieces)])
        return [*taken, *await importing.finish()]
    finally:
        importing.close()


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def nameless(data: bytes) -> list[dict[str, Any]]:
    """The export with each id replaced by the number of its first appearance, and without the origin of imports."""
    seen: dict[str, int] = {}

    def rename(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: rename(item, name) for name, item in value.items() if name != "origin"} or None
        if isinstance(value, list):
            return [rename(item, key) for item in value]
        ids = ("id", "parent_id", "message_id", "file_id", "head", "redo")
        return seen.setdefault(value, len(seen)) if key in ids and isinstance(value, str) else value

    return [rename(line) for line in lines(data)]


def from_elsewhere(data: bytes) -> bytes:
    """The export as another server would have written it: its sessions do not exist here."""
    return data.replace(b'"version":1,"id":"', b'"version":1,"id":"other_')


async def a_full_session(it: Running) -> SessionId:
    """Branches, a failed answer, an undone turn, a compaction, and a file."""
    sid = (await it.engine.sessions.create(title="Tides", tags=("sea",), project="p", settings={"temperature": 1.5})).id
    incoming = await to_thread.run_sync(it.engine.attachments.begin)
    with incoming:
        incoming.write(b"some words" * 50_000)
        file = await it.engine.attachments.add(incoming, "notes.txt", "text/plain")
    first = (await it.engine.runs.submit(sid, [TextPart("When?"), file.part()])).run
    await it.ended(first.id)
    await it.engine.sessions.compact(sid, Short())
    failed = await it.turn(sid, "And now?")
    again = (await it.engine.runs.retry(sid, failed.message_id)).run
    await it.ended(again.id)
    await it.turn(sid, "Thanks")
    await it.engine.sessions.undo(sid)
    return sid


SCRIPTS: tuple[list[Action], ...] = (RICH, [Say("half"), Fail()], [Say("better")], [Say("bye")])


async def test_an_export_taken_in_is_exported_alike(world: AnyWorld, tmp_path: Path) -> None:
    """Export, import, export: the same lines but for the ids; tree, branches, notices, files and summary are there."""
    async with running(in_turn(*SCRIPTS), world, files=FileStore(tmp_path / "files")) as it:
        sid = await a_full_session(it)
        first = await export(it, sid)
        [taken] = await take(it, from_elsewhere(first))
        assert (taken.messages, taken.files) == (7, 1)
        assert taken.session.id != sid
        second = await export(it, taken.session.id)
        assert nameless(second) == nameless(first)
        assert not {line["id"] for line in lines(first) if "id" in line} & {
            line["id"] for line in lines(second) if "id" in line
        }
        kinds = [line["type"] for line in lines(first)]
        assert (kinds[0], kinds[-1], kinds.count("message"), kinds.count("compaction")) == ("session", "end", 7, 1)
        assert kinds.count("content") == 3  # in pieces


async def test_a_session_that_was_taken_in_can_be_used(world: AnyWorld, tmp_path: Path) -> None:
    """What came from elsewhere is listed, found, shown, redone and answered like any other."""
    async with running(in_turn(*SCRIPTS, [Say("more")]), world, files=FileStore(tmp_path / "files")) as it:
        [taken] = await take(it, from_elsewhere(await export(it, await a_full_session(it))))
        sid = taken.session.id
        listed = await it.engine.sessions.list(SessionQuery(taken.session.owner))
        assert sid in [view.session.id for view in listed]
        assert sid in [hit.view.session.id for hit in await it.engine.sessions.search("better")]
        await it.engine.sessions.redo(sid)
        await it.turn(sid, "Go on")
        assert [message.status for message in await it.shown(sid)] == ["complete"] * 8


async def test_sections_may_follow_one_another(memory: World, tmp_path: Path) -> None:
    """Two exports put together are two sessions."""
    async with running(in_turn(*SCRIPTS, [Say("x")]), memory, files=FileStore(tmp_path / "files")) as it:
        one, two = await a_full_session(it), await it.new_session()
        await it.turn(two)
        both = await export(it, one) + await export(it, two)
        assert [taken.messages for taken in await take(it, from_elsewhere(both))] == [7, 2]


async def test_importing_again_adds_only_what_is_new(world: AnyWorld, tmp_path: Path) -> None:
    """What is here already is left alone: the exported session itself, and one that was imported before. Messages that
    were added at its origin arrive; a session that was cleared or deleted here comes back."""
    async with running(in_turn(*SCRIPTS, [Say("x")], [Say("y")]), world, files=FileStore(tmp_path / "files")) as it:
        sid = await a_full_session(it)
        first = await export(it, sid)
        [known] = await take(it, first)
        assert (known.session.id, known.messages, known.is_new) == (sid, 0, False)
        [copy] = await take(it, from_elsewhere(first))
        [again] = await take(it, from_elsewhere(first))
        assert (again.session.id, again.messages, again.is_new) == (copy.session.id, 0, False)
        await it.turn(sid, "One more")
        [grown] = await take(it, from_elsewhere(await export(it, sid)))
        assert (grown.session.id, grown.messages, grown.is_new) == (copy.session.id, 2, False)
        await it.engine.sessions.clear(sid)
        [restored] = await take(it, first)
        assert (restored.messages, restored.is_new) == (7, True)
        assert len(await it.engine.sessions.list(SessionQuery(restored.session.owner))) == 3


class CutOffError(Exception):
    pass


async def test_a_large_session_is_shown_once_it_is_complete(
    world: AnyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several transactions store it. What an import leaves that was cut off is not shown, is not erased at once, and is
    completed by a repetition."""
    monkeypatch.setattr(export_import, "PIECE", 2)
    async with running(in_turn(*SCRIPTS), world, files=FileStore(tmp_path / "files")) as it:
        data = from_elsewhere(first := await export(it, await a_full_session(it)))
        stage = Sessions.stage_imported
        stored: list[int] = []

        async def cut_off(*given: Any) -> int | None:
            if len(stored) == 2:
                raise CutOffError
            stored.append(len(given[3]))
            return await stage(*given)

        with monkeypatch.context() as patch:
            patch.setattr(Sessions, "stage_imported", cut_off)
            with pytest.raises(CutOffError):
                await take(it, data)
        await it.tick()
        assert stored == [2, 2]
        assert len(await it.engine.sessions.list(SessionQuery(LOCAL))) == 1
        assert len(await it.engine.sessions.search("better")) == 1
        [taken] = await take(it, data)
        assert (taken.messages, taken.is_new, taken.skipped) == (7, True, ())
        assert nameless(await export(it, taken.session.id)) == nameless(first)
        [again] = await take(it, data)
        assert (again.session.id, again.messages, again.is_new) == (taken.session.id, 0, False)


async def test_a_chat_that_is_used_during_an_export_is_in_it(memory: World) -> None:
    """It moves to the beginning of the list, which the export has left behind. Archived chats come last."""
    async with running([Say("hi")], memory) as it:
        sids = [(await it.engine.sessions.create(title=str(n))).id for n in range(210)]
        await it.engine.sessions.update(sids[1], {"archived": True})
        pieces = export_import_of(it).export_all()
        lines = [await anext(pieces)]
        memory.clock.advance(1)
        await it.turn(sids[0])
        lines += [piece async for piece in pieces]
        exported = [json.loads(line) for line in b"".join(lines).splitlines()]
        assert [line["id"] for line in exported if line["type"] == "session"] == [*sids[:1:-1], sids[0], sids[1]]


async def test_what_was_left_of_an_import_is_erased(
    memory: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody repeats it: after an hour its messages are gone."""
    monkeypatch.setattr(export_import, "PIECE", 2)
    async with running(in_turn(*SCRIPTS), memory, files=FileStore(tmp_path / "files")) as it:
        data = from_elsewhere(await export(it, await a_full_session(it)))

        async def cut_off(*given: Any) -> None:
            raise CutOffError

        with monkeypatch.context() as patch:
            patch.setattr(Sessions, "merge_imported", cut_off)
            with pytest.raises(CutOffError):
                await take(it, data)
        [left] = await memory.base.read(lambda tx: tx.deleted_sessions(9))
        await it.tick()
        assert await memory.base.read(lambda tx: tx.deleted_sessions(9)) == [left]
        memory.clock.advance(3601)
        await it.tick()
        assert await memory.base.read(lambda tx: tx.deleted_sessions(9)) == []


async def test_a_session_that_changes_while_it_is_imported(
    memory: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are erased between two transactions of an import: it begins again, so that no parent is missing."""
    monkeypatch.setattr(export_import, "PIECE", 2)
    async with running(in_turn(*SCRIPTS), memory, files=FileStore(tmp_path / "files")) as it:
        data = await export(it, await a_full_session(it))
        [copy] = await take(it, from_elsewhere(data))
        sid = copy.session.id
        await it.engine.sessions.clear(sid)
        stage = Sessions.stage_imported
        calls = 0

        async def disturbed(*given: Any) -> int | None:
            nonlocal calls
            calls += 1
            if calls == 2:
                await it.engine.sessions.clear(sid)
            return await stage(*given)

        monkeypatch.setattr(Sessions, "stage_imported", disturbed)
        [again] = await take(it, from_elsewhere(data))
        assert (again.messages, again.is_new) == (7, False)
        outline = await it.engine.messages.outline(sid)
        assert len(outline.order) == 7


async def test_the_messages_of_a_session_are_not_held_together(memory: World, tmp_path: Path) -> None:
    """An import of a longer session takes a little more memory for each message, but not for its text."""

    def section(count: int) -> bytes:
        mids = [f"msg_{n}" for n in range(count)]
        session = {**SESSION, "id": f"ses_{count}", "head": mids[-1]}
        texts = [{**MESSAGE, "id": mid, "parts": [{"type": "text", "text": f"{mid} {'x' * 2000}"}]} for mid in mids]
        above = [{**line, "parent_id": parent} for line, parent in zip(texts, [None, *mids], strict=False)]
        return b"".join(json.dumps(line).encode() + b"\n" for line in (session, *above, {**END, "messages": count}))

    async def measure(it: Running, data: bytes, count: int) -> int:
        tracemalloc.start()
        try:
            [taken] = await take(it, data, 400)
            assert taken.messages == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    async with running([], memory, files=FileStore(tmp_path / "files")) as it:
        small, large = section(1500), section(4500)
        assert await measure(it, large, 4500) - await measure(it, small, 1500) < 3000 * 1000


async def test_large_messages_are_not_exported_together(memory: World, tmp_path: Path) -> None:
    """An export of a longer session takes no more memory, however large the messages are."""

    async def measure(it: Running, count: int) -> int:
        session = await it.engine.sessions.create()
        await it.engine.sessions.append(session.id, chain(session.id, count))
        tracemalloc.start()
        try:
            size = 0
            exports = export_import_of(it)
            for pieces in (
                exports.export(session.id),
                exports.export_markdown(session.id),
                exports.export_html(session.id),
            ):
                async for piece in pieces:
                    size += len(piece)
            assert size > 3 * count * 1_000_000
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def chain(sid: SessionId, count: int) -> list[Message]:
        mids = [MessageId(f"{sid}_{n}") for n in range(count)]
        above = [None, *mids[:-1]]
        parts = (TextPart("x" * 1_000_000),)
        return [
            Message(mid, LOCAL, sid, "user", parent, 1.0, parts=parts) for mid, parent in zip(mids, above, strict=True)
        ]

    async with running([], memory, files=FileStore(tmp_path / "files")) as it:
        small, large = await measure(it, 10), await measure(it, 40)
        assert large - small < 5_000_000


async def test_an_import_on_a_full_disk_is_refused(
    memory: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of a session are in a temporary file until it is complete."""
    monkeypatch.setattr(export_import, "_IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_, **__: open("/dev/full", "r+b"))  # noqa: SIM115
    section = b"".join(json.dumps(line).encode() + b"\n" for line in (SESSION, MESSAGE, END))
    async with running([], memory, files=FileStore(tmp_path / "files")) as it:
        with pytest.raises(StorageFullError, match="no space left on device"):
            await take(it, section)
        assert await it.engine.sessions.list(SessionQuery(LOCAL)) == []


async def test_what_is_being_written_is_left_out(memory: World, tmp_path: Path) -> None:
    """An answer that streams is not in the export: its question is the head; the export can be taken in."""
    script: list[Action] = [Say("partial"), Meet("there"), Hang()]
    async with running(script, memory, files=FileStore(tmp_path / "files")) as it:
        run = await it.send(text="question")
        await it.send_to_gate(run, "queued", gate="there")
        found = lines(data := await export(it, run.session_id))
        assert [line["type"] for line in found] == ["session", "message", "end"]
        assert found[0]["head"] == found[1]["id"] == run.user_message_id
        assert [taken.messages for taken in await take(it, from_elsewhere(data))] == [1]
        it.release("there")
        await it.engine.runs.cancel(run.id)


@pytest.mark.parametrize("cut", ["last line", "half", "middle line", "content"])
async def test_a_damaged_export_changes_nothing(memory: World, tmp_path: Path, cut: str) -> None:
    """A file that breaks off or lacks a line is refused with the place, and no session is there afterwards."""
    async with running(in_turn(*SCRIPTS), memory, files=FileStore(tmp_path / "files")) as it:
        all_lines = (await export(it, await a_full_session(it))).splitlines(keepends=True)
        at = next(n for n, line in enumerate(all_lines) if line.startswith(b'{"type":"content"'))
        damaged = {
            "last line": all_lines[:-1],
            "half": [*all_lines[:4], all_lines[4][:30]],
            "middle line": all_lines[:3] + all_lines[4:],
            "content": [*all_lines[:at], all_lines[at][:40] + b"AAAA" + all_lines[at][44:], *all_lines[at + 1 :]],
        }[cut]
        before = await it.engine.sessions.list(SessionQuery((await it.engine.sessions.create()).owner))
        with pytest.raises(InvalidInputError, match=r"^line \d+: "):
            await take(it, b"".join(damaged))
        assert len(await it.engine.sessions.list(SessionQuery(before[0].session.owner))) == len(before)


async def test_nothing_is_erased_while_everything_is_kept(world: AnyWorld, tmp_path: Path) -> None:
    """While a copy is being made a tick erases no journal and no file; afterwards it does, and recovery never waits."""
    async with running(in_turn(*SCRIPTS), world, files=FileStore(tmp_path / "files")) as it:
        sid = await a_full_session(it)
        run = (await it.engine.runs.list(RunQuery(LOCAL, sid)))[0]
        with anyio.fail_after(GUARD):
            async with it.engine.retention.erasing:
                await it.engine.sessions.delete(sid)
                await it.tick()
                assert await it.events(run.id)
            await it.tick()
        assert await it.erased(run.id)


async def test_nothing_is_rendered_where_the_store_reads(memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads read for all requests: exports and searches write and compare their texts elsewhere, and one read
    covers few messages."""
    reading, sizes = False, list[int]()

    async def read(work: Callable[[Tx], Any]) -> Any:
        def guarded(tx: Tx) -> Any:
            nonlocal reading
            reading = True
            try:
                found = work(tx)
            finally:
                reading = False
            if isinstance(found, list) and found and isinstance(found[0], Message):
                sizes.append(sum(approximate_size(message.parts) for message in found))
            return found

        return await plain(guarded)

    def guard(module: Any, name: str) -> None:
        inner = getattr(module, name)

        def outside(*args: Any, **options: Any) -> Any:
            assert not reading
            return inner(*args, **options)

        monkeypatch.setattr(module, name, outside)

    guard(export_lines, "write")
    guard(markdown_export, "write_message")
    guard(messages_module, "around")
    async with running([Say("x" * 100_000)], memory) as it:
        sid = (await it.turn()).session_id
        for _ in range(5):
            await it.turn(sid)
        plain = it.store.inner.read
        monkeypatch.setattr(it.store.inner, "read", read)
        for export in (it.engine.export_import.export, it.engine.export_import.export_markdown):
            assert len(b"".join([piece async for piece in export(sid)])) > 600_000
        page = await it.engine.messages.excerpts(sid, "xxx", limit=4)
        assert len(page.items) == 4
        rest = await it.engine.messages.excerpts(sid, "xxx", limit=4, before=page.next)
        assert (len(rest.items), rest.next) == (2, None)
    assert sizes
    assert max(sizes) < 400_000


async def test_large_sessions_are_stored_in_pieces(memory: World) -> None:
    """An import and a fork leave the writer to others after a quarter of a megabyte."""
    async with running([Say("x" * 200_000)], memory) as it:
        last = await it.turn()
        sid = last.session_id
        for _ in range(5):
            last = await it.turn(sid)
        data = (await export(it, sid)).replace(sid.encode(), b"ses_other")
        before = it.store.calls["transact"]
        await take(it, data)
        assert it.store.calls["transact"] - before >= 3
        before = it.store.calls["transact"]
        await it.engine.sessions.fork(sid, last.message_id)
        assert it.store.calls["transact"] - before >= 3
