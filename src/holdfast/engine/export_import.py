"""Exports and imports whole sessions, as JSON lines or (export only) as Markdown or HTML. The format:
`core.export_format`; other applications' chats: `importers`; moving a directory: `app.migrate_store`.

`engine.transactions.imports` decides which imported messages are new.
"""

import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Container, Iterator, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

from anyio import CapacityLimiter, to_thread

from holdfast.core import export_format, import_rules, markdown_export
from holdfast.core.errors import InvalidInputError, NotFoundError
from holdfast.core.export_format import DerivedIds, ExportedFile, ExportedProject, ExportedSession
from holdfast.core.file_errors import storage_errors
from holdfast.core.ids import LOCAL, FileId, MessageId, OwnerId, SessionId
from holdfast.core.parts import FilePart, MissingFile
from holdfast.core.session import Message, Session
from holdfast.core.size_text import size_text
from holdfast.engine import export_lines, html_export
from holdfast.engine.attachments import Attachments
from holdfast.engine.export_lines import FileChunk, ImportReader, ImportStep
from holdfast.engine.html_export import EVERYTHING, IncludedParts
from holdfast.engine.messages import Messages
from holdfast.engine.projects import Projects
from holdfast.engine.sessions import Sessions
from holdfast.engine.transactions.imports import PIECE, PIECE_SIZE, Merged
from holdfast.ports.files import IncomingFile

T = TypeVar("T")

_ENCODED: Final = 3 * 2**16  # Bytes that are encoded at once: a multiple of 3, so that the pieces make one text
_UNKNOWN: Final = "application/octet-stream"
START: Final = 4096  # Bytes from which a file's media type is detected
MAX_LINE: Final = 64 * 1024 * 1024
MAX_SESSION: Final = 512 * 1024 * 1024  # Bytes of one session without its files
_IN_MEMORY: Final = 1024 * 1024  # Bytes of the messages of one session that are not worth a file
_UNUSABLE: Final = "The import cannot be stored in a temporary file"
_ATTEMPTS: Final = 3  # Of adding to a session that others change meanwhile


