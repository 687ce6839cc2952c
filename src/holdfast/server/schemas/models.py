"""Language models that a session can use, and the server's health."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from holdfast.server.schemas.base import Name, RequestModel, ResponseModel


class TestModelRequest(RequestModel):
    model: Name


class ModelDetailsResponse(ResponseModel):
    id: str
    name: str
    provider: str
    context: int | None
    abilities: Annotated[list[str], BeforeValidator(sorted)]
    settings: Annotated[
        list[str],
        BeforeValidator(sorted),
        Field(description="Settings that are passed to it, such as `temperature`. It ignores others."),
    ]
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


class HealthResponse(ResponseModel):
    status: Literal["ok"]
