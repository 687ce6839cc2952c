"""The server's settings, provider keys and tool grants."""

from typing import Annotated, Literal

from pydantic import Field

from holdfast.server.schemas.base import Name, RequestModel, ResponseModel, Timestamp

ToolRule = Literal["allow", "ask", "deny"]


class UpdateSettingsRequest(RequestModel):
    """Only the given fields change."""

    default_model: Name | None = None
    tools: Annotated[
        dict[Name, ToolRule],
        Field(max_length=500, description="All rules, by a tool's name or a pattern such as `github__*`."),
    ] = Field(default_factory=dict)


class ProviderKeyRequest(RequestModel):
    key: Annotated[str, Field(min_length=1, max_length=1000)]


class RevokeGrantRequest(RequestModel):
    tool: Name
    scope: Annotated[str, Field(max_length=1000)] = ""


class GrantResponse(ResponseModel):
    tool: str
    scope: str
    created_at: Timestamp


class ProviderResponse(ResponseModel):
    name: str
    has_key: bool


class SettingsResponse(ResponseModel):
    default_model: str | None
    tools: dict[str, ToolRule]
    grants: list[GrantResponse]
    providers: list[ProviderResponse]
    password_set: bool
    memory: Annotated[bool, Field(description="Whether this server has a memory.")]
    version: str
