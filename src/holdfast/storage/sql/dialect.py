"""What differs between SQLite and PostgreSQL within one transaction.

All statements are written with `?` for a value.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from holdfast.core.ids import FileId, MessageId, OwnerId, SessionId
from holdfast.storage.sql.tables import Row, Table


class TextQuery(NamedTuple):
    """A full-text query: what the person typed, and the expression that the database evaluates."""

    text: str
    expression: str


class TextMatch(NamedTuple):
    """A title (`message_id` None) or message that matches a query."""

    n: int
    session_id: SessionId
    message_id: MessageId | None
    excerpt: Callable[[], str]


class Dialect(Protocol):
    """The connection of one transaction. The attributes of type `str` are fragments of SQL."""

    writes: bool
    false: str  # The literal, as the conditions of partial indexes have it
    parts_bytes: str  # How many bytes the column `parts` has
    in_list: str  # A condition on the column before it: it is in a list parameter
    list_rows: str  # A SELECT of the members of a list parameter
    file_is_named: str  # A SELECT that has a row if a message names `files.id`
    next_number: str  # The `n` of a new change or fact; its parameters are `number_parameters()`
    number_is_visible: str  # A condition on `n`: no smaller number can still commit
    indexed_words: str  # The value of a column of searchable words; its parameter is `word_parameter(text)`
    change_bounds: str  # A SELECT of the two bounds of the change feed
    changes_held_back: str  # A SELECT of whether there are changes that are not visible yet
    trim_changes: str  # Deletes all changes but the newest; its parameter is how many remain
    has_match_since: str
    """A SELECT that has a row if a session has a match from a number on: session, number, expression."""
    matching_facts: str  # A SELECT of facts, newest first: expression, the number that they are below, owner, limit
    lock_named: str  # The end of a SELECT of runs that locks them in an order that cannot deadlock
    used_runs: str  # What to select from to have the numbers inside the column `usage` of runs
    skip_locked: str
    """The end of a SELECT from `runs AS mine` that passes over rows which another transaction is writing."""

    @property
    def now(self) -> float: ...

    # statements
    def setting(self, path: tuple[str, ...]) -> str:
        """The text of a value inside the column `settings`, or NULL. The names are part of the statement."""

    def usage_number(self, n: int) -> str:
        """A number inside the column `usage` of `used_runs`; NULL also if that is damaged or the number absurd."""

    def whole(self, number: str) -> str:
        """A positive number without its fraction."""

    def execute(self, sql: str, *values: Any) -> None:
        """Write. It may be sent later, with the next read or the commit."""

    def fetchall(self, sql: str, *values: Any) -> list[Any]: ...
    def list_parameter(self, values: Collection[str]) -> Any: ...

    # rows
    def save(self, table: Table, row: Row, old: Row | None) -> None:
        """Insert or replace a row by id. `old`: the row as it is, if that is known."""

    def save_message(self, row: Row, old: Row | None, file_ids: Collection[FileId], *, was_empty: bool) -> None:
        """`save` of a message, with the files that it names. `was_empty`: it named none before, if it was there."""

    def enter_session(self, sid: SessionId) -> None:
        """Called before rows of a session are written: of two transactions that write in one session, one is
        retried."""

    # numbers of changes and facts
    def number_parameters(self) -> Sequence[int]: ...
    def word_parameter(self, text: str) -> Any: ...

    # full-text search
    def index_text(
        self, owner: OwnerId, sid: SessionId, mid: MessageId | None, text: str, *, is_new: bool = False
    ) -> None:
        """Insert, replace or (empty text) delete the search entry of a title (`mid` None) or a message. An entry that
        is replaced keeps its position. `is_new`: there is no entry yet."""

    def parse_query(self, text: str) -> tuple[TextQuery, TextQuery] | None:
        """What a person typed as whole words, and with the last word as a prefix; None if there is no word."""

    def matches(self, owner: OwnerId, query: TextQuery, limit: int, before: int) -> Iterator[TextMatch]:
        """Titles and messages that match, newest first. `limit` is how many will probably be read."""
