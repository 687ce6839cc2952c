"""Uploads: streams one file of a multipart form from the socket to `engine.attachments`, which stores it by its digest
(`storage.file_store`, in a cluster `storage.postgres.files`), cleans its name, and detects its type. The
largest size is `max_file_mb` of the configuration. Types other than images, PDF and text are refused here (415)."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import python_multipart
from anyio import to_thread
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.core.errors import InvalidInputError
from holdfast.core.file_types import is_utf8_text
from holdfast.core.image_types import IMAGE_TYPES, image_type
from holdfast.core.size_text import MIB
from holdfast.engine.attachments import Attachments
from holdfast.ports.files import IncomingFile
from holdfast.ports.store import StoredFile

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_NAME = 200
_MAX_HEADER = 8192
_MAX_BOUNDARY: Final = 70  # By RFC 2046
_MAX_PARTS: Final = 20  # The field `file`, and fields that clients send beside it
SNIFF: Final = 4096  # Bytes that are needed to detect the type

_TEXTUAL: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/toml", "application/x-yaml"}
)
_INERT: Final = frozenset({"application/json", "application/pdf", "text/csv", "text/markdown", "text/plain"})


class _Form:
    """Receives the parser's callbacks and collects the data of the field `file`."""

    def __init__(self, boundary: bytes) -> None:
        self.name: str | None = None
        self.declared = ""
        self.seen = False
        self.ended = False
        self.pieces: list[bytes] = []
        self._header = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._wanted = False
        self._parts = 0
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin,
            "on_part_data": self._data,
            "on_header_field": partial(self._header_data, 0),
            "on_header_value": partial(self._header_data, 1),
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_end,
            "on_end": self._end,
        }
        self.parser = python_multipart.MultipartParser(boundary, callbacks)

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise InvalidInputError("file", f"the form has more than {_MAX_PARTS} parts")
        self._headers = {}
        self._wanted = False

    def _header_data(self, which: int, data: bytes, start: int, end: int) -> None:
        self._header[which] += data[start:end]
        if len(self._header[0]) + len(self._header[1]) > _MAX_HEADER:
            raise InvalidInputError("file", "a header of the form is too large")

    def _header_end(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = [b"", b""]

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if options.get(b"name") == b"file" and not self.seen:
            self.seen = self._wanted = True
            self.name = clean_file_name(options.get(b"filename", b"").decode("utf-8", "replace"))
            self.declared = self._headers.get(b"content-type", b"").decode("latin-1")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._wanted:
            self.pieces.append(data[start:end])

    def _end(self) -> None:
        self.ended = True


def clean_file_name(name: str) -> str:
    """A file name as a label: without directories and unprintable characters."""
    name = name.replace("\\", "/").rpartition("/")[2]
    name = "".join(c for c in name if c.isprintable()).strip()
    return name[:MAX_NAME] or "file"


def detect_media_type(start: bytes, declared: str) -> str | None:
    """The type to store with the file; None for a type that models cannot read."""
    if (image := image_type(start)) is not None:
        return image
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    if not is_utf8_text(start):
        return None
    declared = declared.partition(";")[0].strip().lower()
    # HTML is stored as plain text, so that no browser ever runs its scripts on our origin.
    plain = declared.startswith("text/") and declared != "text/html" and declared.isascii()
    safe = all(c.isalnum() or c in "/.+-" for c in declared)
    return declared if safe and (plain or declared in _TEXTUAL) else "text/plain"


def served_media_type(stored: str) -> str:
    """The type to send a stored file with. No browser runs it as a script, a style sheet or a document of this server:
    whatever could be one is plain text."""
    if stored in _INERT or stored in IMAGE_TYPES:
        return stored
    return "text/plain; charset=utf-8"


async def receive_file(
    content_type: str, body: AsyncIterator[bytes], attachments: Attachments, limit: int
) -> StoredFile:
    form_type, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if form_type != b"multipart/form-data" or not boundary:
        raise HTTPException(415, "Send the file as multipart/form-data with a field named file.")
    if len(boundary) > _MAX_BOUNDARY:
        raise InvalidInputError("file", f"the boundary of the form is longer than {_MAX_BOUNDARY} characters")
    form = _Form(boundary)
    try:
        with await to_thread.run_sync(attachments.begin) as incoming:
            start, size = await _receive(form, body, incoming, limit, attachments.require_space)
            if not form.seen:
                raise InvalidInputError("file", "is required; the form has no field with this name")
            if not form.ended:
                raise InvalidInputError("file", "the form is incomplete")
            kind = detect_media_type(start, form.declared)
            if kind is None:
                raise HTTPException(415, "Unsupported file type. Use images, PDF or text.")
            if not size:
                raise InvalidInputError("file", "This file is empty.")
            return await attachments.add(incoming, form.name or "file", kind)
    except MultipartParseError:
        raise InvalidInputError("file", "the form is malformed") from None
    except ClientDisconnect:
        raise HTTPException(400, "The connection closed before the whole file arrived.") from None


async def _receive(
    form: _Form, body: AsyncIterator[bytes], incoming: IncomingFile, limit: int, require_space: Callable[[int], None]
) -> tuple[bytes, int]:
    start, size, total = b"", 0, 0
    async for chunk in body:
        require_space(len(chunk))
        form.parser.write(chunk)
        pieces, form.pieces = form.pieces, []
        data = b"".join(pieces)
        size, total = size + len(data), total + len(chunk)
        if size > limit or total > limit + _MAX_HEADER * 4:
            raise HTTPException(413, f"This file is larger than {limit / MIB:.3g} MB.")
        if data:
            start += data[: max(0, SNIFF - len(start))]
            await to_thread.run_sync(incoming.write, data)
    return start, size
