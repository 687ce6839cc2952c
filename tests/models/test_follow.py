"""Deltas that are handed over in the moment they arrive, instead of waking a reader for each."""

import asyncio
from collections.abc import Sequence
from functools import partial

import anyio
import pytest

from holdfast.core.events import TextDelta
from holdfast.models.read_batcher import ReadBatcher
from holdfast.ports.model import Delta, ModelError
from tests.models.asking import HELLO, client
from tests.upstream import Close, End, Hang, Head, PauseAt, Script, Step, delta, sse, upstream

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})]),
]


def words(*texts: str) -> list[Step]:
    """Each after a point that the test lets pass, so that they arrive apart."""
    return [step for n, text in enumerate(texts) for step in (PauseAt(f"{n}"), *sse(delta(content=text)))]


class Reader:
    def __init__(self, enough: int = 100) -> None:
        self.texts: list[str] = []
        self.enough = enough

    def take(self, deltas: Sequence[Delta]) -> bool:
        self.texts += [each.text for each in deltas if isinstance(each, TextDelta)]
        return len(self.texts) < self.enough


async def follow(script: Script, reader: Reader, steps: int) -> None:
    """Read to the end, iterating only where there is something to iterate for."""
    async with upstream(script) as up, client(up) as model, anyio.create_task_group() as group:

        async def pass_all() -> None:
            for n in range(steps):
                await up.gate(f"{n}").reached.wait()
                await anyio.wait_all_tasks_blocked()
                up.gate(f"{n}").open.set()

        group.start_soon(pass_all)
        async with model.stream(HELLO) as answer:
            async for deltas in answer:
                reader.take(deltas)
                await answer.follow(reader.take)


@pytest.mark.parametrize("enough", [100, 1], ids=["to the end", "one at a time"])
async def test_what_is_followed_is_what_is_iterated(enough: int) -> None:
    """Every word comes once and in order, and the end is noticed; a reader that wants no more for now gets the rest by
    iterating."""
    reader = Reader(enough)
    await follow([Head(), *words("One", " two", " three"), *sse(delta("stop"), "[DONE]"), End()], reader, 3)
    assert reader.texts == ["One", " two", " three"]


async def test_a_line_that_breaks_while_it_is_followed_is_told() -> None:
    """E1: what had come is handed over, then the failure is raised as it is to those who iterate."""
    reader = Reader()
    with pytest.raises((ModelError, ExceptionGroup)):
        await follow([Head(), *words("One", " two"), Close()], reader, 2)
    assert reader.texts == ["One", " two"]


async def test_what_the_reader_raises_comes_out() -> None:
    """An output limit that is met in mid-stream ends the run, not the event loop's patience."""

    def refuse(deltas: Sequence[Delta]) -> bool:
        raise ZeroDivisionError

    async with upstream([Head(), *words("One", " two"), Hang()]) as up, client(up) as model:
        up.gate("0").open.set()
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it is raised in the middle of a stream
            async with model.stream(HELLO) as answer:
                async for _ in answer:
                    up.gate("1").open.set()
                    await answer.follow(refuse)
        await up.closed()


async def test_cancel_reaches_a_follower() -> None:
    """C7: whoever waits for deltas to be handed over is cancelled in mid-await, and the upstream is closed."""
    async with upstream([Head(), *sse(delta(content="Half")), Hang()]) as up, client(up) as model:
        with anyio.CancelScope() as scope:
            async with model.stream(HELLO) as answer:
                async for _ in answer:
                    async with anyio.create_task_group() as group:
                        group.start_soon(answer.follow, Reader().take)
                        await anyio.wait_all_tasks_blocked()
                        scope.cancel()
        await up.closed()


async def test_a_few_streams_are_read_at_once_every_time() -> None:
    """Under light load a token waits for no timer: two turns of the event loop, and it is read."""
    rounds, loop, read = ReadBatcher(), asyncio.get_running_loop(), list[int]()
    for _ in range(50):
        for n in range(5):
            rounds.add(partial(_note, read, n), loop)
        for _ in range(2):
            await asyncio.sleep(0)
        assert read == [0, 1, 2, 3, 4]
        read.clear()


