"""Projects over HTTP: what they are, how chats come to them and leave them, and what a crash leaves of a deletion."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from holdfast.core.project import MAX_PROJECTS
from tests.http.client import Served, import_lines
from tests.http.conftest import Start
from tests.http.streams import GUARD, until


def project(server: Served, name: str, **fields: Any) -> Any:
    return server.post("/api/projects", {"name": name, **fields}, 201)


def names(server: Served, **params: Any) -> list[str]:
    return [item["name"] for item in server.get("/api/projects", params=params)["items"]]


def upload(server: Served, name: str = "a.txt", content: bytes = b"Anna has the key.") -> str:
    answer = server.http.post("/api/files", files={"file": (name, content, "text/plain")})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_project_has_what_was_set_for_it(server: Served) -> None:
    """Each field changes alone, null clears one, and a project is found by its id and its name."""
    made = project(server, "Set", color="red", instructions="Be brief.", temperature=0, use_tools=False, memory="none")
    assert (made["color"], made["instructions"], made["temperature"]) == ("red", "Be brief.", 0)
    assert (made["use_tools"], made["memory"], made["chats"], made["files"]) == (False, "none", 0, [])
    changed = server.call("PATCH", "/api/projects/Set", {"temperature": None, "model": "m", "top_p": 0.5}, 200)
    assert changed == server.get(f"/api/projects/{made['id']}")
    assert (changed["temperature"], changed["top_p"], changed["use_tools"]) == (None, 0.5, False)
    assert (changed["model"], changed["version"]) == ("m", made["version"] + 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x", "color": "mauve"}, "color"),
        ({"name": "x", "instructions": "x" * 20_001}, "instructions"),
        ({"name": "x", "temperature": 3}, "temperature"),
        ({"name": "x", "memory": "notes"}, "memory"),
        ({"name": "x", "removal": "keep_chats"}, "removal"),
    ],
)
def test_a_request_that_is_out_of_range_names_the_field(server: Served, body: Any, field: str) -> None:
    """Nothing is created."""
    before = names(server)
    assert server.call("POST", "/api/projects", body, 422)["field"] == field
    assert names(server) == before


def test_changes_at_the_same_time_are_both_made(start: Start) -> None:
    """P4: a change without If-Match never fails because another one came in between."""
    server = start()
    project(server, "Both", temperature=0.5)
    server.order(hold=["store", "amend"])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: server.http.patch("/api/projects/Both", json={"top_p": 0.5}))
        server.order(held=["store", "amend"])
        server.call("DELETE", "/api/projects/Both/files/file_no", expect=200)
        server.order(release=["store", "amend"])
        assert asked.result().status_code == 200, asked.result().text
    assert (server.get("/api/projects/Both")["temperature"], asked.result().json()["top_p"]) == (0.5, 0.5)


def test_a_session_makes_no_project_that_could_not_be_created(start: Start) -> None:
    """A blank name is refused, and so is one project too many; sessions of projects that exist still come in."""
    server = start()
    sid = server.session(project="First")
    exported = server.http.get(f"/api/sessions/{sid}/export").content
    for answer in (
        server.call("POST", "/api/sessions", {"project": "  "}, 422),
        server.call("PATCH", f"/api/sessions/{sid}", {"project": "  "}, 422),
    ):
        assert answer["field"] == "project"
    import_lines(server, exported.replace(b'"project":"First"', b'"project":"  "').replace(b"ses_", b"seb_"))
    assert names(server) == ["First"]
    lines = [exported.replace(b"First", b"P%d" % n).replace(b"ses_", b"s%d_" % n) for n in range(MAX_PROJECTS - 1)]
    import_lines(server, b"".join(lines))
    assert server.call("POST", "/api/sessions", {"project": "Last"}, 429)["type"] == "quota-exceeded"
    assert server.call("PATCH", f"/api/sessions/{sid}", {"project": "Last"}, 429)["type"] == "quota-exceeded"
    server.session(project="First")


def test_names_are_unique_and_unknown_projects_are_not_found(server: Served) -> None:
    """Creating or renaming to a name that is in use is refused; so is anything with an unknown project."""
    first = project(server, "First")
    project(server, "Second")
    assert server.call("POST", "/api/projects", {"name": "First"}, 409)["type"] == "not-allowed"
    assert server.call("PATCH", f"/api/projects/{first['id']}", {"name": "Second"}, 409)["type"] == "not-allowed"
    for method, body in (("GET", None), ("PATCH", {"color": None}), ("DELETE", None)):
        assert server.call(method, "/api/projects/prj_unknown", body, 404)["type"] == "not-found"
    stale = server.http.patch(f"/api/projects/{first['id']}", json={"color": "red"}, headers={"If-Match": '"9"'})
    assert (stale.status_code, stale.json()["type"]) == (412, "version-mismatch")


def test_a_name_makes_a_project_on_first_use(start: Start) -> None:
    """A session that is created, changed or imported with a name makes its project, once; the list has pages."""
    server = start()
    server.session(project="Created")
    sid = server.session()
    server.call("PATCH", f"/api/sessions/{sid}", {"project": "Changed"}, 200)
    server.call("PATCH", f"/api/sessions/{sid}", {"project": "Created"}, 200)
    exported = server.http.get(f"/api/sessions/{sid}/export").content
    import_lines(server, exported.replace(b'"project":"Created"', b'"project":"Imported"').replace(b"ses_", b"set_"))
    assert names(server) == ["Changed", "Created", "Imported"]
    assert [server.get(f"/api/projects/{name}")["chats"] for name in names(server)] == [0, 2, 1]
    page = server.get("/api/projects", params={"limit": 2})
    rest = server.get("/api/projects", params={"limit": 2, "cursor": page["next"]})
    assert [item["name"] for item in (*page["items"], *rest["items"])] == names(server)
    assert rest["next"] is None


def test_a_new_name_reaches_all_chats(start: Start) -> None:
    """Archived ones too, whatever their number; the project keeps its id, and its old name is free again."""
    server = start()
    made = project(server, "Old")
    sids = [server.session(project="Old", title=f"{n}") for n in range(230)]
    server.call("PATCH", f"/api/sessions/{sids[0]}", {"archived": True}, 200)
    renamed = server.call("PATCH", "/api/projects/Old", {"name": "New"}, 200)
    assert (renamed["id"], renamed["chats"]) == (made["id"], 229)
    assert {server.get(f"/api/sessions/{sid}")["project"] for sid in (sids[0], sids[1], sids[-1])} == {"New"}
    assert server.get("/api/sessions", params={"project": "Old"})["items"] == []
    assert project(server, "Old")["id"] != made["id"]


@pytest.mark.parametrize("delete_chats", [False, True])
def test_deleting_a_project_keeps_or_deletes_its_chats(start: Start, delete_chats: bool) -> None:
    """O1: as asked, archived ones too and one whose run is stopped by it; the name is free again."""
    server = start()
    project(server, "Gone")
    sids = [server.session(project="Gone") for _ in range(120)]
    server.call("PATCH", f"/api/sessions/{sids[0]}", {"archived": True}, 200)
    rid = server.stand(sids[1], [{"say": "half "}, {"meet": "here"}, {"hang": True}])
    other = server.session(project="Other")
    server.call("DELETE", f"/api/projects/Gone?delete_chats={str(delete_chats).lower()}", expect=204)
    assert names(server) == ["Other"]
    statuses = {server.http.get(f"/api/sessions/{sid}").status_code for sid in sids}
    assert statuses == ({404} if delete_chats else {200})
    if not delete_chats:
        assert {server.get(f"/api/sessions/{sid}")["project"] for sid in sids} == {None}
        assert server.run(rid)["status"] == "running"
    assert server.get(f"/api/sessions/{other}")["project"] == "Other"
    assert project(server, "Gone")["chats"] == 0


@pytest.mark.parametrize("delete_chats", [False, True])
@pytest.mark.parametrize("point", ["before the first chat", "in the middle"])
def test_a_deletion_goes_on_after_a_crash(start: Start, delete_chats: bool, point: str) -> None:
    """O1: killed at any point, the next process finishes it; meanwhile the project is gone, no chat joins it, and no
    other chat is touched."""
    server = start()
    project(server, "Gone")
    sids = [server.session(project="Gone") for _ in range(350)]
    other = server.session(project="Other")
    path = f"/api/projects/Gone?delete_chats={str(delete_chats).lower()}"
    changes = server.follow_changes()
    if point == "before the first chat":
        server.order(hold=["store", "advance"])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: httpx.delete(f"{server.url}{path}", timeout=GUARD))
        if point == "before the first chat":
            server.order(held=["store", "advance"])
            assert names(server) == ["Other"]
            joined = server.call("PATCH", f"/api/sessions/{other}", {"project": "Gone"}, 409)
            assert joined["type"] == "not-allowed"
        else:
            changes.until("session.deleted" if delete_chats else "session.changed", 10)
        server.kill()
        asked.exception()
    server = start()
    until(lambda: look_at(server, sids), lambda found: all_gone(found, delete_chats))
    assert names(server) == ["Other"]
    assert server.get(f"/api/sessions/{other}")["project"] == "Other"


def test_a_fork_says_which_project_it_has(start: Start) -> None:
    """P7: forked while its project is being deleted, the answer has no project, as what is stored."""
    server = start()
    sid = server.session(project="Gone")
    server.turn(sid, [{"say": "hello"}])
    server.order(hold=["store", "advance"])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: server.http.delete("/api/projects/Gone"))
        server.order(held=["store", "advance"])
        fork = server.post(f"/api/sessions/{sid}/fork", {"message_id": server.messages(sid)[-1]["id"]}, 201)
        assert fork["project"] is None
        assert server.look(fork["id"])["project"] is None
        server.order(release=["store", "advance"])
        assert asked.result().status_code == 204


def look_at(server: Served, sids: list[str]) -> list[httpx.Response]:
    return [server.http.get(f"/api/sessions/{sid}") for sid in sids]


def all_gone(found: list[httpx.Response], delete_chats: bool) -> bool:
    if delete_chats:
        return all(answer.status_code == 404 for answer in found)
    return all(answer.json()["project"] is None for answer in found)


def test_chats_of_an_archived_project_leave_the_list(server: Served) -> None:
    """Where a list is asked to leave them out; they are found in the project and by search, and are back when it is
    restored."""
    made = project(server, "Put away")
    sid = server.session(project="Put away", title="Lighthouse keeper")

    def listed(**params: str) -> list[str]:
        return [item["id"] for item in server.get("/api/sessions", params=params)["items"]]

    server.call("PATCH", f"/api/projects/{made['id']}", {"archived": True}, 200)
    assert sid in listed()
    assert sid not in listed(archived_projects="false")
    assert listed(project="Put away") == [sid]
    assert listed(query="Lighthouse") == [sid]
    assert "Put away" not in names(server)
    assert names(server, archived="true") == ["Put away"]
    server.call("PATCH", f"/api/projects/{made['id']}", {"archived": False}, 200)
    assert sid in listed(archived_projects="false")


def test_files_have_limits_and_are_kept_with_the_project(start: Start) -> None:
    """A1: a project keeps its files over a restart; there are at most 40, and unknown ones are refused."""
    server = start()
    project(server, "Files")
    fid = upload(server)
    added = server.post("/api/projects/Files/files", {"file_id": fid})
    assert [file["name"] for file in added["files"]] == ["a.txt"]
    assert server.post("/api/projects/Files/files", {"file_id": fid})["files"] == added["files"]
    server.kill()
    server = start()
    assert server.get("/api/projects/Files")["files"] == added["files"]
    assert server.call("POST", "/api/projects/Files/files", {"file_id": "file_no"}, 404)["type"] == "not-found"
    for n in range(39):
        server.post("/api/projects/Files/files", {"file_id": upload(server, f"{n}.txt")})
    assert (
        server.call("POST", "/api/projects/Files/files", {"file_id": upload(server)}, 429)["type"] == "quota-exceeded"
    )
    removed = server.call("DELETE", f"/api/projects/Files/files/{fid}", expect=200)
    assert len(removed["files"]) == 39
    assert fid not in {file["id"] for file in removed["files"]}


def test_an_export_of_all_chats_describes_their_projects(start: Start) -> None:
    """With an empty directory, an import brings back instructions, settings and files; a project of the name is left as
    it is. The export of one chat has the project's name alone."""
    server = start()
    project(server, "Moved", color="blue", instructions="Be brief.", temperature=0.5, memory="project", agent="stiff")
    server.post("/api/projects/Moved/files", {"file_id": upload(server)})
    sids = [server.session(project="Moved", title=f"{n}") for n in range(2)]
    one = server.http.get(f"/api/sessions/{sids[0]}/export").content
    everything = server.http.get("/api/export").content
    assert b"project_details" not in one
    assert everything.count(b"project_details") == 1
    before = server.get("/api/projects/Moved")
    server.call("DELETE", "/api/projects/Moved?delete_chats=true", expect=204)
    imported = import_lines(server, everything)
    assert len(imported) == 2
    after = server.get("/api/projects/Moved")
    same = ("name", "color", "instructions", "temperature", "memory", "chats")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert [(file["name"], file["size"]) for file in after["files"]] == [("a.txt", 17)]
    assert after["agent"] == "stiff"
    server.call("PATCH", "/api/projects/Moved", {"color": "red"}, 200)
    import_lines(server, everything)
    assert server.get("/api/projects/Moved")["color"] == "red"


