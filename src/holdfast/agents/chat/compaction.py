"""Making room while a run goes on. What came before the run is summarised by whoever keeps sessions; this is how the
loop reaches it."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.core.errors import HoldfastError
from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.session import ModelInput
from holdfast.core.values import dataclass
from holdfast.ports import AgentFailed, Summariser, Turn

log = logging.getLogger("holdfast.agents")


class History(Protocol):
    """What came before the run, where it can become shorter while the run goes on."""

    async def reload(self, turn: Turn) -> ModelInput:
        """The turn's input as it is now: somebody may have compacted the session since."""

    async def compact(self, turn: Turn, summariser: Summariser) -> None:
        """Summarise what came before this turn. If that cannot be done, nothing has changed and the run goes on."""


class FixedHistory:
    """The past as the turn was given it."""

    async def reload(self, turn: Turn) -> ModelInput:
        return turn.input

    async def compact(self, turn: Turn, summariser: Summariser) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """Over the two calls of the engine's service that it needs; the composition root passes them in."""

    model_input: Callable[[RunId, OwnerId], Awaitable[ModelInput]]
    compact_session: Callable[[SessionId, Summariser, OwnerId], Awaitable[object]]

    async def reload(self, turn: Turn) -> ModelInput:
        return await self.model_input(turn.run.id, turn.run.owner)

    async def compact(self, turn: Turn, summariser: Summariser) -> None:
        try:
            await self.compact_session(turn.session.id, summariser, turn.run.owner)
        except (HoldfastError, AgentFailed) as error:
            log.warning("session %s was not compacted: %s", turn.session.id, error)
