"""`Wakeups` next to a journal on Redis. Blocking reads of one short stream carry the most frequent hint, that journals
have grown; all other hints go through the store's server (`others`), which may be up when Redis is not."""

import asyncio
from collections.abc import AsyncIterator, Collection, Generator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import redis

from holdfast.core.ids import NodeId
from holdfast.ports.wakeups import Wake
from holdfast.storage import wakeup_transport
from holdfast.storage.in_memory.wakeups import PendingHints
from holdfast.storage.redis.connection import RedisConfig

_STREAM: Final = "holdfast:wakes"
_STREAM_LENGTH: Final = 1000  # A reader that is further behind loses hints, which the port allows
_POLL: Final = 200  # Milliseconds of a blocking read


class RedisWakeups:
    def __init__(self, config: RedisConfig, others: wakeup_transport.PeerNotifier) -> None:
        self._config = config
        self._others = others
        self._receiver = wakeup_transport.HintReceiver(
            "redis-listener",
            self._receive,
            (redis.RedisError,),
            ready_within=config.answer_within,
            lost=(Wake("appended"),),
        )
        self._sender = config.worker("wakeups")
        self._outbox = wakeup_transport.HintOutbox(self._send)

    @asynccontextmanager
    async def listen(self, node: NodeId) -> AsyncIterator[PendingHints]:
        async with self._others.listen(node) as pending, self._receiver.listen(pending):
            yield pending

    async def notify(self, node: NodeId, wakes: Collection[Wake]) -> None:
        rest = [wake for wake in wakes if wake.kind != "appended"]
        if rest:
            await self._others.notify(node, rest)
        self._outbox.put([wake for wake in wakes if wake.kind == "appended"])

    def _send(self, wakes: Iterable[Wake]) -> "asyncio.Future[object]":
        texts = list(wakeup_transport.to_texts(wakes))

        def work(db: redis.Redis) -> object:
            pipe = db.pipeline(transaction=False)
            for text in texts:
                pipe.xadd(_STREAM, {"w": text}, maxlen=_STREAM_LENGTH, approximate=True)
            return pipe.execute()

        return self._sender.submit(work)

    async def close(self) -> None:
        await self._outbox.close()
        await self._sender.close()
        await self._receiver.close()
        await self._others.close()

    def _receive(self) -> Generator[Collection[Wake], None, None]:
        with self._config.connect() as db:
            newest: Any = db.xrevrange(_STREAM, count=1)
            last = bytes(newest[0][0]) if newest else b"0-0"
            yield ()
            while True:
                answer: Any = db.xread({_STREAM: last}, block=_POLL)
                wakes: list[Wake] = []
                for _, entries in answer.items() if isinstance(answer, dict) else answer or []:
                    last = entries[-1][0]
                    texts = (fields[b"w"].decode() for _, fields in entries)
                    wakes += [wake for text in texts for wake in wakeup_transport.from_text(text)]
                yield wakes
