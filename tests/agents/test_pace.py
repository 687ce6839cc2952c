"""Sleeping at a pace, on both event loops."""

import anyio
import pytest

from holdfast.agents.pace import Pace

pytestmark = pytest.mark.anyio
GUARD = 30.0
TICK = 1e-6
"""An event loop may take a moment for come that is this near."""

both = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@both
async def test_nobody_wakes_before_the_moment(anyio_backend: str) -> None:
    """Every sleeper wakes, not before its own moment; one whose moment is over does not sleep."""
    pace, woken = Pace(), []
    start = pace.now()

    async def sleeper(after: float) -> None:
        await pace.until(start + after)
        assert pace.now() >= start + after - TICK
        woken.append(after)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            for after in (0.03, 0.01, -5.0, 0.02, 0.01):
                tg.start_soon(sleeper, after)
    assert sorted(woken) == [-5.0, 0.01, 0.01, 0.02, 0.03]


@both
async def test_a_cancelled_sleeper_wakes_no_other_and_holds_none_up(anyio_backend: str) -> None:
    """Of those who sleep until the same moment one is cancelled; the others sleep on and wake."""
    pace, woken = Pace(), []
    moment = pace.now() + 0.05

    async def sleeper(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            await pace.until(moment)
            assert pace.now() >= moment - TICK
            woken.append(name)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            scopes = [anyio.CancelScope() for _ in "abc"]
            for name, scope in zip("abc", scopes, strict=True):
                tg.start_soon(sleeper, name, scope)
            await pace.until(0.0)
            scopes[1].cancel()
    assert sorted(woken) == ["a", "c"]


@both
async def test_speaking_along_a_pace(anyio_backend: str) -> None:
    """Every number is said once, in order, not before its moment, until one is declined; what is raised comes out."""
    pace, said = Pace(), list[int]()
    start = pace.now()

    def say(n: int) -> bool:
        assert pace.now() >= start + n / 500 - TICK
        said.append(n)
        return n != 3

    with anyio.fail_after(GUARD):
        assert await pace.along(start, 500, range(8), say) == 4
        assert await pace.along(start, 500, range(4, 8), say) == 8
        assert await pace.along(start, 500, range(8, 8), say) == 8
        with pytest.raises(ZeroDivisionError):
            await pace.along(start, 500, range(2), lambda n: bool(1 // n))
    assert said == list(range(8))


@both
@pytest.mark.parametrize("more", [True, False])
async def test_a_cancelled_speaker_says_nothing_more(
    anyio_backend: str, more: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """C1: what is due after the cancel is not said."""
    pace, said = Pace(), list[int]()

    def say(n: int) -> bool:
        said.append(n)
        scope.cancel()
        return more

    with anyio.fail_after(GUARD):
        with anyio.CancelScope() as scope:
            await pace.along(pace.now(), 500, range(8), say)
        await pace.until(pace.now() + 0.01)
    assert said == [0]
    assert not caplog.records


def test_a_later_event_loop_has_timers_of_its_own() -> None:
    """What an earlier event loop left asleep does not keep anybody from waking in the next one."""
    pace = Pace()

    async def leave_asleep() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await pace.until(pace.now() + 0.05)

    async def sleep(moment: float) -> None:
        await pace.until(moment)

    async def wake() -> None:
        moment = pace.now() + 0.05
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                for n in range(200):
                    tg.start_soon(sleep, moment + (n - 100) / 1000)

    anyio.run(leave_asleep)
    anyio.run(wake)
