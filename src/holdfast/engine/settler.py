"""Settles sealed runs: folds the journal into the message and ends the run, in one transaction, once. Also seals the
journals of runs that did not seal themselves. `run_endings.settle` alone fills a message. How a run is taken from a
node that is gone: `engine.recovery`."""

import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import anyio

from holdfast.core import recovery_rules
from holdfast.core.errors import AppendRefusedError, StorageError, StorageUnavailableError, TooLargeError
from holdfast.core.events import Event, entry
from holdfast.core.ids import RunId
from holdfast.core.run import Recovery, Run
from holdfast.core.seed_events import delta_size
from holdfast.core.session import Session
from holdfast.core.transcript import EMPTY, Transcript, fold
from holdfast.engine.group_commit import GroupCommitWriter
from holdfast.engine.node_context import NodeContext
from holdfast.engine.output_buffer import OutputBuffer
from holdfast.engine.signals import ERASE, Notifier
from holdfast.engine.transactions import run_endings
from holdfast.engine.transactions.memory import MemoryPolicy
from holdfast.engine.transactions.run_endings import Settled
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake

log = logging.getLogger("holdfast.engine")

_PAGE: Final = 1000
_ARCHIVE_EVERY: Final = 1.0  # Seconds: it needs not be told run by run
_ARCHIVING: Final = "archiving settled journals"
_MAX_UNTITLED: Final = 10_000


