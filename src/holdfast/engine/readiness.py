"""Decides whether this node accepts new work: not while it drains, the disk is almost full, or the journal is damaged.
Open runs go on. While the journal merely does not answer, new runs are accepted and wait for it. The reserve of free
disk: `disk_reserve` in `engine.settings`."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio

from holdfast.core.errors import DrainingError, HoldfastError, StorageError, StorageFullError, StorageUnavailableError
from holdfast.engine.node_context import NodeContext

log = logging.getLogger("holdfast.engine")

_RECHECK: Final = 5.0  # Seconds between two attempts to open a damaged journal: a person may have replaced it

_SHARE_OUTSIDE: Final = 4  # One part in so many of the reserve must be free outside the store's files


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
            await require_space(self._node)
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
    """Raises StorageFullError if less than the reserve would be free after another `size` bytes in a file of their
    own."""
    free = node.store.free_bytes()
    if free is not None and free - size < node.settings.disk_reserve:
        raise StorageFullError("The disk is almost full. Free some space; open runs can still be saved.")


async def require_space(node: NodeContext, size: int = 0) -> None:
    """Raises StorageFullError if less than the reserve would be free after another `size` bytes in the store. What
    deleted sessions left free inside the store's files counts too, except for a part of the reserve: journals and the
    store's log grow outside of them."""
    try:
        check_disk_space(node, size)
    except StorageFullError:
        free, reserve = node.store.free_bytes(), node.settings.disk_reserve
        if free is None or free - size < reserve // _SHARE_OUTSIDE or free - size + await _reusable(node) < reserve:
            raise


async def _reusable(node: NodeContext) -> int:
    try:
        return await node.store.reusable_bytes()
    except StorageError:
        return 0
