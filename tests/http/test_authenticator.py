"""The lifetime of a login, and the address of a client."""

import tempfile
from ipaddress import ip_address, ip_network
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import LOGIN_IDLE_DAYS
from holdfast.core.errors import DrainingError, NotAllowedError, ReauthenticationRequiredError
from holdfast.ports.keyring import DAY, LOGIN_DAYS, Keyring
from holdfast.push.web_push import WebPush
from holdfast.server.authenticator import (
    BROWSER_COOKIE,
    COOKIE,
    Authenticator,
    issue_token,
    record_configured_password,
    set_password,
)
from holdfast.server.client_address import client_address, device_name, network_of
from holdfast.server.password_checks import PasswordChecks
from holdfast.storage.key_file import KeyFile
from holdfast.testing import FakeClock


async def logged_in(authenticator: Authenticator, cookie: str) -> bool:
    _, credentials = await authenticator.authenticate({"cookie": f"{COOKIE}={cookie}"}, secure=False)
    return credentials.login is not None


@pytest.mark.anyio
async def test_a_login_at_a_node_whose_clock_is_ahead_is_valid_everywhere(tmp_path: Path) -> None:
    """L7: the clocks of nodes differ by seconds; every node accepts the logins of the others."""
    clock, late = FakeClock(), FakeClock()
    late.advance(-20.0)
    one, other = (Authenticator(KeyFile(tmp_path), each, password="correct horse") for each in (clock, late))
    for issuer, reader in ((one, other), (other, one)):
        assert await logged_in(reader, await issuer.log_in("Firefox", "::1"))


@pytest.mark.parametrize(("seconds", "counts"), [(DAY, True), (LOGIN_IDLE_DAYS * DAY + 1, False), (-DAY, False)])
@pytest.mark.anyio
async def test_a_login_ends_when_it_is_not_used(tmp_path: Path, seconds: float, counts: bool) -> None:
    """An idle login expires, and one from a clock that was far ahead is not accepted."""
    clock = FakeClock()
    authenticator = Authenticator(KeyFile(tmp_path), clock, password="correct horse")
    cookie = await authenticator.log_in("Firefox", "::1")
    clock.advance(seconds)
    assert await logged_in(authenticator, cookie) == counts


@pytest.mark.anyio
async def test_a_login_that_is_used_lasts_for_its_days(tmp_path: Path) -> None:
    """Its use is saved for other processes and the next start, in few writes; after a month it ends all the same."""
    clock, keys = FakeClock(), KeyFile(tmp_path)
    authenticator = Authenticator(keys, clock, password="correct horse")
    cookie = await authenticator.log_in("Firefox", "::1")
    before = (tmp_path / "keys.json").stat().st_ino
    for _ in range(3):
        clock.advance(60.0)
        assert await logged_in(authenticator, cookie)
        await authenticator.save_uses()
    assert (tmp_path / "keys.json").stat().st_ino == before
    for _ in range(LOGIN_DAYS - 1):
        clock.advance(DAY)
        assert await logged_in(authenticator, cookie)
        await authenticator.save_uses()
        assert [login.used_at for login in keys.read().logins] == [clock.now()]
    assert await logged_in(Authenticator(keys, clock, password="correct horse"), cookie)
    clock.advance(DAY)
    assert not await logged_in(authenticator, cookie)


@pytest.mark.anyio
async def test_a_login_that_has_expired_is_removed(tmp_path: Path) -> None:
    """Also if no other one is left: its device is not notified any more."""
    clock, keys = FakeClock(), KeyFile(tmp_path)
    authenticator = Authenticator(keys, clock, password="correct horse", idle_days=1.0)
    await authenticator.log_in("Firefox", "::1")
    (login,) = keys.read().logins
    push = WebPush(keys, clock, "mailto:me@example.org", login_idle=DAY)
    assert push.accepts_credential(login.id)
    clock.advance(DAY + 1)
    await authenticator.save_uses()
    assert keys.read().logins == ()
    assert not push.accepts_credential(login.id)


