"""Personas: list, create, change, delete. What a turn is given of its persona: `engine.transactions.personas`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.core.ids import LOCAL, OwnerId, PersonaId
from holdfast.core.parts import value_size
from holdfast.core.personas import MAX_PERSONAS, Persona
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import require_space
from holdfast.engine.transactions import personas


@dataclass(frozen=True, slots=True, eq=False)
class Personas:
    _node: NodeContext

    async def list(self, owner: OwnerId = LOCAL) -> Sequence[Persona]:
        """By name."""
        return await self._node.store.read(lambda tx: tx.personas(owner, MAX_PERSONAS))

    async def get(self, pid: str, owner: OwnerId = LOCAL) -> Persona:
        return await self._node.store.read(lambda tx: personas.get(tx, pid, owner))

    async def create(self, name: str, owner: OwnerId = LOCAL, **fields: Any) -> Persona:
        await require_space(self._node, value_size(fields))
        persona = Persona(PersonaId(self._node.ids.new("per")), owner, name, 0.0, 0.0, **fields)
        return await self._node.transact(lambda tx: personas.create(tx, persona), wake_queue=False)

    async def update(
        self, pid: str, fields: dict[str, Any], owner: OwnerId = LOCAL, if_version: int | None = None
    ) -> Persona:
        """Change the given fields. Turns that were accepted before are not changed."""
        await require_space(self._node, value_size(fields))
        amend = partial(personas.amend, pid=pid, owner=owner, if_version=if_version, fields=fields)
        return await self._node.transact(amend, wake_queue=False)

    async def delete(self, pid: str, owner: OwnerId = LOCAL) -> None:
        await self._node.transact(lambda tx: personas.delete(tx, pid, owner), wake_queue=False)
