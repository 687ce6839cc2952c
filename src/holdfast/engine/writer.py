"""The one writer of a process: whatever all runs have gathered becomes one commit; the next begins when it is done.

No timer: under light load a token waits for one commit, under heavy load commits grow and their number falls. A
failed commit publishes nothing and is retried; whether it happened is asked, never assumed.
"""

from collections.abc import Iterator, Sequence

import anyio

from holdfast.core.errors import Fenced, NotJson, Refused, StorageError
from holdfast.core.ids import NodeId, RunId
from holdfast.engine.bell import Bell
from holdfast.engine.feed import Feed
from holdfast.engine.recorder import Recorder
from holdfast.engine.settings import Settings
from holdfast.ports import Append, Clock, Journal, Wake, Wakeups

Item = tuple[Recorder, Append]


class Writer:
    def __init__(
        self,
        journal: Journal,
        feed: Feed,
        settings: Settings,
        node: NodeId,
        announce: Wakeups | None,
        clock: Clock,
    ) -> None:
        """`announce`: where other nodes listen for grown journals; None where there are none."""
        self._journal = journal
        self._feed = feed
        self._settings = settings
        self._node = node
        self._announce = announce
        self._clock = clock
        self._marked: list[Recorder] = []
        self._bell = Bell()
        self.commits = 0
        self.commit_seconds = 0.0
        self.events = 0
        self.retries = 0

    def recorder(self, run: RunId, epoch: int, last_seq: int, spent: int = 0) -> Recorder:
        """`spent`: output of the run's earlier lives, which counts against its limit."""
        settings = self._settings
        return Recorder(run, epoch, last_seq, self._mark, settings.room, settings.max_output - spent)

    def _mark(self, recorder: Recorder) -> None:
        recorder.marked = True
        self._marked.append(recorder)
        if self._bell.awaited:
            self._bell.ring()

    async def run(self) -> None:
        """Runs for the engine's life, a little longer than everything that records."""
        while True:
            if not self._marked:
                await self._bell.wait()
            while self._marked:
                marked, self._marked = self._marked, []
                now = int(self._clock.now() * 1000)
                items = list(_taken(marked, now))
                if items:
                    await self._commit(items)

    async def _commit(self, items: Sequence[Item]) -> None:
        began = anyio.current_time()
        try:
            refusals = await self._journal.append([append for _, append in items])
        except StorageError as error:
            await self._rescue(items, error)
            return
        self.commit_seconds += anyio.current_time() - began
        self._tell(items, refusals)
        self.commits += 1
        if self._announce is not None:
            await self._announce.notify(self._node, [Wake("appended", append.run) for _, append in items])

    def _tell(self, items: Sequence[Item], refusals: Sequence[Refused | None]) -> None:
        """What became of each: to its recorder, and what is durable to the subscribers."""
        publish = self._feed.publish
        for (recorder, append), refusal in zip(items, refusals, strict=True):
            if refusal is None:
                run, _, entries, seals = append
                recorder.done(append)
                self.events += len(entries)
                publish(run, entries, seals)
            else:
                recorder.refuse(refusal, append)

    async def _rescue(self, items: Sequence[Item], error: StorageError) -> None:
        """Reopen, ask what is there (the commit may have happened), repeat the rest; after a while give those runs
        up."""
        pause = 0.05
        give_up_at = anyio.current_time() + self._settings.storage_patience
        while items:
            if anyio.current_time() >= give_up_at:
                for recorder, _ in items:
                    recorder.refuse(error)
                return
            self.retries += 1
            await anyio.sleep(pause)
            pause = min(pause * 2, 2.0)
            try:
                await self._journal.reopen()
                items = await self._sort_out(items)
                if items:
                    self._tell(items, await self._journal.append([append for _, append in items]))
                return
            except StorageError as again:
                error = again

    async def _sort_out(self, items: Sequence[Item]) -> list[Item]:
        """Publish what did get in; the rest is returned."""
        heads = await self._journal.heads([append.run for _, append in items])
        rest: list[Item] = []
        for item in items:
            append = item[1]
            head = heads[append.run]
            if head.epoch > append.epoch:
                self._tell([item], [Fenced(append.run, append.epoch, head.epoch)])
            elif head.last_seq >= append.entries[-1].seq:
                self._tell([item], [None])
            else:
                rest.append(item)
        return rest


def _taken(marked: Sequence[Recorder], now: int) -> Iterator[Item]:
    for recorder in marked:
        try:
            append = recorder.take(now)
        except Exception as error:  # noqa: BLE001 - an agent's text that is none ends its run, not the writer
            recorder.refuse(NotJson(recorder.run, str(error)))
            continue
        if append is not None:
            yield recorder, append
