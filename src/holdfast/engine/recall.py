"""What is remembered, put in front of a run: a bounded time, a bounded length, and never a reason to fail."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import anyio

from holdfast.core.events import MemoryRecalled
from holdfast.core.ids import MessageId
from holdfast.core.ledger import OFF
from holdfast.core.parts import Json, plain_text
from holdfast.core.session import Message
from holdfast.engine.book import remembering
from holdfast.engine.boundaries import Boundaries
from holdfast.engine.settings import Settings
from holdfast.ports import MemoryProviders, Store, Turn

log = logging.getLogger("holdfast.engine")

_CHARACTERS: Final = 4
"""Of a token, about."""
_QUERY: Final = 4000


class Recall:
    def __init__(self, store: Store, providers: MemoryProviders, boundaries: Boundaries, settings: Settings) -> None:
        self._store = store
        self._providers = providers
        self._boundaries = boundaries
        self._settings = settings

    async def __call__(self, turn: Turn) -> MemoryRecalled | None:
        """None: there is nothing to say. A provider that fails or is slow costs a note."""
        try:
            keeping = self._boundaries.keeping
            handle = await self._store.read(lambda tx: remembering.handle_of(tx, turn.session, turn.run, keeping))
            if handle is None or handle == OFF:
                return None
            self._boundaries.touch(turn.session.id, handle)
            provider = self._providers.get(handle)
            if provider is None:
                return _note(f"There is no memory provider named {handle!r}.")
            with anyio.fail_after(self._settings.recall_wait):
                asked = question(turn.input.messages, turn.run.user_message_id)
                found = await provider.recall(turn.run.owner, turn.session.id, asked[:_QUERY])
            items = fitting(found, self._settings.recall_tokens)
            return MemoryRecalled(items) if items else None
        except TimeoutError:
            return _note(f"The memory did not answer within {self._settings.recall_wait:g} seconds.")
        except Exception as error:
            log.info("nothing was recalled for run %s", turn.run.id, exc_info=True)
            return _note(f"The memory could not be asked: {str(error) or type(error).__name__}"[:300])


def question(messages: Sequence[Message], mid: MessageId) -> str:
    """What the run answers."""
    said = [message for message in messages if message.id == mid]
    return plain_text(said[-1].parts) if said else ""


def fitting(found: Sequence[Mapping[str, Json]], tokens: int) -> tuple[Mapping[str, Json], ...]:
    """The first ones, as many as fit."""
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
