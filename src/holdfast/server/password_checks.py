"""Checks passwords one after the other, because argon2 needs much memory by design. In which order they are checked,
and how long a wrong one delays the next, is decided in `login_throttle`; the comparison itself is in
`authenticator`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from holdfast.core.errors import DrainingError
from holdfast.server.draw_pool import Random
from holdfast.server.login_throttle import LoginThrottle

Verify = Callable[[str], Awaitable[str | None]]
"""Returns the hash that the password was compared with, or None if it is wrong."""


@dataclass(slots=True, eq=False)
class _Attempt:
    password: str
    done: anyio.Event = field(default_factory=anyio.Event)
    verified: str | None = None
    error: Exception | None = None


class PasswordChecks:
    def __init__(self, verify: Verify, random: Random | None = None) -> None:
        self._verify = verify
        self._throttle: LoginThrottle[_Attempt] = LoginThrottle(random)
        self._waiting: set[_Attempt] = set()
        self._added = anyio.Event()
        self._stopped = False

    async def check(self, client: str, password: str) -> str | None:
        """Waits for its turn, then returns what `verify` does. Raises DrainingError when `run` ends. An attempt that is
        cancelled gives up its place."""
        if self._stopped:
            raise DrainingError
        attempt = _Attempt(password)
        self._waiting.add(attempt)
        self._throttle.add(client, attempt, anyio.current_time())
        self._added.set()
        try:
            await attempt.done.wait()
        finally:
            self._waiting.discard(attempt)
            self._throttle.remove(attempt, anyio.current_time())
        if attempt.error is not None:
            raise attempt.error
        return attempt.verified

    async def run(self, wait_for_stop: Callable[[], Awaitable[None]]) -> None:
        """Checks passwords until `wait_for_stop` returns; then no attempt waits any longer."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._check_all)
                await wait_for_stop()
                self._stop()
                tasks.cancel_scope.cancel()
        finally:
            self._stop()

    def _stop(self) -> None:
        self._stopped = True
        for attempt in self._waiting:
            attempt.error = DrainingError()
            attempt.done.set()

    async def _check_all(self) -> None:
        while True:
            self._added = anyio.Event()
            attempt = self._throttle.draw(anyio.current_time())
            if attempt is None:
                ends_at = self._throttle.next_time
                with anyio.move_on_after(None if ends_at is None else ends_at - anyio.current_time()):
                    await self._added.wait()
                continue
            right: bool | None = None
            attempt.error = DrainingError()  # unless the check ends
            try:
                attempt.verified = await self._verify(attempt.password)
                right, attempt.error = attempt.verified is not None, None
            except Exception as error:  # noqa: BLE001  raised where the attempt waits; the others are checked
                attempt.error = error
            finally:
                self._throttle.finish(attempt, anyio.current_time(), right=right)
                attempt.done.set()
