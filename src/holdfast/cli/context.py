"""What every command receives: the terminal, and access to its data. `holdfast.app` is imported only by the commands
that need it, because importing the web server takes longer than `holdfast --help`."""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
import typer

from holdfast.cli.exit_codes import ExitCode, exit_code_of
from holdfast.cli.server_connection import CommandServerPurpose, ServerConnection, api_path, run_with_connection
from holdfast.cli.terminal import Terminal
from holdfast.core.errors import HoldfastError, first_error
from holdfast.ports.agent import Agent

if TYPE_CHECKING:
    from holdfast.app.agents import BuildAgents
    from holdfast.config import Config, LoadedConfig

T = TypeVar("T")
TestAgents = Callable[["Config"], Mapping[str, Agent]]  # Agents that tests use in place of the real ones

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Data directory. Default: ~/.local/share/holdfast", metavar="DIR"),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file. Default: holdfast.toml in the data directory", metavar="FILE"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Output JSON.")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of items.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Session ID.")]


@dataclass(frozen=True, slots=True)
class CliContext:
    agents: TestAgents | None = None
    terminal: Terminal = field(default_factory=Terminal)

    def load_config(self, data_dir: Path | None, file: Path | None = None, **flags: Any) -> "LoadedConfig":
        from holdfast import config  # imports pydantic, which `--help` does not need

        with self.report_errors():
            return config.load({"data_dir": data_dir, **flags}, home=Path.home(), file=file)
        raise AssertionError("unreachable")

    def config(self, data_dir: Path | None, file: Path | None = None, **flags: Any) -> "Config":
        return self.load_config(data_dir, file, **flags).config

    @contextmanager
    def report_errors(self) -> Iterator[None]:
        """Prints an error in one line and exits with its code. Errors that are bugs pass through."""
        try:
            yield
        except (HoldfastError, ExceptionGroup) as error:
            cause = first_error(error)
            if not isinstance(cause, HoldfastError):
                raise
            self.terminal.error(str(cause))
            raise typer.Exit(exit_code_of(cause)) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            # The reader of our output has closed its pipe. Python would fail again when it flushes stdout at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(ExitCode.OK) from None

    def build_agents(self, purpose: CommandServerPurpose = CommandServerPurpose.RUNS) -> "BuildAgents":
        """The agents of a server in this process."""
        from holdfast.app.agents import AgentServices, build_agents, read_only_agents
        from holdfast.app.memory import MemoryProviderTable

        agents = self.agents
        if purpose is CommandServerPurpose.DATA:
            return read_only_agents
        if agents is None:
            return partial(build_agents, environment=os.environ, home=Path.home())
        return lambda config, _, engine: AgentServices(agents(config), memory=MemoryProviderTable(config, {}, engine))

    def with_server(self, config: "Config", work: Callable[[ServerConnection], Awaitable[T]], **options: Any) -> T:
        """Does the work through the running server, or through one in this process. `options` are those of
        `run_with_connection`."""
        with self.report_errors():
            return anyio.run(
                partial(run_with_connection, config, self.build_agents, work, self.terminal.note, **options)
            )
        raise AssertionError("unreachable")

    def call_api(self, config: "Config", method: str, *names: str, body: Any = None, **options: Any) -> Any:
        """Makes one API call and returns its JSON. `options` are those of `with_server`."""
        return self.with_server(
            config, lambda connection: connection.client.call(method, api_path(*names), body=body), **options
        )

    def list_api(self, config: "Config", name: str, params: Mapping[str, str | int], limit: int) -> list[Any]:
        """Reads at most `limit` items of a list."""

        async def work(connection: ServerConnection) -> list[Any]:
            return [item async for page in connection.client.pages(api_path(name), params, limit) for item in page]

        return self.with_server(config, work)
