"""Sources of event streams: the events of one run, of several runs, and the change feed. How one is sent, and when a
client is dropped: `server.event_stream`; what a cursor gets: `engine.run_feed`, `engine.change_feed`."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import ObjectSendStream, TaskGroup
from starlette.responses import Response

from holdfast.core.errors import StorageError
from holdfast.core.events import Entry
from holdfast.engine.change_feed import ChangeSubscription
from holdfast.engine.run_feed import RunSubscription
from holdfast.engine.transactions.accept import Accepted
from holdfast.ports.store import Change
from holdfast.server.context import ApiContext
from holdfast.server.event_stream import EventSource, Write

log = logging.getLogger("holdfast.http")

_FIRST_PAUSE: Final = 0.25  # Seconds between reads while storage is unavailable, doubled each time
_LONGEST_PAUSE: Final = 2.0


async def respond_with_run(
    api: ApiContext, accepted: Accepted, respond: Callable[[RunSubscription, AsyncExitStack | None], Response]
) -> Response:
    """Subscribe to a run that was just accepted. The stack is the connection of an attached run, which ends when it is
    closed; a repeated call only watches the run of the first and has none."""
    connection: AsyncExitStack | None = None
    if accepted.fresh and accepted.run.lifetime == "attached":
        connection = AsyncExitStack()
        # No await between this and accepting.
        await connection.enter_async_context(api.engine.connections.attached(accepted.run.id))
    try:
        subscription = (
            api.engine.feed.subscribe_new(accepted.run.id)
            if accepted.fresh
            else await api.engine.subscriptions.subscribe(accepted.run.id)
        )
        return respond(subscription, connection)
    except BaseException:
        if connection is not None:
            await connection.aclose()
        raise


async def next_entries(subscription: RunSubscription, *, wait: bool) -> Sequence[Entry] | None:
    """The next events; None at the end. While storage is unavailable the stream ends, so that the client reconnects;
    with `wait` it stays open, because the end of an attached stream would cancel its run."""
    pause = 0.0
    while True:
        try:
            return await subscription.next()
        except StorageError as error:
            if not pause:  # once per outage
                log.warning("cannot read the events of run %s: %s", subscription.run, error.code)
            if not wait:
                return None
            pause = min(pause * 2, _LONGEST_PAUSE) or _FIRST_PAUSE
            await anyio.sleep(pause)


class RunSource(EventSource):
    """Sends the journal's frames, which all subscribers share. `attached`: the run ends with this stream."""

    def __init__(self, subscription: RunSubscription, *, attached: bool = False, starts_now: bool = False) -> None:
        """`starts_now`: the run has been claimed, so that its first events follow."""
        self._subscription = subscription
        self._attached = attached
        self._starts_now = starts_now

    @property
    def is_ready(self) -> bool:
        return self._starts_now or self._subscription.has_next

    @property
    def at_end(self) -> bool:
        return self._subscription.at_end

    def close(self) -> None:
        self._subscription.close()

    async def next(self) -> Sequence[bytes] | None:
        entries = await next_entries(self._subscription, wait=self._attached)
        return None if entries is None else [entry.frame for entry in entries]

    async def follow(self, write: Write) -> None:
        await self._subscription.follow(partial(write_frames, write))


def write_frames(write: Write, entries: Sequence[Entry]) -> bool:
    """The last frames are left to `next`, so that the end of the stream goes with them."""
    if entries[-1].ends:
        return False
    return write(entries[0].frame if len(entries) == 1 else b"".join([frame for _, frame in entries]))


class ChangeSource(EventSource):
    __slots__ = ("_subscription",)

    def __init__(self, subscription: ChangeSubscription) -> None:
        self._subscription = subscription

    async def next(self) -> Sequence[bytes] | None:
        try:
            found = await self._subscription.next()
        except StorageError as error:  # the client reconnects
            log.warning("cannot read the change feed: %s", error.code)
            return None
        if found is None:
            return None
        if found.reset:
            return [b"id: %s\nevent: reset\ndata: {}\n\n" % found.cursor.encode()]
        generation = found.cursor.rpartition("-")[0]
        return [_change(generation, change) for change in found.items]


def _change(generation: str, change: Change) -> bytes:
    names = ("session_id", "run_id", "approval_id", "status")
    data = {name: value for name in names if (value := getattr(change, name))}
    text = json.dumps(data, separators=(",", ":"))
    return f"id: {generation}-{change.n}\nevent: {change.kind}\ndata: {text}\n\n".encode()


Produce = Callable[[ObjectSendStream[list[bytes]]], Awaitable[None]]


def progress_frame(event: str, data: Mapping[str, Any]) -> bytes:
    """A frame of a stream that reports on long work: `progress`, then `done` or `failed`."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


class ProducedSource(EventSource):
    """Frames that tasks produce, at the speed at which they are sent. The source ends when all tasks have."""

    has_tasks = True

    def __init__(self, producers: Sequence[Produce]) -> None:
        self._producers = producers
        self._send, self._receive = anyio.create_memory_object_stream[list[bytes]](len(producers))

    def start(self, tasks: TaskGroup) -> None:
        for produce in self._producers:
            tasks.start_soon(self._run, produce, self._send.clone())
        self._send.close()

    async def _run(self, produce: Produce, send: ObjectSendStream[list[bytes]]) -> None:
        async with send:
            await produce(send)

    def close(self) -> None:
        self._send.close()
        self._receive.close()

    async def next(self) -> Sequence[bytes] | None:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            return None


class MergedSource(ProducedSource):
    """Merges the events of several runs. Each frame has its `run_id` and `seq`; runs are not ordered among each other.
    A slow run does not delay the others, and a fast one waits until its frames are sent."""

    def __init__(self, subscriptions: Sequence[RunSubscription]) -> None:
        super().__init__([partial(_follow, subscription) for subscription in subscriptions])
        self._subscriptions = subscriptions

    def close(self) -> None:
        super().close()
        for subscription in self._subscriptions:
            subscription.close()


async def _follow(subscription: RunSubscription, send: ObjectSendStream[list[bytes]]) -> None:
    while (entries := await next_entries(subscription, wait=True)) is not None:
        await send.send([_with_run_id(subscription.run, entry) for entry in entries])


def _with_run_id(run: str, entry: Entry) -> bytes:
    """Turns `{"text":…}` into `{"run_id":…,"seq":…,"text":…}` without decoding it."""
    head, _, data = entry.frame.partition(b"\ndata: ")
    kind = head.partition(b"\nevent: ")[2]
    tag = b'{"seq":%d' % entry.seq if kind == b"run.started" else b'{"run_id":"%s","seq":%d' % (run.encode(), entry.seq)
    rest = data[1:]
    comma = b"" if rest.startswith(b"}") else b","
    return b"event: " + kind + b"\ndata: " + tag + comma + rest
