"""Sessions: create, list, search, edit, fork, delete and compact them. What an edit does to the tree and to live runs:
`engine.transactions.session_edits`; what a deletion erases, and when: `engine.retention`; when a full context is
compacted: `agents.chat.context_window`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import anyio

from holdfast.core import chat_settings
from holdfast.core import message_tree as tree
from holdfast.core.costs import FindPrice, price_finder
from holdfast.core.errors import NotAllowedError, NotFoundError, StorageFullError
from holdfast.core.export_format import derived_id
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.model_input import ModelInput, model_input
from holdfast.core.parts import json_size, value_size
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.usage import UsageSummary, total_of
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import Readiness, require_space
from holdfast.engine.session_memory import BOUNDARY
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import approvals, forks, imports, personas, projects, session_edits
from holdfast.engine.transactions.accept import MAX_QUEUED_BYTES
from holdfast.engine.transactions.approvals import WaitsFor
from holdfast.engine.transactions.forks import Fork
from holdfast.engine.transactions.row_access import get_session
from holdfast.ports.agent import Summarizer
from holdfast.ports.store import SearchHit, SessionQuery, Tx, UsageQuery

_SMALL_EDIT: Final = 16 * 1024  # Bytes; smaller edits, such as archiving or renaming, need no free space
LISTED_BYTES: Final = 1000
"""A queued message whose parts have more bytes as JSON is listed without them."""


@dataclass(frozen=True, slots=True)
class SessionView:
    session: Session
    active_run: Run | None
    queued: tuple[tuple[Run, Message], ...]  # Without the parts of long messages, see `_view`
    size: int = 0  # About how many bytes the response has
    waits_for: WaitsFor | None = None  # If the active run waits


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A session that a search found, and where."""

    view: SessionView
    hit: SearchHit


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    _node: NodeContext
    _reader: SettlingReader
    _supervisor: Supervisor
    _readiness: Readiness
    _forking: anyio.Lock = field(default_factory=anyio.Lock)
    _summarizing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(4))  # By request
    """A small request copies much, so the space is checked before each copy and after the one before it."""

    # ---- reading ----

    async def get(self, sid: SessionId, owner: OwnerId = LOCAL) -> SessionView:
        await self._reader.settle_session(sid)
        return await self._node.store.read(lambda tx: _view(tx, get_session(tx, sid, owner)))

    async def list(self, query: SessionQuery) -> Sequence[SessionView]:
        return await self._reader.read_list(
            lambda tx: [_view(tx, session, LISTED_BYTES) for session in tx.sessions(query)],
            lambda views: [view.active_run for view in views if view.active_run is not None],
        )

    async def ids(self, owner: OwnerId = LOCAL) -> Sequence[SessionId]:
        """Of all sessions, newest activity first, archived ones last."""
        return await self._node.store.read(lambda tx: tx.session_ids(owner))

    async def search(
        self, text: str, owner: OwnerId = LOCAL, limit: int = 50, before: int | None = None
    ) -> Sequence[SearchResult]:
        return await self._reader.read_list(
            lambda tx: [
                SearchResult(_view(tx, hit.session, LISTED_BYTES), hit) for hit in tx.search(owner, text, limit, before)
            ],
            lambda found: [one.view.active_run for one in found if one.view.active_run is not None],
        )

    async def usage(self, sid: SessionId, owner: OwnerId = LOCAL) -> UsageSummary:
        """The sum over all runs of the session that have not been erased, also those whose usage is not known."""

        def work(tx: Tx, prices: FindPrice | None) -> UsageSummary:
            session = get_session(tx, sid, owner)
            price_of = price_finder(tx.settings(owner), prices)
            total = total_of(tx.usage(UsageQuery(owner, 0.0, math.inf, session_id=session.id)), price_of)
            return replace(total, runs=tx.count_runs(session.id))

        await self._reader.settle_session(sid)
        return await self._node.with_prices(lambda prices: self._node.store.read(lambda tx: work(tx, prices)))

    # ---- creating ----

    async def create(self, owner: OwnerId = LOCAL, key: str | None = None, **fields: Any) -> Session:
        """`fields` are those of `Session`: title, agent, model, system, settings, previous_session_id … A repeat with
        the same `key` returns the session that the first call created, as it is now; its fields are not compared."""
        sid = SessionId(self._node.ids.new("ses")) if key is None else _session_id_of_key(owner, key)
        persona = fields.get(chat_settings.PERSONA)
        fields = session_edits.with_settings(fields, fields.get("settings"))
        if fields.get("title"):
            fields["titled_by"] = "person"
        try:
            await require_space(self._node, value_size(fields))
        except StorageFullError:
            found = (
                None
                if key is None
                else await self._node.store.read(lambda tx: session_edits.find_created(tx, sid, owner))
            )
            if found is None:
                raise
            return found
        session = await self._node.transact(
            lambda tx: (
                session_edits.find_created(tx, sid, owner)
                or session_edits.create(
                    tx, projects.with_agent(tx, _new_session(tx, sid, owner, fields, persona), fields)
                )
            ),
            wake_queue=False,
        )
        if session.previous_session_id is not None:
            self._node.hub.signals.fire(BOUNDARY)  # the previous session has reached its memory boundary
        return session

    async def fork(self, sid: SessionId, last: MessageId, owner: OwnerId = LOCAL, key: str | None = None) -> Session:
        """A new session with a copy of the path up to `last`. A repeat with the same `key` returns the session that the
        first call made, or goes on with it."""
        names = (owner, "fork", sid, last)
        new_sid = self._node.ids.new("ses") if key is None else derived_id("ses", *names, key)
        fork = Fork(sid, owner, last, SessionId(new_sid))
        store = self._node.store
        async with self._forking:
            plan = await store.read(partial(forks.plan, fork=fork))
            if plan.made is not None:
                return plan.made
            version, head, rest = plan.version, None, plan.path
            while True:
                piece = await store.read(partial(forks.read_piece, fork=fork, mids=rest, below=head))
                rest = rest[piece.originals :]
                await require_space(self._node, piece.size)
                head = piece.copies[-1].id if piece.copies else head
                if not rest:
                    break
                version = await store.transact(partial(forks.stage, fork=fork, version=version, copies=piece.copies))
            return await self._node.transact(
                partial(forks.finish, fork=fork, version=version, copies=piece.copies, head=head)
            )

    async def find_stored(self, sid: SessionId, mids: Sequence[MessageId]) -> imports.StoredPart:
        """What is stored of an exported session. Only ids are read."""
        return await self._node.store.read(partial(imports.find_stored, sid=sid, mids=mids))

    async def stage_imported(self, session: Session, version: int | None, messages: Sequence[Message]) -> int | None:
        """`imports.stage` as a transaction of its own, which nobody needs to hear of."""
        await self._admit()
        return await self._node.store.transact(
            partial(imports.stage, session=session, version=version, messages=messages)
        )

    async def merge_imported(
        self, session: Session, version: int | None, messages: Sequence[Message], compactions: Sequence[Compaction]
    ) -> imports.Merged | None:
        """Store an exported session, or what is new in it since the last import. Its ids are derived."""
        await self._admit()
        return await self._node.transact(
            partial(imports.merge, session=session, version=version, messages=messages, compactions=compactions)
        )

    async def _admit(self) -> None:
        refusal = await self._readiness.refusal()
        if refusal is not None:
            raise refusal

    # ---- editing ----

    async def update(
        self,
        sid: SessionId,
        fields: dict[str, Any],
        owner: OwnerId = LOCAL,
        if_version: int | None = None,
        show: MessageId | None = None,
    ) -> Session:
        """Rename, pin, archive, tag, set project or model …; with `show` also switch branches, in one transaction."""
        size = value_size(fields)
        if size > _SMALL_EDIT:
            await require_space(self._node, size)
        return await self._edit(session_edits.amend, sid, owner, if_version, fields=fields, show=show)

    async def append(self, sid: SessionId, messages: Sequence[Message], owner: OwnerId = LOCAL) -> Session:
        """Add messages that belong to no run below the head of a session that is not busy."""
        await require_space(self._node, sum(json_size(message.parts) for message in messages))
        return await self._edit(session_edits.append, sid, owner, None, messages=messages)

    async def edit_answer(
        self,
        sid: SessionId,
        mid: MessageId,
        text: str,
        owner: OwnerId = LOCAL,
        key: str | None = None,
        if_version: int | None = None,
    ) -> Message:
        """An answer with another text, as a branch that models are shown from now on. The original stays. A run whose
        answer is then no longer shown is cancelled. A repeat with the same `key` returns what the first call made."""
        await require_space(self._node, len(text))
        new_mid = MessageId(
            self._node.ids.new("msg") if key is None else derived_id("msg", owner, sid, "edited answer", key)
        )
        work = partial(
            session_edits.edit_answer,
            sid=sid,
            owner=owner,
            if_version=if_version,
            mid=mid,
            text=text,
            new_mid=new_mid,
            key=key,
        )
        edited = await self._node.transact(work)
        await self._supervisor.stop_requested(edited.stop)
        return edited.message

    async def undo(self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None) -> Session:
        return await self._edit(session_edits.undo, sid, owner, if_version)

    async def redo(self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None) -> Session:
        return await self._edit(session_edits.redo, sid, owner, if_version)

    async def truncate(
        self, sid: SessionId, last: MessageId, owner: OwnerId = LOCAL, if_version: int | None = None
    ) -> Session:
        return await self._edit(session_edits.truncate, sid, owner, if_version, last=last)

    async def clear(self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None) -> Session:
        session = await self._edit(session_edits.clear, sid, owner, if_version)
        self._node.hub.signals.fire(BOUNDARY)
        return session

    async def delete(
        self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None, forget: bool = False
    ) -> Session:
        """Delete the session after committing its turns to memory; with `forget`, delete its memories instead."""
        session = await self._edit(session_edits.delete, sid, owner, if_version, forget=forget)
        self._node.hub.signals.fire(BOUNDARY)
        return session

    async def _edit(
        self,
        edit: Callable[..., session_edits.Edited],
        sid: SessionId,
        owner: OwnerId,
        if_version: int | None,
        **change: Any,
    ) -> Session:
        edited = await self._node.transact(lambda tx: edit(tx, sid, owner, if_version, **change))
        await self._supervisor.stop_requested(edited.stop)
        return edited.session

    async def compact(
        self, sid: SessionId, summarizer: Summarizer, owner: OwnerId = LOCAL, *, in_run: bool = False
    ) -> Session:
        """Summarize outside every transaction, then record the summary in one. A session that is deleted
        meanwhile stays deleted. `in_run`: an open run needs it, which may use the reserve of the disk."""
        if not in_run:
            await require_space(self._node)

        def load(tx: Tx) -> tuple[ModelInput, MessageId | None]:
            session = get_session(tx, sid, owner)
            settled = tree.settled(tree.path(tx, session, session.head))
            last = settled[-1].id if settled else None
            return model_input(settled, tx.compactions(sid)), last

        shown, last = await self._node.store.read(load)
        if last is None or not shown.messages:
            raise NotAllowedError("compact", "there is nothing to summarize since the last compaction")
        if in_run:
            summary = await summarizer.summarize(shown.messages, shown.summary)
        else:
            async with self._summarizing:
                summary = await summarizer.summarize(shown.messages, shown.summary)
        return await self._node.transact(
            lambda tx: session_edits.compact(tx, Compaction(sid, owner, last, summary, tx.now))
        )


