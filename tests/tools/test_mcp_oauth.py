"""Signing in to an MCP server behind OAuth, with a real authorization server: registration, PKCE, refresh."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest
from anyio import to_thread

from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.tool_admin import oauth_secrets
from holdfast.core.errors import StorageUnavailableError
from holdfast.ports.keyring import Keyring
from holdfast.ports.tool import ToolError
from holdfast.storage.key_file import KeyFile
from holdfast.tools.mcp.http_client import guarded_client
from holdfast.tools.mcp.oauth import OAuthSecrets
from holdfast.tools.mcp.server_config import HttpServer
from tests.harness import GUARD, running
from tests.tools.conftest import Bench
from tests.tools.test_mcp import address, connected, listening

pytestmark = pytest.mark.anyio

PROGRAM = str(Path(__file__).with_name("oauth_mcp_server.py"))
CALLBACK = "http://127.0.0.1:8484/api/mcp/callback"


@contextmanager
def private_server(log: Path) -> Iterator[str]:
    """The URL of a server that wants a token."""
    with listening() as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        process = subprocess.Popen([sys.executable, PROGRAM, str(log), str(fd), str(port)], pass_fds=[fd])
        try:
            yield address(listener)
        finally:
            process.kill()
            process.wait(GUARD)


def consent(authorization_url: str) -> dict[str, str]:
    """What the authorization server sends the person's browser back with."""
    answer = httpx.get(authorization_url, timeout=GUARD)
    assert answer.status_code == 302, answer.text
    back = urlsplit(answer.headers["location"])
    assert answer.headers["location"].startswith(CALLBACK)
    return {name: values[0] for name, values in parse_qs(back.query).items()}


class Memory:
    """The key file's entry."""

    def __init__(self) -> None:
        self.text: str | None = None

    async def write(self, text: str) -> None:
        self.text = text

    def server(self, url: str) -> HttpServer:
        return HttpServer("private", url, oauth=OAuthSecrets(url, lambda: self.text, self.write))


async def test_a_person_signs_in_once_and_tokens_are_refreshed(bench: Bench, tmp_path: Path) -> None:
    """DESIGN §9: without tokens the server says what to do; state counts once and no other is taken; a new process goes
    on with the stored tokens, refreshes expired ones, and sends them to no other address."""
    log, memory = tmp_path / "log", Memory()
    with private_server(log) as url:
        async with connected(memory.server(url)) as servers:
            with pytest.raises(ToolError, match="Press Connect"):
                await servers.list_tools("private")
            with anyio.fail_after(2 * GUARD):
                page = await servers.start_sign_in("private", CALLBACK)
                assert parse_qs(urlsplit(page).query)["code_challenge_method"] == ["S256"]
                back = await to_thread.run_sync(consent, page)
                with pytest.raises(ToolError, match="unknown"):
                    await servers.finish_sign_in("forged", back["code"], None, None)
                assert await servers.finish_sign_in(back["state"], back["code"], back.get("iss"), None) == "private"
                with pytest.raises(ToolError, match="unknown"):
                    await servers.finish_sign_in(back["state"], back["code"], None, None)
                tools = {tool.spec.name: tool for tool in await servers.list_tools("private")}
            assert (await bench.run(tools["private__secret"])).content == "the harbour master's birthday"
            with anyio.fail_after(GUARD), pytest.raises(ToolError, match="connected already"):
                await servers.start_sign_in("private", CALLBACK)
        assert memory.text is not None
        memory.text = json.dumps({**json.loads(memory.text), "expires_at": 1.0})
        async with connected(memory.server(url)) as servers:
            with anyio.fail_after(GUARD):
                assert await servers.list_tools("private")
        assert json.loads(memory.text)["expires_at"] > 1.0
        assert log.read_text().splitlines() == ["registered Holdfast", "authorization_code", "refresh_token"]
        assert not memory.server(url + "/other").oauth.has_tokens  # type: ignore[union-attr]


async def test_a_person_who_refuses_gets_no_tokens(tmp_path: Path) -> None:
    """DESIGN §9: an error of the authorization server is told, and nothing is stored."""
    memory = Memory()
    with private_server(tmp_path / "log") as url:
        async with connected(memory.server(url)) as servers:
            with anyio.fail_after(2 * GUARD):
                page = await servers.start_sign_in("private", CALLBACK)
                (state,) = parse_qs(urlsplit(page).query)["state"]
                with pytest.raises(ToolError, match="access_denied"):
                    await servers.finish_sign_in(state, None, None, "access_denied")
    assert "tokens" not in json.loads(memory.text or "{}")


async def test_a_server_without_oauth_cannot_be_signed_in_to(tmp_path: Path) -> None:
    """DESIGN §9: a token that somebody set goes before OAuth, and an address that answers nothing says so."""
    memory = Memory()
    with_token = HttpServer(
        "t", "http://127.0.0.1:1/mcp", {"authorization": "Bearer x"}, oauth=memory.server("x").oauth
    )
    async with connected(with_token, memory.server("http://127.0.0.1:1/mcp")) as servers:
        for name in ("t", "private"):
            with anyio.fail_after(GUARD), pytest.raises(ToolError):
                await servers.start_sign_in(name, CALLBACK)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_server_on_the_internet_cannot_name_local_addresses(host: str) -> None:
    """DESIGN §9: what a remote server says about its authorization makes no request to this machine or its network."""
    with listening() as listener:
        port = listener.getsockname()[1]
        async with guarded_client("https://mcp.example.com/mcp", timeout=GUARD, trust_env=False) as client:
            with pytest.raises(ToolError, match="not on the public internet"):
                await client.get(f"http://{host}:{port}/.well-known/oauth-authorization-server")
        line, _ = listener.accept()
        with line:
            line.settimeout(GUARD)
            assert line.recv(1) == b"", "nothing was sent"


class AbsentKeys(KeyFile):
    """A keyring that cannot be changed at first, as one in a database that is away."""

    attempts = 0

    def change(self, work: Callable[[Keyring], Keyring]) -> Keyring:
        self.attempts += 1
        if self.attempts < 3:
            raise StorageUnavailableError("It does not answer.")
        return super().change(work)


async def test_refreshed_tokens_are_not_lost_with_a_short_outage(tmp_path: Path) -> None:
    """The server has replaced the old ones: what cannot be stored at once is stored when storage is back."""
    keys, engine = AbsentKeys(tmp_path), EngineProxy()
    secrets = oauth_secrets(HttpServer("private", "https://mcp.example/"), keys, engine)
    async with running(storage_retry_time=20.0) as it:
        engine.engine = it.engine
        await secrets.write(json.dumps({"url": "https://mcp.example/", "tokens": {"access_token": "a"}}))
    assert keys.attempts == 3
    assert secrets.has_tokens
