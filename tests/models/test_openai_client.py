"""The client of OpenAI's chat format: closing, retrying, and what it sends."""

import base64
import logging
import os
import socket
import sys
import traceback
from contextlib import closing

import anyio
import pytest

from holdfast.core.events import TextDelta
from holdfast.models.openai_client import OpenAIModel
from holdfast.ports.model import Media, ModelRequest, UserMessage
from tests.models.asking import HELLO, KEY, Naps, client, client_at, outcome
from tests.upstream import GUARD, Chunk, End, Forever, Hang, Head, PauseAt, Raw, answers, delta, says, sse, upstream

pytestmark = pytest.mark.anyio
BEGUN = [Head(), *sse(delta(content="Half"))]


@pytest.mark.parametrize("script", [[Hang()], [Head(), Hang()], [Head(), Chunk(b": wait\n\n"), Hang()]])
async def test_cancel_before_the_first_delta_closes_the_upstream(script: list[Head | Hang | Chunk]) -> None:
    """C7: a model that has not said a word yet is let go of in mid-await."""
    async with upstream(script) as up, client(up) as model, anyio.create_task_group() as group:

        async def ask() -> None:
            async with model.stream(HELLO) as answer:
                async for _ in answer:
                    raise AssertionError("nothing was said")

        group.start_soon(ask)
        await up.asked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await up.closed()


@pytest.mark.parametrize("cancel", [True, False])
async def test_leaving_in_mid_stream_closes_the_upstream(cancel: bool) -> None:
    """C7: neither a cancel nor a reader that has enough waits for the next chunk."""
    async with upstream([*BEGUN, Hang()]) as up, client(up) as model:
        with anyio.CancelScope() as scope:
            async with model.stream(HELLO) as answer:
                async for deltas in answer:
                    assert deltas == [TextDelta("Half")]
                    if not cancel:
                        break
                    scope.cancel()
        await up.closed()


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})])
@pytest.mark.parametrize("flood", [b": still here\n\n", b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'])
async def test_cancel_reaches_a_reader_in_a_flood(flood: bytes) -> None:
    """C7: an upstream that sends faster than it is read leaves the reader no moment to wait in, and is closed too."""
    begun = anyio.Event()

    async def read(model: OpenAIModel) -> None:
        async with model.stream(HELLO) as answer:
            async for _ in answer:
                begun.set()

    async with upstream([*BEGUN, Forever(Chunk(flood))]) as up, client(up) as model:
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as group:
                group.start_soon(read, model)
                await begun.wait()
                group.cancel_scope.cancel()
        await up.closed()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc and at Linux' accept queue")
async def test_cancel_while_connecting_lets_go_of_the_socket() -> None:
    """C7: a server that does not even accept is let go of too."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with closing(socket.socket()) as first, closing(socket.socket()) as second:
            for filler in (first, second):  # the queue is full: further connections hang
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            before = len(os.listdir("/proc/self/fd"))
            async with client_at(f"http://127.0.0.1:{listener.getsockname()[1]}/v1") as model:
                with anyio.move_on_after(0.2) as scope:
                    async with model.stream(HELLO):
                        raise AssertionError("nobody answers")
                assert scope.cancelled_caught
            with anyio.fail_after(GUARD):
                while len(os.listdir("/proc/self/fd")) > before:
                    await anyio.lowlevel.checkpoint()


async def test_cancel_while_waiting_for_another_attempt() -> None:
    """C7: the wait between two attempts is an await like any other."""
    waiting = anyio.Event()

    async def nap(seconds: float) -> None:
        waiting.set()
        await anyio.sleep_forever()

    async with upstream(answers(503, b"")) as up, client(up, sleep=nap) as model, anyio.create_task_group() as group:
        group.start_soon(outcome, model)
        with anyio.fail_after(GUARD):
            await waiting.wait()
        group.cancel_scope.cancel()
    assert len(up.exchanges) == 1


async def test_nothing_is_asked_again_after_the_first_delta() -> None:
    """A retry after a delta would say things twice."""
    broken = [*BEGUN, *sse({"error": {"message": "overloaded"}}), End()]
    async with upstream(broken, says("again")) as up, client(up) as model:
        got = await outcome(model)
    assert (got.text, len(up.exchanges)) == ("Half", 1)
    assert got.code == "unavailable"


async def test_deltas_arrive_when_they_are_sent() -> None:
    """A delta is given out while the upstream holds back the next."""
    script = [*BEGUN, PauseAt("half"), *sse(delta(content=" and half", finish="stop")), End()]
    async with upstream(script) as up, client(up) as model, model.stream(HELLO) as answer:
        seen = []
        with anyio.fail_after(GUARD):
            async for deltas in answer:
                seen.append(list(deltas))
                up.gate("half").open.set()
    assert seen == [[TextDelta("Half")], [TextDelta(" and half")]]


async def test_the_connection_is_used_again() -> None:
    """A complete answer leaves a connection behind that the next request takes."""
    last = sse(delta(content="Hi", finish="stop"), "[DONE]")[-1]
    assert isinstance(last, Chunk)
    end = Raw(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last.data), last.data))  # in one write, so that both arrive together
    first = [Head(), *sse(delta(content="One", finish="stop")), end]
    async with upstream(first, says("Two")) as up, client(up) as model:
        assert [(await outcome(model)).text, (await outcome(model)).text] == ["One", "Two"]
        assert up.connections == 1


async def test_nobody_there() -> None:
    """A server that is not running is named with its address, and asked as often as the policy says."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url, naps = f"http://127.0.0.1:{unused.getsockname()[1]}/v1", Naps()
        async with client_at(url, attempts=2, sleep=naps) as model:
            got = await outcome(model)
    assert got.code == "unavailable"
    assert "Can't reach" in str(got.failed)
    assert "127.0.0.1" in str(got.failed)
    assert len(naps.slept) == 1


@pytest.mark.parametrize("key", [KEY, KEY + "\nX-Evil: 1"])
async def test_the_key_appears_nowhere(key: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not in an error, its chain or a representation, and not in the logs; also where the provider repeats it."""
    caplog.set_level(logging.DEBUG)
    refusal = answers(401, {"error": {"message": f"bad key {KEY}"}})
    async with upstream(refusal) as up, client(up, api_key=key) as model:
        got = await outcome(model)
        shown = repr(model) + repr(model.config)
    assert got.code == "auth"
    chain = "".join(traceback.format_exception(got.failed))
    assert KEY not in chain + repr(got.failed) + shown + caplog.text


@pytest.mark.parametrize("url", ["localhost:8080", "http://[", "", "ftp://example.org/v1"])
async def test_a_base_url_that_is_none(url: str) -> None:
    """A mistake in the settings is said as such."""
    async with client_at(url) as model:
        got = await outcome(model)
    assert got.code == "bad-request"
    assert "base URL" in str(got.failed)


async def test_a_large_picture_is_sent_whole() -> None:
    """What is large enough to be encoded on another thread arrives like anything else."""
    picture = Media("a.png", "image/png", os.urandom(400_000))
    async with upstream(says("Nice")) as up, client(up) as model:
        assert (await outcome(model, ModelRequest(None, (UserMessage(("See", picture)),)))).text == "Nice"
        url = up.exchanges[0].json()["messages"][0]["content"][1]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == picture.data
