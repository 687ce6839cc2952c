"""Which agents there are."""

from collections.abc import Mapping

from holdfast.core.values import dataclass
from holdfast.ports import Agent


@dataclass(frozen=True, slots=True)
class AgentTable:
    """`ports.Agents` over a plain mapping."""

    by_name: Mapping[str, Agent]

    def get(self, name: str) -> Agent | None:
        return self.by_name.get(name)
