"""Projects, their files, and the sessions that name them."""

from dataclasses import replace

import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import LOCAL, FileId, ProjectId
from holdfast.core.project import Project
from holdfast.ports.store import ProjectQuery, SessionQuery, Store
from holdfast.testing.contracts import samples as s

PID = ProjectId("prj_1")


async def names(store: Store, query: ProjectQuery) -> list[str]:
    return [project.name for project in await store.read(lambda tx: tx.projects(query))]


class ProjectContract:
    async def test_projects_are_listed_by_name(self, store: Store) -> None:
        """A list has the owner's projects alone, archived or not as asked, by name and without those being deleted."""
        await s.put(
            store,
            s.project("prj_b", "b"),
            s.project("prj_a", "a"),
            s.project("prj_old", "old", archived=True),
            s.project("prj_gone", "gone", removal="delete_chats"),
            s.project("prj_other", "a", owner=s.OTHER),
        )
        assert await names(store, ProjectQuery(LOCAL)) == ["a", "b"]
        assert await names(store, ProjectQuery(LOCAL, archived=True)) == ["old"]
        assert await names(store, ProjectQuery(s.OTHER)) == ["a"]
        assert await store.read(lambda tx: tx.count_projects(LOCAL)) == 4

    async def test_pages_of_projects_make_the_whole_list(self, store: Store) -> None:
        """Page after page has each project once, in the order of the whole list."""
        await s.put(store, *(s.project(f"prj_{n}", f"{n % 3} {n}") for n in range(8)))

        async def fetch(last: Project | None) -> list[Project]:
            after = None if last is None else (last.name, last.id)
            return list(await store.read(lambda tx: tx.projects(ProjectQuery(LOCAL, limit=3, after=after))))

        assert [each.name for each in await s.pages(fetch, 3)] == await names(store, ProjectQuery(LOCAL, limit=99))

    async def test_a_project_is_found_by_its_name_and_the_former_one(self, store: Store) -> None:
        """A name is the owner's and exact; one that was given up finds the project until another one has it."""
        renamed = s.project("prj_1", "new", former_name="old")
        await s.put(store, renamed, s.project("prj_2", "theirs", owner=s.OTHER))
        for name, found in (("new", renamed), ("old", renamed), ("New", None), ("theirs", None)):
            assert await store.read(lambda tx, name=name: tx.project_named(LOCAL, name)) == found  # type: ignore[misc]
        await s.put(store, s.project("prj_3", "old"))
        other = await store.read(lambda tx: tx.project_named(LOCAL, "old"))
        assert other is not None
        assert other.id == "prj_3"

    async def test_a_name_is_taken_once(self, store: Store) -> None:
        """Adding a project whose name its owner has used changes nothing; putting one is refused."""
        await s.put(store, s.project("prj_1", "a", color="red"))
        await store.transact(lambda tx: tx.add_project(s.project("prj_2", "a")))
        await store.transact(lambda tx: tx.add_project(s.project("prj_3", "a", owner=s.OTHER)))
        assert await store.read(lambda tx: tx.project(ProjectId("prj_2"))) is None
        assert await store.read(lambda tx: tx.project(ProjectId("prj_3"))) is not None
        with pytest.raises(StorageError):
            await s.put(store, s.project("prj_2", "a"))
        assert await names(store, ProjectQuery(LOCAL)) == ["a"]

    async def test_unfinished_projects_are_found(self, store: Store) -> None:
        """Those that were renamed or are being deleted, of every owner, until they are finished."""
        renamed = s.project("prj_1", former_name="old")
        removed = s.project("prj_2", removal="keep_chats", owner=s.OTHER)
        await s.put(store, renamed, removed, s.project("prj_3"))
        assert list(await store.read(lambda tx: tx.unfinished_projects(9))) == [renamed, removed]
        assert list(await store.read(lambda tx: tx.unfinished_projects(1))) == [renamed]
        await s.put(store, replace(renamed, former_name=None))
        await store.transact(lambda tx: tx.drop_project(removed.id))
        assert list(await store.read(lambda tx: tx.unfinished_projects(9))) == []

    async def test_chats_are_counted_by_project(self, store: Store) -> None:
        """Neither archived nor deleted sessions count, nor those of other owners."""
        await s.put(
            store,
            s.session("ses_1", project="a"),
            s.session("ses_2", project="a"),
            s.session("ses_3", project="a", archived=True),
            s.session("ses_4", project="a", deleted_at=1.0),
            s.session("ses_5", project="a", owner=s.OTHER),
            s.session("ses_6", project="b"),
            s.session("ses_7"),
        )
        assert dict(await store.read(lambda tx: tx.count_chats(LOCAL, ["a", "b", "c"]))) == {"a": 2, "b": 1}
        assert dict(await store.read(lambda tx: tx.count_chats(LOCAL, []))) == {}

    async def test_sessions_of_archived_projects_can_be_left_out(self, store: Store) -> None:
        """The list of all sessions is without them if asked; a project of another owner with the name does not
        matter."""
        await s.put(
            store,
            s.project("prj_1", "old", archived=True),
            s.project("prj_2", "mine"),
            s.project("prj_3", "mine", owner=s.OTHER, archived=True),
            s.session("ses_old", project="old"),
            s.session("ses_mine", project="mine"),
            s.session("ses_unknown", project="unknown"),
            s.session("ses_none"),
        )
        query = SessionQuery(LOCAL, archived_projects=False)
        found = {each.id for each in await store.read(lambda tx: tx.sessions(query))}
        assert found == {"ses_mine", "ses_unknown", "ses_none"}
        assert len(await store.read(lambda tx: tx.sessions(SessionQuery(LOCAL)))) == 4

    async def test_files_of_a_project_are_no_orphans(self, store: Store) -> None:
        """A project has each file once, in the order of adding; they are orphans when it lets go of them or is gone."""
        first, second = s.stored_file("file_a"), s.stored_file("file_b")
        await s.put(store, s.project("prj_1"), s.project("prj_2"), first, second)
        for pid, file in ((PID, first), (PID, second), (PID, first), (ProjectId("prj_2"), second)):
            await store.transact(lambda tx, pid=pid, file=file: tx.add_project_file(pid, file.id))  # type: ignore[misc]
        assert list(await store.read(lambda tx: tx.project_files(PID))) == [first, second]
        assert await store.read(lambda tx: tx.orphan_files(99.0, 9)) == []
        await store.transact(lambda tx: tx.drop_project_file(PID, FileId("file_a")))
        assert list(await store.read(lambda tx: tx.project_files(PID))) == [second]
        assert list(await store.read(lambda tx: tx.orphan_files(99.0, 9))) == [first]
        await store.transact(lambda tx: tx.drop_project(PID))
        await store.transact(lambda tx: tx.drop_project(ProjectId("prj_2")))
        assert len(await store.read(lambda tx: tx.orphan_files(99.0, 9))) == 2
