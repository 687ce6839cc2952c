"""A simple model of the store: message trees, queues and active runs.

Written from DESIGN §2 and §5, independently of the transactions that it is compared with."""

from dataclasses import dataclass, field
from typing import Literal

from holdfast.core.errors import (
    AlreadyDecidedError,
    HoldfastError,
    KeyReusedError,
    NotAllowedError,
    NotFoundError,
    SessionBusyError,
)
from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId

Status = Literal["queued", "running", "waiting", "complete", "cancelled", "failed", "interrupted"]


class RefusalError(Exception):
    """The model says that this is refused, and with what."""

    def __init__(self, error: type[HoldfastError]) -> None:
        super().__init__(error.__name__)
        self.error = error


@dataclass
class MessageModel:
    id: MessageId
    role: Literal["user", "assistant"]
    parent: MessageId | None
    status: str = "complete"
    text: str = ""


@dataclass
class RunModel:
    id: RunId
    session: SessionId
    question: MessageId
    answer: MessageId
    key: str | None
    body: str
    status: Status = "queued"
    in_tree: bool = True
    asked_to_end: bool = False
    approval: ApprovalId | None = None

    @property
    def is_open(self) -> bool:
        return self.status in ("queued", "running", "waiting")


@dataclass
class SessionModel:
    id: SessionId
    head: MessageId | None = None
    redo: list[MessageId] = field(default_factory=list)
    tree: dict[MessageId, MessageModel] = field(default_factory=dict)
    """In the order of creation. What waits in the queue is not in here."""
    outside: dict[MessageId, MessageModel] = field(default_factory=dict)
    queue: list[RunId] = field(default_factory=list)
    """Turns outside the tree, in the order in which they will join it."""
    deleted: bool = False


