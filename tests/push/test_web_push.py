"""Sending to a real push service, and to what only pretends to be one."""

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.core.errors import InvalidInputError
from holdfast.core.ids import LOCAL, SubscriptionId
from holdfast.ports.keyring import DAY, ApiToken, Login
from holdfast.ports.push import PushResult
from holdfast.ports.store import PushSubscription
from holdfast.push.web_push import MAX_ENDPOINT, WebPush
from holdfast.storage.key_file import KeyFile
from holdfast.system import SystemClock
from holdfast.testing import FakeClock
from tests.push.service import Browser, PushServiceServer, verify_authorization

pytestmark = pytest.mark.anyio

CONTACT: Final = "mailto:admin@example.com"


def web_push(tmp_path: Path, *origins: str, **options: Any) -> WebPush:
    return WebPush(KeyFile(tmp_path), SystemClock(), CONTACT, 7 * DAY, origins, **options)


def subscription(endpoint: str, keys: dict[str, str]) -> PushSubscription:
    wants = (True, True, True, True)
    pid = SubscriptionId("push_1")
    return PushSubscription(pid, LOCAL, endpoint, keys["p256dh"], keys["auth"], "Phone", None, *wants, created_at=0.0)


async def send(sender: WebPush, told: dict[str, Any], payload: bytes = b"{}", tag: str = "run_1") -> PushResult:
    return await sender.send(subscription(told["endpoint"], told["keys"]), payload, tag=tag, ttl=3600.9)


async def test_a_message_is_what_push_services_expect(tmp_path: Path, push_service: PushServiceServer) -> None:
    """RFC 8030, 8188, 8291 and 8292: encrypted, signed, with a lifetime and a topic that a repeat has too."""
    sender, told = web_push(tmp_path, push_service.origin), push_service.subscribe()
    sender.check(told["endpoint"], told["keys"]["p256dh"], told["keys"]["auth"])
    for tag in ("run_1", "run_1", "run_2"):
        assert await send(sender, told, b'{"kind": "done"}', tag) == PushResult("sent")
    first, again, other = push_service.received
    assert first.content == {"kind": "done"}
    assert (first.headers["TTL"], first.headers["Content-Encoding"]) == ("3600", "aes128gcm")
    key, claims = verify_authorization(first.headers["Authorization"], push_service.origin)
    assert (key, claims["sub"]) == (await sender.public_key(), CONTACT)
    topics = [each.headers["Topic"] for each in (first, again, other)]
    assert topics[0] == topics[1] != topics[2]
    assert len(topics[0]) == 32
    assert len({each.body for each in push_service.received}) == 3  # salt and key are new each time


@pytest.mark.parametrize(
    ("age", "unused", "is_valid"),
    [(8 * DAY, 7 * DAY, True), (8 * DAY, 7 * DAY + 601, False), (30 * DAY + 1, 0.0, False)],
)
def test_an_expired_login_is_not_accepted(tmp_path: Path, age: float, unused: float, is_valid: bool) -> None:
    """Although it is still in the keyring; uses of the last minutes may not be saved yet."""
    clock, keys = FakeClock(), KeyFile(tmp_path)
    login = Login("login_1", "", "Phone", "::1", created_at=clock.now() - age, used_at=clock.now() - unused)
    keys.change(lambda ring: replace(ring, logins=(login,), tokens=(ApiToken("tok_1", "sync", "", 0.0),)))
    push = WebPush(keys, clock, CONTACT, 7 * DAY)
    assert [push.accepts_credential(each) for each in ("login_1", "tok_1", "login_2")] == [is_valid, True, False]