def _new_session(tx: Tx, sid: SessionId, owner: OwnerId, fields: dict[str, Any], persona: str | None) -> Session:
    """With the model of its persona, if one was chosen and no model."""
    chosen = personas.choose(tx, owner, {**fields, chat_settings.PERSONA: persona})
    del chosen[chat_settings.PERSONA]
    return Session(sid, owner, tx.now, tx.now, **chosen)


def _session_id_of_key(owner: OwnerId, key: str) -> SessionId:
    """The id of the session created with an idempotency key: a repeat finds it, and no key has to be stored."""
    return SessionId(derived_id("ses", owner, "session", key))


def _view(tx: Tx, session: Session, max_bytes: int = MAX_QUEUED_BYTES) -> SessionView:
    """The session with its open runs. `max_bytes`: how long a queued message is shown with its parts. Together they
    have at most `MAX_QUEUED_BYTES`, unless an earlier version has queued more."""
    runs = tx.shown_open_runs(session.id)
    active = [run for run in runs if run.in_tree]
    queued: list[tuple[Run, Message]] = []
    room = MAX_QUEUED_BYTES
    size = len(session.system or "") + 1000 * len(runs)
    for run in runs:
        if not run.in_tree:
            message = tx.message_within(run.user_message_id, min(room, max_bytes))
            if message is None:
                raise NotFoundError("message", run.user_message_id)
            shown = json_size(message.parts)
            room -= shown
            size += shown
            queued.append((run, message))
    current = active[-1] if active else None
    waits_for = None if current is None else approvals.waits_for(tx, current)
    return SessionView(session, current, tuple(queued), size, waits_for)
