"""Base classes and field types that the schemas share. Free-form `settings` have the ranges of `core.chat_settings`."""

from dataclasses import fields
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic_core import to_json

from holdfast.core import chat_settings
from holdfast.core.export_format import iso_timestamp
from holdfast.core.ids import MessageId, SessionId
from holdfast.core.session_limits import (
    MAX_NAME,
    MAX_SETTING_FIELDS,
    MAX_SETTINGS,
    MAX_TAG,
    MAX_TAGS,
    MAX_TEXT,
    MAX_TITLE,
    unique_tags,
)


class RequestModel(BaseModel):
    """A request body. An unknown field, a wrong type or a length out of bounds is an error that names the field.

    `defer_build`: pydantic builds the validator when the first such request arrives, which keeps the start fast.
    """

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class ResponseModel(BaseModel):
    """A response body. `Model.model_validate(value)` reads the attributes of an engine value of the same shape."""

    model_config = ConfigDict(from_attributes=True, defer_build=True)


ItemT = TypeVar("ItemT", bound=ResponseModel)


class ListResponse(ResponseModel, Generic[ItemT]):
    """A page of a list; `next` is the cursor of the following page."""

    items: list[ItemT]
    next: str | None


class ProblemResponse(ResponseModel):
    """An error, as problem details (RFC 9457). Some have further fields, such as `field`, `run_id` or `version`."""

    type: str
    title: str
    status: int
    detail: str


def shallow_fields(value: Any) -> dict[str, Any]:
    """The fields of an engine value, by name; unlike `asdict` without copies."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


Title = Annotated[str, Field(max_length=MAX_TITLE)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Instructions = Annotated[str, Field(max_length=MAX_TEXT)]
Tags = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_TAG)]],
    Field(max_length=MAX_TAGS),
    AfterValidator(unique_tags),
]


def _check_settings(settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(to_json(settings)) > MAX_SETTINGS:
        raise ValueError(f"must have at most {MAX_SETTINGS} bytes as JSON")
    for name in chat_settings.SESSION_FIELDS:
        if settings.get(name) is not None and not chat_settings.is_valid(name, settings[name]):
            raise ValueError(f"has a {name} that is out of range")
    return settings


ModelSettings = Annotated[
    dict[str, JsonValue],
    Field(
        max_length=MAX_SETTING_FIELDS,
        description="temperature, max_tokens and others, passed to the model; at most 64 kB.",
    ),
    AfterValidator(_check_settings),
]
MessageIdField = Annotated[MessageId, Field(min_length=1, max_length=200)]
SessionIdField = Annotated[SessionId, Field(min_length=1, max_length=200)]
JsonObject = dict[str, Any]


Timestamp = Annotated[str, BeforeValidator(iso_timestamp), WithJsonSchema({"type": "string", "format": "date-time"})]
"""ISO 8601 in UTC with microseconds, made from seconds since the epoch."""
