"""Sleeping at a pace."""

import anyio
import pytest

from bench.shared_timers import SharedTimers

pytestmark = pytest.mark.anyio
GUARD = 30.0
TICK = 1e-6
"""An event loop may take a moment for come that is this near."""


async def test_a_cancelled_speaker_holds_no_other_up() -> None:
    """Of those who speak at the same moments one is cancelled; the others go on."""
    pace, said = SharedTimers(), dict[str, int]()
    start = pace.now()

    async def speak(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            said[name] = await pace.emit_at_rate(start, 20, range(6), lambda n: True)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            scopes = [anyio.CancelScope() for _ in "abc"]
            for name, scope in zip("abc", scopes, strict=True):
                tg.start_soon(speak, name, scope)
            await anyio.wait_all_tasks_blocked()
            scopes[1].cancel()
    assert said == {"a": 6, "c": 6}


async def test_speaking_along_a_pace() -> None:
    """Every number is said once, in order, not before its moment, until one is declined; what is raised comes out."""
    pace, said = SharedTimers(), list[int]()
    start = pace.now()

    def say(n: int) -> bool:
        assert pace.now() >= start + n / 500 - TICK
        said.append(n)
        return n != 3

    with anyio.fail_after(GUARD):
        assert await pace.emit_at_rate(start, 500, range(8), say) == 4
        assert await pace.emit_at_rate(start, 500, range(4, 8), say) == 8
        assert await pace.emit_at_rate(start, 500, range(8, 8), say) == 8
        with pytest.raises(ZeroDivisionError):
            await pace.emit_at_rate(start, 500, range(2), lambda n: bool(1 // n))
    assert said == list(range(8))


@pytest.mark.parametrize("more", [True, False])
async def test_a_cancelled_speaker_says_nothing_more(more: bool, caplog: pytest.LogCaptureFixture) -> None:
    """C1: what is due after the cancel is not said."""
    pace, said = SharedTimers(), list[int]()

    def say(n: int) -> bool:
        said.append(n)
        scope.cancel()
        return more

    with anyio.fail_after(GUARD):
        with anyio.CancelScope() as scope:
            await pace.emit_at_rate(pace.now(), 500, range(8), say)
        await anyio.sleep(0.01)
    assert said == [0]
    assert not caplog.records


def test_a_later_event_loop_has_timers_of_its_own() -> None:
    """What an earlier event loop left waiting does not keep anybody from being called in the next one."""
    pace, said = SharedTimers(), list[int]()

    async def leave_waiting() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await pace.emit_at_rate(pace.now(), 1000, range(50, 51), lambda n: True)

    def note(n: int) -> bool:
        said.append(n)
        return True

    async def speak() -> None:
        start = pace.now()
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                for n in range(200):
                    tg.start_soon(pace.emit_at_rate, start, 1000, range(n, n + 1), note)

    anyio.run(leave_waiting)
    anyio.run(speak)
    assert sorted(said) == list(range(200))
