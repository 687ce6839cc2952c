"""`holdfast sessions share`, `shares` and `unshare`."""

import httpx

from tests.cli.terminal import as_json, ok, refused
from tests.http.client import Served
from tests.http.conftest import Start


def answered(server: Served) -> str:
    sid = server.session(title="Tides")
    server.turn(sid, [{"say": "High tide is at six."}])
    return sid


def test_a_chat_is_shared_listed_and_unshared(start: Start) -> None:
    """The link opens while a server runs, whether or not one ran when it was made."""
    server = start()
    data, sid = server.data_dir, answered(server)
    link = ok("sessions", "share", sid, data=data).strip()
    assert link.startswith(f"{server.url}/share/")
    assert "High tide is at six." in httpx.get(link).text
    made = as_json("sessions", "share", sid, "--recording", "--tools", "--expires", "never", data=data)
    assert (made["kind"], made["tools"], made["expires_at"]) == ("recording", True, None)
    assert made["link"] == server.url + made["path"]
    server.terminate()
    offline = ok("sessions", "share", sid, "--url", "https://chat.example.com/x/", data=data).strip()
    assert offline.startswith("https://chat.example.com/x/share/")
    rows = [line.split("\t") for line in ok("sessions", "shares", data=data).splitlines()]
    assert [(row[2].split(",")[0], row[5]) for row in rows] == [
        ("text", "Tides"),
        ("recording", "Tides"),
        ("text", "Tides"),
    ]
    assert [row[4] == "never" for row in rows] == [True, True, False]
    ok("sessions", "unshare", made["id"], data=data)
    refused("sessions", "unshare", made["id"], data=data, message="no share with the id")
    server = start()
    path = offline.removeprefix("https://chat.example.com/x")
    assert "High tide is at six." in httpx.get(server.url + path).text
    assert httpx.get(server.url + made["path"]).status_code == 404


def test_a_run_is_shared_alone(start: Start) -> None:
    server = start()
    sid = answered(server)
    rid = server.messages(sid)[-1]["run_id"]
    made = as_json("sessions", "share", sid, "--run", rid, data=server.data_dir)
    assert made["kind"] == "recording"
    refused("sessions", "share", sid, "--url", "chat", data=server.data_dir, message="must start with http", code=2)
    refused("sessions", "share", sid, "--expires", "2", data=server.data_dir, message="expires", code=2)


def test_a_backup_has_the_links_of_its_time(start: Start) -> None:
    """With their contents; an export has none."""
    server = start()
    data, sid = server.data_dir, answered(server)
    link = ok("sessions", "share", sid, data=data).strip()
    page = httpx.get(link).text
    target = data.parent / "copy"
    ok("backup", str(target), data=data)
    ok("doctor", data=target)
    assert link.rpartition("/")[2] not in ok("export", data=data)
    server.terminate()
    target.rename(data.with_name("restored"))
    restored = ok("sessions", "shares", data=data.with_name("restored"))
    assert "Tides" in restored
    data.rename(data.with_name("old"))
    data.with_name("restored").rename(data)
    server = start()
    assert httpx.get(f"{server.url}/share/{link.rpartition('/')[2]}").text == page
