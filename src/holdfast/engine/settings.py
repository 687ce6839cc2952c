"""The settings of the engine: limits and times with their defaults, in seconds and bytes: runs at a time, longest run,
output, retries of storage, leases, retention, memory. `config` sets some of them (`app.storage.engine_settings`) and
has the same defaults for those. They are enforced by `engine.supervisor` (runs) and `engine.readiness` (disk). Limits
of a chat run (steps, cost) are in `agents.chat.agent`, of model requests in `models.request_policy`, of agent programs
in `agents.acp.program`."""

from dataclasses import dataclass, field

from holdfast.core import memory_ledger
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.size_text import MIB

DAY = 24 * 3600.0
SWEEP = 30.0


@dataclass(frozen=True, slots=True)
class EngineSettings:
    max_runs: int = 2000  # Runs that one node executes at a time; others stay queued
    wall_limit: float = 6 * 3600.0  # Longest execution of a run, not counting time spent waiting for a person
    idle_limit: float = 600.0  # Longest time without output
    max_output: int = 32 * MIB  # Most output of one run
    max_uncommitted: int = 64 * 1024  # Uncommitted output of one run beyond which its agent waits
    live_tail_bytes: int = 256 * 1024  # Newest output of a run kept in memory; slower subscribers read the journal
    storage_retry_time: float = 30.0  # How long a failed commit is retried before its runs are stopped
    final_save: float = 15.0  # Time limit of the shielded final append and settle; recovery does what is left
    drain_time: float = 10.0  # How long a stopping node waits for its runs to end by themselves
    cancel_wait: float = 2.0  # How long a cancel call waits for the run to be settled
    fence_wait: float = 5.0  # How long a takeover waits for the journal before recovery becomes pending
    poll_interval: float = 5.0  # Longest wait for a wake-up before reading anyway
    sweep_interval: float = SWEEP  # Interval of the periodic work
    lease_time: float = 30.0  # How long a lease lasts in a cluster
    lease_renewal: float | None = None  # Interval of renewals; a third of `lease_time` by default
    disk_reserve: int = 64 * MIB  # Free space below which new turns are refused, so that open ones can still be saved
    retention: float = 30 * DAY  # How long settled journals are kept; 0 keeps them forever
    answer_within: float = 7 * DAY  # How long an approval may stay unanswered before it is denied; 0 waits forever
    unused_file_grace: float = 3600.0  # How long a file without a message is kept: it may be about to be sent
    keep_changes: int = 100_000  # Rows of the change feed that are kept
    touch_every: float = 10.0  # Finished tools update `updated_at` at most this often
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)
    memory: memory_ledger.LedgerPolicy = field(default_factory=memory_ledger.LedgerPolicy)
    recall_wait: float = 1.0  # Longest time that a run waits for memory recall
    recall_tokens: int = 600  # Most recalled tokens that the model is shown, estimated
    commit_limit: float = 120.0  # Longest time for one memory commit
    flush_time: float = 10.0  # How long a stopping node commits what is still dirty
    push_claim: float = 30.0  # How long one attempt to send a notification may take; then any node repeats it
    titles: bool = True  # Whether a new session is titled with the first words of its first message
    warm_sessions: int = 200  # Sessions for which memory providers hold resources; more evict the least recently used
