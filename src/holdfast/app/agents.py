"""Agents and the services around them: summaries, titles, context usage, tools and memory. It decides which agents
exist and what each is given; the tools of a turn: `tools.tool_selection`."""

from collections.abc import Awaitable, Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from anyio.abc import TaskStatus

from holdfast.agents.acp.program import AcpLimits
from holdfast.agents.chat import context_window
from holdfast.agents.chat.agent import ChatAgent
from holdfast.agents.chat.model_messages import beside_loop, conversation
from holdfast.agents.chat.summary_and_title import ModelSummarizer, ModelTitler, ask
from holdfast.agents.chat.workspaces import WORKSPACES
from holdfast.agents.direct_agent import DirectAgent
from holdfast.agents.gateway.client import GatewayLimits
from holdfast.app.agent_programs import AgentTable, AppAgentPrograms
from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.memory import MemoryProviderTable
from holdfast.app.models import ConfiguredModels, MakeCatalog
from holdfast.app.run_changes import record_changes
from holdfast.app.tool_admin import AppToolAdmin, mcp_servers
from holdfast.config import Config
from holdfast.core import chat_settings
from holdfast.core.ids import SessionId
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import FilePart
from holdfast.core.session import Session
from holdfast.engine.titles import FirstWords
from holdfast.models.catalog import ModelCatalog
from holdfast.models.price_table import ModelPrices
from holdfast.ports.agent import Agent, AgentError, AgentOutput, Summarizer, Titler, Turn
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.prices import PriceTable
from holdfast.server.context import AgentPrograms, AvailableModels, ToolAdmin
from holdfast.server.openai.model_names import DIRECT
from holdfast.tools.approval_policy import ApprovalPolicy
from holdfast.tools.shell import ShellTool
from holdfast.tools.shell_sandbox import ShellSandbox
from holdfast.tools.tool_selection import ToolSelection, builtin_tools

if TYPE_CHECKING:
    from holdfast.memory.builtin_provider import Ask

_CHAT: Final = "chat"
_NEVER_ALWAYS_ALLOWED: Final = frozenset({"shell"})
"""Tools that cannot be allowed permanently while the server has no password."""
_SMALL_MODEL_PROVIDERS: Final = ("local", "demo")  # Providers whose models are too small for titles and fact extraction


class BackgroundTask(Protocol):
    async def __call__(self, *, task_status: TaskStatus[None]) -> None: ...


@dataclass(frozen=True, slots=True)
class AgentServices:
    agents: Mapping[str, Agent]
    models: AvailableModels | None = None
    summarizer: Callable[[SessionId], Awaitable[Summarizer]] | None = None
    titler: Callable[[Session], Awaitable[Titler]] | None = None
    context_usage: Callable[[SessionId], Awaitable[tuple[str, int, int | None]]] | None = None
    """The session's model, the estimated tokens in use, and the size of the context window."""
    tool_admin: ToolAdmin | None = None
    programs: AgentPrograms | None = None
    memory: MemoryProviderTable | None = None
    prices: PriceTable | None = None
    run: BackgroundTask | None = None
    """Holds the connections of models and tools. It must be running while the engine is."""


BuildAgents = Callable[[Config, KeyringStore, EngineProxy], AgentServices]
"""Builds the agents without connecting to anything, so that a wrong setting is reported before the server starts."""


def build_agents(
    config: Config,
    keys: KeyringStore,
    engine_proxy: EngineProxy,
    *,
    environment: Mapping[str, str],
    home: Path,
    make_catalog: MakeCatalog = ModelCatalog,
    program_limits: AcpLimits | None = None,
    gateway_limits: GatewayLimits | None = None,
) -> AgentServices:
    """The agents of a real server. `environment` and `home` are where keys and local models are looked for."""
    models = ConfiguredModels(config, keys, engine_proxy, environment=environment, home=home, make_catalog=make_catalog)
    sandbox = shell_sandbox(config, home)
    shell = ShellTool(environment, sandbox=sandbox, variables=frozenset(config.shell.env))
    tools = builtin_tools(shell)
    tool_admin = AppToolAdmin(engine_proxy, keys, models.find, tools, mcp_servers(config), sandbox)
    helpers = ModelHelpers(models, engine_proxy, config.titles, (_CHAT, DIRECT))
    chat = ChatAgent(
        models.find_for_turn,
        ToolSelection(tool_admin.own, tool_admin.mcp_tools_for_turn),
        engine_proxy,
        config.data_dir / WORKSPACES,
        find_policy=partial(_approval_policy, config, keys),
        grants=engine_proxy,
        history=engine_proxy,
        has_person=_has_person,
        record_changes=partial(record_changes, config.data_dir, directory=None),
    )

    own: dict[str, Agent] = {_CHAT: chat, DIRECT: DirectAgent(models.find_for_turn, engine_proxy)}
    limits = program_limits or AcpLimits()
    programs = AppAgentPrograms.build(
        config, keys, engine_proxy, environment, home, shell.rules, limits, gateway_limits or GatewayLimits()
    )

    async def context_usage(sid: SessionId) -> tuple[str, int, int | None]:
        session = (await engine_proxy.engine.sessions.get(sid)).session
        return await (helpers.context_usage(sid) if session.agent in own else programs.context(session))

    async def run(*, task_status: TaskStatus[None]) -> None:
        async with models.catalog, programs.gateways, anyio.create_task_group() as tasks:
            await tasks.start(programs.pool.run)
            await tool_admin.mcp.run(task_status=task_status)

    return AgentServices(
        AgentTable(own, programs),
        models,
        helpers.summarizer,
        None if config.titles == "off" else helpers.titler,
        context_usage,
        tool_admin,
        programs,
        MemoryProviderTable(config, environment, engine_proxy, helpers.fact_extractor),
        ModelPrices(models.catalog.known_providers),
        run,
    )