class Model:
    def __init__(self) -> None:
        self.sessions: dict[SessionId, SessionModel] = {}
        self.runs: dict[RunId, RunModel] = {}
        self.decisions: dict[ApprovalId, str | None] = {}

    # ---- look-ups ----

    def session(self, sid: SessionId) -> SessionModel:
        session = self.sessions.get(sid)
        if session is None or session.deleted:
            raise RefusalError(NotFoundError)
        return session

    def session_of(self, sid: SessionId, mid: MessageId) -> SessionModel:
        """The session, if the message is in its tree."""
        session = self.session(sid)
        if mid not in session.tree:
            raise RefusalError(NotFoundError)
        return session

    def run(self, rid: RunId) -> RunModel:
        run = self.runs.get(rid)
        if run is None:
            raise RefusalError(NotFoundError)
        self.session(run.session)
        return run

    def of(self, sid: SessionId) -> list[RunModel]:
        return [run for run in self.runs.values() if run.session == sid and run.is_open]

    def path(self, sid: SessionId) -> list[MessageId]:
        """The shown branch, from its end."""
        session, found = self.sessions[sid], []
        at = session.head
        while at is not None:
            found.append(at)
            at = session.tree[at].parent
        return found

    def children(self, session: SessionModel, parent: MessageId | None) -> list[MessageId]:
        return sorted(m.id for m in session.tree.values() if m.parent == parent)

    # ---- turns ----

    def submit(
        self, sid: SessionId, new: RunModel, text: str, on_busy: Literal["queue", "reject", "interrupt"]
    ) -> RunId:
        if (before := self._known(new)) is not None:
            return before
        session = self.session(sid)
        others = self.of(sid)
        if not others:
            question = MessageModel(new.question, "user", session.head, text=text)
            self._begin(session, new, question)
            return new.id
        if on_busy == "reject":
            raise RefusalError(SessionBusyError)
        new.in_tree = False
        session.outside[new.question] = MessageModel(new.question, "user", None, text=text)
        session.outside[new.answer] = MessageModel(new.answer, "assistant", new.question, "streaming")
        if on_busy == "interrupt":
            for run in others:
                run.asked_to_end |= run.in_tree
            session.queue.insert(0, new.id)
        else:
            session.queue.append(new.id)
        self.runs[new.id] = new
        return new.id

    def retry(self, sid: SessionId, mid: MessageId, new: RunModel) -> RunId:
        if (before := self._known(new)) is not None:
            return before
        session = self.session_of(sid, mid)
        message = session.tree[mid]
        asked = message if message.role == "user" else session.tree[message.parent] if message.parent else None
        if asked is None:
            raise RefusalError(NotAllowedError)
        new.question = asked.id
        self._begin(session, new, None)
        return new.id

    def edit(self, sid: SessionId, mid: MessageId, new: RunModel, text: str) -> RunId:
        if (before := self._known(new)) is not None:
            return before
        session = self.session_of(sid, mid)
        if session.tree[mid].role != "user":
            raise RefusalError(NotAllowedError)
        self._begin(session, new, MessageModel(new.question, "user", session.tree[mid].parent, text=text))
        return new.id

    def continue_run(self, rid: RunId, new: RunModel) -> RunId:
        earlier = self.run(rid)
        session = self.session(earlier.session)
        if self.of(session.id):
            raise RefusalError(SessionBusyError)
        if earlier.status == "complete":
            raise RefusalError(NotAllowedError)
        if earlier.answer not in session.tree:
            raise RefusalError(NotFoundError)
        new.question = earlier.question
        self._begin(session, new, None)
        return new.id

    def edit_queued(self, rid: RunId, text: str) -> None:
        run = self.run(rid)
        if run.status != "queued" or run.in_tree:
            raise RefusalError(NotAllowedError)
        self.sessions[run.session].outside[run.question].text = text

    def _known(self, new: RunModel) -> RunId | None:
        for run in self.runs.values():
            if new.key is not None and (run.session, run.key) == (new.session, new.key):
                if run.body != new.body:
                    raise RefusalError(KeyReusedError)
                session = self.sessions[run.session]
                if run.question not in session.tree and run.question not in session.outside:
                    raise RefusalError(NotFoundError)  # it was cleared under the run
                return run.id
        return None

    def _begin(self, session: SessionModel, new: RunModel, question: MessageModel | None) -> None:
        if question is not None:
            session.tree[question.id] = question
        session.tree[new.answer] = MessageModel(new.answer, "assistant", new.question, "streaming")
        self.runs[new.id] = new
        self._move(session, new.answer, [])

    def _move(self, session: SessionModel, head: MessageId | None, redo: list[MessageId]) -> None:
        """A run whose answer is no longer shown is asked to end."""
        session.head, session.redo = head, redo
        shown = self.path(session.id)
        for run in self.of(session.id):
            if run.in_tree and run.answer not in shown:
                run.asked_to_end = True

    # ---- running ----

    def claim(self) -> set[RunId]:
        """In each session where nobody is answering: a turn in the tree, else the first of the queue."""
        claimed = set()
        for session in self.sessions.values():
            open_ones = self.of(session.id)
            if any(run.status != "queued" for run in open_ones):
                continue
            inside = sorted((run for run in open_ones if run.in_tree), key=lambda run: run.id)
            first = inside[0] if inside else self.runs[session.queue[0]] if session.queue else None
            if first is None or first.asked_to_end:
                continue
            if not first.in_tree:
                self._join(session, first)
            first.status = "running"
            claimed.add(first.id)
        return claimed

    def _join(self, session: SessionModel, run: RunModel) -> None:
        session.queue.remove(run.id)
        question, answer = session.outside.pop(run.question), session.outside.pop(run.answer)
        question.parent = session.head
        session.tree[question.id], session.tree[answer.id] = question, answer
        run.in_tree = True
        session.head, session.redo = answer.id, []

    def settle(self, rid: RunId, status: Status, text: str) -> None:
        run = self.runs[rid]
        session = self.sessions[run.session]
        run.status = status
        if run.id in session.queue:
            session.queue.remove(run.id)
        message = session.tree.get(run.answer) or session.outside.get(run.answer)
        if message is not None and not session.deleted:
            message.status, message.text = status, text
        if run.approval is not None and self.decisions[run.approval] is None:
            self.decisions[run.approval] = "deny"

    def park(self, rid: RunId, aid: ApprovalId) -> None:
        self.runs[rid].status = "waiting"
        self.runs[rid].approval = aid
        self.decisions[aid] = None

    def decide(self, rid: RunId, aid: ApprovalId, decision: str) -> None:
        run = self.run(rid)
        if aid not in self.decisions:
            raise RefusalError(NotFoundError)
        if self.decisions[aid] is not None:
            raise RefusalError(AlreadyDecidedError)
        if run.asked_to_end:
            raise RefusalError(NotAllowedError)
        self.decisions[aid] = decision
        if run.status == "waiting":
            run.status = "queued"

    def cancel(self, rid: RunId) -> None:
        run = self.run(rid)
        run.asked_to_end |= run.is_open

    # ---- what people do to sessions ----

    def undo(self, sid: SessionId) -> None:
        session = self.session(sid)
        for mid in self.path(sid):
            if session.tree[mid].role == "user":
                assert session.head is not None
                self._move(session, session.tree[mid].parent, [*session.redo, session.head])
                return
        raise RefusalError(NotAllowedError)

    def redo(self, sid: SessionId) -> None:
        session = self.session(sid)
        if not session.redo:
            raise RefusalError(NotAllowedError)
        self._move(session, session.redo[-1], session.redo[:-1])

    def truncate(self, sid: SessionId, mid: MessageId) -> None:
        session = self.session_of(sid, mid)
        if mid not in self.path(sid):
            raise RefusalError(NotAllowedError)
        self._move(session, mid, [])

    def switch(self, sid: SessionId, mid: MessageId) -> None:
        session = self.session_of(sid, mid)
        while below := self.children(session, mid):
            mid = below[-1]
        self._move(session, mid, [])

    def fork(self, sid: SessionId, mid: MessageId, new: SessionId) -> list[MessageModel]:
        session = self.session_of(sid, mid)
        chain: list[MessageModel] = []
        at: MessageId | None = mid
        while at is not None:
            chain.insert(0, session.tree[at])
            at = session.tree[at].parent
        self.sessions[new] = SessionModel(new)
        return [message for message in chain if message.status != "streaming"]

    def clear(self, sid: SessionId) -> None:
        session = self.session(sid)
        for run in [run for run in self.runs.values() if run.session == sid]:
            if not run.is_open:
                del self.runs[run.id]
            else:
                run.asked_to_end |= run.in_tree
        session.tree.clear()
        waiting = {mid for rid in session.queue for mid in (self.runs[rid].question, self.runs[rid].answer)}
        session.outside = {mid: message for mid, message in session.outside.items() if mid in waiting}
        session.head, session.redo = None, []

    def delete(self, sid: SessionId) -> None:
        session = self.session(sid)
        for run in self.of(sid):
            run.asked_to_end = True
        session.deleted = True

    def purge(self, sid: SessionId) -> bool:
        session = self.sessions.get(sid)
        if session is None or not session.deleted or self.of(sid):
            return False
        self.runs = {rid: run for rid, run in self.runs.items() if run.session != sid}
        del self.sessions[sid]
        return True
