"""Whether this node accepts new work: not while it drains, the disk is almost full, or the journal is damaged. Open
runs go on. A journal that only does not answer is waited for, and runs are accepted."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio

from holdfast.core.errors import DrainingError, HoldfastError, StorageError, StorageFullError, StorageUnavailableError
from holdfast.engine.node_context import NodeContext

log = logging.getLogger("holdfast.engine")

_RECHECK: Final = 5.0  # Seconds between two attempts to open a damaged journal: a person may have replaced it


class Readiness:
    def __init__(self, node: NodeContext, is_draining: Callable[[], bool]) -> None:
        self._node = node
        self._is_draining = is_draining
        self._damage: StorageError | None = None
        self._checked_at = 0.0

    async def refusal(self) -> HoldfastError | None:
        """Why nothing new is accepted now; None if it is."""
        if self._is_draining():
            return DrainingError()
        try:
            check_disk_space(self._node)
        except StorageFullError as full:
            return full
        if self._damage is not None and anyio.current_time() - self._checked_at >= _RECHECK:
            await self.check_journal()
        return None if self._damage is None else replace(self._damage)  # raising one object again and again would leak

    async def check_journal(self) -> None:
        """At the start, and again while the journal is damaged; logs what changed."""
        journal, before = self._node.journal, self._damage
        self._checked_at = anyio.current_time()
        try:
            with anyio.fail_after(self._node.settings.fence_wait):
                if before is not None:
                    await journal.reopen()
                await journal.heads([])
        except (StorageError, TimeoutError) as error:
            if not isinstance(error, StorageUnavailableError) or not error.damaged:
                log.warning("The journal does not answer; new runs wait for it: %s", error)
                return
            self._damage = error
            if before is None:
                log.error("The journal is damaged, so new messages are refused: %s", error)
        else:
            self._damage = None
            if before is not None:
                log.warning("The journal can be used again.")


def check_disk_space(node: NodeContext, size: int = 0) -> None:
    """Raises StorageFullError if less than the reserve would be free after another `size` bytes."""
    free = node.store.free_bytes()
    if free is not None and free - size < node.settings.disk_reserve:
        raise StorageFullError("The disk is almost full. Free some space; open runs can still be saved.")
