"""What a stream can be made of: one run, the change feed, or several runs at once."""

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.core.errors import StorageError
from holdfast.core.events import Entry
from holdfast.engine.changes import ChangeSubscription
from holdfast.engine.feed import Subscription
from holdfast.faces.http.stream import Write
from holdfast.ports import Change

log = logging.getLogger("holdfast.http")

_PAUSE: Final = 0.25
"""Seconds between two looks at storage that is away."""


async def next_entries(subscription: Subscription, *, patient: bool) -> Sequence[Entry] | None:
    """The next events. While storage is away: a client that can come back is let go; one whose leaving would stop its
    run is kept waiting, for it has not left."""
    while True:
        try:
            return await subscription.next()
        except StorageError as error:
            log.warning("the events of run %s cannot be read: %s", subscription.run, error.code)
            if not patient:
                return None
            await anyio.sleep(_PAUSE)


class RunSource:
    """The journal's own bytes, shared by everybody who watches. `attached`: the run is this stream."""

    def __init__(self, subscription: Subscription, *, attached: bool = False) -> None:
        self._subscription = subscription
        self._attached = attached

    def start(self, tasks: TaskGroup) -> None:
        pass

    def close(self) -> None:
        self._subscription.close()

    async def next(self) -> Sequence[bytes] | None:
        entries = await next_entries(self._subscription, patient=self._attached)
        return None if entries is None else [entry.frame for entry in entries]

    async def follow(self, write: Write) -> None:
        await self._subscription.follow(partial(write_frames, write))


def write_frames(write: Write, entries: Sequence[Entry]) -> bool:
    return write(entries[0].frame if len(entries) == 1 else b"".join([frame for _, frame in entries]))


class ChangeSource:
    """With `place` it begins with an id alone: a client that came without one, and loses the line before the first
    change, knows where it was."""

    __slots__ = ("_opening", "_subscription")

    def __init__(self, subscription: ChangeSubscription, place: str | None = None) -> None:
        self._subscription = subscription
        self._opening = None if place is None else f"id: {place}\n\n".encode()

    def start(self, tasks: TaskGroup) -> None:
        pass

    def close(self) -> None:
        pass

    async def next(self) -> Sequence[bytes] | None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            return [opening]
        try:
            found = await self._subscription.next()
        except StorageError as error:  # the client comes back
            log.warning("the change feed cannot be read: %s", error.code)
            return None
        if found is None:
            return None
        if found.reset:
            return [b"id: %s\nevent: reset\ndata: {}\n\n" % found.cursor.encode()]
        generation = found.cursor.rpartition("-")[0]
        return [_change(generation, change) for change in found.items]


def _change(generation: str, change: Change) -> bytes:
    data: dict[str, str] = {"session_id": change.session_id}
    if change.run_id is not None:
        data["run_id"] = change.run_id
    if change.approval_id is not None:
        data["approval_id"] = change.approval_id
    if change.status is not None:
        data["status"] = change.status
    text = json.dumps(data, separators=(",", ":"))
    return f"id: {generation}-{change.n}\nevent: {change.kind}\ndata: {text}\n\n".encode()


class MergedSource:
    """Several runs in one stream. Each frame carries its run and its number there; the merged stream has no order of
    its own. A run that does not get on holds up no other; one that is far ahead waits until its frames are taken."""

    def __init__(self, subscriptions: Sequence[Subscription], opening: bytes) -> None:
        self._subscriptions = subscriptions
        self._send, self._receive = anyio.create_memory_object_stream[list[bytes]](len(subscriptions))
        self._opening: list[bytes] | None = [opening]

    def start(self, tasks: TaskGroup) -> None:
        """Follow them all, in tasks that end with the stream."""
        for subscription in self._subscriptions:
            tasks.start_soon(self._follow, subscription, self._send.clone())
        self._send.close()

    async def _follow(self, subscription: Subscription, send: anyio.abc.ObjectSendStream[list[bytes]]) -> None:
        async with send:
            while (entries := await next_entries(subscription, patient=True)) is not None:
                await send.send([_tagged(subscription.run, entry) for entry in entries])

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        self._receive.close()

    async def next(self) -> Sequence[bytes] | None:
        if self._opening is not None:
            opening, self._opening = self._opening, None
            return opening
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            return None


def _tagged(run: str, entry: Entry) -> bytes:
    """`{"text":…}` becomes `{"run_id":…,"seq":…,"text":…}`, without decoding it."""
    head, _, data = entry.frame.partition(b"\ndata: ")
    kind = head.partition(b"\nevent: ")[2]
    tag = b'{"seq":%d' % entry.seq if kind == b"run.started" else b'{"run_id":"%s","seq":%d' % (run.encode(), entry.seq)
    rest = data[1:]
    comma = b"" if rest.startswith(b"}") else b","
    return b"event: " + kind + b"\ndata: " + tag + comma + rest
