"""Files that people attach: contents by digest outside the store, names and types as rows in it."""

from collections.abc import Callable
from typing import BinaryIO

import anyio
from anyio import to_thread

from holdfast.core.errors import NotFound
from holdfast.core.ids import LOCAL, FileId, OwnerId
from holdfast.engine.settings import Settings
from holdfast.ports import Files, Ids, Incoming, Store, StoredFile, Tx

_BATCH = 500


class Library:
    def __init__(self, store: Store, files: Files, ids: Ids, settings: Settings) -> None:
        self._store = store
        self._files = files
        self._ids = ids
        self._settings = settings
        self._naming = anyio.Lock()
        """A content gets its row, or loses its last one and goes: never both at once, for they may be the same."""

    def begin(self) -> Incoming:
        """Blocks for a moment: call it, and everything it returns, on a worker thread."""
        return self._files.begin()

    async def add(self, incoming: Incoming, name: str, media_type: str, owner: OwnerId = LOCAL) -> StoredFile:
        """The content is whole: keep it and name it. Durable when this returns."""
        async with self._naming:
            sha256, size = await to_thread.run_sync(incoming.finish)
            fid = FileId(self._ids.new("file"))
            about = (fid, owner, sha256, name, media_type, size)
            return await self._store.transact(lambda tx: _put(tx, StoredFile(*about, tx.now)))

    async def file(self, fid: FileId, owner: OwnerId = LOCAL) -> StoredFile:
        found = await self._store.read(lambda tx: tx.file(fid))
        if found is None or found.owner != owner:
            raise NotFound("file", fid)
        return found

    async def open(self, file: StoredFile) -> BinaryIO:
        return await to_thread.run_sync(self._files.open, file.sha256)

    async def drop_orphans(self, batch: int = _BATCH) -> None:
        """Files that no message names, once they are old enough not to be about to be sent."""
        async with self._naming:
            for digest in await self._store.transact(self._forget(batch)):
                await to_thread.run_sync(self._files.delete, digest)

    def _forget(self, batch: int) -> Callable[[Tx], list[str]]:
        grace = self._settings.orphan_grace

        def work(tx: Tx) -> list[str]:
            gone = tx.orphan_files(tx.now - grace, batch)
            for file in gone:
                tx.drop_file(file.id)
            return [file.sha256 for file in gone if not tx.digest_in_use(file.sha256)]

        return work


def _put(tx: Tx, file: StoredFile) -> StoredFile:
    tx.put_file(file)
    return file
