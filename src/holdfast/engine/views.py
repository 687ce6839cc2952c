"""What readers are shown, and how it is read within one snapshot. Nothing here writes."""

from collections.abc import Sequence

from holdfast.core import session as tree
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import dataclass
from holdfast.engine.book import rows
from holdfast.ports import Hit, Tx


@dataclass(frozen=True, slots=True)
class SessionView:
    session: Session
    active_run: Run | None
    queued: tuple[tuple[Run, Message], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A session that a search found, as it is, and where."""

    view: SessionView
    hit: Hit

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
    next: MessageId | None
    """Cursor to the older messages."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole session without its words: every settled message of the tree, above it those that it answers."""

    session: Session
    order: tuple[MessageId, ...]
    unsettled: dict[MessageId, MessageId | None]
    """What is still being written, with what is above it. Neither these nor queued turns are in `order`."""
    shown: tuple[MessageId, ...]
    """Those of the shown branch."""
    compactions: tuple[Compaction, ...]


@dataclass(frozen=True, slots=True)
class Total:
    """What runs have used, as far as their providers said."""

    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None

    def plus(self, runs: Sequence[Run]) -> "Total":
        used = [run.usage for run in runs if run.usage is not None]
        costs = [usage.cost for usage in used if usage.cost is not None]
        return Total(
            self.runs + len(runs),
            self.input_tokens + sum(usage.input_tokens for usage in used),
            self.output_tokens + sum(usage.output_tokens for usage in used),
            (self.cost or 0.0) + sum(costs) if costs else self.cost,
        )


def view(tx: Tx, session: Session) -> SessionView:
    runs = tx.open_runs(session.id)
    active = [run for run in runs if run.in_tree]
    queued = [(run, rows.the_message(tx, run.user_message_id)) for run in runs if not run.in_tree]
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


def total(tx: Tx, session: Session) -> Total:
    found, before = Total(), None
    while some := tx.runs(session.owner, sid=session.id, limit=1000, before=before):
        found = found.plus(some)
        before = (some[-1].created_at, some[-1].id)
    return found
