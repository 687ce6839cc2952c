"""Access control (DESIGN §9): each rule with the attack that it prevents, against a real server."""

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from holdfast.server.authenticator import issue_token, set_password
from holdfast.server.peer_user import find_peer_user
from holdfast.storage.key_file import KeyFile
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD
from tests.servers import free_port

EVIL = "https://evil.example"


def body_of(answer: httpx.Response) -> Any:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


# ---- without a password ----


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8484", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_name_that_was_rebound_to_us_is_refused(shared: Served, host: str) -> None:
    """DNS rebinding: evil.example resolves to 127.0.0.1, so its page would be of the same origin."""
    answer = shared.http.get("/api/sessions", headers={"Host": host})
    assert answer.status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "127.8.8.8:80", "[::1]:8484", "a.localhost"])
def test_loopback_names_are_taken(shared: Served, host: str) -> None:
    """Names that always mean this machine are accepted."""
    assert shared.http.get("/api/sessions", headers={"Host": host}).status_code == 200


def test_two_hosts_in_one_request_are_refused(shared: Served) -> None:
    """A request that names two hosts means one to a proxy and the other to us."""
    with socket.create_connection(shared.address, GUARD) as line:
        line.sendall(b"GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert line.recv(4096).split(b" ")[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "header", ["Forwarded", "Via", "X-Forwarded", "X-Forwarded-For", "X-Forwarded-Anything", "CF-Connecting-IP"]
)
def test_a_proxy_in_front_needs_a_password(shared: Served, header: str) -> None:
    """A request through a proxy is not local, whatever the address of the connection."""
    answer = shared.http.get("/api/sessions", headers={header: "for=10.0.0.1"})
    assert (answer.status_code, body_of(answer)["type"]) == (403, "proxied")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "text/plain; charset=application/json"},
        {},
    ],
)
def test_a_cross_site_form_changes_nothing(server: Served, headers: dict[str, str]) -> None:
    """A form of another site can post JSON text with one of three media types; it is rejected."""
    answer = server.http.post("/api/sessions", content=b'{"title":"stolen"}', headers=headers)
    assert answer.status_code == 415
    assert server.get("/api/sessions")["items"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://["},
    ],
)
@pytest.mark.parametrize("call", ["/api/sessions", "/api/runs/run_x/cancel", "/api/files", "/api/logout"])
def test_a_cross_site_fetch_changes_nothing(server: Served, headers: dict[str, str], call: str) -> None:
    """A script of another site, or of another port of this machine, shows where it comes from and is refused, with a
    body and without one."""
    for body in ({"title": "x"}, None):
        answer = server.http.post(call, headers=headers, json=body)
        assert answer.status_code in (403, 415)
    assert server.get("/api/sessions")["items"] == []


OPENED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/api/sessions?query=x", "/v1/models", "/api/changes"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": EVIL},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {**OPENED, "Sec-Purpose": "prefetch;prerender"},
        {},
    ],
)
def test_a_page_of_another_site_asks_nothing(shared: Served, site: str, path: str, headers: dict[str, str]) -> None:
    """It could not read the answer, but measure how long a search of the chats takes."""
    for method in ("GET", "HEAD"):
        answer = shared.http.request(method, path, headers={"Sec-Fetch-Site": site, **headers})
        assert answer.status_code == 403
    assert shared.http.get("/", headers={"Sec-Fetch-Site": site, **headers}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", **OPENED},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "none", **OPENED},
        {},
    ],
)
def test_links_our_own_page_and_programs_may_read(shared: Served, headers: dict[str, str]) -> None:
    """A link that a person opens, requests of our own page, and clients that are no browsers are answered."""
    assert shared.http.get("/api/sessions?query=x", headers=headers).status_code == 200
    assert shared.http.get("/v1/models", headers=headers).status_code == 200


def test_a_cookie_does_not_let_another_site_ask(guarded: Served) -> None:
    """A browser sends the cookie with requests of other ports of the same host, too."""
    login = guarded.http.post("/api/login", json={"password": PASSWORD})
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in login.cookies.items())}
    assert guarded.http.get("/api/sessions", headers=cookie).status_code == 200
    answer = guarded.http.get("/api/sessions", headers={**cookie, "Sec-Fetch-Site": "same-site"})
    assert (answer.status_code, body_of(answer)["type"]) == (403, "cross-site")


