"""Search beyond the contract: prefixes, scripts without spaces, hostile queries."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ids import LOCAL
from holdfast.storage.sql.tx import SqlTx
from holdfast.storage.sqlite import SqliteStore, schema
from holdfast.storage.sqlite import search as fts
from holdfast.storage.sqlite.dialect import SqliteDialect
from holdfast.testing.contracts.samples import message, put, session
from tests.contract.machine import embedded
from tests.steps import count_steps

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with embedded(tmp_path) as (store, _):
        yield store


async def found(store: SqliteStore, text: str, limit: int = 10, before: int | None = None) -> list[str]:
    hits = await store.read(lambda tx: tx.search(LOCAL, text, limit, before))
    return [hit.session.id for hit in hits]


@pytest.mark.parametrize("query", ["kin", "a ki", "kingfisher", "KINGFISH", "kíng", "blu king", "blue-kin"])
async def test_the_last_word_may_be_unfinished(store: SqliteStore, query: str) -> None:
    """While a word is being typed its beginning finds it, whatever its case and accents; earlier words are whole."""
    await put(store, session(title="A blue-kingfisher"))
    assert await found(store, query) == ([] if query == "blu king" else ["ses_1"])


async def test_whole_words_that_fill_a_page_are_preferred(store: SqliteStore) -> None:
    """If the word as typed fills the first page, all pages are of whole words; otherwise longer words are hits too."""
    for n in range(4):
        await put(store, session(f"whole_{n}", title="art"), session(f"longer_{n}", title="artful"))
    first = await store.read(lambda tx: tx.search(LOCAL, "art", 2, None))
    assert [hit.session.id for hit in first] == ["whole_3", "whole_2"]
    assert await found(store, "art", 2, first[-1].at) == ["whole_1", "whole_0"]
    assert len(await found(store, "art", 5)) == 5
    assert len(await found(store, "art", 9)) == 8


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("今日は良い天気ですね", "天気"),
        ("私は猫が好きです", "猫"),
        ("我喜歡紅色的花", "紅色"),
        ("日本語 and Eng", "語 en"),
    ],
)
async def test_words_are_found_in_scripts_without_spaces(store: SqliteStore, text: str, query: str) -> None:
    """A word in the middle of a Chinese or Japanese sentence is found, and its excerpt is the sentence as written."""
    await put(store, session(), message("msg_1", text=text))
    (hit,) = await store.read(lambda tx: tx.search(LOCAL, query, 10, None))
    assert hit.excerpt == text
    assert await found(store, "気天") == []


@pytest.mark.parametrize(
    ("query", "excerpt"), [("a", "a a a"), ("a-a b", "a a a"), ("end", "a b the énd"), ("EN", "b the énd")]
)
async def test_a_long_text_is_found_at_once(store: SqliteStore, query: str, excerpt: str) -> None:
    """However often it has the words. The excerpt is around the first of them."""
    await put(store, session(), message("msg_1", text="a " * 90_000 + "b the énd"))
    (hit,) = await store.read(lambda tx: tx.search(LOCAL, query, 10, None))
    assert excerpt in hit.excerpt


def test_a_long_text_is_prepared_in_steps() -> None:
    """Nothing else of the process runs during a step."""
    assert count_steps(lambda: fts.document("é" * 2_000_000)) >= 100
    assert fts.document("猫犬" * 30_000) == "猫\u200b犬\u200b" * 30_000


def empty_index() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.executescript(schema.STORE[0])
    return db


@given(st.text(max_size=60) | st.text(alphabet='"*()^:+-{}AND OR NEAR\x00 \u200b\ue000\ud800aé猫', max_size=40))
def test_no_text_is_a_syntax_error(text: str) -> None:
    """Whatever a person types is words to find, or nothing; never an error of the index."""
    with closing(empty_index()) as db:
        assert SqlTx(SqliteDialect(db, 0.0, writes=False)).search(LOCAL, text, 10, None) == []


# Letters for Python, but not for SQLite, whose tables are older: some signs of New Tai Lue and Vedic.
NOT_INDEXED = "".join(map(chr, [*range(0x19B0, 0x19CA), 0x1CF2, 0x1CF3]))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters=NOT_INDEXED), min_size=1, max_size=40))
def test_a_text_finds_itself(text: str) -> None:
    """Every text that has a word is found by itself."""
    with closing(empty_index()) as db:
        tx = SqlTx(SqliteDialect(db, 0.0, writes=False))
        tx.put_session(session(title=text))
        assert len(tx.search(LOCAL, text, 10, None)) == (fts.parse(text) is not None)
