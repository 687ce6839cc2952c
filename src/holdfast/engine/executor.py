"""One run, executed: load the turn, let the agent answer, then end it the one way there is.

Whatever stops a run becomes a `Stop`, and the first one counts. The last append and the settling are shielded and
limited in time; what they do not get done, recovery does from the journal.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, NoReturn, TypeVar

import anyio

from holdfast.core import recovery
from holdfast.core.errors import HoldfastError, NotJson, Refused, StorageError, StorageUnavailable, TooLarge
from holdfast.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Decision,
    Event,
    Failure,
    MemoryRecalled,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolFinished,
    entry,
)
from holdfast.core.ids import ApprovalId
from holdfast.core.run import Intent, Run
from holdfast.core.seeds import said
from holdfast.core.transcript import EMPTY, fold, has_output, volume
from holdfast.core.values import dataclass, replace
from holdfast.engine.book import endings, turns
from holdfast.engine.feed import Feed
from holdfast.engine.hub import Hub, wait
from holdfast.engine.recorder import OutputLimit, Recorder
from holdfast.engine.settings import Settings
from holdfast.engine.settler import Settler
from holdfast.engine.writer import Writer
from holdfast.ports import Agent, AgentFailed, Agents, Clock, Ids, Journal, Store, Turn, Tx, Wake

T = TypeVar("T")

log = logging.getLogger("holdfast.engine")


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an execution ends before its agent is done. `ending` is how the run is sealed; without one it is let go, to
    be ended by recovery as `intent` says."""

    kind: Literal["end", "park", "hand over", "lost", "broken"]
    ending: RunEnded | None = None
    intent: Intent | None = None


def cancelled(reason: str | None) -> Stop:
    return Stop("end", RunEnded("cancelled", reason=reason))


def over_limit(message: str) -> Stop:
    return Stop("end", RunEnded("failed", reason="limit", error=Failure("limit", message)))


SHUTDOWN = Stop("end", RunEnded("interrupted", reason="shutdown"))
PARK = Stop("park")
HAND_OVER = Stop("hand over")
"""This node is stopping and another can go on where the journal ends."""
LOST = Stop("lost")
"""The lease is gone or in doubt: somebody else may be executing the run."""


@dataclass(frozen=True, slots=True)
class Deps:
    store: Store
    journal: Journal
    writer: Writer
    feed: Feed
    hub: Hub
    settler: Settler
    agents: Agents
    clock: Clock
    ids: Ids
    settings: Settings
    recall: Callable[[Turn], Awaitable[MemoryRecalled | None]] | None = None


@dataclass(frozen=True, slots=True)
class _Loaded:
    run: Run
    turn: Turn
    opening: tuple[Event, ...]
    """What this execution writes first; the turn's transcript is the fold with it."""


