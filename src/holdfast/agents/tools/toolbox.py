"""Which tools a turn has: those that come with Holdfast and those of MCP servers, less what the session leaves out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from holdfast.agents.tools.fetch.tool import FetchTool
from holdfast.agents.tools.port import Tool
from holdfast.agents.tools.shell import ShellTool
from holdfast.agents.tools.workspace.tools import file_tools
from holdfast.core.parts import Json
from holdfast.core.values import dataclass
from holdfast.ports import Turn


async def _none() -> Sequence[Tool]:
    return ()


@dataclass(frozen=True, slots=True)
class Toolbox:
    own: Sequence[Tool]
    more: Callable[[], Awaitable[Sequence[Tool]]] = _none
    """`McpServers.tools`."""

    async def __call__(self, turn: Turn) -> Sequence[Tool]:
        """`settings.tools` of the run, or else of the session: true or absent for all, false for none, or a list of
        names."""
        wanted = _setting(turn.run.settings, turn.session.settings)
        if wanted is False:
            return ()
        tools = {tool.spec.name: tool for tool in (*await self.more(), *self.own)}  # our own names win
        if not isinstance(wanted, list):
            return tuple(tools.values())
        return tuple(tool for name, tool in tools.items() if name in wanted)


def _setting(*settings: Json) -> Json:
    found = (each["tools"] for each in settings if isinstance(each, dict) and each.get("tools") is not None)
    return next(found, True)


def own_tools(environment: Mapping[str, str]) -> tuple[Tool, ...]:
    """Files, shell and fetch. `environment` is the server's: commands are given it without its secrets."""
    return (*file_tools(), ShellTool(environment), FetchTool())
