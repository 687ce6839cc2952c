"""Every use case, once. Faces translate to and from this and add nothing."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio

from holdfast.core import session as tree
from holdfast.core.errors import (
    BrokenSequence,
    Busy,
    Draining,
    HoldfastError,
    JournalPruned,
    NotAllowed,
    NotFound,
    StorageError,
    StorageFull,
    StorageUnavailable,
)
from holdfast.core.events import Decision
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json, Part, all_to_json
from holdfast.core.run import OPEN, Lifetime, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import dataclass, replace
from holdfast.engine import views
from holdfast.engine.book import accept, edits, endings, openings, rows, turns
from holdfast.engine.book.accept import Accepted, OnBusy
from holdfast.engine.boundaries import SIGNAL
from holdfast.engine.changes import ChangeSubscription
from holdfast.engine.executor import Deps, cancelled
from holdfast.engine.feed import Subscription
from holdfast.engine.hub import wait
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.sweeper import ERASE
from holdfast.engine.views import Found, MessageView, Outline, Page, SessionView, Total
from holdfast.ports import SessionQuery, Summariser, Titler, Tx, Wake

T = TypeVar("T")

_Unsettled = tuple[float, Sequence[Run], Sequence[Run]]

_GLANCE = 0.25
"""How often a caller who waits for a run's end looks, hint or not."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a turn is to be answered. `body`: what a repeat with the same key has to say again."""

    body: Json
    key: str | None = None
    agent: str | None = None
    model: str | None = None
    settings: Json = None
    lifetime: Lifetime = "detached"


