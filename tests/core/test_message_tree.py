"""The message tree and its head: edits move the head and destroy nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.message_tree import (
    append,
    clear,
    copies,
    node,
    on_path,
    path,
    question,
    redo,
    settled,
    switch,
    truncate,
    undo,
)
from holdfast.core.model_input import model_input
from holdfast.core.parts import TextPart
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.transcript import MessageStatus
from tests.core.values import PROPERTY, SID, Forest, a_session, mid


@pytest.fixture
def tree() -> Forest:
    """
    q1 - a1 - q2  - a2 - q3 - a3
            |     ` b2                 (a2, retried)
            ` q2' - c2                 (q2, edited)
    """
    forest = Forest()
    forest.turn("q1", "a1", None)
    forest.turn("q2", "a2", "a1")
    forest.turn("q3", "a3", "a2")
    forest.hang("b2", "assistant", "q2")
    forest.turn("q2'", "c2", "a1")
    return forest


def at(head: str | None, redo: Sequence[str] = ()) -> Session:
    return a_session(head=None if head is None else mid(head), redo=tuple(map(mid, redo)), title="t", version=4)


def names(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]


# ---- reading the tree ----


def test_a_path_runs_from_the_root_to_its_end(tree: Forest) -> None:
    """The shown branch is the way to the head, oldest first; no head, no messages."""
    assert names(path(tree, at("a3"), mid("a3"))) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert names(path(tree, at("a3"), mid("c2"))) == ["q1", "a1", "q2'", "c2"]
    assert path(tree, at(None), None) == []


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, ["q1", "a1", "q2", "b2"]),
        (0, []),
        (1, ["b2"]),
        (3, ["a1", "q2", "b2"]),
        (4, ["q1", "a1", "q2", "b2"]),
        (99, ["q1", "a1", "q2", "b2"]),
    ],
)
def test_a_limited_path_is_its_newest_part(tree: Forest, limit: int | None, expected: list[str]) -> None:
    """A page is the last messages of the path, still oldest first."""
    assert names(path(tree, at("b2"), mid("b2"), limit)) == expected


def test_a_limited_path_reads_no_more_than_it_shows(tree: Forest) -> None:
    """An edit or a page of a long session touches only the messages it needs: older ones may be missing."""
    del tree.messages[mid("q1")]
    assert names(path(tree, at("b2"), mid("b2"), 2)) == ["q2", "b2"]


@pytest.mark.parametrize(
    ("head", "message", "expected"),
    [
        ("a3", "a3", True),
        ("a3", "q1", True),
        ("a3", "b2", False),
        ("a3", "q2'", False),
        ("c2", "a1", True),
        ("c2", "q2", False),
        ("a1", "q2", False),
        (None, "q1", False),
        ("a3", "nobody", False),
    ],
)
def test_the_shown_branch_is_what_lies_above_the_head(
    tree: Forest, head: str | None, message: str, expected: bool
) -> None:
    """O1: whether an edit takes a message off the shown branch is decided by the way from the head to the root."""
    assert on_path(tree, at(head), mid(message)) is expected


def strangers(tree: Forest) -> list[MessageId]:
    """Ids that are no messages of this session's tree: none at all, another session's, one that still queues."""
    tree.hang("theirs", "user", None, session_id=SessionId("ses_2"))
    tree.hang("queued", "user", "a3", in_tree=False)
    return [mid("nobody"), mid("theirs"), mid("queued")]


CALLS: list[Callable[[Forest, Session, MessageId], object]] = [
    node,
    path,
    switch,
    question,
    truncate,
]


@pytest.mark.parametrize("call", CALLS, ids=["node", "path", "switch", "question", "truncate"])
def test_messages_outside_the_tree_are_not_found(
    tree: Forest, call: Callable[[Forest, Session, MessageId], object]
) -> None:
    """O1: a missing message, another session's and one still in the queue are not told apart."""
    for stranger in strangers(tree):
        with pytest.raises(NotFoundError):
            call(tree, at("a3"), stranger)


@pytest.mark.parametrize(
    ("message", "expected"), [("q1", "q1"), ("a1", "q1"), ("a2", "q2"), ("b2", "q2"), ("q2'", "q2'"), ("c2", "q2'")]
)
def test_the_question_of_an_answer_is_its_parent(tree: Forest, message: str, expected: str) -> None:
    """O2: retry and edit start from the user message, whichever of the two was named."""
    assert question(tree, at("a3"), mid(message)).id == expected


