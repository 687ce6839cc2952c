"""Whole sessions out and in, and a copy of everything."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from holdfast.core.errors import NotAllowed
from holdfast.core.ids import SessionId
from holdfast.engine.transfer import FileRules, Taken, Transfer
from holdfast.faces.http import descriptions as d
from holdfast.faces.http.access import LINES
from holdfast.faces.http.api import Api, Sid
from holdfast.faces.http.copying import CopySource
from holdfast.faces.http.media import media_type
from holdfast.faces.http.requests import Backup
from holdfast.faces.http.routes.runs import STREAM
from holdfast.faces.http.routing import Router
from holdfast.faces.http.stream import EventStream
from holdfast.faces.http.upload import label

_EXPORT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The session, as docs/export.md says, or as Markdown.",
        "content": {LINES: {"schema": {"type": "string"}}, "text/markdown": {"schema": {"type": "string"}}},
    }
}
_IMPORT: dict[str, Any] = {
    "requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string", "format": "binary"}}}}
}


def routes(api: Api) -> Router:
    router = Router("transfer", "/api")

    rules = FileRules(api.limits.max_file, media_type, label)

    def transfer() -> Transfer:
        assert api.engine.transfer is not None
        return api.engine.transfer

    @router.get("/sessions/{sid}/export", response_class=Response, responses=_EXPORT)
    async def export_session(sid: Sid, format: Annotated[Literal["json", "markdown"], Query()] = "json") -> Response:
        """Everything that was said, with files, to be kept or imported; `markdown`: the shown branch, to be read."""
        out = transfer()
        pieces = out.export(SessionId(sid)) if format == "json" else out.read(SessionId(sid))
        first = await anext(pieces)  # a session that is not there is refused before the answer begins
        if format == "json":
            return _Pieces(first, pieces, LINES, f"{sid}.jsonl")
        return _Pieces(first, pieces, "text/markdown; charset=utf-8", f"{sid}.md")

    @router.get("/export", response_class=Response, responses=_EXPORT)
    async def export_all() -> Response:
        """Every session, archived ones too, one after the other. One that is deleted meanwhile is left out."""
        return _Pieces(b"", transfer().export_all(), LINES, "holdfast.jsonl")

    @router.post("/import", status_code=201, response_model=d.Imported, openapi_extra=_IMPORT)
    async def import_sessions(request: Request) -> Response:
        """Sessions that `export` wrote, under new ids. Each is taken as a whole or not at all; the error names the
        line."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != LINES:
            raise HTTPException(415, f"Send the export as {LINES}.")
        importing = transfer().importing(rules)
        taken: list[Taken] = []
        try:
            async for chunk in request.stream():
                taken += await importing.feed(chunk)
            taken += await importing.finish()
        except ClientDisconnect:
            raise HTTPException(400, "The import broke off.") from None
        finally:
            importing.close()
        return JSONResponse({"items": [_taken(item) for item in taken], "next": None}, 201)

    @router.post("/backup", response_class=Response, responses=STREAM)
    async def back_up(request: Request, body: Backup) -> Response:
        """Copy everything to a directory of the server's machine that is new or empty. The stream says how far it is
        (`progress`) and how it went (`done`, `failed`); leaving it stops the copying. Only with a token."""
        if not api.gate.check({"authorization": request.headers.get("authorization", "")}).token:
            raise HTTPException(403, "A backup needs a token. Use the command `holdfast backup`.")
        if api.backup is None:
            raise NotAllowed("make a backup", "this server's storage has to be copied by its own means")
        return EventStream(CopySource(api.backup, Path(body.path)), api.limits.line)

    return router


def _taken(item: Taken) -> dict[str, Any]:
    return {
        "session_id": item.session.id,
        "title": item.session.title,
        "messages": item.messages,
        "files": item.files,
    }


class _Pieces(Response):
    """What an async generator yields, closed whatever happens. A fault in the middle cuts the answer off, so that no
    client takes it for the whole."""

    def __init__(self, first: bytes, rest: AsyncIterator[bytes], kind: str, name: str) -> None:
        self.status_code = 200
        self.background = None
        self._first = first
        self._rest = rest
        self._head = [
            (b"content-type", kind.encode()),
            (b"content-disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}".encode()),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._rest):  # type: ignore[type-var]
            await send({"type": "http.response.start", "status": 200, "headers": self._head})
            await send({"type": "http.response.body", "body": self._first, "more_body": True})
            async for piece in self._rest:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
