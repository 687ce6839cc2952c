"""`ApiContext`: the engine, the adapters and the limits that every route works with. The sizes and times of requests
are `ServerLimits`."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from anyio import CapacityLimiter

from holdfast.core.ids import SessionId
from holdfast.core.parts import Json
from holdfast.core.session import Session
from holdfast.core.size_text import MIB
from holdfast.engine.engine import Engine
from holdfast.ports.agent import Summarizer, Titler
from holdfast.ports.model import ModelInfo, ProviderCheck, ProviderStatus
from holdfast.ports.workspace import WorkspaceEditor, WorkspaceHistory, WorkspaceOrigin, Workspaces
from holdfast.server.authenticator import Authenticator
from holdfast.server.client_address import Network
from holdfast.server.event_stream import StreamLimits
from holdfast.server.schemas.agents import AgentOptionsResponse, AgentRequest, AgentResponse, AgentTestResponse
from holdfast.server.schemas.settings import McpPromptResponse, McpServerRequest, McpServerResponse, ToolResponse

BackupProgress = Callable[[str, int, int], None]
"""Called with a file, bytes done and bytes in total, on the thread that copies."""
MakeBackup = Callable[[Path, BackupProgress], Awaitable[Mapping[str, int]]]


class AvailableModels(Protocol):
    async def list(self, *, refresh: bool = False) -> Sequence[ModelInfo]:
        """All models. With `refresh`, every provider is asked first."""

    async def default(self) -> str | None: ...
    def providers(self) -> Sequence[ProviderStatus]:
        """The providers that are configured or can be."""

    async def knows(self, model: str) -> frozenset[str]:
        """The settings that this model accepts, and `tools`, `images` and `documents` if it accepts those.
        Raises NotFoundError for an unknown model."""

    async def embed(self, model: str, body: Mapping[str, Json]) -> bytes:
        """The provider's response to an embedding request. Raises AgentError with a message for people."""

    async def set_key(self, provider: str, key: str | None) -> str | None:
        """Stores the key in the keyring or removes it; the next answer uses it. Returns why a key could not be
        verified. Raises InvalidInputError for an unknown provider or a key that the provider rejects, NotAllowedError
        for a key that the keyring does not hold."""

    async def discover(self) -> Sequence[ProviderCheck]:
        """Asks the configured providers and the usual servers on this machine for their models, now. Servers that are
        not running are left out."""

    async def connect(
        self, provider: str | None, address: str | None, key: str | None, name: str | None
    ) -> ProviderCheck:
        """Tests a known provider with a key, or a server at an address, and stores it if it has models. `name`: of a
        server that is not stored yet. Raises InvalidInputError and QuotaExceededError."""

    @property
    def download_size(self) -> int | None:
        """Bytes to download before the small local model can run; None if it can, or cannot run here."""

    async def download(self, report: Callable[[int, int], None]) -> None:
        """Downloads it and reports (bytes done, bytes in total), on another thread. Raises HoldfastError."""

    async def remove(self, name: str) -> None:
        """Removes a server that `connect` stored. Raises NotFoundError."""

    async def set_images(self, name: str, images: bool) -> None:
        """Whether models of a server that `connect` stored are sent images even if it does not say that they can see
        them. Raises NotFoundError."""


class AgentPrograms(Protocol):
    """The agents that run as programs of their own."""

    async def list(self) -> Sequence[AgentResponse]: ...
    async def test(self, name: str) -> AgentTestResponse:
        """Starts the program, asks for its name and version, and opens a session. Raises NotFoundError, or
        QuotaExceededError if too many are tested."""

    async def put(self, name: str, agent: AgentRequest) -> None:
        """Takes effect with the next run. Raises InvalidInputError."""

    async def drop(self, name: str) -> None:
        """Raises NotFoundError, or NotAllowedError for an agent that the configuration file names."""

    def allowed_directories(self) -> Sequence[str]: ...
    async def resolve_directory(self, path: str) -> str:
        """The directory without links. Raises InvalidInputError if agents may not work there."""

    async def directory(self, session: Session) -> tuple[Path, WorkspaceOrigin] | None:
        """Where the session's program works, and who decided that; None for the session's own directory. Raises
        InvalidInputError if it may not work there."""

    async def options(self, name: str, session: Session | None) -> AgentOptionsResponse:
        """What the program offers in the session, or in a new one. Raises NotFoundError."""

    async def apply_options(self, sid: SessionId, agent: str, chosen: Mapping[str, str | bool]) -> None:
        """Tells the session's program, if it is running, what was chosen, before it is stored. Raises InvalidInputError
        if it refuses."""


