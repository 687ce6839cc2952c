"""Logins of browsers: they are listed, they end, and what they had opened ends with them."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from holdfast.server.authenticator import issue_token, set_password
from holdfast.storage.key_file import KeyFile
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD

PASSWORD = "correct horse"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Safari/604.1"


@pytest.fixture
def guarded(tmp_path: Path, start: Start) -> Served:
    (tmp_path / "data").mkdir(mode=0o700)
    set_password(KeyFile(tmp_path / "data"), PASSWORD)
    return start(heartbeat=0.3)


@contextmanager
def browser(server: Served, user_agent: str = FIREFOX, password: str = PASSWORD) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, verify=False, headers={"User-Agent": user_agent}, timeout=GUARD) as client:
        assert client.post("/api/login", json={"password": password}).status_code == 204
        yield client


def status(client: httpx.Client) -> int:
    return client.get("/api/sessions").status_code


def test_a_cookie_is_worth_nothing_after_logging_out(guarded: Served) -> None:
    """Whoever copied the cookie is logged out too, also after a restart of the browser."""
    with browser(guarded) as one:
        copied = dict(one.cookies)
        assert one.post("/api/logout").status_code == 204
        assert httpx.get(f"{guarded.url}/api/sessions", verify=False, cookies=copied).status_code == 401


def test_logins_are_listed_and_ended(guarded: Served) -> None:
    """A person sees each device, ends one of them, then all; tokens stay."""
    _, token = issue_token(KeyFile(guarded.data_dir), "script", 1.0)
    with browser(guarded) as desk, browser(guarded, SAFARI) as phone, browser(guarded) as third:
        listed = desk.get("/api/logins").json()["items"]
        assert sorted(item["device"] for item in listed) == ["Firefox on Linux"] * 2 + ["Safari on iPhone"]
        assert {item["address"] for item in listed} == {"127.0.0.1"}
        assert [item["current"] for item in listed].count(True) == 1
        (lost,) = [item["id"] for item in listed if item["device"].startswith("Safari")]
        assert desk.delete(f"/api/logins/{lost}").status_code == 204
        assert desk.delete(f"/api/logins/{lost}").status_code == 404
        assert [status(each) for each in (desk, phone, third)] == [200, 401, 200]
        assert desk.delete("/api/logins").status_code == 204
        assert [status(each) for each in (desk, phone, third)] == [401, 401, 401]
    assert (
        httpx.get(f"{guarded.url}/api/runs", verify=False, headers={"Authorization": f"Bearer {token}"}).status_code
        == 200
    )
    assert "login_" not in json.dumps(guarded.http.get("/api/logins").json())


def test_entering_the_password_again_renews_the_login(guarded: Served) -> None:
    """The browser stays one device with a new cookie; the old cookie is worth nothing."""
    with browser(guarded) as one:
        before, old = one.get("/api/logins").json()["items"], dict(one.cookies)
        assert one.post("/api/login", json={"password": PASSWORD}).status_code == 204
        after = one.get("/api/logins").json()["items"]
        assert [item["id"] for item in after] == [item["id"] for item in before]
        assert httpx.get(f"{guarded.url}/api/sessions", verify=False, cookies=old).status_code == 401


def test_a_new_password_ends_every_login_and_token(guarded: Served) -> None:
    """Whoever changes it stays logged in; a token may be in the hands of whoever the change is meant to lock out."""
    _, token = issue_token(KeyFile(guarded.data_dir), "script", 1.0)
    bearer = {"Authorization": f"Bearer {token}"}
    with browser(guarded) as own, browser(guarded) as other:
        body = {"current": PASSWORD, "new": "battery staple"}
        assert own.post("/api/password", json=body).status_code == 204
        assert (status(own), status(other)) == (200, 401)
        assert httpx.get(f"{guarded.url}/api/runs", verify=False, headers=bearer).status_code == 401
        set_password(KeyFile(guarded.data_dir), PASSWORD)
        assert status(own) == 401


def test_a_first_password_ends_the_tokens_made_before_it(start: Start) -> None:
    """Without a password, an agent's command may have made one."""
    server = start()
    _, token = issue_token(KeyFile(server.data_dir), "script", 1.0)
    server.call("POST", "/api/password", {"new": PASSWORD}, 204)
    assert (
        httpx.get(f"{server.url}/api/runs", verify=False, headers={"Authorization": f"Bearer {token}"}).status_code
        == 401
    )


def test_another_configured_password_ends_every_login_and_token(start: Start) -> None:
    """It is noticed at the start; the same one ends nothing, nor does the first start after an update."""
    server = start(password=PASSWORD)
    _, token = issue_token(KeyFile(server.data_dir), "script", 1.0)
    bearer = {"Authorization": f"Bearer {token}"}
    with browser(server) as one:
        for password, expected in ((PASSWORD, 200), ("battery staple", 401)):
            server.terminate()
            server = start(password=password)
            one.base_url = server.url
            assert status(one) == expected
            assert httpx.get(f"{server.url}/api/runs", verify=False, headers=bearer).status_code == expected


