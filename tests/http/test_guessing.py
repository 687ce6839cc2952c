"""Guessing the password of a real server: it is slowed down, and the right password is never refused. The pauses are
shorter than the real ones where a test waits for them, and endless where it must not."""

import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import anyio
import httpx
import pytest
from anyio import to_thread

from holdfast.server.authenticator import set_password
from holdfast.storage.key_file import KeyFile
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD

PASSWORD = "correct horse"
QUICK = (0.3, 0.02)
ENDLESS = (1e6, 1e6)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def serve(tmp_path: Path, start: Start) -> Start:
    (tmp_path / "data").mkdir(mode=0o700)
    set_password(KeyFile(tmp_path / "data"), PASSWORD)
    return lambda **settings: start(trusted_proxies=["127.0.0.1"], **settings)


async def attempt(server: Served, password: str = "wrong horse", address: str = "203.0.113.7") -> int:
    async with httpx.AsyncClient(base_url=server.url, verify=False, timeout=GUARD) as client:
        return await post(client, password, address)


async def post(client: httpx.AsyncClient, password: str, address: str) -> int:
    headers = {"X-Forwarded-For": address}
    return (await client.post("/api/login", json={"password": password}, headers=headers)).status_code


async def fail(server: Served, times: int = 6) -> None:
    """Until the address has its first pause."""
    for _ in range(times):
        assert await attempt(server) == 401


