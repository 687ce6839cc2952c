"""Full-text search: what is found, what is not, and in which order."""

import pytest

from holdfast.core.ids import LOCAL, MessageId, OwnerId, SessionId
from holdfast.core.parts import Reasoning, Text, Tool
from holdfast.core.values import replace
from holdfast.ports import Hit, Store
from holdfast.testing.contracts import samples as s

ODD_QUERIES = [
    "",
    " \t\n",
    '"',
    "'",
    '"unbalanced',
    "heron*",
    "*",
    "AND",
    "heron AND",
    "OR OR",
    "NOT heron",
    "NEAR(",
    "NEAR(heron wren, 2)",
    "title:heron",
    "-heron",
    "^heron",
    "heron)",
    "((((",
    "{heron} : wren",
    "%_\\",
    "🌊",
    "🌊 heron",
    "\x00",
    "her\x00on",
    "\ud800",
    "e\u0301",
    "漢字",
    "a+b",
    "; drop table messages; --",
    "heron " * 2_000,
    "x" * 100_000,
]


async def search(
    store: Store, text: str, *, owner: OwnerId = LOCAL, limit: int = 99, before: int | None = None
) -> list[Hit]:
    return list(await store.read(lambda tx: tx.search(owner, text, limit, before)))


async def found(store: Store, text: str) -> list[str]:
    return [hit.session.id for hit in await search(store, text)]


