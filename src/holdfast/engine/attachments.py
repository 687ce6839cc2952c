"""Attached files: contents are stored by digest outside the store, names and types as rows in it. Which types are
accepted: `server.uploads`; when unused ones are deleted: `engine.retention`; how a model reads them:
`agents.chat.attachments`."""

from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO, TypeVar

import anyio
from anyio import to_thread

from holdfast.core.errors import NotFoundError
from holdfast.core.ids import LOCAL, FileId, OwnerId
from holdfast.core.parts import FilePart
from holdfast.core.run import Run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import check_disk_space
from holdfast.ports.files import Files, IncomingFile
from holdfast.ports.store import StoredFile, Tx

T = TypeVar("T")

_BATCH = 500


class Attachments:
    def __init__(self, node: NodeContext, files: Files) -> None:
        self._node = node
        self._files = files
        self._naming = anyio.Lock()
        """Adding a row for a content and deleting an unused content must not overlap: they may be the same content."""

    def begin(self) -> IncomingFile:
        """Blocking, like the methods of its result: call them on a worker thread."""
        return self._files.begin()

    def require_space(self, size: int) -> None:
        """Raises StorageFullError if `size` more bytes would use up the reserve that open runs are saved in."""
        check_disk_space(self._node, size)

    async def add(
        self, incoming: IncomingFile, name: str, media_type: str, owner: OwnerId = LOCAL, fid: FileId | None = None
    ) -> StoredFile:
        """Store a complete upload under a name, and under `fid` if the caller derives it. Durable when this returns."""
        return await self.add_with(incoming, name, media_type, lambda _, file: file, owner, fid)

    async def add_with(
        self,
        incoming: IncomingFile,
        name: str,
        media_type: str,
        record: Callable[[Tx, StoredFile], T],
        owner: OwnerId = LOCAL,
        fid: FileId | None = None,
    ) -> T:
        """`add`, and in the same transaction what `record` writes about the file. If that raises, nothing is stored."""

        def work(tx: Tx) -> T:
            file = StoredFile(new_id, owner, sha256, name, media_type, size, tx.now)
            tx.put_file(file)
            return record(tx, file)

        async with self._naming:
            sha256, size = await to_thread.run_sync(incoming.finish)
            new_id = fid or FileId(self._node.ids.new("file"))
            return await self._node.store.transact(work)

    async def add_for_run(self, run: Run, name: str, media_type: str, data: bytes) -> FilePart:
        """Store what a tool of an open run returned. The message refers to it from now on, so that it is no orphan
        while the run goes on or waits for a person; when the run settles, the journal decides."""

        def work(tx: Tx) -> FilePart:
            file = StoredFile(fid, run.owner, sha256, name, media_type, size, tx.now)
            tx.put_file(file)
            row, message = tx.run(run.id), tx.message(run.message_id)
            if row is not None and row.epoch == run.epoch and message is not None and message.status == "streaming":
                tx.put_message(replace(message, parts=(*message.parts, file.part())))
            return file.part()

        fid = FileId(self._node.ids.new("file"))
        async with self._naming:
            sha256, size = await to_thread.run_sync(self._write, data)
            return await self._node.store.transact(work)

    def _write(self, data: bytes) -> tuple[str, int]:
        with self._files.begin() as incoming:
            incoming.write(data)
            return incoming.finish()

    async def file(self, fid: FileId, owner: OwnerId = LOCAL) -> StoredFile:
        found = await self._node.store.read(lambda tx: tx.file(fid))
        if found is None or found.owner != owner:
            raise NotFoundError("file", fid)
        return found

    async def open(self, file: StoredFile) -> BinaryIO:
        return await to_thread.run_sync(self._files.open, file.sha256)

    async def drop_orphans(self, batch: int = _BATCH) -> None:
        """Delete files that no message refers to, once they are too old to be about to be sent."""

        def work(tx: Tx) -> list[str]:
            gone = tx.orphan_files(tx.now - self._node.settings.unused_file_grace, batch)
            for file in gone:
                tx.drop_file(file.id)
            return [file.sha256 for file in gone if not tx.digest_in_use(file.sha256)]

        async with self._naming:
            for digest in await self._node.store.transact(work):
                await to_thread.run_sync(self._files.delete, digest)
