"""Titles: after its first run has ended, a session without a title gets one in the background: from the model if the
run is complete, otherwise from the first words. A title that a person set, before or meanwhile, always stays;
`session_edits.title` decides that in its transaction."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from holdfast.core import message_tree as tree
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL, OwnerId, SessionId
from holdfast.core.parts import Part, plain_text
from holdfast.core.session import Message, Session
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settler import Settler
from holdfast.engine.transactions import session_edits
from holdfast.engine.transactions.row_access import get_session
from holdfast.ports.agent import AgentError, Titler
from holdfast.ports.store import Tx

log = logging.getLogger("holdfast.engine")

_CONCURRENT: Final = 4
_TIMEOUT: Final = 60.0
_WORDS: Final = 8
_READ: Final = 2000  # Characters of a message in which its first words are looked for
_LONGEST: Final = 200  # Characters of a generated title


def first_words(parts: Sequence[Part]) -> str:
    words = plain_text(parts)[:_READ].split()
    return " ".join(words[:_WORDS])[:80] + ("…" if len(words) > _WORDS else "")


class FirstWords:
    """`ports.Titler` without a model: the first words of the first user message."""

    async def title(self, messages: Sequence[Message]) -> str:
        return next((first_words(message.parts) for message in messages if message.role == "user"), "")


async def _first_words(_: Session) -> Titler:
    """The titler of a turn that was stopped or failed: its model is not asked again."""
    return FirstWords()


@dataclass(frozen=True, slots=True, eq=False)
class Titles:
    _node: NodeContext
    _settler: Settler

    async def generate(
        self, sid: SessionId, titler: Titler, owner: OwnerId = LOCAL, *, is_automatic: bool = False
    ) -> Session:
        """Title the session unless it has a title. A titler that gives none, and an automatic one that comes later than
        after the first answer, is replaced by the first words."""

        def load(tx: Tx) -> tuple[Session, list[Message]]:
            session = get_session(tx, sid, owner)
            return session, tree.path(tx, session, session.head, limit=8)

        session, messages = await self._node.store.read(load)
        if session.titled_by != "nobody":
            return session
        if is_automatic and sum(message.role == "assistant" for message in messages) > 1:
            titler = FirstWords()
        text = (await titler.title(messages)).strip() or await FirstWords().title(messages)
        if not text:
            return session
        return await self._node.transact(
            partial(session_edits.title, sid=sid, owner=owner, text=text[:_LONGEST]), wake_queue=False
        )

    async def run(self, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        """Runs as long as the server: titles sessions whose run this node has settled. A missed title is generated
        after the session's next turn."""
        async with anyio.create_task_group() as workers:
            for _ in range(_CONCURRENT):
                workers.start_soon(self._work, titler)

    async def _work(self, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        while True:
            session, status = await self._settler.next_untitled()
            await self._generate_safely(session, titler if status == "complete" else _first_words)

    async def _generate_safely(self, session: Session, titler: Callable[[Session], Awaitable[Titler]]) -> None:
        try:
            with anyio.fail_after(_TIMEOUT):
                await self.generate(session.id, await titler(session), session.owner, is_automatic=True)
        except (HoldfastError, AgentError, TimeoutError) as error:
            log.info("no title for session %s: %s", session.id, type(error).__name__)
        except Exception:  # a task of the server's group: an error here would end the server
            log.exception("no title for session %s", session.id)
