"""Settings that a chat has of its own, and their defaults for all chats. Their ranges, and which of chat and defaults
wins: `core.chat_settings`."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from holdfast.core import chat_settings
from holdfast.core.chat_settings import MAX_TEMPERATURE, MAX_TOKENS, ModelDefault, ReasoningEffort
from holdfast.core.memory_ledger import OFF
from holdfast.server.schemas.base import Instructions, RequestModel, ResponseModel

Temperature = Annotated[float, Field(ge=0, le=MAX_TEMPERATURE, allow_inf_nan=False)]
TopP = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
TokenLimit = Annotated[int, Field(ge=1, le=MAX_TOKENS, description="The maximum number of tokens in an answer.")]
UseTools = Annotated[bool, Field(description="Whether the built-in agent offers tools to the model.")]
DefaultMemory = Annotated[
    Literal["none"], Field(description=f"`{OFF}`: chats have no memory unless their own setting differs.")
]


def _checked(name: str, expected: str) -> BeforeValidator:
    """Checks a value before pydantic tries the types of a union, so that an error names the field alone."""

    def check(value: Any) -> Any:
        if value is not None and not chat_settings.is_valid(name, value):
            raise ValueError(f"expected {expected}, or {chat_settings.MODEL_DEFAULT!r}")
        return value

    return BeforeValidator(check)


OwnTemperature = Annotated[
    Temperature | ModelDefault | None, _checked("temperature", f"a number from 0 to {MAX_TEMPERATURE:g}")
]
OwnTopP = Annotated[TopP | ModelDefault | None, _checked("top_p", "a number above 0 and up to 1")]
OwnTokenLimit = Annotated[
    TokenLimit | ModelDefault | None, _checked("max_tokens", f"a whole number from 1 to {MAX_TOKENS}")
]


class ChatParametersRequest(RequestModel):
    """Parameters of a chat. If one is missing or null, the default of all chats is used; with `model_default` none is
    sent, and the model uses its own value."""

    temperature: OwnTemperature = None
    top_p: OwnTopP = None
    max_tokens: OwnTokenLimit = None
    reasoning_effort: Literal[ReasoningEffort, ModelDefault] | None = None
    use_tools: UseTools | None = None


class UpdateChatDefaultsRequest(RequestModel):
    """Only the given fields change; null clears one, and the model's own value counts."""

    temperature: Temperature | None = None
    top_p: TopP | None = None
    max_tokens: TokenLimit | None = None
    reasoning_effort: ReasoningEffort | None = None
    use_tools: UseTools | None = None
    system: Instructions | None = None
    memory: DefaultMemory | None = None


class ChatDefaultsResponse(ResponseModel):
    """The values of chats that set none themselves. Null: the model's own value; for memory and tools, on."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    use_tools: bool | None = None
    system: str | None = None
    memory: DefaultMemory | None = None
