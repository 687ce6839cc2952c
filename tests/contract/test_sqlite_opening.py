"""Opening the data directory: whose it is, which version wrote it, where it may not be opened."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.errors import DataDirInUseError, SchemaTooNewError, StorageError, StorageUnavailableError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.ports.store import ProjectQuery
from holdfast.storage import sqlite
from holdfast.storage.sqlite import DataDir, open_embedded, schema
from holdfast.storage.sqlite.database import connect, connect_unchanged
from holdfast.storage.sqlite.database_upgrade import create_or_upgrade
from holdfast.testing import FakeClock
from holdfast.testing.contracts import samples as s
from tests.contract.machine import embedded, filled, next_line, snapshot, start, tmpfs

pytestmark = pytest.mark.anyio


# ---- the directory ----


async def test_a_directory_is_private_and_each_opening_is_a_new_node(tmp_path: Path) -> None:
    """The directory and the files in it are for their owner alone; a restart is another incarnation."""
    path = tmp_path / "deep" / "data"
    nodes = []
    for _ in range(2):
        async with embedded(path) as (store, _):
            nodes.append(store.incarnation)
    assert nodes[0] != nodes[1]
    assert path.stat().st_mode & 0o777 == 0o700
    assert {(path / name).stat().st_mode & 0o077 for name in ("lock", "holdfast.db", "journal.db")} == {0}


def test_a_directory_in_use_by_another_process_is_refused(tmp_path: Path) -> None:
    """A second opener is told which directory it is and who has it; when that process dies, the directory is free."""
    script = """
        import sys
        from pathlib import Path
        from holdfast.storage.sqlite import DataDir
        data = DataDir.open(Path(sys.argv[1]))
        print("open")
        sys.stdin.read()
    """
    mine = DataDir.open(tmp_path)
    with pytest.raises(DataDirInUseError):  # also within one process
        DataDir.open(tmp_path)
    mine.close()
    with start(script, tmp_path) as holder:
        assert next_line(holder) == "open"
        with pytest.raises(DataDirInUseError) as refused:
            open_embedded(tmp_path, FakeClock())
        assert str(tmp_path) in str(refused.value)
        assert f"process {holder.pid}" in str(refused.value)
        holder.kill()
    DataDir.open(tmp_path).close()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_path_that_is_no_directory_is_refused(tmp_path: Path, name: str) -> None:
    """A file in the way is named and left alone."""
    (tmp_path / "file").write_text("precious")
    with pytest.raises(StorageUnavailableError, match="not a directory"):
        DataDir.open(tmp_path / name)
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("name", ["", "below"])
def test_a_read_only_directory_is_refused(tmp_path: Path, name: str) -> None:
    """On a read-only file system the sentence says so."""
    with tmpfs(tmp_path / "disk", "ro,size=1m") as disk:
        path = disk / name
        with pytest.raises(StorageUnavailableError, match="read-only file system") as refused:
            open_embedded(path, FakeClock())
        assert str(path) in str(refused.value)


async def test_a_creation_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    """A crash while the first database was being made leaves a directory that opens."""
    for name in ("holdfast.db.new", "holdfast.db.new-wal", "journal.db.new", "journal.db.new-journal"):
        (tmp_path / name).write_bytes(b"half")
    await filled(tmp_path)
    assert set(snapshot(tmp_path)) == {"holdfast.db", "journal.db"}


# ---- versions ----


@pytest.mark.parametrize("name", ["holdfast.db", "journal.db"])
@pytest.mark.parametrize("where", ["file", "wal"])
async def test_a_newer_schema_is_refused_untouched(tmp_path: Path, name: str, where: str) -> None:
    """What a newer version wrote is not opened, be its version in the file or still in the WAL; no byte changes."""
    source, target = tmp_path / "source", tmp_path / "target"
    await filled(source)
    db = sqlite3.connect(source / name, isolation_level=None)
    db.execute("PRAGMA user_version = 99")
    if where == "wal":
        shutil.copytree(source, target)
        assert (target / f"{name}-wal").stat().st_size > 0
        (target / f"{name}-shm").unlink()
        db.close()
    else:
        db.close()
        shutil.copytree(source, target)
    before = snapshot(target)
    with pytest.raises(SchemaTooNewError, match="newer Holdfast"):
        open_embedded(target, FakeClock())
    after = snapshot(target)
    after.pop(f"{name}-shm", None)  # an index of the WAL, made anew by whoever reads it
    assert {file: after[file] for file in before} == before
    assert len(after) == len(before)
    DataDir.open(target).close()


async def test_an_older_store_is_copied_before_its_upgrade(tmp_path: Path) -> None:
    """The copy beside it is the whole old database; the new one has the old rows and the new version."""
    await filled(tmp_path)
    now = len(schema.STORE)
    file, copy = tmp_path / "holdfast.db", tmp_path / f"holdfast.db.v{now}.bak"
    newer = (*schema.STORE, "CREATE TABLE extra (x); INSERT INTO extra VALUES ('it''s; fine')", "DROP TABLE purges")
    create_or_upgrade(file, newer, keep_copy=True)
    for path, version, tables in ((file, now + 2, {"extra"}), (copy, now, {"purges"})):
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT title FROM sessions").fetchall() == [("kept",)]
        found = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE name IN ('extra', 'purges')")}
        assert found == tables
        db.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not [name for name in snapshot(tmp_path) if ".new" in name]


async def test_the_upgrade_makes_tags_searchable(tmp_path: Path) -> None:
    """Sessions that were tagged before tags were searched are found by them, with and without a title."""
    async with embedded(tmp_path) as (store, _):
        titled = s.session("ses_titled", title="The pier", tags=("harbor", "to-do"))
        await store.transact(lambda tx: s.write(tx, [titled, s.session("ses_untitled", title="", tags=("harbor",))]))
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as db:
        db.execute("UPDATE docs SET text = 'The pier' WHERE session_id = 'ses_titled'")
        db.execute("DELETE FROM docs WHERE session_id = 'ses_untitled'")
        db.executescript("DROP INDEX runs_used; DROP TABLE erased_usage; DROP TABLE shares")  # of later versions
        db.executescript("ALTER TABLE runs DROP COLUMN steers; DROP TABLE cancelled_keys")
        db.executescript("ALTER TABLE messages DROP COLUMN persona")
        db.executescript("DROP TABLE pushes; DROP TABLE push_subscriptions")
        db.executescript(
            "DROP TABLE project_files; DROP TABLE projects; DROP TABLE drafts; DROP TABLE prompts; DROP TABLE personas"
        )
        db.execute("PRAGMA user_version = 4")
        db.commit()
    async with embedded(tmp_path) as (store, _):
        hits = await store.read(lambda tx: tx.search(LOCAL, "harbor", 10, None))
        assert {hit.session.id for hit in hits} == {"ses_titled", "ses_untitled"}
        (hit,) = await store.read(lambda tx: tx.search(LOCAL, "pier to-do", 10, None))
        assert hit.excerpt == "The pier #harbor #to-do"


async def test_the_upgrade_lists_the_projects_of_sessions(tmp_path: Path) -> None:
    """The projects that sessions named before there were rows of them are there, once each, and only sessions with a
    project are read for it."""
    named = [s.session("ses_a", project="Garden"), s.session("ses_b", project="Garden", archived=True)]
    gone = s.session("ses_gone", project="Gone", deleted_at=2.0)
    async with embedded(tmp_path) as (store, _):
        await store.transact(lambda tx: s.write(tx, [*named, gone, s.session("ses_c"), s.session("ses_d", project="")]))
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as db:
        db.executescript(
            "DROP TABLE project_files; DROP TABLE projects; DROP TABLE drafts; DROP TABLE prompts; DROP TABLE personas"
        )
        db.executescript("ALTER TABLE messages DROP COLUMN persona")
        db.execute("PRAGMA user_version = 9")
        db.commit()
        select = schema.STORE[9].partition("INSERT INTO projects")[2].partition("SELECT")[2].partition(";")[0]
        plan = [step for *_, step in db.execute(f"EXPLAIN QUERY PLAN SELECT {select}")]
    assert all("sessions" not in step or "INDEX sessions_of_project" in step for step in plan), plan
    async with embedded(tmp_path) as (store, _):
        (found,) = await store.read(lambda tx: tx.projects(ProjectQuery(LOCAL)))
        assert (found.name, found.settings, found.archived) == ("Garden", None, False)
        assert found.id.startswith("prj_")


async def test_a_failed_upgrade_changes_nothing(tmp_path: Path) -> None:
    """A script that fails in its middle leaves the rows and the version as they were, and the file usable."""
    await filled(tmp_path)
    broken = (*schema.STORE, "DELETE FROM sessions; CREATE TABLE extra (x); SELECT * FROM nowhere")
    with pytest.raises(StorageError, match=f"not upgraded to version {len(broken)}"):
        create_or_upgrade(tmp_path / "holdfast.db", broken, keep_copy=True)
    async with embedded(tmp_path) as (store, _):
        assert await store.read(lambda tx: tx.session(SessionId("ses_1"))) is not None


async def test_a_journal_that_refuses_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is opened before it and has a connection by then: its WAL would stay, and its lock."""
    await filled(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "SqliteJournal", lambda path: (_ for _ in ()).throw(SchemaTooNewError("too new")))
        with pytest.raises(SchemaTooNewError):
            open_embedded(tmp_path, FakeClock())
    assert "holdfast.db-wal" not in snapshot(tmp_path)
    async with embedded(tmp_path):
        pass


async def test_a_restored_copy_begins_a_new_generation(tmp_path: Path) -> None:
    """Cursors of the change feed are good for the file they came from, not for a copy that goes its own way."""
    generations = []
    await filled(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for name in ("a", "a", "b", "b"):
        async with embedded(tmp_path / name) as (store, _):
            generations.append(store.generation)
    assert generations[0] == generations[1] != generations[2] == generations[3]


async def test_a_database_in_use_is_read_with_its_wal(tmp_path: Path) -> None:
    """Also by who connected while the WAL was still empty: that file may be changed at any moment."""
    await filled(tmp_path)
    file = tmp_path / "holdfast.db"
    with closing(connect(file)) as server:
        server.execute("SELECT count(*) FROM sessions")
        assert (tmp_path / "holdfast.db-wal").stat().st_size == 0
        with closing(connect_unchanged(file)) as reader:
            server.execute("PRAGMA user_version = 7")
            assert reader.execute("PRAGMA user_version").fetchone() == (7,)
