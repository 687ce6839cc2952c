"""Agents that run as programs: those in the configuration, those that are found on the PATH (`KNOWN` in
`agents.acp.program`), and those that were added on the settings page. Where they may work: `agents.acp.directories`;
how many run: `agents.acp.pool`."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import to_thread

from holdfast.agents.acp.agent import AcpAgent
from holdfast.agents.acp.directories import DirectoryRules
from holdfast.agents.acp.pool import AgentPool
from holdfast.agents.acp.problem_text import login_methods
from holdfast.agents.acp.program import KNOWN, AcpLimits, AgentProgram
from holdfast.agents.acp.stored_state import AgentStateFiles, acp_session_links
from holdfast.agents.chat.workspaces import WORKSPACES
from holdfast.agents.gateway.client import GatewayLimits
from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.gateway_agents import GatewayAgents
from holdfast.app.run_changes import record_changes
from holdfast.app.stored_entries import with_entry, without_entry
from holdfast.app.stored_secrets import StoredSecrets
from holdfast.config import AgentSection, Config
from holdfast.core.errors import HoldfastError, InvalidInputError, NotAllowedError, NotFoundError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.parts import Json
from holdfast.core.session import Message, Session
from holdfast.ports.agent import Agent, AgentError, AgentOutput, Turn
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.workspace import WorkspaceOrigin
from holdfast.server.schemas.agents import AgentOptionsResponse, AgentRequest, AgentResponse, AgentTestResponse
from holdfast.system import SystemClock
from holdfast.tools.shell_sandbox import CommandRules

log = logging.getLogger("holdfast.agents")

_ENV_PREFIX: Final = "agent-env:"  # Before the agent's name, in the keyring
_SETTING: Final = "agents"
_MAX_ADDED: Final = 50
_ANNOUNCED_WITHIN: Final = 0.5  # Seconds after a session is opened in which programs name their commands
_OWN: Final = frozenset({"chat", "direct"})  # Names of the agents that are part of Holdfast


def agent_programs(config: Config) -> dict[str, AgentProgram]:
    """By name, without the agents behind a gateway. What the configuration says about a known program replaces its
    defaults."""
    found = {**KNOWN, **{name: _configured(name, section) for name, section in config.agents.items()}}
    return {name: program for name, program in found.items() if not _has_gateway(config, name)}


def _has_gateway(config: Config, name: str) -> bool:
    return name in config.agents and config.agents[name].url is not None


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


def _added(settings: Mapping[str, Json]) -> Mapping[str, Any]:
    found: Any = settings.get(_SETTING)
    return found or {}


def directory_rules(config: Config, home: Path) -> DirectoryRules:
    allowed = tuple(home if path == Path("~") else path for path in config.agent_directories)
    return DirectoryRules(allowed, (config.data_dir,), home)


@dataclass(frozen=True, slots=True)
class AppAgentPrograms:
    """`server.context.AgentPrograms`."""

    known: Mapping[str, AgentProgram]
    configured: frozenset[str]  # Names that holdfast.toml defines
    pool: AgentPool
    gateways: GatewayAgents
    workspaces: Path
    directories: DirectoryRules
    engine: EngineProxy
    secrets: StoredSecrets
    states: AgentStateFiles
    changing: anyio.Lock = field(default_factory=anyio.Lock)  # One change at a time: a setting and its secrets

    @classmethod
    def build(
        cls,
        config: Config,
        keys: KeyringStore,
        engine: EngineProxy,
        environment: Mapping[str, str],
        home: Path,
        commands: CommandRules,
        limits: AcpLimits,
        gateway_limits: GatewayLimits,
    ) -> "AppAgentPrograms":
        workspaces = config.data_dir / WORKSPACES
        return cls(
            agent_programs(config),
            frozenset(config.agents),
            AgentPool(environment, commands, limits),
            GatewayAgents.build(config, environment, gateway_limits),
            workspaces,
            directory_rules(config, home),
            engine,
            StoredSecrets(keys, _ENV_PREFIX),
            AgentStateFiles(workspaces),
        )

    # ---- which there are ----

    def find(self, name: str, settings: Mapping[str, Json]) -> AgentProgram | None:
        """A program that was added replaces a known one of the same name."""
        setting = _added(settings).get(name)
        if setting is None or name in self.configured:
            return self.known.get(name)
        program = KNOWN.get(name, AgentProgram(name, setting["command"]))
        cwd = setting.get("cwd")
        return replace(
            program,
            command=setting["command"],
            args=tuple(setting.get("args", ())),
            env=self.secrets.read(name),
            cwd=None if cwd is None else Path(cwd).expanduser(),
        )

    async def _found(self, name: str) -> AgentProgram:
        program = self.find(name, await self._settings())
        if program is None:
            raise NotFoundError("agent", name)
        return program

    async def list(self) -> Sequence[AgentResponse]:
        settings = await self._settings()
        names = [*self.known, *(name for name in _added(settings) if name not in self.known)]
        programs = [program for name in names if (program := self.find(name, settings)) is not None]
        editable = _added(settings).keys() - self.configured
        described = await to_thread.run_sync(
            lambda: [self._describe(program, program.name in editable) for program in programs]
        )
        return [*described, *await self.gateways.list()]

    def _describe(self, program: AgentProgram, editable: bool) -> AgentResponse:
        command = program.find(self.pool.environment)
        missing = None if command is not None else program.missing
        problem = None if missing is not None else self.pool.problem(program)
        return AgentResponse(
            name=program.name,
            can_continue=True,
            is_program=True,
            available=missing is None and problem is None,
            reason=missing or problem,
            test_failed=problem is not None,
            command=command or [program.command, *program.args],
            cwd=None if program.cwd is None else str(program.cwd),
            env=sorted(program.env),
            editable=editable,
            npx_command=None if missing is None else program.npx_command(self.pool.environment),
        )

    async def _settings(self) -> Mapping[str, Json]:
        return await self.engine.engine.preferences.settings(LOCAL)

    def agent(self, name: str, settings: Mapping[str, Json]) -> Agent | None:
        if name in self.gateways.by_name:
            return self.gateways.agent(name, self.engine, self.workspaces)
        program = self.find(name, settings)
        return None if program is None else self._acp_agent(program)

    def _acp_agent(self, program: AgentProgram) -> AcpAgent:
        places = (self.workspaces, self.directories)
        return AcpAgent(
            program,
            self.pool,
            self.engine,
            *places,
            SystemClock().now,
            self.states,
            self._set_title,
            partial(record_changes, self.workspaces.parent),
        )

    async def _set_title(self, turn: Turn, title: str) -> None:
        """The answer is complete, with or without a title."""
        titles = self.engine.engine.titles
        generate = partial(titles.generate, turn.session.id, _GivenTitle(title), turn.run.owner)
        try:
            await self.engine.retry_storage(generate)
        except HoldfastError as error:
            log.info("session %s got no title: %s", turn.session.id, error)

    # ---- changing them ----

    async def put(self, name: str, agent: AgentRequest) -> None:
        if name in _OWN:
            raise InvalidInputError("name", f"{name!r} is the name of a built-in agent; choose another name")
        if name in self.configured:
            raise InvalidInputError("name", f"{name!r} is defined in holdfast.toml; change it there")
        setting: Any = agent.model_dump(include={"command", "args", "cwd"}, exclude_none=True)
        async with self.changing:
            before = _added(await self._settings()).get(name, {})
            if [before.get("command"), before.get("args")] != [agent.command, agent.args]:
                await self.secrets.write(name, {})  # first, so that the new program never gets the old one's secrets
            env = None if agent.env is None else self.secrets.merge("env", name, agent.env)
            put = partial(with_entry, name=name, entry=setting, limit=_MAX_ADDED, kind="agents")
            await self.engine.engine.preferences.update(_SETTING, put)
            if env is not None:
                await self.secrets.write(name, env)

    async def drop(self, name: str) -> None:
        if name in self.configured:
            raise NotAllowedError("remove it", "it is defined in holdfast.toml; remove it there")
        async with self.changing:
            await self.engine.engine.preferences.update(_SETTING, partial(without_entry, name=name, kind="agent"))
            await self.secrets.write(name, {})

    # ---- where they work, and what they offer ----

    def allowed_directories(self) -> Sequence[str]:
        return [str(path) for path in self.directories.allowed]

    async def resolve_directory(self, path: str) -> str:
        return str(await to_thread.run_sync(self.directories.resolve, path))

    async def directory(self, session: Session) -> tuple[Path, WorkspaceOrigin] | None:
        if session.agent in _OWN:
            return None
        if session.cwd is not None:
            return await to_thread.run_sync(self.directories.resolve, session.cwd), "chosen"
        program = self.find(session.agent, await self._settings())
        return None if program is None or program.cwd is None else (program.cwd, "agent")

    async def options(self, name: str, session: Session | None) -> AgentOptionsResponse:
        if name in self.gateways.by_name:
            return AgentOptionsResponse(options=[], commands=[])
        await self._found(name)
        offered = await self.states.read(name)
        running = None if session is None else self.pool.running(session.id)
        if running is not None and running.program.name == name:
            state = running.options.state
        else:
            state = offered
            for option, value in (session.agent_options if session is not None else {}).items():
                state = state.chosen(option, value)
        defaults = {option.id: option.value for option in offered.options}
        found = asdict(state)
        for item in found["options"]:
            item["default"] = defaults.get(item["id"], item["value"])
        return AgentOptionsResponse.model_validate(found)

    async def context(self, session: Session) -> tuple[str, int, int | None]:
        """The agent's name, and how much of its context it said that the session uses; 0 and None if it did not."""
        link = await acp_session_links(self.workspaces).read(session.id)
        if link is None or link.agent != session.agent or link.context_used is None:
            return session.agent, 0, None
        return session.agent, link.context_used, link.context_size

    async def apply_options(self, sid: SessionId, agent: str, chosen: Mapping[str, str | bool]) -> None:
        """Sets options of the running program of a session. A program that is not running gets the stored options with
        its next turn, and so does one that was given options that were not stored in the end."""
        running = self.pool.running(sid)
        if running is not None and running.program.name == agent and running.session_id is not None:
            try:
                await running.apply_options(chosen)
            except AgentError as error:
                raise InvalidInputError("agent_options", error.message) from None

    # ---- testing ----

    async def test(self, name: str) -> AgentTestResponse:
        if name in self.gateways.by_name:
            return await self.gateways.test(name)
        program = await self._found(name)
        started = anyio.current_time()
        problem: AgentError | None = None
        limit = self.pool.limits.test
        try:
            with anyio.fail_after(limit):
                async with self.pool.testing(program, program.cwd or self.workspaces) as connection:
                    try:
                        await connection.new_session()
                        with anyio.move_on_after(_ANNOUNCED_WITHIN):
                            await connection.announced_commands.wait()
                    except AgentError as error:
                        problem = error
        except AgentError as error:
            if error.code != "agent-unavailable":  # which is found out again for each list
                self.pool.note_problem(program, error.message)
            return _test_result(started, {}, ok=False, reason=error.message)
        except TimeoutError:
            reason = f"{name} did not answer within {limit:.0f} seconds."
            self.pool.note_problem(program, reason)
            return _test_result(started, {}, ok=False, reason=reason)
        self.pool.note_problem(program, None if problem is None else problem.message)
        if problem is None:
            await self.states.write(name, connection.options)
        return _test_result(started, connection.info, ok=True, problem=problem)


