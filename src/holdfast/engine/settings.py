"""What can be set about the engine, with the defaults of a fresh machine. Seconds and bytes."""

from dataclasses import field

from holdfast.core import ledger
from holdfast.core.recovery import Policy
from holdfast.core.values import dataclass

MIB = 1024 * 1024
DAY = 24 * 3600.0
SWEEP = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    max_runs: int = 2000
    """Runs that one node executes at a time; more stay queued."""
    wall_limit: float = 6 * 3600.0
    """Longest a run may execute, time spent waiting for a person not counted."""
    idle_limit: float = 600.0
    """Longest a run may go without producing anything."""
    max_output: int = 32 * MIB
    """Most that one run may journal."""
    room: int = 64 * 1024
    """Output of one run that may wait for its commit; beyond it the agent waits."""
    tail: int = 256 * 1024
    """Newest output of a run kept in memory for its subscribers; who lags further reads the journal."""
    storage_patience: float = 30.0
    """How long a failed commit is retried before its runs are stopped."""
    final_save: float = 15.0
    """Limit of the shielded last append and settle; recovery does what is left."""
    drain: float = 10.0
    """How long a stopping node lets its runs go on by themselves."""
    cancel_wait: float = 2.0
    fence_wait: float = 5.0
    """How long a takeover waits for the journal before it shows the run as interrupted, recovery pending."""
    poll: float = 5.0
    """How often those who wait for a hint look by themselves."""
    sweep: float = SWEEP
    lease_time: float = 30.0
    """Where leases lapse: how long one lasts."""
    lease_renewal: float | None = None
    """How often it is renewed; three times within it unless this says otherwise."""
    disk_reserve: int = 64 * MIB
    """Free space below which new turns are refused, so that open ones can still be saved."""
    retention: float = 30 * DAY
    """How long settled journals are kept; 0 for ever."""
    answer_within: float = 7 * DAY
    """How long a question may stay unanswered; then the answer is deny. 0: for ever."""
    orphan_grace: float = 3600.0
    """How long a file that no message names is kept: it may be about to be sent."""
    keep_changes: int = 100_000
    touch_every: float = 10.0
    """P6: finished tools move `updated_at` at most this often."""
    recovery: Policy = field(default_factory=Policy)
    memory: ledger.Policy = field(default_factory=ledger.Policy)
    recall_wait: float = 1.0
    """Longest that a run waits for what is remembered."""
    recall_tokens: int = 600
    """Most that is put in front of the model, by an estimate."""
    commit_limit: float = 120.0
    """Longest that a memory provider may take for one commit."""
    flush: float = 10.0
    """How long a stopping node commits what is still to be remembered."""
    warm_sessions: int = 200
    """Sessions for which a memory provider may hold something; beyond it the least recently used is evicted."""
