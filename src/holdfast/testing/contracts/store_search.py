"""Full-text search: what is found, what is not, and in which order."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.ids import LOCAL, OwnerId
from holdfast.core.parts import ReasoningPart, TextPart, ToolPart
from holdfast.ports.store import SearchHit, Store
from holdfast.testing.contracts import samples as s

ODD_QUERIES = ["", " \t\n", '"', "'", '"unbalanced', "heron*", "*", "AND", "heron AND", "OR OR", "NOT heron", "NEAR("]
ODD_QUERIES += ["NEAR(heron wren, 2)", "title:heron", "-heron", "^heron", "heron)", "((((", "{heron} : wren", "%_\\"]
ODD_QUERIES += ["🌊", "🌊 heron", "\x00", "her\x00on", "\ud800", "e\u0301", "漢字", "a+b", "; drop table messages; --"]
ODD_QUERIES += ["heron " * 2_000, "x" * 100_000]


async def search(
    store: Store, text: str, *, owner: OwnerId = LOCAL, limit: int = 99, before: int | None = None
) -> list[SearchHit]:
    return list(await store.read(lambda tx: tx.search(owner, text, limit, before)))


async def found(store: Store, text: str) -> list[str]:
    return [hit.session.id for hit in await search(store, text)]


TITLES = ["Äpfel und BIRNEN", "Москва", "heron and wren", "heron wren", "owl \x00 kingfisher"]
MATCHES = {
    "äpfel": [0],
    "ÄPFEL": [0],
    "und Birnen": [0],
    "МОСКВА": [1],
    "heron AND wren": [2],
    "NOT": [],
    "wren heron": [3, 2],
    "heron crane": [],
    "kingfisher": [4],
}


class SearchContract:
    async def test_all_words_are_sought_as_they_are(self, store: Store) -> None:
        """Words are sought together, in any order and case, in any alphabet, and behind a NUL; operators are words too.
        All must be in one place."""
        await s.put(store, *(s.session(f"ses_{n}", title=title) for n, title in enumerate(TITLES)))
        await s.put(store, s.message("msg_1", "ses_0", text="heron"), s.message("msg_2", "ses_0", text="crane"))
        for query, expected in MATCHES.items():
            assert await found(store, query) == [f"ses_{n}" for n in expected]

    async def test_titles_and_messages_are_found(self, store: Store) -> None:
        """A session is found by the words of its title and of its messages; the hit names the message, if any, and
        quotes it."""
        birds = s.session(title="The grey heron")
        value = s.message("msg_1", parts=(TextPart("first line"), TextPart("then a Kingfisher dives")))
        await s.put(store, birds, s.session("ses_2", title="A wren"), value, s.message("msg_2", text="nothing"))
        for query, word, mid in (("heron", "heron", None), ("kingfisher", "Kingfisher", "msg_1")):
            (hit,) = await search(store, query)
            assert (hit.session, hit.message_id) == (birds, mid)
            assert word in hit.excerpt

    @pytest.mark.parametrize("filler", ["lorem ipsum " * 5_000, "q" * 100_000], ids=["words", "base64"])
    async def test_the_excerpt_of_a_long_message_shows_the_place(self, store: Store, filler: str) -> None:
        """A hit deep in a long text is quoted around the word, not from the beginning and not in full."""
        await s.put(store, s.session(), s.message("msg_1", text=f"{filler} kingfisher {filler}"))
        (hit,) = await search(store, "kingfisher")
        assert "kingfisher" in hit.excerpt
        assert len(hit.excerpt) < 300

    async def test_only_what_was_said_is_searched(self, store: Store) -> None:
        """Reasoning, tools and system prompts are not found."""
        parts = (
            ReasoningPart("ponder"),
            ToolPart("c", "shell", {"x": "argument"}, "done", "outcome"),
            TextPart("said"),
        )
        await s.put(store, s.session(system="secret"), s.message("msg_1", parts=parts))
        for word in ("ponder", "argument", "outcome", "shell", "secret"):
            assert await found(store, word) == []
        assert await found(store, "said") == [s.SID]

    async def test_an_owner_finds_his_own(self, store: Store) -> None:
        """Nobody finds another owner's sessions."""
        await s.put(store, s.session(title="heron", owner=s.OTHER))
        await s.put(store, s.message("msg_1", text="heron", owner=s.OTHER))
        assert await found(store, "heron") == []
        assert len(await search(store, "heron", owner=s.OTHER)) == 1

    async def test_a_rename_is_found_at_once(self, store: Store) -> None:
        """P7: the new title is found, the old one is not, and an emptied one is not; a message found in the session is
        shown under the new title. The same goes for the words of a rewritten message."""
        await s.put(store, s.session(title="heron"), s.message("msg_1", text="kingfisher"))
        renamed = s.session(title="wren", version=2, updated_at=7.0)
        await s.put(store, renamed)
        assert await found(store, "heron") == []
        for word in ("wren", "kingfisher"):
            assert [hit.session for hit in await search(store, word)] == [renamed]
        await s.put(store, s.session(title=""), s.message("msg_1", text="owl"))
        for word in ("wren", "kingfisher"):
            assert await found(store, word) == []
        assert await found(store, "owl") == [s.SID]

    @pytest.mark.parametrize("hidden", [{"role": "assistant", "status": "streaming"}, {"in_tree": False}])
    async def test_a_message_is_found_when_it_has_settled_in_the_tree(
        self, store: Store, hidden: dict[str, Any]
    ) -> None:
        """A message enters the search with its final words, and not before its turn joins the conversation."""
        value = s.message("msg_1", text="heron", **hidden)
        await s.put(store, s.session(), value)
        assert await found(store, "heron") == []
        await s.put(store, replace(value, status="cancelled", in_tree=True))
        assert await found(store, "heron") == [s.SID]

    async def test_dropped_messages_and_sessions_are_not_found(self, store: Store) -> None:
        """`drop_messages` takes messages out of the search and `drop_session` the title too; a later session does not
        inherit them."""
        await s.put(store, s.session(title="wren"), s.message("msg_1", text="heron"))
        await store.transact(lambda tx: tx.drop_messages(s.SID))
        assert await found(store, "heron") == []
        assert await found(store, "wren") == [s.SID]
        await s.put(store, s.message("msg_1", text="heron"))
        await store.transact(lambda tx: tx.drop_session(s.SID))
        await s.put(store, s.session(), s.message("msg_2", text="owl"))
        assert await found(store, "wren") == []
        assert await found(store, "heron") == []
        assert await found(store, "owl") == [s.SID]

    async def test_hidden_sessions_are_not_found_and_archived_ones_are(self, store: Store) -> None:
        """Deleting hides a session from the search at once, before it is purged."""
        await s.put(store, s.session("ses_1", title="heron"), s.message("msg_1", "ses_1", text="heron"))
        await s.put(store, s.session("ses_2", title="heron", archived=True))
        assert set(await found(store, "heron")) == {"ses_1", "ses_2"}
        await s.put(store, s.session("ses_1", title="heron", deleted_at=1.0))
        assert await found(store, "heron") == ["ses_2"]

    async def test_each_session_is_named_once_by_its_newest_hit(self, store: Store) -> None:
        """However many messages match, a session is one line, newest hit first."""
        await s.put(store, s.session("ses_a"), s.session("ses_b"))
        for n, sid in enumerate(["ses_a", "ses_b", "ses_b", "ses_a"]):
            await s.put(store, s.message(f"msg_{n}", sid, text=f"heron {n}", created_at=float(n)))
        hits = await search(store, "heron")
        assert [(hit.session.id, hit.message_id) for hit in hits] == [("ses_a", "msg_3"), ("ses_b", "msg_2")]
        assert hits[0].at > hits[1].at

    async def test_pages_together_name_each_session_once(self, store: Store) -> None:
        """Following `before` gives the whole result in order; older hits of a session do not bring it back."""
        await s.put(store, *(s.session(f"ses_{n}") for n in range(7)))
        for n in range(28):
            await s.put(store, s.message(f"msg_{n:02}", f"ses_{n * 3 % 7}", text="heron", created_at=float(n)))
        whole = await search(store, "heron")
        assert [hit.message_id for hit in whole] == [f"msg_{n}" for n in range(27, 20, -1)]
        paged = await s.pages(lambda last: search(store, "heron", limit=2, before=last.at if last else None), 2)
        assert paged == whole

    @pytest.mark.parametrize("query", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
    async def test_no_query_is_an_error(self, store: Store, query: str) -> None:
        """Whatever is typed is taken as words, never as syntax that could be wrong; without words nothing is found."""
        await s.put(store, s.session(title=s.ODD), s.message("msg_1", text=f"heron {s.ODD}"))
        assert len(await search(store, query)) <= bool(query.strip())
