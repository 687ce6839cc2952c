"""Runs: submit a turn, retry, edit or continue it, read and cancel runs, answer their approvals, recover their output.
Accepted means stored: the user message, the empty answer and the run are in the store before a call returns. While the
node drains, the disk is almost full or a budget is reached, nothing new is accepted; a repeat of an accepted call is
answered (idempotency keys: `find_repeated` in `engine.transactions.accept`). What is written: `engine.transactions`;
which of two racing calls wins: their transactions, and for an ending the journal."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from holdfast.core.drafts import SentDraft
from holdfast.core.errors import HoldfastError, KeyReusedError, NotAllowedError, SessionBusyError, StorageError
from holdfast.core.events import Decision, InputAction
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import Json, Part, TextPart, all_to_json
from holdfast.core.run import OPEN, Lifetime, Run
from holdfast.core.session import Message, Session
from holdfast.engine.messages import input_of_run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import Readiness
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.signals import ERASE
from holdfast.engine.supervisor import Supervisor
from holdfast.engine.transactions import accept, approvals, cancel_requests, run_endings, session_edits
from holdfast.engine.transactions.accept import Accepted, OnBusy, RunOptions, find_repeated
from holdfast.engine.transactions.approvals import WaitsFor
from holdfast.engine.transactions.budgets import BudgetInputs
from holdfast.engine.transactions.row_access import get_run, get_session
from holdfast.ports.store import RunQuery, Tx
from holdfast.ports.wakeups import Wake

_ALLOW_KEY: Final = "allow → {}"  # No client can send it: headers have no characters beyond Latin-1


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    _node: NodeContext
    _reader: SettlingReader
    _feed: RunFeed
    _supervisor: Supervisor
    _readiness: Readiness
    _recovery: RunRecovery

    # ---- starting ----

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
        draft: SentDraft | None = None,
    ) -> Accepted:
        """A turn at the session's head. The caller of an attached run must enter `connections` for it at once. A repeat
        with the same `key` must have the same `body`, by default the arguments. `draft`: what it was written as."""
        if body is None:
            body = ["submit", sid, all_to_json(parts), agent, model, settings, lifetime, on_busy]
        options = RunOptions(body, key, agent, model, settings, lifetime)
        return await self._accept(accept.submit, sid, parts, options, owner, on_busy, draft)

    async def branch(
        self,
        sid: SessionId,
        below: MessageId | None,
        past: Sequence[Message],
        parts: Sequence[Part],
        options: RunOptions,
        owner: OwnerId = LOCAL,
    ) -> Accepted:
        """A turn below any message of a session that is not busy, or at its beginning. Attached runs as with
        `submit`."""
        return await self._accept(partial(accept.branch, below=below, past=past), sid, parts, options, owner)

    async def start_session(
        self, session: Session, past: Sequence[Message], parts: Sequence[Part], options: RunOptions
    ) -> Accepted:
        """Create a session with its history and first turn, all or nothing. Its id may be derived from the key."""
        work = partial(accept.begin, session=session, past=past)
        return await self._accept(work, session.id, parts, options, session.owner)

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
        options = RunOptions(["retry", sid, mid, model], key, model=model)
        return await self._accept(partial(accept.retry, mid=mid, if_version=if_version), sid, (), options, owner)

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
        options = RunOptions(["edit", sid, mid, all_to_json(parts), model], key, model=model)
        return await self._accept(partial(accept.edit, mid=mid, if_version=if_version), sid, parts, options, owner)

    async def steer(
        self,
        rid: RunId,
        text: str,
        *,
        owner: OwnerId = LOCAL,
        key: str | None = None,
        draft: SentDraft | None = None,
    ) -> Accepted:
        """Text that the run's agent reads at its next step. Until then it is a queued turn, and it stays one if the run
        ends first, has ended, or has an agent that cannot be steered."""
        run = await self.get(rid, owner)
        options = RunOptions(["steer", rid, text], key, run.agent, run.model)
        work = partial(accept.steer, rid=rid, steerable=self._recovery.abilities(run).steer)
        return await self._accept(work, run.session_id, (TextPart(text),), options, owner, draft=draft)

    async def continue_run(
        self,
        rid: RunId,
        *,
        owner: OwnerId = LOCAL,
        key: str | None = None,
        model: str | None = None,
        allow: frozenset[str] = frozenset(),
    ) -> Accepted:
        """Starts a new run that goes on from what this one produced. `allow`: calls that were denied because nobody
        answered in time, and are allowed now. Only the first call with them starts a run, even if a repeat has another
        key: it returns that run."""
        run = await self.get(rid, owner)
        if run.is_unread:  # its output must be known before it can go on
            run = await self.recover(rid, owner)
        work = partial(accept.continue_run, rid=rid, allow=allow)
        if not allow:
            options = RunOptions(["continue", rid, model], key, model=model)
            return await self._accept(work, run.session_id, (), options, owner)
        options = RunOptions(["continue", rid, model, sorted(allow)], _ALLOW_KEY.format(rid), model=model)
        try:
            return await self._accept(work, run.session_id, (), options, owner)
        except KeyReusedError as first:
            why = f"other calls or another model were chosen before (run {first.run})"
            raise NotAllowedError("allow these calls", why) from None

    async def edit_queued(self, rid: RunId, parts: Sequence[Part], owner: OwnerId = LOCAL) -> Accepted:
        return await self._node.transact(partial(accept.edit_queued, rid=rid, owner=owner, parts=tuple(parts)))

    async def _accept(
        self,
        work: Callable[[Tx, accept.TurnRequest], Accepted],
        sid: SessionId,
        parts: Sequence[Part],
        options: RunOptions,
        owner: OwnerId,
        on_busy: OnBusy = "queue",
        draft: SentDraft | None = None,
    ) -> Accepted:
        """Do `work`, unless a request with its idempotency key was accepted before. The client of an attached run
        counts as connected before the run is stored."""
        new = self._node.ids.new
        rid, question, answer = RunId(new("run")), MessageId(new("msg")), MessageId(new("msg"))
        attached_by = self._node.identity if options.lifetime == "attached" else None
        claimed_by = self._node.identity if self._supervisor.reserve(rid) else None
        request = accept.TurnRequest(
            sid,
            owner,
            rid,
            question,
            answer,
            options,
            tuple(parts),
            attached_by,
            on_busy,
            claimed_by,
            draft=draft,
            titles=self._node.settings.titles,
        )

        async def attempt(inputs: BudgetInputs) -> Accepted:
            checked = replace(request, budget_inputs=inputs)
            return await self._accept_once(
                checked, lambda tx: find_repeated(tx, owner, sid, options) or work(tx, checked)
            )

        if self._node.tracing is not None:
            self._node.tracing.remember_request(rid)
        if options.lifetime == "attached":
            self._node.local.connect(rid)
        try:
            accepted = await self._node.with_budget_inputs(attempt)
        except BaseException as error:
            self._node.local.disconnect(rid)  # if it was stored all the same, it has no client
            if isinstance(error, HoldfastError) and not isinstance(error, StorageError):
                self._supervisor.release(rid)
            else:
                self._supervisor.check_acceptance(rid)
            raise
        if accepted.run.id != rid:
            self._node.local.disconnect(rid)
        await self._supervisor.stop_requested(accepted.stop)
        return accepted

    async def _accept_once(self, request: accept.TurnRequest, work: Callable[[Tx], Accepted]) -> Accepted:
        refusal = await self._readiness.refusal()
        if refusal is not None:
            before = await self._node.store.read(
                lambda tx: find_repeated(tx, request.owner, request.session_id, request.options)
            )
            self._supervisor.release(request.run_id)
            if before is None:
                raise refusal
            return before
        try:
            return await self._store_and_start(request, work)
        except SessionBusyError as busy:
            # The client may have seen the end of that run already; it must not get an error about that run.
            if not self._feed.is_sealed(busy.run):
                raise
            await self._node.wait_until_ended(busy.run, self._node.settings.fence_wait)
            return await self._store_and_start(request, work)

    async def _store_and_start(self, request: accept.TurnRequest, work: Callable[[Tx], Accepted]) -> Accepted:
        accepted = await self._node.transact(work, wake_queue=lambda accepted: accepted.run.status == "queued")
        if accepted.fresh and accepted.run.status == "running":  # without an await in between, which could orphan it
            await self._supervisor.start_accepted(accepted.run)
        else:
            self._supervisor.release(request.run_id)
        return accepted

    # ---- reading ----

    async def get(self, rid: RunId, owner: OwnerId = LOCAL) -> Run:
        """The run; an orphaned one is settled first. `last_seq` of an open run is its journal's."""
        run = await self._reader.read_run(rid, owner)
        with suppress(StorageError):
            if run.is_open:
                run = replace(run, last_seq=(await self._node.journal.heads([rid]))[rid].last_seq)
        return run

    async def list(self, query: RunQuery) -> Sequence[Run]:
        """Newest first, without those of deleted sessions, with `UNREAD_SETTINGS`."""

        def load(tx: Tx) -> Sequence[Run]:
            found: list[Run] = []
            rest = query
            while len(found) < query.limit:
                page = tx.runs(rest)
                sessions = {run.session_id: tx.session(run.session_id) for run in page}
                gone = {sid for sid, session in sessions.items() if session is None or session.deleted_at is not None}
                found += [run for run in page if run.session_id not in gone]
                if len(page) < query.limit:
                    break
                rest = replace(rest, before=(page[-1].created_at, page[-1].id))
            return found[: query.limit]

        return await self._reader.read_list(load, lambda runs: runs)

    async def waits_for(self, runs: Sequence[Run]) -> Mapping[RunId, WaitsFor | None]:
        """What those of the runs that wait need of a person."""
        waiting = [run for run in runs if run.status == "waiting"]
        if not waiting:
            return {}
        return await self._node.store.read(lambda tx: {run.id: approvals.waits_for(tx, run) for run in waiting})

    async def find_repeated(self, sid: SessionId, options: RunOptions, owner: OwnerId = LOCAL) -> Accepted | None:
        """The turn that was accepted with the same key. Raises KeyReusedError if its body was another."""
        return await self._node.store.read(lambda tx: find_repeated(tx, owner, sid, options))

    async def count_open(self) -> dict[str, int]:
        """Open runs by status."""
        found = await self._node.store.read(lambda tx: tx.count_open_runs())
        return {status: found.get(status, 0) for status in sorted(OPEN)}

    async def model_input(self, rid: RunId, owner: OwnerId = LOCAL) -> ModelInput:
        """What the run's next step shows its model of the past: a compaction during the run counts from here on."""

        def load(tx: Tx) -> ModelInput:
            run = get_run(tx, rid, owner)
            return input_of_run(tx, run, get_session(tx, run.session_id, owner))

        return await self._node.store.read(load)

    # ---- ending and recovering ----

    async def cancel(self, rid: RunId, owner: OwnerId = LOCAL, reason: str = "requested") -> Run:
        """Stop the run wherever it is executed. See `Supervisor.cancel`."""
        return await self._supervisor.cancel(rid, owner, reason)

    async def cancel_in_session(
        self, sid: SessionId, owner: OwnerId = LOCAL, *, key: str | None = None, reason: str = "requested"
    ) -> Run | None:
        """Stop the session's active run, or the one that was accepted with an idempotency key. Without one: None, and a
        request with that key is refused if it comes within ten minutes."""
        work = partial(cancel_requests.request_session_cancel, sid=sid, owner=owner, reason=reason)
        if key is not None:
            work = partial(cancel_requests.request_cancel_by_key, sid=sid, owner=owner, key=key, reason=reason)
        run = await self._node.transact(work, wake_queue=False)
        return None if run is None else await self._supervisor.finish_cancel(run)

    async def decide(
        self, rid: RunId, aid: ApprovalId, decision: Decision, owner: OwnerId = LOCAL, option: str | None = None
    ) -> Run:
        """Answer an approval; the first answer counts. `option`: the name of the agent's option that was chosen."""
        decide = partial(approvals.decide, rid=rid, aid=aid, owner=owner, decision=decision, note=option)
        run = await self._node.transact(decide)
        await self._node.hub.announce(Wake("control", rid))
        return run

    async def answer_input(
        self, rid: RunId, aid: ApprovalId, action: InputAction, content: Mapping[str, Json], owner: OwnerId = LOCAL
    ) -> Run:
        """Answer the question of a running tool or of the model; the first answer counts."""
        work = partial(approvals.answer_input, rid=rid, aid=aid, owner=owner, action=action, content=content)
        run = await self._node.transact(work)
        await self._node.hub.announce(Wake("control", rid))
        return run

    async def recover(self, rid: RunId, owner: OwnerId = LOCAL) -> Run:
        """Look again for the output of a run whose recovery is pending or was given up."""
        run = await self._node.transact(partial(run_endings.restart, rid=rid, owner=owner))
        now = await self._node.store.read(lambda tx: tx.now)
        await self._recovery.attempt_pending(run, now, insist=True)
        return await self._node.store.read(lambda tx: get_run(tx, rid, owner))

    async def erase(self, rid: RunId, owner: OwnerId = LOCAL) -> Run:
        """Erase the run's turn: its messages, its row and its journal."""
        run = await self._node.transact(partial(session_edits.erase_turn, rid=rid, owner=owner), wake_queue=False)
        self._node.hub.signals.fire(ERASE)
        return run
