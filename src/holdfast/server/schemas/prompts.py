"""The prompt library. What a prompt is: `core.saved_prompts`."""

from typing import Annotated, Literal, Self

from pydantic import Field

from holdfast.core import saved_prompts
from holdfast.core.saved_prompts import MAX_DESCRIPTION, MAX_PROMPTS, MAX_TEXT, MAX_VARIABLES, SavedPrompt
from holdfast.server.schemas.base import ListResponse, RequestModel, ResponseModel, Timestamp, shallow_fields

PromptName = Annotated[
    str,
    Field(
        pattern=saved_prompts.NAME_PATTERN,
        description="What follows the slash in the message box: lowercase letters, digits, - and _, at most 64.",
    ),
]
PromptText = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TEXT, description="With variables as `{{name}}` or `{{name=default}}`."),
]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION)]


class CreatePromptRequest(RequestModel):
    name: PromptName
    text: PromptText
    description: Description = ""


class UpdatePromptRequest(RequestModel):
    """Only the given fields change."""

    name: PromptName = ""
    text: PromptText = ""
    description: Description = ""


class FillPromptRequest(RequestModel):
    values: Annotated[
        dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=MAX_TEXT)]],
        Field(max_length=MAX_VARIABLES, description="By variable. An empty value is the default."),
    ] = Field(default_factory=dict)


class FilledPromptResponse(ResponseModel):
    text: str


class PromptVariableResponse(ResponseModel):
    name: str
    default: str | None
    """Null: a value is required."""


class PromptResponse(ResponseModel):
    id: str
    name: str
    description: str
    text: str
    variables: list[PromptVariableResponse]
    version: int
    created_at: Timestamp
    updated_at: Timestamp

    @classmethod
    def from_prompt(cls, prompt: SavedPrompt) -> Self:
        return cls.model_validate({**shallow_fields(prompt), "variables": saved_prompts.find_variables(prompt.text)})


class PromptListResponse(ListResponse[PromptResponse]): ...


class ExportedPrompt(RequestModel):
    name: PromptName
    text: PromptText
    description: Description = ""


class PromptExport(RequestModel):
    """The export format `holdfast-prompts`."""

    format: Literal["holdfast-prompts"]
    version: Literal[1]
    prompts: Annotated[list[ExportedPrompt], Field(max_length=MAX_PROMPTS)]


class PromptExportResponse(ResponseModel):
    format: Literal["holdfast-prompts"]
    version: int
    prompts: list[ExportedPrompt]


class ImportedPromptsResponse(ResponseModel):
    added: list[str]
    replaced: list[str]
    skipped: list[str]
    """Names that other prompts here have."""
