"""The fetch tool against real servers on loopback, which a test allows one by one; and attacks on its gate."""

import gzip
import socket
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address

import anyio
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.ports.tool import ToolResult
from holdfast.tools.fetch import html_to_text
from holdfast.tools.fetch.ssrf_guard import Address, is_public
from holdfast.tools.fetch.tool import FetchLimits, FetchTool, read_body
from tests.harness import GUARD
from tests.tools.conftest import Bench

pytestmark = pytest.mark.anyio

GOOD, BAD = ip_address("127.0.0.1"), ip_address("127.0.0.2")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A server, and what was asked of it."""

    port: int = 0
    asked: list[str] = field(default_factory=list)


@asynccontextmanager
async def site(answer: Handler, host: str = str(GOOD), port: int = 0) -> AsyncIterator[Site]:
    found = Site()

    async def handle(request: web.Request) -> web.StreamResponse:
        found.asked.append(f"{request.host}{request.path_qs}")
        return await answer(request)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0)  # type: ignore[arg-type]
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    found.port = runner.addresses[0][1]
    try:
        yield found
    finally:
        await runner.cleanup()


def answering(text: str | bytes, content_type: str = "text/plain", status: int = 200, **headers: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        data = text.encode() if isinstance(text, str) else text
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=data, status=status, headers={"Content-Type": content_type, **named})

    return answer


@dataclass
class Names(AbstractResolver):
    """A name service; the last answer for a name stays."""

    names: dict[str, list[Sequence[Address]]]
    asked: list[str] = field(default_factory=list)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self.names.get(host, [[]])
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if not found:
            raise OSError(f"{host} has no address")
        return [
            ResolveResult(hostname=host, host=str(address), port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in found
        ]

    async def close(self) -> None:
        pass


def fetcher(limits: FetchLimits | None = None, **names: Sequence[Address]) -> tuple[FetchTool, Names]:
    service = Names({name.replace("_", "."): [addresses] for name, addresses in names.items()})
    return FetchTool(lambda address: address == GOOD, limits or FetchLimits(seconds=GUARD), service), service


async def fetched(bench: Bench, answer: Handler, limits: FetchLimits | None = None) -> ToolResult:
    """What becomes of a page that is answered like this."""
    async with site(answer) as server:
        tool, _ = fetcher(limits, a_org=[GOOD])
        return await bench.run(tool, url=f"http://a.org:{server.port}/")


# ---- what it does ----


async def test_a_page_becomes_text(bench: Bench) -> None:
    """X5: title, words and links of a page, without its scripts."""
    page = "<title>A &amp; B</title><script>x()</script><h1>Hi</h1><p>See <a href='/more'>more</a>.</p>"
    async with site(answering(page, "text/html; charset=utf-8")) as server:
        tool, _ = fetcher(a_org=[GOOD])
        url = f"http://a.org:{server.port}/x?q=1#part"
        result = await bench.run(tool, url=url)
        assert result.content == (
            f"http://a.org:{server.port}/x?q=1 (status 200, text/html)\nTitle: A & B\n\n"
            f"# Hi\n\nSee more (http://a.org:{server.port}/more)."
        )
        assert server.asked == [f"a.org:{server.port}/x?q=1"]
        assert tool.scope({"url": url}) == "a.org"


async def test_json_and_text_come_as_they_are(bench: Bench) -> None:
    """X5: what is text already is not touched; the charset that the server names is used."""
    latin = await fetched(bench, answering("é".encode("latin-1"), "text/plain; charset=latin-1"))
    assert latin.content.endswith("\n\né")
    assert (await fetched(bench, answering('{"a": 1}', "application/json"))).content.endswith('{"a": 1}')


LARGE = b"x" * 20_000_000


@pytest.mark.parametrize(
    "answer",
    [
        answering(LARGE),
        answering(gzip.compress(LARGE), Content_Encoding="gzip"),
        answering(zlib.compress(LARGE), Content_Encoding="deflate"),
    ],
    ids=["plain", "gzip", "deflate"],
)
async def test_a_large_answer_is_cut(bench: Bench, answer: Handler) -> None:
    """L6: no answer takes more room than its limit, however small it was when packed."""
    result = await fetched(bench, answer, FetchLimits(seconds=GUARD, size=1000))
    assert "text/plain, truncated" in result.content
    assert result.content.count("x") < 1010


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answering(b"\x89PNG", "image/png"), "image/png"),
        (answering(b"\x89PNG", "application/octet-stream"), "application/octet-stream"),
        (answering(b"\x89PNG", "video/mp4"), "video/mp4"),
        (answering("no such page", status=404), "(status 404, text/plain)\n\nno such page"),
        (answering("no gzip", Content_Encoding="br"), "compress"),
        (answering("no gzip", Content_Encoding="gzip"), "compress"),
    ],
    ids=["image", "binary", "video", "error page", "brotli", "invalid gzip"],
)
async def test_what_cannot_be_read_is_an_error(bench: Bench, answer: Handler, words: str) -> None:
    """E1: the model is told what the page is instead; an error page keeps its status and its own words."""
    result = await fetched(bench, answer)
    assert result.is_error
    assert words in result.content


async def test_a_slow_server_is_given_up(bench: Bench) -> None:
    """E1: the whole call has one time limit, also if bytes trickle in."""
    given_up = anyio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"x")
        await given_up.wait()
        return response

    async with site(answer) as server:
        tool, _ = fetcher(FetchLimits(seconds=0.2), a_org=[GOOD])
        result = await bench.run(tool, url=f"http://a.org:{server.port}/")
        given_up.set()
    assert result.is_error
    assert "within 0.2 seconds" in result.content


async def test_a_server_that_is_not_there_is_told(bench: Bench) -> None:
    """E1: a refused connection is a result that the model can act on."""
    async with site(answering("x")) as server:
        port = server.port
    tool, _ = fetcher(a_org=[GOOD])
    result = await bench.run(tool, url=f"http://a.org:{port}/")
    assert result.is_error
    assert "could not be fetched" in result.content


# ---- redirects ----


def redirecting(to: Callable[[web.Request], str], status: int = 302) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/end":
            return web.Response(text="arrived")
        return web.Response(status=status, headers={"Location": to(request)})

    return answer


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_within_the_site_is_followed(bench: Bench, status: int) -> None:
    """X5: relative and absolute targets, and between a name and its www form."""
    async with site(redirecting(lambda request: f"http://www.a.org:{request.url.port}/end", status)) as server:
        tool, names = fetcher(a_org=[GOOD], www_a_org=[GOOD])
        assert (await bench.run(tool, url=f"http://a.org:{server.port}/")).content.endswith("arrived")
        assert names.asked == ["a.org", "www.a.org"]


async def test_a_redirect_to_another_host_is_told_and_not_followed(bench: Bench) -> None:
    """X5: a person allowed one host; another one is another call, which asks by itself."""
    async with site(redirecting(lambda request: f"http://b.org:{request.url.port}/end")) as server:
        tool, names = fetcher(a_org=[GOOD], b_org=[GOOD])
        result = await bench.run(tool, url=f"http://a.org:{server.port}/")
        assert f"has moved to http://b.org:{server.port}/end" in result.content
        assert len(server.asked) == 1
        assert names.asked == ["a.org"]


async def test_redirects_are_counted(bench: Bench) -> None:
    """L6: a loop ends."""
    async with site(redirecting(lambda request: "/again")) as server:
        tool, _ = fetcher(FetchLimits(seconds=GUARD, redirects=3), a_org=[GOOD])
        result = await bench.run(tool, url=f"http://a.org:{server.port}/")
        assert "more than 3 times" in result.content
        assert len(server.asked) == 4


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://a.org/x", "gopher://a.org/x", "http://me:pw@a.org/"])
async def test_a_redirect_to_another_kind_of_address_is_refused(bench: Bench, target: str) -> None:
    """X5: what could not be asked for cannot be reached by a redirect either."""
    assert (await fetched(bench, redirecting(lambda request: target))).is_error


# ---- attacks on the gate ----


async def test_a_name_that_leads_inside_is_refused(bench: Bench) -> None:
    """X5: nothing is sent to an address that is not allowed, whatever its name."""
    async with site(answering("inside"), str(BAD)) as inner:
        tool, _ = fetcher(evil_org=[BAD])
        result = await bench.run(tool, url=f"http://evil.org:{inner.port}/")
        assert result.is_error
        assert "public internet" in result.content
        assert inner.asked == []


@pytest.mark.parametrize(
    "host", ["127.0.0.2", "[::1]", "[::ffff:127.0.0.2]", "2130706434", "0x7f000002", "127.2", "0177.0.0.2", "localhost"]
)
async def test_an_address_in_the_url_is_judged_too(bench: Bench, host: str) -> None:
    """X5: also where the HTTP client would not resolve anything, and in odd spellings."""
    async with site(answering("inside"), str(BAD)) as inner:
        service = Names({"localhost": [[BAD]], "2130706434": [[BAD]], "127.2": [[BAD]], "0x7f000002": [[BAD]]})
        tool = FetchTool(lambda address: address == GOOD, FetchLimits(seconds=GUARD), service)
        result = await bench.run(tool, url=f"http://{host}:{inner.port}/")
        assert result.is_error
        assert str(BAD) not in str(result.content).replace(host, "")
        assert inner.asked == []


async def test_a_name_that_changes_its_answer_gains_nothing(bench: Bench) -> None:
    """X5: DNS rebinding: the name is asked for once per connection, and that answer is the one connected to."""
    async with site(answering("outside")) as outer, site(answering("inside"), str(BAD), outer.port) as inner:
        tool, service = fetcher(evil_org=[GOOD])
        service.names["evil.org"].append([BAD])
        assert (await bench.run(tool, url=f"http://evil.org:{outer.port}/")).content.endswith("outside")
        assert service.asked == ["evil.org"]
        assert (await bench.run(tool, url=f"http://evil.org:{outer.port}/")).is_error
        assert inner.asked == []


async def test_of_several_addresses_only_allowed_ones_are_tried(bench: Bench) -> None:
    """X5: a name with an outer and an inner address is reached by the outer one alone."""
    async with site(answering("outside")) as outer, site(answering("inside"), str(BAD), outer.port) as inner:
        tool, _ = fetcher(mixed_org=[BAD, GOOD, BAD])
        assert (await bench.run(tool, url=f"http://mixed.org:{outer.port}/")).content.endswith("outside")
        assert inner.asked == []


async def test_a_redirect_inside_the_same_name_is_judged_again(bench: Bench) -> None:
    """X5: after a redirect the name is looked up and judged anew."""
    async with (
        site(redirecting(lambda request: "/next")) as outer,
        site(answering("inside"), str(BAD), outer.port) as inner,
    ):
        tool, service = fetcher(evil_org=[GOOD])
        service.names["evil.org"].append([BAD])
        assert (await bench.run(tool, url=f"http://evil.org:{outer.port}/")).is_error
        assert inner.asked == []


async def test_by_default_loopback_is_not_public(bench: Bench) -> None:
    """X5: the tool as it is built for people does not reach the machine it runs on."""
    async with site(answering("inside")) as server:
        result = await bench.run(FetchTool(), url=f"http://127.0.0.1:{server.port}/")
        assert result.is_error
        assert (await bench.run(FetchTool(), url=f"http://localhost:{server.port}/")).is_error
        assert server.asked == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "a.org", "http://", "http://me:pw@a.org/", "http://[::1", "data:,x"]
)
async def test_only_plain_web_addresses_are_taken(bench: Bench, url: str) -> None:
    """E1: anything else is told as wrong before anything is resolved."""
    tool, names = fetcher()
    assert (await bench.run(tool, url=url)).is_error
    assert names.asked == []
    assert isinstance(tool.scope({"url": url}), str)


PRIVATE = """
    0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1
    192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
    2002:7f00:1:: 2002:a00:1:: 2001:0:1::1 2001:db8::1 3fff::1 fc00::1 fd00::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1
    100::1 5f00::1
