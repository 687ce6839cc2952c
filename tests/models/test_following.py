"""Deltas that are handed over in the moment they arrive, instead of waking a reader for each."""

from collections.abc import Sequence

import anyio
import pytest

from holdfast.agents.models.port import Delta, ModelFailed
from holdfast.core.events import TextDelta
from tests.models.asking import HELLO, client
from tests.upstream import Close, End, Hang, Head, Meet, Script, Step, delta, sse, upstream

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})]),
]


def words(*texts: str) -> list[Step]:
    """Each after a point that the test lets pass, so that they arrive apart."""
    return [step for n, text in enumerate(texts) for step in (Meet(f"{n}"), *sse(delta(content=text)))]


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


async def test_what_is_followed_is_what_is_iterated(anyio_backend: object) -> None:
    """Every word comes once and in order, and the end is noticed."""
    reader = Reader()
    await follow([Head(), *words("One", " two", " three"), *sse(delta("stop"), "[DONE]"), End()], reader, 3)
    assert reader.texts == ["One", " two", " three"]


async def test_nothing_is_lost_when_the_reader_has_enough(anyio_backend: object) -> None:
    """A reader that wants no more for now gets the rest by iterating."""
    reader = Reader(enough=1)
    await follow([Head(), *words("One", " two", " three"), *sse(delta("stop"), "[DONE]"), End()], reader, 3)
    assert reader.texts == ["One", " two", " three"]


async def test_a_line_that_breaks_while_it_is_followed_is_told(anyio_backend: object) -> None:
    """E1: what had come is handed over, then the failure is raised as it is to those who iterate."""
    reader = Reader()
    with pytest.raises((ModelFailed, ExceptionGroup)):
        await follow([Head(), *words("One", " two"), Close()], reader, 2)
    assert reader.texts == ["One", " two"]


async def test_what_the_reader_raises_comes_out(anyio_backend: object) -> None:
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


async def test_cancel_reaches_a_follower(anyio_backend: object) -> None:
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
