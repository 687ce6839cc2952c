"""The server's settings, provider keys, tools with their grants, and MCP servers. What a tool rule does:
`tools.approval_policy`."""

from typing import Annotated, Literal

from pydantic import Field

from holdfast.ports.tool import Rule
from holdfast.server.schemas.base import ListResponse, Name, RequestModel, ResponseModel, Timestamp

VariableName = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
HeaderName = Annotated[str, Field(pattern="^[A-Za-z0-9-]{1,100}$")]
ToolPattern = Annotated[str, Field(pattern=r"^([A-Za-z0-9_.*?-]|\[!?[A-Za-z0-9_.-]+\])+$", max_length=200)]
HeaderValue = Annotated[str, Field(pattern=r"^[\x20-\x7e]{0,4000}$")]


class UpdateSettingsRequest(RequestModel):
    """Only the given fields change."""

    default_model: Name | None = None
    tools: Annotated[
        dict[ToolPattern, Rule],
        Field(max_length=500, description="All rules, by a tool's name or a pattern such as `github__*`."),
    ] = Field(default_factory=dict)


class ProviderKeyRequest(RequestModel):
    key: Annotated[str, Field(min_length=1, max_length=1000)]


class ProviderKeyResponse(ResponseModel):
    verified: Annotated[bool, Field(description="Whether the provider accepted the key.")]
    reason: Annotated[str | None, Field(description="Why the key could not be verified.")]


class ConnectProviderRequest(RequestModel):
    """A known provider and its key, or the address of a server. The ids of a server's models begin with its `name`; by
    default that is made of the address. A server that was added before keeps its name."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)] | None = None
    provider: Name | None = None
    base_url: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    key: Annotated[str, Field(min_length=1, max_length=1000)] | None = None


class UpdateProviderRequest(RequestModel):
    """Changes a server that was added through the API."""

    images: bool


class ProviderCheckResponse(ResponseModel):
    name: str
    title: str
    base_url: str
    models: Annotated[list[str], Field(description="Names of its models, at most 200.")]
    reason: Annotated[str | None, Field(description="Why there are none, and what to do.")]


class ProviderCheckListResponse(ListResponse[ProviderCheckResponse]): ...


class SetupResponse(ResponseModel):
    needed: Annotated[bool, Field(description="Whether to offer connecting a model before the first chat.")]
    download_size: Annotated[int | None, Field(description="Bytes of the small local model, if it can be downloaded.")]


class RevokeGrantRequest(RequestModel):
    tool: Name
    scope: Annotated[str, Field(max_length=1000)] = ""


class GrantResponse(ResponseModel):
    tool: str
    scope: str
    created_at: Timestamp


class ProviderResponse(ResponseModel):
    name: str
    title: str
    has_key: bool
    base_url: Annotated[str, Field(description="The address to which the key is sent.")]
    key_source: Literal["settings", "file", "environment"] | None
    key_variable: Annotated[str | None, Field(description="The environment variable that holds the key.")]
    added: Annotated[bool, Field(description="Whether it was added through the API, and can be removed.")]
    images: Annotated[bool, Field(description="Whether models get images even if the server does not say they can.")]


class SettingsResponse(ResponseModel):
    default_model: str | None
    tools: dict[str, Rule]
    grants: list[GrantResponse]
    providers: list[ProviderResponse]
    password_set: bool
    memory: Annotated[bool, Field(description="Whether this server has a memory.")]
    data_dir: Annotated[str | None, Field(description="Where the data is; null if it is in PostgreSQL.")]
    version: str


# ---- tools and MCP servers ----


class McpServerRequest(RequestModel):
    """A command to start, or the URL of a remote server."""

    command: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    args: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=50)] = Field(default_factory=list)
    env: Annotated[
        dict[VariableName, Annotated[str, Field(max_length=10_000)] | None] | None,
        Field(
            max_length=50,
            description="Environment variables of the command. They are stored and never returned; null keeps a value.",
        ),
    ] = None
    cwd: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    url: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    headers: Annotated[
        dict[HeaderName, HeaderValue | None] | None,
        Field(
            max_length=50,
            description="Further headers of requests. They are stored and never returned; null keeps a value.",
        ),
    ] = None
    token: Annotated[
        Annotated[str, Field(min_length=1, max_length=1000)] | None,
        Field(description="Sent as `Authorization: Bearer …`. It is stored and never returned."),
    ] = None


class ShellSandboxResponse(ResponseModel):
    """How commands of the shell tool are confined."""

    active: Annotated[bool, Field(description="Whether commands run in bubblewrap.")]
    network: Annotated[bool, Field(description="Whether commands can use the network.")]
    reason: Annotated[str | None, Field(description="Why there is no sandbox.")]


class ToolResponse(ResponseModel):
    name: str
    description: str
    rule: Rule  # The default, for a tool without a rule in the settings
    server: str | None  # The MCP server that provides the tool
    sandbox: ShellSandboxResponse | None = None  # Of the shell tool only


class ToolListResponse(ListResponse[ToolResponse]): ...


class McpServerResponse(ResponseModel):
    name: str
    kind: Literal["stdio", "http"]
    target: str  # The command line, or the URL
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    editable: bool  # True if it was added through the API, false if the configuration file names it
    cwd: str | None = None
    env: list[str] = Field(default_factory=list)  # Names of variables; their values are never returned
    headers: list[str] = Field(default_factory=list)  # Names
    has_token: bool = False  # Whether an access token is stored
    can_sign_in: Annotated[bool, Field(description="Whether OAuth can be used: no access token is set.")] = False
    signed_in: Annotated[bool, Field(description="Whether tokens of OAuth are stored.")] = False
    connected: bool
    failure: str | None
    stderr: Annotated[str | None, Field(description="The end of the error output of a command.")] = None


class McpServerListResponse(ListResponse[McpServerResponse]): ...


class McpSignInResponse(ResponseModel):
    authorization_url: Annotated[str, Field(description="The page to open in the user's browser.")]


class McpPromptArgumentResponse(ResponseModel):
    name: str
    description: str
    required: bool


class McpPromptResponse(ResponseModel):
    server: str
    name: str
    description: str
    arguments: list[McpPromptArgumentResponse]


class McpPromptListResponse(ListResponse[McpPromptResponse]): ...


class McpPromptRequest(RequestModel):
    prompt: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: Annotated[
        dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=20_000)]], Field(max_length=20)
    ] = Field(default_factory=dict)


class McpPromptTextResponse(ResponseModel):
    text: str


class McpServerTestResponse(ResponseModel):
    ok: bool
    reason: str | None
    tools: list[str]
