"""Agents behind a gateway: one for each agent of the configuration that has a `url`. How they answer:
`agents.gateway.agent`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from holdfast.agents.gateway.agent import GatewayAgent
from holdfast.agents.gateway.client import AgentGateway, GatewayClient, GatewayLimits
from holdfast.app.engine_proxy import EngineProxy
from holdfast.config import AgentSection, Config
from holdfast.models.http_client import HttpClient
from holdfast.ports.agent import AgentError
from holdfast.server.schemas.agents import AgentResponse, AgentTestResponse
from holdfast.system import SystemClock

_FEATURES: Final[Mapping[str, str]] = {
    "run_submission": "runs",
    "run_events_sse": "events",
    "run_stop": "stop",
    "run_approval_response": "questions",
    "session_resources": "sessions",
}
"""What a gateway must say that it can do, by its name for it."""


@dataclass(frozen=True, slots=True)
class GatewayAgents:
    """Holds the connections; leaving closes them."""

    by_name: Mapping[str, AgentGateway]
    http: HttpClient
    limits: GatewayLimits
    _found: dict[str, tuple[float, AgentError | None]] = field(default_factory=dict)
    """When each was last looked at, and why it cannot be used."""

    @classmethod
    def build(cls, config: Config, environment: Mapping[str, str], limits: GatewayLimits) -> "GatewayAgents":
        found = {name: _gateway(name, section, environment) for name, section in config.agents.items() if section.url}
        return cls(found, HttpClient(environment), limits)

    async def __aenter__(self) -> None:
        """Connections are made when they are needed."""

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.http.aclose()

    def agent(self, name: str, engine: EngineProxy, workspaces: Path) -> GatewayAgent:
        return GatewayAgent(self._client(name), engine, workspaces, SystemClock().now)

    def _client(self, name: str) -> GatewayClient:
        return GatewayClient(self.http, self.by_name[name], self.limits)

    async def list(self) -> Sequence[AgentResponse]:
        found: dict[str, AgentResponse] = {}

        async def check(name: str) -> None:
            at, problem = self._found.get(name, (-math.inf, None))
            if anyio.current_time() - at >= self.limits.probe_age:
                problem, _ = await self._look(name, self.limits.probe)
            found[name] = AgentResponse(
                name=name,
                can_continue=True,
                is_program=True,
                available=problem is None,
                reason=None if problem is None else problem.message,
                url=self.by_name[name].url,
            )

        async with anyio.create_task_group() as checks:
            for name in self.by_name:
                checks.start_soon(check, name)
        return [found[name] for name in self.by_name]

    async def _look(self, name: str, within: float) -> tuple[AgentError | None, Sequence[str]]:
        """Why it cannot be used, if so, and what it can do."""
        client = self._client(name)
        problem: AgentError | None = None
        found: Sequence[str] = ()
        try:
            answer = await client.capabilities(within)
            if answer.status != 200:
                raise client.refused("say what it can do", answer)
            found = capabilities(answer.data)
            if missing := [what for what in _FEATURES.values() if what not in found]:
                raise client.failure(f"does not support {', '.join(missing)}. Update it, or check its url")
        except AgentError as error:
            problem = error
        self._found[name] = anyio.current_time(), problem
        return problem, found

    async def test(self, name: str) -> AgentTestResponse:
        started = anyio.current_time()
        problem, found = await self._look(name, self.limits.request)
        data: Mapping[str, Any] = {}
        if problem is None:
            try:
                data = (await self._client(name).health(self.limits.request)).data
            except AgentError as error:
                problem = error
        return AgentTestResponse(
            ok=problem is None,
            reason=None if problem is None else problem.message,
            program=_text(data.get("platform")),
            version=_text(data.get("version")),
            capabilities=[*found] if problem is None else [],
            login=[],
            login_required=problem is not None and problem.code == "agent-login",
            session_problem=None,
            took_ms=int((anyio.current_time() - started) * 1000),
        )


def _gateway(name: str, section: AgentSection, environment: Mapping[str, str]) -> AgentGateway:
    key = section.api_key.get_secret_value() if section.api_key is not None else None
    if section.api_key_env:
        key = environment.get(section.api_key_env) or key
    within = 60.0 if section.answer_within is None else section.answer_within or None
    return AgentGateway(name, section.url or "", key or None, within)


def capabilities(data: Mapping[str, Any]) -> list[str]:
    features = data.get("features")
    return [shown for name, shown in _FEATURES.items() if isinstance(features, dict) and features.get(name) is True]


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None
