"""Who is to answer: a model alone, or an agent of ours."""

from typing import Final

from holdfast.core.errors import NotFound
from holdfast.core.values import dataclass
from holdfast.faces.http.api import Api

DIRECT: Final = "direct"
"""The agent that is one model and nothing around it."""
SOURCE: Final = "openai"
"""What the settings of a session that came through this face say of it."""
AGENT: Final = "agent:"
_AGENTS_PASS: Final = frozenset({"temperature", "top_p", "max_tokens", "seed", "reasoning_effort", "stop"})


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    """As the client said it, and as it is told."""
    agent: str
    model: str | None
    knows: frozenset[str]
    """Settings that reach it; `tools`: it can be offered functions of the client's; `images`, `documents`: it reads
    them. An agent of ours tells its model of what it cannot read."""


async def find(api: Api, name: str | None) -> Target:
    """NotFound: nobody of that name can answer."""
    if name is not None and name.startswith(AGENT):
        return await _agent(api, name)
    if api.models is None:
        raise NotFound("model", name or "")
    model = name or await api.models.default() or ""
    return Target(model, DIRECT, model, await api.models.knows(model))


async def _agent(api: Api, name: str) -> Target:
    agent = name.removeprefix(AGENT)
    if agent not in {known for known, _ in api.agents}:
        raise NotFound("model", name)
    default = None if api.models is None else await api.models.default()
    knows = frozenset[str]() if api.models is None or default is None else await api.models.knows(default)
    return Target(name, agent, None, (knows & _AGENTS_PASS) | {"images", "documents"})
