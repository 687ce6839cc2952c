"""Settings and passwords. Keys are stored and never returned."""

import stat
from urllib.parse import unquote

import httpx

from holdfast.server.authenticator import set_password
from holdfast.storage.key_file import KeyFile
from tests.engine.test_export_import import from_elsewhere
from tests.http.client import Served
from tests.http.conftest import Start


def test_settings_are_kept_and_only_what_is_named_changes(start: Start) -> None:
    """P1: they survive `kill -9`, and an invalid change has no effect."""
    server = start()
    assert server.get("/api/settings")["default_model"] is None
    server.call("PATCH", "/api/settings", {"default_model": "work/a"}, 200)
    changed = server.call("PATCH", "/api/settings", {"tools": {"write": "allow", "github__*": "deny"}}, 200)
    assert (changed["default_model"], changed["tools"]) == ("work/a", {"write": "allow", "github__*": "deny"})
    assert server.call("PATCH", "/api/settings", {"tools": {"write": "perhaps"}}, 422)["field"].startswith("tools")
    assert server.call("PATCH", "/api/settings", {"defalt_model": "x"}, 422)["field"] == "defalt_model"
    for pattern in ("bad name!!", "", "[", "x" * 201):
        assert server.call("PATCH", "/api/settings", {"tools": {pattern: "ask"}}, 422)["field"].startswith("tools")
    server.kill()
    server = start()
    assert server.get("/api/settings") == changed
    assert server.call("PATCH", "/api/settings", {"default_model": None}, 200)["default_model"] is None


def test_the_shell_cannot_be_allowed_for_good_on_an_open_server(start: Start) -> None:
    """DESIGN §9: without a password the server cannot tell its owner from others; with one it is the owner's choice."""
    server = start()
    assert server.call("PATCH", "/api/settings", {"tools": {"shell": "allow"}}, 409)["type"] == "not-allowed"
    assert server.get("/api/settings")["tools"] == {}
    set_password(KeyFile(server.data_dir), "correct horse")
    server.http.post("/api/login", json={"password": "correct horse"})
    assert server.call("PATCH", "/api/settings", {"tools": {"shell": "allow"}}, 200)["tools"] == {"shell": "allow"}


def test_the_private_files_are_private(server: Served) -> None:
    """Other users of the machine cannot read the data."""
    server.get("/api/settings")
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
    for name in ("keys.json", "holdfast.db", "journal.db", "server.json"):
        assert stat.S_IMODE((server.data_dir / name).stat().st_mode) == 0o600


def test_usage_of_a_session_is_the_sum_of_its_runs(server: Served) -> None:
    """Retries and branches count too, and the price of the model as in Settings → Usage."""
    sid = server.session(model="m/priced")
    for n in (1, 2):
        server.events(server.send(sid, [{"say": "x"}, {"usage": [10 * n, n]}])["run"]["id"])
    answer = server.answer(sid)["id"]
    server.events(server.post(f"/api/sessions/{sid}/retry", {"message_id": answer}, 202)["run"]["id"])
    used = server.get(f"/api/sessions/{sid}/usage")
    assert (used["runs"], used["input_tokens"], used["output_tokens"], used["cost"]) == (3, 50, 5, None)
    server.call("PATCH", "/api/prices", {"prices": {"m/priced": {"input": 1000, "output": 1000}}}, 200)
    assert server.get(f"/api/sessions/{sid}/usage")["estimated_cost"] == 0.055
    server.get("/api/sessions/ses_none/usage", 404)


def test_a_password_is_set_and_changed(start: Start) -> None:
    """DESIGN §9: the first one closes the server to all but whoever set it; another needs the one before, and ends the
    logins of others."""
    server = start()
    assert server.call("POST", "/api/password", {"new": "short"}, 422)["field"] == "new"
    server.call("POST", "/api/password", {"new": "correct horse"}, 204)
    assert server.get("/api/settings")["password_set"]
    other = httpx.Client(base_url=server.url, verify=False)
    assert other.get("/api/settings").status_code == 401
    assert other.post("/api/login", json={"password": "correct horse"}).status_code == 204
    assert server.http.post("/api/password", json={"current": "wrong", "new": "battery staple"}).status_code == 401
    server.call("POST", "/api/password", {"current": "correct horse", "new": "battery staple"}, 204)
    assert server.get("/api/settings")["password_set"]
    assert other.get("/api/settings").status_code == 401
    other.close()


def test_a_password_from_outside_is_changed_outside(start: Start) -> None:
    """A password from the environment would return at the next start, so changing it here is an error."""
    server = start(password="correct horse")
    server.http.post("/api/login", json={"password": "correct horse"})
    body = {"current": "correct horse", "new": "battery staple"}
    assert server.call("POST", "/api/password", body, 409)["type"] == "not-allowed"


def test_all_sessions_are_exported_at_once(start: Start) -> None:
    """One file has all sessions, archived ones included, and imports unchanged."""
    server = start()
    kept = []
    sid = ""
    for n in range(3):
        sid = server.session(title=f"Number {n}")
        server.events(server.send(sid, [{"say": f"Answer {n}."}])["run"]["id"])
        kept.append((f"Number {n}", server.answer(sid)["parts"]))
    server.call("PATCH", f"/api/sessions/{sid}", {"archived": True}, 200)
    everything = server.http.get("/api/export")
    assert "attachment" in everything.headers["content-disposition"]
    headers = {"Content-Type": "application/x-ndjson"}
    taken = server.http.post("/api/import", content=from_elsewhere(everything.content), headers=headers)
    assert taken.status_code == 201, taken.text
    found = [(item["title"], server.answer(item["session_id"])["parts"]) for item in taken.json()["items"]]
    assert sorted(found) == sorted(kept)


def test_exports_are_named_by_their_chat(shared: Served) -> None:
    """A download has the chat's title and day as its name, without what file systems refuse."""
    sid = shared.session(title="Tides: high/low?\u202e")
    for query, ending in (("", "jsonl"), ("?format=markdown", "md"), ("?format=html", "html")):
        name = shared.http.get(f"/api/sessions/{sid}/export{query}").headers["content-disposition"]
        day = shared.get(f"/api/sessions/{sid}")["updated_at"][:10]
        assert unquote(name) == f"attachment; filename*=UTF-8''Tides high low {day}.{ending}"


def test_the_owner_is_told_where_the_data_is(shared: Served) -> None:
    """The settings name the data directory, for the command that makes a backup."""
    assert shared.get("/api/settings")["data_dir"] == str(shared.data_dir)
