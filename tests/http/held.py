"""A port whose calls can be stopped on their way, made to fail, and counted."""

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from holdfast.agents.scripted import Gate
from holdfast.core.errors import StorageError, StorageUnavailable


class Held:
    """In front of any port. A call is meant by its name, or by the name of the function that it is given: of the store,
    `transact` or `submit`. One that is held waits until it is let go, and so do all like it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._gates: dict[str, Gate] = {}
        self._faults: dict[str, Literal["refuse", "doubt"]] = {}
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._guarded(name, found) if inspect.iscoroutinefunction(found) else found

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def guarded(*args: Any) -> Any:
            self.calls[name] += 1
            for meant in [meant for meant in self._gates if _means(meant, name, args)]:
                gate = self._gates[meant]
                gate.reached.set()
                await gate.open.wait()
            return await self._perhaps(name, call, args)

        return guarded

    async def _perhaps(self, name: str, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        meant = next((meant for meant in self._faults if _means(meant, name, args)), None)
        if meant is None:
            return await call(*args)
        if self._faults.pop(meant) == "refuse":
            raise StorageUnavailable(f"{meant}: refused as ordered")
        await call(*args)
        raise StorageError(f"{meant}: done, and reported as failed as ordered")

    def fail(self, meant: str, how: Literal["refuse", "doubt"]) -> None:
        """The next such call, once."""
        self._faults[meant] = how

    def hold(self, meant: str) -> None:
        self._gates[meant] = Gate()

    async def reached(self, meant: str) -> None:
        await self._gates[meant].reached.wait()

    def release(self, meant: str) -> None:
        self._gates.pop(meant).open.set()


def _means(meant: str, name: str, args: Sequence[Any]) -> bool:
    if meant == name:
        return True
    given = args[0] if args and callable(args[0]) else None
    if isinstance(given, functools.partial):
        given = given.func
    return given is not None and meant in given.__qualname__.split(".")
