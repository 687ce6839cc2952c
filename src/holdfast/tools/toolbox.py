"""Selects the tools of a turn: the built-in ones and those of MCP servers, filtered by the session's settings."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from holdfast.core.parts import Json
from holdfast.ports.agent import Turn
from holdfast.ports.tool import Tool
from holdfast.tools.fetch.tool import FetchTool
from holdfast.tools.shell import ShellTool
from holdfast.tools.workspace.file_tools import file_tools


@dataclass(frozen=True, slots=True)
class Toolbox:
    builtin: Sequence[Tool]
    mcp_tools: Callable[[Turn], Awaitable[Sequence[Tool]]]

    async def __call__(self, turn: Turn) -> Sequence[Tool]:
        """Applies `settings.tools` of the run, or else of the session: true or absent for all, false for none, or a
        list of names."""
        settings = (each for each in (turn.run.settings, turn.session.settings) if isinstance(each, dict))
        setting: Json = next((each["tools"] for each in settings if each.get("tools") is not None), True)
        if setting is False:
            return ()
        tools = {tool.spec.name: tool for tool in (*await self.mcp_tools(turn), *self.builtin)}  # built-in names win
        if not isinstance(setting, list):
            return tuple(tools.values())
        return tuple(tool for name, tool in tools.items() if name in setting)


def builtin_tools(shell: ShellTool) -> tuple[Tool, ...]:
    """Files, shell and fetch."""
    return (*file_tools(), shell, FetchTool())
