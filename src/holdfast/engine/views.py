"""Read models: what callers are shown of sessions, messages and runs, each read in one snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core import session as tree
from holdfast.core.events import Usage, add_usage
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.engine.transactions.row_access import get_message
from holdfast.ports.store import SearchHit, Tx


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

    @property
    def session(self) -> Session:
        return self.view.session


@dataclass(frozen=True, slots=True)
class MessageView:
    message: Message
    siblings: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class Page:
    items: tuple[MessageView, ...]
    next: MessageId | None  # Cursor to the older messages


@dataclass(frozen=True, slots=True)
class Outline:
    """The structure of a whole session without its texts: every settled message of the tree, parents first."""

    session: Session
    order: tuple[MessageId, ...]
    unsettled: dict[MessageId, MessageId | None]
    """Messages that are still being written, with their parents. Neither they nor queued turns are in `order`."""
    shown: tuple[MessageId, ...]  # Those of the shown branch
    compactions: tuple[Compaction, ...]


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """What a number of runs used, as far as their providers reported it."""

    runs: int
    input_tokens: int
    output_tokens: int
    cost: float | None


def view(tx: Tx, session: Session) -> SessionView:
    runs = tx.open_runs(session.id)
    active = [run for run in runs if run.in_tree]
    queued = [(run, get_message(tx, run.user_message_id)) for run in runs if not run.in_tree]
    return SessionView(session, active[-1] if active else None, tuple(queued))


def runs(
    tx: Tx,
    owner: OwnerId,
    status: Sequence[str] | None,
    sid: SessionId | None,
    limit: int,
    before: tuple[float, RunId] | None,
) -> list[Run]:
    found: list[Run] = []
    while len(found) < limit:
        page = tx.runs(owner, status=status, sid=sid, limit=limit, before=before)
        sessions = {run.session_id: tx.session(run.session_id) for run in page}
        gone = {sid for sid, session in sessions.items() if session is None or session.deleted_at is not None}
        found += [run for run in page if run.session_id not in gone]
        if len(page) < limit:
            break
        before = (page[-1].created_at, page[-1].id)
    return found[:limit]


def outline(tx: Tx, session: Session) -> Outline:
    unsettled: dict[MessageId, MessageId | None] = {}
    for run in tx.open_runs(session.id):
        message = tx.message(run.message_id) if run.in_tree else None
        if message is not None:
            unsettled[message.id] = message.parent_id
    order: list[MessageId] = []
    parents: dict[MessageId, MessageId] = {}
    level: list[MessageId] = list(tx.children(session.id, None))
    while level:
        order += [mid for mid in level if mid not in unsettled]
        below = [(child, mid) for mid in level for child in tx.children(session.id, mid)]
        parents.update(below)
        level = [child for child, _ in below]
    shown: list[MessageId] = []
    at = session.head
    while at is not None:
        shown.append(at)
        at = parents.get(at)
    branch = tuple(mid for mid in reversed(shown) if mid not in unsettled)
    return Outline(session, tuple(order), unsettled, branch, tuple(tx.compactions(session.id).values()))


def page(tx: Tx, session: Session, limit: int, before: MessageId | None) -> Page:
    end = session.head if before is None else tree.node(tx, session, before).parent_id
    found = tree.path(tx, session, end, limit)
    older = bool(found) and found[0].parent_id is not None
    return Page(tuple(message_view(tx, m) for m in found), found[0].id if older else None)


def message_view(tx: Tx, message: Message) -> MessageView:
    return MessageView(message, tuple(tx.children(message.session_id, message.parent_id)))


def total(tx: Tx, session: Session) -> UsageTotal:
    runs, used, before = 0, Usage(0, 0), None
    while page := tx.runs(session.owner, sid=session.id, limit=1000, before=before):
        runs += len(page)
        for run in page:
            used = add_usage(used, run.usage) or used
        before = (page[-1].created_at, page[-1].id)
    return UsageTotal(runs, used.input_tokens, used.output_tokens, used.cost)


def model_input(tx: Tx, run: Run, session: Session) -> tree.ModelInput:
    """What the run's model is shown of the past now: a compaction during the run counts."""
    history: list[Message] = []
    if tx.message(run.user_message_id) is not None:
        history = tree.path(tx, session, run.user_message_id)
    return tree.model_input(history, tx.compactions(session.id))
