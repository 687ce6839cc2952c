"""Titles: a session begins with the first words of its first message (`accept.add_turn`). After its first complete
answer the model writes a title in the background. A title that a person set, before or meanwhile, always stays;
`session_edits.title` decides that in its transaction. Which model writes it, if any: `ModelHelpers.titler` in
`app.agents`."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from holdfast.core import message_tree as tree
from holdfast.core.errors import HoldfastError, NotAllowedError
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.session import Message, Session
from holdfast.core.titles import first_words
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settler import Settler
from holdfast.engine.transactions import session_edits
from holdfast.engine.transactions.row_access import get_session
from holdfast.ports.agent import AgentError, Titler
from holdfast.ports.store import Tx

log = logging.getLogger("holdfast.engine")

_CONCURRENT: Final = 4
_TIMEOUT: Final = 60.0
_LONGEST: Final = 200  # Characters of a generated title


class FirstWords:
    """`ports.Titler` without a model: the first words of the first user message."""

    async def title(self, messages: Sequence[Message]) -> str:
        return next((first_words(message.parts) for message in messages if message.role == "user"), "")


@dataclass(frozen=True, slots=True, eq=False)
class Titles:
    _node: NodeContext
    _settler: Settler

    async def generate(
        self, sid: SessionId, titler: Titler, owner: OwnerId = LOCAL, *, is_automatic: bool = False
    ) -> Session:
        """Title the session unless a model or a person has. A titler that gives none, and an automatic one that comes
        later than after the first complete answer, is replaced by the first words."""

        session, messages = await self._load(sid, owner, 8)
        if session.titled_by != "nobody":
            return session
        if is_automatic and sum(each.role == "assistant" and each.status == "complete" for each in messages) > 1:
            titler = FirstWords()
        text = (await titler.title(messages)).strip() or session.title or await FirstWords().title(messages)
        if not text:
            return session
        return await self._node.transact(
            partial(session_edits.title, sid=sid, owner=owner, text=text[:_LONGEST]), wake_queue=False
        )

    async def regenerate(self, sid: SessionId, titler: Titler, owner: OwnerId = LOCAL) -> Session:
        """Title the session anew by its newest messages, because a person asks for it: also in place of a title that a
        person set before, but not of one that is set meanwhile. A titler that gives none is replaced by the first
        words."""
        session, messages = await self._load(sid, owner, 4)
        text = (await titler.title(messages)).strip() or await FirstWords().title(messages)
        if not text:
            raise NotAllowedError("generate a title", "the chat has no text yet")
        return await self._node.transact(
            partial(session_edits.retitle, sid=sid, owner=owner, seen=session.title, text=text[:_LONGEST]),
            wake_queue=False,
        )

    async def _load(self, sid: SessionId, owner: OwnerId, limit: int) -> tuple[Session, list[Message]]:
        """The session and its newest messages."""

        def load(tx: Tx) -> tuple[Session, list[Message]]:
            session = get_session(tx, sid, owner)
            return session, tree.path(tx, session, session.head, limit=limit)

        return await self._node.store.read(load)

    async def run(self, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        """Runs as long as the server: titles sessions whose first complete answer this node has settled. A missed title
        is generated after the session's next turn."""
        async with anyio.create_task_group() as workers:
            for _ in range(_CONCURRENT):
                workers.start_soon(self._work, titler)

    async def _work(self, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        while True:
            await self._generate_safely(await self._settler.next_untitled(), titler)

    async def _generate_safely(self, session: Session, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        try:
            with anyio.fail_after(_TIMEOUT):
                await self.generate(session.id, await titler(session), session.owner, is_automatic=True)
        except (HoldfastError, AgentError, TimeoutError) as error:
            log.info("session %s got no title: %s", session.id, type(error).__name__)
        except Exception:  # a task of the server's group: an error here would end the server
            log.exception("session %s got no title", session.id)
