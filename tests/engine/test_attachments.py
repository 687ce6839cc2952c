"""Attached files: the content is stored before its row; orphans are deleted."""

from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from holdfast.agents.scripted_agent import Meet, Say
from holdfast.core.errors import NotFoundError
from holdfast.core.ids import FileId, OwnerId
from holdfast.engine.attachments import Attachments
from holdfast.ports.store import StoredFile
from holdfast.storage.file_store import FileStore
from tests.harness import AnyWorld, Running, Script, running
from tests.storage_interceptors import GUARD, Hold, calls

pytestmark = pytest.mark.anyio


def library(it: Running) -> Attachments:
    return it.engine.attachments


async def upload(library: Attachments, content: bytes, name: str = "notes.txt") -> StoredFile:
    incoming = await to_thread.run_sync(library.begin)
    with incoming:
        await to_thread.run_sync(incoming.write, content)
        return await library.add(incoming, name, "text/plain")


async def content(library: Attachments, fid: FileId) -> bytes:
    with await library.open(await library.file(fid)) as file:
        return file.read()


async def test_an_upload_can_be_sent_and_read_back(world: AnyWorld, tmp_path: Path) -> None:
    """A1: the content is there under its digest, its name and type are a row, and a message can name it."""
    async with running([Say("ok")], world, files=FileStore(tmp_path / "files")) as it:
        file = await upload(library(it), b"some words")
        assert (file.name, file.media_type, file.size) == ("notes.txt", "text/plain", 10)
        assert await content(library(it), file.id) == b"some words"
        run = (await it.engine.runs.submit(await it.new_session(), [file.part()])).run
        assert (await it.ended(run.id)).status == "complete"
        assert (await it.stored(run.user_message_id)).parts == (file.part(),)


async def test_a_file_of_somebody_else_is_not_there(world: AnyWorld, tmp_path: Path) -> None:
    """A1: another owner's file and one that never was are answered alike."""
    async with running([], world, files=FileStore(tmp_path / "files")) as it:
        file = await upload(library(it), b"x")
        for fid, owner in ((file.id, OwnerId("somebody")), (FileId("file_none"), file.owner)):
            with pytest.raises(NotFoundError):
                await library(it).file(fid, owner)


async def test_the_same_content_uploaded_while_its_last_file_goes_is_kept(world: AnyWorld, tmp_path: Path) -> None:
    """A1: the sweep has forgotten the old row and is about to delete the content when the same bytes come again."""
    hold = Hold(calls("store.transact", "drop_orphans"), when="after", armed=False)
    async with running([], world, files=FileStore(tmp_path / "files"), tap=hold) as it:
        await upload(library(it), b"twice")
        world.clock.advance(3601)
        hold.armed = True
        found: list[StoredFile] = []

        async def again() -> None:
            found.append(await upload(library(it), b"twice"))

        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(library(it).drop_orphans)
                await hold.reached.wait()
                tg.start_soon(again)
                while not library(it)._naming.statistics().tasks_waiting:  # the upload has come as far as it can
                    await anyio.lowlevel.checkpoint()
                hold.go.set()
        assert await content(library(it), found[0].id) == b"twice"


async def test_what_a_tool_returned_is_kept_while_its_run_is_open(world: AnyWorld, tmp_path: Path) -> None:
    """A1: a run may wait for days with an image in its journal. When the run settles, its journal decides."""
    script: Script = [Say("working"), Meet("mid")]
    async with running(script, world, files=FileStore(tmp_path / "files")) as it:
        run = await it.send(await it.new_session(), "go")
        await it.reached("mid")
        row = await it.row(run.id)
        part = await library(it).add_for_run(row, "chart.png", "image/png", b"picture")
        world.clock.advance(3601)
        await library(it).drop_orphans()
        assert await content(library(it), part.file_id) == b"picture"
        it.release("mid")
        assert (await it.ended(run.id)).status == "complete"
        await library(it).drop_orphans()
        with pytest.raises(NotFoundError):
            await library(it).file(part.file_id)
