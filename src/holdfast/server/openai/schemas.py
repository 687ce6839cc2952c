"""Pydantic models of the requests and responses below `/v1`. They validate requests, and `/openapi.json` is made from
them.

A parameter of a call that is not here is unknown and refused; which of the known ones are honored, refused or ignored
is decided in `parameters.py`. Items, messages and tools may carry more fields than are named here: clients send back
what they were given.
"""

from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from holdfast.core.run import Lifetime
from holdfast.core.session_limits import MAX_TEXT
from holdfast.server.routing import Header, ResponseInfo, Responses
from holdfast.server.schemas.base import RequestModel


class CallItem(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class Reply(BaseModel):
    """Responses have more fields than are declared: OpenAI's own."""

    model_config = ConfigDict(extra="allow", defer_build=True)


def _let_others_run(item: Any) -> Any:
    """Pydantic holds the interpreter while it validates. A call of a function is where a thread gives it up, so a long
    list that is validated in one does not stop the event loop."""
    return item


ItemT = TypeVar("ItemT")
Items = Annotated[list[ItemT], Field(fail_fast=True)]  # Describing every wrong item would take longer than all else
LongItems = Items[Annotated[ItemT, AfterValidator(_let_others_run)]]

Text = Annotated[str, Field(max_length=MAX_TEXT)]
MAX_PARTS: Final = 2_000  # Of one message
MAX_TOOLS: Final = 500
ShortText = Annotated[str, Field(min_length=1, max_length=500)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Share = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
TokenLimit = Annotated[int, Field(ge=1, le=100_000_000)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=16, fail_fast=True),
]
LifetimeHeader = Annotated[
    Lifetime | None,
    Header("Holdfast-Lifetime"),
    Field(description="`detached`: the run continues when the client disconnects. `attached`: it is cancelled."),
]


# ---- content of a message ----


class TextContentPart(CallItem):
    type: Literal["input_text", "output_text", "text", "summary_text", "reasoning_text"]
    text: str


class RefusalContentPart(CallItem):
    type: Literal["refusal"]
    refusal: str


class ImageUrl(CallItem):
    url: str


class ImageContentPart(CallItem):
    """A `data:` URL, or the id of an upload. Chat completions have the URL one level deeper than responses."""

    type: Literal["input_image", "image_url"]
    image_url: str | ImageUrl | None = None
    file_id: str | None = None


class FileSource(CallItem):
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class FileContentPart(FileSource):
    """Chat completions have the fields one level deeper, in `file`."""

    type: Literal["input_file", "file"]
    file: FileSource | None = None


ContentPart = Annotated[
    TextContentPart | RefusalContentPart | ImageContentPart | FileContentPart, Field(discriminator="type")
]
Content = str | Annotated[Items[ContentPart], Field(max_length=MAX_PARTS)]


# ---- input items of a response ----


class MessageItem(CallItem):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Content


class FunctionCallItem(CallItem):
    type: Literal["function_call"]
    call_id: str
    name: str
    namespace: str | None = None
    arguments: str


class FunctionCallOutputItem(CallItem):
    type: Literal["function_call_output"]
    call_id: str
    output: Content


class CustomToolCallItem(CallItem):
    type: Literal["custom_tool_call"]
    call_id: str
    name: str
    namespace: str | None = None
    input: str


class CustomToolCallOutputItem(CallItem):
    type: Literal["custom_tool_call_output"]
    call_id: str
    output: Content


class ReasoningItem(CallItem):
    type: Literal["reasoning"]
    summary: Content | None = None
    content: Content | None = None


class McpCallItem(CallItem):
    """A tool call that an agent of this server has made and answered, sent back by the client."""

    type: Literal["mcp_call"]
    id: str
    name: str
    arguments: str
    output: JsonValue = None
    error: JsonValue = None


class McpApprovalResponseItem(CallItem):
    """The client's answer to an `mcp_approval_request`; its run continues."""

    type: Literal["mcp_approval_response"]
    approval_request_id: str
    approve: bool


class McpApprovalRequestItem(CallItem):
    """A request that the client sends back with the history. The run knows it."""

    type: Literal["mcp_approval_request"]


class ItemReference(CallItem):
    type: Literal["item_reference"]
    id: str


# ---- tools of a response ----


class FunctionSpec(CallItem):
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class FunctionTool(FunctionSpec):
    type: Literal["function"]


class CustomTool(CallItem):
    """A tool of the client's whose input is free text, of a grammar if `format` has one."""

    type: Literal["custom"]
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    format: JsonValue = None


class NamespaceTool(CallItem):
    """Tools of one source, such as an MCP server of the client's."""

    type: Literal["namespace"]
    name: Annotated[str, Field(min_length=1)]
    tools: Annotated[
        Items[Annotated[FunctionTool | CustomTool, Field(discriminator="type")]], Field(max_length=MAX_TOOLS)
    ]


class HostedTool(CallItem):
    """A tool that OpenAI runs. A model may do without it, so it is ignored and reported."""

    type: Literal[
        "web_search",
        "web_search_preview",
        "web_search_2025_08_26",
        "web_search_preview_2025_03_11",
        "image_generation",
        "code_interpreter",
        "file_search",
        "tool_search",
    ]


ResponseTool = Annotated[FunctionTool | CustomTool | NamespaceTool | HostedTool, Field(discriminator="type")]


class AdditionalToolsItem(CallItem):
    """Tools of the call, sent among its input."""

    type: Literal["additional_tools"]
    tools: Annotated[Items[ResponseTool], Field(max_length=MAX_TOOLS)]


def _item_type(item: Any) -> str | None:
    if not isinstance(item, dict | CallItem):
        return "message"  # whose model reports the wrong type
    kind = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", None)
    return kind if isinstance(kind, str) else None


InputItem = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[FunctionCallOutputItem, Tag("function_call_output")]
    | Annotated[CustomToolCallItem, Tag("custom_tool_call")]
    | Annotated[CustomToolCallOutputItem, Tag("custom_tool_call_output")]
    | Annotated[AdditionalToolsItem, Tag("additional_tools")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[McpCallItem, Tag("mcp_call")]
    | Annotated[McpApprovalRequestItem, Tag("mcp_approval_request")]
    | Annotated[McpApprovalResponseItem, Tag("mcp_approval_response")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(_item_type),
]


# ---- messages of a chat completion ----


class ChatInputMessage(CallItem):
    role: Literal["user", "system", "developer"]
    content: Content


class CalledFunction(CallItem):
    name: str
    arguments: str


class ChatToolCall(CallItem):
    id: str
    function: CalledFunction


class ChatAssistantMessage(CallItem):
    role: Literal["assistant"]
    content: Content | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: Annotated[Items[ChatToolCall], Field(max_length=MAX_PARTS)] | None = None
    function_call: JsonValue = None


class ChatToolResult(CallItem):
    role: Literal["tool"]
    tool_call_id: str
    content: Content


ChatMessage = Annotated[ChatInputMessage | ChatAssistantMessage | ChatToolResult, Field(discriminator="role")]


# ---- tools and the format of the answer ----


class ChatTool(CallItem):
    type: Literal["function"]
    function: FunctionSpec


class FunctionName(CallItem):
    name: str


class ChosenFunction(FunctionName):
    type: Literal["function", "custom"]


class ChosenChatFunction(CallItem):
    type: Literal["function"]
    function: FunctionName


ToolChoice = Literal["auto", "none", "required"]


class PlainFormat(CallItem):
    type: Literal["text", "json_object"]


class NamedSchema(CallItem):
    name: str
    description: str | None = None
    json_schema: Annotated[dict[str, JsonValue], Field(alias="schema")]
    strict: bool | None = None


class JsonSchemaFormat(NamedSchema):
    type: Literal["json_schema"]


class ChatJsonSchemaFormat(CallItem):
    type: Literal["json_schema"]
    json_schema: NamedSchema


TextFormat = Annotated[PlainFormat | JsonSchemaFormat, Field(discriminator="type")]
ChatFormat = Annotated[PlainFormat | ChatJsonSchemaFormat, Field(discriminator="type")]


# ---- requests ----


class ReasoningOptions(RequestModel):
    effort: Effort | None = None
    summary: JsonValue = None
    generate_summary: JsonValue = None
    context: JsonValue = None


class TextOptions(RequestModel):
    format: TextFormat | None = None
    verbosity: JsonValue = None


class ConversationReference(RequestModel):
    id: ShortText


class StreamOptions(RequestModel):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class CommonParameters(RequestModel):
    """Parameters of responses and chat completions. Those of the type `JsonValue` are refused or ignored."""

    model: ShortText | None = None
    stream: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    parallel_tool_calls: bool | None = None
    stream_options: StreamOptions | None = None

    top_logprobs: JsonValue = None
    moderation: JsonValue = None
    user: JsonValue = None
    service_tier: JsonValue = None
    safety_identifier: JsonValue = None
    prompt_cache_key: JsonValue = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: JsonValue = None


class ResponseRequest(CommonParameters):
    input: Text | Annotated[LongItems[InputItem], Field(max_length=10_000)]
    instructions: Text | None = None
    previous_response_id: ShortText | None = None
    conversation: ShortText | ConversationReference | None = None
    background: bool | None = None
    tools: Annotated[Items[ResponseTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice | ChosenFunction | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None
    max_output_tokens: TokenLimit | None = None
    include: Annotated[list[str], Field(max_length=20)] | None = None

    client_metadata: JsonValue = None
    prompt: JsonValue = None
    max_tool_calls: JsonValue = None
    truncation: JsonValue = None
    context_management: JsonValue = None
    image: JsonValue = None
    access_programs: JsonValue = None


class ChatRequest(CommonParameters):
    messages: Annotated[LongItems[ChatMessage], Field(min_length=1, max_length=10_000)]
    tools: Annotated[Items[ChatTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice | ChosenChatFunction | None = None
    n: int | None = None
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = None
    seed: int | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    reasoning_effort: Effort | None = None
    response_format: ChatFormat | None = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    min_p: Share | None = None
    repeat_penalty: Annotated[float, Field(ge=0, le=100)] | None = None

    logprobs: JsonValue = None
    logit_bias: JsonValue = None
    modalities: JsonValue = None
    audio: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    web_search_options: JsonValue = None
    prediction: JsonValue = None
    verbosity: JsonValue = None


class EmbeddingRequest(RequestModel):
    """Passed on to the provider, which checks `input`."""

    model: ShortText
    input: JsonValue
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    user: JsonValue = None


class ConversationRequest(RequestModel):
    metadata: Metadata | None = None
    items: Annotated[LongItems[InputItem], Field(max_length=20)] | None = None


class ConversationUpdate(RequestModel):
    metadata: Metadata


class ConversationItemsRequest(RequestModel):
    items: Annotated[LongItems[InputItem], Field(min_length=1, max_length=20)]


class InputTokensRequest(RequestModel):
    """A call of `/v1/responses` of which only the size matters; its other parameters are not checked."""

    model_config = ConfigDict(extra="ignore", strict=True)

    input: JsonValue = None
    instructions: Text | None = None
    tools: JsonValue = None
    previous_response_id: ShortText | None = None


class InputTokens(Reply):
    object: Literal["response.input_tokens"]
    input_tokens: int


# ---- responses ----


class ModelObject(Reply):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelObjectList(Reply):
    object: Literal["list"]
    data: list[ModelObject]


class ItemObject(Reply):
    type: str


class ResponseObject(Reply):
    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["queued", "in_progress", "completed", "incomplete", "cancelled", "failed"]
    model: str
    output: list[ItemObject]
    error: dict[str, Any] | None
    usage: dict[str, Any] | None


class DeletedObject(Reply):
    id: str
    object: str
    deleted: bool


class InputItemList(Reply):
    object: Literal["list"]
    data: list[ItemObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class StoredCompletionList(Reply):
    object: Literal["list"]
    data: list[dict[str, Any]]
    has_more: bool


class ChatChoice(Reply):
    index: int
    finish_reason: str
    message: dict[str, Any]


class ChatCompletion(Reply):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: dict[str, Any]


class EmbeddingList(Reply):
    object: str
    data: list[dict[str, Any]]


class ConversationObject(Reply):
    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, Any]


class ErrorFields(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    error: ErrorFields


_ERROR: Final = ResponseInfo("The request was refused or failed.", OpenAIError)
ERRORS: Final[Responses] = {"4XX": _ERROR, "5XX": _ERROR}
