"""Leases: which node may execute a run, and until when. `transactions.run_queue` claims and renews them,
`transactions.takeover` takes them from nodes that are gone, and the journal refuses appends of an older epoch
(`storage.append_checks`). A node that cannot renew them stops its runs by itself before they lapse
(`engine.supervisor.Supervisor.heartbeat`). How long one lasts is `lease_time` in `config`."""

from dataclasses import dataclass

from holdfast.core.ids import NodeId


@dataclass(frozen=True, slots=True)
class Lease:
    """Permission to execute a run. `until` is None if it lasts as long as its holder (the data directory lock)."""

    holder: NodeId
    until: float | None = None


def is_live(lease: Lease | None, incarnation: NodeId | None, now: float) -> bool:
    """Whether the lease is held at the store's time `now`. A lease without `until` is held only by `incarnation`."""
    if lease is None:
        return False
    return lease.holder == incarnation if lease.until is None else now < lease.until


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
