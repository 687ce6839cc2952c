"""Retention of settled journals; clear and delete leave nothing behind."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.agents.chat.workspaces import WorkspaceDirectories
from holdfast.agents.scripted_agent import CallTool, Fail, Hang, Meet, Say
from holdfast.core.errors import JournalPrunedError, NotFoundError
from holdfast.core.events import MessageSeeded
from holdfast.core.ids import LOCAL, FileId, RunId
from holdfast.core.parts import FilePart, TextPart
from holdfast.engine.settings import EngineSettings
from holdfast.ports.store import RunQuery
from holdfast.storage.file_store import FileStore
from tests.harness import AnyWorld, Running, SqliteWorld, crash_at, in_turn, running, texts
from tests.storage_interceptors import Hold, appends

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0


async def pruned(it: Running, rid: RunId) -> bool:
    """Whether a client is told that the journal is gone."""
    try:
        return not await it.collect(rid)
    except JournalPrunedError:
        return True


async def test_a_node_that_stops_puts_away_what_it_has_settled(sqlite: SqliteWorld) -> None:
    """The next start need not read it: it was about to be archived when the stop came."""
    about_to = Hold(lambda call, args: call == "journal.settled" and bool(args[0]))
    async with running([Say("an answer")], sqlite, tap=about_to) as it:
        run = await it.turn()
        await about_to.held()
    with closing(sqlite3.connect(sqlite.path / "journal.db")) as db:
        assert db.execute("SELECT archived FROM runs WHERE run = ?", (run.id,)).fetchall() == [(1,)]


async def test_settled_journals_are_kept_for_thirty_days(world: AnyWorld) -> None:
    """X4: afterwards the events are gone and the message is not; the younger ones stay."""
    async with running([Say("an answer")], world) as it:
        old = await it.turn()
        world.clock.advance(2 * DAY)
        young = await it.turn()
        before = await it.answer(old)
        world.clock.advance(28 * DAY - 1)
        await it.tick()
        assert not await pruned(it, old.id)
        world.clock.advance(2)
        await it.tick()
        assert await pruned(it, old.id)
        assert await it.erased(old.id)
        assert not await pruned(it, young.id)
        assert await it.answer(old) == before
        assert (await it.engine.runs.get(old.id)).status == "complete"
    async with running((), world) as it:
        assert await pruned(it, old.id)
        assert await it.answer(old) == before
    assert EngineSettings().retention == 30 * DAY


async def test_retention_of_zero_is_for_ever(world: AnyWorld) -> None:
    """X4: nothing is pruned where it is set to zero."""
    async with running([Say("an answer")], world, retention=0.0) as it:
        run = await it.turn()
        world.clock.advance(10_000 * DAY)
        await it.tick()
        assert not await pruned(it, run.id)


async def test_what_is_not_settled_is_not_pruned(world: AnyWorld) -> None:
    """J4: a streaming, a waiting and a pending run keep their journals however old they are."""
    lost = await crash_at(world, [Say("lost "), Meet("here"), Hang()], seen=2)
    script = in_turn([Say("a "), Meet("here"), Say("b")], [Say("c "), CallTool("t", asks=True)])
    async with running(script, world, journal_away=True) as it:
        assert (await it.row(lost.id)).is_pending
        it.journal.away = False
        streaming = await it.send_and_see(2)
        waiting = await it.send()
        await it.until(waiting.id, "waiting")
        it.journal.away = True
        world.clock.advance(0.5 * DAY)
        await it.tick()
        assert (await it.row(lost.id)).is_pending
        it.journal.away = False
        world.clock.advance(100 * DAY)
        await it.engine.retention.prune()
        for run, text in ((lost, "lost "), (streaming, "a "), (waiting, "c ")):
            assert texts((await it.folded(run.id)).parts) == text
        it.release("here")
        assert (await it.ended(streaming.id)).status == "complete"


async def test_continuing_after_pruning_uses_the_stored_parts(world: AnyWorld) -> None:
    """X5: a run whose journal is gone is continued from its message."""
    async with running(
        in_turn([Say("one "), CallTool("t", result=1), Fail()], [Say("one "), CallTool("t"), Say("two")]), world
    ) as it:
        run = await it.turn()
        world.clock.advance(31 * DAY)
        await it.tick()
        assert await pruned(it, run.id)
        more = await it.continue_to_end(run)
        seeded = (await it.events(more.id))[0].event()
        assert isinstance(seeded, MessageSeeded)
        assert texts(seeded.parts) == "one "
        assert await it.answer_text(run) == "one two"
        assert it.agent.effects == ["t"]


# ---- erasing ----


class Blobs(FileStore):
    """File contents that nobody wrote; what is deleted is noted."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"))
        self.deleted: list[str] = []

    def delete(self, sha256: str) -> None:
        self.deleted.append(sha256)


