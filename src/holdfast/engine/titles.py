"""Titles: after a run ends, a session without a title gets one in the background. A title that a person set,
before or meanwhile, always stays; `session_edits.title` decides that in its transaction."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from holdfast.core import message_tree as tree
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import plain_text
from holdfast.core.run import OPEN
from holdfast.core.session import Message, Session
from holdfast.engine.node_context import NodeContext
from holdfast.engine.subscriptions import Subscriptions
from holdfast.engine.transactions import session_edits
from holdfast.engine.transactions.row_access import get_session
from holdfast.ports.agent import AgentError, Titler
from holdfast.ports.store import Tx

log = logging.getLogger("holdfast.engine")

_CONCURRENT: Final = 4
_TIMEOUT: Final = 60.0
_WORDS: Final = 8
_LONGEST: Final = 200  # Characters of a generated title


class FirstWords:
    """`ports.Titler` without a model: the first words of the first user message."""

    async def title(self, messages: Sequence[Message]) -> str:
        first = next((plain_text(message.parts) for message in messages if message.role == "user"), "")
        words = first.split()
        return " ".join(words[:_WORDS])[:80] + ("…" if len(words) > _WORDS else "")


async def _first_words(_: Session) -> Titler:
    """The titler of a turn that was stopped or failed: its model is not asked again."""
    return FirstWords()


@dataclass(frozen=True, slots=True, eq=False)
class Titles:
    _node: NodeContext
    _subscriptions: Subscriptions

    async def generate(self, sid: SessionId, titler: Titler, owner: OwnerId = LOCAL) -> Session:
        """Title the session unless it has a title."""

        def load(tx: Tx) -> tuple[Session, list[Message]]:
            session = get_session(tx, sid, owner)
            return session, tree.path(tx, session, session.head, limit=8)

        session, messages = await self._node.store.read(load)
        if session.titled_by != "nobody":
            return session
        text = (await titler.title(messages)).strip()
        if not text:
            return session
        return await self._node.transact(
            partial(session_edits.title, sid=sid, owner=owner, text=text[:_LONGEST]), wake_queue=False
        )

    async def run(self, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        """Follow the change feed for the server's life. A missed title is generated after the session's next turn."""
        changes = self._subscriptions.watch_changes(None)
        limiter = anyio.CapacityLimiter(_CONCURRENT)
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
                ended = [c for c in found.items if c.kind == "run.changed" and c.status not in OPEN]
                # The feed covers all nodes; the one that settled the run asks for the title.
                here = {c.session_id: c for c in ended if c.run_id and self._node.local.settled_here(c.run_id)}
                for sid, change in here.items():
                    complete = change.status == "complete"
                    jobs.start_soon(self._generate_safely, sid, titler if complete else _first_words, limiter)

    async def _generate_safely(
        self, sid: SessionId, titler: Callable[[Session], Awaitable[Titler]], limiter: anyio.CapacityLimiter
    ) -> None:
        async with limiter:
            try:
                session = await self._node.store.read(lambda tx: get_session(tx, sid, LOCAL))
                if session.titled_by == "nobody":
                    with anyio.fail_after(_TIMEOUT):
                        await self.generate(sid, await titler(session))
            except (HoldfastError, AgentError, TimeoutError) as error:
                log.info("no title for session %s: %s", sid, type(error).__name__)
            except Exception:  # a task of the server's group: an error here would end the server
                log.exception("no title for session %s", sid)
