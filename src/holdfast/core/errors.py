"""All errors of Holdfast. Each has fields; its message says what happened and what to do next. Their HTTP statuses:
`server.problem_details`, `server.openai.errors`; exit codes: `cli.exit_codes`. Failures of a run are values
(`core.events.Failure`)."""

from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform

from holdfast.core.ids import ApprovalId, RunId, SessionId


@dataclass_transform(eq_default=False)
class HoldfastError(Exception):
    """Base of all errors, which are dataclasses. `code` is stable, for programs; `template` is the message, filled in
    with the fields."""

    code: ClassVar[str] = "error"
    template: ClassVar[str] = "{code}"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False)(cls)

    def __str__(self) -> str:
        return self.template.format(code=self.code, **vars(self))


# ---- refused requests; nothing was changed ----


class NotFoundError(HoldfastError):
    """It does not exist, or belongs to another owner; callers cannot tell which."""

    code = "not-found"
    template = "There is no {kind} with the id {id!r}. It may have been deleted."
    kind: str
    id: str


class SessionBusyError(HoldfastError):
    code = "session-busy"
    template = "The session is busy with run {run}. Wait for it, cancel it, or send with on_busy=queue."
    session: SessionId
    run: RunId


class KeyReusedError(HoldfastError):
    code = "idempotency-key-reused"
    template = "The idempotency key {key!r} was used for another request (run {run}). Use a new key."
    key: str
    run: RunId


class VersionMismatchError(HoldfastError):
    code = "version-mismatch"
    template = "It is at version {found} now, not {expected}. Read it again, then repeat the change."
    expected: int
    found: int


class KeyCancelledError(HoldfastError):
    code = "key-canceled"
    template = "The request with the idempotency key {key!r} was canceled before it arrived. Nothing was stored."
    key: str


class NotAllowedError(HoldfastError):
    """The object is in the wrong state for the request."""

    code = "not-allowed"
    template = "Cannot {what}: {why}."
    what: str
    why: str


class WorkspaceUnavailableError(HoldfastError):
    """The directory of a session's agent cannot be read here."""

    code = "workspace-unavailable"
    template = "The files of this chat cannot be shown: {reason}."
    reason: str


class WorkspaceTimeoutError(WorkspaceUnavailableError):
    """The disk took too long. A change may or may not have been made."""

    code = "workspace-timeout"
    template = "The disk with the files of this chat {reason}."


class PathNotFoundError(HoldfastError):
    code = "path-not-found"
    template = "There is no {path!r} in the workspace. It may have been moved or deleted."
    path: str


class PathRefusedError(HoldfastError):
    """It exists, but is nothing that may be opened."""

    code = "path-refused"
    template = "{path!r} cannot be opened: {why}."
    path: str
    why: str


class PathNotChangedError(PathRefusedError):
    template = "{path!r} cannot be changed: {why}."


class PathExistsError(HoldfastError):
    code = "path-exists"
    template = "There is already {path!r} in the workspace. Choose another name."
    path: str


class FileConflictError(HoldfastError):
    """`etag`: of the current version, None if the file was deleted. `text`: its content, None if it is no text or too
    long to be edited."""

    code = "file-changed"
    template = "{path!r} has changed since it was read. Compare both versions, then save again with the current ETag."
    path: str
    etag: str | None
    text: str | None


class ChangesConflictError(HoldfastError):
    """Nothing was restored."""

    code = "files-changed"
    paths: tuple[str, ...]

    def __str__(self) -> str:
        more = len(self.paths) - 5
        shown = ", ".join(self.paths[:5]) + (f" and {more} more" if more > 0 else "")
        return f"Files have changed since: {shown}. Look at them, then restore with `overwrite` to replace them."


class QuotaExceededError(HoldfastError):
    code = "quota-exceeded"
    template = "There are already {limit} {what}. {remedy}"
    what: str
    limit: int
    remedy: str


class QueueTooLargeError(QuotaExceededError):
    template = "With this message the session would have more than {limit} {what}. {remedy}"


class BudgetReachedError(HoldfastError):
    """`budget`: a sentence about it; `free_from`: a local time for people; `retry_after`: seconds until then."""

    code = "budget-reached"
    template = "{budget} New messages are accepted from {free_from}, or once you raise the budget in Settings → Usage."
    budget: str
    free_from: str
    resets_at: str
    retry_after: float


class ReauthenticationRequiredError(HoldfastError):
    code = "reauthentication-required"
    template = "Enter your password again to {what}. A token is not enough for this: log in first."
    what: str


class AlreadyDecidedError(HoldfastError):
    code = "already-decided"
    template = "Approval {approval} was already answered with {decision!r}."
    approval: ApprovalId
    decision: str


class InvalidInputError(HoldfastError):
    code = "invalid"
    template = "{field}: {problem}"
    field: str
    problem: str


class CursorAheadError(HoldfastError):
    code = "cursor-ahead"
    template = "Run {run} has {last} events; there is nothing after {after}. Start again from 0."
    run: RunId
    after: int
    last: int


class JournalPrunedError(HoldfastError):
    code = "journal-pruned"
    template = "The events of run {run} were deleted after the retention period. Its message is kept."
    run: RunId


class IllegalTransitionError(HoldfastError):
    code = "illegal-transition"
    template = "A run with status {status!r} does not allow {verb!r}."
    status: str
    verb: str


class BrokenSequenceError(HoldfastError):
    """A damaged journal, or one of a newer version: a gap, an event after the terminal one, or an unreadable event."""

    code = "broken-sequence"
    template = "{detail}"
    detail: str


class DrainingError(HoldfastError):
    code = "draining"
    template = "The server is shutting down and accepts no new work. Try again in a moment."


# ---- the journal refuses one append; others in the same commit are not affected ----


class AppendRefusedError(HoldfastError):
    code = "append-refused"
    run: RunId


class FencedError(AppendRefusedError):
    code = "fenced"
    template = "Run {run} was taken over: epoch {epoch} is older than {current}."
    epoch: int
    current: int


class SealedError(AppendRefusedError):
    code = "sealed"
    template = "Run {run} already has its terminal event."


class SeqConflictError(AppendRefusedError):
    code = "seq-conflict"
    template = "Run {run} ends at event {last}; an append cannot begin at {seq}."
    seq: int
    last: int


class TooLargeError(AppendRefusedError):
    code = "event-too-large"
    template = "An event of {size} bytes is over the limit of {limit}."
    size: int
    limit: int


class NotJsonError(AppendRefusedError):
    code = "not-json"
    template = "An event has a value that is not JSON: {detail}."
    detail: str


# ---- storage ----


class StorageError(HoldfastError):
    """A storage operation failed. A write may or may not have happened: read before repeating it."""

    code = "storage"
    template = "{what}"
    what: str


class StorageFullError(StorageError):
    code = "storage-full"


class StorageUnavailableError(StorageError):
    """Storage cannot be read or written now. If a file is `damaged`, waiting does not help, only a person does."""

    code = "storage-unavailable"
    damaged: bool = False


class DataDirInUseError(StorageError):
    code = "data-dir-in-use"


class SchemaTooNewError(StorageError):
    code = "schema-too-new"


class ConfigError(HoldfastError):
    """A setting is wrong. `where` names the setting and where its value came from."""

    code = "config"
    template = "{where}: {problem}"
    where: str
    problem: str


def first_error(error: BaseException) -> BaseException:
    """The first error inside the groups that task groups raise, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