class Service:
    def __init__(self, deps: Deps, supervisor: Supervisor, me: rows.Me) -> None:
        self._deps = deps
        self._store = deps.store
        self._supervisor = supervisor
        self._me = me

    # ---- sessions ----

    async def create_session(self, owner: OwnerId = LOCAL, **fields: Any) -> Session:
        """`fields` are those of `Session`: title, agent, model, system, settings, previous_session_id …"""
        sid = SessionId(self._deps.ids.new("ses"))
        fields = edits.with_memory(fields, fields.get("settings"))
        if fields.get("title"):
            fields["titled_by"] = "person"
        session = await self._transact(
            lambda tx: edits.create(tx, Session(sid, owner, tx.now, tx.now, **fields)), wake_queue=False
        )
        if session.previous_session_id is not None:
            self._deps.hub.signals.fire(SIGNAL)  # it is that one's boundary
        return session

    async def session(self, sid: SessionId, owner: OwnerId = LOCAL) -> SessionView:
        await self._settle_session(sid)
        return await self._store.read(lambda tx: views.view(tx, rows.the_session(tx, sid, owner)))

    async def sessions(self, query: SessionQuery) -> Sequence[SessionView]:
        return await self._fresh(
            lambda tx: [views.view(tx, session) for session in tx.sessions(query)],
            lambda views: [view.active_run for view in views if view.active_run is not None],
        )

    async def search(
        self, text: str, owner: OwnerId = LOCAL, limit: int = 50, before: int | None = None
    ) -> Sequence[Found]:
        return await self._fresh(
            lambda tx: [Found(views.view(tx, hit.session), hit) for hit in tx.search(owner, text, limit, before)],
            lambda found: [one.view.active_run for one in found if one.view.active_run is not None],
        )

    async def messages(
        self, sid: SessionId, owner: OwnerId = LOCAL, limit: int = 50, before: MessageId | None = None
    ) -> Page:
        """The shown branch: its newest page, or the one before the message `before`. An open run's message is folded
        from its journal as far as that goes, or empty if the journal cannot be read."""
        await self._settle_session(sid)
        page = await self._store.read(lambda tx: views.page(tx, rows.the_session(tx, sid, owner), limit, before))
        items = [replace(item, message=await self._live(item.message)) for item in page.items]
        return replace(page, items=tuple(items))

    async def message(self, mid: MessageId, owner: OwnerId = LOCAL) -> MessageView:
        def work(tx: Tx) -> MessageView:
            message = rows.the_message(tx, mid)
            rows.the_session(tx, message.session_id, owner)
            return views.message_view(tx, message)

        await self._settle_session((await self._store.read(work)).message.session_id)
        view = await self._store.read(work)
        return replace(view, message=await self._live(view.message))

    async def _live(self, message: Message) -> Message:
        if message.status != "streaming" or message.run_id is None:
            return message
        try:
            told = await self._deps.settler.transcript(message.run_id)
        except (StorageError, JournalPruned, BrokenSequence):  # away, erased since the message was read, or damaged
            return message
        return replace(
            message,
            parts=told.parts,
            status=told.status,
            reason=told.reason,
            error=told.error,
            usage=told.usage,
            last_seq=told.last_seq,
        )

    async def past(self, sid: SessionId, owner: OwnerId = LOCAL) -> tuple[Session, tree.ModelInput]:
        """What a model would be shown of the session if a message were sent now."""

        def load(tx: Tx) -> tuple[Session, tree.ModelInput]:
            session = rows.the_session(tx, sid, owner)
            return session, tree.model_input(tree.path(tx, session, session.head), tx.compactions(sid))

        await self._settle_session(sid)
        return await self._store.read(load)

    async def usage(self, sid: SessionId, owner: OwnerId = LOCAL) -> Total:
        """Of all runs of the session that are still there."""

        await self._settle_session(sid)
        return await self._store.read(lambda tx: views.total(tx, rows.the_session(tx, sid, owner)))

    async def amend(
        self,
        sid: SessionId,
        fields: dict[str, Any],
        owner: OwnerId = LOCAL,
        if_version: int | None = None,
        show: MessageId | None = None,
    ) -> Session:
        """Rename, pin, archive, tag, project, model …, and with `show` a branch switch, as one step."""
        work = partial(edits.amend, sid=sid, owner=owner, if_version=if_version, fields=fields, show=show)
        return await self._edit(work)

    async def undo(self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None) -> Session:
        return await self._edit(partial(edits.undo, sid=sid, owner=owner, if_version=if_version))

    async def redo(self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None) -> Session:
        return await self._edit(partial(edits.redo, sid=sid, owner=owner, if_version=if_version))

    async def truncate(
        self, sid: SessionId, last: MessageId, owner: OwnerId = LOCAL, if_version: int | None = None
    ) -> Session:
        return await self._edit(partial(edits.truncate, sid=sid, owner=owner, if_version=if_version, last=last))

    async def switch(
        self, sid: SessionId, to: MessageId, owner: OwnerId = LOCAL, if_version: int | None = None
    ) -> Session:
        return await self._edit(partial(edits.switch, sid=sid, owner=owner, if_version=if_version, to=to))

    async def clear(self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None) -> Session:
        session = await self._edit(partial(edits.clear, sid=sid, owner=owner, if_version=if_version))
        self._deps.hub.signals.fire(SIGNAL)
        return session

    async def delete(
        self, sid: SessionId, owner: OwnerId = LOCAL, if_version: int | None = None, forget: bool = False
    ) -> Session:
        """Its turns are remembered first; with `forget` they are not, and what was learnt from them goes too."""
        session = await self._edit(partial(edits.delete, sid=sid, owner=owner, if_version=if_version, forget=forget))
        self._deps.hub.signals.fire(SIGNAL)
        return session

    async def fork(self, sid: SessionId, last: MessageId, owner: OwnerId = LOCAL) -> Session:
        def length(tx: Tx) -> int:
            return len(tree.path(tx, rows.the_session(tx, sid, owner), last))

        ids = [
            MessageId(self._deps.ids.new("msg")) for _ in range(await self._store.read(length))
        ]  # a message's ancestors never change, so these are enough
        new = SessionId(self._deps.ids.new("ses"))
        return await self._transact(partial(edits.fork, sid=sid, owner=owner, last=last, new_sid=new, new_ids=ids))

    async def outline(self, sid: SessionId, owner: OwnerId = LOCAL) -> Outline:
        """One snapshot. What it lists does not change afterwards, but may be erased by clear or delete."""
        await self._settle_session(sid)
        return await self._store.read(lambda tx: views.outline(tx, rows.the_session(tx, sid, owner)))

    async def by_id(self, sid: SessionId, mids: Sequence[MessageId], use: Callable[[Message], T]) -> list[T]:
        """`use` of each, called where the store reads, off the event loop. NotFound if one was erased."""

        def work(tx: Tx) -> list[T]:
            found = [rows.the_message(tx, mid) for mid in mids]
            return [use(message) for message in found if message.session_id == sid]

        return await self._store.read(work)

    async def adopt(self, session: Session, messages: Sequence[Message], compactions: Sequence[Compaction]) -> Session:
        """Take in a session from elsewhere: all of it or nothing. Its ids must be fresh ones of `new_id`."""
        closed = self._closed()
        if closed is not None:
            raise closed
        return await self._transact(partial(edits.adopt, session=session, messages=messages, compactions=compactions))

    def new_id(self, prefix: str) -> str:
        return self._deps.ids.new(prefix)

    def now(self) -> float:
        return self._deps.clock.now()

    async def compact(self, sid: SessionId, summariser: Summariser, owner: OwnerId = LOCAL) -> Session:
        """O3, O4: the summary is made outside every transaction; the record is one. A delete meanwhile wins."""

        def load(tx: Tx) -> tuple[tree.ModelInput, MessageId | None]:
            session = rows.the_session(tx, sid, owner)
            settled = tree.settled(tree.path(tx, session, session.head))
            last = settled[-1].id if settled else None
            return tree.model_input(settled, tx.compactions(sid)), last

        shown, last = await self._store.read(load)
        if last is None or not shown.messages:
            raise NotAllowed("compact", "there is nothing to summarise since the last time")
        summary = await summariser.summarise(shown.messages, shown.summary)
        return await self._transact(lambda tx: edits.compact(tx, Compaction(sid, owner, last, summary, tx.now)))

    async def generate_title(self, sid: SessionId, titler: Titler, owner: OwnerId = LOCAL) -> Session:
        """P8: a title that a person set, also meanwhile, stays."""

        def load(tx: Tx) -> tuple[Session, list[Message]]:
            session = rows.the_session(tx, sid, owner)
            return session, tree.path(tx, session, session.head, limit=8)

        session, messages = await self._store.read(load)
        if session.titled_by != "nobody":
            return session
        text = (await titler.title(messages)).strip()
        if not text:
            return session
        return await self._transact(partial(edits.title, sid=sid, owner=owner, text=text[:200]), wake_queue=False)

    # ---- runs ----

    async def submit(
        self,
        sid: SessionId,
        parts: Sequence[Part],
        *,
        owner: OwnerId = LOCAL,
        key: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        settings: Json = None,
        lifetime: Lifetime = "detached",
        on_busy: OnBusy = "queue",
        body: Json = None,
    ) -> Accepted:
        """Accepted means stored (rule 3). An attached run is its connection: the caller must `cancel` it with the
        reason `disconnected` when that goes. `body`: what a repeat with the same key has to say again."""
        if body is None:
            body = ["submit", sid, all_to_json(parts), agent, model, settings, lifetime, on_busy]
        request = self._request(
            sid, body, owner, key, parts, agent=agent, model=model, settings=settings, lifetime=lifetime
        )
        request = replace(request, on_busy=on_busy)
        return await self._accept_held(request, partial(accept.submit, request=request))

    async def branch(
        self,
        sid: SessionId,
        below: MessageId,
        past: Sequence[Message],
        parts: Sequence[Part],
        wish: Wish,
        owner: OwnerId = LOCAL,
    ) -> Accepted:
        """A turn below any message of a session that is not busy. Attached runs as with `submit`."""
        request = self._wished(sid, parts, wish, owner)
        return await self._accept_held(request, partial(openings.branch, request=request, below=below, past=past))

    async def begin(self, session: Session, past: Sequence[Message], parts: Sequence[Part], wish: Wish) -> Accepted:
        """A session that brings its past, and its first turn, in one step: all of it or nothing. The session's id is a
        fresh one, or made from the key, so that a repeat finds it."""
        request = self._wished(session.id, parts, wish, session.owner)
        work = partial(openings.begin, request=request, session=session, past=past)
        return await self._accept_held(request, work)

    async def run_with_key(self, sid: SessionId, key: str, owner: OwnerId = LOCAL) -> Run | None:
        return await self._store.read(lambda tx: tx.run_with_key(owner, sid, key))

    async def path(self, mid: MessageId, owner: OwnerId = LOCAL) -> Sequence[Message]:
        """From the first message to this one, as the store has them."""

        def work(tx: Tx) -> Sequence[Message]:
            session = rows.the_session(tx, rows.the_message(tx, mid).session_id, owner)
            return tree.path(tx, session, mid)

        return await self._store.read(work)

    async def erase_turn(self, rid: RunId, owner: OwnerId = LOCAL) -> Run:
        run = await self._transact(partial(openings.erase_turn, rid=rid, owner=owner), wake_queue=False)
        self._deps.hub.signals.fire(ERASE)
        return run

    async def retry(
        self,
        sid: SessionId,
        mid: MessageId,
        *,
        owner: OwnerId = LOCAL,
        key: str | None = None,
        model: str | None = None,
        if_version: int | None = None,
    ) -> Accepted:
        request = self._request(sid, ["retry", sid, mid, model], owner, key, (), model=model)
        return await self._accept(request, partial(accept.retry, request=request, mid=mid, if_version=if_version))

    async def edit(
        self,
        sid: SessionId,
        mid: MessageId,
        parts: Sequence[Part],
        *,
        owner: OwnerId = LOCAL,
        key: str | None = None,
        model: str | None = None,
        if_version: int | None = None,
    ) -> Accepted:
        body = ["edit", sid, mid, all_to_json(parts), model]
        request = self._request(sid, body, owner, key, parts, model=model)
        return await self._accept(request, partial(accept.edit, request=request, mid=mid, if_version=if_version))

    async def continue_run(
        self, rid: RunId, *, owner: OwnerId = LOCAL, key: str | None = None, model: str | None = None
    ) -> Accepted:
        run = await self.run(rid, owner)
        if run.is_unread:  # what it did must be known before it goes on
            run = await self.recover(rid, owner)
        request = self._request(run.session_id, ["continue", rid, model], owner, key, (), model=model)
        return await self._accept(request, partial(accept.continue_run, request=request, rid=rid))

    async def edit_queued(self, rid: RunId, parts: Sequence[Part], owner: OwnerId = LOCAL) -> Accepted:
        return await self._transact(partial(accept.edit_queued, rid=rid, owner=owner, parts=tuple(parts)))

    async def run(self, rid: RunId, owner: OwnerId = LOCAL) -> Run:
        """The run as it is; one that nobody executes is settled first (X2). `last_seq` of an open one is how far its
        journal goes now."""
        run = await self._settled(rid, owner)
        with suppress(StorageError):
            if run.is_open:
                run = replace(run, last_seq=(await self._deps.journal.heads([rid]))[rid].last_seq)
        return run

    async def runs(
        self,
        owner: OwnerId = LOCAL,
        *,
        status: Sequence[str] | None = None,
        sid: SessionId | None = None,
        limit: int = 50,
        before: tuple[float, RunId] | None = None,
    ) -> Sequence[Run]:
        """Newest first; without those of deleted sessions, which may be there until they are erased."""
        return await self._fresh(lambda tx: views.runs(tx, owner, status, sid, limit, before), lambda runs: runs)

    async def cancel(self, rid: RunId, owner: OwnerId = LOCAL, reason: str = "requested") -> Run:
        """Stop it wherever it is executed. Answers when it is settled, or after a while with the cancel requested. If
        the store cannot be written, a run that is executed here is stopped all the same."""
        try:
            run = await self._transact(
                partial(turns.request_cancel, rid=rid, owner=owner, reason=reason), wake_queue=False
            )
        except StorageError:
            self._supervisor.stop(rid, cancelled(reason))
            raise
        if run.is_open:
            await self._stop_runs([run])
            run = await self._until_ended(rid, self._deps.settings.cancel_wait) or run
        return run

    async def decide(self, rid: RunId, aid: ApprovalId, decision: Decision, owner: OwnerId = LOCAL) -> Run:
        run = await self._transact(partial(turns.decide, rid=rid, aid=aid, owner=owner, decision=decision))
        await self._deps.hub.announce(Wake("control", rid))
        return run

    async def model_input(self, rid: RunId, owner: OwnerId = LOCAL) -> tree.ModelInput:
        """§5: a compaction during a run counts from its next step on: this is what that step shows of the past."""

        def load(tx: Tx) -> tree.ModelInput:
            run = rows.the_run(tx, rid, owner)
            return turns.model_input(tx, run, rows.the_session(tx, run.session_id, owner))

        return await self._store.read(load)

    async def recover(self, rid: RunId, owner: OwnerId = LOCAL) -> Run:
        """J6: look again for the output of a run whose recovery is pending or was given up."""
        run = await self._transact(partial(endings.look_again, rid=rid, owner=owner))
        now = await self._store.read(lambda tx: tx.now)
        await self._deps.settler.look(run, now, insist=True)
        return await self._store.read(lambda tx: rows.the_run(tx, rid, owner))

    # ---- the engine itself ----

    async def ping(self) -> None:
        """Raises StorageError unless both the store and the journal answer."""
        await self._store.read(lambda tx: tx.now)
        await self._deps.journal.heads([])

    async def count_open_runs(self) -> dict[str, int]:
        """By state; of very many, the first ten thousand."""
        found = await self._store.read(lambda tx: tx.all_open_runs(10_000))
        return {status: sum(run.status == status for run in found) for status in sorted(OPEN)}

    # ---- following ----

    @asynccontextmanager
    async def watch(self, rid: RunId, after: int = 0, owner: OwnerId = LOCAL) -> AsyncIterator[Subscription]:
        """L5: everything after the cursor, then live. Any number of watchers; each costs a cursor."""
        subscription = await self.subscribe(rid, after, owner)
        try:
            yield subscription
        finally:
            subscription.close()

    async def subscribe(self, rid: RunId, after: int = 0, owner: OwnerId = LOCAL) -> Subscription:
        """The same, to be closed by the caller."""
        if self._deps.feed.has(rid):  # one that is executed here is well
            run = await self._store.read(lambda tx: rows.the_run(tx, rid, owner))
        else:
            run = await self._settled(rid, owner)
        if run.pruned:
            raise JournalPruned(rid)
        return await self._deps.feed.subscribe(rid, after)

    @asynccontextmanager
    async def attached(self, rid: RunId) -> AsyncIterator[None]:
        """Hold the connection of an attached run, entered without an await after `submit`."""
        async with self.connection() as hold:
            hold(rid)
            yield

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Callable[[RunId], None]]:
        """A client's line, and what holds attached runs on it: to be called without an await after `submit`. Leaving,
        however it comes about, is leaving: the runs are cancelled (L3), those that are executed here all at once and
        whatever the store says."""
        rids: list[RunId] = []
        try:
            yield rids.append
        finally:
            for rid in rids:
                self._deps.settler.connections.discard(rid)
                self._supervisor.stop(rid, cancelled("disconnected"))
            with anyio.move_on_after(self._deps.settings.final_save, shield=True), suppress(StorageError):
                for rid in rids:
                    await self._disconnected(rid)
                hidden = await self._store.read(lambda tx: bool(tx.deleted_sessions(1)))
                if hidden:
                    self._deps.hub.signals.fire(ERASE)  # what was kept only for this client

    async def _disconnected(self, rid: RunId) -> None:
        run = await self._store.read(lambda tx: tx.run(rid))
        if run is None or not run.is_open:
            return
        if self._deps.feed.is_sealed(rid):  # it has ended and is only to be saved still: nobody has cancelled it
            await self._until_ended(rid, self._deps.settings.cancel_wait)
            return
        with suppress(NotFound):  # deleted meanwhile, and so asked to end already
            await self.cancel(rid, run.owner, "disconnected")

    def watch_changes(self, after: str | None, owner: OwnerId = LOCAL) -> ChangeSubscription:
        """The change feed over all sessions, from a cursor it gave (None: from now)."""
        return ChangeSubscription(self._store, self._deps.hub.signals, self._deps.feed, owner, after)

    def settled_here(self, rid: RunId) -> bool:
        """Whether it was this node that settled the run, lately: what follows from its end is this node's to do."""
        return rid in self._deps.settler.settled_here

    # ---- inside ----

    def _request(
        self,
        sid: SessionId,
        body: Json,
        owner: OwnerId,
        key: str | None,
        parts: Sequence[Part],
        *,
        agent: str | None = None,
        model: str | None = None,
        settings: Json = None,
        lifetime: Lifetime = "detached",
    ) -> accept.Request:
        new = self._deps.ids.new
        ids = accept.NewIds(RunId(new("run")), MessageId(new("msg")), MessageId(new("msg")))
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        fingerprint = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        attached_by = self._me if lifetime == "attached" else None
        return accept.Request(
            sid, owner, ids, fingerprint, key, tuple(parts), agent, model, settings, lifetime, attached_by
        )

    def _closed(self) -> HoldfastError | None:
        """Why nothing new is taken just now, if so."""
        if self._supervisor.draining:
            return Draining()
        free = self._store.free_bytes()
        if free is not None and free < self._deps.settings.disk_reserve:
            return StorageFull("The disk is almost full. Make room; runs that are under way can still be saved.")
        return None

    async def _accept(self, request: accept.Request, work: Callable[[Tx], Accepted]) -> Accepted:
        """A repeat is answered even while nothing new is taken: its turn was."""
        closed = self._closed()
        if closed is not None:
            before = await self._store.read(lambda tx: accept.known(tx, request))
            if before is None:
                raise closed
            return before
        try:
            accepted = await self._transact(work)
        except Busy as busy:  # with a run whose end its client has seen: that is not what it is told
            if not self._deps.feed.is_sealed(busy.run):
                raise
            await self._until_ended(busy.run, self._deps.settings.fence_wait)
            accepted = await self._transact(work)
        await self._stop_runs(accepted.stop)
        return accepted

    async def _accept_held(self, request: accept.Request, work: Callable[[Tx], Accepted]) -> Accepted:
        """The same for what may be attached: its client is there from the moment at which it is accepted."""
        connections = self._deps.settler.connections
        if request.lifetime == "attached":
            connections.add(request.ids.run)
        try:
            accepted = await self._accept(request, work)
        except BaseException:
            connections.discard(request.ids.run)  # if it was accepted all the same, nobody is there
            raise
        if accepted.run.id != request.ids.run:
            connections.discard(request.ids.run)
        return accepted

    def _wished(self, sid: SessionId, parts: Sequence[Part], wish: Wish, owner: OwnerId) -> accept.Request:
        how = {"agent": wish.agent, "model": wish.model, "settings": wish.settings}
        return self._request(sid, wish.body, owner, wish.key, parts, lifetime=wish.lifetime, **how)

    async def _edit(self, work: Callable[[Tx], edits.Edited]) -> Session:
        edited = await self._transact(work)
        await self._stop_runs(edited.stop)
        return edited.session

    async def _transact(self, work: Callable[[Tx], T], *, wake_queue: bool = True) -> T:
        """Shielded: a client that leaves in the middle does not keep others from hearing of what was done."""
        with anyio.move_on_after(self._deps.settings.final_save, shield=True):
            result = await self._store.transact(work)
            await self._deps.hub.announce(*([Wake("queue")] if wake_queue else []), Wake("changed"))
            return result
        raise StorageUnavailable("The storage did not answer in time. Whether the change was made is not known.")

    async def _stop_runs(self, runs: Sequence[Run]) -> None:
        """That they are to end is in the store: reach whoever executes them, or end them here if nobody does. What
        fails here is made up for by the sweeper."""
        elsewhere = [run for run in runs if not self._supervisor.heed(run)]
        if not elsewhere:
            return
        with anyio.move_on_after(self._deps.settings.final_save, shield=True):
            with suppress(StorageError):
                await self._end_stale(elsewhere, await self._store.read(lambda tx: tx.now))
            await self._deps.hub.announce(*(Wake("control", run.id) for run in elsewhere))

    async def _until_ended(self, rid: RunId, at_most: float) -> Run | None:
        found: Run | None = None
        with anyio.move_on_after(at_most):
            while True:
                signal = self._deps.hub.signals.armed(("control", rid))
                found = await self._store.read(lambda tx: tx.run(rid))
                if found is None or not found.is_open:
                    return found
                await wait(signal, _GLANCE)
        return found

    async def _until_all_ended(self, runs: Sequence[Run]) -> bool:
        """Of runs just read: wait for those that are about to be ended. Another reader was first, or somebody has seen
        the terminal event already and must not be shown the run as running. Whether there were any."""
        about = [run.id for run in runs if run.id in self._deps.settler.ending or self._deps.feed.is_sealed(run.id)]
        for rid in about:
            await self._until_ended(rid, self._deps.settings.fence_wait)
        return bool(about)

    async def _end_stale(self, runs: Sequence[Run], now: float) -> None:
        await self._deps.settler.end_stale(self._deps.settler.find_stale(runs, now))

    async def _fresh(self, read: Callable[[Tx], T], runs_in: Callable[[T], Sequence[Run]]) -> T:
        """Read a list; if it shows runs that nobody executes (X2), end them and read it again."""
        now, found = await self._store.read(lambda tx: (tx.now, read(tx)))
        opened = [run for run in runs_in(found) if run.is_open]
        stale = self._deps.settler.find_stale(runs_in(found), now)
        if not await self._until_all_ended(opened) and not stale and not self._let_go(opened):
            return found
        with suppress(StorageError):  # what is there can still be shown; the sweeper tries again
            await self._deps.settler.end_stale(stale)
        return await self._store.read(read)

    async def _settled(self, rid: RunId, owner: OwnerId) -> Run:
        """A run's row, after its session was settled if there was anything to settle."""

        def load(tx: Tx) -> tuple[Run, _Unsettled | None]:
            run = rows.the_run(tx, rid, owner)
            return run, _unsettled(tx, run.session_id) if run.is_open or run.is_pending else None

        run, found = await self._store.read(load)
        if found is None or not await self._settle(found):
            return run
        return await self._store.read(lambda tx: rows.the_run(tx, rid, owner))

    async def _settle_session(self, sid: SessionId) -> None:
        await self._settle(await self._store.read(lambda tx: _unsettled(tx, sid)))

    async def _settle(self, found: _Unsettled) -> bool:
        """Before a session is shown: end what nobody executes (X2) and look for output that was not there yet (J2).
        Whether anything may have come of it."""
        settler = self._deps.settler
        now, opened, pending = found
        waited, stale = await self._until_all_ended(opened), settler.find_stale(opened, now)
        try:
            await settler.end_stale(stale)
            for run in pending:
                await settler.look(run, now)
        except StorageError:
            pass  # what is there can still be shown; the sweeper tries again
        return waited or bool(stale or pending) or self._let_go(opened)

    def _let_go(self, runs: Sequence[Run]) -> bool:
        """Of runs just read: whether this node has done with one since. Somebody may have seen its terminal event."""
        held, me = self._deps.settler.held, self._me.node
        return any(run.lease is not None and run.lease.holder == me and run.id not in held for run in runs)


def _unsettled(tx: Tx, sid: SessionId) -> _Unsettled:
    """Of a session, as of when: what is open, and what was not read yet."""
    return tx.now, tx.open_runs(sid), tx.pending_runs(100, sid)
