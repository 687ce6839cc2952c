"""Sessions, messages, compactions and search, as a store transaction reads and writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.core.ids import MessageId, OwnerId, SessionId
from holdfast.core.session import Compaction, Message, Session


@dataclass(frozen=True, slots=True)
class SessionQuery:
    owner: OwnerId
    archived: bool = False
    project: str | None = None
    limit: int = 50
    before: tuple[float, SessionId] | None = None  # Only sessions after this (updated_at, id) in the list


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message or title that matches a search. `at` orders hits by recency and is the cursor for the next page."""

    session: Session
    message_id: MessageId | None
    excerpt: str
    at: int


class SessionRows(Protocol):
    def session(self, sid: SessionId) -> Session | None: ...
    def put_session(self, session: Session) -> None:
        """Insert or replace a session; also updates the title's search entry."""

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        """List sessions, newest activity first, without deleted ones."""

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        """List deleted sessions whose rows are not erased yet."""

    def drop_session(self, sid: SessionId) -> None:
        """Erase a session with everything that belongs to it except facts."""

    def message(self, mid: MessageId) -> Message | None: ...
    def put_message(self, message: Message) -> None:
        """Insert or replace a message and its search entry, unless it is streaming or outside the tree."""

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        """List the messages in the tree below `parent`, oldest first (creation time, then id)."""

    def drop_messages(self, sid: SessionId) -> None:
        """Erase all messages of a session, their search entries and compactions, but not turns outside the tree."""

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]: ...
    def put_compaction(self, compaction: Compaction) -> None:
        """Insert or replace the compaction of a session at one message."""

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[SearchHit]:
        """Find sessions whose title or messages contain all words, each once with its newest hit, newest first."""
