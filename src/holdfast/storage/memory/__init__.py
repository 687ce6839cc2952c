"""The storage ports in one process, on plain dicts: the reference of the contract suites, and what simulations run on.

Nothing is durable. Several engines may share one set of objects as the nodes of a cluster, and a new engine on the same
objects is a restart. A call gives way to other tasks before and after its work and never inside it, on asyncio and
on trio.
"""

from holdfast.storage.memory.journal import MemoryJournal
from holdfast.storage.memory.store import MemoryStore
from holdfast.storage.memory.wakeups import MemoryWakeups

__all__ = ["MemoryJournal", "MemoryStore", "MemoryWakeups"]