@pytest.mark.parametrize("how", ["clear", "delete"])
async def test_clear_and_delete_erase_journal_index_and_files(world: AnyWorld, how: str) -> None:
    """O1: nothing of what was said is left: no row, no journal, no search entry, no file that only it named."""
    blobs = Blobs()
    async with running([Say("of pangolins")], world, files=blobs) as it:
        sid, other = await it.new_session(), await it.new_session()
        mine, shared = await it.add_file(sha256="aa"), await it.add_file(sha256="bb")
        run = (await it.engine.runs.submit(sid, [TextPart("numbats"), mine, shared])).run
        await it.ended(run.id)
        kept = (await it.engine.runs.submit(other, [TextPart("hi"), shared])).run
        await it.ended(kept.id)
        fork = await it.engine.sessions.fork(other, kept.message_id)
        if how == "clear":
            await it.engine.sessions.clear(sid)
            assert await it.shown(sid) == []
        else:
            await it.engine.sessions.delete(sid)
        assert await it.engine.sessions.search("numbats") == []
        world.clock.advance(3601)
        await it.tick()
        assert [hit.view.session.id for hit in await it.engine.sessions.search("pangolins")] == [fork.id, other]
        assert await it.erased(run.id)
        assert not await it.erased(kept.id)
        left = await it.store.inner.read(
            lambda tx: (
                tx.run(run.id),
                tx.message(run.message_id),
                tx.message(run.user_message_id),
                tx.queued_purges(10),
            )
        )
        assert (left[:3], list(left[3])) == ((None, None, None), [])
        with pytest.raises(NotFoundError):
            await it.engine.runs.get(run.id)
        assert blobs.deleted == ["aa"]
        assert await it.store.inner.read(lambda tx: tx.file(mine.file_id)) is None
        assert await it.store.inner.read(lambda tx: tx.file(shared.file_id)) is not None
        await it.engine.sessions.delete(other)
        await it.engine.sessions.delete(fork.id)
        world.clock.advance(3601)
        await it.tick()
        assert blobs.deleted == ["aa", "bb"]


async def test_a_cleared_conversation_gives_its_keys_back(world: AnyWorld) -> None:
    """A2: keys are kept with their runs: what was erased no longer answers for them."""
    async with running([Say("ok")], world) as it:
        first = await it.turn(key="k")
        await it.engine.sessions.clear(first.session_id)
        again = await it.turn(first, key="k")
        assert again.id != first.id


async def test_an_upload_is_kept_until_it_is_sent(world: AnyWorld) -> None:
    """A1: a file that no message names yet is kept for a while; one that a message names, forever."""
    blobs = Blobs()
    async with running([Say("ok")], world, files=blobs) as it:
        sent, forgotten = await it.add_file(sha256="aa"), await it.add_file(sha256="bb")
        await it.engine.runs.submit(await it.new_session(), [sent])
        world.clock.advance(3500)
        await it.tick()
        assert blobs.deleted == []
        world.clock.advance(200)
        await it.tick()
        assert blobs.deleted == ["bb"]
        with pytest.raises(NotFoundError):
            await it.engine.runs.submit(await it.new_session(), [forgotten])
        world.clock.advance(100 * DAY)
        await it.tick()
        assert blobs.deleted == ["bb"]


