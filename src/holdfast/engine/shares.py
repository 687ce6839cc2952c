"""Share links: makes snapshots of chats, lists, opens and ends them. A snapshot is rendered once, stored as a file, and
served as it is; its row is written in the same transaction, so a share exists as a whole or not at all. Whoever has the
link reads it: no login is asked for. What is erased when: `engine.retention`."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, Final

import anyio
from anyio import CapacityLimiter, to_thread

from holdfast.core.errors import (
    BrokenSequenceError,
    JournalPrunedError,
    NotAllowedError,
    NotFoundError,
    QuotaExceededError,
    StorageError,
)
from holdfast.core.ids import LOCAL, MessageId, OwnerId, RunId, SessionId, ShareId
from holdfast.core.session import Session
from holdfast.core.shares import (
    MAX_JOURNAL_BYTES,
    MAX_SHARE_BYTES,
    MAX_SHARED_BYTES,
    MAX_SHARES,
    Share,
    ShareKind,
)
from holdfast.core.size_text import MIB, size_text
from holdfast.engine import html_export, html_recording
from holdfast.engine.attachments import Attachments
from holdfast.engine.export_import import ExportImport
from holdfast.engine.html_export import IncludedParts
from holdfast.engine.html_recording import RunRecording
from holdfast.engine.messages import Messages
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.signals import ERASE
from holdfast.engine.transactions.row_access import get_message, get_run, get_session
from holdfast.ports.store import PathEntry, StoredFile, Tx

MEDIA_TYPE: Final = "text/html"
MAX_CREATING: Final = 4  # At once; they take turns to render
_OPENED_EVERY: Final = 60.0  # Seconds between two times that are recorded of a share being opened
_TIME_LIMIT: Final = 120.0  # Seconds for one
_PAGE: Final = 1000  # Events that are read at once
_PAGE_BYTES: Final = MIB


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """What is shared of a chat, and for how long."""

    kind: ShareKind = "text"
    run_id: RunId | None = None  # Share this run alone, as a recording
    with_reasoning: bool = False
    with_tools: bool = False
    with_files: bool = False
    seconds: float | None = None  # Until it ends; None: never


@dataclass(frozen=True, slots=True)
class SharedBranch:
    """The messages that are shared. They no longer change, but may be erased while they are read."""

    session: Session
    mids: tuple[MessageId, ...]
    path: tuple[PathEntry, ...]  # From the first message of the chat to the last that is shared


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    _node: NodeContext
    _reader: SettlingReader
    _messages: Messages
    _attachments: Attachments
    _export: ExportImport
    _creating: CapacityLimiter = field(default_factory=partial(CapacityLimiter, MAX_CREATING))
    """A small request renders much, and a recording is in memory while it is."""

    async def create(self, sid: SessionId, request: ShareRequest, token_digest: str, owner: OwnerId = LOCAL) -> Share:
        """Share what the chat shows now. An answer that is still being written is left out. Cancelling it leaves
        nothing."""
        async with self._creating:
            try:
                with anyio.fail_after(_TIME_LIMIT):
                    return await self._create(sid, request, token_digest, owner)
            except TimeoutError:
                raise _too_much(f"it takes longer than {_TIME_LIMIT:.0f} seconds to render") from None

    async def _create(self, sid: SessionId, request: ShareRequest, token_digest: str, owner: OwnerId) -> Share:
        branch = await self._find_branch(sid, request, owner)
        await self._node.store.read(lambda tx: _check_quota(tx, owner, 0))
        with await to_thread.run_sync(self._attachments.begin) as incoming:
            size = 0
            async with aclosing(self._render(branch, request, owner)) as pieces:
                async for piece in pieces:
                    size += len(piece)
                    if size > MAX_SHARE_BYTES:
                        raise _too_large()
                    self._attachments.require_space(len(piece))
                    await to_thread.run_sync(incoming.write, piece)

            def record(tx: Tx, file: StoredFile) -> Share:
                return _record(tx, branch, request, file, share_id, token_digest)

            share_id = ShareId(self._node.ids.new("share"))
            return await self._attachments.add_with(incoming, "share.html", MEDIA_TYPE, record, owner)

    async def list(
        self, owner: OwnerId = LOCAL, limit: int = 50, before: tuple[float, ShareId] | None = None
    ) -> Sequence[Share]:
        """Newest first. Those that have ended are left out once they are erased."""
        return await self._node.store.read(lambda tx: tx.shares(owner, limit, before))

    async def revoke(self, share_id: ShareId, owner: OwnerId = LOCAL) -> Share:
        """End a share at once. Its content is erased with the next orphaned files."""

        def work(tx: Tx) -> Share:
            share = tx.share(share_id)
            if share is None or share.owner != owner:
                raise NotFoundError("share", share_id)
            tx.drop_shares([share_id])
            return share

        share = await self._node.store.transact(work)
        self._node.hub.signals.fire(ERASE)
        return share

    async def find(self, token_digest: str, *, is_opened: bool) -> StoredFile | None:
        """The file of the share with this token; None if there is none, it has ended, or its chat was deleted: callers
        cannot tell which. `is_opened`: record that it was opened, if storage can be written."""

        def look(tx: Tx) -> tuple[Share, StoredFile, float] | None:
            share = tx.share_with_token(token_digest)
            session = None if share is None else tx.session(share.session_id)
            file = None if share is None else tx.file(share.file_id)
            if share is None or file is None or session is None or session.deleted_at is not None:
                return None
            is_over = share.expires_at is not None and share.expires_at <= tx.now
            return None if is_over else (share, file, tx.now)

        found = await self._node.store.read(look)
        if found is None:
            return None
        share, file, now = found
        if is_opened and (share.last_opened_at is None or now - share.last_opened_at >= _OPENED_EVERY):
            with suppress(StorageError):
                await self._node.store.transact(lambda tx: tx.touch_share(share.id, tx.now))
        return file

    async def open(self, file: StoredFile) -> BinaryIO:
        return await self._attachments.open(file)

    # ---- rendering ----

    async def _find_branch(self, sid: SessionId, request: ShareRequest, owner: OwnerId) -> SharedBranch:
        if request.run_id is not None:
            return await self._find_turn(sid, request.run_id, owner)
        plan = await self._messages.outline(sid, owner)
        if not plan.shown:
            raise NotAllowedError("share the chat", "it has no messages yet")
        path = await self._messages.path_entries(sid, plan.shown[-1], owner)
        return SharedBranch(plan.session, plan.shown, tuple(path))

    async def _find_turn(self, sid: SessionId, rid: RunId, owner: OwnerId) -> SharedBranch:
        run = await self._reader.read_run(rid, owner)
        if run.session_id != sid:
            raise NotFoundError("run", rid)
        if run.is_open:
            raise NotAllowedError("share the run", "it has not ended yet")

        def work(tx: Tx) -> SharedBranch:
            path = tuple(tx.path(get_run(tx, rid, owner).message_id))
            return SharedBranch(get_session(tx, sid, owner), (run.user_message_id, run.message_id), path)

        return await self._node.store.read(work)

    async def _render(self, branch: SharedBranch, request: ShareRequest, owner: OwnerId) -> AsyncGenerator[bytes, None]:
        now = self._node.clock.now()
        style = html_recording.STYLE if request.kind == "recording" else ""
        yield html_export.write_heading(branch.session, now, style).encode("utf-8", "replace")
        included = IncludedParts(
            request.with_reasoning, request.with_tools, request.with_files, request.with_files, private=False
        )
        if request.kind == "text":
            async for piece in self._export.messages_as_html(branch.session.id, branch.mids, owner, included):
                yield piece
        else:
            left = MAX_JOURNAL_BYTES
            for number, mid in enumerate(branch.mids):
                recording = RunRecording(await self._messages.read_one(branch.session.id, mid), included, number)
                left = await self._read_journal(recording, left)
                async for piece in self._export.with_files(await self._export.render(recording.html), owner):
                    yield piece
        yield html_export.write_end().encode()

    async def _read_journal(self, recording: RunRecording, left: int) -> int:
        """Record the run of an answer, if its journal can be read. `left`: how many bytes of journals may be read, also
        of what is left out of the recording. Returns how many may still be."""
        rid = recording.run_id
        after = 0
        with suppress(JournalPrunedError, BrokenSequenceError):
            while rid is not None and (page := await self._node.journal.read(rid, after, _PAGE, _PAGE_BYTES)):
                await self._export.render(recording.add, page)
                after = page[-1].seq
                left -= sum(len(entry.frame) for entry in page)
                if recording.size > MAX_SHARE_BYTES or left < 0:
                    raise _too_large()
        return left


def _too_large() -> NotAllowedError:
    return _too_much(f"it is larger than {size_text(MAX_SHARE_BYTES)}")


def _too_much(problem: str) -> NotAllowedError:
    remedy = "leave out files or tool calls, share the text, or a single run"
    return NotAllowedError("share this", f"{problem}; {remedy}")


def _check_quota(tx: Tx, owner: OwnerId, size: int) -> None:
    remedy = "Revoke some in Settings → Sharing."
    count, stored = tx.shared_bytes(owner)
    if count >= MAX_SHARES:
        raise QuotaExceededError("shared links", MAX_SHARES, remedy)
    if stored + size > MAX_SHARED_BYTES:
        raise QuotaExceededError("MB of shared links", MAX_SHARED_BYTES // MIB, remedy)


def _record(
    tx: Tx, branch: SharedBranch, request: ShareRequest, file: StoredFile, share_id: ShareId, token_digest: str
) -> Share:
    """Whatever was erased while it was rendered must not live on in the snapshot."""
    session = get_session(tx, branch.session.id, branch.session.owner)
    get_message(tx, branch.mids[-1])
    if tuple(tx.path(branch.mids[-1])) != branch.path:
        raise NotAllowedError("share the chat", "messages of it were deleted meanwhile; try again")
    _check_quota(tx, session.owner, file.size)
    share = Share(
        id=share_id,
        owner=session.owner,
        session_id=session.id,
        token_digest=token_digest,
        kind=request.kind,
        title=branch.session.title,
        with_reasoning=request.with_reasoning,
        with_tools=request.with_tools,
        with_files=request.with_files,
        file_id=file.id,
        size=file.size,
        created_at=tx.now,
        expires_at=None if request.seconds is None else tx.now + request.seconds,
    )
    tx.add_share(share)
    return share
