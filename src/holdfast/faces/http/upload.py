"""An upload: one file in a form, from the socket to the disk piece by piece."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import python_multipart
from anyio import to_thread
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.core.errors import Invalid
from holdfast.engine.library import Library
from holdfast.faces.http.media import SNIFF, media_type
from holdfast.ports import Incoming, StoredFile

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_NAME = 200
_MAX_HEADER = 8192


class _Form:
    """Follows the parser: which part it is in, and what of the wanted one has arrived."""

    def __init__(self, boundary: bytes) -> None:
        self.name: str | None = None
        self.declared = ""
        self.seen = False
        self.ended = False
        self.pieces: list[bytes] = []
        self._header = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._wanted = False
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin,
            "on_part_data": self._data,
            "on_header_field": self._field,
            "on_header_value": self._value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_end,
            "on_end": self._end,
        }
        self.parser = python_multipart.MultipartParser(boundary, callbacks)

    def _begin(self) -> None:
        self._headers = {}
        self._wanted = False

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._header[0] += data[start:end]
        self._check()

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._header[1] += data[start:end]
        self._check()

    def _check(self) -> None:
        if len(self._header[0]) + len(self._header[1]) > _MAX_HEADER:
            raise Invalid("file", "a header of the form is too long")

    def _header_end(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = [b"", b""]

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if options.get(b"name") == b"file" and not self.seen:
            self.seen = self._wanted = True
            self.name = label(options.get(b"filename", b"").decode("utf-8", "replace"))
            self.declared = self._headers.get(b"content-type", b"").decode("latin-1")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._wanted:
            self.pieces.append(data[start:end])

    def _end(self) -> None:
        self.ended = True


def label(name: str) -> str:
    """A file's name as something to read: the last piece of a path, without what does not print."""
    name = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(c for c in name if c.isprintable()).strip()
    return kept[:MAX_NAME] or "file"


async def receive_file(content_type: str, body: AsyncIterator[bytes], library: Library, limit: int) -> StoredFile:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise HTTPException(415, "Send the file as a form (multipart/form-data) with a field called file.")
    form = _Form(boundary)
    try:
        incoming = await to_thread.run_sync(library.begin)
        with incoming:
            start, size = await _receive(form, body, incoming, limit)
            if not form.seen:
                raise Invalid("file", "is missing; the form needs a field of this name")
            if not form.ended:
                raise Invalid("file", "the form breaks off before its end")
            kept = media_type(start, form.declared)
            if kept is None:
                raise HTTPException(415, "This kind of file is not taken. Images, PDF and text are.")
            if not size:
                raise Invalid("file", "is empty")
            return await library.add(incoming, form.name or "file", kept)
    except MultipartParseError:
        raise Invalid("file", "the form cannot be read") from None
    except ClientDisconnect:
        raise HTTPException(400, "The upload broke off.") from None


async def _receive(form: _Form, body: AsyncIterator[bytes], incoming: Incoming, limit: int) -> tuple[bytes, int]:
    start, size, total = b"", 0, 0
    async for chunk in body:
        total += len(chunk)
        if total > limit + _MAX_HEADER * 4:
            raise HTTPException(413, f"The file is over the limit of {limit} bytes.")
        form.parser.write(chunk)
        pieces, form.pieces = form.pieces, []
        data = b"".join(pieces)
        if data:
            size += len(data)
            if size > limit:
                raise HTTPException(413, f"The file is over the limit of {limit} bytes.")
            start += data[: max(0, SNIFF - len(start))]
            await to_thread.run_sync(incoming.write, data)
    return start, size
