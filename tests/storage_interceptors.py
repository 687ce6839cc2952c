"""Waiting in tests, and taps: they intercept an engine's calls to its storage.

until                     waits for an event or a condition, for a limited time
Tap, Hold, Strike, Fuse   observe calls, pause one, fail at one, or fail from one on
calls, appends            which calls a tap is about
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import anyio
from anyio.lowlevel import checkpoint

from holdfast.core.errors import StorageUnavailableError
from holdfast.ports.journal import Append

GUARD = 20.0
"""Seconds after which a test that waits for something has failed."""


async def until(what: anyio.Event | Callable[[], object]) -> None:
    """Wait for an event, or until a condition holds."""
    with anyio.fail_after(GUARD):
        if isinstance(what, anyio.Event):
            await what.wait()
        else:
            while not what():
                await checkpoint()


When = Literal["before", "after"]
Match = Callable[[str, Sequence[Any]], bool]


@dataclass
class Tap:
    """Sees every call of an engine to its storage, named like `store.transact` or `journal.append`."""

    seen: list[str] = field(default_factory=list, kw_only=True)

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        """Before the call and, unless it raised, after it."""


@dataclass
class Hold(Tap):
    """Stops the first call (`every`: all) that `match` picks while it is armed, before or after it is done, until the
    test lets go."""

    match: Match
    when: When = "before"
    every: bool = False
    armed: bool = True
    reached: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        due = when == self.when and self.armed and (self.every or not self.reached.is_set())
        if due and self.match(call, args):
            self.reached.set()
            await self.go.wait()

    async def held(self) -> None:
        """Until the call is held."""
        await until(self.reached)


@dataclass
class Strike(Tap):
    """Raises an error once, at the first call that `match` picks while it is armed, before or after it is done; the
    call that `arms` picks arms it."""

    match: Match
    error: BaseException
    when: When = "before"
    arms: Match = lambda call, args: False
    armed: bool = False
    struck: anyio.Event = field(default_factory=anyio.Event)

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        self.armed = self.armed or (when == "after" and self.arms(call, args))
        if when == self.when and self.armed and not self.struck.is_set() and self.match(call, args):
            self.struck.set()
            raise self.error


@dataclass
class Both(Tap):
    """Combines two taps."""

    first: Tap
    second: Tap

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        await self.first.at(when, call, args)
        await self.second.at(when, call, args)


def calls(name: str, inside: str = "") -> Match:
    """Picks the calls of this name; `inside`: whose work is this function, or one defined in it. Without it, any task
    of the engine may make the call that is picked: the claim loop has a transaction at every poll."""

    def match(call: str, args: Sequence[Any]) -> bool:
        if call != name or not inside:
            return call == name
        work = args[0].func if isinstance(args[0], partial) else args[0]
        return inside in getattr(work, "__qualname__", "")

    return match


def appends(*types: str) -> Match:
    """Picks the journal appends that hold an event of one of these types."""

    def match(call: str, args: Sequence[Any]) -> bool:
        if call != "journal.append":
            return False
        batch: Sequence[Append] = args[0]
        return any(entry.type in types for append in batch for entry in append.entries)

    return match


@dataclass
class Fuse(Tap):
    """Storage that is dead to its engine from call number `last` on. `done`: that call still happens, and nobody hears
    of it."""

    last: int
    done: bool
    calls: int = 0
    blown: anyio.Event = field(default_factory=anyio.Event)

    async def at(self, when: When, call: str, args: Sequence[Any]) -> None:
        self.calls += when == "before"
        if self.calls > self.last or (self.calls == self.last and (when == "after" or not self.done)):
            self.blown.set()
            await checkpoint()
            raise StorageUnavailableError(f"{call}: the process is gone")


_CALLS: Final = frozenset({"transact", "read", "append", "fence", "heads", "settled", "purge", "reopen"})


class Tapped:
    """A port whose calls go through a tap."""

    def __init__(self, inner: object, name: str, tap: Tap) -> None:
        self._inner = inner
        self._name = name
        self._tap = tap

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._inner, attribute)
        return self._tapped(attribute, found) if attribute in _CALLS else found

    def _tapped(self, attribute: str, do: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def call(*args: Any, **options: Any) -> object:
            name = f"{self._name}.{attribute}"
            self._tap.seen.append(name)
            await self._tap.at("before", name, args)
            result = await do(*args, **options)
            await self._tap.at("after", name, args)
            return result

        return call
