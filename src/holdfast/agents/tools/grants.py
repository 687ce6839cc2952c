"""Allowances kept by the engine's store, as the policy wants them."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from holdfast.agents.tools.policy import Grant
from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.values import dataclass


class Kept(Protocol):
    """A row of the store. Without a session it counts in all of the owner's."""

    @property
    def session_id(self) -> SessionId | None: ...
    @property
    def tool(self) -> str: ...
    @property
    def scope(self) -> str: ...


@dataclass(frozen=True, slots=True)
class StoredGrants:
    """Over the two calls of the engine's service that it needs; the composition root passes them in."""

    grants: Callable[[OwnerId, SessionId], Awaitable[Sequence[Kept]]]
    """What counts in a session: its own and those for all."""
    grant: Callable[[str, str, OwnerId, SessionId | None], Awaitable[None]]
    """Keep one: tool, scope, owner, and the session unless it is for all."""

    async def granted(self, owner: OwnerId, session: SessionId) -> Collection[Grant]:
        rows = await self.grants(owner, session)
        return [Grant(row.tool, row.scope, "always" if row.session_id is None else "session") for row in rows]

    async def remember(self, owner: OwnerId, session: SessionId, grant: Grant) -> None:
        await self.grant(grant.tool, grant.scope, owner, session if grant.lasts == "session" else None)
