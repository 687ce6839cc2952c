"""What tools are run with."""

from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from holdfast.core.parts import Json
from holdfast.ports.tool import Tool, ToolContext, ToolError, ToolResult
from holdfast.tools.schemas import argument_problem
from tests.harness import GUARD


@dataclass
class Bench:
    """A workspace and what tools print in it."""

    workspace: Path
    printed: list[str] = field(default_factory=list)
    news: anyio.Event = field(default_factory=anyio.Event)

    @property
    def context(self) -> ToolContext:
        async def output(text: str) -> None:
            self.printed.append(text)
            self.news.set()
            self.news = anyio.Event()

        return ToolContext(self.workspace, output)

    async def until(self, word: str, times: int) -> str:
        """Wait until a tool has printed the word so often; all that was printed."""
        with anyio.fail_after(GUARD):
            while (printed := "".join(self.printed)).count(word) < times:
                await self.news.wait()
        return printed

    async def run(self, tool: Tool, **args: Json) -> ToolResult:
        """As the loop runs it: arguments checked, failures told."""
        assert argument_problem(tool.spec.parameters, args) is None
        try:
            return await tool.run(args, self.context)
        except ToolError as error:
            return ToolResult(str(error), is_error=True)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "root" / "ses_1")
