"""Projects: what their chats have in common. A chat names its project (`Session.project`); the row of that name has the
project's settings. What a run gets of them is recorded with it when it is accepted (`as_settings`), so that later
changes of the project do not reach a run that has begun.

Which of defaults, project, chat and run wins: `core.chat_settings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from holdfast.core import chat_settings
from holdfast.core.ids import OwnerId, ProjectId
from holdfast.core.parts import FilePart, Json
from holdfast.core.run import Run

MAX_PROJECTS: Final = 1000  # Of one owner that can be created; imports may bring more
MAX_INSTRUCTIONS: Final = 20_000  # Characters; they are recorded with each run
MAX_FILES: Final = 40  # Of one project
MAX_FILES_SIZE: Final = 100 * 1024 * 1024  # Bytes of all files of one project

ProjectColor = Literal["gray", "red", "orange", "yellow", "green", "teal", "blue", "purple", "pink"]
ProjectMemory = Literal["none", "shared", "project", "project_and_shared"]
"""Off; the memory of all chats; a memory of the project's own; one of its own, with memories of all chats recalled.
What a run recalls: `core.memory_scope`."""
ProjectRemoval = Literal["keep_chats", "delete_chats"]


@dataclass(frozen=True, slots=True)
class Project:
    id: ProjectId
    owner: OwnerId
    name: str  # Unique among the projects of its owner
    created_at: float
    updated_at: float
    color: str | None = None
    instructions: str | None = None
    agent: str | None = None
    model: str | None = None
    settings: Json = None  # Values of `chat_settings.SESSION_FIELDS`
    memory: ProjectMemory | None = None  # None: as in the owner's defaults
    archived: bool = False
    version: int = 1
    former_name: str | None = None  # It was renamed, and chats with this name are being moved to the new one
    removal: ProjectRemoval | None = None  # It is deleted, and its chats are being removed from it


def as_settings(project: Project, files: Sequence[FilePart]) -> dict[str, Json]:
    """What a run records of its project, as `settings.project`."""
    found: dict[str, Json] = {"id": project.id, "name": project.name}
    if project.instructions is not None:
        found["system"] = project.instructions
    found |= chat_settings.read(project.settings, *chat_settings.SESSION_FIELDS)
    if project.memory is not None:
        found["memory"] = project.memory
    if files:
        found["files"] = [
            {"file_id": file.file_id, "name": file.name, "media_type": file.media_type, "size": file.size}
            for file in files
        ]
    return found


def files_of(run: Run) -> Sequence[FilePart]:
    """The files that the run's project had when the run was accepted."""
    found = chat_settings.project_of(run.settings)
    files = found.get("files") if isinstance(found, dict) else None
    return tuple(map(_file, files)) if isinstance(files, list) else ()


def _file(data: Json) -> FilePart:
    return FilePart(data["file_id"], data["name"], data["media_type"], data["size"])
