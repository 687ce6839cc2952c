"""One row whose stored JSON is damaged, or has another shape, breaks nothing that reads other rows too."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from holdfast.core.events import Failure, Usage
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, ProjectId, RunId, SessionId
from holdfast.core.memory_ledger import Ledger, TurnText
from holdfast.core.parts import TextPart
from holdfast.core.run import Intent
from holdfast.ports.store import ProjectQuery, RunQuery, SessionQuery, Store, Tx, UsageGrouping, UsageQuery
from holdfast.storage.postgres import PostgresConfig, PostgresStore
from holdfast.storage.sqlite import DataDir, SqliteStore
from holdfast.testing import FakeClock
from holdfast.testing.contracts import samples as s

pytestmark = pytest.mark.anyio

GARBAGE = (
    "",
    "{",
    '[{"type": "text", "text": "cut o',
    "nonsense",
    "3",
    '"text"',
    "{}",
    "[1, 2, 3]",
    "[null]",
    '["a", {}]',
    '[9223372036854775807, 1e308, 1e999, "x"]',
    '{"status": 1, "reason": 2, "error": 3, "told": 4, "commit": 5, "code": 6, "message": 7, "project": {"id": 8}}',
    '[{"type": "text"}, {"type": "text", "text": 3}, {"type": "file", "file_id": []}, {"type": 9}, 10]',
    "[" * 100_000,
)
COLUMNS = {
    "sessions": ("settings", "tags", "redo"),
    "messages": ("parts", "error", "usage"),
    "runs": ("settings", "intent", "error", "usage"),
    "approvals": ("args",),
    "projects": ("settings",),
    "settings": ("value",),
    "ledgers": ("state",),
    "dirty_turns": ("words",),
}
"""Every column with JSON."""
HURT, FINE = "hurt", "fine"
Execute = Callable[[str, Sequence[Any]], None]


@pytest.fixture(params=["sqlite", "postgres"])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Store, Execute]]:
    """A store, and a way around it."""
    data = DataDir.open(tmp_path / "data")
    if request.param == "sqlite":
        store: Store = SqliteStore(data, FakeClock())

        def execute(sql: str, values: Sequence[Any]) -> None:
            with closing(sqlite3.connect(tmp_path / "data" / "holdfast.db", isolation_level=None)) as db:
                db.execute(sql, values)
    else:
        place: PostgresConfig = request.getfixturevalue("place")
        store = PostgresStore(place)

        def execute(sql: str, values: Sequence[Any]) -> None:
            with psycopg.connect(place.url, autocommit=True) as db:
                db.execute(sql.replace("?", "%s").replace("UPDATE ", "UPDATE holdfast.").encode(), values)

    yield store, execute
    await store.close()
    data.close()


def rows(name: str) -> list[s.Row]:
    """A session with everything; the ids end in the name."""
    sid, rid, mid = f"ses_{name}", f"run_{name}", f"msg_{name}"
    ended = s.run(
        f"ended_{name}",
        sid,
        status="failed",
        ended_at=5.0,
        usage=Usage(3, 4, 0.5),
        error=Failure("a", "b"),
        settings={"project": {"id": "p"}},
    )
    return [
        s.session(sid, title=f"boat {name}", tags=("sea",), settings={"a": 1}, head=MessageId(mid)),
        s.message(mid, sid, text=f"boat {name}", error=Failure("a", "b"), usage=Usage(1, 2)),
        s.run(rid, sid, status="running", message_id=MessageId(mid), intent=Intent("cancelled")),
        ended,
        s.approval(f"apr_{name}", rid, sid),
        s.project(f"prj_{name}", settings={"a": 1}),
        Ledger(SessionId(sid), LOCAL, due_at=1.0),
        s.dirty_turn(1, session_id=SessionId(sid), words=TurnText((TextPart("x"),), ())),
    ]


def read_everything(tx: Tx) -> dict[str, set[str]]:
    """Whatever reads several rows, and the ids that it finds."""
    found: dict[str, set[str]] = {
        "sessions": {each.id for each in tx.sessions(SessionQuery(LOCAL, comparisons=False))},
        "search": {hit.session.id for hit in tx.search(LOCAL, "boat", 9, None)},
        "runs": {each.id for each in tx.runs(RunQuery(LOCAL))},
        "open": {each.id for each in tx.all_open_runs(9)},
        "approvals": {each.id for each in tx.undecided_approvals(9.0, 9)},
        "projects": {each.id for each in tx.projects(ProjectQuery(LOCAL))},
        "ledgers": {each.session_id for each in tx.due_ledgers(9.0, 9)},
        "settings": set(tx.settings(LOCAL)),
    }
    tx.claimable_runs(9)
    tx.runs(RunQuery(LOCAL, settings_with={("project", "id"): "p"}))
    tx.runs(RunQuery(LOCAL, settings_without=[("project", "id")]))
    for by in get_args(UsageGrouping):
        found[f"usage by {by}"] = {str(sum(each.runs for each in tx.usage(UsageQuery(LOCAL, 0.0, 9e9, by))))}
    for name in (HURT, FINE):
        sid, rid = SessionId(f"ses_{name}"), RunId(f"run_{name}")
        assert tx.session(sid)
        assert tx.message(MessageId(f"msg_{name}"))
        assert tx.message_within(MessageId(f"msg_{name}"), 10**6)
        assert tx.path(MessageId(f"msg_{name}"))
        assert tx.run(rid)
        assert tx.approval(ApprovalId(f"apr_{name}"))
        assert tx.project(ProjectId(f"prj_{name}"))
        assert tx.open_runs(sid)
        assert tx.shown_open_runs(sid)
        assert tx.open_approvals(rid)
        assert tx.ledger(sid)
        assert tx.dirty_turns(sid, 9)
    return found


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
async def test_a_damaged_row_breaks_no_list(stored: tuple[Store, Execute], garbage: str) -> None:
    """Every list still has all rows, the damaged one without the damaged values; it can be renamed, and erased."""
    store, execute = stored
    await s.put(store, *rows(HURT), *rows(FINE))

    def put_settings(tx: Tx) -> None:
        for name in (HURT, FINE):
            tx.put_setting(LOCAL, name, {"a": 1})

    await store.transact(put_settings)
    before = await store.read(read_everything)
    assert all(before.values())
    for table, columns in COLUMNS.items():
        key = {"settings": "name", "ledgers": "session_id", "dirty_turns": "session_id"}.get(table, "id")
        damage = ", ".join(f"{column} = ?" for column in columns)
        execute(f"UPDATE {table} SET {damage} WHERE {key} LIKE ?", [*[garbage] * len(columns), f"%{HURT}"])
    after = await store.read(read_everything)
    assert {name: ids for name, ids in after.items() if name not in ("settings", "ledgers")} == {
        name: ids for name, ids in before.items() if name not in ("settings", "ledgers")
    }
    assert FINE in after["settings"]
    assert f"ses_{FINE}" in after["ledgers"]
    whole = await store.read(lambda tx: (tx.message(MessageId(f"msg_{FINE}")), tx.session(SessionId(f"ses_{FINE}"))))
    assert whole[0] is not None
    assert (whole[0].parts, whole[0].usage) == ((TextPart(f"boat {FINE}"),), Usage(1, 2))

    def change(tx: Tx) -> None:
        session = tx.session(SessionId(f"ses_{HURT}"))
        assert session is not None
        tx.put_session(replace(session, title="mended"))

    await store.transact(change)
    assert (await store.read(lambda tx: tx.search(LOCAL, "mended", 9, None)))[0].session.title == "mended"
    await store.transact(lambda tx: tx.drop_session(SessionId(f"ses_{HURT}")))
    assert (await store.read(lambda tx: tx.session(SessionId(f"ses_{HURT}")))) is None
    assert await store.read(lambda tx: tx.message(MessageId(f"msg_{FINE}")))