class Search:
    async def test_titles_are_found(self, store: Store) -> None:
        """A session is found by the words of its title, and the hit names no message."""
        await s.put(store, s.session(title="The grey heron"), s.session("ses_2", title="A wren"))
        (hit,) = await search(store, "heron")
        assert hit.session == s.session(title="The grey heron")
        assert hit.message_id is None
        assert "heron" in hit.excerpt

    async def test_messages_are_found(self, store: Store) -> None:
        """A session is found by the words of its messages; the hit names the message and quotes it."""
        value = s.message("msg_1", parts=(Text("first line"), Text("then a Kingfisher dives")))
        await s.put(store, s.session(), value, s.message("msg_2", text="nothing"))
        (hit,) = await search(store, "kingfisher")
        assert (hit.session, hit.message_id) == (s.session(), "msg_1")
        assert "Kingfisher" in hit.excerpt

    async def test_the_excerpt_of_a_long_message_shows_the_place(self, store: Store) -> None:
        """A hit deep in a long text is quoted around the word, not from the beginning and not in full."""
        text = "lorem ipsum " * 5_000 + "kingfisher " + "dolor amet " * 5_000
        await s.put(store, s.session(), s.message("msg_1", text=text))
        (hit,) = await search(store, "kingfisher")
        assert "kingfisher" in hit.excerpt
        assert len(hit.excerpt) < 1_000

    async def test_words_match_whatever_their_case(self, store: Store) -> None:
        """Case does not matter, in any alphabet."""
        await s.put(store, s.session(title="Äpfel und BIRNEN"), s.session("ses_2", title="Москва"))
        for query in ("äpfel", "ÄPFEL", "birnen", "Birnen und"):
            assert await found(store, query) == [s.SID]
        assert await found(store, "МОСКВА") == ["ses_2"]

    async def test_all_words_must_be_in_one_place(self, store: Store) -> None:
        """Words are sought together, in any order, in one message or one title."""
        await s.put(store, s.session(), s.session("ses_2"))
        await s.put(store, s.message("msg_1", text="a heron stands in the reeds"))
        await s.put(store, s.message("msg_2", "ses_2", text="a heron"), s.message("msg_3", "ses_2", text="reeds"))
        assert await found(store, "reeds heron") == [s.SID]
        assert await found(store, "heron crane") == []

    async def test_only_what_was_said_is_searched(self, store: Store) -> None:
        """Reasoning, tools and system prompts are not found."""
        parts = (Reasoning("ponder"), Tool("c", "shell", {"x": "argument"}, "done", "outcome"), Text("said"))
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
        """P7: the new title is found, the old one is not, and an emptied one is not."""
        await s.put(store, s.session(title="heron"))
        await s.put(store, s.session(title="wren", version=2))
        assert await found(store, "heron") == []
        (hit,) = await search(store, "wren")
        assert hit.session.version == 2
        await s.put(store, s.session(title=""))
        assert await found(store, "wren") == []

    async def test_a_hit_has_the_session_as_it_is_now(self, store: Store) -> None:
        """P7: a message found in a renamed session is shown under the new title."""
        await s.put(store, s.session(title="old"), s.message("msg_1", text="kingfisher"))
        await s.put(store, s.session(title="new", updated_at=7.0))
        (hit,) = await search(store, "kingfisher")
        assert hit.session == s.session(title="new", updated_at=7.0)

    async def test_a_rewritten_message_is_found_by_its_new_words(self, store: Store) -> None:
        """P7: words that a message no longer has do not find it."""
        await s.put(store, s.session(), s.message("msg_1", text="heron"))
        await s.put(store, s.message("msg_1", text="wren"))
        assert await found(store, "heron") == []
        assert await found(store, "wren") == [s.SID]

    async def test_a_streaming_message_is_found_when_it_has_settled(self, store: Store) -> None:
        """A message enters the search with its final words, however it ended."""
        value = s.message("msg_1", text="heron", role="assistant", status="streaming")
        await s.put(store, s.session(), value)
        assert await found(store, "heron") == []
        await s.put(store, replace(value, status="cancelled"))
        assert await found(store, "heron") == [s.SID]

    async def test_a_queued_message_is_found_when_it_joins_the_tree(self, store: Store) -> None:
        """A turn outside the tree is not in the conversation yet."""
        value = s.message("msg_1", text="heron", in_tree=False)
        await s.put(store, s.session(), value)
        assert await found(store, "heron") == []
        await s.put(store, replace(value, in_tree=True))
        assert await found(store, "heron") == [s.SID]

    async def test_cleared_messages_are_not_found(self, store: Store) -> None:
        """`drop_messages` takes the messages out of the search and leaves the title."""
        await s.put(store, s.session(title="wren"), s.message("msg_1", text="heron"))
        await store.transact(lambda tx: tx.drop_messages(s.SID))
        assert await found(store, "heron") == []
        assert await found(store, "wren") == [s.SID]

    async def test_dropped_sessions_are_not_found(self, store: Store) -> None:
        """`drop_session` takes title and messages out of the search, and a later session does not inherit them."""
        await s.put(store, s.session(title="wren"), s.message("msg_1", text="heron"))
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
        """Whatever is typed is taken as words, never as syntax that could be wrong."""
        await s.put(store, s.session(title=s.ODD), s.message("msg_1", text=f"heron {s.ODD}"))
        assert len(await search(store, query)) <= 1

    async def test_a_query_without_words_finds_nothing(self, store: Store) -> None:
        """An empty search is no list of everything."""
        await s.put(store, s.session(title="heron"))
        assert await found(store, "") == []
        assert await found(store, "  ") == []

    async def test_operators_are_plain_words(self, store: Store) -> None:
        """AND, OR and NOT find texts that contain them."""
        await s.put(store, s.session("ses_1", title="heron and wren"), s.session("ses_2", title="heron wren"))
        assert await found(store, "heron AND wren") == ["ses_1"]
        assert await found(store, "NOT") == []

    async def test_words_around_a_nul_are_found(self, store: Store) -> None:
        """A NUL in a text does not hide what follows it."""
        await s.put(store, s.session(), s.message("msg_1", text="heron \x00 kingfisher"))
        assert await found(store, "kingfisher") == [s.SID]

    async def test_the_search_is_there_after_reopening(self, make_store: s.MakeStore) -> None:
        """P7: the next incarnation finds the same, and pages by the same places."""
        async with make_store() as store:
            await s.put(store, s.session(title="heron"), s.session("ses_2"))
            await s.put(store, s.message("msg_1", "ses_2", text="heron"))
            before = await search(store, "heron")
        async with make_store() as store:
            assert await search(store, "heron") == before
            assert {hit.session.id for hit in before} == {SessionId("ses_1"), SessionId("ses_2")}
            assert {hit.message_id for hit in before} == {None, MessageId("msg_1")}
