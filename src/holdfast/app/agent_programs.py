"""Agents that run as programs: those in the configuration, and those that are found on the PATH."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from holdfast.agents.acp.agent import AcpAgent
from holdfast.agents.acp.pool import AgentPool
from holdfast.agents.acp.program import KNOWN, AcpLimits, AgentProgram
from holdfast.app.late_engine import LateEngine
from holdfast.app.storage import WORKSPACES
from holdfast.config import AgentSection, Config
from holdfast.core.errors import NotFoundError
from holdfast.core.session import Message
from holdfast.ports.agent import AgentError, Turn
from holdfast.server.schemas.models import AgentTestResponse
from holdfast.system import SystemClock


def agent_programs(config: Config) -> dict[str, AgentProgram]:
    """By name. What the configuration says about a known program replaces its defaults."""
    return {**KNOWN, **{name: _configured(name, section) for name, section in config.agents.items()}}


def _configured(name: str, section: AgentSection) -> AgentProgram:
    program = KNOWN.get(name, AgentProgram(name, section.command or name))
    changes: dict[str, Any] = {"env": {key: value.get_secret_value() for key, value in section.env.items()}}
    if section.command is not None:
        changes |= {"command": section.command, "args": tuple(section.args or ())}
    elif section.args is not None:
        changes["args"] = tuple(section.args)
    if section.cwd is not None:
        changes["cwd"] = Path(section.cwd).expanduser()
    if section.answer_within is not None:
        changes["answer_within"] = section.answer_within or None
    return replace(program, **changes)


@dataclass(frozen=True, slots=True)
class AppAgentPrograms:
    """`server.context.AgentPrograms`."""

    programs: Mapping[str, AgentProgram]
    pool: AgentPool
    workspaces: Path
    engine: LateEngine

    @classmethod
    def build(
        cls, config: Config, engine: LateEngine, environment: Mapping[str, str], limits: AcpLimits
    ) -> "AppAgentPrograms":
        return cls(agent_programs(config), AgentPool(environment, limits), config.data_dir / WORKSPACES, engine)

    def agents(self) -> dict[str, AcpAgent]:
        clock = SystemClock()
        return {
            name: AcpAgent(program, self.pool, self.engine, self.workspaces, clock.now, self._set_title)
            for name, program in self.programs.items()
        }

    async def problems(self) -> Mapping[str, str | None]:
        def check() -> Mapping[str, str | None]:
            return {name: program.missing(self.pool.environment) for name, program in self.programs.items()}

        return await to_thread.run_sync(check)

    async def test(self, name: str) -> AgentTestResponse:
        program = self.programs.get(name)
        if program is None:
            raise NotFoundError("agent", name)
        started = anyio.current_time()
        try:
            connection = await self.pool.start(program, program.cwd or self.workspaces)
        except AgentError as error:
            return AgentTestResponse(
                ok=False, reason=error.message, program=None, version=None, login=[], took_ms=_since(started)
            )
        connection.close()
        about = connection.info.get("agentInfo")
        found = about if isinstance(about, dict) else {}
        methods = [item for item in connection.info.get("authMethods") or () if isinstance(item, dict)]
        return AgentTestResponse(
            ok=True,
            reason=None,
            program=_text(found.get("title") or found.get("name")),
            version=_text(found.get("version")),
            login=[str(item.get("name") or item.get("id"))[:200] for item in methods[:20]],
            took_ms=_since(started),
        )

    async def _set_title(self, turn: Turn, title: str) -> None:
        await self.engine.engine.titles.generate(turn.session.id, _GivenTitle(title), turn.run.owner)


@dataclass(frozen=True, slots=True)
class _GivenTitle:
    text: str

    async def title(self, messages: Sequence[Message]) -> str:
        return self.text


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _since(started: float) -> int:
    return int((anyio.current_time() - started) * 1000)