def test_a_cross_site_preflight_is_not_granted(server: Served) -> None:
    """The response to a CORS preflight grants nothing."""
    asked = {"Origin": EVIL, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    answer = server.http.options("/api/sessions", headers=asked)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_our_own_page_may_do_everything(server: Served) -> None:
    """Requests with our own origin are accepted."""
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert server.http.post("/api/sessions", json={}, headers=headers).status_code == 201


def test_answers_of_the_api_are_not_cached(server: Served) -> None:
    """Not by a browser that somebody else uses next, nor by a proxy; what has a name by its content still is."""
    for path in ("/api/sessions", "/api/settings", "/v1/models", "/metrics", "/openapi.json", "/nowhere"):
        assert server.http.get(path).headers["cache-control"] == "no-store"
    assert server.http.get("/").headers["cache-control"] == "no-cache"


def test_over_https_browsers_are_told_to_stay_there(guarded: Served) -> None:
    """Only a proxy that has TLS says so; without one the header would lock people out."""
    for proto, told in (("https", True), ("http", False)):
        headers = guarded.http.get("/login", headers={"X-Forwarded-Proto": proto}).headers
        assert ("strict-transport-security" in headers) == told


def test_security_events_are_logged_and_no_line_is_forged(tmp_path: Path, start: Start) -> None:
    """At the usual level, without secrets; a path with a line break stays in its line, and so does a name."""
    server = start(log_level="info")
    forged = "2026-01-01 00:00:00,000 INFO    holdfast.security: logged in"
    server.http.get(f"/api/x%0a{forged}%1b[2J%e2%80%a8")
    server.call("POST", "/api/password", {"new": PASSWORD}, 204)
    made = server.post("/api/tokens", {"name": f"x\n{forged}"}, 201)
    server.call("DELETE", f"/api/tokens/{made['id']}", expect=204)
    for _ in range(2):  # the second changes nothing
        server.call("PATCH", "/api/settings", {"tools": {"shell": "deny"}}, 200)
    server.call("POST", "/api/settings/grants/revoke", {"tool": "shell", "scope": ""}, 204)
    server.call("POST", "/api/logout", expect=204)
    server.terminate()
    lines = server.complaints.split("\n")
    assert not [line for line in lines if line.startswith(forged)]
    assert "\x1b" not in server.complaints
    said = [line.partition("holdfast.security: ")[2] for line in lines if "holdfast.security" in line]
    events = ["password changed", "logged in", "token created", "token revoked", "tool rules changed"]
    events += ["grant revoked", "logged out"]
    assert [line.partition(" address=")[0] for line in said if " address=" in line] == events
    assert made["token"] not in server.complaints
    assert PASSWORD not in server.complaints


def test_security_headers_are_on_every_answer(server: Served) -> None:
    """A strict policy: no foreign script, no framing, no sniffing; also on errors."""
    for path in ("/", "/login", "/docs", "/api/sessions", "/nowhere"):
        headers = server.http.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "'unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


# ---- other accounts of this machine ----

NOBODY = 65534


@contextmanager
def connection_of(user: int, address: tuple[str, int], port: int = 0) -> Iterator[socket.socket]:
    """A connection whose socket belongs to this user: the kernel takes the effective one that creates it. `port` is its
    own; 0 is any."""
    own = os.geteuid()
    os.seteuid(user)
    try:
        line = socket.socket()
    finally:
        os.seteuid(own)
    with line:
        line.settimeout(GUARD)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind(("127.0.0.1", port))
        line.connect(address)
        yield line


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="acts as another account")


