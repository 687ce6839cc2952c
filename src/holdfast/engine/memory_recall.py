"""Recalls memories for a run, bounded in time and length. A provider that fails never fails the run."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from holdfast.core.events import MemoryRecalled
from holdfast.core.ids import MessageId
from holdfast.core.memory_ledger import OFF
from holdfast.core.parts import Json, plain_text
from holdfast.core.session import Message
from holdfast.engine.memory_commits import MemoryCommitter
from holdfast.engine.node_context import NodeContext
from holdfast.engine.transactions import memory
from holdfast.ports.agent import Turn
from holdfast.ports.memory import MemoryProviders

log = logging.getLogger("holdfast.engine")

_CHARACTERS: Final = 4  # Per token, roughly
_QUERY: Final = 4000


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRecall:
    _node: NodeContext
    _providers: MemoryProviders
    _commits: MemoryCommitter

    async def __call__(self, turn: Turn) -> MemoryRecalled | None:
        """What to show the model, or None. A provider that fails or is slow yields a note instead."""
        try:
            policy = self._commits.policy
            handle = await self._node.store.read(lambda tx: memory.handle_of(tx, turn.session, turn.run, policy))
            if handle is None or handle == OFF:
                return None
            self._commits.touch(turn.session.id, handle)
            provider = self._providers.get(handle)
            if provider is None:
                return _note(f"There is no memory provider named {handle!r}.")
            with anyio.fail_after(self._node.settings.recall_wait):
                asked = question(turn.input.messages, turn.run.user_message_id)
                found = await provider.recall(turn.run.owner, turn.session.id, asked[:_QUERY])
            items = fitting(found, self._node.settings.recall_tokens)
            return MemoryRecalled(items) if items else None
        except TimeoutError:
            return _note(f"The memory did not answer within {self._node.settings.recall_wait:g} seconds.")
        except Exception as error:
            log.info("memory recall failed for run %s", turn.run.id, exc_info=True)
            return _note(f"Memory recall failed: {str(error) or type(error).__name__}"[:300])


def question(messages: Sequence[Message], mid: MessageId) -> str:
    """The text that the run answers."""
    asked = [message for message in messages if message.id == mid]
    return plain_text(asked[-1].parts) if asked else ""


def fitting(found: Sequence[Mapping[str, Json]], tokens: int) -> tuple[Mapping[str, Json], ...]:
    """The first items, as many as fit."""
    kept: list[Mapping[str, Json]] = []
    left = tokens * _CHARACTERS
    for item in found:
        left -= len(str(item.get("text", ""))) + _CHARACTERS
        if left < 0:
            break
        kept.append(item)
    return tuple(kept)


def _note(text: str) -> MemoryRecalled:
    return MemoryRecalled((), f"{text} The answer was written without it.")
