"""Reads the transcript: pages, single messages, paths, and what a model is shown of a session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.core import session as tree
from holdfast.core.errors import BrokenSequenceError, JournalPrunedError, StorageError
from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.session import Message, Session
from holdfast.engine import views
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settler import Settler
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.transactions.row_access import get_message, get_session
from holdfast.engine.views import MessageView, Outline, Page
from holdfast.ports.store import Tx

T = TypeVar("T")


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
        page = await self._node.store.read(lambda tx: views.page(tx, get_session(tx, sid, owner), limit, before))
        items = [replace(item, message=await self._live(item.message)) for item in page.items]
        return replace(page, items=tuple(items))

    async def get(self, mid: MessageId, owner: OwnerId = LOCAL) -> MessageView:
        def work(tx: Tx) -> MessageView:
            message = get_message(tx, mid)
            get_session(tx, message.session_id, owner)
            return views.message_view(tx, message)

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
        return tree.with_transcript(message, folded)

    async def path(self, mid: MessageId, owner: OwnerId = LOCAL) -> Sequence[Message]:
        """From the first message to this one, as the store has them."""

        def work(tx: Tx) -> Sequence[Message]:
            session = get_session(tx, get_message(tx, mid).session_id, owner)
            return tree.path(tx, session, mid)

        return await self._node.store.read(work)

    async def model_input(self, sid: SessionId, owner: OwnerId = LOCAL) -> tuple[Session, tree.ModelInput]:
        """What a model would be shown of the session if a message were sent now."""

        def load(tx: Tx) -> tuple[Session, tree.ModelInput]:
            session = get_session(tx, sid, owner)
            return session, tree.model_input(tree.path(tx, session, session.head), tx.compactions(sid))

        await self._reader.settle_session(sid)
        return await self._node.store.read(load)

    async def outline(self, sid: SessionId, owner: OwnerId = LOCAL) -> Outline:
        """One snapshot. The messages it lists no longer change, but clear or delete may erase them."""
        await self._reader.settle_session(sid)
        return await self._node.store.read(lambda tx: views.outline(tx, get_session(tx, sid, owner)))

    async def map_by_id(self, sid: SessionId, mids: Sequence[MessageId], use: Callable[[Message], T]) -> list[T]:
        """`use` of each message, called off the event loop where the store reads. NotFoundError if one was erased."""

        def work(tx: Tx) -> list[T]:
            found = [get_message(tx, mid) for mid in mids]
            return [use(message) for message in found if message.session_id == sid]

        return await self._node.store.read(work)
