"""Titles (P8): after a run has completed, a session that nobody has named gets a name, in the background."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.parts import plain_text
from holdfast.core.session import Message, Session
from holdfast.engine.service import Service
from holdfast.ports import AgentFailed, Titler

log = logging.getLogger("holdfast.engine")

_AT_ONCE: Final = 4
_PATIENCE: Final = 60.0
_WORDS: Final = 8


class FirstWords:
    """`ports.Titler` without a model: how the person began."""

    async def title(self, messages: Sequence[Message]) -> str:
        said = next((plain_text(message.parts) for message in messages if message.role == "user"), "")
        words = said.split()
        return " ".join(words[:_WORDS])[:80] + ("…" if len(words) > _WORDS else "")


class Titles:
    """Follows the change feed. What is missed while no process lives is made up for by the session's next turn."""

    def __init__(self, service: Service, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        self._service = service
        self._titler = titler
        self._room = anyio.CapacityLimiter(_AT_ONCE)

    async def run(self) -> None:
        """For the server's life."""
        changes = self._service.watch_changes(None)
        async with anyio.create_task_group() as jobs:
            while True:
                try:
                    found = await changes.next()
                except HoldfastError:
                    log.warning("the change feed cannot be read; titles wait", exc_info=True)
                    await anyio.sleep(5.0)
                    continue
                if found is None:
                    return
                ended = [c for c in found.items if c.kind == "run.changed" and c.status == "complete"]
                # The feed is of all nodes, and a name is asked for once.
                for sid in {c.session_id for c in ended if c.run_id and self._service.settled_here(c.run_id)}:
                    jobs.start_soon(self._name, sid)

    async def _name(self, sid: SessionId) -> None:
        async with self._room:
            try:
                session = (await self._service.session(sid, LOCAL)).session
                if session.titled_by == "nobody":
                    with anyio.fail_after(_PATIENCE):
                        await self._service.generate_title(sid, await self._titler(session))
            except (HoldfastError, AgentFailed, TimeoutError) as error:
                log.info("session %s was not named: %s", sid, type(error).__name__)
            except Exception:
                log.exception("session %s was not named", sid)  # a task of the server's: it must not end with this