@pytest.mark.parametrize("path", ["/api/events", "/api/runs/{rid}/events"])
def test_the_streams_of_an_ended_login_end(guarded: Served, path: str) -> None:
    """A stolen cookie that is taken back shows nothing more, and the stream of another login goes on."""
    with browser(guarded) as thief, browser(guarded) as owner:
        sid = owner.post("/api/sessions", json={}).json()["id"]
        body = {"input": json.dumps([{"say": "x"}, {"hang": 0}])}
        rid = owner.post(f"/api/sessions/{sid}/runs", json=body).json()["run"]["id"]
        path = path.format(rid=rid)
        with thief.stream("GET", path) as stolen, owner.stream("GET", path) as own:
            pieces = own.iter_raw()
            next(pieces)
            (lid,) = [item["id"] for item in owner.get("/api/logins").json()["items"] if not item["current"]]
            assert owner.delete(f"/api/logins/{lid}").status_code == 204
            with pytest.raises(httpx.TransportError):
                for _ in stolen.iter_raw():
                    pass
            for _ in range(3):
                assert next(pieces)


def test_a_stream_that_was_open_to_anybody_ends_with_the_first_password(start: Start) -> None:
    """Until then nobody had to log in."""
    server = start(heartbeat=0.3)
    with server.http.stream("GET", "/api/events") as stream:
        set_password(KeyFile(server.data_dir), PASSWORD)
        with pytest.raises(httpx.TransportError):
            for _ in stream.iter_raw():
                pass


def test_a_cookie_over_https_belongs_to_this_host_alone(guarded: Served) -> None:
    """A page of a subdomain cannot plant it: browsers refuse the name from anybody else."""
    https = {"X-Forwarded-Proto": "https"}
    made = httpx.post(f"{guarded.url}/api/login", verify=False, json={"password": PASSWORD}, headers=https).headers[
        "set-cookie"
    ]
    assert made.startswith("__Host-holdfast=")
    assert {"path=/", "secure", "httponly"} <= {part.strip().lower() for part in made.split(";")}
    cookie = made.partition(";")[0]
    assert httpx.get(f"{guarded.url}/api/runs", verify=False, headers={**https, "Cookie": cookie}).status_code == 200
    planted = cookie.removeprefix("__Host-")
    assert httpx.get(f"{guarded.url}/api/runs", verify=False, headers={**https, "Cookie": planted}).status_code == 401


# ---- sensitive changes ----

SENSITIVE = [
    ("POST", "/api/tokens", {"name": "mine"}),
    ("PUT", "/api/settings/keys/openai", {"key": "sk-mine"}),
    ("PUT", "/api/mcp/mine", {"command": "sh", "args": ["-c", "id"]}),
    ("PUT", "/api/mcp/mine", {"url": "https://mine.example/mcp"}),
    ("PATCH", "/api/settings", {"tools": {"shell": "allow"}}),
    ("POST", "/api/agents/none/test", None),
    ("PUT", "/api/agents/mine", {"command": "sh", "args": ["-c", "id"]}),
    ("POST", "/api/providers", {"base_url": "http://127.0.0.1:9/v1", "key": "sk-mine"}),
    ("POST", "/api/mcp/mine/sign-in", None),
    ("POST", "/api/models/download", None),
    ("POST", "/api/runs/run_x/approvals/apr_x", {"decision": "always"}),
]


def age_logins(server: Served, seconds: float) -> None:
    """As if the passwords had been entered earlier."""
    KeyFile(server.data_dir).change(
        lambda ring: replace(
            ring, logins=tuple(replace(each, created_at=each.created_at - seconds) for each in ring.logins)
        )
    )


@pytest.mark.parametrize(("method", "path", "body"), SENSITIVE)
def test_a_sensitive_change_needs_the_password_again(guarded: Served, method: str, path: str, body: object) -> None:
    """A token cannot make it, nor can a login of which the password was entered a while ago, until it is again."""
    _, token = issue_token(KeyFile(guarded.data_dir), "script", 1.0)
    answer = guarded.http.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["type"]) == (403, "reauthentication-required")
    with browser(guarded) as one:
        age_logins(guarded, 301.0)
        assert one.request(method, path, json=body).json()["type"] == "reauthentication-required"
        assert one.patch("/api/settings", json={"default_model": "work/a"}).status_code == 200
        assert one.patch("/api/settings", json={"tools": {}}).status_code == 200
        assert one.post("/api/login", json={"password": PASSWORD}).status_code == 204
        assert one.request(method, path, json=body).status_code != 403


def test_commands_on_this_machine_are_not_asked(guarded: Served) -> None:
    """Whoever can read the server's own token can change the keyring as well."""
    token = json.loads((guarded.data_dir / "server.json").read_text())["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    assert guarded.http.patch("/api/settings", json={"tools": {"shell": "ask"}}, headers=bearer).status_code == 200


def test_of_two_simultaneous_password_changes_one_succeeds(guarded: Served) -> None:
    """Whoever also knows the old password cannot undo the change with a request that was checked before it."""
    with browser(guarded) as owner, browser(guarded) as thief, ThreadPoolExecutor(2) as threads:
        bodies = [{"current": PASSWORD, "new": f"battery staple {at}"} for at in range(2)]
        calls = [
            threads.submit(client.post, "/api/password", json=body)
            for client, body in zip((owner, thief), bodies, strict=True)
        ]
        assert [call.result(GUARD).status_code for call in calls].count(204) == 1
        assert sorted([status(owner), status(thief)]) == [200, 401]
