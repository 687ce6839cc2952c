"""Personas: who answers in a chat. A session names its persona by id (`settings.persona`). What a run is given of it
is recorded with the run when it is accepted, and each answer has its name and picture: later changes reach neither.

Which of defaults, project, persona and chat wins: `core.chat_settings`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.core.ids import FileId, OwnerId, PersonaId
from holdfast.core.parts import Json

MAX_PERSONAS: Final = 200  # Of one owner
MAX_NAME: Final = 60
MAX_EMOJI: Final = 16  # Characters: a family of four has eleven
MAX_INSTRUCTIONS: Final = 20_000  # Characters; they are recorded with each run


@dataclass(frozen=True, slots=True)
class Persona:
    id: PersonaId
    owner: OwnerId
    name: str
    created_at: float
    updated_at: float
    emoji: str | None = None
    picture: FileId | None = None  # An uploaded image, in place of the emoji
    model: str | None = None  # Of chats for which it is chosen
    instructions: str | None = None  # In place of the system prompt of the project and the defaults
    use_tools: bool | None = None  # None: as the project or the defaults say
    version: int = 1


def as_settings(persona: Persona) -> dict[str, Json]:
    """What a run records of its persona, as `settings.persona`."""
    found: dict[str, Json] = {"id": persona.id, "name": persona.name}
    values = {
        "emoji": persona.emoji,
        "picture": persona.picture,
        "system": persona.instructions,
        "use_tools": persona.use_tools,
    }
    return {**found, **{name: value for name, value in values.items() if value is not None}}


def shown(recorded: Json) -> Json:
    """What an answer has of the persona that a run recorded."""
    if not isinstance(recorded, Mapping) or not isinstance(recorded.get("name"), str):
        return None
    return {name: recorded[name] for name in ("name", "emoji", "picture") if isinstance(recorded.get(name), str)}