async def test_content_that_two_files_share_is_deleted_with_the_last(world: AnyWorld) -> None:
    """O1: the same content uploaded twice is kept while one of the files is."""
    blobs = Blobs()
    async with running([Say("ok")], world, files=blobs) as it:
        one, _ = await it.add_file(sha256="aa"), await it.add_file(sha256="aa")
        sid = await it.new_session()
        await it.engine.runs.submit(sid, [one])
        world.clock.advance(3601)
        await it.tick()
        assert blobs.deleted == []
        await it.engine.sessions.delete(sid)
        await it.idle()
        world.clock.advance(1)
        await it.tick()
        assert blobs.deleted == ["aa"]


async def test_a_deleted_session_leaves_no_directory(world: AnyWorld, tmp_path: Path) -> None:
    """O1: what agents left in the session's directory goes with it, when its last run has ended; other sessions keep
    theirs, and what a link leads to is not touched."""
    outside, root = tmp_path / "outside", tmp_path / "workspaces"
    outside.mkdir()
    ending = Hold(appends("run.cancelled"))
    async with running([Say("a"), Hang()], world, tap=ending, workspaces=WorkspaceDirectories(tmp_path)) as it:
        mine, other = await it.new_session(), await it.new_session()
        for sid in (mine, other):
            (root / sid / "closed").mkdir(parents=True)
            (root / sid / "closed" / "file").touch()
            (root / sid / "link").symlink_to(outside)
            (root / sid / "closed").chmod(0)
            (tmp_path / "trash" / sid / "0123456789abcdef").mkdir(parents=True)
        await it.send_and_see(2, mine)
        await it.engine.sessions.delete(mine)
        await ending.held()
        await it.tick()
        assert (root / mine).exists()
        ending.go.set()
        await it.idle()
        await it.tick()
        assert [path.name for path in root.iterdir()] == [other]
        assert [path.name for path in (tmp_path / "trash").iterdir()] == [other]
        assert outside.exists()
        (root / other / "closed").chmod(0o700)


async def test_a_purge_that_fails_is_made_up_for(world: AnyWorld) -> None:
    """O1: the journal is away when a session is erased: it is erased when the journal is back."""
    async with running([Say("secret")], world) as it:
        run = await it.turn()
        await it.idle()
        it.journal.away = True
        await it.engine.sessions.delete(run.session_id)
        await it.tick()
        assert await it.store.inner.read(lambda tx: tx.session(run.session_id)) is None
        assert not await it.erased(run.id)
        await it.crash()
    async with running((), world) as it:
        await it.tick()
        assert await it.erased(run.id)
        assert list(await it.store.inner.read(lambda tx: tx.queued_purges(10))) == []


async def test_an_orphan_is_not_made_by_a_fork(world: AnyWorld) -> None:
    """O1: a fork names the files of what it copied."""
    blobs = Blobs()
    async with running([Say("ok")], world, files=blobs) as it:
        sid = await it.new_session()
        file = await it.add_file(sha256="aa")
        run = (await it.engine.runs.submit(sid, [file])).run
        await it.ended(run.id)
        fork = await it.engine.sessions.fork(sid, run.message_id)
        await it.engine.sessions.delete(sid)
        world.clock.advance(3601)
        await it.tick()
        assert blobs.deleted == []
        question = (await it.shown(fork.id))[0]
        assert question.parts == (FilePart(FileId(file.file_id), "notes.txt", "text/plain", 5),)
        assert await it.store.inner.read(lambda tx: tx.runs(RunQuery(LOCAL, sid))) == []