# ---- moving the head ----


def test_a_new_leaf_becomes_the_head_and_forgets_what_was_undone() -> None:
    """A3: sending after an undo shows the new turn; redo has nothing to bring back."""
    assert append(at("a1", ["a3"]), mid("c2")) == at("c2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (at("a3"), at("a2", ["a3"])),
        (at("q3"), at("a2", ["q3"])),
        (at("a2", ["a3"]), at("a1", ["a3", "a2"])),
        (at("c2"), at("a1", ["c2"])),
        (at("b2"), at("a1", ["b2"])),
        (at("a1"), at(None, ["a1"])),
    ],
)
def test_undo_steps_before_the_last_question(tree: Forest, before: Session, after: Session) -> None:
    """O2: undo takes back the last user message with its answer and remembers the head it left."""
    assert undo(tree, before) == after


REFUSED: dict[str, Callable[[Forest], object]] = {
    "undo of an empty branch": lambda tree: undo(tree, at(None, ["a1"])),
    "undo without a question": lambda tree: undo(tree, at(tree.hang("hello", "assistant", None))),
    "redo without an undo": lambda tree: redo(at("a3")),
    "retry of an answer to nothing": lambda tree: question(tree, at("a3"), tree.hang("a0", "assistant", None)),
    "truncate at another answer": lambda tree: truncate(tree, at("a3"), mid("b2")),
    "truncate at another question": lambda tree: truncate(tree, at("a3"), mid("q2'")),
    "truncate below the head": lambda tree: truncate(tree, at("a1"), mid("q2")),
    "truncate of an empty branch": lambda tree: truncate(tree, at(None), mid("q1")),
}


@pytest.mark.parametrize("edit", REFUSED.values(), ids=REFUSED)
def test_an_edit_of_what_is_not_shown_is_refused(tree: Forest, edit: Callable[[Forest], object]) -> None:
    """O1, O2: there must be a turn to take back, and only a message that is shown can be made the last one."""
    with pytest.raises(NotAllowedError):
        edit(tree)


def test_redo_brings_back_the_latest_undone_head() -> None:
    """O2: redo goes forward one undo at a time, the latest first."""
    assert redo(at("a1", ["a3", "a2"])) == at("a2", ["a3"])
    assert redo(at("a2", ["a3"])) == at("a3")


@pytest.mark.parametrize("last", ["q1", "a1", "q2", "a2", "q3", "a3"])
def test_truncate_shows_nothing_after_a_message(tree: Forest, last: str) -> None:
    """O1: truncate moves the head back to any message of the shown branch, forgets the redo list and erases nothing."""
    before = dict(tree.messages)
    assert truncate(tree, at("a3", ["c2"]), mid(last)) == at(last)
    assert tree.messages == before


@pytest.mark.parametrize(
    ("to", "leaf"),
    [
        ("a3", "a3"),
        ("b2", "b2"),
        ("c2", "c2"),
        ("q3", "a3"),
        ("a2", "a3"),
        ("q2'", "c2"),
        ("q2", "b2"),  # its answers are a2 and b2; b2 is newer
        ("q1", "c2"),  # below a1 are q2 and q2'; q2' is newer
    ],
)
def test_switch_descends_to_the_newest_leaf(tree: Forest, to: str, leaf: str) -> None:
    """O2: a branch is shown to its end, by the newest message at each fork, and the redo list is forgotten."""
    assert switch(tree, at("a1", ["a3"]), mid(to)) == at(leaf)


def test_switch_does_not_descend_into_the_queue(tree: Forest) -> None:
    """A3: a turn that still waits outside the tree is on no branch."""
    tree.hang("queued", "user", "a3", in_tree=False)
    assert switch(tree, at("c2"), mid("q3")).head == "a3"


def test_clear_shows_nothing() -> None:
    """O1: a cleared session has no head and nothing to redo, and is otherwise the same session."""
    assert clear(at("a3", ["c2"])) == at(None)


# ---- fork ----


def copy_path(tree: Forest, to: str) -> list[Message]:
    numbers = count(1)
    return copies(path(tree, at("a3"), mid(to)), SessionId("ses_2"), lambda _: mid(f"n{next(numbers)}"))


