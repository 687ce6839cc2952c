"""Factories for core values."""

from dataclasses import replace
from typing import Any, Final

from hypothesis import settings

from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.core.session import Message, Role, Session

PROPERTY: Final = settings(deadline=None, max_examples=30)
"""No deadline: nothing here is timed."""

SID: Final = SessionId("ses_1")


def a_run(**changes: Any) -> Run:
    run = Run(
        id=RunId("run_1"),
        owner=LOCAL,
        session_id=SID,
        message_id=MessageId("msg_2"),
        user_message_id=MessageId("msg_1"),
        agent="chat",
        model=None,
        settings=None,
        lifetime="detached",
        created_at=0.0,
        rank=1,
        in_tree=True,
    )
    return replace(run, **changes)


def a_session(**changes: Any) -> Session:
    return replace(Session(SID, LOCAL, created_at=0.0, updated_at=0.0), **changes)


def mid(name: str) -> MessageId:
    return MessageId(name)


class Forest:
    """`session.Tree` over a dict, which keeps the order in which messages were hung in."""

    def __init__(self) -> None:
        self.messages: dict[MessageId, Message] = {}

    def message(self, mid: MessageId) -> Message | None:
        return self.messages.get(mid)

    def children(self, sid: SessionId, parent: MessageId | None) -> list[MessageId]:
        found = self.messages.values()
        return [m.id for m in found if m.session_id == sid and m.parent_id == parent and m.in_tree]

    def hang(self, name: str, role: Role, parent: str | None, **changes: Any) -> MessageId:
        """Add a message; unless told otherwise it says its own name."""
        message = Message(
            MessageId(name),
            LOCAL,
            SID,
            role,
            None if parent is None else MessageId(parent),
            created_at=float(len(self.messages)),
            parts=(TextPart(name),),
        )
        self.messages[message.id] = replace(message, **changes)
        return message.id

    def turn(self, question: str, answer: str, parent: str | None) -> MessageId:
        """A user message and its answer; the answer is the leaf."""
        self.hang(question, "user", parent)
        return self.hang(answer, "assistant", question, run_id=RunId(f"run_{answer}"))
