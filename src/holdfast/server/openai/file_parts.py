"""Stores the files in the turns of a call; those that are named by URL are fetched first.
Sizes and time: `server.context.ServerLimits`."""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio
from anyio import to_thread
from starlette.types import Receive

from holdfast.core.errors import NotFoundError
from holdfast.core.parts import Part
from holdfast.core.size_text import size_text
from holdfast.ports.tool import ToolError
from holdfast.server.context import ApiContext
from holdfast.server.disconnects import run_while_connected
from holdfast.server.openai.errors import ParameterError, unsupported
from holdfast.server.openai.input_items import DraftTurn, InlineFile, RemoteFile, UploadedFile
from holdfast.server.openai.model_names import Target
from holdfast.server.uploads import SNIFF, clean_file_name, detect_media_type

StoredTurn = tuple[str, list[Part]]  # The role, and the parts
GivenFile = InlineFile | UploadedFile | RemoteFile
MAX_FILES: Final = 100  # Of one call, however they are given
MAX_REMOTE_FILES: Final = 20


async def store_turns(
    api: ApiContext, turns: Sequence[DraftTurn], target: Target, receive: Receive
) -> list[StoredTurn]:
    """With their files stored. Those that are named by URL share one limit of time and size. Nothing is fetched or
    stored for a client that has disconnected."""
    files = [part for turn in turns for part in turn.parts if isinstance(part, GivenFile)]
    if len(files) > MAX_FILES:
        raise ParameterError(files[MAX_FILES].param, f"A call may have {MAX_FILES} files.")

    async def store() -> list[StoredTurn]:
        remote = [file for file in files if isinstance(file, RemoteFile)]
        fetched = await _fetch(api, remote) if remote else {}
        return [
            (turn.role, [await _store(api, p, target, fetched) if isinstance(p, GivenFile) else p for p in turn.parts])
            for turn in turns
        ]

    return await run_while_connected(receive, store) if files else await store()


async def _fetch(api: ApiContext, files: Sequence[RemoteFile]) -> Mapping[RemoteFile, InlineFile]:
    if api.fetch_file is None:
        reason = "URLs are not fetched. Send the contents as a data: URL, or set `fetch_urls` in the configuration."
        raise unsupported(files[0].param, reason)
    if len(files) > MAX_REMOTE_FILES:
        raise ParameterError(files[MAX_REMOTE_FILES].param, f"A call may name {MAX_REMOTE_FILES} files by URL.")
    found: dict[RemoteFile, InlineFile] = {}
    param, room = files[0].param, api.limits.max_file
    try:
        with anyio.fail_after(api.limits.fetch_seconds):
            for file in files:
                param = file.param
                name, media_type, data = await api.fetch_file(file.url, room)
                found[file] = InlineFile(param, name, media_type, data)
                room -= len(data)
    except TimeoutError:
        problem = f"the files of a call must arrive within {api.limits.fetch_seconds:g} seconds"
        raise ParameterError(param, f"'{param}' could not be fetched: {problem}") from None
    except ToolError as error:
        shared = f" (the files of a call share {size_text(api.limits.max_file)})" if found else ""
        raise ParameterError(param, f"'{param}' could not be fetched: {error}{shared}") from None
    return found


async def _store(api: ApiContext, file: GivenFile, target: Target, fetched: Mapping[RemoteFile, InlineFile]) -> Part:
    match fetched[file] if isinstance(file, RemoteFile) else file:
        case InlineFile(param, name, declared, data):
            kind = detect_media_type(data[:SNIFF], declared)
            if kind is None or not data:
                raise ParameterError(param, f"'{param}' must be an image, a PDF or text.")
            _check_readable(kind, param, target)
            with await to_thread.run_sync(api.engine.attachments.begin) as incoming:
                await to_thread.run_sync(incoming.write, data)
                return (await api.engine.attachments.add(incoming, clean_file_name(name), kind)).part()
        case UploadedFile(param, file_id):
            try:
                stored = await api.engine.attachments.file(file_id)
            except NotFoundError:
                message = f"File with id '{file_id[:100]}' not found. Upload files with POST /api/files."
                raise ParameterError(param, message) from None
            _check_readable(stored.media_type, param, target)
            return stored.part()


def _check_readable(kind: str, param: str, target: Target) -> None:
    """Refuses a file that the model cannot read: the model would answer without it."""
    needed = "images" if kind.startswith("image/") else "documents" if kind == "application/pdf" else None
    if needed is not None and needed not in target.accepts:
        reason = f"{target.name!r} is not known to read {needed}. If it does, add that to `abilities` of its provider."
        raise unsupported(param, reason)
