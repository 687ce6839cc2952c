"""Connects a command to its data: through the running server, or through a server in this process if none is running.
The commands that change the keyring (`cli.credentials`), `doctor`, `migrate-store` and `bench` open the files
themselves.

The second serves the same app on a Unix socket in a private directory while the command runs, so each command has one
implementation and nobody else can connect. A server is running if `server.json` names one that
answers. If one runs all the same, it holds the lock of the data directory, and the second way fails.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import quote

import anyio

from holdfast.cli.exit_codes import CommandError, ConnectionLostError, ExitCode, ServerRefusedError
from holdfast.core.errors import DataDirInUseError, first_error
from holdfast.server_file import SERVER_FILE, ServerAddress, read_server_file

if TYPE_CHECKING:
    from holdfast.app.agents import BuildAgents
    from holdfast.cli.http_client import ApiClient
    from holdfast.config import Config

T = TypeVar("T")

RECONNECT_TIMEOUT: Final = 120.0  # Seconds to wait for a lost server to come back
_READY_TIMEOUT: Final = 5.0
_RECONNECT_PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.5)


def api_path(*names: str) -> str:
    """`/api/…` with each name quoted, so that user input cannot reach another path."""
    return "/".join(["/api", *(quote(name, safe="") for name in names)])


class CommandServerPurpose(Enum):
    """What a command needs a server in its own process for. Only with RUNS does that server execute anything: otherwise
    queued and waiting runs stay as they are for the next real server."""

    DATA = "data"
    MODELS = "models"
    RUNS = "runs"


class ServerConnection:
    """A client that finds its server again after a restart, even at another address."""

    def __init__(self, client: "ApiClient", server_file: Path, note: Callable[[str], None]) -> None:
        self.client = client
        self._server_file = server_file
        self._note = note

    async def reconnect(self, reason: ConnectionLostError) -> None:
        """Returns when the server answers again. Raises ConnectionLostError after `RECONNECT_TIMEOUT`."""
        if self.client.address.socket is not None:
            raise reason  # a server in this process does not come back
        if await _answers(self.client, "/readyz", _READY_TIMEOUT):
            self._note("Connection lost. Reconnected.")
            return
        self._note("Connection to the server lost. Reconnecting …")
        with anyio.move_on_after(RECONNECT_TIMEOUT):
            for attempt in range(10_000):
                address = read_server_file(self._server_file)
                if address is not None:
                    self.client.address = address
                    if await _answers(self.client, "/readyz", _READY_TIMEOUT):
                        self._note("Reconnected.")
                        return
                await anyio.sleep(_RECONNECT_PAUSES[min(attempt, len(_RECONNECT_PAUSES) - 1)])
        raise ConnectionLostError(f"{reason} It did not come back within {RECONNECT_TIMEOUT:g} seconds.")


async def _answers(client: "ApiClient", path: Literal["/healthz", "/readyz"], within: float | None = None) -> bool:
    """Whether a Holdfast server answers: after a crash another program may have taken its port. It is healthy while it
    starts or stops, and ready when it accepts calls."""
    with anyio.move_on_after(within):
        try:
            answer = await client.call("GET", path)
        except (ConnectionLostError, ServerRefusedError):
            return False
        return isinstance(answer, dict) and answer.get("status") == "ok"
    return False


async def run_with_connection(
    config: "Config",
    build_agents: "Callable[[CommandServerPurpose], BuildAgents]",
    work: Callable[[ServerConnection], Awaitable[T]],
    note: Callable[[str], None],
    *,
    creates: bool = False,
    purpose: CommandServerPurpose = CommandServerPurpose.DATA,
) -> T:
    """Does the work with a connection. Unless it `creates` data, an empty data directory is an error."""
    file = config.data_dir / SERVER_FILE
    address = read_server_file(file)
    if address is not None:
        async with _client(address) as client:
            if await _answers(client, "/healthz"):
                return await work(ServerConnection(client, file, note))
    if not creates and not config.has_data:
        raise CommandError(
            f"No data in {config.data_dir}. Choose another directory with --data-dir, or start with `holdfast chat`."
        )
    return await _serve_and_work(config, build_agents, purpose, work, note)


async def find_running_server(config: "Config") -> ServerAddress | None:
    """The address of the server that has the data directory, if one answers."""
    address = read_server_file(config.data_dir / SERVER_FILE)
    if address is None:
        return None
    async with _client(address) as client:
        return address if await _answers(client, "/healthz", _READY_TIMEOUT) else None


async def ask_running_server(config: "Config", path: str, method: str = "GET") -> Any:
    """The running server's answer, or None if none is running."""
    address = read_server_file(config.data_dir / SERVER_FILE)
    if address is None:
        return None
    async with _client(address) as client:
        return await client.call(method, path) if await _answers(client, "/healthz", _READY_TIMEOUT) else None


def _client(address: ServerAddress) -> "ApiClient":
    from holdfast.cli.http_client import ApiClient  # `serve` imports this module, but needs no HTTP client

    return ApiClient(address)


async def _serve_and_work(
    config: "Config",
    build_agents: "Callable[[CommandServerPurpose], BuildAgents]",
    purpose: CommandServerPurpose,
    work: Callable[[ServerConnection], Awaitable[T]],
    note: Callable[[str], None],
) -> T:
    """Raises CommandError if another process has the data directory."""
    from holdfast.app import lifecycle  # its imports take longer than most commands

    if purpose is not CommandServerPurpose.RUNS:
        config = config.model_copy(update={"max_runs": 0})
    results: list[T] = []
    failures: list[Exception] = []
    stop = anyio.Event()
    try:
        async with anyio.create_task_group() as tasks:
            address = await tasks.start(lifecycle.serve_command, config, build_agents(purpose), stop)
            try:
                async with _client(address) as client:
                    results.append(await work(ServerConnection(client, config.data_dir / SERVER_FILE, note)))
            except Exception as error:  # noqa: BLE001  raised below: raising it here would cancel the server
                failures.append(error)
            stop.set()
    except ExceptionGroup as group:
        cause = first_error(group)
        if isinstance(cause, DataDirInUseError):
            text = f"{cause} Its server does not answer; it may be starting or stopping. Try again in a moment."
            raise CommandError(text, ExitCode.IN_USE) from None
        raise cause from None
    if failures:
        raise failures[0]
    return results[0]
