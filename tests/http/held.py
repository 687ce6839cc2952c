"""A port whose calls can be stopped on their way and counted."""

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

from holdfast.agents.scripted import Gate


class Held:
    """In front of any port. A call of an operation that is held waits until it is let go, and so do all after it."""

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
            gate = self._gates.get(name)
            if gate is not None:
                gate.reached.set()
                await gate.open.wait()
            return await call(*args)

        return guarded

    def hold(self, name: str) -> None:
        self._gates[name] = Gate()

    async def reached(self, name: str) -> None:
        await self._gates[name].reached.wait()

    def release(self, name: str) -> None:
        self._gates.pop(name).open.set()