async def test_a_stream_that_cannot_be_read_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    """One stream's trouble is told to the log, and is not every stream's."""
    rounds, loop, read = ReadBatcher(), asyncio.get_running_loop(), list[int]()
    for n in (2, 0, 1):
        rounds.add(lambda n=n: _note(read, 2 // n), loop)  # type: ignore[misc]
    for _ in range(2):
        await asyncio.sleep(0)
    assert read == [1, 2]
    assert "data of a model's stream could not" in caplog.text


async def test_a_reader_that_has_its_own_task_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    """C7: what takes a delta stops the run it belongs to: that is a cancel, and no error of the event loop's."""
    async with upstream([Head(), *words("One", " two"), Hang()]) as up, client(up) as model:
        up.gate("0").open.set()

        def stop(deltas: Sequence[Delta]) -> bool:
            scope.cancel()
            return False

        with anyio.CancelScope() as scope:
            async with model.stream(HELLO) as answer:
                async for _ in answer:
                    up.gate("1").open.set()
                    await answer.follow(stop)
        assert scope.cancelled_caught
        assert not caplog.records
        await up.closed()


@pytest.mark.parametrize(("size", "pause"), [(270, 0.029), (4096, 0.089)])
async def test_after_many_streams_there_is_a_rest(size: int, pause: float) -> None:
    """A round of 300 is read at once, the next not before the time that 300 pieces are worth, which is more if they
    come at full speed; nobody is forgotten."""
    rounds, loop, read, done = ReadBatcher(), asyncio.get_running_loop(), list[int](), asyncio.Event()
    began = loop.time()
    for n in range(300):
        rounds.add(partial(_note, read, n, size), loop)
    for _ in range(2):
        await asyncio.sleep(0)
    assert read == list(range(300))
    rounds.add(partial(_note, read, 300), loop)
    rounds.add(partial(_finish, done), loop)
    with anyio.fail_after(10):
        await done.wait()
    assert read[300:] == [300]
    assert loop.time() - began >= pause


def _finish(done: asyncio.Event) -> int:
    done.set()
    return 0


def _log(log: list[str], line: str) -> int:
    log.append(line)
    return 0


def _note(read: list[int], n: int, size: int = 1) -> int:
    read.append(n)
    return size


class RecordedSource:
    """Records what the batcher asks of a stream's socket."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def pause(self) -> None:
        self._log.append("pause")

    def resume(self) -> None:
        self._log.append("resume")


@pytest.mark.parametrize("size", [270, 4096])
async def test_a_stream_that_waits_is_not_read_until_shortly_before_its_batch(size: int) -> None:
    """A stream at full speed is left alone from one batch to the next, another one from its first data on; both are
    read again before they are handled."""
    rounds, loop, log, done = ReadBatcher(), asyncio.get_running_loop(), list[str](), asyncio.Event()
    source = RecordedSource(log)
    for n in range(300):
        rounds.add(partial(_note, [], n, size), loop, source if n == 0 else None)
    for _ in range(2):
        await asyncio.sleep(0)
    assert log == (["pause"] if size == 4096 else [])
    if size == 270:
        rounds.add(partial(_log, log, "handled"), loop, source)
        assert log == ["pause"]
    rounds.add(partial(_finish, done), loop)
    with anyio.fail_after(10):
        await done.wait()
    assert log == ["pause", "resume", *(["handled"] if size == 270 else [])]


async def test_a_stream_is_paused_only_while_there_are_many() -> None:
    """Under light load sockets are read as data comes."""
    rounds, loop, log, read = ReadBatcher(), asyncio.get_running_loop(), list[str](), list[int]()
    for n in range(2):
        rounds.add(partial(_note, read, n, 4096), loop, RecordedSource(log))
    for _ in range(2):
        await asyncio.sleep(0)
    assert read == [0, 1]
    assert not log


async def test_one_stream_at_full_speed_never_waits() -> None:
    """However large its pieces are, the next one is read as soon as it is there."""
    rounds, loop, read = ReadBatcher(), asyncio.get_running_loop(), list[int]()
    for n in range(50):
        rounds.add(partial(_note, read, n, 1 << 18), loop, RecordedSource([]))
        for _ in range(2):
            await asyncio.sleep(0)
        assert read[-1] == n


async def test_an_answer_that_is_paused_arrives_whole() -> None:
    """What stays in the kernel during the pause is read before the next batch, and so is the end."""
    reader = Reader()
    many = [delta(content=f" {n}") for n in range(500)]
    script = [Head(), *words("One"), *sse(*many, delta("stop"), "[DONE]"), End()]
    async with upstream(script) as up, client(up) as model:
        up.gate("0").open.set()
        async with model.stream(HELLO) as answer:
            async for deltas in answer:
                reader.take(deltas)
                for _ in range(500):
                    model.http.batcher.add(lambda: 4096, asyncio.get_running_loop())
                await answer.follow(reader.take)
    assert "".join(reader.texts) == "One" + "".join(f" {n}" for n in range(500))


async def test_what_gathers_in_a_rest_is_whole() -> None:
    """Pieces that came while others were read are handed over in order, the end of the answer with them."""
    reader = Reader()
    script = [Head(), *words("One"), *sse(delta(content=" two"), delta(content=" three"))]
    async with upstream([*script, *sse(delta("stop"), "[DONE]"), End()]) as up, client(up) as model:
        up.gate("0").open.set()
        async with model.stream(HELLO) as answer:
            async for deltas in answer:
                for _ in range(500):
                    model.http.batcher.add(lambda: 0, asyncio.get_running_loop())
                reader.take(deltas)
                await answer.follow(reader.take)
    assert "".join(reader.texts) == "One two three"
