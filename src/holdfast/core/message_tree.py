"""The tree of a session's messages and its head, the leaf that is shown: where undo, redo, branch switches and forks
move the head. Edits destroy nothing: an edited message becomes a sibling of the old one
(`engine.transactions.accept`).

The functions are pure. They read the tree through `Tree`, which a store may answer lazily, so that an edit of a
session of 10,000 messages reads only the few it touches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

from holdfast.core.errors import NotAllowedError, NotFoundError
from holdfast.core.ids import MessageId, SessionId
from holdfast.core.session import Message, Session


class Tree(Protocol):
    def message(self, mid: MessageId) -> Message | None:
        """A message of the session, if it is in the tree."""

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        """Ids of the messages below `parent` (None: the roots), oldest first."""


def node(tree: Tree, session: Session, mid: MessageId) -> Message:
    found = tree.message(mid)
    if found is None or found.session_id != session.id or not found.in_tree:
        raise NotFoundError("message", mid)
    return found


def path(tree: Tree, session: Session, end: MessageId | None, limit: int | None = None) -> list[Message]:
    """The messages from the root to `end`, oldest first; with `limit`, only the last ones."""
    found = list(islice(upwards(tree, session, end), limit))
    found.reverse()
    return found


def upwards(tree: Tree, session: Session, end: MessageId | None) -> Iterator[Message]:
    """The messages from `end` to the root, each read when it is asked for."""
    while end is not None:
        message = node(tree, session, end)
        yield message
        end = message.parent_id


def settled(messages: Sequence[Message]) -> Sequence[Message]:
    """The path up to its last settled answer; a question without a settled answer is not part of it."""
    end = 0
    for n, message in enumerate(messages, 1):
        if message.status == "streaming" or message.recovery == "pending":
            break
        if message.role == "assistant":
            end = n
    return messages[:end]


def on_path(tree: Tree, session: Session, mid: MessageId) -> bool:
    """Whether `mid` is on the shown branch."""
    at = session.head
    while at is not None:
        if at == mid:
            return True
        message = tree.message(at)
        at = None if message is None else message.parent_id
    return False


def append(session: Session, leaf: MessageId) -> Session:
    """Make a new leaf, already in the tree, the head."""
    return replace(session, head=leaf, redo=())


def undo(tree: Tree, session: Session) -> Session:
    """Move the head before the last user message of the shown branch."""
    at = session.head
    while at is not None:
        message = node(tree, session, at)
        if message.role == "user":
            assert session.head is not None
            return replace(session, head=message.parent_id, redo=(*session.redo, session.head))
        at = message.parent_id
    raise NotAllowedError("undo", "there is nothing to undo")


def redo(session: Session) -> Session:
    if not session.redo:
        raise NotAllowedError("redo", "there is nothing to redo")
    return replace(session, head=session.redo[-1], redo=session.redo[:-1])


def truncate(tree: Tree, session: Session, last: MessageId) -> Session:
    """Make `last` the head; what follows it stays on its branch."""
    if not on_path(tree, session, node(tree, session, last).id):
        raise NotAllowedError("truncate", "the message is not on the shown branch")
    return replace(session, head=last, redo=())


def switch(tree: Tree, session: Session, to: MessageId) -> Session:
    """Show the branch through `to`, at its newest leaf."""
    leaf = node(tree, session, to).id
    while below := tree.children(session.id, leaf):
        leaf = below[-1]
    return replace(session, head=leaf, redo=())


def clear(session: Session) -> Session:
    return replace(session, head=None, redo=())


def question(tree: Tree, session: Session, mid: MessageId) -> Message:
    """The user message `mid`, or the one that `mid` answers."""
    message = node(tree, session, mid)
    if message.role == "user":
        return message
    if message.parent_id is None:
        raise NotAllowedError("retry", "the message does not answer a user message")
    return node(tree, session, message.parent_id)


def copies(
    messages: Iterable[Message],
    sid: SessionId,
    new_id: Callable[[MessageId], MessageId],
    below: MessageId | None = None,
) -> list[Message]:
    """The settled messages of a path for session `sid`, belonging to no run, below message `below`. `new_id` is given
    the id of each original."""
    found: list[Message] = []
    for message in messages:
        if message.status != "streaming" and message.recovery != "pending":
            mid, parent = new_id(message.id), found[-1].id if found else below
            found.append(replace(message, id=mid, session_id=sid, parent_id=parent, run_id=None, key=None, last_seq=0))
    return found
