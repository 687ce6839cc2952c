"""Whole sessions in and out: as lines that can be kept, as Markdown that can be read."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from typing import Final

from anyio import to_thread

from holdfast.core import markdown, portable
from holdfast.core.errors import Invalid, NotFound
from holdfast.core.ids import LOCAL, FileId, OwnerId, SessionId
from holdfast.core.parts import File
from holdfast.core.portable import FileNote
from holdfast.core.portable_reader import Content, FileBegins, Finished, Meaning, Reader
from holdfast.core.session import Message, Session
from holdfast.core.values import dataclass, replace
from holdfast.engine.library import Library
from holdfast.engine.service import Service
from holdfast.ports import Incoming, SessionQuery

_BATCH: Final = 100
_START: Final = 4096
"""Bytes of a file by which its kind is seen."""
MAX_LINE: Final = 64 * 1024 * 1024
MAX_SESSION: Final = 512 * 1024 * 1024
"""Bytes of one session without its files: it is written in one transaction, so it is held as a whole."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """What is said about a file in an import is a hint, like what a client says when it sends one."""

    max_size: int
    media_type: Callable[[bytes, str], str | None]
    """Of its beginning and what it is said to be; None: not taken."""
    label: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Taken:
    session: Session
    messages: int
    files: int


class Transfer:
    def __init__(self, service: Service, library: Library) -> None:
        self._service = service
        self._library = library

    # ---- out ----

    async def export(self, sid: SessionId, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """A section of `core.portable`, piece by piece. What is still being written is left out."""
        plan = await self._service.outline(sid, owner)
        head = portable.above(plan.session.head, plan.unsettled)
        redo = tuple(mid for mid in plan.session.redo if mid not in plan.unsettled)
        yield portable.session_line(replace(plan.session, head=head, redo=redo))
        named: dict[FileId, File] = {}

        def written(message: Message) -> bytes:
            for part in message.parts:
                if isinstance(part, File):
                    named[part.file_id] = part
            return portable.message_line(replace(message, parent_id=portable.above(message.parent_id, plan.unsettled)))

        for at in range(0, len(plan.order), _BATCH):
            yield b"".join(await self._service.by_id(sid, plan.order[at : at + _BATCH], written))
        kept = [item for item in plan.compactions if item.message_id not in plan.unsettled]
        for compaction in kept:
            yield portable.compaction_line(compaction)
        for part in named.values():
            async for piece in self._file(part, owner):
                yield piece
        yield portable.end_line(len(plan.order), len(kept), len(named))

    async def export_all(self, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """Every session that there is now, from new to old."""
        for archived in (False, True):
            query = SessionQuery(owner, archived=archived, limit=200)
            while found := await self._service.sessions(query):
                for view in found:
                    pieces = self.export(view.session.id, owner)
                    try:
                        yield await anext(pieces)
                    except NotFound:  # deleted in the meantime
                        continue
                    async for piece in pieces:
                        yield piece
                last = found[-1].session
                query = replace(query, before=(last.updated_at, last.id))

    async def _file(self, part: File, owner: OwnerId) -> AsyncIterator[bytes]:
        try:
            file = await self._library.file(part.file_id, owner)
            content = await self._library.open(file)
        except NotFound:
            yield portable.file_line(FileNote(part.file_id, part.name, part.media_type, part.size, "", missing=True))
            return
        with content:
            yield portable.file_line(FileNote(file.id, file.name, file.media_type, file.size, file.sha256))
            while data := await to_thread.run_sync(content.read, portable.PIECE):
                yield portable.content_line(data)

    async def read(self, sid: SessionId, owner: OwnerId = LOCAL) -> AsyncIterator[bytes]:
        """The shown branch as Markdown, for people."""
        plan = await self._service.outline(sid, owner)
        yield markdown.heading(plan.session).encode()
        for at in range(0, len(plan.shown), _BATCH):
            texts = await self._service.by_id(sid, plan.shown[at : at + _BATCH], markdown.message)
            yield "".join(texts).encode("utf-8", "replace")

    # ---- in ----

    def importing(self, rules: FileRules, owner: OwnerId = LOCAL) -> "Import":
        return Import(self._service, self._library, rules, owner)


class Import:
    """Takes bytes as they come; each session is stored when its last line is there, in one transaction. Files are
    kept as they come, and are nobody's, and so swept, if the session is not taken."""

    def __init__(self, service: Service, library: Library, rules: FileRules, owner: OwnerId) -> None:
        self._service = service
        self._library = library
        self._rules = rules
        self._owner = owner
        self._reader = Reader()
        self._rest = bytearray()
        self._size = 0
        self._open = ExitStack()
        self._incoming: Incoming | None = None
        self._note: FileNote | None = None
        self._start = b""
        self._files: dict[FileId, File] = {}

    async def feed(self, chunk: bytes) -> Sequence[Taken]:
        """What is stored now. Invalid: the session that was being read is not taken; those before it are."""
        self._rest += chunk
        if len(self._rest) > MAX_LINE + len(chunk):
            raise Invalid(f"line {self._reader.lines + 1}", f"is longer than {MAX_LINE} bytes")
        if b"\n" not in chunk:
            return ()
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        taken: list[Taken] = []
        for line in lines:
            meaning = await to_thread.run_sync(self._reader.read, bytes(line))
            if not isinstance(meaning, Content):
                self._size += len(line)
            if self._size > MAX_SESSION:
                raise Invalid(f"line {self._reader.lines}", f"the session is larger than {MAX_SESSION} bytes")
            taken += await self._obey(meaning)
        return taken

    async def finish(self) -> Sequence[Taken]:
        taken = await self.feed(b"\n") if self._rest else ()
        self._reader.finish()
        return taken

    def close(self) -> None:
        """Always: it throws away what is half there."""
        self._open.close()

    async def _obey(self, meaning: Meaning) -> Sequence[Taken]:
        match meaning:
            case FileBegins(note):
                await self._begin(note)
            case Content(data, last):
                assert self._incoming is not None
                self._start += data[: _START - len(self._start)]
                await to_thread.run_sync(self._incoming.write, data)
                if last:
                    await self._keep()
            case Finished(section):
                fresh = portable.renamed(section, self._owner, self._service.new_id, self._files)
                session = await self._service.adopt(*fresh)
                done = Taken(session, len(section.messages), len(section.files))
                self._files, self._size = {}, 0
                return [done]
            case None:
                pass
        return ()

    async def _begin(self, note: FileNote) -> None:
        if note.missing:
            fid = FileId(self._service.new_id("file"))
            self._files[note.id] = File(fid, self._rules.label(note.name), note.media_type, note.size)
            return
        if note.size > self._rules.max_size:
            raise self._refused(f"file {note.id!r} is over the limit of {self._rules.max_size} bytes")
        self._note, self._start = note, b""
        self._incoming = self._open.enter_context(await to_thread.run_sync(self._library.begin))

    async def _keep(self) -> None:
        assert self._incoming is not None
        assert self._note is not None
        note = self._note
        kind = self._rules.media_type(self._start, note.media_type)
        if kind is None:
            raise self._refused(f"file {note.id!r} is of a kind that is not taken; images, PDF and text are")
        kept = await self._library.add(self._incoming, self._rules.label(note.name), kind, self._owner)
        self._files[note.id] = kept.part()
        self._open.close()
        self._incoming = self._note = None

    def _refused(self, why: str) -> Invalid:
        return Invalid(f"line {self._reader.lines}", why)