class ToolAdmin(Protocol):
    """Lists, tests and changes the models, tools and MCP servers of the agents."""

    async def try_model(self, model: str) -> str:
        """Returns a short answer of the model. Raises AgentError with a message for people."""

    async def tools(self) -> Sequence[ToolResponse]: ...
    async def servers(self) -> Sequence[McpServerResponse]: ...
    async def try_server(self, name: str) -> Sequence[str]:
        """Connects and returns the names of the server's tools. Raises NotFoundError or AgentError."""

    async def prompts(self) -> Sequence[McpPromptResponse]:
        """The prompts of all servers that can be reached."""

    async def get_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt. Raises NotFoundError or AgentError."""

    async def start_sign_in(self, server: str, redirect_uri: str) -> str:
        """The address of the page where a person allows access. Raises NotFoundError or AgentError."""

    async def finish_sign_in(self, state: str, code: str | None, issuer: str | None, error: str | None) -> str:
        """The server whose tokens are stored now. Raises AgentError."""

    async def sign_out(self, server: str) -> None:
        """Removes the tokens of a server."""

    async def put_server(self, name: str, server: McpServerRequest) -> None:
        """Takes effect with the next run. Raises InvalidInputError."""

    async def drop_server(self, name: str) -> None:
        """Raises NotFoundError, or NotAllowedError for a server that the configuration file names."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    max_body: int = 8 * MIB
    max_file: int = 50 * MIB  # `max_file_mb` of the configuration; all files that a call names by URL share it
    fetch_seconds: float = 60.0  # For all files that a call names by URL
    streams: StreamLimits = field(default_factory=StreamLimits)


@dataclass(frozen=True, slots=True)
class ApiContext:
    engine: Engine
    authenticator: Authenticator
    agents: Sequence[tuple[str, bool, bool]]  # Names of the built-in ones, whether each can resume a run and be steered
    models: AvailableModels | None = None
    programs: AgentPrograms | None = None
    workspaces: Workspaces | None = None
    workspace_editor: WorkspaceEditor | None = None
    workspace_history: WorkspaceHistory | None = None
    measure_context: Callable[[SessionId], Awaitable[tuple[str, int, int | None]]] | None = None
    """Of a session: its model, the estimated tokens in its context, and the model's limit."""
    summarizer: Callable[[SessionId], Awaitable[Summarizer]] | None = None
    titler: Callable[[Session], Awaitable[Titler]] | None = None  # None: titles are made of the first words
    tool_admin: ToolAdmin | None = None
    backup: MakeBackup | None = None  # None if the storage has its own backup tools
    confirm_memories: bool = False  # Whether facts are used only after a person confirmed them
    fetch_file: "Callable[[str, int], Awaitable[tuple[str, str, bytes]]] | None" = None
    """Fetches a file of at most so many bytes that a request names by URL: its name, declared media type and contents.
    Raises ToolError. None: URLs are not fetched."""
    cors_origins: Sequence[str] = ()  # Origins whose pages may call the APIs below `/v1`
    trusted_proxies: tuple[Network, ...] = ()  # Proxies whose `X-Forwarded-For` header is trusted
    root_path: str = ""  # The path below which a reverse proxy publishes the server, such as `/holdfast`
    password_needed: bool = False  # Whether requests are refused until a password is set: `access_rules.needs_password`
    limits: ServerLimits = field(default_factory=ServerLimits)
    data_dir: Path | None = None  # Where imports are received; None: the system's directory for temporary files
    request_counts: "Counter[tuple[str, int]]" = field(default_factory=Counter)  # By method and status
    import_limiter: CapacityLimiter = field(default_factory=partial(CapacityLimiter, 4))
    """Imports that are read or stored at a time: however many are uploaded, they leave threads and memory to everything
    else."""
