"""Whoever answers: models, tools and agents, made from the config and from what a person has set since."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from holdfast.agents.chat import tokens
from holdfast.agents.chat.agent import ChatAgent
from holdfast.agents.chat.compaction import SessionHistory
from holdfast.agents.chat.helpers import ModelSummariser, ModelTitler, ask
from holdfast.agents.chat.history import conversation
from holdfast.agents.direct.agent import DirectAgent
from holdfast.agents.models import weights
from holdfast.agents.models.catalogue import Catalogue, CatalogueSettings
from holdfast.agents.models.port import Model, ModelInfo
from holdfast.agents.tools.grants import StoredGrants
from holdfast.agents.tools.policy import Policy
from holdfast.agents.tools.toolbox import Toolbox, own_tools
from holdfast.config import Config
from holdfast.core.errors import Invalid, NotFound, StorageError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.parts import File
from holdfast.core.session import Session
from holdfast.core.values import dataclass, replace
from holdfast.engine.titles import FirstWords
from holdfast.faces.cli.desk import Finding
from holdfast.faces.http.api import Models, Workshop
from holdfast.faces.openai.targets import DIRECT, SOURCE
from holdfast.ports import Agent, AgentFailed, Clock, Keyring, Keys, Out, Summariser, Titler, Turn
from holdfast.system import SystemClock
from holdfast.wiring import keeping, tables
from holdfast.wiring.bridge import Bridge
from holdfast.wiring.memories import Memories
from holdfast.wiring.node import WORKSPACES
from holdfast.wiring.workshop import Workroom

if TYPE_CHECKING:
    from holdfast.memory.notes import Ask

_ASK_AT_LEAST_ONCE: Final = frozenset({"shell"})
"""Tools that cannot be allowed for good while the server is open to whoever is at the machine."""
_SMALL: Final = ("local", "demo")
"""Providers whose models are too small for more than a conversation."""


@dataclass(frozen=True, slots=True)
class Crew:
    agents: Mapping[str, Agent]
    models: Models | None = None
    summariser: Callable[[Session], Awaitable[Summariser]] | None = None
    titler: Callable[[Session], Awaitable[Titler]] | None = None
    meter: Callable[[SessionId], Awaitable[tuple[str, int, int | None]]] | None = None
    """Model, tokens used, tokens that fit."""
    workshop: Workshop | None = None
    memory: Memories | None = None


Hire = Callable[[Config, Keys, Bridge], AbstractAsyncContextManager[Crew]]


async def look_at_models(config: Config, environment: Mapping[str, str], home: Path) -> Finding:
    """For `doctor`: asks the providers for their lists, and makes nothing."""
    keys: Mapping[str, str] = {}
    if config.store_url is not None or (config.data_dir / "keys.json").exists():
        with suppress(StorageError):  # said elsewhere
            keys = keeping.keys_of(config).read().provider_keys
    settings = CatalogueSettings(
        providers=tables.providers(config, environment, keys),
        environment=environment,
        weights_directory=weights.default_directory(environment, home),
    )
    async with Catalogue(settings, SystemClock()) as catalogue:
        found, default = await catalogue.list(), tables.default_model(config) or await catalogue.default()
    down = [f"{model.id}: {model.reason}" for model in found if not model.available]
    text = f"{len(found) - len(down)} can be asked, {default} by default"
    answers = any(model.id == default and model.available for model in found)
    return Finding("models", answers, "; ".join([text, *down[:5]]))


class Resting:
    """Nobody works, and nobody's work is given up: for commands that only look. Whoever is asked for could go on, so
    that what waits for a person goes on waiting."""

    def __init__(self, config: Config, keys: Keys, bridge: Bridge) -> None:
        self._memory = Memories(config, {}, bridge)

    async def __aenter__(self) -> Crew:
        return Crew(_Everybody(), memory=self._memory)

    async def __aexit__(self, *_: object) -> None:
        return None


class _Everybody(Mapping[str, Agent]):
    def __getitem__(self, name: str) -> Agent:
        return _Asleep()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Asleep:
    can_continue: bool = True

    async def run(self, turn: Turn, out: Out) -> str | None:
        raise AssertionError("a node that claims nothing executes nothing")


class Fixed:
    """A crew of agents that need nothing, as tests have them."""

    def __init__(self, agents: Mapping[str, Agent], memory: Memories | None = None) -> None:
        self._agents = agents
        self._memory = memory

    async def __aenter__(self) -> Crew:
        return Crew(self._agents, memory=self._memory)

    async def __aexit__(self, *_: object) -> None:
        return None


class Office:
    """The real one. `environment` and `home` are where keys and weights are looked for; `catalogue` makes the list of
    models from what was found there."""

    def __init__(
        self,
        config: Config,
        keys: Keys,
        bridge: Bridge,
        *,
        environment: Mapping[str, str],
        home: Path,
        catalogue: Callable[[CatalogueSettings, Clock], Catalogue] = Catalogue,
    ) -> None:
        self._config = config
        self._keys = keys
        self._bridge = bridge
        self._environment = environment
        self._rules = tables.tool_rules(config)
        self._default = tables.default_model(config)
        self._workroom = Workroom(
            lambda: bridge.preferences, keys, self._find_model, own_tools(environment), tables.mcp_servers(config)
        )
        directory = weights.default_directory(environment, home)
        providers = tables.providers(config, environment, keys.read().provider_keys)
        settings = CatalogueSettings(providers=providers, environment=environment, weights_directory=directory)
        self._catalogue = catalogue(settings, SystemClock())
        self._memory = Memories(config, environment, bridge, self._extractor)
        self._configured = keys.read().provider_keys
        self._held = AsyncExitStack()

    async def __aenter__(self) -> Crew:
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._catalogue)
            tasks = await held.enter_async_context(anyio.create_task_group())
            held.callback(tasks.cancel_scope.cancel)
            await tasks.start(self._workroom.mcp.run)
            self._held = held.pop_all()
        direct = DirectAgent(self._find_model, self._bridge)
        agents = {"chat": self._chat(), DIRECT: direct}
        return Crew(agents, self, self._summariser, self._titler, self._meter, self._workroom, self._memory)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._held.__aexit__(kind, error, trace)

    def _chat(self) -> Agent:
        bridge = self._bridge
        return ChatAgent(
            self._find_model,
            Toolbox(self._workroom.own, self._workroom.mcp_tools),
            bridge,
            self._config.data_dir / WORKSPACES,
            find_policy=self._policy,
            grants=StoredGrants(bridge.grants, bridge.grant),
            history=SessionHistory(bridge.model_input, bridge.compact),
        )

    async def _policy(self, turn: Turn) -> Policy:
        """As the settings are now: a change counts from the next run on."""
        typed: Any = (await self._bridge.preferences.settings(turn.run.owner)).get("tools") or {}
        open_to_all = self._config.password is None and self._keys.read().password is None
        return Policy({**self._rules, **typed}, _ASK_AT_LEAST_ONCE if open_to_all else frozenset())

    # ---- models ----

    async def list(self) -> Sequence[ModelInfo]:
        self._heed_keys()
        return await self._catalogue.list()

    async def default(self) -> str:
        """What a person chose, else what the config says, else the first that can answer."""
        typed = (await self._bridge.preferences.settings(LOCAL)).get("default_model")
        return str(typed) if typed else self._default or await self._catalogue.default()

    def providers(self) -> Sequence[tuple[str, bool]]:
        return self._catalogue.providers()

    async def knows(self, model: str) -> frozenset[str]:
        try:
            return await self._catalogue.knows(model)
        except AgentFailed as error:
            raise NotFound("model", model) from error

    async def set_key(self, provider: str, key: str | None) -> None:
        if provider not in {name for name, _ in self.providers()}:
            raise Invalid("provider", f"{provider!r} is not one; configure it in holdfast.toml first")

        def change(ring: Keyring) -> Keyring:
            keys = {name: value for name, value in ring.provider_keys.items() if name != provider}
            return replace(ring, provider_keys=keys if key is None else {**keys, provider: key})

        await to_thread.run_sync(self._keys.change, change)
        self._heed_keys()

    def _heed_keys(self) -> None:
        """Somebody else may have typed in a key: another node, or a command."""
        keys = self._keys.read().provider_keys
        if keys != self._configured:
            self._configured = keys
            self._catalogue.configure(tables.providers(self._config, self._environment, keys))

    async def _find_model(self, model_id: str | None) -> Model:
        self._heed_keys()
        return self._catalogue.get(model_id or await self.default())

    async def _summariser(self, session: Session) -> Summariser:
        return ModelSummariser(await self._find_model(session.model))

    async def _meter(self, sid: SessionId) -> tuple[str, int, int | None]:
        session, past = await self._bridge.service.past(sid)
        model = await self._find_model(session.model)
        messages = [replace(m, parts=tuple(p for p in m.parts if not isinstance(p, File))) for m in past.messages]
        text = tokens.of_text((session.system or "") + (past.summary or ""))
        return model.info.id, text + tokens.of_messages(conversation(messages, {})), model.info.context

    async def _titler(self, session: Session) -> Titler:
        """A small model is spared: its titles are worse than the first words, and it answers one at a time. What a
        program asks is not paid for twice."""
        if isinstance(session.settings, dict) and session.settings.get("source") == SOURCE:
            return FirstWords()
        model = await self._find_model(session.model)
        return FirstWords() if model.info.provider in _SMALL else ModelTitler(model)

    async def _extractor(self, model_id: str | None) -> "Ask | None":
        """None, for small models and where there is none: rules are better at it than they are."""
        try:
            model = await self._find_model(model_id)
        except AgentFailed:
            return None
        return None if model.info.provider in _SMALL else partial(ask, model)