def test_a_fork_copies_the_path(tree: Forest) -> None:
    """O1: the copy has new ids in a chain of its own, belongs to no run and has no key; the original is untouched."""
    tree.messages[mid("q2")] = replace(tree.messages[mid("q2")], key="key-1", last_seq=9)
    before = dict(tree.messages)
    copied = copy_path(tree, "b2")
    assert [(copy.id, copy.parent_id, copy.role) for copy in copied] == [
        ("n1", None, "user"),
        ("n2", "n1", "assistant"),
        ("n3", "n2", "user"),
        ("n4", "n3", "assistant"),
    ]
    assert [copy.parts for copy in copied] == [(TextPart(name),) for name in ("q1", "a1", "q2", "b2")]
    assert {(copy.session_id, copy.run_id, copy.key, copy.last_seq) for copy in copied} == {("ses_2", None, None, 0)}
    assert tree.messages == before


@pytest.mark.parametrize(
    "unsettled",
    [{"status": "streaming", "parts": ()}, {"status": "interrupted", "recovery": "pending", "parts": ()}],
    ids=["streaming", "pending"],
)
def test_a_fork_copies_settled_messages_only(tree: Forest, unsettled: dict[str, object]) -> None:
    """O1: an answer that is still open or being recovered is left out, at the end and in the middle of the path."""
    for name in ("a2", "a3"):
        tree.hang(name, "assistant", {"a2": "q2", "a3": "q3"}[name], **unsettled)
    copied = copy_path(tree, "a3")
    assert [copy.parts for copy in copied] == [(TextPart(name),) for name in ("q1", "a1", "q2", "q3")]
    assert [(copy.id, copy.parent_id) for copy in copied] == [("n1", None), ("n2", "n1"), ("n3", "n2"), ("n4", "n3")]


@pytest.mark.parametrize("status", ["complete", "cancelled", "failed", "interrupted"])
@pytest.mark.parametrize("recovery", [None, "recovered", "none"])
def test_a_fork_copies_every_kind_of_ending(tree: Forest, status: str, recovery: str | None) -> None:
    """O1: a settled answer is copied with its status and notice, however it ended."""
    tree.hang("a3", "assistant", "q3", status=status, recovery=recovery, reason="why")
    copied = copy_path(tree, "a3")
    assert (copied[-1].status, copied[-1].recovery, copied[-1].reason) == (status, recovery, "why")


# ---- what is settled ----


def test_the_settled_path_ends_at_the_last_answer_that_is_final(tree: Forest) -> None:
    """O3: a question that is still to be answered, and an answer still open or being recovered, are not yet settled."""
    everything = path(tree, at("a3"), mid("a3"))
    assert names(settled(everything)) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert names(settled(everything[:5])) == ["q1", "a1", "q2", "a2"]
    assert names(settled(everything[:1])) == names(settled([])) == []
    still_open = replace(everything[5], status="streaming")
    pending = replace(everything[5], status="interrupted", recovery="pending")
    assert names(settled([*everything[:5], still_open])) == ["q1", "a1", "q2", "a2"]
    assert names(settled([*everything[:5], pending])) == ["q1", "a1", "q2", "a2"]


@pytest.mark.parametrize("status", ["complete", "cancelled", "failed", "interrupted"])
def test_every_ending_settles_an_answer(tree: Forest, status: MessageStatus) -> None:
    """O3: an answer is settled however it ended, with or without output."""
    messages = [tree.messages[mid("q1")], replace(tree.messages[mid("a1")], status=status, parts=())]
    assert settled(messages) == messages


# ---- what the model sees ----


def compacted(*ids: str) -> dict[MessageId, Compaction]:
    return {mid(name): Compaction(SID, LOCAL, mid(name), f"summary to {name}", 0.0) for name in ids}


