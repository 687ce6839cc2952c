"""A port whose calls can be stopped on their way and counted."""

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.agents.scripted_agent import Gate


class Held:
    """In front of any port. A call is meant by its name, or by the name of the function that it is given: of the store,
    `transact` or `_accept`. One that is held waits until it is let go, and so do all like it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._gates: dict[str, Gate] = {}
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
            return await call(*args)

        return guarded

    def hold(self, meant: str) -> None:
        self._gates[meant] = Gate()

    async def reached(self, meant: str) -> None:
        await self._gates[meant].reached.wait()

    def release(self, meant: str) -> None:
        self._gates.pop(meant).open.set()

    def reset(self) -> None:
        for meant in list(self._gates):
            self.release(meant)


def _means(meant: str, name: str, args: Sequence[Any]) -> bool:
    if meant == name:
        return True
    given = args[0] if args and callable(args[0]) else None
    if isinstance(given, functools.partial):
        given = given.func
    return given is not None and meant in given.__qualname__.split(".")
