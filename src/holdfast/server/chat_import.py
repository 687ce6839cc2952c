"""Imports an uploaded export of Holdfast or of another application: receives all of it into a temporary file before it
reads anything, so that a slow client holds no memory. A stream reports the progress of a file. What of it is new:
`engine.transactions.imports.merge`."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import anyio
from anyio import from_thread, to_thread
from anyio.abc import ObjectSendStream
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.core.errors import DrainingError, HoldfastError, InvalidInputError
from holdfast.core.file_errors import storage_errors
from holdfast.core.size_text import size_text
from holdfast.engine.export_import import ExportImport, FileRules, Import, ImportedSession
from holdfast.importers.scratch import Scratch
from holdfast.importers.section_spool import SectionSpool, read_section
from holdfast.importers.sources import ConversionReport, SourceApp, convert, is_holdfast_export
from holdfast.server.context import ApiContext
from holdfast.server.event_sources import ProducedSource, progress_frame

MAX_UPLOAD: Final = 4 * 1024**3
_PREFIX: Final = ".import-"
_SHOWN: Final = 100  # Skipped items in the response
_UNUSABLE: Final = "The import cannot be stored in the data directory"
_LINKED: Final = 5  # New chats in the response, the newest
_IN_MEMORY: Final = 1024 * 1024  # Bytes of a request that are not worth a file, nor a turn
_CHUNK: Final = 256 * 1024

Frames = ObjectSendStream[list[bytes]]


class ChatImportSource(ProducedSource):
    """Frames `progress`, then `done` or `failed`. Closing it stops the import, and so does a shutdown of the server;
    sessions stored so far remain, and a repetition adds the others."""

    def __init__(self, api: ApiContext, rules: FileRules, app: SourceApp | None, name: str) -> None:
        super().__init__([self._import])
        self._export_import: ExportImport = api.engine.export_import
        self._require_space = api.engine.attachments.require_space
        self._wait_for_shutdown = api.engine.wait_for_stop
        self._limiter = api.import_limiter
        self._directory = api.data_dir
        self._rules = rules
        self._app = app
        self._name = name
        with storage_errors(_UNUSABLE):
            self._upload = tempfile.NamedTemporaryFile(prefix=_PREFIX, dir=api.data_dir)  # noqa: SIM115  see `close`
            self._spool = tempfile.TemporaryFile(dir=api.data_dir)  # noqa: SIM115

    def close(self) -> None:
        super().close()
        self._discard()

    async def aclose(self) -> None:
        await _run_shielded(self.close)

    def _discard(self) -> None:
        _discard(self._upload, self._spool)

    async def receive(self, body: AsyncIterator[bytes]) -> None:
        await _receive(body, self._upload, self._require_space, MAX_UPLOAD)
        with storage_errors(_UNUSABLE):
            await to_thread.run_sync(self._upload.flush)

    async def _import(self, send: Frames) -> None:
        imported: list[ImportedSession] = []
        frame: bytes | None = None

        async def stop_at_shutdown() -> None:
            await self._wait_for_shutdown()
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stop_at_shutdown)
                frame = await self._import_all(imported, send)
                tasks.cancel_scope.cancel()
        finally:  # before `close`, which is called on the event loop
            await _run_shielded(self._discard)
        await send.send([frame or _failed(DrainingError(), len(imported))])

    async def _import_all(self, imported: list[ImportedSession], send: Frames) -> bytes:
        """Returns the last frame. Adds each session to `imported` once it is stored."""
        try:
            sections = SectionSpool(self._spool, self._require_space)
            with storage_errors(_UNUSABLE):
                report = await to_thread.run_sync(self._read, sections, send, limiter=self._limiter)
                async with self._limiter:
                    await self._store(sections, imported, send, converted=report is not None)
            return progress_frame("done", _summary(report, imported))
        except HoldfastError as error:
            return _failed(error, len(imported))

    def _read(self, sections: SectionSpool, send: Frames) -> ConversionReport | None:
        """Converts and validates the whole source on this worker thread."""
        last = -1

        def report(done: int, total: int) -> None:
            nonlocal last
            from_thread.check_cancelled()
            percent = 100 * done // max(1, total)
            if percent != last:
                last = percent
                from_thread.run(
                    send.send, [progress_frame("progress", {"what": "reading", "done": done, "total": total})]
                )

        with open(self._upload.name, "rb") as file:
            if self._app is None and is_holdfast_export(file):
                try:
                    sections.add_export(file, self._rules, report)
                except InvalidInputError as error:
                    _raise_named(self._name, error)
                return None
        path, check = Path(self._upload.name), from_thread.check_cancelled
        scratch = Scratch(self._directory, self._require_space, check)
        return convert(path, self._app, sections.add, report, self._name, check=check, scratch=scratch)

    async def _store(
        self, sections: SectionSpool, imported: list[ImportedSession], send: Frames, *, converted: bool
    ) -> None:
        """Adds each session to `imported` once it is stored."""
        importing = self._export_import.start_import(self._rules, self._directory, converted=converted)
        last, total = -1, len(sections.sections)
        try:
            for done, section in enumerate(sections.sections):
                percent = 100 * done // total
                if percent != last:
                    last = percent
                    await send.send([progress_frame("progress", {"what": "importing", "done": done, "total": total})])
                imported += await _feed(importing, read_section(self._spool, section))
            imported += await importing.finish()
        finally:
            await _run_shielded(importing.close)


async def import_lines(
    api: ApiContext, rules: FileRules, body: AsyncIterator[bytes], *, converted: bool
) -> Sequence[ImportedSession]:
    """Imports a request body in our own format. Larger ones take turns: each line and the ids of each session are in
    memory at a time."""
    importing = api.engine.export_import.start_import(rules, api.data_dir, converted=converted)
    directory = None if api.data_dir is None else str(api.data_dir)
    file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=directory)  # noqa: SIM115  see `_discard`
    try:
        size = await _receive(body, file, api.engine.attachments.require_space)
        with storage_errors(_UNUSABLE):
            async with api.import_limiter if size > _IN_MEMORY else nullcontext():
                await to_thread.run_sync(file.seek, 0)
                imported = await _feed(importing, iter(partial(file.read, _CHUNK), b""))
                return [*imported, *await importing.finish()]
    finally:
        await _run_shielded(importing.close)
        await _run_shielded(partial(_discard, file))


async def _receive(
    body: AsyncIterator[bytes], file: IO[bytes], require_space: Callable[[int], object], limit: int | None = None
) -> int:
    """The size of the body. Without a limit, the reserve of the disk is one."""
    size = 0
    try:
        async for chunk in body:
            size += len(chunk)
            if limit is not None and size > limit:
                raise HTTPException(413, f"This file is larger than {size_text(limit)}.")
            require_space(len(chunk))
            with storage_errors(_UNUSABLE):
                await to_thread.run_sync(file.write, chunk)
    except ClientDisconnect:
        raise HTTPException(400, "The connection closed before the whole import arrived.") from None
    return size


def _discard(*files: IO[bytes]) -> None:
    for file in files:
        with suppress(OSError):  # what could not be written is not needed
            file.close()


async def _run_shielded(work: Callable[[], None]) -> None:
    """Closes files in a thread: to free the pages of a large one takes a tenth of a second."""
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(work)


async def _feed(importing: Import, chunks: Iterator[bytes]) -> Sequence[ImportedSession]:
    """The sessions that were stored, without their texts: there may be many of them."""
    imported: list[ImportedSession] = []
    while (chunk := await to_thread.run_sync(partial(next, chunks, None))) is not None:
        stored = await importing.feed(chunk)
        imported += [replace(each, session=replace(each.session, system=None, settings=None)) for each in stored]
    return imported


def remove_unfinished(data_dir: Path) -> None:
    """Removes what a process that was killed had received."""
    for left in data_dir.glob(f"{_PREFIX}*"):
        left.unlink(missing_ok=True)


def _raise_named(name: str, error: InvalidInputError) -> NoReturn:
    raise InvalidInputError(f"{name}, {error.field}", error.problem) from None


def _failed(error: HoldfastError, stored: int) -> bytes:
    sentence = str(error).rstrip(".")
    detail = f"{sentence}. {f'Chats imported before this: {stored}.' if stored else 'Nothing was imported.'}"
    return progress_frame("failed", {"type": error.code, "detail": detail})


def _newest(imported: list[ImportedSession]) -> list[ImportedSession]:
    return sorted(imported, key=lambda each: each.session.updated_at, reverse=True)[:_LINKED]


def _summary(report: ConversionReport | None, imported: list[ImportedSession]) -> Mapping[str, Any]:
    new = [each for each in imported if each.is_new]
    grown = [each for each in imported if not each.is_new and each.messages]
    skipped = [] if report is None else [{"item": item, "reason": reason} for item, reason in report.skipped]
    inside = [{"item": each.session.title, "reason": reason} for each in imported for reason in each.skipped]
    return {
        "source": "holdfast" if report is None else report.app,
        "imported": len(new),
        "updated": len(grown),
        "unchanged": len(imported) - len(new) - len(grown),
        "sessions": [{"id": each.session.id, "title": each.session.title} for each in _newest(new)],
        "messages": sum(each.messages for each in imported),
        "skipped": [*skipped, *inside][:_SHOWN],
        "skipped_count": (0 if report is None else report.skipped_count) + len(inside),
    }
