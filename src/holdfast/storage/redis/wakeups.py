"""`Wakeups` by blocking reads of one short stream. Beside a journal on Redis it carries what is said most often, that
journals have grown; everything else goes where the store is (`others`), which may be there when Redis is not."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from threading import Event, Thread
from typing import Any, Final

import redis

from holdfast.core.ids import NodeId
from holdfast.ports import Wake
from holdfast.storage import hints
from holdfast.storage.memory.wakeups import Pending
from holdfast.storage.redis.link import RedisLane, RedisPlace

log = logging.getLogger("holdfast.storage")

_STREAM: Final = "holdfast:wakes"
_KEPT: Final = 1000
"""Entries of the stream: who is further behind has missed some, as may happen."""
_LOOK: Final = 200
"""Milliseconds of a blocking read."""
_PAUSE: Final = 1.0


class RedisWakeups:
    def __init__(self, place: RedisPlace, others: hints.Others | None = None, *, limit: int = 10_000) -> None:
        self._place = place
        self._others = others
        self._limit = limit
        self._listeners: set[Pending] = set()
        self._ear: Thread | None = None
        self._closing = Event()
        self._mouth = RedisLane("wakeups", place)
        self._out = hints.Outbox(limit, self._say)

    @asynccontextmanager
    async def listen(self, node: NodeId) -> AsyncIterator[Pending]:
        async with contextlib.AsyncExitStack() as held:
            pending = Pending(self._limit)
            if self._others is not None:
                pending = await held.enter_async_context(self._others.listen(node))
            self._listeners.add(pending)
            held.callback(self._listeners.discard, pending)
            if self._ear is None:
                hears = asyncio.Event()
                loop = asyncio.get_running_loop()
                self._ear = Thread(target=self._hear, args=(loop, hears), name="redis-ear", daemon=True)
                self._ear.start()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(hears.wait(), self._place.answer_within)
            yield pending

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        if self._others is not None:
            rest = [wake for wake in wakes if wake.kind != "appended"]
            if rest:
                await self._others.notify(node, rest)
            wakes = [wake for wake in wakes if wake.kind == "appended"]
        self._out.put(wakes)

    def _say(self, wakes: Iterable[Wake]) -> "asyncio.Future[object]":
        lines = list(hints.written(wakes))

        def work(db: redis.Redis) -> object:
            pipe = db.pipeline(transaction=False)
            for said in lines:
                pipe.xadd(_STREAM, {"w": said}, maxlen=_KEPT, approximate=True)
            return pipe.execute()

        return self._mouth.submit(work)

    async def close(self) -> None:
        self._closing.set()
        await self._out.close()
        await self._mouth.close()
        if self._ear is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._ear.join)
        if self._others is not None:
            await self._others.close()

    # ---- the listening thread ----

    def _hear(self, loop: asyncio.AbstractEventLoop, hears: asyncio.Event) -> None:
        pause, again = 0.0, False
        while not self._closing.wait(pause):
            pause = _PAUSE
            try:
                with self._place.connect() as db:
                    last = _newest(db)
                    hints.tell(loop, hears.set)
                    if again:
                        self._pass_on(loop, hints.MISSED if self._others is None else (Wake("appended"),))
                    while not self._closing.is_set():
                        answer: Any = db.xread({_STREAM: last}, block=_LOOK)
                        pause = 0.0  # a line that was good is replaced at once: the longer without, the more is missed
                        for _, entries in answer.items() if isinstance(answer, dict) else answer or []:
                            last = entries[-1][0]
                            said = (fields[b"w"].decode() for _, fields in entries)
                            self._pass_on(loop, [wake for text in said for wake in hints.read(text)])
            except redis.RedisError:
                log.info("Redis cannot be heard; tried again", exc_info=True)
                again = True

    def _pass_on(self, loop: asyncio.AbstractEventLoop, wakes: Collection[Wake]) -> None:
        def add() -> None:
            for pending in self._listeners:
                pending.add(wakes)

        hints.tell(loop, add)


def _newest(db: redis.Redis) -> bytes:
    found: Any = db.xrevrange(_STREAM, count=1)
    return bytes(found[0][0]) if found else b"0-0"
