"""Search: which matches become hits, one for each session, newest first, and when the last word counts as a prefix
(if whole words do not fill the first page).
The query, the matches and their excerpts: `storage.sqlite.search` and `storage.postgres.search`."""

from collections.abc import Sequence

from holdfast.core.ids import OwnerId, SessionId
from holdfast.ports.store import SearchHit
from holdfast.storage.sql.dialect import TextQuery
from holdfast.storage.sql.sessions import SqlSessionRows
from holdfast.storage.sql.statements import LARGEST_NUMBER


class SqlSearchRows(SqlSessionRows):
    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[SearchHit]:
        """The first page decides for all pages whether the last word is a prefix, or they would not fit together."""
        queries = self._db.parse_query(text)
        if queries is None or limit <= 0:
            return []
        whole, prefix = queries
        first = self._hits(owner, whole, limit, None)
        if len(first) < limit and prefix != whole:
            return self._hits(owner, prefix, limit, before)
        return first if before is None else self._hits(owner, whole, limit, before)

    def _hits(self, owner: OwnerId, query: TextQuery, limit: int, before: int | None) -> list[SearchHit]:
        """The newest match of each session. A session that an earlier page showed is left out."""
        seen: set[SessionId] = set()
        found: list[SearchHit] = []
        for match in self._db.matches(owner, query, limit, LARGEST_NUMBER if before is None else before):
            if match.session_id in seen:
                continue
            seen.add(match.session_id)
            session = self.session(match.session_id)
            if session is None or session.deleted_at is not None:
                continue
            if before is not None and self._db.fetchall(self._db.has_match_since, session.id, before, query.expression):
                continue
            found.append(SearchHit(session, match.message_id, match.excerpt(), match.n))
            if len(found) == limit:
                break
        return found
