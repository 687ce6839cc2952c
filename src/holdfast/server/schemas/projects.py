"""Projects: what their chats have in common. Which settings count for a chat: `core.chat_settings`."""

from typing import Annotated, Literal, Self

from pydantic import Field

from holdfast.core import chat_settings
from holdfast.core.chat_settings import ModelDefault, ReasoningEffort
from holdfast.core.project import MAX_INSTRUCTIONS, ProjectColor, ProjectMemory
from holdfast.engine.transactions.projects import ProjectView
from holdfast.server.schemas.base import ListResponse, Name, RequestModel, ResponseModel, Timestamp, shallow_fields
from holdfast.server.schemas.chat_settings import ChatParametersRequest
from holdfast.server.schemas.files import FileResponse

Instructions = Annotated[
    str,
    Field(
        max_length=MAX_INSTRUCTIONS,
        description="The system prompt of chats without their own, in place of the one in the defaults.",
    ),
]
Memory = Annotated[
    ProjectMemory,
    Field(
        description="`none`: off. `shared`: the memory of all chats. `project`: a memory of its own. "
        "`project_and_shared`: one of its own, and memories of all chats are recalled too. Null: as in the defaults."
    ),
]
ProjectModel = Annotated[Name, Field(description="The model of chats that have none of their own.")]
ProjectAgent = Annotated[Name, Field(description="The agent of new chats.")]


class CreateProjectRequest(ChatParametersRequest):
    name: Name
    color: ProjectColor | None = None
    instructions: Instructions | None = None
    agent: ProjectAgent | None = None
    model: ProjectModel | None = None
    memory: Memory | None = None


class UpdateProjectRequest(ChatParametersRequest):
    """Only the given fields change; null clears a field that may be empty."""

    name: Name = ""
    color: ProjectColor | None = None
    instructions: Instructions | None = None
    agent: ProjectAgent | None = None
    model: ProjectModel | None = None
    memory: Memory | None = None
    archived: bool = False


class AddProjectFileRequest(RequestModel):
    file_id: Annotated[str, Field(min_length=1, max_length=200, description="An uploaded file (`/api/files`).")]


class ProjectResponse(ResponseModel):
    id: str
    name: str
    color: str | None
    instructions: str | None
    agent: str | None
    model: str | None
    memory: ProjectMemory | None
    temperature: float | ModelDefault | None
    top_p: float | ModelDefault | None
    max_tokens: int | ModelDefault | None
    reasoning_effort: Literal[ReasoningEffort, ModelDefault] | None
    use_tools: bool | None
    archived: bool
    chats: int
    """How many chats it has that are not archived."""
    files: list[FileResponse]
    """Empty in lists."""
    version: int
    created_at: Timestamp
    updated_at: Timestamp

    @classmethod
    def from_view(cls, view: ProjectView) -> Self:
        project = view.project
        values = {
            **dict.fromkeys(chat_settings.SESSION_FIELDS),
            **chat_settings.read(project.settings, *chat_settings.SESSION_FIELDS),
            "chats": view.chats,
            "files": [FileResponse.model_validate(file) for file in view.files],
        }
        return cls.model_validate({**shallow_fields(project), **values})


class ProjectListResponse(ListResponse[ProjectResponse]): ...