def send(server: Served, address: str = "203.0.113.7") -> socket.socket:
    """An attempt that nobody waits for yet."""
    line, body = socket.create_connection(server.address), json.dumps({"password": "wrong horse"})
    line.sendall(
        "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"X-Forwarded-For: {address}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return line


@asynccontextmanager
async def attack(server: Served, addresses: Iterator[str], attempts: int = 60) -> AsyncIterator[Counter[int]]:
    """Somebody who always has this many attempts under way. Yields what they were answered, when each has begun."""
    answers: Counter[int] = Counter()

    async def guess() -> None:
        async with httpx.AsyncClient(base_url=server.url, verify=False, timeout=GUARD) as client:
            while True:
                answers[await post(client, "wrong horse", next(addresses))] += 1

    async with anyio.create_task_group() as guesses:
        for _ in range(attempts):
            guesses.start_soon(guess)
        with anyio.fail_after(GUARD):
            while answers.total() < 10:
                await anyio.lowlevel.checkpoint()
        yield answers
        guesses.cancel_scope.cancel()


@pytest.mark.anyio
async def test_the_right_password_is_taken_while_others_guess(serve: Start) -> None:
    """The attacker has many addresses; nobody is told to come back later."""
    server = serve(pauses=QUICK)
    addresses = (f"198.51.{n // 250 % 250}.{n % 250}" for n in count())
    async with attack(server, addresses) as answers:
        for n in range(5):
            assert await attempt(server, PASSWORD, f"192.0.2.{n}") == 204
    assert set(answers) == {401}


@pytest.mark.anyio
async def test_the_right_password_is_taken_while_somebody_guesses_at_its_address(serve: Start) -> None:
    """The owner's attempt is one of sixty that always wait, and is checked in its turn."""
    server = serve(pauses=QUICK)
    async with attack(server, iter(lambda: "203.0.113.7", "")) as answers:
        assert await attempt(server, PASSWORD) == 204
    assert set(answers) == {401}


@pytest.mark.anyio
async def test_attempts_of_clients_that_hung_up_are_not_checked(serve: Start) -> None:
    """They keep no place and do not count: the next attempt waits for one pause, not for two hundred."""
    server = serve(pauses=(1.0, 1.0))
    await fail(server)
    for _ in range(200):
        send(server).close()
    assert await attempt(server, PASSWORD) == 204
    assert server.complaints.count("wrong password") <= 6 + 2


@pytest.mark.anyio
async def test_the_right_password_is_taken_while_attempts_are_dropped(serve: Start) -> None:
    """Somebody at the same address sends guesses all the time and hangs up."""
    server = serve(pauses=QUICK)
    await fail(server)

    async def hang_up() -> None:
        while True:
            await to_thread.run_sync(lambda: send(server).close())

    async with anyio.create_task_group() as others:
        for _ in range(5):
            others.start_soon(hang_up)
        assert await attempt(server, PASSWORD) == 204
        others.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_known_browser_does_not_wait_for_strangers(serve: Start) -> None:
    """A browser that has logged in before is a client of its own, whatever happens at its address."""
    server = serve(pauses=ENDLESS)
    assert server.http.post("/api/login", json={"password": PASSWORD}).status_code == 204
    server.http.post("/api/logout")
    for _ in range(6):
        assert await attempt(server, address="127.0.0.1") == 401
    assert server.http.post("/api/login", json={"password": PASSWORD}).status_code == 204


@pytest.mark.anyio
async def test_guessing_behind_a_proxy_slows_down_its_own_address(serve: Start) -> None:
    """Behind a trusted proxy each client has its own pace; claiming to be somebody else, or another address of the same
    IPv6 network, does not help."""
    server = serve(pauses=(0.3, 0.3))
    for claims in ([f"10.0.0.{n}, 203.0.113.7" for n in range(8)], [f"2001:db8::{n:x}" for n in range(8)]):
        began = time.monotonic()
        for claim in claims:
            assert await attempt(server, address=claim) == 401
        assert time.monotonic() - began >= 0.9
    assert await attempt(server, PASSWORD, "203.0.113.8") == 204
    assert "logged in address='203.0.113.8'" in server.complaints


@pytest.mark.anyio
async def test_a_server_stops_although_attempts_wait(serve: Start) -> None:
    """L2: attempts in their pause are told to come back, instead of being cut off with an error in the log."""
    server = serve(pauses=ENDLESS)
    await fail(server, 5)
    lines = [send(server) for _ in range(20)]
    await fail_elsewhere(server)
    began = time.monotonic()
    assert await to_thread.run_sync(server.terminate) == 0
    assert time.monotonic() - began < GUARD
    for line in lines:
        with line:
            response = line.recv(65536).lower()
            assert response.startswith(b"http/1.1 503 "), response
            assert b"retry-after: " in response
    assert "Traceback" not in server.complaints, server.complaints


async def fail_elsewhere(server: Served) -> None:
    """When this returns, the server has read what was sent before."""
    assert await attempt(server, address="192.0.2.1") == 401


@pytest.mark.anyio
async def test_a_server_full_of_guesses_serves_others(serve: Start) -> None:
    """Attempts that wait use all connections: whoever is logged in or has a token is served, a first attempt is
    checked, and a browser that is known logs in. Each takes the place of a guess."""
    server = serve(pauses=ENDLESS, files=240)
    assert server.http.post("/api/login", json={"password": PASSWORD}).status_code == 204
    cookies = server.http.cookies
    await fail(server)
    for _ in range(3):
        lines = [send(server) for _ in range(80)]
        assert await attempt(server, PASSWORD, "192.0.2.2") == 204
        async with httpx.AsyncClient(base_url=server.url, cookies=cookies, timeout=GUARD) as browser:
            assert (await browser.get("/api/sessions")).status_code == 200
            assert (await browser.post("/api/login", json={"password": PASSWORD})).status_code == 204
            cookies = browser.cookies
        assert await attempt(server, PASSWORD, "192.0.2.3") == 204
        for line in lines:
            line.close()


@pytest.mark.anyio
async def test_a_waiting_attempt_costs_little_memory(serve: Start) -> None:
    """An attempt costs its open connection; a thousand of them stay within some tens of megabytes."""
    server = serve(pauses=ENDLESS)
    await fail(server, 5)
    before = server.resident
    lines = [send(server) for _ in range(400)]
    await fail_elsewhere(server)
    assert (server.resident - before) / len(lines) < 100_000
    for line in lines:
        line.close()
    assert await attempt(server, PASSWORD, "192.0.2.2") == 204