"""
PUBLIC = """
    1.1.1.1 8.8.8.8 172.32.0.1 100.128.0.1 2606:4700::1111 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::808:808
    2002:808:808::
"""


@pytest.mark.parametrize("text", PRIVATE.split())
def test_private_and_special_addresses_are_not_public(text: str) -> None:
    """X5: private, loopback, link-local, multicast, reserved, carrier's, and any of them inside another."""
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC.split())
def test_public_addresses_are_public(text: str) -> None:
    """X5: the rest of the internet can be reached."""
    assert is_public(ip_address(text))


# ---- HTML ----


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>one</p><p>two\n  words</p>", "one\n\ntwo words"),
        ("a<br>b", "a\nb"),
        ("<ul><li>x<li>y</ul>", "- x\n- y"),
        ("<h2>T</h2>text", "## T\n\ntext"),
        ("<pre>a\n   b</pre>", "a\n   b"),
        ("x<style>p{}</style><script>if (a<b) c()</script>y", "xy"),
        ("<a href='#x'>here</a> <a href='javascript:x()'>run</a>", "here run"),
        ("<a href='http://a.org/'>http://a.org/</a>", "http://a.org/"),
        ("<img alt='a cat' src=x>", "[image: a cat]"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "1\t2\n\t3"),
        ("&lt;b&gt; &amp; &#233;", "<b> & é"),
        ("<p>never closed", "never closed"),
        ("</p></script><p>odd", "odd"),
        ("a<!-- <p> -->b<!-->c<!doctype html>d<?x?>e", "abcde"),
        ("1 < 2 <3 <a", "1 < 2 <3"),
        ("<a href=/x>one<a href='/y' title='>'>two</a></a> three", "one (/x)two (/y) three"),
        ("<img alt=a&amp;b title=x/><img alt>", "[image: a&b]"),
        ("<TextArea><p>raw &amp; text</TEXTAREA>", "<p>raw & text"),
        ("x<svg/>y<svg><title>no</title>z</svg>", "xy"),
        ("&#" + "9" * 5000, "\ufffd" + "9" * 4993),
        ("", ""),
    ],
)
def test_html_is_read(source: str, text: str) -> None:
    """X5: structure becomes plain marks, and broken pages are read as far as they go."""
    assert html_to_text.to_text(source)[1] == text