@pytest.mark.anyio
async def test_the_number_of_logins_is_limited(tmp_path: Path) -> None:
    """The one that was not used for the longest time makes room for another."""
    clock, keys = FakeClock(), KeyFile(tmp_path)
    authenticator = Authenticator(keys, clock, password="correct horse")
    cookies = []
    for _ in range(101):
        clock.advance(1.0)
        cookies.append(await authenticator.log_in("Firefox", "::1"))
    assert len(keys.read().logins) == 100
    assert [await logged_in(authenticator, cookie) for cookie in cookies[:2]] == [False, True]


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "6.6.6.6, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "6.6.6.6, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("::ffff:127.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
        ("127.0.0.1", "203.0.113.7:5678", "203.0.113.7"),
        ("127.0.0.1", "nonsense", "127.0.0.1"),
        ("127.0.0.1", "6.6.6.6, nonsense", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("203.0.113.9", "6.6.6.6", "203.0.113.9"),
        ("127.0.0.1", ", ".join(["10.0.0.1"] * 5000), "10.0.0.1"),
        (None, "6.6.6.6", "local"),
    ],
)
@pytest.mark.anyio
async def test_an_address_is_believed_from_trusted_proxies_only(peer: str | None, forwarded: str, found: str) -> None:
    """Each proxy adds the address that it saw; what comes before the last stranger is a claim of that stranger."""
    trusted = (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"))
    assert client_address(peer, forwarded, trusted) == found
    assert client_address(peer, forwarded, ()) == (peer or "local")


class CountedKeys(KeyFile):
    """A keyring that counts how often it is read."""

    reads = 0

    def read(self) -> Keyring:
        self.reads += 1
        return super().read()


@pytest.mark.anyio
async def test_a_request_reads_the_keyring_once(tmp_path: Path) -> None:
    """Each read asks the file system, on the event loop."""
    keys = CountedKeys(tmp_path)
    authenticator = Authenticator(keys, FakeClock())
    cookie = await authenticator.log_in("Firefox", "::1")
    keys.reads = 0
    await authenticator.authenticate({"cookie": f"{COOKIE}={cookie}", "authorization": "Bearer x"}, secure=False)
    assert keys.reads == 1


HEADER = st.text(st.characters(max_codepoint=255), max_size=300)
ADDRESSES = st.lists(st.one_of(st.ip_addresses().map(str), HEADER, st.just("[::1%junk]:1")), max_size=15).map(",".join)


@given(cookie=st.one_of(HEADER, HEADER.map(lambda text: f"{COOKIE}={text}")), token=HEADER, secure=st.booleans())
def test_no_cookie_and_no_token_breaks_the_check(cookie: str, token: str, secure: bool) -> None:
    """Whatever a client sends before it has logged in, it is nobody, and the answer is not an error."""

    async def check() -> None:
        with tempfile.TemporaryDirectory() as directory:
            authenticator = Authenticator(KeyFile(Path(directory)), FakeClock(), "the token")
            headers = {"cookie": cookie, "authorization": f"Bearer {token}"}
            _, credentials = await authenticator.authenticate(headers, secure=secure)
            assert (credentials.login, credentials.token) == (None, None)
            assert authenticator.find_browser(headers, secure=secure) is None

    anyio.run(check)


@given(forwarded=ADDRESSES, user_agent=HEADER)
def test_an_address_is_always_one(forwarded: str, user_agent: str) -> None:
    """Whatever `X-Forwarded-For` says, the address that is logged and paced is one, and so is the device's name."""
    found = client_address("10.0.0.1", forwarded, (ip_network("0.0.0.0/0"), ip_network("::/0")))
    assert str(ip_address(found)) == found
    assert network_of(found)
    assert device_name(user_agent).isprintable()


@pytest.mark.anyio
async def test_nothing_slips_in_while_the_password_is_changed(tmp_path: Path) -> None:
    """Neither another change nor a login whose old password was checked just before, nor a token of an ended login."""
    keys, clock = KeyFile(tmp_path), FakeClock()
    set_password(keys, "correct horse")
    authenticator = Authenticator(keys, clock)
    verified = keys.read().password
    await authenticator.log_in("Firefox", "::1", None, verified)
    (login,) = keys.read().logins
    issue_token(keys, "before", clock.now(), login.id)
    changed = await authenticator.change_password("battery staple", verified)
    with pytest.raises(NotAllowedError):
        await authenticator.change_password("correct horse", verified)
    assert changed == keys.read().password
    with pytest.raises(NotAllowedError):
        await authenticator.log_in("Firefox", "::1", None, verified)
    with pytest.raises(ReauthenticationRequiredError):
        issue_token(keys, "after", clock.now(), login.id)
    assert (keys.read().logins, keys.read().tokens) == ((), ())


@pytest.mark.anyio
async def test_a_new_password_ends_links_and_known_browsers(tmp_path: Path) -> None:
    """Whoever was let in by the old password is a stranger after that, whatever they have kept."""
    keys, clock = KeyFile(tmp_path), FakeClock()
    record_configured_password(keys, "correct horse")
    authenticator = Authenticator(keys, clock, password="correct horse")
    browser, link, used = authenticator.new_browser(), authenticator.new_login_link(), authenticator.new_login_link()
    cookie = {"cookie": f"{BROWSER_COOKIE}={browser}"}
    assert authenticator.find_browser(cookie, secure=False) is not None
    assert authenticator.accepts_link(used)
    record_configured_password(keys, "battery staple")
    assert authenticator.find_browser(cookie, secure=False) is None
    assert not authenticator.accepts_link(link)


@pytest.mark.anyio
async def test_links_end_with_all_logins(tmp_path: Path) -> None:
    """*Log out everywhere* ends a link that has not been used."""
    authenticator = Authenticator(KeyFile(tmp_path), FakeClock(), password="correct horse")
    link = authenticator.new_login_link()
    authenticator.end_login_links()
    assert not authenticator.accepts_link(link)


@pytest.mark.anyio
async def test_a_check_that_is_cut_off_does_not_call_the_password_wrong() -> None:
    """A server that is cancelled in the middle of a check says that it stops."""
    begun = anyio.Event()

    async def verify(password: str) -> str | None:
        begun.set()
        await anyio.sleep_forever()
        return None

    checks, answers = PasswordChecks(verify), list[object]()

    async def ask() -> None:
        try:
            answers.append(await checks.check("somebody", "correct horse"))
        except DrainingError as error:
            answers.append(error)

    async with anyio.create_task_group() as clients, anyio.create_task_group() as server:
        server.start_soon(checks.run, anyio.sleep_forever)
        clients.start_soon(ask)
        await begun.wait()
        server.cancel_scope.cancel()
    assert [type(answer) for answer in answers] == [DrainingError]