@pytest.mark.parametrize(
    ("status", "headers", "outcome", "retry_after"),
    [
        (201, {}, "sent", None),
        (202, {}, "sent", None),
        (404, {}, "gone", None),
        (410, {}, "gone", None),
        (400, {}, "refused", None),
        (403, {}, "refused", None),
        (413, {}, "refused", None),
        (302, {"Location": "http://127.0.0.1:1/"}, "refused", None),
        (429, {"Retry-After": "120"}, "retry", 120.0),
        (429, {"Retry-After": "99999999"}, "retry", 3600.0),
        (503, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, "retry", None),
        (500, {}, "retry", None),
    ],
)
async def test_an_answer_decides_what_happens_next(
    tmp_path: Path,
    push_service: PushServiceServer,
    status: int,
    headers: dict[str, str],
    outcome: str,
    retry_after: Any,
) -> None:
    """Redirects are not followed; how long a push service asks to wait is limited, and so is what it says."""
    push_service.answers = [(status, headers, "né\x00\n".encode() + b"x" * 5000)]
    result = await send(web_push(tmp_path, push_service.origin), push_service.subscribe())
    assert (result.outcome, result.retry_after) == (outcome, retry_after)
    assert len(push_service.received) == 1
    if outcome != "sent":
        assert str(status) in result.reason
        assert len(result.reason) < 300
        assert result.reason.isprintable()


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example/1",
        "http://127.0.0.1/1",
        "ftp://push.example/1",
        "https://user:password@push.example/1",
        "https://",
        "nothing",
        "https://push.example/" + "x" * MAX_ENDPOINT,
    ],
)
async def test_only_addresses_of_push_services_can_be_subscribed(tmp_path: Path, endpoint: str) -> None:
    """HTTPS, without a password, of a limited length."""
    keys = Browser("phone").keys()
    with pytest.raises(InvalidInputError, match="endpoint"):
        web_push(tmp_path).check(endpoint, keys["p256dh"], keys["auth"])


@pytest.mark.parametrize("broken", [{"p256dh": "AAAA"}, {"auth": "AAAA"}, {"p256dh": "é"}, {"auth": "!" * 22}])
async def test_keys_that_nothing_can_be_encrypted_with_are_refused(tmp_path: Path, broken: dict[str, str]) -> None:
    """Neither a point of the curve nor a secret of the right length: it is said when the browser subscribes."""
    keys = {**Browser("phone").keys(), **broken}
    with pytest.raises(InvalidInputError, match="keys"):
        web_push(tmp_path).check("https://push.example/1", keys["p256dh"], keys["auth"])


class Rebinding(AbstractResolver):
    """Every name stands for this machine."""

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        address = {"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0}
        return [ResolveResult(flags=socket.AI_NUMERICHOST, **address)]  # type: ignore[typeddict-item]

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("host", "resolver"),
    [
        ("127.0.0.1", None),
        ("[::1]", None),
        ("169.254.169.254", None),
        ("10.0.0.1", None),
        ("push.example", Rebinding()),
    ],
)
async def test_nothing_is_sent_to_private_addresses(
    tmp_path: Path, push_service: PushServiceServer, host: str, resolver: Any
) -> None:
    """Neither to one that is named nor to one that a name stands for: the guard is where sockets are made."""
    told = push_service.subscribe()
    port = push_service.origin.rpartition(":")[2]
    result = await send(
        web_push(tmp_path, resolver=resolver), {**told, "endpoint": f"https://{host}:{port}/push/phone"}
    )
    assert (result.outcome, push_service.received) == ("retry", [])
    assert "private addresses are blocked" in result.reason


async def test_an_origin_that_is_allowed_may_be_private_and_no_other(
    tmp_path: Path, push_service: PushServiceServer
) -> None:
    """`push_origins` names scheme, host and port."""
    told, sender = push_service.subscribe(), web_push(tmp_path, "http://127.0.0.1:1")
    assert (await send(sender, told)).outcome == "refused"
    assert push_service.received == []


async def test_a_service_that_does_not_answer_is_tried_again(tmp_path: Path) -> None:
    """After a limited time; one that is not there at once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = f"http://127.0.0.1:{silent.getsockname()[1]}"
        told = {"endpoint": f"{origin}/push", "keys": Browser("phone").keys()}
        result = await send(web_push(tmp_path, origin, seconds=0.05), told)
        assert (result.outcome, "0.05 seconds" in result.reason) == ("retry", True)
    result = await send(web_push(tmp_path, origin), told)
    assert (result.outcome, "not reached" in result.reason) == ("retry", True)
