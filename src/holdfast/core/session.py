"""A session: a tree of messages and a head, the leaf that is shown. Editing moves the head; nothing is destroyed.

The functions are pure. They see the tree through `Tree`, which a store may answer lazily, so that an edit of a
session of 10,000 messages reads the few it touches.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from holdfast.core.errors import NotAllowed, message_not_found
from holdfast.core.events import Failure, Usage
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json, Part
from holdfast.core.run import RecoveryState
from holdfast.core.transcript import MessageStatus, has_output
from holdfast.core.values import dataclass, replace

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Session:
    id: SessionId
    owner: OwnerId
    created_at: float
    updated_at: float
    """Last activity: accepting, settling, finished tools. A rename or a pin leaves it alone."""
    title: str = ""
    titled_by: Literal["nobody", "model", "person"] = "nobody"
    agent: str = "chat"
    model: str | None = None
    system: str | None = None
    settings: Json = None
    previous_session_id: SessionId | None = None
    pinned: bool = False
    archived: bool = False
    tags: tuple[str, ...] = ()
    project: str | None = None
    head: MessageId | None = None
    redo: tuple[MessageId, ...] = ()
    """Heads that undo left, the latest last. Any other move of the head forgets them (they stay reachable as
    siblings)."""
    version: int = 1
    deleted_at: float | None = None
    """Hidden at once; purged when no run of it is open."""

    @property
    def is_kept(self) -> bool:
        """Otherwise it is there for as long as its run, which a crash must not lose, and no longer."""
        return not isinstance(self.settings, dict) or self.settings.get("keep") is not False


@dataclass(frozen=True, slots=True)
class Message:
    id: MessageId
    owner: OwnerId
    session_id: SessionId
    role: Role
    parent_id: MessageId | None
    created_at: float
    run_id: RunId | None = None
    status: MessageStatus = "complete"
    parts: tuple[Part, ...] = ()
    reason: str | None = None
    error: Failure | None = None
    recovery: RecoveryState | None = None
    model: str | None = None
    usage: Usage | None = None
    key: str | None = None
    in_tree: bool = True
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class Compaction:
    """The path up to and including `message_id`, as a summary for the model. Nothing in the tree changes."""

    session_id: SessionId
    owner: OwnerId
    message_id: MessageId
    summary: str
    created_at: float


class Tree(Protocol):
    def message(self, mid: MessageId) -> Message | None:
        """One message of the session, if it is in the tree."""

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        """Ids below `parent` (None: the roots) that are in the tree, oldest first."""


def node(tree: Tree, session: Session, mid: MessageId) -> Message:
    found = tree.message(mid)
    if found is None or found.session_id != session.id or not found.in_tree:
        raise message_not_found(mid)
    return found


def path(tree: Tree, session: Session, end: MessageId | None, limit: int | None = None) -> list[Message]:
    """From the root (or the `limit` last) to `end`, oldest first."""
    found: list[Message] = []
    while end is not None and (limit is None or len(found) < limit):
        message = node(tree, session, end)
        found.append(message)
        end = message.parent_id
    found.reverse()
    return found


def settled(messages: Sequence[Message]) -> Sequence[Message]:
    """The path up to its last settled answer: a question that is still to be answered must stay what it is."""
    end = 0
    for n, message in enumerate(messages, 1):
        if message.status == "streaming" or message.recovery == "pending":
            break
        if message.role == "assistant":
            end = n
    return messages[:end]


def on_path(tree: Tree, session: Session, mid: MessageId) -> bool:
    """Whether the shown branch goes through `mid`."""
    at = session.head
    while at is not None:
        if at == mid:
            return True
        message = tree.message(at)
        at = None if message is None else message.parent_id
    return False


def append(session: Session, leaf: MessageId) -> Session:
    """A new leaf, already hung into the tree, becomes the head."""
    return replace(session, head=leaf, redo=())


def undo(tree: Tree, session: Session) -> Session:
    """Step back before the last user message of the shown branch."""
    at = session.head
    while at is not None:
        message = node(tree, session, at)
        if message.role == "user":
            assert session.head is not None
            return replace(session, head=message.parent_id, redo=(*session.redo, session.head))
        at = message.parent_id
    raise NotAllowed("undo", "the conversation has no message to take back")


def redo(session: Session) -> Session:
    if not session.redo:
        raise NotAllowed("redo", "nothing was undone, or something was sent since")
    return replace(session, head=session.redo[-1], redo=session.redo[:-1])


def truncate(tree: Tree, session: Session, last: MessageId) -> Session:
    """Show nothing after `last`. What follows stays where it was, on its branch."""
    if not on_path(tree, session, node(tree, session, last).id):
        raise NotAllowed("truncate", "that message is not on the branch that is shown")
    return replace(session, head=last, redo=())


def switch(tree: Tree, session: Session, to: MessageId) -> Session:
    """Show the branch through `to`: its newest leaf."""
    leaf = node(tree, session, to).id
    while below := tree.children(session.id, leaf):
        leaf = below[-1]
    return replace(session, head=leaf, redo=())


def clear(session: Session) -> Session:
    return replace(session, head=None, redo=())


def question(tree: Tree, session: Session, mid: MessageId) -> Message:
    """The user message that `mid` is, or that it answers."""
    message = node(tree, session, mid)
    if message.role == "user":
        return message
    if message.parent_id is None:
        raise NotAllowed("retry", "the message answers nothing")
    return node(tree, session, message.parent_id)


def fork(
    tree: Tree,
    session: Session,
    last: MessageId,
    new: Session,
    new_id: Callable[[], MessageId],
) -> tuple[Session, list[Message]]:
    """A copy of the path up to `last` as session `new`; settled messages only, which belong to no run any more."""
    copies: list[Message] = []
    parent: MessageId | None = None
    for message in path(tree, session, last):
        if message.status == "streaming" or message.recovery == "pending":
            continue
        copy = replace(message, id=new_id(), session_id=new.id, parent_id=parent, run_id=None, key=None, last_seq=0)
        copies.append(copy)
        parent = copy.id
    return replace(new, head=parent), copies


@dataclass(frozen=True, slots=True)
class ModelInput:
    """What the model is shown: the summary of what was compacted, then the messages after it."""

    summary: str | None
    messages: tuple[Message, ...]


def model_input(messages: Sequence[Message], compactions: Mapping[MessageId, Compaction]) -> ModelInput:
    """From the end of `messages` (a path) back to the nearest compaction; answers without output are left out."""
    kept: list[Message] = []
    summary: str | None = None
    for message in reversed(messages):
        if message.id in compactions:
            summary = compactions[message.id].summary
            break
        if message.role == "user" or has_output(message.parts):
            kept.append(message)
    kept.reverse()
    return ModelInput(summary, tuple(kept))
