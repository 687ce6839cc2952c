"""`holdfast password`, `holdfast token` and `holdfast logins` next to a running server."""

import stat
from pathlib import Path

import httpx

from tests.cli.terminal import Terminal, as_json, holdfast, ok
from tests.http.client import Served


def test_a_password_is_asked_for_from_now_on(server: Served) -> None:
    """A new password applies to the next call; commands on this machine still work; it can be removed."""
    data = server.data_dir
    assert server.http.get("/api/sessions").status_code == 200
    ok("password", "--stdin", data=data, stdin=b"correct horse\n")
    assert server.http.get("/api/sessions").status_code == 401
    assert server.http.post("/api/login", json={"password": "correct horse"}).status_code == 204
    assert ok("chat", "hello", data=data) == "hello\n"
    ok("password", "--remove", data=data)
    assert httpx.get(f"{server.url}/api/sessions", verify=False).status_code == 200


def test_a_password_is_typed_twice_and_never_shown(server: Served) -> None:
    """The terminal shows no password; two that differ, or a short one, change nothing."""
    data = server.data_dir
    for first, second, said, code in (
        ("long enough", "long enough", "Password set.", 0),
        ("long enough 2", "something else", "The passwords do not match", 1),
        ("short", "short", "at least 8 characters", 1),
    ):
        with Terminal("password", data=data) as terminal:
            terminal.until("New password: ")
            terminal.say(f"{first}\n")
            terminal.until("Repeat password: ")
            terminal.say(f"{second}\n")
            terminal.until(said)
            assert terminal.end() == code
            assert first not in terminal.seen
    assert server.http.post("/api/login", json={"password": "long enough"}).status_code == 204


def test_a_password_needs_a_terminal_or_stdin(server: Served) -> None:
    """Without a terminal and `--stdin`, it is a usage error."""
    assert holdfast("password", data=server.data_dir).returncode == 2
    assert holdfast("password", "--stdin", data=server.data_dir, stdin=b"short\n").returncode == 1


def test_a_token_is_shown_once_and_can_be_taken_back(server: Served) -> None:
    """A token works at once, is listed by name only, and stops working when it is revoked."""
    data = server.data_dir
    ok("password", "--stdin", data=data, stdin=b"correct horse\n")
    token = ok("token", "create", "laptop", data=data).strip()
    shown = {"Authorization": f"Bearer {token}"}
    assert server.http.get("/api/sessions", headers=shown).status_code == 200
    [listed] = as_json("token", "list", data=data)
    assert listed["name"] == "laptop"
    assert token not in ok("token", "list", data=data)
    assert token.encode() not in (data / "keys.json").read_bytes()
    assert stat.S_IMODE((data / "keys.json").stat().st_mode) == 0o600
    ok("token", "revoke", listed["id"], data=data)
    assert server.http.get("/api/sessions", headers=shown).status_code == 401
    assert holdfast("token", "revoke", listed["id"], data=data).returncode == 1


def test_a_login_link_works_once(server: Served) -> None:
    """The person at the server's shell gets in without the password, once per link; nobody else can make one. A used
    link leads a browser that is logged in to the app, and another one to the login page."""
    data = server.data_dir
    ok("password", "--stdin", data=data, stdin=b"correct horse\n")
    link = ok("login-link", data=data).strip()
    assert link.startswith(f"{server.url}/open?token=")
    with httpx.Client(verify=False) as browser:
        assert browser.head(link).status_code == 403
        opened = browser.get(link)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        assert browser.get(f"{server.url}/api/sessions").status_code == 200
        again = browser.get(link)
        assert (again.status_code, again.headers["location"]) == (303, "/")
        assert httpx.get(link, verify=False).status_code == 403
        shown = httpx.get(link, headers={"Accept": "text/html"}, verify=False)
        assert (shown.status_code, shown.headers["location"]) == (303, "/login?used_link")
        assert browser.post(f"{server.url}/api/login-links").status_code == 403
    token = ok("token", "create", "laptop", data=data).strip()
    refused = server.http.post("/api/login-links", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 403
    assert httpx.post(f"{server.url}/api/login-links", verify=False).status_code == 401


def test_a_login_link_needs_a_running_server(tmp_path: Path) -> None:
    """Without `server.json` of a server that answers there is no link."""
    refused = holdfast("login-link", data=tmp_path)
    assert refused.returncode == 1
    assert b"No server of this user account is running" in refused.stderr
    assert holdfast("login-link", "--url", "chat.example.com", data=tmp_path).returncode == 2


def test_logins_are_listed_and_ended(server: Served) -> None:
    """A browser is listed with its device, and logged out at once: one of them, or all."""
    data = server.data_dir
    ok("password", "--stdin", data=data, stdin=b"correct horse\n")
    agent = {"User-Agent": "Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36"}
    for end in (lambda login: [login["id"]], lambda login: ["--all"]):
        assert server.http.post("/api/login", json={"password": "correct horse"}, headers=agent).status_code == 204
        [login] = as_json("logins", "list", data=data)
        assert login["device"] == "Chrome on Windows"
        assert "Chrome on Windows" in ok("logins", "list", data=data)
        ok("logins", "end", *end(login), data=data)
        assert server.http.get("/api/sessions").status_code == 401
    assert holdfast("logins", "end", "login_x", data=data).returncode == 1
    assert holdfast("logins", "end", data=data).returncode == 2
