"""All errors share one base class, and their messages say what to do."""

from collections.abc import Iterator

import pytest

from holdfast.core import errors
from holdfast.core.ids import ApprovalId, RunId, SessionId

SAMPLES = [
    errors.NotFoundError("run", "run_9"),
    errors.SessionBusyError(SessionId("ses_1"), RunId("run_9")),
    errors.KeyReusedError("key-7", RunId("run_9")),
    errors.VersionMismatchError(3, 4),
    errors.NotAllowedError("undo", "there is nothing to take back"),
    errors.AlreadyDecidedError(ApprovalId("apr_1"), "deny"),
    errors.InvalidInputError("limit", "must be positive"),
    errors.CursorAheadError(RunId("run_9"), 9, 4),
    errors.JournalPrunedError(RunId("run_9")),
    errors.IllegalTransitionError("complete", "cancel"),
    errors.BrokenSequenceError("Event 3 follows event 1."),
    errors.BudgetReachedError("The daily budget of $5.00 is used up.", "2026-11-20 00:00 (UTC)", "2026-11-20", 60.0),
    errors.DrainingError(),
    errors.FencedError(RunId("run_9"), 1, 2),
    errors.SealedError(RunId("run_9")),
    errors.SeqConflictError(RunId("run_9"), 3, 5),
    errors.TooLargeError(RunId("run_9"), 9, 8),
    errors.NotJsonError(RunId("run_9"), "a set"),
    errors.StorageError("The disk said no."),
    errors.StorageFullError("The disk is full."),
    errors.StorageUnavailableError("The disk is away."),
    errors.DataDirInUseError("Another server holds it."),
    errors.SchemaTooNewError("It was written by a later version."),
]


def below(kind: type[errors.HoldfastError]) -> Iterator[type[errors.HoldfastError]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from below(inner)


def test_every_error_has_its_own_code() -> None:
    """Programs look at the code: no two errors of core share one, but for the
    variants of an error."""
    own = (kind for kind in below(errors.HoldfastError) if kind.__module__ == errors.__name__)
    codes = [kind.code for kind in own if "code" in vars(kind)]
    assert len(set(codes)) == len(codes)
    assert errors.HoldfastError.code not in codes


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: error.code)
def test_every_error_says_something_to_a_person(error: errors.HoldfastError) -> None:
    """The message is words, not the code, and the error can be raised and caught as the root of the tree."""
    assert " " in str(error)
    assert str(error) != error.code
    with pytest.raises(errors.HoldfastError) as raised:
        raise error
    assert raised.value is error


def test_messages_name_what_they_are_about() -> None:
    """The ids and numbers that the error carries are in its message."""
    assert "run_9" in str(errors.SessionBusyError(SessionId("ses_1"), RunId("run_9")))
    assert all(number in str(errors.CursorAheadError(RunId("run_9"), 17, 4)) for number in ("run_9", "17", "4"))
    assert all(number in str(errors.FencedError(RunId("run_9"), 11, 12)) for number in ("run_9", "11", "12"))


@pytest.mark.parametrize(
    ("error", "kind", "name"),
    [
        (errors.NotFoundError("session", "x"), "session", "x"),
        (errors.NotFoundError("message", "x"), "message", "x"),
        (errors.NotFoundError("run", "x"), "run", "x"),
    ],
)
def test_what_is_not_there_is_named(error: errors.NotFoundError, kind: str, name: str) -> None:
    """Each kind of missing thing says which and what it is."""
    assert (error.kind, error.id) == (kind, name)
