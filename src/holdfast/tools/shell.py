"""The shell tool. Without a sandbox (`tools.shell_sandbox`) a command can do what the server's user can do, so it asks
first. Its time and output limits are here; whether it asks is decided by `tools.approval_policy`. Commands inherit the
environment variables that `core.child_environment` lists, and those that `[shell] env` of the configuration names."""

import codecs
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import anyio
from anyio import to_thread
from anyio.abc import Process

from holdfast.core.child_environment import inherited_variables
from holdfast.core.parts import Json
from holdfast.ports.model import ToolSpec
from holdfast.ports.tool import ToolContext, ToolResult, ToolTraits
from holdfast.tools.result_text import join_ends
from holdfast.tools.schemas import object_spec
from holdfast.tools.shell_sandbox import CommandRules, ShellSandbox
from holdfast.tools.supervised_process import open_supervised_process
from holdfast.tools.workspace.private_directory import create_private_directory


@dataclass(frozen=True, slots=True)
class ShellLimits:
    timeout: float = 120.0
    max_timeout: float = 540.0  # Below the engine's limit for a run without output
    max_live_output: int = 64_000  # Characters shown while the command runs
    max_result: int = 40_000  # Characters of the result: half from the beginning, half from the end
    max_output: int = 20_000_000  # Characters of output after which the command is stopped
    exit_timeout: float = 5.0  # Seconds to wait for its processes to end


@dataclass(slots=True)
class _Output:
    """The head and the tail of what was printed, and how much was in between."""

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
        return join_ends(self.head, left_out, tail) if left_out else self.head + tail


def _spec(limits: ShellLimits, sandbox: ShellSandbox) -> ToolSpec:
    network = "with network access" if sandbox.network else "without network access"
    sandboxed = f" It may run in a sandbox {network}, where only the workspace and /tmp are writable."
    where = "" if sandbox.mode == "off" else sandboxed
    seconds = {"type": "number", "exclusiveMinimum": 0, "maximum": limits.max_timeout}
    return object_spec(
        "shell",
        f"Run a shell command in the workspace. It gets no input, and its background processes are ended when it exits."
        f"{where}",
        {
            "command": {"type": "string", "minLength": 1},
            "timeout": {**seconds, "description": f"Seconds; default {limits.timeout:.0f}."},
        },
        "command",
    )


@dataclass(frozen=True, slots=True)
class ShellTool:
    environment: Mapping[str, str]  # The server's; `core.child_environment` decides which of it commands inherit
    limits: ShellLimits = field(default_factory=ShellLimits)
    sandbox: ShellSandbox = field(default_factory=lambda: ShellSandbox(mode="off"))
    variables: frozenset[str] = frozenset()  # Names of further variables that commands inherit
    spec: ToolSpec = field(init=False)
    traits: ClassVar = ToolTraits(rule="ask", runs_programs=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", _spec(self.limits, self.sandbox))

    @property
    def rules(self) -> CommandRules:
        return CommandRules(inherited_variables(self.environment, self.variables), self.sandbox)

    def scope(self, args: Mapping[str, Json]) -> str:
        return ""

    async def run(self, args: Mapping[str, Json], context: ToolContext) -> ToolResult:
        timeout: float = args.get("timeout", self.limits.timeout)
        output = _Output(self.limits.max_result // 2)
        await to_thread.run_sync(create_private_directory, context.workspace)
        words = ["/bin/sh", "-c", args["command"]]
        command, environment = await self.sandbox.wrap(words, context.workspace, self.rules.environment)
        async with open_supervised_process(
            command, context.workspace, environment, exit_timeout=self.limits.exit_timeout
        ) as child:
            with anyio.move_on_after(timeout) as limit:
                too_much = await self._read_output(child.process, output, context)
            if limit.cancelled_caught:
                child.extend_grace_period()
                return _result(output, f"stopped after {timeout:g} seconds", is_error=True)
            if too_much:
                reason = f"stopped: it printed more than {self.limits.max_output} characters"
                return _result(output, reason, is_error=True)
            return _result(output, f"exit code {child.process.returncode}")

    async def _read_output(self, process: Process, output: _Output, context: ToolContext) -> bool:
        """Reads until the process exits. Returns True if it printed too much to wait for that."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        assert process.stdout is not None
        async for chunk in process.stdout:
            text = decoder.decode(chunk)
            room = self.limits.max_live_output - output.total
            output.add(text)
            if room > 0:
                await context.output(text[:room])
            if output.total > self.limits.max_output:
                return True
        await process.wait()
        return False


def _result(output: _Output, status: str, *, is_error: bool = False) -> ToolResult:
    text = output.text()
    gap = "" if not text or text.endswith("\n") else "\n"
    return ToolResult(f"{text}{gap}[{status}]", is_error)
