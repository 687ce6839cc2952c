"""Reads the transcript: pages, single messages, paths, and what a model is shown of a session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.core import message_tree as tree
from holdfast.core.errors import BrokenSequenceError, JournalPrunedError, StorageError
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.model_input import ModelInput, model_input
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session, with_transcript
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settler import Settler
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.transactions.row_access import get_message, get_session
from holdfast.ports.store import Tx

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    _node: NodeContext
    _settler: Settler
    _reader: SettlingReader

    async def page(
        self, sid: SessionId, owner: OwnerId = LOCAL, limit: int = 50, before: MessageId | None = None
    ) -> Page:
        """The newest page of the shown branch, or the page before message `before`. An open run's message is folded
        from its journal, and empty if that cannot be read."""
        await self._reader.settle_session(sid)
        page = await self._node.store.read(lambda tx: _page(tx, get_session(tx, sid, owner), limit, before))
        items = [replace(item, message=await self._live(item.message)) for item in page.items]
        return replace(page, items=tuple(items))

    async def get(self, mid: MessageId, owner: OwnerId = LOCAL) -> MessageView:
        def work(tx: Tx) -> MessageView:
            message = get_message(tx, mid)
            get_session(tx, message.session_id, owner)
            return _message_view(tx, message)

        await self._reader.settle_session((await self._node.store.read(work)).message.session_id)
        view = await self._node.store.read(work)
        return replace(view, message=await self._live(view.message))

    async def _live(self, message: Message) -> Message:
        if message.status != "streaming" or message.run_id is None:
            return message
        try:
            folded = await self._settler.transcript(message.run_id)
        except (StorageError, JournalPrunedError, BrokenSequenceError):  # unreadable, erased meanwhile, or damaged
            return message
        return with_transcript(message, folded, message.recovery)

    async def path(self, mid: MessageId, owner: OwnerId = LOCAL) -> Sequence[Message]:
        """From the first message to this one, as the store has them."""

        def work(tx: Tx) -> Sequence[Message]:
            session = get_session(tx, get_message(tx, mid).session_id, owner)
            return tree.path(tx, session, mid)

        return await self._node.store.read(work)

    async def model_input(self, sid: SessionId, owner: OwnerId = LOCAL) -> tuple[Session, ModelInput]:
        """What a model would be shown of the session if a message were sent now."""

        def load(tx: Tx) -> tuple[Session, ModelInput]:
            session = get_session(tx, sid, owner)
            return session, model_input(tree.path(tx, session, session.head), tx.compactions(sid))

        await self._reader.settle_session(sid)
        return await self._node.store.read(load)

    async def outline(self, sid: SessionId, owner: OwnerId = LOCAL) -> Outline:
        """One snapshot. The messages it lists no longer change, but clear or delete may erase them."""
        await self._reader.settle_session(sid)
        return await self._node.store.read(lambda tx: _outline(tx, get_session(tx, sid, owner)))

    async def map_by_id(self, sid: SessionId, mids: Sequence[MessageId], use: Callable[[Message], T]) -> list[T]:
        """`use` of each message, called off the event loop where the store reads. NotFoundError if one was erased."""

        def work(tx: Tx) -> list[T]:
            found = [get_message(tx, mid) for mid in mids]
            return [use(message) for message in found if message.session_id == sid]

        return await self._node.store.read(work)


def _page(tx: Tx, session: Session, limit: int, before: MessageId | None) -> Page:
    end = session.head if before is None else tree.node(tx, session, before).parent_id
    found = tree.path(tx, session, end, limit)
    older = bool(found) and found[0].parent_id is not None
    return Page(tuple(_message_view(tx, m) for m in found), found[0].id if older else None)


def _message_view(tx: Tx, message: Message) -> MessageView:
    return MessageView(message, tuple(tx.children(message.session_id, message.parent_id)))


def _outline(tx: Tx, session: Session) -> Outline:
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


def input_of_run(tx: Tx, run: Run, session: Session) -> ModelInput:
    """What the run's model is shown of the past now: a compaction during the run counts."""
    question = tx.message(run.user_message_id)
    history = [] if question is None else [*tree.path(tx, session, question.parent_id), question]
    return model_input(history, tx.compactions(session.id))
