"""Personas: list, create, read, change, delete. What they do: `engine.personas`."""

from typing import Annotated, Any

from pydantic import Field

from holdfast.server import parameters as p
from holdfast.server.context import ApiContext
from holdfast.server.routing import Router
from holdfast.server.schemas import personas as s

router = Router("personas", "/api/personas")

PersonaPath = Annotated[str, Field(max_length=200, description="Persona id.")]


@router.get("")
async def list_personas(api: ApiContext) -> s.PersonaListResponse:
    """List all personas by name; there are at most 200."""
    found = await api.engine.personas.list()
    return s.PersonaListResponse(items=[s.PersonaResponse.model_validate(persona) for persona in found])


@router.post("", status=201)
async def create_persona(api: ApiContext, body: s.CreatePersonaRequest) -> s.PersonaResponse:
    """Create a persona. A session gets it with `persona`."""
    fields = {name: value for name, value in body.model_dump().items() if value is not None}
    return s.PersonaResponse.model_validate(await api.engine.personas.create(**fields))


@router.get("/{pid}")
async def read_persona(api: ApiContext, pid: PersonaPath) -> s.PersonaResponse:
    return s.PersonaResponse.model_validate(await api.engine.personas.get(pid))


@router.patch("/{pid}")
async def change_persona(
    api: ApiContext, pid: PersonaPath, body: s.UpdatePersonaRequest, if_match: p.IfMatch = None
) -> s.PersonaResponse:
    """Change a persona. Its instructions and tools count from the next message of its chats on; a new model counts for
    chats for which it is chosen from now on."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    version = p.expected_version(if_match)
    return s.PersonaResponse.model_validate(await api.engine.personas.update(pid, fields, if_version=version))


@router.delete("/{pid}", status=204)
async def delete_persona(api: ApiContext, pid: PersonaPath) -> None:
    """Delete a persona. Its chats go on without it, and their answers keep its name."""
    await api.engine.personas.delete(pid)
