"""The one tree of errors. Each carries fields; each message says what was found and what to do next."""

from typing import ClassVar

from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.values import dataclass


@dataclass(eq=False)
class HoldfastError(Exception):
    """Anything Holdfast refuses or fails to do. `code` is stable and is what programs look at."""

    code: ClassVar[str] = "error"

    def __str__(self) -> str:
        return self.code


# ---- what the caller asked for cannot be done; nothing was changed ----


@dataclass(eq=False)
class NotFound(HoldfastError):
    """No such thing, or it belongs to somebody else: the two are not told apart."""

    code: ClassVar[str] = "not-found"
    kind: str
    id: str

    def __str__(self) -> str:
        return f"There is no {self.kind} with the id {self.id!r}. It may have been deleted."


@dataclass(eq=False)
class Busy(HoldfastError):
    code: ClassVar[str] = "session-busy"
    session: SessionId
    run: RunId

    def __str__(self) -> str:
        return f"The session is busy with run {self.run}. Wait for it, cancel it, or send with on_busy=queue."


@dataclass(eq=False)
class KeyReused(HoldfastError):
    code: ClassVar[str] = "idempotency-key-reused"
    key: str
    run: RunId

    def __str__(self) -> str:
        return f"The idempotency key {self.key!r} was used for another request (run {self.run}). Take a new key."


@dataclass(eq=False)
class VersionMismatch(HoldfastError):
    code: ClassVar[str] = "version-mismatch"
    expected: int
    found: int

    def __str__(self) -> str:
        return f"The session is at version {self.found}, not {self.expected}. Read it again, then repeat the change."


@dataclass(eq=False)
class NotAllowed(HoldfastError):
    """The thing exists but is in the wrong state for this."""

    code: ClassVar[str] = "not-allowed"
    what: str
    why: str

    def __str__(self) -> str:
        return f"Cannot {self.what}: {self.why}."


@dataclass(eq=False)
class AlreadyDecided(HoldfastError):
    code: ClassVar[str] = "already-decided"
    approval: ApprovalId
    decision: str

    def __str__(self) -> str:
        return f"Approval {self.approval} was already answered with {self.decision!r}."


@dataclass(eq=False)
class Invalid(HoldfastError):
    code: ClassVar[str] = "invalid"
    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


@dataclass(eq=False)
class CursorAhead(HoldfastError):
    code: ClassVar[str] = "cursor-ahead"
    run: RunId
    after: int
    last: int

    def __str__(self) -> str:
        return f"Run {self.run} has {self.last} events; there is nothing after {self.after}. Start again from 0."


@dataclass(eq=False)
class JournalPruned(HoldfastError):
    code: ClassVar[str] = "journal-pruned"
    run: RunId

    def __str__(self) -> str:
        return f"The journal of run {self.run} is past its retention. Its message is kept; its events are not."


@dataclass(eq=False)
class IllegalTransition(HoldfastError):
    code: ClassVar[str] = "illegal-transition"
    status: str
    verb: str

    def __str__(self) -> str:
        return f"A run that is {self.status} cannot {self.verb}."


@dataclass(eq=False)
class BrokenSequence(HoldfastError):
    """A journal that cannot have been written by us, or not by this version: an event after the terminal one, or one
    that cannot be read."""

    code: ClassVar[str] = "broken-sequence"
    detail: str

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False)
class Draining(HoldfastError):
    code: ClassVar[str] = "draining"

    def __str__(self) -> str:
        return "The server is stopping and takes no new work. Try again in a moment."


# ---- the journal refuses one append; the others of the same commit are untouched ----


@dataclass(eq=False)
class Refused(HoldfastError):
    code: ClassVar[str] = "append-refused"
    run: RunId


@dataclass(eq=False)
class Fenced(Refused):
    code: ClassVar[str] = "fenced"
    epoch: int
    current: int

    def __str__(self) -> str:
        return f"Run {self.run} was taken over: epoch {self.epoch} is older than {self.current}."


@dataclass(eq=False)
class Sealed(Refused):
    code: ClassVar[str] = "sealed"

    def __str__(self) -> str:
        return f"Run {self.run} already has its terminal event."


@dataclass(eq=False)
class SeqConflict(Refused):
    code: ClassVar[str] = "seq-conflict"
    seq: int
    last: int

    def __str__(self) -> str:
        return f"Run {self.run} ends at event {self.last}; an append cannot begin at {self.seq}."


@dataclass(eq=False)
class TooLarge(Refused):
    code: ClassVar[str] = "event-too-large"
    size: int
    limit: int

    def __str__(self) -> str:
        return f"An event of {self.size} bytes is over the limit of {self.limit}."


@dataclass(eq=False)
class NotJson(Refused):
    code: ClassVar[str] = "not-json"
    detail: str

    def __str__(self) -> str:
        return f"An event holds what JSON cannot express: {self.detail}."


# ---- storage ----


@dataclass(eq=False)
class StorageError(HoldfastError):
    """Storage did not do what it was asked to. Whether a write happened is unknown: read before repeating."""

    code: ClassVar[str] = "storage"
    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(eq=False)
class StorageFull(StorageError):
    code: ClassVar[str] = "storage-full"


@dataclass(eq=False)
class StorageUnavailable(StorageError):
    """Nothing can be read or written just now."""

    code: ClassVar[str] = "storage-unavailable"


@dataclass(eq=False)
class DataDirInUse(StorageError):
    code: ClassVar[str] = "data-dir-in-use"


@dataclass(eq=False)
class SchemaTooNew(StorageError):
    code: ClassVar[str] = "schema-too-new"


def session_not_found(sid: SessionId) -> NotFound:
    return NotFound("session", sid)


def message_not_found(mid: MessageId) -> NotFound:
    return NotFound("message", mid)


def run_not_found(rid: RunId) -> NotFound:
    return NotFound("run", rid)
