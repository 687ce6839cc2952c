"""A model answer whose deltas are read with `async for`. Adapters return it if they cannot push deltas to a callback as
`follow` of `ports.model` does."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from holdfast.ports.model import Delta, Take, ToolCall


@dataclass(slots=True)
class IteratedAnswer:
    iterate: Callable[["IteratedAnswer"], AsyncIterator[Sequence[Delta]]]
    """Yields the deltas, and sets the other fields before it ends."""
    calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self.iterate(self)

    async def follow(self, take: Take) -> None:
        pass
