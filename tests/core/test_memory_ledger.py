"""The memory ledger: which turns are dirty, what a commit includes, and that every turn is committed exactly once."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import memory_ledger as books
from holdfast.core.ids import LOCAL, MessageId, NodeId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.memory_ledger import RESTS, DirtyTurn, Ledger, LedgerPolicy, MemoryCommit

SID = SessionId("ses_1")
LEASE = Lease(NodeId("node_1"))
POLICY = LedgerPolicy(idle=100.0, tries=4, pause=10.0, longest_pause=25.0, most_turns=3)
NEW = Ledger(SID, LOCAL)


def turn(n: int, handle: str | None = "a") -> DirtyTurn:
    return DirtyTurn(SID, LOCAL, n, RunId(f"run_{n}"), MessageId(f"q_{n}"), MessageId(f"a_{n}"), 1.0, handle)


def dirty(*handles: str | None) -> tuple[Ledger, list[DirtyTurn]]:
    ledger = NEW
    for handle in handles:
        ledger = books.complete(ledger, handle, 0.0, POLICY)
    return ledger, [turn(n, handle) for n, handle in enumerate(handles, 1)]


def test_a_completed_turn_is_dirty_and_due_when_idle() -> None:
    """M1: each turn is one more, and puts off the boundary of idleness."""
    ledger = books.complete(NEW, "a", 5.0, POLICY)
    assert (ledger.completed, ledger.dirty, ledger.due_at, ledger.commit) == (1, 1, 105.0, None)
    assert books.complete(ledger, "a", 50.0, POLICY).due_at == 150.0


def test_a_boundary_is_due_at_once_and_later_turns_do_not_put_it_off() -> None:
    """M2: what is dirty at a boundary is due; a turn after it leaves that as it is."""
    ledger, _ = dirty("a", "a")
    ledger = books.reach_boundary(ledger, 7.0)
    assert (ledger.boundary, ledger.due_at) == (2, 7.0)
    assert books.complete(ledger, "a", 9.0, POLICY).due_at == 7.0
    assert books.reach_boundary(NEW, 7.0) == NEW


@pytest.mark.parametrize(
    ("handles", "named", "expected"),
    [
        (["a", "a"], None, MemoryCommit("a", 1, 2, LEASE)),
        (["a", "b"], None, MemoryCommit("a", 1, 1, LEASE)),
        (["a", "b"], "b", MemoryCommit("a", 1, 1, LEASE)),
        ([None, None, "b"], "c", MemoryCommit("c", 1, 2, LEASE)),
        (["a"] * 5, None, MemoryCommit("a", 1, 3, LEASE)),
        ([None], None, None),
        ([], "b", None),
    ],
)
def test_a_commit_takes_the_oldest_turns_of_one_provider(
    handles: list[str | None], named: str | None, expected: MemoryCommit | None
) -> None:
    """M6: turns go to their own provider, oldest first, as many as fit; those of nobody to the one that is named."""
    ledger, turns = dirty(*handles)
    ledger, commit = books.begin(ledger, turns, LEASE, POLICY, named)
    assert commit == expected
    assert ledger.commit == expected
    if named is not None:
        assert ledger.handle == named


def test_a_failed_commit_is_pinned() -> None:
    """M5, M11: begun again, it has the same turns, provider and id, whatever came since and whoever is named."""
    ledger, turns = dirty("a", "a")
    ledger, commit = books.begin(ledger, turns, LEASE, POLICY)
    assert commit is not None
    ledger = books.failed(ledger, "down", 50.0, POLICY)
    assert (ledger.dirty, ledger.last_error, ledger.due_at) == (2, "down", 60.0)
    assert ledger.commit == replace(commit, lease=None)
    ledger = books.complete(ledger, "b", 55.0, POLICY)
    assert ledger.due_at == 60.0
    again, repeated = books.begin(ledger, [*turns, turn(3, "b")], LEASE, POLICY, "b")
    assert repeated == commit
    assert books.commit_id(SID, commit) == "ses_1/1-2"
    done = books.done(again, commit, 70.0, POLICY)
    assert (done.committed, done.dirty, done.due_at, done.last_error) == (2, 1, 170.0, None)


def test_tries_are_spaced_and_end() -> None:
    """M5: pauses double up to the longest; after the last try only another boundary wakes it, with all tries again."""
    ledger, turns = dirty("a")
    ledger = books.reach_boundary(ledger, 0.0)
    pauses = []
    for _ in range(4):
        ledger, _ = books.begin(ledger, turns, LEASE, POLICY)
        ledger = books.failed(ledger, "down", 0.0, POLICY)
        pauses.append(ledger.due_at)
    assert pauses == [10.0, 20.0, 25.0, RESTS]
    assert books.is_spent(ledger)
    assert books.reach_due_boundary(ledger, 5.0) == ledger
    again = books.reach_boundary(ledger, 5.0)
    assert (again.due_at, again.attempts) == (5.0, 0)


def test_a_commit_goes_on_up_to_the_boundary() -> None:
    """M6: while turns of another provider are before the boundary, more is due; what came after it is not."""
    ledger, turns = dirty("a", "b")
    ledger = books.complete(books.reach_boundary(ledger, 0.0), "b", 1.0, POLICY)
    ledger, commit = books.begin(ledger, turns, LEASE, POLICY)
    assert commit is not None
    ledger = books.done(ledger, commit, 3.0, POLICY)
    assert (ledger.committed, ledger.due_at) == (1, 3.0)
    ledger, commit = books.begin(ledger, turns[1:], LEASE, POLICY)
    assert commit is not None
    assert books.done(ledger, commit, 4.0, POLICY).due_at == 104.0


def test_discarding_leaves_nothing_but_a_commit_under_way() -> None:
    """M7: what is discarded is not dirty any more; a commit that somebody is at may end."""
    ledger, turns = dirty("a", "a")
    assert books.discard(ledger).dirty == 0
    begun, commit = books.begin(ledger, turns[:1], LEASE, POLICY)
    assert commit is not None
    left = books.discard(begun)
    assert (left.completed, left.commit) == (1, commit)
    assert books.done(left, commit, 1.0, POLICY).dirty == 0
    nothing, none = books.begin(books.failed(left, "down", 1.0, POLICY), [], LEASE, POLICY)
    assert none is None
    assert nothing.commit is None


OPERATIONS = st.lists(
    st.sampled_from(["turn a", "turn b", "turn", "reach", "begin", "begin b", "done", "fail", "evict"])
)


@settings(deadline=None)
@given(OPERATIONS)
def test_every_turn_has_exactly_one_commit(operations: list[str]) -> None:
    """M4, M5, M6, M11: whatever happens in whatever order, commits are done in order, each turn in one, by its own
    provider, under an id that always has the same turns."""
    ledger, turns = NEW, list[DirtyTurn]()
    ids: dict[str, tuple[str, int, int]] = {}
    done: list[int] = []
    for operation in [*operations, *(["begin b", "done"] * 40)]:
        match operation.split():
            case ["turn", *handle]:
                name = handle[0] if handle else None
                ledger = books.complete(ledger, name, 0.0, POLICY)
                turns.append(turn(ledger.completed, name))
            case ["reach"]:
                ledger = books.reach_boundary(ledger, 0.0)
            case ["begin", *named]:
                ledger, commit = books.begin(ledger, turns, LEASE, POLICY, named[0] if named else None)
                if commit is not None:
                    what = (commit.handle, commit.first, commit.last)
                    assert ids.setdefault(books.commit_id(SID, commit), what) == what
                    mine = [each for each in turns if commit.first <= each.n <= commit.last]
                    assert {each.handle or commit.handle for each in mine} == {commit.handle}
            case ["done"] if ledger.commit is not None and ledger.commit.lease is not None:
                done += range(ledger.commit.first, ledger.commit.last + 1)
                turns = [each for each in turns if each.n > ledger.commit.last]
                ledger = books.done(ledger, ledger.commit, 0.0, POLICY)
            case ["fail"] if ledger.commit is not None:
                ledger = books.failed(ledger, "down", 0.0, POLICY)
            case ["evict"]:
                ledger = books.evict(ledger)
            case _:
                pass
        assert 0 <= ledger.committed <= ledger.completed
        assert ledger.dirty == len(turns)
    assert done == list(range(1, ledger.completed + 1))
