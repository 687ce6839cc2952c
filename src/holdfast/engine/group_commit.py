"""Group commit: one writer commits the pending events of all runs together; events that arrive during a commit go into
the next one.

Under light load a token waits for one commit and no timer; under heavy load commits are spaced (`commit_pacing`).
A failed commit publishes nothing; before it is retried, the writer checks whether the journal contains it.
"""

from collections.abc import Sequence
from typing import Final

import anyio

from holdfast.core.errors import AppendRefusedError, FencedError, StorageError
from holdfast.core.ids import RunId
from holdfast.engine.commit_pacing import CommitPacer
from holdfast.engine.node_context import NodeContext
from holdfast.engine.output_buffer import OutputBuffer
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.signals import Notifier
from holdfast.ports.journal import Append
from holdfast.ports.wakeups import Wake, Wakeups

Item = tuple[OutputBuffer, Append]
_COMMITTING: Final = "committing to the journal"


class GroupCommitWriter:
    def __init__(self, node: NodeContext, feed: RunFeed, announce: Wakeups | None) -> None:
        """`announce`: tells other nodes which journals have grown; None without other nodes."""
        self._node = node
        self._feed = feed
        self._announce = announce
        self._marked: list[OutputBuffer] = []
        self._added = Notifier()
        self._pacer = CommitPacer()
        self.commits = 0
        self.commit_seconds = 0.0
        self.events = 0
        self.retries = 0

    def buffer(self, run: RunId, epoch: int, last_seq: int, spent: int = 0) -> OutputBuffer:
        """`spent`: output of earlier executions, which counts against the limit."""
        settings = self._node.settings
        return OutputBuffer(run, epoch, last_seq, self._mark, settings.max_uncommitted, settings.max_output - spent)

    def _mark(self, buffer: OutputBuffer) -> None:
        buffer.marked = True
        self._marked.append(buffer)
        if self._added.awaited:
            self._added.notify()

    async def run(self) -> None:
        """Runs until the engine has stopped, and longer than everything that writes to it."""
        while True:
            if not self._marked:
                await self._added.wait()
            while self._marked:
                if wait := self._pacer.wait(anyio.current_time()):
                    await anyio.sleep(wait)
                if items := self._take():
                    await self._commit(items)

    def _take(self) -> Sequence[Item]:
        """What the marked buffers hold, one append per run. Two executions of a run may both have output after an
        outage: the later waits for the next commit, and the journal's fence decides which of them counts."""
        now, items = int(self._node.clock.now() * 1000), dict[RunId, Item]()
        marked, self._marked = self._marked, []
        for buffer in marked:
            if buffer.run in items:
                self._marked.append(buffer)
            elif (append := buffer.take(now)) is not None:
                items[buffer.run] = (buffer, append)
        return list(items.values())

    async def _commit(self, items: Sequence[Item]) -> None:
        began = anyio.current_time()
        self._pacer.began(began, len(items))
        try:
            refusals = await self._node.journal.append([append for _, append in items])
        except StorageError as error:
            await self._retry(items, error)
            return
        self._report(items, refusals)
        self._node.outages.worked(_COMMITTING)
        await self._count_commit(items, anyio.current_time() - began)

    async def _count_commit(self, items: Sequence[Item], seconds: float) -> None:
        """Count the commit, and notify other nodes."""
        self.commits += 1
        self.commit_seconds += seconds
        self._node.metrics.commit.observe(seconds)
        if self._announce is not None:
            await self._announce.notify(self._node.identity.node, [Wake("appended", append.run) for _, append in items])

    def _report(self, items: Sequence[Item], refusals: Sequence[AppendRefusedError | None]) -> None:
        """Tell each buffer its result, and publish what is durable."""
        publish = self._feed.publish
        for (buffer, append), refusal in zip(items, refusals, strict=True):
            if refusal is None:
                run, _, entries, seals = append
                buffer.done(append)
                self.events += len(entries)
                publish(run, entries, seals)
            else:
                buffer.refuse(refusal, append)

    async def _retry(self, items: Sequence[Item], error: StorageError) -> None:
        """Reopen the journal, publish what was committed, retry the rest, and after a while give these runs up."""
        pause, began, all_items = 0.05, anyio.current_time(), items
        self._node.outages.failed(_COMMITTING, error)
        give_up_at = anyio.current_time() + self._node.settings.storage_retry_time
        while items:
            if anyio.current_time() >= give_up_at:
                for buffer, _ in items:
                    buffer.refuse(error)
                return
            self.retries += 1
            await anyio.sleep(pause)
            pause = min(pause * 2, 2.0)
            try:
                await self._node.journal.reopen()
                items = await self._publish_committed(items)
                if items:
                    self._report(items, await self._node.journal.append([append for _, append in items]))
                self._node.outages.worked(_COMMITTING)
                await self._count_commit(all_items, anyio.current_time() - began)
                return
            except StorageError as again:
                error = again

    async def _publish_committed(self, items: Sequence[Item]) -> list[Item]:
        """Publish what the journal has; the rest is returned."""
        heads = await self._node.journal.heads([append.run for _, append in items])
        rest: list[Item] = []
        for item in items:
            append = item[1]
            head = heads[append.run]
            if head.epoch > append.epoch:
                self._report([item], [FencedError(append.run, append.epoch, head.epoch)])
            elif head.last_seq >= append.entries[-1].seq:
                self._report([item], [None])
            else:
                rest.append(item)
        return rest
