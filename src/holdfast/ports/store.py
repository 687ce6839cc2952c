"""The store port: transactions over sessions, messages, runs, approvals, memory, files and the change feed. The rows of
each subject have a page of their own (`session_rows.py` and so on); `Tx` combines them."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from holdfast.core.ids import NodeId, OwnerId
from holdfast.core.parts import Json
from holdfast.ports.approval_rows import Approval, ApprovalRows, ToolGrant
from holdfast.ports.change_rows import Change, ChangeKind, ChangeRows
from holdfast.ports.file_rows import FileRows, StoredFile
from holdfast.ports.memory_rows import Fact, MemoryRows
from holdfast.ports.run_rows import RunRows
from holdfast.ports.session_rows import SearchHit, SessionQuery, SessionRows

__all__ = [
    "Approval",
    "Change",
    "ChangeKind",
    "Fact",
    "SearchHit",
    "SessionQuery",
    "Store",
    "StoredFile",
    "ToolGrant",
    "Tx",
]

T = TypeVar("T")


class Tx(SessionRows, RunRows, ApprovalRows, MemoryRows, FileRows, ChangeRows, Protocol):
    """One transaction, as the synchronous function inside it sees it. Reads see the transaction's own writes.

    `put_*` writes the whole value (insert or replace by id). Deleted sessions are returned like others: `deleted_at`
    marks them. Only `engine.transactions` calls the writing half."""

    @property
    def now(self) -> float:
        """The store's clock, the only one that judges leases."""

    def settings(self, owner: OwnerId) -> Mapping[str, Json]: ...
    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        """Set an owner's setting; None removes it."""


class Store(Protocol):
    """Durable storage of accepted work. A transaction is a synchronous function. It may run on another thread and more
    than once (a conflict is retried inside), so its only effects are those on `tx`, and it returns plain values."""

    @property
    def generation(self) -> str:
        """Changes whenever change numbers may have started over, as after restoring a backup."""

    @property
    def incarnation(self) -> NodeId | None:
        """The only node that can be alive, if the storage itself excludes all others; None if leases lapse."""

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """Commit all of `work` durably, or nothing. Raises what `work` raises; StorageError: the outcome is unknown."""

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one snapshot without writing."""

    def free_bytes(self) -> int | None:
        """Free space on the medium, or None if unknown."""

    async def close(self) -> None: ...