def answer_to(line: socket.socket, path: str, *headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return b"".join(iter(lambda: line.recv(65536), b""))


def post(path: str, content: Any) -> bytes:
    body = json.dumps(content)
    head = f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"
    return "\r\n".join([*head, "", body]).encode()


@needs_root
@pytest.mark.parametrize("path", ["/api/sessions", "/", "/v1/models", "/metrics", "/docs", "/open?token=guess"])
def test_another_account_is_not_the_person_at_the_machine(shared: Served, path: str) -> None:
    """Loopback is open to every account, and to a proxy that adds no header: neither of them gets anything."""
    with connection_of(NOBODY, shared.address) as line:
        assert answer_to(line, path).split(b" ")[1] == b"403"
    with connection_of(NOBODY, shared.address) as line:
        assert answer_to(line, "/healthz").split(b" ")[1] == b"200"


def titles_after_ours(server: Served) -> list[str]:
    """The sessions after one more of ours: writes are made one after the other, so an earlier one would be there."""
    server.session(title="ours")
    return [item["title"] for item in server.get("/api/sessions")["items"]]


@needs_root
def test_a_connection_that_is_closed_at_once_belongs_to_nobody(server: Served) -> None:
    """The kernel reports a closed socket as one of root: a request that is left behind changes nothing."""
    for _ in range(20):
        with connection_of(NOBODY, server.address) as line:
            line.sendall(post("/api/sessions", {"title": "stolen"}))
    assert titles_after_ours(server) == ["ours"]


def reset(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


@contextmanager
def stopped(server: Served) -> Iterator[None]:
    server.tell(signal.SIGSTOP)
    try:
        yield
    finally:
        server.tell(signal.SIGCONT)


@needs_root
def test_a_connection_that_is_reset_before_it_is_accepted_is_nobodys(fresh: Served) -> None:
    """Its address is not known any more, and what it had sent still arrives: that is not a Unix socket of ours."""
    with stopped(fresh), connection_of(NOBODY, fresh.address) as line:
        line.sendall(post("/api/sessions", {"title": "stolen"}))
        reset(line)
    assert titles_after_ours(fresh) == ["ours"]


@needs_root
def test_a_request_is_not_taken_for_one_of_a_later_connection(fresh: Served) -> None:
    """Another account sends and resets; a connection of ours gets the same port before the server has read it."""
    with ExitStack() as stack, connection_of(NOBODY, fresh.address, port := free_port()) as line:
        with socket.create_connection(fresh.address, GUARD) as later:  # answered after the other was accepted
            assert answer_to(later, "/healthz").split(b" ")[1] == b"200"
        with stopped(fresh):
            line.sendall(post("/api/sessions", {"title": "stolen"}))
            reset(line)
            stack.enter_context(connection_of(os.geteuid(), fresh.address, port))
        assert titles_after_ours(fresh) == ["ours"]


@needs_root
def test_the_link_of_the_server_lets_another_account_in(shared: Served) -> None:
    """It carries the token that only the owner of `server.json` can read, and becomes a cookie."""
    token = json.loads((shared.data_dir / "server.json").read_text())["token"]
    with connection_of(NOBODY, shared.address) as line:
        opened = answer_to(line, f"/open?token={token}").decode()
    assert opened.split(" ")[1] == "303"
    cookie, _, rules = opened.partition("set-cookie: ")[2].partition(";")
    assert "HttpOnly" in rules
    for header, status in ((f"Cookie: {cookie}", b"200"), (f"Authorization: Bearer {token}", b"200"), ("X: y", b"403")):
        with connection_of(NOBODY, shared.address) as line:
            assert answer_to(line, "/api/sessions", header).split(b" ")[1] == status


def test_the_account_of_a_connection_is_found() -> None:
    """By both families; a connection that does not exist has none."""
    for host in ("127.0.0.1", "::1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family) as listener:
            own = listener.getsockname()[:2]
            with socket.create_connection(own) as line:
                peer = line.getsockname()[:2]
                assert anyio.run(find_peer_user, peer, own) == os.geteuid()
                assert anyio.run(find_peer_user, ("::ffff:127.0.0.1", peer[1]), own) in (os.geteuid(), None)
            assert anyio.run(find_peer_user, peer, own) is None


def end_after(work: Callable[[], None]) -> None:
    """Ends a forked process without the clean-up of the test's own."""
    try:
        work()
    finally:
        os._exit(0)


@needs_root
def test_a_child_process_that_hides_its_files_is_not_the_person() -> None:
    """A process that changed its account has files that only root may list; so may any that asks for it."""
    results, result = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = listener.getsockname()

        def connect(line: socket.socket) -> None:
            with socket.socket() as connection:
                connection.connect(own)
                line.sendall(str(connection.getsockname()[1]).encode())
                line.recv(1)

        def serve() -> None:
            os.setuid(NOBODY)
            line, other = socket.socketpair()
            if os.fork() == 0:
                line.close()
                end_after(lambda: connect(other))
            other.close()
            with line:
                os.write(result, str(anyio.run(find_peer_user, ("127.0.0.1", int(line.recv(100))), own)).encode())
                line.sendall(b".")

        if (pid := os.fork()) == 0:
            end_after(serve)
        os.close(result)
        os.waitpid(pid, 0)
    assert os.read(results, 100) == b"None"
    os.close(results)


HIDE_IN_A_THREAD = """
import ctypes, threading
def connect():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES: /proc/PID/fd shows the files of the first thread
    with socket.create_connection(address) as line:
        tell(line)
thread = threading.Thread(target=connect)
thread.start()
thread.join()
"""
HIDE_IN_A_MESSAGE = """
line, (sender, receiver) = socket.create_connection(address), socket.socketpair()
peer = line.getsockname()
socket.send_fds(sender, [b"."], [line.fileno()])
line.close()
print(peer[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "hide",
    [HIDE_IN_A_THREAD, HIDE_IN_A_MESSAGE, "tell(socket.create_connection(address))"],
    ids=["in a thread", "in a message", "not at all"],
)
def test_a_child_process_that_hides_its_socket_is_not_the_person(hide: str) -> None:
    """A socket must be seen in a process that does not descend from the server, while there are any that do."""
    start = """
import socket, sys
address = "127.0.0.1", int(sys.argv[1])
def tell(line):
    print(line.getsockname()[1], flush=True)
    sys.stdin.read()
"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = listener.getsockname()
        command = [sys.executable, "-c", start + hide, str(own[1])]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
            socket.create_connection(own) as line,
        ):
            assert child.stdout is not None
            peer = "127.0.0.1", int(child.stdout.readline())
            assert anyio.run(find_peer_user, peer, own) is None
            assert anyio.run(find_peer_user, line.getsockname(), own) == os.geteuid()


# ---- bound elsewhere ----


def test_bound_elsewhere_it_refuses_to_start_without_a_password(tmp_path: Path, http_forker: ServerForker) -> None:
    """The error says what to do, and the server does not listen."""
    with Served(http_forker, tmp_path / "data", host="0.0.0.0") as served:
        assert served.buried() == 2
        assert "holdfast password" in served.complaints


# ---- with a password ----

PASSWORD = "correct horse"


@pytest.fixture
def guarded(tmp_path: Path, start: Start) -> Served:
    (tmp_path / "data").mkdir(mode=0o700)
    set_password(KeyFile(tmp_path / "data"), PASSWORD)
    return start(host="0.0.0.0")


def test_without_logging_in_nothing_is_shown(guarded: Served) -> None:
    """Every request needs a cookie or a token, except login and health checks."""
    for path in ("/api/sessions", "/api/runs", "/api/events", "/metrics", "/openapi.json", "/docs", "/api/tokens"):
        answer = guarded.http.get(path)
        assert (answer.status_code, body_of(answer)["type"]) == (401, "unauthorized")
    assert guarded.http.post("/api/sessions", json={}).status_code == 401
    assert guarded.http.get("/healthz").status_code == 200
    assert guarded.http.get("/login").status_code == 200
    for path, back in (("/", "%2F"), ("/compare?chats=a,b", "%2Fcompare%3Fchats%3Da%2Cb")):
        page = guarded.http.get(path, headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, f"/login?next={back}")


def test_a_cookie_is_for_browsers_of_our_own_pages(guarded: Served) -> None:
    """After login every request works; scripts and other sites cannot use the cookie."""
    answer = guarded.http.post("/api/login", json={"password": PASSWORD})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert guarded.http.get("/api/sessions").status_code == 200
    assert guarded.http.post("/api/sessions", json={}).status_code == 201
    assert guarded.http.post("/api/sessions", json={}, headers={"Origin": EVIL}).status_code == 403
    guarded.http.post("/api/logout")
    assert guarded.http.get("/api/sessions").status_code == 401


@pytest.mark.parametrize("cookie", ["", "x", "a.b.c", "=", "\x01", "x" * 5000])
def test_a_forged_cookie_is_none(guarded: Served, cookie: str) -> None:
    """Only cookies signed by this server are accepted."""
    assert guarded.http.get("/api/sessions", headers={"Cookie": f"holdfast={cookie}"}).status_code in (400, 401)


def test_a_new_password_ends_every_login(guarded: Served) -> None:
    """The cookie depends on the password; the server notices the new one without a restart."""
    guarded.http.post("/api/login", json={"password": PASSWORD})
    set_password(KeyFile(guarded.data_dir), "another one")
    assert guarded.http.get("/api/sessions").status_code == 401
    assert guarded.http.post("/api/login", json={"password": PASSWORD}).status_code == 401
    assert guarded.http.post("/api/login", json={"password": "another one"}).status_code == 204


def guess(server: Served, password: str = "wrong horse") -> int:
    """The status, as a browser without cookies gets it."""
    with httpx.Client(base_url=server.url, verify=False, timeout=GUARD) as stranger:
        return stranger.post("/api/login", json={"password": password}).status_code


def test_guessing_is_slowed_down_and_the_right_password_is_taken(guarded: Served) -> None:
    """After a few wrong passwords the next waits, also the right one, which is never refused."""
    began = time.monotonic()
    assert [guess(guarded) for _ in range(6)] == [401] * 6
    assert guess(guarded, PASSWORD) == 204
    assert time.monotonic() - began >= 3.0
    assert "wrong password address='127.0.0.1'" in guarded.complaints


def test_a_proxy_may_add_a_header_line_of_its_own(start: Start) -> None:
    """Of several `X-Forwarded-For` lines the first is the client's claim."""
    server = start(password=PASSWORD, trusted_proxies=["127.0.0.1"])
    lines = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-For", "203.0.113.9")]
    assert (
        httpx.post(f"{server.url}/api/login", verify=False, json={"password": "wrong"}, headers=lines).status_code
        == 401
    )
    server.terminate()
    assert "wrong password address='203.0.113.9'" in server.complaints


def test_no_token_without_a_password(shared: Served) -> None:
    """A token would let whatever made it in an unguarded moment, such as a command, come back later."""
    refused = shared.post("/api/tokens", {"name": "laptop"}, 409)
    assert "no password" in refused["detail"]
    assert shared.get("/api/tokens")["items"] == []


def test_tokens_are_shown_once_and_kept_hashed(guarded: Served) -> None:
    """A token opens the API until it is revoked, and cannot be read back from anywhere."""
    guarded.http.post("/api/login", json={"password": PASSWORD})
    made = guarded.post("/api/tokens", {"name": "laptop"}, 201)
    bearer = {"Authorization": f"Bearer {made['token']}"}
    with httpx.Client(base_url=guarded.url, verify=False) as program:
        assert program.get("/api/sessions", headers=bearer).status_code == 200
        assert program.post("/api/sessions", headers={**bearer, "Origin": EVIL}, json={}).status_code == 201
        listed = guarded.get("/api/tokens")["items"]
        assert [(item["id"], item["name"]) for item in listed] == [(made["id"], "laptop")]
        assert made["token"] not in json.dumps(listed)
        assert made["token"] not in (guarded.data_dir / "keys.json").read_text()
        assert stat.S_IMODE((guarded.data_dir / "keys.json").stat().st_mode) == 0o600
        guarded.call("DELETE", f"/api/tokens/{made['id']}", expect=204)
        assert program.get("/api/sessions", headers=bearer).status_code == 401
    guarded.call("DELETE", f"/api/tokens/{made['id']}", expect=404)


def test_a_token_made_beside_the_server_works_at_once(guarded: Served) -> None:
    """`holdfast token` writes the file; the running server reads it again."""
    _, secret = issue_token(KeyFile(guarded.data_dir), "from the shell", 1.0)
    assert guarded.http.get("/api/runs", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert guarded.http.get("/api/runs", headers={"Authorization": "Bearer hf_wrong"}).status_code == 401
    assert guarded.http.get("/api/runs", headers={"Authorization": f"Basic {secret}"}).status_code == 401


def test_commands_on_this_machine_find_the_server(guarded: Served) -> None:
    """`server.json` has address and token, is for the owner alone, and goes with the server."""
    file = guarded.data_dir / "server.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told = json.loads(file.read_text())
    answer = httpx.get(
        f"{told['url']}/api/sessions", verify=False, headers={"Authorization": f"Bearer {told['token']}"}
    )
    assert answer.status_code == 200
    assert guarded.terminate() == 0
    assert not file.exists()


def test_with_a_password_a_proxy_may_be_in_front(guarded: Served) -> None:
    """Forwarded requests are accepted, and a cookie issued over https is only sent over https."""
    headers = {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "chat.example"}
    answer = guarded.http.post(
        "/api/login", json={"password": PASSWORD}, headers={**headers, "Origin": "https://chat.example"}
    )
    assert answer.status_code == 204
    assert "secure" in answer.headers["set-cookie"].lower()