@dataclass(frozen=True, slots=True)
class FileRules:
    """Checks for what is imported: like an upload's, the declared name and type of an attached file are only hints."""

    max_size: int
    media_type: Callable[[bytes, str], str | None]  # From the content's start and the declared type; None: refused
    label: Callable[[str], str]
    agents: Container[str] = ()  # Those that a file may choose, besides the default one

    def size_problem(self, file: ExportedFile) -> str | None:
        too_large = not file.missing and file.size > self.max_size
        return f"is larger than {size_text(self.max_size)}" if too_large else None

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
class ExportImport:
    """Exports sessions, and starts imports (`Import`)."""

    _sessions: Sessions
    _messages: Messages
    _attachments: Attachments
    _projects: Projects
    _rendering: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(1)
    )  # HTML exports and shares that render

    # ---- export ----

    async def export(
        self, sid: SessionId, owner: OwnerId = LOCAL, described: set[str] | None = None
    ) -> AsyncIterator[bytes]:
        """One session in the format of `core.export_format`, without messages that are still being written, and of its
        project only the name: who is given one chat is not meant to be given the files of others. An export of all
        sessions describes each project with its first session; `described`: those that it has described."""
        plan = await self._messages.outline(sid, owner)
        project, files = None, dict[FileId, FilePart]()
        if described is not None and plan.session.project and plan.session.project not in described:
            described.add(plan.session.project)
            project, files = await self._describe(plan.session.project, owner)
        head = export_format.nearest_settled(plan.session.head, plan.unsettled)
        redo = tuple(mid for mid in plan.session.redo if mid not in plan.unsettled)
        yield export_lines.write(replace(plan.session, head=head, redo=redo), project=project)

        def encode_line(message: Message) -> bytes:
            for part in message.parts:
                if isinstance(part, FilePart):
                    files[part.file_id] = part
            parent_id = export_format.nearest_settled(message.parent_id, plan.unsettled)
            recovery = None if message.recovery == "pending" else message.recovery
            return export_lines.write(replace(message, parent_id=parent_id, recovery=recovery))

        async for piece in self._map(sid, plan.order, encode_line):
            yield piece
        compactions = [item for item in plan.compactions if item.message_id not in plan.unsettled]
        for compaction in compactions:
            yield export_lines.write(compaction)
        for part in files.values():
            async for piece in self._file(part, owner):
                yield piece
        yield export_lines.write_line("end", messages=len(plan.order), compactions=len(compactions), files=len(files))

    async def export_all(self, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """Every session that exists now, newest first. The ids are read at once: pages would miss a session that is
        used meanwhile, which moves to their beginning."""
        described: set[str] = set()
        for sid in await self._sessions.ids(owner):
            pieces = self.export(sid, owner, described)
            try:
                yield await anext(pieces)
            except NotFoundError:  # deleted meanwhile
                continue
            async for piece in pieces:
                yield piece

    async def _describe(self, name: str, owner: OwnerId) -> tuple[ExportedProject | None, dict[FileId, FilePart]]:
        """What is said of a project, and its files; nothing if it was deleted meanwhile."""
        try:
            view = await self._projects.get_named(name, owner)
        except NotFoundError:
            return None, {}
        names = (each.name for each in fields(ExportedProject) if each.name != "files")
        values = {each: getattr(view.project, each) for each in names}
        parts = {file.id: file.part() for file in view.files}
        return ExportedProject(**values, files=list(parts)), parts

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

    async def export_markdown(self, sid: SessionId, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """The shown branch as Markdown."""
        plan = await self._messages.outline(sid, owner)
        yield markdown_export.write_heading(plan.session).encode()
        write = markdown_export.write_message
        async for piece in self._map(sid, plan.shown, lambda message: write(message).encode("utf-8", "replace")):
            yield piece

    async def export_html(self, sid: SessionId, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """The shown branch as one HTML file, with its images. Texts are rendered in a thread, a few at a time."""
        plan = await self._messages.outline(sid, owner)
        yield html_export.write_heading(plan.session).encode("utf-8", "replace")
        async for piece in self.messages_as_html(sid, plan.shown, owner):
            yield piece
        yield html_export.write_end().encode()

    async def messages_as_html(
        self, sid: SessionId, mids: Sequence[MessageId], owner: OwnerId = LOCAL, included: IncludedParts = EVERYTHING
    ) -> AsyncIterator[bytes]:
        async with aclosing(self._messages.read_all(sid, mids)) as batches:
            async for messages in batches:
                html = await self.render(html_export.write_messages, messages, included)
                async for piece in self.with_files(html, owner):
                    yield piece

    async def render(self, write: Callable[..., T], *arguments: Any) -> T:
        """Writes HTML in a thread, one such work at a time."""
        return await to_thread.run_sync(write, *arguments, limiter=self._rendering)

    async def with_files(self, html: bytes, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """The HTML with the contents of the files that it has a place for."""
        for n, piece in enumerate(html_export.split_at_files(html)):
            if n % 2 == 0:
                yield piece
            else:
                async for data in self._encoded(FileId(piece.decode()), owner):
                    yield data

    async def _encoded(self, file_id: FileId, owner: OwnerId) -> AsyncIterator[bytes]:
        """The content of a file as base64; nothing if it is gone."""
        try:
            content = await self._attachments.open(await self._attachments.file(file_id, owner))
        except NotFoundError:
            return
        with content:
            while data := await to_thread.run_sync(content.read, _ENCODED):
                yield b64encode(data)

    async def _map(
        self, sid: SessionId, mids: Sequence[MessageId], encode: Callable[[Message], bytes]
    ) -> AsyncIterator[bytes]:
        """The messages encoded, in pieces, and not where the store reads: others wait for that."""

        def encode_some(messages: Sequence[Message]) -> bytes:
            return b"".join(map(encode, messages))

        async with aclosing(self._messages.read_all(sid, mids)) as batches:
            async for messages in batches:
                yield await to_thread.run_sync(encode_some, messages)

    # ---- import ----

    def start_import(
        self, rules: FileRules, directory: Path | None = None, owner: OwnerId = LOCAL, *, converted: bool = False
    ) -> "Import":
        """`directory` is for temporary files; `converted`: see `ImportReader`."""
        reader = ImportReader(converted=converted)
        return Import(self._sessions, self._attachments, self._projects, rules, owner, directory, reader)


@dataclass(slots=True, eq=False)
class Import:
    """Imports chunks of an export. A session is stored once it is complete, and shown once all of it is stored. Until
    then its messages are in a temporary file. Files of a refused session are deleted later."""

    _sessions: Sessions
    _attachments: Attachments
    _projects: Projects
    _rules: FileRules
    _owner: OwnerId
    _directory: Path | None
    _reader: ImportReader
    _rest: bytearray = field(default_factory=bytearray)
    _size: int = 0
    _open: ExitStack = field(default_factory=ExitStack)
    _incoming: IncomingFile | None = None
    _start: bytes = b""
    _files: dict[FileId, FilePart] = field(default_factory=dict)
    _skipped: list[str] = field(default_factory=list)
    _messages: BinaryIO | None = None  # The lines of messages, in their order

    async def feed(self, chunk: bytes) -> Sequence[ImportedSession]:
        """The sessions stored by this chunk. On InvalidInputError the current one is refused; earlier ones stay."""
        self._rest += chunk
        if len(self._rest) > MAX_LINE + len(chunk):
            raise InvalidInputError(f"line {self._reader.lines + 1}", f"is longer than {size_text(MAX_LINE)}")
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
            if isinstance(step, Message):
                self._keep_message(line)
                step = None
            if not isinstance(step, FileChunk):
                self._size += len(line)
            if self._size > MAX_SESSION:
                raise InvalidInputError(
                    f"line {self._reader.lines}", f"the session is larger than {size_text(MAX_SESSION)}"
                )
        return step, at

    async def finish(self) -> Sequence[ImportedSession]:
        imported = await self.feed(b"\n") if self._rest else ()
        self._reader.finish()
        return imported

    def close(self) -> None:
        """Discard an incomplete file. Call this in any case."""
        self._open.close()
        self._forget_messages()

    def _keep_message(self, line: bytes) -> None:
        if self._messages is None:
            directory = None if self._directory is None else str(self._directory)
            file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=directory)  # noqa: SIM115  see `close`
            self._messages = cast(BinaryIO, file)
        self._attachments.require_space(len(line))
        with storage_errors(_UNUSABLE):
            self._messages.write(line + b"\n")

    def _forget_messages(self) -> None:
        if self._messages is not None:
            with suppress(OSError):  # what it could not write is not needed
                self._messages.close()
            self._messages = None

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
                self._forget_messages()
                return [imported]
            case _:
                pass
        return ()

    async def _store(self, section: ExportedSession) -> ImportedSession:
        if section.copied_from is None:
            sid, mids = section.session.id, list(section.message_ids)
            known = await self._sessions.find_stored(sid, mids)
            if known.is_complete and known.session is not None and known.session.owner == self._owner:
                return ImportedSession(known.session, 0, 0, is_new=False)  # it was exported here; nothing was erased
        of_project: Sequence[str] = ()
        if section.project is not None and section.session.project:
            of_project = await self._add_project(section.session.project, section.project)
        restricted, left_out = import_rules.restrict_session(section.session, self._rules.agents)
        left_out = [*import_rules.refuse_origin(section), *left_out]
        ids = DerivedIds(section.source, self._owner)
        session = ids.session(restricted)
        for _ in range(_ATTEMPTS):
            merged = await self._merge(section, ids, session)
            if merged is not None:
                skipped = [merged.refusal] if merged.refusal else [*self._skipped, *(left_out if merged.is_new else ())]
                skipped += of_project
                return ImportedSession(merged.session, merged.added, len(section.files), merged.is_new, tuple(skipped))
        busy = "it is being changed; import it again later"
        return ImportedSession(session, 0, 0, is_new=False, skipped=(busy, *of_project))

    async def _add_project(self, name: str, found: ExportedProject) -> Sequence[str]:
        """Create the project of a session, unless there is one of that name: what is stored is not changed. Returns
        what of it was left out."""
        restricted, left_out = import_rules.restrict_project(name, found, self._rules.agents)
        values = {each.name: getattr(restricted, each.name) for each in fields(restricted) if each.name != "files"}
        parts = [self._files[fid] for fid in found.files if fid in self._files]
        fids = [part.file_id for part in parts if part.missing is None]
        return left_out if await self._projects.add_imported(name, values, fids, self._owner) else ()

    async def _merge(self, section: ExportedSession, ids: DerivedIds, session: Session) -> Merged | None:
        """None: somebody else has changed the session meanwhile."""
        mids = await to_thread.run_sync(lambda: list(map(ids.message_id, section.message_ids)))
        stored = await self._sessions.find_stored(session.id, mids)
        if stored.is_complete and stored.session is not None:
            return Merged(stored.session)
        version = None if stored.session is None else stored.session.version
        pieces = self._pieces(ids, [mid in stored.missing for mid in mids])
        added, piece = 0, await to_thread.run_sync(next, pieces, ())
        while following := await to_thread.run_sync(next, pieces, ()):
            version = await self._sessions.stage_imported(session, version, piece)
            if version is None:
                return None
            added, piece = added + len(piece), following
        merged = await self._sessions.merge_imported(
            session, version, piece, [ids.compaction(item) for item in section.compactions]
        )
        if merged is None:
            return None
        return replace(merged, added=len(mids) if merged.is_new else added + merged.added)

    def _pieces(self, ids: DerivedIds, wanted: Sequence[bool]) -> Iterator[Sequence[Message]]:
        """The messages that are wanted, as one transaction after another should store them."""
        if self._messages is None:
            return
        with storage_errors(_UNUSABLE):
            self._messages.seek(0)  # writes the last lines
        piece: list[Message] = []
        size = 0
        for is_wanted, line in zip(wanted, self._messages, strict=True):
            if is_wanted:
                piece.append(ids.message(export_lines.read_message(line), self._files))
                size += len(line)
            if len(piece) == PIECE or size >= PIECE_SIZE:
                yield piece
                piece, size = [], 0
        if piece:
            yield piece

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
        """Keeps a file's name without its content. A file of another application is not shown as an image. In an export
        of ours, a file with a problem is an error."""
        is_ours = self._reader.section.copied_from is None
        if is_ours and problem is not None:
            raise InvalidInputError(f"line {self._reader.lines}", f"file {note.id!r} {problem}")
        name, kind = self._rules.label(note.name), note.media_type if is_ours else _UNKNOWN
        missing: MissingFile = "not_imported" if problem is not None else "not_in_export"
        self._files[note.id] = FilePart(self._derived_id(note), name, kind, note.size, missing=missing)
        if problem is not None:
            self._skipped.append(f"file {name} {problem}")

    async def _find(self, fid: FileId) -> FilePart | None:
        try:
            return (await self._attachments.file(fid, self._owner)).part()
        except NotFoundError:
            return None
