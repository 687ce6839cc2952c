"""The shell tool. Not a sandbox: a command may do what the server's user may do, which is why it asks.

The command runs under a nanny process (`nanny.py`), which ends all that the command started when it is over, cancelled,
out of time, or when this process dies.
"""

import codecs
import os
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from subprocess import STDOUT
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, Process

from holdfast.agents.environment import without_secrets
from holdfast.agents.models.port import ToolSpec
from holdfast.agents.tools.port import ToolContext, ToolResult, Traits
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

_NANNY: Final = str(Path(__file__).with_name("nanny.py"))


@dataclass(frozen=True, slots=True)
class ShellLimits:
    timeout: float = 120.0
    max_timeout: float = 540.0
    """Below the engine's limit for a run that produces nothing."""
    shown: int = 64_000
    """Characters that are shown while the command runs."""
    kept: int = 40_000
    """Characters of the result: half from the beginning, half from the end."""
    flood: int = 20_000_000
    """Output after which the command is ended."""
    ending: float = 5.0
    """How long the end of its processes is waited for."""


@dataclass(slots=True)
class _Output:
    """What was printed: its head and its tail, and how much there was between."""

    half: int
    head: str = ""
    total: int = 0
    _tail: deque[str] = field(default_factory=deque)
    _tail_size: int = 0

    def add(self, text: str) -> None:
        self.total += len(text)
        room = self.half - len(self.head)
        self.head += text[:room]
        if rest := text[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= self.half:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        tail = "".join(self._tail)[-self.half :]
        left_out = self.total - len(self.head) - len(tail)
        return self.head + (f"\n[… {left_out} characters left out …]\n" if left_out else "") + tail


@dataclass(frozen=True, slots=True)
class ShellTool:
    environment: Mapping[str, str]
    """What commands are given, after `without_secrets`."""
    limits: ShellLimits = field(default_factory=ShellLimits)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "shell",
            "Run a command with sh in the workspace. It has no input; what it leaves running is ended with it.",
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1},
                    "timeout": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "maximum": self.limits.max_timeout,
                        "description": f"Seconds; {self.limits.timeout:.0f} if not given.",
                    },
                },
                "required": ["command"],
                "additionalProperties": False,
            },
        )

    @property
    def traits(self) -> Traits:
        return Traits(rule="ask")

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        timeout: float = args.get("timeout", self.limits.timeout)
        printed = _Output(self.limits.kept // 2)
        read_end, line = os.pipe()
        try:
            process = await self._start(args["command"], context.workspace, read_end)
        except BaseException:
            os.close(line)
            raise
        finally:
            os.close(read_end)
        try:
            with anyio.move_on_after(timeout) as limit:
                flooded = await self._listen(process, printed, context)
            if limit.cancelled_caught:
                os.write(line, b"t")
                return _result(printed, f"stopped after {timeout:g} seconds", is_error=True)
            if flooded:
                return _result(printed, f"stopped: it printed more than {self.limits.flood} characters", is_error=True)
            return _result(printed, f"exit code {process.returncode}")
        finally:
            os.close(line)
            with anyio.CancelScope(shield=True):
                await self._end(process)

    async def _start(self, command: str, workspace: Path, line: int) -> Process:
        await anyio.Path(workspace).mkdir(mode=0o700, parents=True, exist_ok=True)
        return await anyio.open_process(
            [sys.executable, "-I", "-S", _NANNY, command],
            stdin=line,
            stderr=STDOUT,
            cwd=workspace,
            env=without_secrets(self.environment),
            start_new_session=True,
        )

    async def _listen(self, process: Process, printed: _Output, context: ToolContext) -> bool:
        """To the end of its output, and of itself. True: it printed too much to wait for that."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        stream: ByteReceiveStream | None = process.stdout
        assert stream is not None
        async for chunk in stream:
            text = decoder.decode(chunk)
            room = self.limits.shown - printed.total
            printed.add(text)
            if room > 0:
                await context.output(text[:room])
            if printed.total > self.limits.flood:
                return True
        await process.wait()
        return False

    async def _end(self, process: Process) -> None:
        """The line is closed: the nanny ends what there is. If it does not, it is ended itself."""
        with anyio.move_on_after(self.limits.ending):
            await process.wait()
        await process.aclose()


def _result(printed: _Output, how: str, *, is_error: bool = False) -> ToolResult:
    text = printed.text()
    gap = "" if not text or text.endswith("\n") else "\n"
    return ToolResult(f"{text}{gap}[{how}]", is_error)
