"""Sessions: create, list, search, edit, fork, delete and compact them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.core import message_tree as tree
from holdfast.core.errors import NotAllowedError
from holdfast.core.events import Usage, add_usage
from holdfast.core.export_format import derived_id
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.model_input import ModelInput, model_input
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import Readiness
from holdfast.engine.session_memory import BOUNDARY
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import session_edits
from holdfast.engine.transactions.row_access import get_message, get_session
from holdfast.ports.agent import Summarizer
from holdfast.ports.store import RunQuery, SearchHit, SessionQuery, Tx


@dataclass(frozen=True, slots=True)
class SessionView:
    session: Session
    active_run: Run | None
    queued: tuple[tuple[Run, Message], ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A session that a search found, and where."""

    view: SessionView
    hit: SearchHit


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """What a number of runs used, as far as their providers reported it."""

    runs: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    _node: NodeContext
    _reader: SettlingReader
    _supervisor: Supervisor
    _readiness: Readiness

    # ---- reading ----

    async def get(self, sid: SessionId, owner: OwnerId = LOCAL) -> SessionView:
        await self._reader.settle_session(sid)
        return await self._node.store.read(lambda tx: _view(tx, get_session(tx, sid, owner)))

    async def list(self, query: SessionQuery) -> Sequence[SessionView]:
        return await self._reader.read_list(
            lambda tx: [_view(tx, session) for session in tx.sessions(query)],
            lambda views: [view.active_run for view in views if view.active_run is not None],
        )

    async def search(
        self, text: str, owner: OwnerId = LOCAL, limit: int = 50, before: int | None = None
    ) -> Sequence[SearchResult]:
        return await self._reader.read_list(
            lambda tx: [SearchResult(_view(tx, hit.session), hit) for hit in tx.search(owner, text, limit, before)],
            lambda found: [one.view.active_run for one in found if one.view.active_run is not None],
        )

    async def usage(self, sid: SessionId, owner: OwnerId = LOCAL) -> UsageTotal:
        """The sum over all runs of the session that have not been erased."""
        await self._reader.settle_session(sid)
        return await self._node.store.read(lambda tx: _total(tx, get_session(tx, sid, owner)))

    # ---- creating ----

    async def create(self, owner: OwnerId = LOCAL, key: str | None = None, **fields: Any) -> Session:
        """`fields` are those of `Session`: title, agent, model, system, settings, previous_session_id … A repeat with
        the same `key` returns the session that the first call created, as it is now; its fields are not compared."""
        sid = SessionId(self._node.ids.new("ses")) if key is None else _session_id_of_key(owner, key)
        fields = session_edits.with_settings(fields, fields.get("settings"))
        if fields.get("title"):
            fields["titled_by"] = "person"
        session = await self._node.transact(
            lambda tx: (
                session_edits.find_created(tx, sid, owner)
                or session_edits.create(tx, Session(sid, owner, tx.now, tx.now, **fields))
            ),
            wake_queue=False,
        )
        if session.previous_session_id is not None:
            self._node.hub.signals.fire(BOUNDARY)  # the previous session has reached its memory boundary
        return session

    async def fork(self, sid: SessionId, last: MessageId, owner: OwnerId = LOCAL) -> Session:
        """A new session with a copy of the path up to `last`."""

        def length(tx: Tx) -> int:
            return len(tree.path(tx, get_session(tx, sid, owner), last))

        # A message's ancestors never change, so this many ids are enough.
        ids = [MessageId(self._node.ids.new("msg")) for _ in range(await self._node.store.read(length))]
        new = SessionId(self._node.ids.new("ses"))
        return await self._node.transact(
            partial(session_edits.fork, sid=sid, owner=owner, last=last, new_sid=new, new_ids=ids)
        )

    async def find_with_messages(
        self, sid: SessionId, mids: Sequence[MessageId], owner: OwnerId = LOCAL
    ) -> Session | None:
        """The session, if it exists and has all these messages."""

        def find(tx: Tx) -> Session | None:
            session = tx.session(sid)
            if session is None or session.owner != owner or session.deleted_at is not None:
                return None
            found = (tx.message(mid) for mid in mids)
            return session if all(each is not None and each.session_id == sid for each in found) else None

        return await self._node.store.read(find)

    async def merge_imported(
        self, session: Session, messages: Sequence[Message], compactions: Sequence[Compaction]
    ) -> session_edits.Merged:
        """Store an exported session, or what is new in it since the last import. Its ids are derived."""
        await self._admit()
        return await self._node.transact(
            partial(session_edits.merge, session=session, messages=messages, compactions=compactions)
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
        return await self._edit(session_edits.amend, sid, owner, if_version, fields=fields, show=show)

    async def append(self, sid: SessionId, messages: Sequence[Message], owner: OwnerId = LOCAL) -> Session:
        """Add messages that belong to no run below the head of a session that is not busy."""
        return await self._edit(session_edits.append, sid, owner, None, messages=messages)

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

    async def compact(self, sid: SessionId, summariser: Summarizer, owner: OwnerId = LOCAL) -> Session:
        """Summarize outside every transaction, then record the summary in one. A delete meanwhile wins."""

        def load(tx: Tx) -> tuple[ModelInput, MessageId | None]:
            session = get_session(tx, sid, owner)
            settled = tree.settled(tree.path(tx, session, session.head))
            last = settled[-1].id if settled else None
            return model_input(settled, tx.compactions(sid)), last

        shown, last = await self._node.store.read(load)
        if last is None or not shown.messages:
            raise NotAllowedError("compact", "there is nothing to summarize since the last compaction")
        summary = await summariser.summarize(shown.messages, shown.summary)
        return await self._node.transact(
            lambda tx: session_edits.compact(tx, Compaction(sid, owner, last, summary, tx.now))
        )


def _session_id_of_key(owner: OwnerId, key: str) -> SessionId:
    """The id of the session created with an idempotency key: a repeat finds it, and no key has to be stored."""
    return SessionId(derived_id("ses", owner, "session", key))


def _view(tx: Tx, session: Session) -> SessionView:
    runs = tx.open_runs(session.id)
    active = [run for run in runs if run.in_tree]
    queued = [(run, get_message(tx, run.user_message_id)) for run in runs if not run.in_tree]
    return SessionView(session, active[-1] if active else None, tuple(queued))


def _total(tx: Tx, session: Session) -> UsageTotal:
    runs, used, before = 0, Usage(0, 0), None
    while page := tx.runs(RunQuery(session.owner, session.id, limit=1000, before=before)):
        runs += len(page)
        for run in page:
            used = add_usage(used, run.usage) or used
        before = (page[-1].created_at, page[-1].id)
    return UsageTotal(runs, used.input_tokens, used.output_tokens, used.cost)
