"""Compares the engine's transactions with the model, one at a time; Hypothesis chooses and shrinks them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.core.errors import HoldfastError
from holdfast.core.events import ApprovalRequested, Decision, Ending
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, NodeId, RunId, SessionId
from holdfast.core.lease import NodeIdentity
from holdfast.core.parts import TextPart, plain_text
from holdfast.core.session import Message, Session
from holdfast.core.transcript import Transcript
from holdfast.engine.transactions import (
    accept,
    approvals,
    cancel_requests,
    forks,
    run_endings,
    run_queue,
    session_edits,
)
from holdfast.ports.store import Tx
from holdfast.storage.in_memory import InMemoryStore
from holdfast.testing import CountingIds, FakeClock
from tests.sim.model import Model, RefusalError, RunModel, SessionModel

T = TypeVar("T")
OnBusy = Literal["queue", "reject", "interrupt"]
ME = NodeIdentity(NodeId("node_1"), None)
PICK = st.integers(0, 30)
WAYS = st.sampled_from(["go on", "go on", "go on", "go on", "park", "park", "cancel"])
ENDINGS: st.SearchStrategy[Ending] = st.sampled_from(["complete", "complete", "cancelled", "failed", "interrupted"])
KEYS = st.sampled_from([None, None, None, "a", "b"])


def fork_at_once(tx: Tx, fork: forks.Fork) -> Session:
    """All steps of a fork in one transaction."""
    plan = forks.plan(tx, fork)
    piece = forks.read_piece(tx, fork, plan.path, None)
    return forks.finish(tx, fork, plan.version, piece.copies, piece.copies[-1].id if piece.copies else None)


class Book(RuleBasedStateMachine):
    """After every step, the store equals the model."""

    def __init__(self) -> None:
        super().__init__()
        self._portal_context = start_blocking_portal()
        self.portal: BlockingPortal = self._portal_context.__enter__()
        self.clock = FakeClock()
        self.ids = CountingIds()
        self.store = InMemoryStore(self.clock, incarnation=ME.node)
        self.model = Model()
        self.known: list[MessageId] = []
        self.asked: list[tuple[RunId, ApprovalId]] = []

    def teardown(self) -> None:
        self._portal_context.__exit__(None, None, None)

    # ---- both sides ----

    def store_does(self, work: Callable[[Tx], T]) -> T:
        self.clock.advance(1.0)
        return self.portal.call(self.store.transact, work)

    def both(self, model: Callable[[], T], store: Callable[[Tx], object]) -> tuple[T | None, object]:
        """The same on both sides: both do it, or both refuse with the same error."""
        expected: object = None
        answer: T | None = None
        try:
            answer = model()
        except RefusalError as refusal:
            expected = refusal.error
        got: object = None
        found: object = None
        try:
            found = self.store_does(store)
        except HoldfastError as error:
            got = type(error)
        assert got == expected
        return answer, found

    def session_at(self, pick: int) -> SessionId:
        """Mostly one that is there."""
        there = [sid for sid, session in self.model.sessions.items() if not session.deleted or pick == 30]
        sids = there or list(self.model.sessions)
        return sids[pick % len(sids)]

    def message_at(self, sid: SessionId, pick: int) -> MessageId:
        """Mostly one of its own."""
        own = list(self.model.sessions[sid].tree)
        messages = own if own and pick < 28 else self.known
        return messages[-1 - pick % len(messages)]

    def request(
        self, sid: SessionId, body: str, key: str | None, on_busy: OnBusy
    ) -> tuple[accept.TurnRequest, RunModel]:
        new = self.ids.new
        ids = (RunId(new("run")), MessageId(new("msg")), MessageId(new("msg")))
        self.known += ids[1:]
        options = accept.RunOptions(body, key)
        request = accept.TurnRequest(sid, LOCAL, *ids, options, (TextPart(body),), on_busy=on_busy)
        return request, RunModel(ids[0], sid, ids[1], ids[2], key, body)

    def once(self, request: accept.TurnRequest, work: Callable[..., accept.Accepted]) -> Callable[[Tx], object]:
        return lambda tx: (
            accept.find_repeated(tx, request.owner, request.session_id, request.options) or work(tx, request=request)
        )

    def accepted(self, both: tuple[RunId | None, object]) -> None:
        expected, found = both
        if expected is not None:
            assert isinstance(found, accept.Accepted)
            assert found.run.id == expected

    # ---- turns ----

    @initialize()
    def begin(self) -> None:
        self._create()
        self.submit(0, None, "queue", 0)

    def _create(self) -> None:
        sid, now = SessionId(self.ids.new("ses")), self.clock.now()
        self.store_does(lambda tx: session_edits.create(tx, Session(sid, LOCAL, now, now)))
        self.model.sessions[sid] = SessionModel(sid)

    @rule(pick=PICK, key=KEYS, on_busy=st.sampled_from(["queue", "queue", "interrupt", "reject"]), body=PICK)
    def submit(self, pick: int, key: str | None, on_busy: OnBusy, body: int) -> None:
        """A3 and A2: the same key with the same body is the same turn, with another it is refused."""
        if len(self.model.sessions) < (2 if body == 7 else 1):
            self._create()
        sid = self.session_at(pick)
        text = f"words {body % 2}" if key else f"words {self.ids.new('n')}"
        request, new = self.request(sid, text, key, on_busy)
        model = self.model
        submit = self.once(request, accept.submit)
        self.accepted(self.both(lambda: model.submit(sid, new, text, on_busy), submit))

    @precondition(lambda self: self.model.sessions)
    @rule(pick=PICK, which=PICK, key=KEYS, kind=st.sampled_from(["retry", "edit", "continue", "edit queued"]))
    def again(self, pick: int, which: int, key: str | None, kind: str) -> None:
        sid, model = self.session_at(pick), self.model
        mid = self.message_at(sid, which)
        request, new = self.request(sid, f"{kind} {mid}", key, "queue")
        if kind == "retry":
            retry = self.once(request, partial(accept.retry, mid=mid))
            self.accepted(self.both(lambda: model.retry(sid, mid, new), retry))
        elif kind == "edit":
            text = new.body
            edit = self.once(request, partial(accept.edit, mid=mid))
            self.accepted(self.both(lambda: model.edit(sid, mid, new, text), edit))
        elif model.runs and kind == "continue":
            earlier = self._run_at(which, lambda run: not run.is_open and run.status != "complete")
            request, new = self.request(earlier.session, "continue", None, "queue")
            rid = earlier.id
            done = self.both(lambda: model.continue_run(rid, new), lambda tx: accept.continue_run(tx, request, rid))
            self.accepted(done)
        elif model.runs:
            rid, text = self._run_at(which, lambda run: not run.in_tree).id, f"said anew {self.ids.new('n')}"
            parts = (TextPart(text),)
            self.both(lambda: model.edit_queued(rid, text), lambda tx: accept.edit_queued(tx, rid, LOCAL, parts))

    def _run_at(self, pick: int, wanted: Callable[[RunModel], bool]) -> RunModel:
        """Mostly one that fits."""
        runs = list(self.model.runs.values())
        fitting = [run for run in runs if wanted(run)]
        runs = fitting if fitting and pick < 28 else runs
        return runs[-1 - pick % len(runs)]

    # ---- running ----

    @rule(acts=st.lists(st.tuples(PICK, WAYS, ENDINGS), min_size=1, max_size=8))
    def work(self, acts: list[tuple[int, str, Ending]]) -> None:
        """Time passes: several things in a row, because a queue moves on only after a few."""
        for pick, how, status in acts:
            if any(run.is_open for run in self.model.runs.values()):
                self._advance(pick, how, status)

    def _advance(self, pick: int, how: str, status: Ending) -> None:
        """Something happens to an open run: it is claimed, ends, obeys, waits, or is asked to end."""
        run = self._run_at(pick % 28, lambda run: run.is_open)
        if how == "cancel":
            rid = run.id
            self.both(
                lambda: self.model.cancel(rid), lambda tx: cancel_requests.request_cancel(tx, rid, LOCAL, "requested")
            )
        elif run.status == "running" and how == "park":
            self._park(run)
        elif run.asked_to_end:
            self._settle(run, "cancelled")
        elif run.status == "running":
            self._settle(run, status)
        elif run.status == "queued":
            self._claim()
        elif run.approval is not None:
            self.decide(self.asked[::-1].index((run.id, run.approval)), "once")
        if not run.is_open:  # it is settled: a second time finds it done
            self._settle_in_store(run, "failed", "too late")

    def _claim(self) -> None:
        claimed, found = self.both(self.model.claim, lambda tx: [each.run for each in run_queue.claim(tx, ME, 10)[0]])
        assert isinstance(found, list)
        assert {run.id for run in found} == claimed

    def _settle(self, run: RunModel, status: Ending) -> None:
        text = f"answer of {run.id}"
        self.model.settle(run.id, status, text)
        self._settle_in_store(run, status, text)

    def _settle_in_store(self, run: RunModel, status: Ending, text: str) -> None:
        transcript = Transcript((TextPart(text),), status, last_seq=3)
        self.store_does(lambda tx: run_endings.settle(tx, run.id, transcript))

    def _park(self, run: RunModel) -> None:
        epoch = self.portal.call(self.store.read, lambda tx: tx.run(run.id)).epoch
        aid = ApprovalId(self.ids.new("apr"))
        question = ApprovalRequested(aid, "c1", "tool", None)

        def work(tx: Tx) -> object:
            approvals.ask(tx, run.id, epoch, question)
            return approvals.park(tx, run.id, epoch, aid, keep_lease=False)

        parked = self.store_does(work)
        if run.asked_to_end:
            assert parked is None
        else:
            self.model.park(run.id, aid)
            self.asked.append((run.id, aid))

    @precondition(lambda self: self.asked)
    @rule(pick=PICK, decision=st.sampled_from(["once", "deny"]))
    def decide(self, pick: int, decision: Decision) -> None:
        """The first answer counts; that of a run that has ended is deny."""
        rid, aid = self.asked[-1 - pick % len(self.asked)]
        model = self.model
        self.both(lambda: model.decide(rid, aid, decision), lambda tx: approvals.decide(tx, rid, aid, LOCAL, decision))

    # ---- what people do to sessions ----

    @precondition(lambda self: self.model.sessions)
    @rule(pick=PICK, which=PICK, verb=st.sampled_from(["undo", "undo", "redo", "truncate", "switch", "fork"]))
    def show(self, pick: int, which: int, verb: str) -> None:
        sid = self.session_at(pick)
        mid = self.message_at(sid, which)
        model = getattr(self.model, verb)
        if verb in ("undo", "redo"):
            self.both(lambda: model(sid), lambda tx: getattr(session_edits, verb)(tx, sid, LOCAL, None))
        elif verb == "truncate":
            self.both(lambda: model(sid, mid), lambda tx: session_edits.truncate(tx, sid, LOCAL, None, mid))
        elif verb == "switch":
            self.both(lambda: model(sid, mid), lambda tx: session_edits.amend(tx, sid, LOCAL, None, {}, mid))
        elif len(self.model.sessions) < 4:
            self._fork(sid, mid)

    def _fork(self, sid: SessionId, mid: MessageId) -> None:
        """Settled messages only, in a tree of their own, which no run will ever touch."""
        new = SessionId(self.ids.new("ses"))
        fork = forks.Fork(sid, LOCAL, mid, new)
        copied, made = self.both(lambda: self.model.fork(sid, mid, new), lambda tx: fork_at_once(tx, fork))
        if copied is not None:
            assert isinstance(made, Session)
            session = self.model.sessions[new]
            for original in copied:
                copy = fork.copy_id(original.id)
                session.tree[copy] = replace(original, id=copy, parent=session.head)
                session.head = copy
            self.known += [*session.tree]

    @precondition(lambda self: self.model.sessions and len(self.known) > 8)
    @rule(pick=PICK, verb=st.sampled_from(["clear", "delete", "purge", "purge", "purge"]))
    def erase(self, pick: int, verb: str) -> None:
        sid = self.session_at(30 if verb == "purge" else pick)
        if verb == "purge":
            expected, found = self.both(lambda: self.model.purge(sid), lambda tx: session_edits.purge(tx, sid))
            assert found == expected
        elif pick % 3 == 0:
            step, model = getattr(session_edits, verb), getattr(self.model, verb)
            self.both(lambda: model(sid), lambda tx: step(tx, sid, LOCAL, None))

    # ---- what must be so ----

    @invariant()
    def agree(self) -> None:
        self.portal.call(self.store.read, self._compare)

    def _compare(self, tx: Tx) -> None:
        for sid, expected in self.model.sessions.items():
            session = tx.session(sid)
            assert session is not None
            assert (session.head, list(session.redo)) == (expected.head, expected.redo)
            assert (session.deleted_at is not None) == expected.deleted
            for mid, message in {**expected.tree, **expected.outside}.items():
                self._compare_message(tx.message(mid), message.parent, message.status, message.text)
                assert (mid in expected.tree) == (mid in tx.children(sid, message.parent))
            queued = [run.id for run in tx.open_runs(sid) if not run.in_tree]
            assert queued == expected.queue
        for rid, run in self.model.runs.items():
            found = tx.run(rid)
            assert found is not None
            assert (found.status, found.in_tree) == (run.status, run.in_tree)
            assert (found.intent is not None) == run.asked_to_end
        for mid in self.known:
            alive = any(mid in s.tree or mid in s.outside for s in self.model.sessions.values())
            assert (tx.message(mid) is not None) == alive

    def _compare_message(self, found: Message | None, parent: MessageId | None, status: str, text: str) -> None:
        assert found is not None
        assert (found.parent_id, found.status, plain_text(found.parts)) == (parent, status, text)


class LongBook(Book):
    """The same, tried more often."""


TestBook = Book.TestCase
TestLongBook = pytest.mark.soak(pytest.mark.timeout(900)(LongBook.TestCase))
TestBook.settings = settings(
    max_examples=20,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
TestLongBook.settings = settings(TestBook.settings, max_examples=100)