@dataclass(frozen=True, slots=True)
class AddedAgent:
    """An agent that may have been added on the settings page, also of another node: looked up when a turn begins."""

    name: str
    programs: AppAgentPrograms
    can_park: bool = False
    can_resume: bool = True
    can_steer: bool = False

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        agent = self.programs.agent(self.name, turn.preferences)
        if agent is None:
            raise AgentError("no-agent", f"There is no agent named {self.name!r}. Choose another one.")
        return await agent.run(turn, out)


@dataclass(frozen=True, slots=True)
class AgentTable(Mapping[str, Agent]):
    """The built-in agents, which it lists, and programs by any other name."""

    built_in: Mapping[str, Agent]
    programs: AppAgentPrograms

    def __getitem__(self, name: str) -> Agent:
        return self.built_in[name] if name in self.built_in else AddedAgent(name, self.programs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.built_in)

    def __len__(self) -> int:
        return len(self.built_in)


@dataclass(frozen=True, slots=True)
class _GivenTitle:
    text: str

    async def title(self, messages: Sequence[Message]) -> str:
        return self.text


def _test_result(
    started: float, info: Mapping[str, Any], *, ok: bool, reason: str | None = None, problem: AgentError | None = None
) -> AgentTestResponse:
    about = info.get("agentInfo")
    found = about if isinstance(about, dict) else {}
    return AgentTestResponse(
        ok=ok,
        reason=reason,
        program=_text(found.get("title") or found.get("name")),
        version=_text(found.get("version")),
        capabilities=_capabilities(info.get("agentCapabilities")),
        login=login_methods(info),
        login_required=problem is not None and problem.code == "agent-login",
        session_problem=None if problem is None else problem.message,
        took_ms=int((anyio.current_time() - started) * 1000),
    )


_CAPABILITIES: Final = {
    ("loadSession",): "load sessions",
    ("sessionCapabilities", "resume"): "resume sessions",
    ("promptCapabilities", "image"): "images",
    ("promptCapabilities", "audio"): "audio",
    ("promptCapabilities", "embeddedContext"): "embedded files",
    ("mcpCapabilities", "http"): "MCP over HTTP",
}


def _capabilities(initialized: Any) -> list[str]:
    return [name for path, name in _CAPABILITIES.items() if _is_offered(initialized, path)]


def _is_offered(value: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value is not None and value is not False


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None