HOSTILE = (
    "<a ",
    "<a href=x>y",
    "<a href=x>",
    "<b c='",
    "<!--",
    "<script>",
    "<title>",
    "&#1",
    " ",
    " x",
    "\n ",
    "<",
    "</",
)


@pytest.mark.parametrize("size", [400_000, pytest.param(3_000_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("fragment", HOSTILE)
def test_a_hostile_page_is_read_in_linear_time(fragment: str, size: int) -> None:
    """X5: a page that repeats what parsers try again at each position takes seconds at most, not hours."""
    began = time.thread_time()
    html_to_text.to_text(fragment * (size // len(fragment)), "http://a.org/" + "b/" * 900)
    assert time.thread_time() - began < size / 200_000


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.sampled_from([*HOSTILE, "<p>", "</a>", "=", "'", '"', ">", "-->", "</title", "/"]), min_size=1, max_size=6
    )
)
def test_time_grows_no_faster_than_the_page(fragments: list[str]) -> None:
    """X5: a page that is eight times as long takes at most some eight times as long, whatever it repeats."""

    def seconds(size: int) -> float:
        page = "".join(fragments)
        page *= size // len(page)
        began = time.thread_time()
        html_to_text.to_text(page, "http://a.org/")
        return time.thread_time() - began

    assert seconds(80_000) < 30 * max(seconds(10_000), 0.01)


@pytest.mark.parametrize("charset", ["punycode", "unicode_escape", "zlib", "nonsense", "utf-7"])
async def test_an_odd_charset_costs_nothing(bench: Bench, charset: str) -> None:
    """X5: a page may name any encoding, also one that decodes in quadratic time."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"a" * 2_500_000, headers={"Content-Type": f"text/plain; charset={charset}"})

    async with site(answer) as found:
        began = time.process_time()
        result = await bench.run(FetchTool(lambda _: True), url=f"http://127.0.0.1:{found.port}/")
    assert "aaaa" in result.content
    assert time.process_time() - began < 15


async def test_what_unpacks_to_gigabytes_takes_no_room() -> None:
    """L6: a packed answer is unpacked only as far as it is kept."""

    async def chunks() -> AsyncIterator[bytes]:
        yield bomb

    bomb = gzip.compress(bytes(30_000_000), 1)
    tracemalloc.start()
    try:
        data, cut = await read_body(chunks(), "gzip", 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(data), cut) == (10_000, True)
    assert peak < 5_000_000