@pytest.mark.parametrize(
    ("compactions", "summary", "shown"),
    [
        ((), None, ["q1", "a1", "q2", "a2", "q3"]),
        (("a1",), "summary to a1", ["q2", "a2", "q3"]),
        (("a1", "a2"), "summary to a2", ["q3"]),
        (("q3",), "summary to q3", []),
        (("c2",), None, ["q1", "a1", "q2", "a2", "q3"]),
        (("c2", "q1"), "summary to q1", ["a1", "q2", "a2", "q3"]),
    ],
)
def test_model_input_goes_back_to_the_nearest_compaction(
    tree: Forest, compactions: tuple[str, ...], summary: str | None, shown: list[str]
) -> None:
    """O3: the model gets the nearest summary on its own branch and the messages after it; the tree stays as it was."""
    before = dict(tree.messages)
    found = model_input(path(tree, at("a3"), mid("q3")), compacted(*compactions))
    assert (found.summary, names(found.messages)) == (summary, shown)
    assert tree.messages == before


def test_messages_without_parts_are_not_shown_to_the_model(tree: Forest) -> None:
    """C5: a message that is only its notice is left out of model input, and a compaction at it still counts."""
    tree.hang("a1", "assistant", "q1", parts=(), status="cancelled")
    tree.hang("a2", "assistant", "q2", parts=(), status="failed")
    messages = path(tree, at("a3"), mid("q3"))
    assert names(model_input(messages, {}).messages) == ["q1", "q2", "q3"]
    found = model_input(messages, compacted("a1"))
    assert (found.summary, names(found.messages)) == ("summary to a1", ["q2", "q3"])


# ---- O2 as a property ----


@dataclass
class Play:
    """A session under random edits, as the service makes them: new messages, then one move of the head."""

    tree: Forest = field(default_factory=Forest)
    session: Session = field(default_factory=a_session)
    shown: dict[MessageId, list[str]] = field(default_factory=dict)
    """Every head there was, with the branch that was shown then."""

    def new(self) -> str:
        return f"m{len(self.tree.messages)}"

    def any_message(self, pick: int) -> MessageId | None:
        ids = list(self.tree.messages)
        return ids[pick % len(ids)] if ids else None

    def ask(self, parent: MessageId | None) -> None:
        self.answer(self.tree.hang(self.new(), "user", parent))

    def answer(self, asked: MessageId) -> None:
        leaf = self.tree.hang(self.new(), "assistant", asked, run_id=RunId(self.new()))
        self.session = append(self.session, leaf)

    def do(self, verb: str, pick: int) -> None:
        """Refusals are part of the game: they change nothing."""
        try:
            self._do(verb, self.any_message(pick))
        except NotAllowedError:
            return
        if self.session.head is not None:
            self.shown.setdefault(self.session.head, names(path(self.tree, self.session, self.session.head)))

    def _do(self, verb: str, picked: MessageId | None) -> None:
        if verb == "send":
            self.ask(self.session.head)
        elif verb == "undo":
            self.session = undo(self.tree, self.session)
        elif verb == "redo":
            self.session = redo(self.session)
        elif picked is None:
            return
        elif verb == "retry":
            self.answer(question(self.tree, self.session, picked).id)
        elif verb == "edit":
            self.ask(question(self.tree, self.session, picked).parent_id)
        elif verb == "truncate":
            self.session = truncate(self.tree, self.session, picked)
        else:
            self.session = switch(self.tree, self.session, picked)


VERBS = ["send", "undo", "redo", "retry", "edit", "truncate", "switch"]
PLAYS = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 99)), max_size=14)


@PROPERTY
@given(PLAYS)
def test_whatever_is_edited_every_earlier_branch_can_be_reached_again(moves: list[tuple[str, int]]) -> None:
    """O1, O2: after any edits the shown branch and all that redo remembers can be read, undo shows the beginning of it
    before the last question, redo takes that back, and a switch to any earlier head shows its whole branch again."""
    play = Play()
    for verb, pick in moves:
        play.do(verb, pick)
        path(play.tree, play.session, play.session.head)
        for left in play.session.redo:
            node(play.tree, play.session, left)
    if play.session.head is not None:
        before, session = path(play.tree, play.session, play.session.head), undo(play.tree, play.session)
        after = path(play.tree, session, session.head)
        assert before[: len(after)] == after
        assert [message.role for message in before[len(after) :]].count("user") == 1
        assert before[len(after)].role == "user"
        assert redo(session) == play.session
    for head, branch in play.shown.items():
        again = switch(play.tree, play.session, head)
        assert again.head is not None
        assert names(path(play.tree, again, again.head))[: len(branch)] == branch
        assert on_path(play.tree, again, head)
        if not play.tree.children(SID, head):
            assert again.head == head
