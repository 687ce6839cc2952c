"""SQL for personas."""

from collections.abc import Sequence

from holdfast.core.ids import OwnerId, PersonaId
from holdfast.core.personas import Persona
from holdfast.storage.sql.statements import Statements
from holdfast.storage.sql.tables import PERSONAS


class SqlPersonaRows(Statements):
    def persona(self, pid: PersonaId) -> Persona | None:
        return self._select_one(PERSONAS, "WHERE id = ?", pid)

    def personas(self, owner: OwnerId, limit: int) -> Sequence[Persona]:
        return self._select(PERSONAS, "WHERE owner = ? ORDER BY name, id LIMIT ?", owner, limit)

    def put_persona(self, persona: Persona) -> None:
        self._db.execute(PERSONAS.upsert, *PERSONAS.encode(persona))

    def drop_persona(self, pid: PersonaId) -> None:
        self._db.execute("DELETE FROM personas WHERE id = ?", pid)
