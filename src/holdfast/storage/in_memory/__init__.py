"""The storage ports in process memory, for simulations and tests. The store runs the same SQL as the durable ones.

Nothing is durable. Several engines may share one set of objects as the nodes of a cluster, and a new engine on the same
objects is a restart. A call yields to other tasks before and after its work and never inside it, on asyncio and trio.
"""

from holdfast.storage.in_memory.journal import InMemoryJournal
from holdfast.storage.in_memory.store import InMemoryStore
from holdfast.storage.in_memory.wakeups import InMemoryWakeups, SingleNodeWakeups

__all__ = ["InMemoryJournal", "InMemoryStore", "InMemoryWakeups", "SingleNodeWakeups"]
