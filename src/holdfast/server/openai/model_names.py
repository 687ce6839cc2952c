"""Resolves the `model` of a request: either a model without an agent, whose client runs its own tools, or an agent of
this server (`agent:NAME`), which runs the server's."""

from dataclasses import dataclass
from typing import Final

from holdfast.core.chat_settings import MODEL_SETTINGS
from holdfast.core.errors import NotFoundError
from holdfast.server.context import ApiContext

DIRECT: Final = "direct"  # The agent that passes a call to one model and adds nothing
AGENT_PREFIX: Final = "agent:"


@dataclass(frozen=True, slots=True)
class Target:
    name: str  # As the client wrote it; responses repeat it
    agent: str
    model: str | None
    accepts: frozenset[str]
    """Settings that reach the model. `tools`: the client's functions can be offered to it. `images`, `documents`: it
    reads them; an agent tells its model about files that the model cannot read."""


async def resolve_model(api: ApiContext, name: str | None) -> Target:
    """The id of a model asks that model alone, `agent:NAME` an agent of this server. Raises NotFoundError."""
    if name is not None and name.startswith(AGENT_PREFIX):
        agent = name.removeprefix(AGENT_PREFIX)
        programs = () if api.programs is None else await api.programs.list()
        if agent not in {*(known for known, *_ in api.agents), *(program.name for program in programs)}:
            raise NotFoundError("model", name)
        default = None if api.models is None else await api.models.default()
        accepted = frozenset[str]() if api.models is None or default is None else await api.models.knows(default)
        return Target(name, agent, None, accepted.intersection(MODEL_SETTINGS) | {"images", "documents"})
    if api.models is None:
        raise NotFoundError("model", name or "")
    model = name or await api.models.default() or ""
    return Target(model, DIRECT, model, await api.models.knows(model))