def shell_sandbox(config: Config, home: Path) -> ShellSandbox:
    hidden = (config.data_dir, *(Path(path).expanduser() for path in config.shell.hide))
    return ShellSandbox(hidden, home, config.shell.sandbox, config.shell.network)


def _has_person(turn: Turn) -> bool:
    """Clients of the OpenAI-compatible API have no way to show a question of a running tool."""
    return not turn.session.is_from_api


async def _approval_policy(config: Config, keys: KeyringStore, turn: Turn) -> ApprovalPolicy:
    """Uses the settings that the turn was loaded with, so a change applies from the next run on."""
    typed: Any = turn.preferences.get("tools") or {}
    has_password = config.password is not None or keys.read().password is not None
    return ApprovalPolicy({**config.tools, **typed}, frozenset() if has_password else _NEVER_ALWAYS_ALLOWED)


class ModelHelpers:
    """Services around a session that need a model: summaries, titles, context usage and fact extraction."""

    def __init__(
        self, models: ConfiguredModels, engine_proxy: EngineProxy, titles: str, own_agents: Container[str]
    ) -> None:
        self._models = models
        self._engine_proxy = engine_proxy
        self._titles = titles
        self._own_agents = own_agents
        self._measuring = anyio.CapacityLimiter(2)  # Each holds all messages of a session in memory

    async def summarizer(self, sid: SessionId) -> Summarizer:
        session = (await self._engine_proxy.engine.sessions.get(sid)).session
        return ModelSummarizer(await self._models.find(session.model))

    async def titler(self, session: Session) -> Titler:
        """The first words if the settings say so, for small models, which title badly and slowly, for sessions of
        API clients, which should not pay for a second request, and for agent programs, whose chats no model sees."""
        if self._titles == "words" or session.is_from_api or session.agent not in self._own_agents:
            return FirstWords()
        model = await self._models.find(session.model)
        return FirstWords() if model.info.provider in _SMALL_MODEL_PROVIDERS else ModelTitler(model)

    async def context_usage(self, sid: SessionId) -> tuple[str, int, int | None]:
        async with self._measuring:
            return await self._measure_context(sid)

    async def _measure_context(self, sid: SessionId) -> tuple[str, int, int | None]:
        engine = self._engine_proxy.engine
        session, past = await engine.messages.model_input(sid)
        recorded = await engine.projects.settings_of(session)
        system = chat_settings.of_session(session, await engine.preferences.settings(), recorded).get("system")
        model = await self._models.find(session.model)
        return (
            model.info.id,
            await beside_loop(past.messages, partial(_estimate, past, system or "")),
            model.info.context,
        )

    async def fact_extractor(self, model_id: str | None) -> "Ask | None":
        """None for a small or missing model: rules then extract better."""
        try:
            model = await self._models.find(model_id)
        except AgentError:
            return None
        return None if model.info.provider in _SMALL_MODEL_PROVIDERS else partial(ask, model)


def _estimate(past: ModelInput, system: str) -> int:
    """Tokens that the model would be shown, without attachments, which are not read for this."""
    messages = [replace(m, parts=tuple(p for p in m.parts if not isinstance(p, FilePart))) for m in past.messages]
    text = context_window.estimate_text(system + (past.summary or ""))
    return text + context_window.estimate_messages(conversation(messages, {}))


# ---- agents of commands that execute nothing ----


def read_only_agents(config: Config, keys: KeyringStore, engine_proxy: EngineProxy) -> AgentServices:
    """For commands that only read. Every agent exists and can park, so recovery leaves waiting runs waiting."""
    return AgentServices(AnyAgent(), memory=MemoryProviderTable(config, {}, engine_proxy))


class AnyAgent(Mapping[str, Agent]):
    def __getitem__(self, name: str) -> Agent:
        return NoOpAgent()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class NoOpAgent:
    can_park: bool = True
    can_resume: bool = True
    can_steer: bool = False

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        raise AssertionError("a node that claims no runs executes none")
