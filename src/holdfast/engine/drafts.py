"""Drafts: read and store the unsent text of a chat. Sending clears it in the accepting transaction
(`engine.transactions.drafts`)."""

from dataclasses import dataclass

from holdfast.core.drafts import Draft
from holdfast.core.ids import LOCAL, OwnerId
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import require_space
from holdfast.engine.transactions import drafts


@dataclass(frozen=True, slots=True, eq=False)
class Drafts:
    _node: NodeContext

    async def get(self, sid: str, owner: OwnerId = LOCAL) -> Draft:
        """The draft of a session, or of the next new chat (`core.drafts.NEW_CHAT`)."""
        return await self._node.store.read(lambda tx: drafts.get(tx, sid, owner))

    async def put(self, sid: str, text: str, owner: OwnerId = LOCAL, if_version: int | None = None) -> Draft:
        if text:
            await require_space(self._node, len(text))
        return await self._node.transact(lambda tx: drafts.put(tx, sid, owner, text, if_version), wake_queue=False)
