"""Which tools a turn has: the built-in ones and those of MCP servers, filtered by `settings.tools` of the run or the
session. Whether a chat offers tools at all is a chat setting (`core.chat_settings`); whether a call needs approval:
`tools.approval_policy`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from holdfast.core.parts import Json
from holdfast.ports.agent import Turn
from holdfast.ports.tool import Tool
from holdfast.tools.ask_user import AskUserTool
from holdfast.tools.fetch.tool import FetchTool
from holdfast.tools.shell import ShellTool
from holdfast.tools.workspace.file_tools import file_tools


@dataclass(frozen=True, slots=True)
class ToolSelection:
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
    """Files, shell, fetch and questions to the user."""
    return (*file_tools(), shell, FetchTool(), AskUserTool())