def test_an_import_says_what_it_left_out_of_a_project(start: Start) -> None:
    """With the first chat of the project, whose import creates it."""
    server = start()
    project(server, "Mine", temperature=0.5, agent="stiff")
    for _ in range(2):
        server.session(project="Mine", agent="chat")
    everything = server.http.get("/api/export").content
    server.call("DELETE", "/api/projects/Mine?delete_chats=true", expect=204)
    imported = import_lines(server, everything.replace(b'"stiff"', b'"claude-code"').replace(b"0.5", b"99"))
    assert [item["skipped"] for item in imported] == [
        [
            "the agent 'claude-code' of its project 'Mine' was not kept; choose it in the project",
            "the settings temperature of its project 'Mine' were not kept",
        ],
        [],
    ]
    assert server.get("/api/projects/Mine")["agent"] is None


def test_changes_of_projects_are_in_the_change_feed(server: Served) -> None:
    """A client is told that a project was created, changed and deleted, so that it reads the list again."""
    with server.stream("GET", "/api/events") as stream:
        project(server, "Fed")
        assert stream.until("project.changed").data == {}
        server.call("PATCH", "/api/projects/Fed", {"color": "red"}, 200)
        assert stream.until("project.changed").data == {}
        server.call("DELETE", "/api/projects/Fed", expect=204)
        assert stream.until("project.changed").data == {}
