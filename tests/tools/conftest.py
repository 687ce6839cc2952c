"""What tools are run with."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.agents.tools.port import Tool, ToolContext, ToolFailed, ToolResult, Validator
from holdfast.core.parts import Json


@dataclass
class Bench:
    """A workspace and what tools print in it."""

    workspace: Path
    printed: list[str] = field(default_factory=list)

    @property
    def context(self) -> ToolContext:
        async def output(text: str) -> None:
            self.printed.append(text)

        return ToolContext(self.workspace, output)

    async def run(self, tool: Tool, **args: Json) -> ToolResult:
        """As the loop runs it: arguments checked, failures told."""
        assert Validator(tool.spec.parameters).problem(args) is None
        try:
            return await tool.run(args, self.context)
        except ToolFailed as error:
            return ToolResult(str(error), is_error=True)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "root" / "ses_1")
