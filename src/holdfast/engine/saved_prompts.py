"""The prompt library: list, create, change, delete, fill, export and import saved prompts. What a prompt is:
`core.saved_prompts`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.core import saved_prompts
from holdfast.core.ids import LOCAL, OwnerId, PromptId
from holdfast.core.saved_prompts import MAX_PROMPTS, SavedPrompt
from holdfast.engine.node_context import NodeContext
from holdfast.engine.readiness import require_space
from holdfast.engine.transactions import saved_prompts as rows
from holdfast.engine.transactions.saved_prompts import ImportedPrompts, OnConflict


@dataclass(frozen=True, slots=True, eq=False)
class SavedPrompts:
    _node: NodeContext

    async def list(self, owner: OwnerId = LOCAL, limit: int = MAX_PROMPTS, after: str = "") -> Sequence[SavedPrompt]:
        """By name."""
        return await self._node.store.read(lambda tx: tx.prompts(owner, limit, after))

    async def get(self, pid: str, owner: OwnerId = LOCAL) -> SavedPrompt:
        """The prompt with this id or name."""
        return await self._node.store.read(lambda tx: rows.get(tx, pid, owner))

    async def fill(self, pid: str, values: dict[str, str], owner: OwnerId = LOCAL) -> str:
        """The prompt's text with these values for its variables."""
        return saved_prompts.fill((await self.get(pid, owner)).text, values)

    async def create(self, name: str, text: str, description: str = "", owner: OwnerId = LOCAL) -> SavedPrompt:
        saved_prompts.check_text(text)
        await require_space(self._node, len(text))
        prompt = self._new(name, text, description, owner)
        return await self._node.transact(lambda tx: rows.create(tx, prompt), wake_queue=False)

    async def update(
        self, pid: str, fields: dict[str, Any], owner: OwnerId = LOCAL, if_version: int | None = None
    ) -> SavedPrompt:
        if "text" in fields:
            saved_prompts.check_text(fields["text"])
            await require_space(self._node, len(fields["text"]))
        amend = partial(rows.amend, pid=pid, owner=owner, if_version=if_version, fields=fields)
        return await self._node.transact(amend, wake_queue=False)

    async def delete(self, pid: str, owner: OwnerId = LOCAL) -> None:
        await self._node.transact(lambda tx: rows.delete(tx, pid, owner), wake_queue=False)

    async def add_imported(
        self, found: Sequence[tuple[str, str, str]], on_conflict: OnConflict, owner: OwnerId = LOCAL
    ) -> ImportedPrompts:
        """Store prompts, given by name, text and description, all or none."""
        for _, text, _ in found:
            saved_prompts.check_text(text)
        await require_space(self._node, sum(len(text) for _, text, _ in found))
        prompts = [self._new(*each, owner) for each in found]
        work = partial(rows.add_imported, prompts=prompts, on_conflict=on_conflict)
        return await self._node.transact(work, wake_queue=False)

    def _new(self, name: str, text: str, description: str, owner: OwnerId) -> SavedPrompt:
        return SavedPrompt(PromptId(self._node.ids.new("pmt")), owner, name, description, text, 0.0, 0.0)
