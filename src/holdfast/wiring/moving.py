"""`holdfast migrate-store`: an embedded data directory becomes the data of a cluster. The server must be stopped; the
directory is left as it is. Broken off, it goes on where it was; done, it is checked against the source."""

import hashlib
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from anyio import to_thread

from holdfast.config import Config, ConfigError
from holdfast.core.errors import NotFound, StorageError
from holdfast.core.ids import RunId
from holdfast.core.values import replace
from holdfast.ports import Append, Files, Head, Journal, Keyring
from holdfast.storage.files import FileStore
from holdfast.storage.keys import KeyFile
from holdfast.storage.moving import Move, Report
from holdfast.storage.postgres import PostgresStore
from holdfast.storage.postgres.files import PostgresFiles
from holdfast.storage.sqlite import database, open_embedded
from holdfast.system import SystemClock
from holdfast.wiring import cluster

_PAGE: Final = 1000
_AT_ONCE: Final = 200
_CHUNK: Final = 1 << 20
_PATIENCE: Final = 600.0


async def move(config: Config, report: Report) -> dict[str, int]:
    """How many of each thing are there now, all of them checked."""
    if config.store_url is None:
        raise ConfigError("store_url", "is not set: say where to move to with --to, or HOLDFAST_STORE_URL")
    if not (config.data_dir / "holdfast.db").exists():
        raise NotFound("data directory with holdfast.db", str(config.data_dir))
    # A node's patience is measured by its leases; here a table may take as long as it takes.
    place = replace(cluster.store_place(config, "migrate-store"), answer_within=_PATIENCE)
    directory, store, source = await to_thread.run_sync(open_embedded, config.data_dir, SystemClock())
    try:
        target_store = await to_thread.run_sync(PostgresStore, place)
        target = await to_thread.run_sync(cluster.open_journal, config, "migrate-store")
        try:
            with closing(database.connect(directory.store_file, reads_only=True)) as db:
                rows = Move(db, place, report)
                await to_thread.run_sync(rows.begin, store.generation)
                runs = [RunId(run) for (run,) in db.execute("SELECT id FROM runs ORDER BY id")]
                digests = [digest for (digest,) in db.execute("SELECT DISTINCT sha256 FROM files ORDER BY sha256")]
                await _journals(source, target, runs, report)
                files = PostgresFiles(place, config.data_dir)
                await to_thread.run_sync(_contents, FileStore(directory.files), files, digests, report)
                await to_thread.run_sync(rows.copy)
                counts = await to_thread.run_sync(rows.verify)
            await to_thread.run_sync(_keys, config)
            return {**counts, "journals": len(runs), "contents": len(digests)}
        finally:
            await target.close()
            await target_store.close()
    finally:
        await source.close()
        await store.close()
        directory.close()


async def _journals(source: Journal, target: Journal, runs: Sequence[RunId], report: Report) -> None:
    """Before the rows: a run that is there has its journal, whenever this is broken off."""
    for at in range(0, len(runs), _AT_ONCE):
        some = runs[at : at + _AT_ONCE]
        heads, there = await source.heads(some), await target.heads(some)
        for run in some:
            await _journal(source, target, run, heads[run], there[run])
        await target.fence({run: heads[run].epoch for run in some if heads[run].epoch})
        await target.settled([run for run in some if heads[run].sealed and not heads[run].pruned])
        report("journals", at + len(some), len(runs))


async def _journal(source: Journal, target: Journal, run: RunId, head: Head, there: Head) -> None:
    if head.pruned:
        if not there.pruned:
            await target.purge([run])
        return
    here, copied = hashlib.sha256(), hashlib.sha256()
    after = 0
    while after < head.last_seq:
        page = await source.read(run, after, _PAGE)
        if not page:
            raise StorageError(f"The journal of run {run} ends at {after} instead of {head.last_seq}. Run doctor.")
        after = page[-1].seq
        new = [entry for entry in page if entry.seq > there.last_seq]
        if new:
            seals = head.sealed and after == head.last_seq
            (refused,) = await target.append([Append(run, max(head.epoch, there.epoch), new, seals)])
            if refused is not None:
                raise StorageError(f"The journal of run {run} could not be moved: {refused}")
        for entry in page:
            here.update(entry.frame)
        for entry in await target.read(run, page[0].seq - 1, len(page)):
            copied.update(entry.frame)
    if here.digest() != copied.digest():
        raise StorageError(f"The journal of run {run} is not the same after the move. Empty the target and move again.")


def _contents(source: FileStore, target: Files, digests: Sequence[str], report: Report) -> None:
    for done, digest in enumerate(digests, 1):
        try:
            target.open(digest).close()
        except NotFound:
            with source.open(digest) as content, target.begin() as incoming:
                while chunk := content.read(_CHUNK):
                    incoming.write(chunk)
                if incoming.finish()[0] != digest:
                    raise StorageError(f"The content {digest} is damaged in the data directory. Run doctor.") from None
        report("contents of files", done, len(digests))


def _keys(config: Config) -> None:
    """Password, tokens and keys, if the cluster has none of its own yet."""
    mine = KeyFile(config.data_dir).read()
    untouched = replace(Keyring(""), cookie_key="")

    def take(ring: Keyring) -> Keyring:
        return mine if replace(ring, cookie_key="") == untouched else ring

    cluster.keys(config).change(take)
