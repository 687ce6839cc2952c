"""Language models and agents that a session can use, and the server's health."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from holdfast.server.schemas.base import Name, RequestModel, ResponseModel


class TestModelRequest(RequestModel):
    model: Name


class ModelDetailsResponse(ResponseModel):
    id: str
    name: str
    provider: str
    context: int | None
    abilities: Annotated[list[str], BeforeValidator(sorted)]
    available: bool
    reason: str | None


class ModelListResponse(ResponseModel):
    items: list[ModelDetailsResponse]
    default: str | None


class ModelTestResponse(ResponseModel):
    ok: bool
    answer: str | None
    reason: str | None
    took_ms: int


class AgentResponse(ResponseModel):
    name: str
    can_continue: bool
    is_program: bool
    """Whether it runs as a program of its own, with its own model and tools."""
    available: bool
    reason: str | None


class AgentTestResponse(ResponseModel):
    ok: bool
    reason: str | None
    program: str | None
    version: str | None
    login: list[str]
    """The ways to log in that the program names; it may be logged in already."""
    took_ms: int


class AgentListResponse(ResponseModel):
    items: list[AgentResponse]


class HealthResponse(ResponseModel):
    status: Literal["ok"]
