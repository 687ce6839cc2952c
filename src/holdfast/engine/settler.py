"""Ending runs: settle what is sealed, take over what nobody executes, look again for output that could not be read.

settle      fold the sealed journal into the message (one transaction, once)
end_stale   epoch, fence, seal, settle: the same for a crash, a cancelled queue entry and a parked run
look        section J: the journal was away when the run was ended
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

import anyio

from holdfast.core import recovery as verdicts
from holdfast.core.errors import (
    BrokenSequence,
    JournalPruned,
    Refused,
    StorageError,
    StorageUnavailable,
    TooLarge,
)
from holdfast.core.events import Entry, Event, entry
from holdfast.core.ids import RunId
from holdfast.core.recovery import Look
from holdfast.core.run import Intent, Recovery, Run, is_live
from holdfast.core.seeds import said
from holdfast.core.transcript import EMPTY, Transcript, fold, has_output
from holdfast.core.values import replace
from holdfast.engine.bell import Bell
from holdfast.engine.book import endings, rows, turns
from holdfast.engine.book.remembering import Keeping
from holdfast.engine.hub import Hub
from holdfast.engine.recorder import Recorder
from holdfast.engine.settings import Settings
from holdfast.engine.writer import Writer
from holdfast.ports import Agents, Head, Journal, Store, Tx, Wake

log = logging.getLogger("holdfast.engine")

_PAGE = 1000
_TOGETHER = 500
"""Runs settled in one transaction."""
_REMEMBERED = 10_000
_SHORT = 5000
"""Events that are read at once, of however many runs: some milliseconds of folding between two looks at the loop."""


class Settler:
    def __init__(
        self,
        store: Store,
        journal: Journal,
        writer: Writer,
        hub: Hub,
        agents: Agents,
        me: rows.Me,
        settings: Settings,
        keeping: Keeping | None = None,
    ) -> None:
        self._store = store
        self._journal = journal
        self._writer = writer
        self._hub = hub
        self._agents = agents
        self._me = me
        self._settings = settings
        self.keeping = keeping
        self.held: set[RunId] = set()
        """Runs that a task of this process executes."""
        self.ending: set[RunId] = set()
        """Runs that one is ending. A lease of ours of a run that is in neither is nobody's. Two sets: a run that is put
        back while others are being ended may be executed before they are."""
        self.connections: set[RunId] = set()
        """Attached runs whose client is connected here. One of ours without one has lost its client."""
        self.unfinished: dict[RunId, tuple[Run, Intent | None]] = {}
        """Runs that stopped here and could be neither ended nor handed back, and how they are to end."""
        self.claiming = 0
        """Claims under way: a lease of ours that is not held yet may be about to be."""
        self.claims = anyio.Lock()
        """Held while a claim is under way. Who holds it can tell such a lease from one that nobody has."""
        self.recovered = 0
        self.ended: Counter[str] = Counter()
        """How the runs ended that were settled here."""
        self.settled_here: dict[RunId, None] = {}
        """The newest runs that this node settles, or is about to: what follows from an end is one node's to do."""
        self._settled: list[RunId] = []
        self._bell = Bell()
        self._rest = Bell()

    def can_continue(self, run: Run) -> bool:
        try:
            agent = self._agents.get(run.agent)
        except Exception:
            log.warning("agent %s cannot be had", run.agent, exc_info=True)
            return False
        return agent is not None and agent.can_continue

    # ---- settle ----

    async def transcript(self, rid: RunId) -> Transcript:
        """The fold over all that is committed."""
        folded, last = EMPTY, False
        while not last:
            page = await self._journal.read(rid, folded.last_seq, _PAGE)
            folded, last = fold(page, folded), len(page) < _PAGE
            await anyio.lowlevel.checkpoint()  # a long journal must not hold up the loop
        return folded

    async def settle(self, rid: RunId) -> None:
        """The journal is sealed: make the store say so."""
        await self._settle({rid: (await self.transcript(rid), None)})

    async def _settle(self, ended: dict[RunId, tuple[Transcript, Recovery | None]]) -> None:
        def work(tx: Tx) -> None:
            for rid, (transcript, recovery) in ended.items():
                endings.settle(tx, rid, transcript, recovery, self.keeping)

        self._remember(ended)
        await self._store.transact(work)
        await self._tell_settled({rid: transcript for rid, (transcript, _) in ended.items()})

    def _remember(self, rids: Iterable[RunId]) -> None:
        """Before they are settled: whoever hears of it must find them here."""
        self.settled_here.update(dict.fromkeys(rids))
        while len(self.settled_here) > _REMEMBERED:
            del self.settled_here[next(iter(self.settled_here))]

    async def _tell_settled(self, ended: Mapping[RunId, Transcript]) -> None:
        self.ended.update(transcript.status for transcript in ended.values())
        await self._hub.announce(*(Wake("control", rid) for rid in ended), Wake("queue"), Wake("changed"))
        self._settled.extend(ended)
        self._bell.ring()

    async def archive(self) -> None:
        """Runs for the engine's life: tells the journal what is settled, many at a time, while nobody waits for it."""
        while True:
            while not self._settled:
                await self._bell.wait()
            await self._archive()

    async def archive_rest(self) -> None:
        """What is left when a node stops: the next start would have to read it, event by event."""
        if self._settled:
            with anyio.move_on_after(self._settings.fence_wait):
                await self._archive()

    async def _archive(self) -> None:
        settled = tuple(self._settled)
        try:
            await self._journal.settled(settled)
        except Exception:
            log.warning("settled journals could not be archived; they stay readable", exc_info=True)
        del self._settled[: len(settled)]

    # ---- take over ----

    def _is_live(self, run: Run, now: float) -> bool:
        if not is_live(run.lease, self._me.incarnation, now):
            return False
        assert run.lease is not None
        if run.lease.holder != self._me.node or self._has(run.id):
            return True
        return not run.is_pending and self.claiming > 0 and self._left(run) is None  # a pending run is not claimed

    def _has(self, rid: RunId) -> bool:
        return rid in self.held or rid in self.ending

    def _left(self, run: Run) -> tuple[Run, Intent | None] | None:
        """What this process knows of a run that it let go of and nobody took up since."""
        left = self.unfinished.get(run.id)
        return left if left is not None and left[0].epoch == run.epoch else None

    def _as_known(self, run: Run) -> Run:
        """With what only this process knows: how a run that it let go of is to end, and that a client has left."""
        left = self._left(run)
        if left is not None:
            run = replace(run, intent=run.intent or left[1])
        ours = run.connection is not None and run.connection.holder == self._me.node
        if not ours or run.id in self.connections or not run.is_open:
            return run
        return replace(run, connection=None, intent=run.intent or rows.DISCONNECTED)

    def find_stale(self, runs: Sequence[Run], now: float) -> list[Run]:
        """Of runs just read, those that nobody executes and that do not simply wait their turn. `now` is the
        store's."""
        return [
            run
            for run in map(self._as_known, runs)
            if not self._is_live(run, now)
            and verdicts.verdict(
                run,
                incarnation=self._me.incarnation,
                now=now,
                can_continue=self.can_continue(run),
                policy=self._settings.recovery,
                gone=True,
            )
            != "leave"
        ]

    async def end_stale(self, seen: Iterable[Run]) -> None:
        """End them, or put them back into the queue where automatic continue is on. Each only if it is still as it was
        seen; who comes second finds it held and leaves it."""
        runs = [run for run in seen if not self._has(run.id)]
        for at in range(0, len(runs), _TOGETHER):
            some = runs[at : at + _TOGETHER]
            # shielded: a reader that leaves in the middle would leave them to the next tick
            with self._hold([run.id for run in some]), anyio.move_on_after(self._settings.final_save, shield=True):
                await self._end(some)

    @contextmanager
    def _hold(self, rids: Collection[RunId]) -> Iterator[None]:
        self.ending.update(rids)
        try:
            yield
        finally:
            self.ending.difference_update(rids)
            self._rest.ring()

    async def at_rest(self) -> None:
        """Wait until nothing is being ended here: a reader that met a stale run may be in the middle of it.
        Shielded and limited, as that is."""
        with anyio.move_on_after(self._settings.final_save, shield=True):
            while self.ending:
                await self._rest.wait()

    def _limit(self) -> AbstractContextManager[anyio.CancelScope]:
        return anyio.fail_after(self._settings.fence_wait)

    async def _end(self, seen: Sequence[Run]) -> None:
        policy = self._settings.recovery
        sealed = await self._sealed(seen) if policy.auto_continue else frozenset()
        ours = await self._store.transact(
            lambda tx: endings.take_over(tx, self._me, seen, self.can_continue, policy, sealed)
        )
        if len(ours) < len(seen):  # some may have been put back
            await self._hub.announce(Wake("queue"), Wake("changed"))
        left = {run.id: run for run in ours}
        told: dict[RunId, Transcript] = {}
        try:
            with self._limit():
                heads = await self._journal.fence({run.id: run.epoch for run in ours})
            for some in _portions(ours, heads):
                pages = await self._pages(some) if len(some) > 1 else {}
                for run in some:
                    # a journal that is broken leaves this one run pending; one that does not answer, all that are left
                    with suppress(BrokenSequence, JournalPruned):
                        told[run.id] = await self._told(run.id, pages)
                        if await self._park_again(run, told[run.id]):
                            del left[run.id], told[run.id]
            with self._limit():
                told = await self._seal([(left[rid], transcript) for rid, transcript in told.items()])
        except (StorageError, TimeoutError):
            told = {}
        await self._leave_pending([run for rid, run in left.items() if rid not in told])
        ended = {rid: (transcript, None) for rid, transcript in told.items() if transcript.ended}
        self.recovered += len(ended)
        if ended:
            await self._settle(dict(ended))

    async def _pages(self, runs: Sequence[Run]) -> Mapping[RunId, Sequence[Entry]]:
        with self._limit(), suppress(JournalPruned):  # of one of them: each is read by itself
            return await self._journal.read_whole([run.id for run in runs])
        return {}

    async def _told(self, rid: RunId, pages: Mapping[RunId, Sequence[Entry]]) -> Transcript:
        if rid in pages:
            return fold(pages[rid])
        with self._limit():
            return await self.transcript(rid)

    async def _sealed(self, runs: Sequence[Run]) -> frozenset[RunId]:
        """Rule 4 comes before automatic continue: a crash between seal and settle only leaves the settling to do."""
        try:
            with self._limit():
                heads = await self._journal.heads([run.id for run in runs])
        except (StorageError, TimeoutError):
            return frozenset()
        return frozenset(rid for rid, head in heads.items() if head.sealed)

    async def _leave_pending(self, runs: Sequence[Run]) -> None:
        if runs:
            await self._store.transact(lambda tx: endings.mark_pending(tx, runs))
            await self._hub.announce(*(Wake("control", run.id) for run in runs), Wake("queue"), Wake("changed"))

    async def _seal(self, runs: Iterable[tuple[Run, Transcript]]) -> dict[RunId, Transcript]:
        """Those that are not sealed yet, in one commit; the transcripts with their endings."""
        told: dict[RunId, Transcript] = {}
        sealing: list[tuple[Recorder, list[Event]]] = []
        try:
            for run, transcript in runs:
                told[run.id] = transcript
                if not transcript.ended:
                    endings = await self._ending(run, transcript)
                    recorder = self._writer.recorder(run.id, run.epoch, transcript.last_seq, -said(endings))
                    sealing.append((recorder, endings))
                    for event in endings:
                        recorder.add(event)
            for recorder, endings in sealing:
                told[recorder.run] = await self._sealed_as(recorder, endings, told[recorder.run])
        finally:
            for recorder, _ in sealing:  # who waits no longer must not meet the next one to try in one commit
                recorder.refuse(StorageUnavailable("The run was let go."))
        return told

    async def _sealed_as(self, recorder: Recorder, endings: Sequence[Event], before: Transcript) -> Transcript:
        with suppress(Refused):  # somebody else sealed it or took it over meanwhile
            try:
                await recorder.flushed()
                first = before.last_seq + 1
                folded = fold([entry(first + n, event) for n, event in enumerate(endings)], before)
                return replace(folded, last_seq=recorder.committed)  # which may have joined some
            except TooLarge:  # what it was to go on from: it ends without that
                recorder.forgive()
                recorder.add(endings[-1])
                await recorder.flushed()
        return await self.transcript(recorder.run)

    async def _ending(self, run: Run, told: Transcript) -> list[Event]:
        seed: Sequence[Event] = ()
        if run.continues is not None and not told.last_seq:
            seed = await self._store.read(lambda tx: endings.seed(tx, run))
        return [*seed, verdicts.ending(run)]

    async def _park_again(self, run: Run, told: Transcript) -> bool:
        """The process died between asking and waiting: the question stands, if the agent can take it up later."""
        asked = told.approval
        if asked is None or run.intent is not None or run.status != "running":
            return False
        if run.lifetime == "attached" or not self.can_continue(run):
            return False
        with self._limit():
            parked = await self._store.transact(
                lambda tx: turns.park(tx, run.id, run.epoch, asked.approval_id, keep_lease=False)
            )
        if parked is None:
            return False
        await self._hub.announce(Wake("queue"), Wake("changed"))  # it may have been answered already, and be queued
        return True

    async def let_go(self, run: Run, intent: Intent | None) -> None:
        """Stop holding a run without having ended it. If the store cannot be told, this process remembers."""
        self.unfinished[run.id] = (run, intent)
        with anyio.move_on_after(self._settings.fence_wait, shield=True), suppress(StorageError):
            await self.hand_back()

    async def hand_back(self) -> None:
        for rid, (run, intent) in list(self.unfinished.items()):
            work = partial(turns.give_up, me=self._me, rid=rid, epoch=run.epoch, intent=intent)
            await self._store.transact(work)
            self.unfinished.pop(rid, None)
            await self._hub.announce(Wake("changed"))

    # ---- look again ----

    async def look(self, run: Run, now: float, *, insist: bool = False) -> None:
        """One attempt to recover a pending run, by one reader at a time."""
        if self._has(run.id) or self._is_live(run, now):
            return
        with self._hold([run.id]):
            await self._look(run, now, insist)

    async def _look(self, run: Run, now: float, insist: bool) -> None:
        policy = self._settings.recovery
        mine = await self._store.transact(lambda tx: endings.take_look(tx, self._me, run))
        if mine is None or mine.recovery is None:
            return
        if not insist and not verdicts.due(mine.recovery, now, policy):
            await self._end_look(mine, Recovery("none"))
            return
        found: Look = "unavailable"
        transcript = EMPTY
        try:
            with self._limit():
                transcript = await self._fence_and_seal(mine)
            if transcript.ended:
                found = "output" if has_output(transcript.parts) else "empty"
        except (StorageError, TimeoutError, JournalPruned, BrokenSequence):
            pass
        after = verdicts.after_look(mine.recovery, found, now, policy)
        if found == "unavailable" or after.state == "pending":
            await self._end_look(mine, after)
        elif after.state == "none":
            if await self._store.transact(partial(endings.end_in_vain, held=mine, transcript=transcript)):
                await self._tell_settled({mine.id: transcript})
        else:
            self.recovered += 1
            await self._settle({mine.id: (transcript, after)})

    async def _end_look(self, run: Run, after: Recovery) -> None:
        await self._store.transact(partial(endings.end_look, held=run, recovery=after))
        if after.state != "pending":
            await self._hub.announce(Wake("control", run.id), Wake("changed"))

    async def _fence_and_seal(self, run: Run) -> Transcript:
        await self._journal.fence({run.id: run.epoch})
        return (await self._seal([(run, await self.transcript(run.id))]))[run.id]


def _portions(runs: Sequence[Run], heads: Mapping[RunId, Head]) -> Iterator[list[Run]]:
    """In portions of which each is one read: opening a directory with a thousand unfinished runs took as long to hand
    the reads from thread to thread as to read. A long journal is a portion by itself, and is read in pages."""
    some: list[Run] = []
    events = 0
    for run in runs:
        if some and events + heads[run.id].last_seq > _SHORT:
            yield some
            some, events = [], 0
        some.append(run)
        events += heads[run.id].last_seq
    if some:
        yield some
