"""Whether this node accepts new work: not while it drains, and not while the disk is almost full. Open runs go on."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.core.errors import DrainingError, HoldfastError, StorageFullError
from holdfast.engine.node_context import NodeContext


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    _node: NodeContext
    _is_draining: Callable[[], bool]

    def refusal(self) -> HoldfastError | None:
        """Why nothing new is accepted now; None if it is."""
        if self._is_draining():
            return DrainingError()
        try:
            check_disk_space(self._node)
        except StorageFullError as full:
            return full
        return None


def check_disk_space(node: NodeContext, size: int = 0) -> None:
    """Raises StorageFullError if less than the reserve would be free after another `size` bytes."""
    free = node.store.free_bytes()
    if free is not None and free - size < node.settings.disk_reserve:
        raise StorageFullError("The disk is almost full. Free some space; open runs can still be saved.")
