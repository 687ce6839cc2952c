"""The wakeups port: hints between nodes that something may have changed. They may be lost. The engine's side is
`engine.signals`, the transport `storage.wakeup_transport`."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from holdfast.core.ids import NodeId, RunId


@dataclass(frozen=True, slots=True)
class Wake:
    """`queue`: a run may be claimable. `control`: the run's row changed. `appended`: its journal grew. `changed`: the
    change feed grew. `control` and `appended` without a run mean any run: hints were lost."""

    kind: Literal["queue", "control", "appended", "changed"]
    run: RunId | None = None


class Listener(Protocol):
    async def next(self) -> Collection[Wake]:
        """Wait for at least one."""


class Wakeups(Protocol):
    """A hint may be lost, doubled or late, so a task that waits for one also polls."""

    def listen(self, node: NodeId) -> AbstractAsyncContextManager[Listener]: ...
    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        """Send hints to other nodes, and possibly to `node`'s own listeners. Never raises and never waits for them."""
