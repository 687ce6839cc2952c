"""Imports an uploaded export of Holdfast or of another application: receives it into a temporary file, reads all of it,
and only then stores its sessions. A stream reports the progress."""

import errno
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from anyio import from_thread, to_thread
from anyio.abc import ObjectSendStream
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.core.errors import HoldfastError, InvalidInputError, StorageError, StorageFullError
from holdfast.engine.transfer import FileRules, ImportedSession, Transfer
from holdfast.importers.section_spool import SectionSpool, read_section
from holdfast.importers.sources import ConversionReport, SourceApp, convert, is_holdfast_export
from holdfast.server.context import ApiContext
from holdfast.server.event_sources import ProducedSource, progress_frame

MAX_UPLOAD: Final = 4 * 1024**3
_PREFIX: Final = ".import-"
_SHOWN: Final = 100  # Skipped items in the response

Frames = ObjectSendStream[list[bytes]]


class ChatImportSource(ProducedSource):
    """Frames `progress`, then `done` or `failed`. Closing it stops the import; sessions stored so far remain, and a
    repetition adds the others."""

    def __init__(self, api: ApiContext, rules: FileRules, app: SourceApp | None, name: str) -> None:
        super().__init__([self._import])
        self._transfer: Transfer = api.engine.transfer
        self._require_space = api.engine.attachments.require_space
        self._limiter = api.import_limiter
        self._rules = rules
        self._app = app
        self._name = name
        with _storage_errors():
            self._upload = tempfile.NamedTemporaryFile(prefix=_PREFIX, dir=api.data_dir)  # noqa: SIM115  see `close`
            self._spool = tempfile.TemporaryFile(dir=api.data_dir)  # noqa: SIM115

    def close(self) -> None:
        super().close()
        for file in (self._upload, self._spool):
            with suppress(OSError):  # the incomplete file is not needed
                file.close()

    async def receive(self, body: AsyncIterator[bytes]) -> None:
        size = 0
        try:
            async for chunk in body:
                size += len(chunk)
                if size > MAX_UPLOAD:
                    raise HTTPException(413, f"This file is larger than {MAX_UPLOAD // 1024**3} GB.")
                self._require_space(len(chunk))
                with _storage_errors():
                    await to_thread.run_sync(self._upload.write, chunk)
        except ClientDisconnect:
            raise HTTPException(400, "The connection closed before the whole import arrived.") from None
        with _storage_errors():
            await to_thread.run_sync(self._upload.flush)

    async def _import(self, send: Frames) -> None:
        imported: list[ImportedSession] = []
        try:
            sections = SectionSpool(self._spool, self._require_space)
            with _storage_errors():
                report = await to_thread.run_sync(self._read, sections, send, limiter=self._limiter)
                await self._store(sections, imported, send)
            await send.send([progress_frame("done", _summary(report, imported))])
        except HoldfastError as error:
            await send.send([progress_frame("failed", {"type": error.code, "detail": _describe(error, len(imported))})])

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
        return convert(path, self._app, sections.add, report, self._name, check=check)

    async def _store(self, sections: SectionSpool, imported: list[ImportedSession], send: Frames) -> None:
        """Adds each session to `imported` once it is stored."""
        importing = self._transfer.importing(self._rules)
        last, total = -1, len(sections.sections)
        try:
            for done, section in enumerate(sections.sections):
                percent = 100 * done // total
                if percent != last:
                    last = percent
                    await send.send([progress_frame("progress", {"what": "importing", "done": done, "total": total})])
                chunks = read_section(self._spool, section)
                while (chunk := await to_thread.run_sync(partial(next, chunks, None))) is not None:
                    imported += await importing.feed(chunk)
            imported += await importing.finish()
        finally:
            importing.close()


def remove_unfinished(data_dir: Path) -> None:
    """Removes what a process that was killed had received."""
    for left in data_dir.glob(f"{_PREFIX}*"):
        left.unlink(missing_ok=True)


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = StorageFullError if error.errno in (errno.ENOSPC, errno.EDQUOT) else StorageError
        raise kind(f"The import cannot be kept in the data directory: {error.strerror or error}.") from error


def _raise_named(name: str, error: InvalidInputError) -> NoReturn:
    raise InvalidInputError(f"{name}, {error.field}", error.problem) from None


def _describe(error: HoldfastError, stored: int) -> str:
    sentence = str(error).rstrip(".")
    return f"{sentence}. {f'Chats imported before this: {stored}.' if stored else 'Nothing was imported.'}"


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
        "messages": sum(each.messages for each in imported),
        "skipped": [*skipped, *inside][:_SHOWN],
        "skipped_count": (0 if report is None else report.skipped_count) + len(inside),
    }
