"""Export, import and backup. What is exported: `core.export_format`; what an import adds: `engine.export_import`; a
backup: `storage.sqlite.backup`."""

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from anyio import from_thread
from anyio.abc import ObjectSendStream
from pydantic import Field, StringConstraints
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from holdfast.core.errors import HoldfastError, NotAllowedError
from holdfast.core.export_format import iso_timestamp
from holdfast.engine import html_export
from holdfast.engine.export_import import FileRules
from holdfast.importers.sources import SourceApp
from holdfast.server import security_log
from holdfast.server.access_rules import CREDENTIALS, NDJSON, OCTETS
from holdfast.server.chat_import import ChatImportSource, import_lines
from holdfast.server.client_address import request_address
from holdfast.server.context import ApiContext, MakeBackup
from holdfast.server.downloads import Download
from holdfast.server.event_sources import ProducedSource, progress_frame
from holdfast.server.event_stream import EventStream
from holdfast.server.parameters import SessionIdPath
from holdfast.server.reauthentication import require_recent_login
from holdfast.server.routing import STREAM_RESPONSE, ResponseInfo, Router
from holdfast.server.schemas.files import BackupRequest, ImportedSessionResponse, ImportResponse
from holdfast.server.uploads import clean_file_name, detect_media_type

router = Router("exports", "/api")

_EXPORT: Final = ResponseInfo("The sessions, in the format of docs/reference/export-format.md.", media_types=(NDJSON,))
_HTML: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"{html_export.POLICY}; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",  # the page prints it
    "Cache-Control": "no-store",
}
_NDJSON: Final = {"Content-Type": NDJSON, "Cache-Control": "no-store"}


@router.get(
    "/sessions/{sid}/export",
    responses={200: ResponseInfo(_EXPORT.description, media_types=(NDJSON, "text/markdown", "text/html"))},
)
async def export_session(
    api: ApiContext,
    sid: SessionIdPath,
    format: Literal["json", "markdown", "html"] = "json",
    project: Annotated[bool, Field(description="With the settings and files of its project (`json`).")] = False,
    inline: Annotated[bool, Field(description="Show HTML instead of saving it, for printing.")] = False,
) -> Response:
    """Export a session with its files for backup or import; `markdown` and `html`: the shown branch, for reading, as
    one file. HTML contains the images."""
    session = (await api.engine.sessions.get(sid)).session
    name = _file_name(session.title or "Untitled chat", session.updated_at)
    if format == "json":
        pieces = api.engine.export_import.export(sid, described=set() if project else None)
        return Download(pieces, f"{name}.jsonl", _NDJSON)
    if format == "html":
        html = api.engine.export_import.export_html(sid)
        return Download(html, f"{name}.html", _HTML, inline=inline)
    markdown = {"Content-Type": "text/markdown; charset=utf-8", "Cache-Control": "no-store"}
    return Download(api.engine.export_import.export_markdown(sid), f"{name}.md", markdown)


def _file_name(title: str, at: float) -> str:
    """The title without what file systems refuse, and the day."""
    name = " ".join(clean_file_name(re.sub(r'[<>:"/\\|?*]', " ", title)).split())
    return f"{name[:80].strip('. ') or 'chat'} {iso_timestamp(at)[:10]}"


@router.get("/export", responses={200: _EXPORT})
async def export_all(api: ApiContext) -> Response:
    """Export all sessions, archived ones included. Sessions deleted during the export are left out."""
    name = _file_name("Holdfast chats", api.engine.clock.now())
    return Download(api.engine.export_import.export_all(), f"{name}.jsonl", _NDJSON)


def _rules(api: ApiContext) -> FileRules:
    built_in = frozenset(name for name, *_ in api.agents)
    return FileRules(api.limits.max_file, detect_media_type, clean_file_name, built_in)


@router.post("/import", status=201, raw_body={NDJSON: {"type": "string", "format": "binary"}})
async def import_sessions(
    api: ApiContext,
    request: Request,
    converted: Annotated[
        bool,
        Field(
            description="The lines were made from the chats of another application, as `holdfast import` does, so that "
            "the `origin` of a session is true."
        ),
    ] = False,
) -> ImportResponse:
    """Import exported sessions. Each is imported completely or not at all; an error names the line. What is stored
    already, here or by an earlier import, is left alone. Anybody may have written a file, so it chooses no agent
    program and only settings that are shown; `skipped` says what was left out."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != NDJSON:
        raise HTTPException(415, f"Send the export as {NDJSON}.")
    imported = await import_lines(api, _rules(api), request.stream(), converted=converted)
    return ImportResponse(items=[ImportedSessionResponse.model_validate(item) for item in imported], next=None)


@router.post(
    "/import/file",
    raw_body={OCTETS: {"type": "string", "format": "binary"}},
    responses={200: STREAM_RESPONSE},
)
async def import_file(
    api: ApiContext,
    request: Request,
    source: SourceApp | None = None,
    name: Annotated[str, StringConstraints(max_length=300)] = "file",
) -> EventStream:
    """Import a file of Holdfast or of another application; without `source` it is detected, and `name` is its name in
    errors. The stream reports `progress`, then `done` with a summary or `failed`. An invalid file changes nothing, and
    importing a file again adds only what is new."""
    importing = ChatImportSource(api, _rules(api), source, clean_file_name(name))
    try:
        await importing.receive(request.stream())
    except BaseException:
        await importing.aclose()
        raise
    return EventStream(importing, api.limits.streams)


@router.post("/backup", responses={200: STREAM_RESPONSE})
async def create_backup(api: ApiContext, request: Request, body: BackupRequest) -> EventStream:
    """Copy all data to a new or empty directory on the server. The stream reports `progress`, then `done` or `failed`;
    closing it stops the backup. Requires a token and, since the copy contains every secret, a recent login."""
    if request.scope[CREDENTIALS].token is None:
        raise HTTPException(403, "A backup needs a token. Use the command `holdfast backup`.")
    require_recent_login(request, "make a backup")
    if api.backup is None:
        raise NotAllowedError("make a backup", "this server's storage has its own backup tools")
    address = request_address(request, api.trusted_proxies)
    security_log.record("backup started", address=address, path=body.path)
    return EventStream(ProducedSource([partial(_copy, api.backup, Path(body.path))]), api.limits.streams)


async def _copy(backup: MakeBackup, path: Path, send: ObjectSendStream[list[bytes]]) -> None:
    """Copies at the speed of the reader, and stops when the client disconnects."""

    def report(what: str, done: int, total: int) -> None:
        from_thread.check_cancelled()
        from_thread.run(send.send, [progress_frame("progress", {"what": what, "done": done, "total": total})])

    try:
        await send.send([progress_frame("done", await backup(path, report))])
    except HoldfastError as error:
        await send.send([progress_frame("failed", {"type": error.code, "detail": str(error)})])
