"""What a person has settled for good: allowances of tools, and settings."""

from collections.abc import Mapping, Sequence

from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import Json
from holdfast.core.values import dataclass
from holdfast.ports import Grant, Store, Tx


@dataclass(frozen=True, slots=True)
class Preferences:
    store: Store

    async def grants(self, owner: OwnerId = LOCAL, sid: SessionId | None = None) -> Sequence[Grant]:
        """What is allowed in this session without asking; without one, what is allowed in all."""
        return await self.store.read(lambda tx: tx.grants(owner, sid))

    async def grant(self, tool: str, scope: str, owner: OwnerId = LOCAL, sid: SessionId | None = None) -> None:
        await self.store.transact(lambda tx: tx.put_grant(Grant(owner, sid, tool, scope, tx.now)))

    async def revoke(self, tool: str, scope: str, owner: OwnerId = LOCAL, sid: SessionId | None = None) -> None:
        await self.store.transact(lambda tx: tx.drop_grant(owner, sid, tool, scope))

    async def settings(self, owner: OwnerId = LOCAL) -> Mapping[str, Json]:
        return await self.store.read(lambda tx: tx.settings(owner))

    async def change(self, values: Mapping[str, Json], owner: OwnerId = LOCAL) -> Mapping[str, Json]:
        """Only what is named; None takes a setting away."""

        def work(tx: Tx) -> Mapping[str, Json]:
            for name, value in values.items():
                tx.put_setting(owner, name, value)
            return tx.settings(owner)

        return await self.store.transact(work)