class Settler:
    def __init__(self, node: NodeContext, writer: GroupCommitWriter, memory: MemoryPolicy | None = None) -> None:
        """`memory`: how completed turns enter the memory ledger; None keeps no ledger."""
        self._node = node
        self._writer = writer
        self._memory = memory
        self.end_runs: Callable[[Sequence[Run]], Awaitable[None]] | None = None
        """Ends runs that nobody executes, as their rows say."""
        self.ended: Counter[str] = Counter()  # Runs settled by this node, by status
        self.recovered = 0  # Of these, the runs of other processes
        self._unarchived: list[RunId] = []
        self._settled = Notifier()
        self.untitled: deque[Session] = deque(maxlen=_MAX_UNTITLED)
        """Sessions without a generated title that got a complete answer here."""
        self._untitled_added = Notifier()
        self._in_doubt: set[RunId] = set()  # Runs whose settling was not acknowledged

    async def next_untitled(self) -> Session:
        while not self.untitled:
            await self._untitled_added.wait()
        return self.untitled.popleft()

    async def transcript(self, rid: RunId) -> Transcript:
        """The fold over everything that is committed."""
        folded, last = EMPTY, False
        while not last:
            page = await self._node.journal.read(rid, folded.last_seq, _PAGE)
            folded, last = fold(page, folded), len(page) < _PAGE
            await anyio.lowlevel.checkpoint()  # folding a long journal must not block the event loop
        return folded

    async def seal(self, runs: Iterable[tuple[Run, Transcript]]) -> dict[RunId, Transcript]:
        """Seal those not sealed yet, in one commit; their transcripts with the endings. The journals must be fenced."""
        sealed: dict[RunId, Transcript] = {}
        sealing: list[tuple[OutputBuffer, list[Event]]] = []
        try:
            for run, transcript in runs:
                sealed[run.id] = transcript
                if not transcript.ended:
                    endings = await self._endings(run, transcript)
                    buffer = self._writer.buffer(run.id, run.epoch, transcript.last_seq, -delta_size(endings))
                    sealing.append((buffer, endings))
                    for event in endings:
                        buffer.add(event)
            for buffer, endings in sealing:
                sealed[buffer.run] = await self._wait_sealed(buffer, endings, sealed[buffer.run])
        finally:
            for buffer, _ in sealing:  # after a timeout, its events must not be committed with the next attempt's
                buffer.refuse(StorageUnavailableError("This server stopped executing the run."))
        return sealed

    async def _endings(self, run: Run, transcript: Transcript) -> list[Event]:
        seed: Sequence[Event] = ()
        # A run is claimed before it writes: if its journal is empty, it was lost, or the process died at once.
        begun = run.started_at is not None
        if not transcript.last_seq and (begun or run.continues is not None):
            seed = await self._node.store.read(lambda tx: run_endings.seed(tx, run, begun=begun))
        return [*seed, recovery_rules.terminal_event(run)]

    async def _wait_sealed(self, buffer: OutputBuffer, endings: Sequence[Event], before: Transcript) -> Transcript:
        with suppress(AppendRefusedError):  # another node sealed it or took it over
            try:
                await buffer.wait_until_durable()
                first = before.last_seq + 1
                folded = fold([entry(first + n, event) for n, event in enumerate(endings)], before)
                return replace(folded, last_seq=buffer.committed)  # the buffer may have merged some
            except TooLargeError:  # the seed does not fit: the run ends without it
                buffer.allow_seal()
                buffer.add(endings[-1])
                await buffer.wait_until_durable()
        return await self.transcript(buffer.run)

    async def settle(self, rid: RunId, folded: Transcript | None = None) -> None:
        """Settle a run whose journal is sealed. `folded`: the fold of its journal, if that is known."""
        await self._settle({rid: await self.transcript(rid) if folded is None else folded})

    async def settle_recovered(self, ended: Mapping[RunId, Transcript], recovery: Recovery | None = None) -> None:
        """The same for runs that another process left behind."""
        self.recovered += len(ended)
        await self._settle(ended, recovery)

    async def _settle(self, ended: Mapping[RunId, Transcript], recovery: Recovery | None = None) -> None:
        def work(tx: Tx) -> list[Settled]:
            return [run_endings.settle(tx, rid, each, recovery, self._memory) for rid, each in ended.items()]

        self._node.local.note_settled(ended)
        try:
            settled = await self._node.store.transact(work)
        except StorageError:
            self._in_doubt.update(ended)  # it may be settled: what follows from that is not done yet
            raise
        for rid, each in zip(ended, settled, strict=True):
            if each.is_new or rid in self._in_doubt:
                self._note(each)
        self._in_doubt.difference_update(ended)
        await self.announce_settled(ended, wake_queue=any(each.has_queue for each in settled))
        added = [run for each in settled for run in each.added]
        if added and self.end_runs is not None:
            with suppress(StorageError):  # the sweeper does it
                await self.end_runs(added)

    def _note(self, settled: Settled) -> None:
        run, session = settled.run, settled.session
        if run is None:
            return
        self._node.metrics.count_settled(run)
        if self._node.tracing is not None:
            self._node.tracing.add(run)
        if run.recovery is not None:
            self._node.earlier_usage.forget(run.owner)  # it may have ended long ago
        log.info("run %s ended: %s", run.id, run.status, extra=run.log_extra)
        if session is not None and session.titled_by == "nobody" and run.status == "complete":
            self.untitled.append(session)
            self._untitled_added.notify()
        if session is not None and not session.is_kept and not self._node.local.discard_when_read(run.id):
            self._node.hub.signals.fire(ERASE)

    async def announce_settled(self, ended: Mapping[RunId, Transcript], *, wake_queue: bool = True) -> None:
        self.ended.update(transcript.status for transcript in ended.values())
        wakes = [Wake("control", rid) for rid in ended] + ([Wake("queue")] if wake_queue else [])
        await self._node.hub.announce(*wakes, Wake("changed"))
        self._unarchived.extend(ended)
        self._settled.notify()

    async def archive(self) -> None:
        """Runs as long as the engine: tells the journal in batches which runs are settled."""
        while True:
            while not self._unarchived:
                await self._settled.wait()
            await self._archive()
            await anyio.sleep(_ARCHIVE_EVERY)

    async def archive_rest(self) -> None:
        """Before the node stops; the next start would have to read unarchived journals event by event."""
        if self._unarchived:
            with anyio.move_on_after(self._node.settings.fence_wait):
                await self._archive()

    async def _archive(self) -> None:
        settled = tuple(self._unarchived)
        try:
            await self._node.journal.settled(settled)
            self._node.outages.worked(_ARCHIVING)
        except Exception as error:  # noqa: BLE001 - they stay readable
            self._node.outages.failed(_ARCHIVING, error)
        del self._unarchived[: len(settled)]
