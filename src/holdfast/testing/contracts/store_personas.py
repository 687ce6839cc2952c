"""Personas, and the pictures that they keep."""

from dataclasses import replace

from holdfast.core.ids import LOCAL, FileId, PersonaId
from holdfast.ports.store import Store
from holdfast.testing.contracts import samples as s


class PersonaContract:
    async def test_personas_are_listed_by_name(self, store: Store) -> None:
        """A list has the owner's personas alone; names need not be unique."""
        other = s.persona("per_5", "aa", owner=s.OTHER)
        await s.put(store, *(s.persona(f"per_{n}", name) for n, name in enumerate("caba")), other)
        found = await store.read(lambda tx: tx.personas(LOCAL, 9))
        assert [(each.name, each.id) for each in found] == [
            ("a", "per_1"),
            ("a", "per_3"),
            ("b", "per_2"),
            ("c", "per_0"),
        ]
        assert len(await store.read(lambda tx: tx.personas(LOCAL, 2))) == 2

    async def test_the_picture_of_a_persona_is_no_orphan(self, store: Store) -> None:
        """Until the persona has another one, or is dropped."""
        first, second = s.stored_file("file_a"), s.stored_file("file_b")
        persona = s.persona("per_1", picture=FileId("file_a"))
        await s.put(store, first, second, persona)
        assert list(await store.read(lambda tx: tx.orphan_files(99.0, 9))) == [second]
        await s.put(store, replace(persona, picture=FileId("file_b")))
        assert list(await store.read(lambda tx: tx.orphan_files(99.0, 9))) == [first]
        await store.transact(lambda tx: tx.drop_persona(PersonaId("per_1")))
        assert await store.read(lambda tx: tx.persona(PersonaId("per_1"))) is None
        assert len(await store.read(lambda tx: tx.orphan_files(99.0, 9))) == 2
