"""Which program an agent is, which ones are looked for on the PATH (`KNOWN`), and the limits of driving it: times to
start, cancel and idle, how many run at once. `agents.acp.pool` enforces the number and the idle time."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from holdfast.agents.acp.npx_cache import find_cached_program
from holdfast.core.child_environment import inherited_variables
from holdfast.core.size_text import MIB


@dataclass(frozen=True, slots=True)
class AgentProgram:
    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None  # None: the session's own workspace
    answer_within: float | None = None  # Seconds after which the program denies an unanswered question by itself
    adds_up_usage: bool = False  # Whether it reports the tokens of its process so far, not those of the turn
    says_errors: bool = False  # Whether it ends a turn that failed like any other, only without usage
    install: str = ""  # How to get it
    package: str = ""  # On npm

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        return {**inherited_variables(inherited), **self.env}

    def find(self, inherited: Mapping[str, str]) -> list[str] | None:
        """The command that starts it, or None. A program of npm's registry that is not on the PATH may have been
        downloaded by npx. Blocks."""
        environment = self.environment(inherited)
        if shutil.which(self.command, path=environment.get("PATH")) is not None:
            return [self.command, *self.args]
        if not self.package or os.sep in self.command:
            return None
        cached = find_cached_program(self.package, self.command, {**inherited, **environment})
        return None if cached is None else [cached, *self.args]

    @property
    def missing(self) -> str:
        """Why there is nothing to start."""
        if os.sep not in self.command:
            return f"{self.command} was not found on the PATH. {self.install}".strip()
        exists = Path(self.command).is_file()
        problem = "The program {} cannot be executed." if exists else "There is no program at {}."
        return problem.format(self.command)

    def npx_command(self, inherited: Mapping[str, str]) -> list[str] | None:
        """The command that would download and start it, if it is on npm and npx is here."""
        if not self.package or shutil.which("npx", path=self.environment(inherited).get("PATH")) is None:
            return None
        return ["npx", "-y", self.package, *self.args]


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """How a program that was found is started."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class AcpLimits:
    startup: float = 60.0  # Seconds from the start of the program to its first answer
    load: float = 90.0  # Seconds to load a session, which replays it
    cancel_grace: float = 2.0  # Seconds that a cancelled turn has to end before the program is ended
    idle: float = 600.0  # Seconds that an unused program is kept
    max_programs: int = 8
    max_tests: int = 3  # Programs that are tested at once, besides those of sessions
    test: float = 60.0  # Seconds for a whole test
    max_line: int = 32 * MIB
    max_waiting: int = 1000  # Updates that are received and not yet journaled
    max_open_calls: int = 1000  # Tools that a turn has begun and not ended


KNOWN: Final[Mapping[str, AgentProgram]] = {
    program.name: program
    for program in (
        AgentProgram(
            "hermes",
            "hermes",
            ("acp",),
            answer_within=60.0,
            adds_up_usage=True,
            says_errors=True,
            install="Install it with `pip install 'hermes-agent[acp]'`.",
        ),
        AgentProgram(
            "claude",
            "claude-agent-acp",
            install="Install it with `npm install -g @agentclientprotocol/claude-agent-acp`.",
            package="@agentclientprotocol/claude-agent-acp",
        ),
        AgentProgram(
            "codex",
            "codex-acp",
            install="Install it with `npm install -g @agentclientprotocol/codex-acp`.",
            package="@agentclientprotocol/codex-acp",
        ),
        AgentProgram(
            "gemini",
            "gemini",
            ("--acp",),
            install="Install it with `npm install -g @google/gemini-cli`.",
            package="@google/gemini-cli",
        ),
        AgentProgram(
            "opencode",
            "opencode",
            ("acp",),
            install="Install it with `npm install -g opencode-ai`.",
            package="opencode-ai",
        ),
        AgentProgram("goose", "goose", ("acp",), install="See https://block.github.io/goose."),
    )
}
"""Programs that are found on the PATH, or among the downloads of npx, without being configured."""
