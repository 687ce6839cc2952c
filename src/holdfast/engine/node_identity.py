"""The identity of a node, under which it claims runs."""

from dataclasses import dataclass

from holdfast.core.ids import NodeId
from holdfast.core.run import Lease


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A node and how long its leases last: `lease_time` is None if the data directory lock is the lease."""

    node: NodeId
    lease_time: float | None

    def lease(self, now: float) -> Lease:
        return Lease(self.node, None if self.lease_time is None else now + self.lease_time)

    @property
    def incarnation(self) -> NodeId | None:
        return self.node if self.lease_time is None else None