class Execution:
    """Implements `ports.Out` for its agent."""

    def __init__(self, run: Run, deps: Deps) -> None:
        self.run = run
        self.waiting = False
        self.gone = anyio.Event()
        self.started_at = anyio.current_time()
        self._deps = deps
        self._scope = anyio.CancelScope()
        self._stop: Stop | None = None
        self._asked: ApprovalId | None = None
        self._touched = deps.clock.now()
        self._agent: Agent | None = None
        self._recorder: Recorder | None = None
        self._begun = EMPTY

    @property
    def writes(self) -> int:
        return 0 if self._recorder is None else self._recorder.writes

    @property
    def parks(self) -> bool:
        return self._stop is PARK

    def stop(self, why: Stop) -> None:
        if self._stop is None:
            self._stop = why
            self._scope.cancel()

    # ---- what the supervisor starts ----

    async def execute(self) -> None:
        ending: RunEnded | None = None
        try:
            with self._scope:
                ending = await self._answer()
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                await self._finish(SHUTDOWN.ending)
                raise
            # Nobody told this task to stop: on asyncio a future that somebody else cancelled raises the same. Let out,
            # it would cancel the task group, and so every run and the engine.
            self.stop(self._stop_for(AgentFailed("internal", "What the agent waited for was cancelled. Try again.")))
        except Exception as error:  # noqa: BLE001 - the task boundary: whatever an agent raises ends its run, not the server
            # What breaks while the server lets go of everything is not why the run ends.
            self.stop(SHUTDOWN if anyio.current_effective_deadline() == -math.inf else self._stop_for(error))
        if ending is None and self._stop is not None:
            ending = self._stop.ending
        await self._finish(ending)

    def _stop_for(self, error: Exception) -> Stop:
        if isinstance(error, StorageError):
            return Stop("broken", intent=_storage_failed(error))
        if isinstance(error, Refused) and not isinstance(error, TooLarge | NotJson):
            return LOST
        return Stop("end", RunEnded("failed", error=self._failure(error)))

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, AgentFailed):
            return Failure(error.code, error.message)
        if isinstance(error, OutputLimit):
            limit = self._deps.settings.max_output
            return Failure("limit", f"The answer was stopped at {limit} bytes, the most that one run may produce.")
        if isinstance(error, HoldfastError):
            return Failure(error.code, str(error))
        log.exception("run %s failed", self.run.id, exc_info=error)
        return Failure("internal", f"The agent failed unexpectedly ({type(error).__name__}: {error}). Try again.")

    async def _answer(self) -> RunEnded:
        self._agent = self._deps.agents.get(self.run.agent)
        if (ended := await self._open()) is not None:
            return ended
        loaded = await self._patiently(lambda: self._deps.store.read(self._load))
        self.heed(loaded.run)  # it may have been asked to end between the claim and now
        await anyio.lowlevel.checkpoint()
        self.run = loaded.run
        if self._asks_still(loaded):
            self.stop(PARK)
            await anyio.sleep_forever()
        if told_before := said(loaded.opening):
            self._record(-told_before)
        for event in loaded.opening:
            self._add(event)
        if self._agent is None:
            raise AgentFailed("no-agent", f"There is no agent named {self.run.agent!r}. Choose another one.")
        finish = await self._agent.run(await self._remember(loaded.turn), self)
        assert self._recorder is not None
        await self._recorder.flushed()
        if not self._recorder.spoke and not has_output(loaded.turn.transcript.parts):
            raise AgentFailed("empty-answer", "The model ended its answer without saying anything. Try again.")
        return RunEnded("complete", finish_reason=finish)

    async def _remember(self, turn: Turn) -> Turn:
        """Once in the life of a run and of those that continue it, before anything is said: with parts it was."""
        if self._deps.recall is None or self._begun.last_seq or turn.transcript.parts:
            return turn
        recalled = await self._deps.recall(turn)
        if recalled is None:
            return turn
        self._add(recalled)
        told = turn.transcript
        return replace(turn, transcript=fold([entry(told.last_seq + 1, recalled)], told))

    def _asks_still(self, loaded: _Loaded) -> bool:
        """An earlier life asked and could not park: the question stands, and the agent is not to ask it again."""
        asked = self._begun.approval
        if asked is None or asked.call_id in loaded.turn.decisions or self._agent is None:
            return False
        self._asked = asked.approval_id
        return self._agent.can_continue

    def heed(self, row: Run | None) -> None:
        """Stop if the store says so. A row of an earlier epoch is old news, of an earlier execution."""
        if row is None or row.epoch > self.run.epoch:
            self.stop(LOST)
        elif row.epoch == self.run.epoch and row.intent is not None:
            self.stop(Stop("end", recovery.ending(row)))

    async def _give_way(self) -> NoReturn:
        """The store refused to let the run go on: find out why, and stop."""
        self.heed(await self._deps.store.read(lambda tx: tx.run(self.run.id)))
        await anyio.sleep_forever()
        raise AssertionError

    async def _open(self) -> RunEnded | None:
        """Be the journal's only writer. A first epoch has no predecessor, so there is nothing to fence or read. If an
        earlier life did seal it, there is nothing to do but to settle."""
        run = self.run
        if run.epoch > 1:
            await self._patiently(lambda: self._deps.journal.fence({run.id: run.epoch}))
            self._begun = await self._patiently(lambda: self._deps.settler.transcript(run.id))
        self._record(volume(self._begun.parts))
        self._deps.feed.open(run.id, self._begun.last_seq, sealed=self._begun.ended)
        return self._sealed_ending()

    def _record(self, spent: int) -> None:
        """Begin to record, or begin anew before anything was. `spent`: what counts against the limit already."""
        self._recorder = self._deps.writer.recorder(self.run.id, self.run.epoch, self._begun.last_seq, spent)
        self._recorder.on_refused = lambda why: self.stop(self._stop_for(why))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Storage that is away for a moment costs the moment, as it does the writer."""
        pause, give_up_at = 0.05, anyio.current_time() + self._deps.settings.storage_patience
        while True:
            try:
                return await work()
            except StorageError:
                if anyio.current_time() + pause >= give_up_at:
                    raise
                await anyio.sleep(pause)
                pause = min(pause * 2, 2.0)

    def _sealed_ending(self) -> RunEnded | None:
        begun = self._begun
        if begun.status == "streaming":
            return None
        return RunEnded(begun.status, begun.reason, begun.finish_reason, begun.error)

    def _load(self, tx: Tx) -> _Loaded:
        run = tx.run(self.run.id)
        session = tx.session(self.run.session_id)
        if run is None or session is None:
            raise AgentFailed("session-gone", "The session was deleted.")
        asked = None if self._begun.approval is None else tx.approval(self._begun.approval.approval_id)
        opening: list[Event] = []
        decisions: dict[str, Decision] = {}
        if self._begun.last_seq:
            opening.append(RunResumed(run.epoch))
            if asked is not None and asked.decision is not None:
                decisions[asked.call_id] = asked.decision
                opening.append(ApprovalResolved(asked.id, asked.decision, asked.note))
        else:
            opening += endings.seed(tx, run)
            answers = (run.session_id, run.message_id, run.user_message_id)
            opening.append(RunStarted(run.id, *answers, run.model, run.agent))
        model_input = turns.model_input(tx, run, session)
        first = self._begun.last_seq + 1
        transcript = fold([entry(first + n, event) for n, event in enumerate(opening)], self._begun)
        return _Loaded(run, Turn(run, session, model_input, transcript, decisions), tuple(opening))

    # ---- ports.Out ----

    def _add(self, event: Event) -> None:
        assert self._recorder is not None
        self._recorder.add(event)

    async def write(self, event: Event) -> None:
        recorder = self._recorder
        assert recorder is not None
        if recorder.add(event):
            await recorder.drained()

    def put(self, event: Event) -> bool:
        recorder = self._recorder
        assert recorder is not None
        return not recorder.add(event)

    async def room(self) -> None:
        assert self._recorder is not None
        await self._recorder.drained()

    async def commit(self, event: Event) -> None:
        self._add(event)
        assert self._recorder is not None
        await self._recorder.flushed()
        if isinstance(event, ToolFinished):
            await self._touch()

    def new_approval_id(self) -> ApprovalId:
        return ApprovalId(self._deps.ids.new("apr"))

    async def ask(self, question: ApprovalRequested) -> Decision:
        run = self.run
        if not await self._deps.store.transact(lambda tx: turns.ask(tx, run.id, run.epoch, question)):
            await self._give_way()
        await self._deps.hub.announce(Wake("changed"))
        await self.commit(question)
        self._asked = question.approval_id
        if self._agent is not None and self._agent.can_continue:
            self.stop(PARK)
            await anyio.sleep_forever()
        self.waiting = True
        self._deps.hub.signals.fire(("queue", None))  # whoever waits for a person leaves a place to others
        try:
            decision, note = await self._decision(question)
        finally:
            self.waiting = False
        await self.commit(ApprovalResolved(question.approval_id, decision, note))
        return decision

    async def _decision(self, question: ApprovalRequested) -> tuple[Decision, str | None]:
        store, run = self._deps.store, self.run
        parked = await store.transact(
            lambda tx: turns.park(tx, run.id, run.epoch, question.approval_id, keep_lease=True)
        )
        if parked is None:
            await self._give_way()
        await self._deps.hub.announce(Wake("changed"))
        while True:
            signal = self._deps.hub.signals.armed(("control", run.id))
            approval = await self._patiently(lambda: store.read(lambda tx: tx.approval(question.approval_id)))
            if approval is not None and approval.decision is not None:
                return approval.decision, approval.note
            await wait(signal, self._deps.settings.poll)

    async def _touch(self) -> None:
        now = self._deps.clock.now()
        if abs(now - self._touched) >= self._deps.settings.touch_every:
            self._touched = now
            with suppress(StorageError):  # P2: output needs the journal alone; the next tool says it
                await self._deps.store.transact(lambda tx: turns.touch(tx, self.run.session_id))

    # ---- the end ----

    async def _finish(self, ending: RunEnded | None) -> None:
        """Shielded: seal and settle, or park. What is left undone is let go, and recovery does it."""
        done = self._stop is LOST
        intent = None if self._stop is None else self._stop.intent
        with anyio.move_on_after(self._deps.settings.final_save, shield=True):
            try:
                if self._stop is PARK and ending is None:
                    ending = await self._park()
                    done = ending is None
                if self._stop is HAND_OVER and ending is None:
                    await self._hand_over()
                    done = True
                if ending is not None and not done:
                    intent = _unsealed(ending, StorageUnavailable("It did not answer in time."))  # until more is known
                    trouble = await self._seal(ending)
                    intent = None if trouble is None else _unsealed(ending, trouble)
                    if trouble is None:
                        await self._deps.settler.settle(self.run.id)
                        done = True
            except Refused:
                done = True  # fenced: whoever took over ends it
            except Exception:
                log.warning("run %s could not be settled yet", self.run.id, exc_info=True)
        if self._recorder is not None and (not done or self._stop is LOST):
            # what the writer has not taken yet is not to meet the words of whoever takes over in one commit
            self._recorder.refuse(StorageUnavailable("The run was let go."))
        self._deps.feed.close(self.run.id, broken=not done)
        if not done:
            await self._deps.settler.let_go(self.run, intent)

    async def _seal(self, ending: RunEnded) -> StorageError | None:
        """Append the terminal event; or why it could not be stored."""
        if self._begun.ended:
            return None
        try:
            if self._recorder is None:  # it never got as far as its journal
                head = (await self._deps.journal.heads([self.run.id]))[self.run.id]
                self._recorder = self._deps.writer.recorder(self.run.id, self.run.epoch, head.last_seq)
            self._recorder.forgive()
            if not self._recorder.writes and not self._recorder.committed:
                for event in await self._deps.store.read(lambda tx: endings.seed(tx, self.run)):
                    self._recorder.add(event)
            self._recorder.add(ending)
            await self._recorder.flushed()
        except StorageError as error:
            return error
        return None

    async def _hand_over(self) -> None:
        """Back into the queue, with everything that was written before it in the journal."""
        if self._recorder is not None:
            await self._recorder.flushed()
        await self._deps.store.transact(lambda tx: turns.unclaim(tx, [self.run]))
        await self._deps.hub.announce(Wake("queue"), Wake("changed"))

    async def _park(self) -> RunEnded | None:
        """None: the run waits in the store and nobody holds it. Otherwise it was asked to end meanwhile."""
        run, asked = self.run, self._asked
        assert asked is not None
        parked = await self._deps.store.transact(lambda tx: turns.park(tx, run.id, run.epoch, asked, keep_lease=False))
        if parked is not None:
            await self._deps.hub.announce(Wake("control", run.id), Wake("queue"), Wake("changed"))
            return None
        now = await self._deps.store.read(lambda tx: tx.run(run.id))
        if now is None or now.epoch != run.epoch or now.intent is None:
            return None
        return recovery.ending(now)


def _unsealed(ending: RunEnded, error: StorageError) -> Intent | None:
    """How recovery is to end a run whose terminal event could not be stored. A run that had failed or was cancelled has
    its own reasons; without an intent it is interrupted, which is what a shutdown says of it too."""
    match ending.status:
        case "cancelled" | "failed":
            return Intent(ending.status, ending.reason, ending.error)
        case "interrupted":
            return None
        case _:
            return _storage_failed(error)


def _storage_failed(error: StorageError) -> Intent:
    return Intent("failed", error=Failure(error.code, f"The output could not be stored: {error}"))
