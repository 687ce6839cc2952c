"""The prompt library."""

import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import LOCAL, PromptId
from holdfast.ports.store import Store
from holdfast.testing.contracts import samples as s


class PromptContract:
    async def test_prompts_are_listed_by_name(self, store: Store) -> None:
        """A list has the owner's prompts alone, those after a name, and pages make the whole."""
        other = s.prompt("pmt_5", "aa", owner=s.OTHER)
        await s.put(store, *(s.prompt(f"pmt_{n}", name) for n, name in enumerate("dbca")), other)
        names = [each.name for each in await store.read(lambda tx: tx.prompts(LOCAL, 9))]
        assert names == ["a", "b", "c", "d"]
        assert [each.name for each in await store.read(lambda tx: tx.prompts(LOCAL, 2, "b"))] == ["c", "d"]
        assert await store.read(lambda tx: tx.count_prompts(LOCAL)) == 4

    async def test_a_prompt_is_found_by_its_name(self, store: Store) -> None:
        """A name is the owner's, exact, and taken once; a dropped prompt is not found."""
        await s.put(store, s.prompt("pmt_1", "a"), s.prompt("pmt_2", "a", owner=s.OTHER))
        found = await store.read(lambda tx: tx.prompt_named(LOCAL, "a"))
        assert found is not None
        assert found.id == "pmt_1"
        with pytest.raises(StorageError):
            await s.put(store, s.prompt("pmt_3", "a"))
        assert await store.read(lambda tx: tx.prompt_named(LOCAL, "A")) is None
        await store.transact(lambda tx: tx.drop_prompt(PromptId("pmt_1")))
        assert await store.read(lambda tx: tx.prompt_named(LOCAL, "a")) is None
        assert await store.read(lambda tx: tx.prompt(PromptId("pmt_2"))) is not None
