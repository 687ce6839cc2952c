"""What a refused value must be is said without pydantic's names of types."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from holdfast.core.validation_text import validation_text


class _Text(BaseModel):
    type: Literal["text"]


class _File(BaseModel):
    type: Literal["file"]


class _Example(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(default="x", min_length=1, max_length=3, pattern="^[a-z]+$")
    count: Annotated[int, Field(ge=1)] = 1
    share: float = 0.5
    on: bool = True
    tags: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    fields: dict[str, int] = {}
    kind: Literal["a", "b"] = "a"
    part: Annotated[_Text | _File, Field(discriminator="type")] = _Text(type="text")

    @field_validator("share")
    @classmethod
    def _check(cls, value: float) -> float:
        if value > 1:
            raise ValueError("must be a share of one")
        return value


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("name", 5, "must be a string"),
        ("name", "", "must have at least 1 character"),
        ("name", "abcd", "must have at most 3 characters"),
        ("name", "A", "has characters that are not allowed here"),
        ("count", "x", "must be a whole number"),
        ("count", 0.5, "must be a whole number"),
        ("count", 0, "must be greater than or equal to 1"),
        ("share", "x", "must be a number"),
        ("share", 2, "must be a share of one"),
        ("on", "maybe", "must be true or false"),
        ("tags", "x", "must be a list"),
        ("tags", [], "must have at least 1 item"),
        ("fields", [], "must be an object"),
        ("kind", "c", "must be 'a' or 'b'"),
        ("part", {"type": "x"}, "needs a known 'type': one of 'text', 'file'"),
        ("part", {}, "needs a known 'type'"),
        ("naem", "x", "is unknown; check its name"),
    ],
)
def test_what_a_value_must_be(field: str, value: Any, text: str) -> None:
    """It follows the name of the field."""
    with pytest.raises(ValidationError) as caught:
        _Example.model_validate({field: value})
    assert validation_text(caught.value.errors()[0]) == text


def test_a_missing_field_is_required() -> None:
    with pytest.raises(ValidationError) as caught:
        _Text.model_validate({})
    assert validation_text(caught.value.errors()[0]) == "is required"
