"""Personas as rows, and what a chat and a new turn get of theirs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.chat_settings import PERSONA
from holdfast.core.errors import InvalidInputError, NotFoundError, QuotaExceededError, VersionMismatchError
from holdfast.core.ids import OwnerId, PersonaId
from holdfast.core.image_types import IMAGE_TYPES
from holdfast.core.parts import Json
from holdfast.core.personas import MAX_PERSONAS, Persona, as_settings
from holdfast.core.session import Session
from holdfast.ports.store import Tx


def get(tx: Tx, pid: str, owner: OwnerId, if_version: int | None = None) -> Persona:
    persona = tx.persona(PersonaId(pid))
    if persona is None or persona.owner != owner:
        raise NotFoundError("persona", pid)
    if if_version is not None and persona.version != if_version:
        raise VersionMismatchError(if_version, persona.version)
    return persona


def create(tx: Tx, persona: Persona) -> Persona:
    if len(tx.personas(persona.owner, MAX_PERSONAS)) >= MAX_PERSONAS:
        raise QuotaExceededError("personas", MAX_PERSONAS, "Delete some first.")
    return _put(tx, replace(persona, created_at=tx.now))


def amend(tx: Tx, pid: str, owner: OwnerId, if_version: int | None, fields: Mapping[str, Any]) -> Persona:
    persona = get(tx, pid, owner, if_version)
    return _put(tx, replace(persona, **fields, version=persona.version + 1))


def delete(tx: Tx, pid: str, owner: OwnerId) -> None:
    """Chats that have it go on without it; their answers keep its name."""
    tx.drop_persona(get(tx, pid, owner).id)


def _put(tx: Tx, persona: Persona) -> Persona:
    if persona.picture is not None:
        file = tx.file(persona.picture)
        if file is None or file.owner != persona.owner:
            raise NotFoundError("file", persona.picture)
        if file.media_type not in IMAGE_TYPES:
            raise InvalidInputError("picture", "must be an image: PNG, JPEG, GIF or WebP")
    persona = replace(persona, updated_at=tx.now)
    tx.put_persona(persona)
    return persona


def choose(tx: Tx, owner: OwnerId, fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a session whose persona is being chosen. The persona's model becomes the chat's, unless another one is
    given: the model that is shown is the one that answers."""
    pid = fields.get(PERSONA)
    if pid is None:
        return fields
    model = get(tx, pid, owner).model
    return fields if model is None or "model" in fields else {**fields, "model": model}


def of_turn(tx: Tx, session: Session) -> Json:
    """What a new run records of the session's persona; None if it has none, or one that was deleted. A client of an API
    gets what it asked for."""
    pid = session.persona
    if pid is None or session.is_from_api:
        return None
    persona = tx.persona(PersonaId(pid))
    return None if persona is None or persona.owner != session.owner else as_settings(persona)
