"""`holdfast migrate-store`: copies an embedded data directory to the storage of a cluster, and verifies the copy. The
server must be stopped. The directory is not changed, and an interrupted migration resumes where it stopped."""

import hashlib
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from typing import Final

from anyio import to_thread

from holdfast.app import cluster
from holdfast.config import Config
from holdfast.core.errors import ConfigError, NotFoundError, StorageError
from holdfast.core.ids import RunId
from holdfast.ports.files import Files
from holdfast.ports.journal import Append, Journal, JournalHead
from holdfast.ports.keyring import Keyring
from holdfast.storage.file_store import FileStore
from holdfast.storage.key_file import KeyFile
from holdfast.storage.migrate_store import Report, StoreMigration
from holdfast.storage.postgres import PostgresStore
from holdfast.storage.postgres.files import PostgresFiles
from holdfast.storage.sqlite import database, open_embedded
from holdfast.system import SystemClock

_PAGE: Final = 1000
_RUNS_PER_BATCH: Final = 200
_CHUNK: Final = 1 << 20
_ANSWER_TIMEOUT: Final = 600.0


async def migrate(config: Config, report: Report) -> dict[str, int]:
    """Returns the number of verified rows by table, journals and file contents."""
    if config.store_url is None:
        raise ConfigError("store_url", "is not set; name the target with --to or HOLDFAST_STORE_URL")
    if not (config.data_dir / "holdfast.db").exists():
        raise StorageError(f"{config.data_dir} has no holdfast.db. Name the data directory with --data-dir.")
    # A node's timeout follows from its leases; copying a table may take longer.
    postgres = replace(cluster.store_config(config, "migrate-store"), answer_within=_ANSWER_TIMEOUT)
    async with AsyncExitStack() as opened:
        directory, store, source = await to_thread.run_sync(open_embedded, config.data_dir, SystemClock())
        opened.callback(directory.close)
        opened.push_async_callback(store.close)
        opened.push_async_callback(source.close)
        target_store = await to_thread.run_sync(PostgresStore, postgres)
        opened.push_async_callback(target_store.close)
        target = await to_thread.run_sync(cluster.open_journal, config, "migrate-store")
        opened.push_async_callback(target.close)
        with closing(database.connect(directory.store_file, read_only=True)) as db:
            rows = StoreMigration(db, postgres, report)
            await to_thread.run_sync(rows.begin, store.generation)
            runs = [RunId(run) for (run,) in db.execute("SELECT id FROM runs ORDER BY id")]
            digests = [digest for (digest,) in db.execute("SELECT DISTINCT sha256 FROM files ORDER BY sha256")]
            await _copy_journals(source, target, runs, report)
            files = PostgresFiles(postgres, config.data_dir)
            await to_thread.run_sync(_copy_contents, FileStore(directory.files), files, digests, report)
            await to_thread.run_sync(rows.copy)
            counts = await to_thread.run_sync(rows.verify)
        await to_thread.run_sync(_copy_keys, config)
        return {**counts, "journals": len(runs), "contents": len(digests)}


async def _copy_journals(source: Journal, target: Journal, runs: Sequence[RunId], report: Report) -> None:
    """Runs before the rows are copied, so that at any interruption a copied run has its journal."""
    for at in range(0, len(runs), _RUNS_PER_BATCH):
        some = runs[at : at + _RUNS_PER_BATCH]
        heads, target_heads = await source.heads(some), await target.heads(some)
        for run in some:
            await _copy_journal(source, target, run, heads[run], target_heads[run])
        await target.fence({run: heads[run].epoch for run in some if heads[run].epoch})
        await target.settled([run for run in some if heads[run].sealed and not heads[run].pruned])
        report("journals", at + len(some), len(runs))


async def _copy_journal(
    source: Journal, target: Journal, run: RunId, head: JournalHead, target_head: JournalHead
) -> None:
    if head.pruned:
        if not target_head.pruned:
            await target.purge([run])
        return
    original, copied = hashlib.sha256(), hashlib.sha256()
    after = 0
    while after < head.last_seq:
        page = await source.read(run, after, _PAGE)
        if not page:
            raise StorageError(
                f"The journal of run {run} ends at event {after} instead of {head.last_seq}. Run `holdfast doctor`."
            )
        after = page[-1].seq
        new = [entry for entry in page if entry.seq > target_head.last_seq]
        if new:
            seals = head.sealed and after == head.last_seq
            (refused,) = await target.append([Append(run, max(head.epoch, target_head.epoch), new, seals)])
            if refused is not None:
                raise StorageError(f"The journal of run {run} could not be copied: {refused}")
        for entry in page:
            original.update(entry.frame)
        for entry in await target.read(run, page[0].seq - 1, len(page)):
            copied.update(entry.frame)
    if original.digest() != copied.digest():
        raise StorageError(f"The journal of run {run} differs from its copy. Empty the target and migrate again.")


def _copy_contents(source: FileStore, target: Files, digests: Sequence[str], report: Report) -> None:
    for done, digest in enumerate(digests, 1):
        try:
            target.open(digest).close()
        except NotFoundError:
            with source.open(digest) as content, target.begin() as incoming:
                while chunk := content.read(_CHUNK):
                    incoming.write(chunk)
                if incoming.finish()[0] != digest:
                    raise StorageError(
                        f"The file content {digest} is damaged in the data directory. Run `holdfast doctor`."
                    ) from None
        report("contents of files", done, len(digests))


def _copy_keys(config: Config) -> None:
    """Copies password, tokens and keys, unless the cluster already has its own."""
    original = KeyFile(config.data_dir).read()
    empty = replace(Keyring(""), cookie_key="")

    def change(ring: Keyring) -> Keyring:
        return original if replace(ring, cookie_key="", configured_password=None) == empty else ring

    cluster.keys(config).change(change)
