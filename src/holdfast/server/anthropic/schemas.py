"""Pydantic models of `/v1/messages`. Fields that are not named here are ignored: clients send many that only the
original server knows."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from holdfast.server.openai.schemas import MAX_PARTS, Effort, Items, LongItems, Share, ShortText, Text, TokenLimit


class AnthropicItem(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class AnthropicText(AnthropicItem):
    type: Literal["text"]
    text: str


class AnthropicSource(AnthropicItem):
    type: Literal["base64", "text", "url"]
    media_type: str = ""
    data: str = ""
    url: str = ""


class AnthropicImage(AnthropicItem):
    type: Literal["image"]
    source: AnthropicSource


class AnthropicDocument(AnthropicItem):
    type: Literal["document"]
    source: AnthropicSource
    title: str | None = None


class AnthropicThinking(AnthropicItem):
    type: Literal["thinking"]
    thinking: str


class AnthropicRedacted(AnthropicItem):
    type: Literal["redacted_thinking"]


class AnthropicToolUse(AnthropicItem):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, JsonValue]


class AnthropicToolResult(AnthropicItem):
    type: Literal["tool_result"]
    tool_use_id: str
    content: (
        str
        | Annotated[
            Items[Annotated[AnthropicText | AnthropicImage, Field(discriminator="type")]], Field(max_length=MAX_PARTS)
        ]
    ) = ""


AnthropicBlock = Annotated[
    AnthropicText
    | AnthropicImage
    | AnthropicDocument
    | AnthropicThinking
    | AnthropicRedacted
    | AnthropicToolUse
    | AnthropicToolResult,
    Field(discriminator="type"),
]


class AnthropicInput(AnthropicItem):
    role: Literal["user", "assistant", "system"]
    content: str | Annotated[Items[AnthropicBlock], Field(max_length=MAX_PARTS)]


class AnthropicTool(AnthropicItem):
    type: str | None = None
    name: str
    description: str | None = None
    input_schema: dict[str, JsonValue] | None = None


class AnthropicToolChoice(AnthropicItem):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool = False


class AnthropicThinkingOptions(AnthropicItem):
    type: str
    budget_tokens: int | None = None


class AnthropicFormat(AnthropicItem):
    type: Literal["json_schema"]
    json_schema: Annotated[dict[str, JsonValue], Field(alias="schema")]


class AnthropicOutputConfig(AnthropicItem):
    format: AnthropicFormat | None = None
    effort: Effort | None = None


class CountTokensRequest(AnthropicItem):
    model: ShortText
    messages: Annotated[LongItems[AnthropicInput], Field(min_length=1, max_length=10_000)]
    system: Text | Annotated[Items[AnthropicText], Field(max_length=MAX_PARTS)] | None = None
    tools: Annotated[Items[AnthropicTool], Field(max_length=500)] | None = None


class MessagesRequest(CountTokensRequest):
    max_tokens: TokenLimit
    stream: bool | None = None
    temperature: Share | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    stop_sequences: Annotated[list[Text], Field(max_length=16)] | None = None
    tool_choice: AnthropicToolChoice | None = None
    thinking: AnthropicThinkingOptions | None = None
    output_config: AnthropicOutputConfig | None = None
    output_format: AnthropicFormat | None = None
    """The older name of `output_config.format`."""
    thread: JsonValue = None


class MessageObject(BaseModel):
    model_config = ConfigDict(extra="allow", defer_build=True)

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]]
    stop_reason: str | None
    usage: dict[str, Any]


class TokenCount(BaseModel):
    input_tokens: int


class AnthropicErrorFields(BaseModel):
    type: str
    message: str


class AnthropicError(BaseModel):
    type: Literal["error"]
    error: AnthropicErrorFields
