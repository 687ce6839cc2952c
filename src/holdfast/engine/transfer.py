"""Exports and imports whole sessions, as JSON lines or (export only) as Markdown."""

from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from anyio import to_thread

from holdfast.core import export_format, markdown_export
from holdfast.core.errors import InvalidInputError, NotFoundError
from holdfast.core.export_format import ExportedFile, ExportedSession
from holdfast.core.ids import LOCAL, FileId, OwnerId, SessionId
from holdfast.core.parts import FilePart
from holdfast.core.session import Message, Session
from holdfast.engine import export_lines
from holdfast.engine.attachments import Attachments
from holdfast.engine.export_lines import FileChunk, ImportReader, ImportStep
from holdfast.engine.messages import Messages
from holdfast.engine.sessions import Sessions
from holdfast.ports.files import IncomingFile
from holdfast.ports.store import SessionQuery

_BATCH: Final = 100
_UNKNOWN: Final = "application/octet-stream"
START: Final = 4096  # Bytes from which a file's media type is detected
MAX_LINE: Final = 64 * 1024 * 1024
MAX_SESSION: Final = 512 * 1024 * 1024  # Bytes of one session without its files: it is held in memory


@dataclass(frozen=True, slots=True)
class FileRules:
    """Checks for imported files: like an upload's, their declared name and type are only hints."""

    max_size: int
    media_type: Callable[[bytes, str], str | None]  # From the content's start and the declared type; None: refused
    label: Callable[[str], str]

    def size_problem(self, file: ExportedFile) -> str | None:
        too_large = not file.missing and file.size > self.max_size
        return f"is over the limit of {self.max_size} bytes" if too_large else None

    def type_problem(self, start: bytes, file: ExportedFile) -> str | None:
        known = self.media_type(start, file.media_type) is not None
        return None if known else "has an unsupported type; images, PDF and text are supported"


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """`messages` counts those that were added: of a session imported before, only the new ones."""

    session: Session
    messages: int
    files: int
    is_new: bool = True
    skipped: tuple[str, ...] = ()  # What was left out, and why


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    _sessions: Sessions
    _messages: Messages
    _attachments: Attachments

    # ---- export ----

    async def export(self, sid: SessionId, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """One session in the format of `core.export_format`, without messages that are still being written."""
        plan = await self._messages.outline(sid, owner)
        head = export_format.nearest_settled(plan.session.head, plan.unsettled)
        redo = tuple(mid for mid in plan.session.redo if mid not in plan.unsettled)
        yield export_lines.write(replace(plan.session, head=head, redo=redo))
        files: dict[FileId, FilePart] = {}

        def encode_line(message: Message) -> bytes:
            for part in message.parts:
                if isinstance(part, FilePart):
                    files[part.file_id] = part
            parent_id = export_format.nearest_settled(message.parent_id, plan.unsettled)
            recovery = None if message.recovery == "pending" else message.recovery
            return export_lines.write(replace(message, parent_id=parent_id, recovery=recovery))

        for at in range(0, len(plan.order), _BATCH):
            yield b"".join(await self._messages.map_by_id(sid, plan.order[at : at + _BATCH], encode_line))
        compactions = [item for item in plan.compactions if item.message_id not in plan.unsettled]
        for compaction in compactions:
            yield export_lines.write(compaction)
        for part in files.values():
            async for piece in self._file(part, owner):
                yield piece
        yield export_lines.write_line("end", messages=len(plan.order), compactions=len(compactions), files=len(files))

    async def export_all(self, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """Every session, newest first."""
        for archived in (False, True):
            query = SessionQuery(owner, archived=archived, limit=200)
            while found := await self._sessions.list(query):
                for view in found:
                    pieces = self.export(view.session.id, owner)
                    try:
                        yield await anext(pieces)
                    except NotFoundError:  # deleted meanwhile
                        continue
                    async for piece in pieces:
                        yield piece
                last = found[-1].session
                query = replace(query, before=(last.updated_at, last.id))

    async def _file(self, part: FilePart, owner: OwnerId) -> AsyncIterator[bytes]:
        try:
            file = await self._attachments.file(part.file_id, owner)
            content = await self._attachments.open(file)
        except NotFoundError:
            yield export_lines.write(
                ExportedFile(part.file_id, part.name, part.media_type, part.size, "", missing=True)
            )
            return
        with content:
            yield export_lines.write(ExportedFile(file.id, file.name, file.media_type, file.size, file.sha256))
            while data := await to_thread.run_sync(content.read, export_format.CHUNK):
                yield export_lines.write_line("content", data=b64encode(data).decode("ascii"))

    async def read(self, sid: SessionId, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """The shown branch as Markdown."""
        plan = await self._messages.outline(sid, owner)
        yield markdown_export.write_heading(plan.session).encode()
        for at in range(0, len(plan.shown), _BATCH):
            texts = await self._messages.map_by_id(sid, plan.shown[at : at + _BATCH], markdown_export.write_message)
            yield "".join(texts).encode("utf-8", "replace")

    # ---- import ----

    def importing(self, rules: FileRules, owner: OwnerId = LOCAL) -> "Import":
        return Import(self._sessions, self._attachments, rules, owner)


@dataclass(slots=True, eq=False)
class Import:
    """Imports chunks of an export; each session is one transaction. Files of a refused session are deleted later."""

    _sessions: Sessions
    _attachments: Attachments
    _rules: FileRules
    _owner: OwnerId
    _reader: ImportReader = field(default_factory=ImportReader)
    _rest: bytearray = field(default_factory=bytearray)
    _size: int = 0
    _open: ExitStack = field(default_factory=ExitStack)
    _incoming: IncomingFile | None = None
    _start: bytes = b""
    _files: dict[FileId, FilePart] = field(default_factory=dict)
    _skipped: list[str] = field(default_factory=list)

    async def feed(self, chunk: bytes) -> Sequence[ImportedSession]:
        """The sessions stored by this chunk. On InvalidInputError the current one is refused; earlier ones stay."""
        self._rest += chunk
        if len(self._rest) > MAX_LINE + len(chunk):
            raise InvalidInputError(f"line {self._reader.lines + 1}", f"is longer than {MAX_LINE} bytes")
        if b"\n" not in chunk:
            return ()
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        imported: list[ImportedSession] = []
        at = 0
        while at < len(lines):
            step, at = await to_thread.run_sync(self._read_to_step, lines, at)
            imported += await self._handle(step)
        return imported

    def _read_to_step(self, lines: Sequence[bytearray], at: int) -> tuple[ImportStep, int]:
        """Reads lines from `at` up to one that something must be done for; a thread per line would be slow."""
        step: ImportStep = None
        while at < len(lines) and step is None:
            line = bytes(lines[at])
            at += 1
            step = self._reader.read(line)
            if not isinstance(step, FileChunk):
                self._size += len(line)
            if self._size > MAX_SESSION:
                raise InvalidInputError(f"line {self._reader.lines}", f"the session is larger than {MAX_SESSION} bytes")
        return step, at

    async def finish(self) -> Sequence[ImportedSession]:
        imported = await self.feed(b"\n") if self._rest else ()
        self._reader.finish()
        return imported

    def close(self) -> None:
        """Discard an incomplete file. Call this in any case."""
        self._open.close()

    async def _handle(self, step: ImportStep) -> Sequence[ImportedSession]:
        match step:
            case ExportedFile() as note:
                await self._begin(note)
            case FileChunk(note, data, last):
                if self._incoming is None:  # its content is not needed
                    return ()
                self._start += data[: START - len(self._start)]
                await to_thread.run_sync(self._incoming.write, data)
                if last:
                    await self._keep(note, self._incoming)
            case ExportedSession() as section:
                imported = await self._store(section)
                self._files, self._size, self._skipped = {}, 0, []
                return [imported]
            case None:
                pass
        return ()

    async def _store(self, section: ExportedSession) -> ImportedSession:
        if section.origin is None:
            mids = [message.id for message in section.messages]
            known = await self._sessions.find_with_messages(section.session.id, mids, self._owner)
            if known is not None:  # it was exported here, and nothing of it has been erased
                return ImportedSession(known, 0, 0, is_new=False)
        derived = export_format.with_derived_ids(section, self._owner, self._files)
        merged = await self._sessions.merge_imported(*derived)
        skipped = self._skipped if merged.refusal is None else [merged.refusal]
        return ImportedSession(merged.session, merged.added, len(section.files), merged.is_new, tuple(skipped))

    async def _begin(self, note: ExportedFile) -> None:
        if note.missing:
            self._leave_out(note)
        elif (problem := self._rules.size_problem(note)) is not None:
            self._leave_out(note, problem)
        elif (known := await self._find(self._derived_id(note))) is not None:
            self._files[note.id] = known
        else:
            self._start = b""
            self._incoming = self._open.enter_context(await to_thread.run_sync(self._attachments.begin))

    async def _keep(self, note: ExportedFile, incoming: IncomingFile) -> None:
        kind = self._rules.media_type(self._start, note.media_type)
        if kind is not None:
            name = self._rules.label(note.name)
            kept = await self._attachments.add(incoming, name, kind, self._owner, self._derived_id(note))
            self._files[note.id] = kept.part()
        else:
            self._leave_out(note, self._rules.type_problem(self._start, note))
        self._open.close()
        self._incoming = None

    def _derived_id(self, note: ExportedFile) -> FileId:
        return export_format.file_id(self._reader.section.source, self._owner, note.id)

    def _leave_out(self, note: ExportedFile, problem: str | None = None) -> None:
        """Keep a file's name without its content. One of another application is not shown as an image; one of ours must
        not have a problem."""
        is_ours = self._reader.section.origin is None
        if is_ours and problem is not None:
            raise InvalidInputError(f"line {self._reader.lines}", f"file {note.id!r} {problem}")
        name, kind = self._rules.label(note.name), note.media_type if is_ours else _UNKNOWN
        self._files[note.id] = FilePart(self._derived_id(note), name, kind, note.size)
        if problem is not None:
            self._skipped.append(f"file {name} {problem}")

    async def _find(self, fid: FileId) -> FilePart | None:
        try:
            return (await self._attachments.file(fid, self._owner)).part()
        except NotFoundError:
            return None
