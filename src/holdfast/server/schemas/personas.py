"""Personas: who answers in a chat."""

from typing import Annotated

from pydantic import Field

from holdfast.core.personas import MAX_EMOJI, MAX_INSTRUCTIONS, MAX_NAME
from holdfast.server.schemas.base import Name, RequestModel, ResponseModel, Timestamp

PersonaName = Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=r"\S")]
Emoji = Annotated[str, Field(min_length=1, max_length=MAX_EMOJI)]
Picture = Annotated[
    str,
    Field(min_length=1, max_length=200, description="An uploaded image (`/api/files`), shown in place of the emoji."),
]
PersonaModel = Annotated[Name, Field(description="Becomes the model of chats for which the persona is chosen.")]
PersonaInstructions = Annotated[
    str,
    Field(
        max_length=MAX_INSTRUCTIONS,
        description="The system prompt of chats without their own, in place of that of the project or the defaults.",
    ),
]


class CreatePersonaRequest(RequestModel):
    name: PersonaName
    emoji: Emoji | None = None
    picture: Picture | None = None
    model: PersonaModel | None = None
    instructions: PersonaInstructions | None = None
    use_tools: bool | None = None


class UpdatePersonaRequest(RequestModel):
    """Only the given fields change; null clears a field that may be empty."""

    name: PersonaName = ""
    emoji: Emoji | None = None
    picture: Picture | None = None
    model: PersonaModel | None = None
    instructions: PersonaInstructions | None = None
    use_tools: bool | None = None


class PersonaResponse(ResponseModel):
    id: str
    name: str
    emoji: str | None
    picture: str | None
    model: str | None
    instructions: str | None
    use_tools: bool | None
    version: int
    created_at: Timestamp
    updated_at: Timestamp


class PersonaListResponse(ResponseModel):
    items: list[PersonaResponse]
