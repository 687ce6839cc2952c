"""The queue of what a program sends during a turn. The most that wait: `AcpLimits.max_waiting`."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint

from holdfast.agents.acp.elicitation import FormRequest

_ITEMS_PER_CHECKPOINT: Final = 20  # Many may wait, each of 64 KB
_MERGED: Final = 4096  # Characters of terminal output up to which more is added


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    update: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class PermissionRequest:
    """Answered with the id of an option, or with None: cancelled."""

    call: Mapping[str, Any]
    options: Sequence[Mapping[str, Any]]
    received_at: float
    answered: anyio.Event = field(default_factory=anyio.Event)
    option: str | None = None

    def answer(self, option: str | None) -> None:
        if not self.answered.is_set():
            self.option = option
            self.answered.set()

    @property
    def response(self) -> Mapping[str, Any]:
        """The outcome, as the protocol names it."""
        if self.option is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": self.option}}


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """What the command of a terminal printed."""

    terminal_id: str
    text: str

    def precedes(self, other: "TerminalOutput") -> bool:
        """Whether both can be one item: a command may print byte by byte."""
        return self.terminal_id == other.terminal_id and len(self.text) < _MERGED


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The program answered the prompt, or failed to."""

    result: Mapping[str, Any]
    error: Exception | None = None


InboxItem = SessionUpdate | TerminalOutput | PermissionRequest | FormRequest | TurnEnded


class TurnInbox:
    """Bounded: the transport reads on only when `wait_for_room` returns."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[InboxItem] = deque()
        self._changed = anyio.Event()
        self._taken = 0

    def put(self, item: InboxItem) -> None:
        last = self._items[-1] if self._items else None
        if isinstance(item, TerminalOutput) and isinstance(last, TerminalOutput) and last.precedes(item):
            self._items[-1] = TerminalOutput(item.terminal_id, last.text + item.text)
        else:
            self._items.append(item)
        self._notify()

    async def get(self) -> InboxItem:
        self._taken += 1
        if self._taken % _ITEMS_PER_CHECKPOINT == 0:
            await checkpoint()
        while not self._items:
            await self._changed.wait()
        item = self._items.popleft()
        self._notify()
        return item

    async def wait_for_room(self) -> None:
        while len(self._items) >= self._limit:
            await self._changed.wait()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
