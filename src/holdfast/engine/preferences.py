"""What an owner has chosen for all sessions: tools that are always allowed, and settings. What a grant covers:
`tools.approval_policy`; chat defaults among the settings: `core.chat_settings`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import Json
from holdfast.ports.store import Store, ToolGrant, Tx


@dataclass(frozen=True, slots=True)
class Preferences:
    store: Store

    async def grants(self, owner: OwnerId = LOCAL, sid: SessionId | None = None) -> Sequence[ToolGrant]:
        """Tools allowed without asking in this session; without `sid`, in all sessions."""
        return await self.store.read(lambda tx: tx.grants(owner, sid))

    async def grant(self, tool: str, scope: str, owner: OwnerId = LOCAL, sid: SessionId | None = None) -> None:
        await self.store.transact(lambda tx: tx.put_grant(ToolGrant(owner, sid, tool, scope, tx.now)))

    async def revoke(self, tool: str, scope: str, owner: OwnerId = LOCAL, sid: SessionId | None = None) -> None:
        await self.store.transact(lambda tx: tx.drop_grant(owner, sid, tool, scope))

    async def settings(self, owner: OwnerId = LOCAL) -> Mapping[str, Json]:
        return await self.store.read(lambda tx: tx.settings(owner))

    async def change(self, values: Mapping[str, Json], owner: OwnerId = LOCAL) -> Mapping[str, Json]:
        """Changes only the named settings; None removes one."""

        def work(tx: Tx) -> Mapping[str, Json]:
            for name, value in values.items():
                tx.put_setting(owner, name, value)
            return tx.settings(owner)

        return await self.store.transact(work)

    async def update(self, name: str, change: Callable[[Json], Json], owner: OwnerId = LOCAL) -> Mapping[str, Json]:
        """Changes one setting by its stored value, in one transaction: parallel changes are all kept, also of other
        nodes. `change` may be called more than once, and what it raises changes nothing."""

        def work(tx: Tx) -> Mapping[str, Json]:
            tx.put_setting(owner, name, change(tx.settings(owner).get(name)))
            return tx.settings(owner)

        return await self.store.transact(work)
