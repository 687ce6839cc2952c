"""Executes one run: loads the turn, lets the agent answer, then seals and settles the run, parks it or hands it over.
Time limits are enforced by `engine.supervisor`, the reasons are in `engine.stop_reasons`.
An answer without output fails here for every agent, and per model call in `agents.chat.answer_reader`.

Whatever stops a run becomes a `StopReason`, and the first one counts. The final append and the settling are shielded
and time-limited; recovery does from the journal what they leave undone.
"""

import logging
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio

from holdfast.core import events as ev
from holdfast.core import recovery_rules
from holdfast.core.errors import (
    AppendRefusedError,
    HoldfastError,
    NotJsonError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)
from holdfast.core.ids import ApprovalId
from holdfast.core.run import Intent, Run
from holdfast.core.seed_events import delta_size
from holdfast.core.size_text import size_text
from holdfast.core.transcript import EMPTY, Transcript, fold, has_output, volume
from holdfast.engine.agent_output import RecordedOutput
from holdfast.engine.group_commit import GroupCommitWriter
from holdfast.engine.messages import input_of_run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.output_buffer import OutputBuffer, OutputLimitError
from holdfast.engine.recovery import RunRecovery
from holdfast.engine.run_feed import RunFeed
from holdfast.engine.session_memory import SessionMemory
from holdfast.engine.settler import Settler
from holdfast.engine.stop_reasons import HAND_OVER, LOST, PARK, SHUTDOWN, StopReason, storage_broken, storage_failed
from holdfast.engine.transactions import approvals, run_endings, run_queue
from holdfast.engine.transactions.run_queue import ClaimedRun
from holdfast.ports.agent import Agent, AgentError, Turn
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake

log = logging.getLogger("holdfast.engine")

_SETTLING: Final = "settling runs"


@dataclass(frozen=True, slots=True)
class ExecutorDeps:
    """What every execution of this node shares."""

    node: NodeContext
    writer: GroupCommitWriter
    feed: RunFeed
    settler: Settler
    recovery: RunRecovery
    memory: SessionMemory | None = None


class Execution:
    def __init__(self, claimed: ClaimedRun, deps: ExecutorDeps) -> None:
        self.run = claimed.run
        self._may_have_written = claimed.may_have_written
        self.done = anyio.Event()
        self.started_at = self._created_at = anyio.current_time()  # the first grows while the run waits for a person
        self._deps = deps
        self._node = deps.node
        self._scope = anyio.CancelScope()
        self._stop: StopReason | None = None
        self._finishing = False  # a stop no longer cancels anything
        self._approval: ApprovalId | None = None  # The approval that the run parks for
        self._agent: Agent | None = None
        self._buffer: OutputBuffer | None = None
        self._output: RecordedOutput | None = None
        self._begun = EMPTY  # the fold of what earlier executions wrote
        self._memory: str | None = None  # the provider to recall from

    @property
    def writes(self) -> int:
        return 0 if self._buffer is None else self._buffer.writes

    @property
    def waiting(self) -> bool:
        """Whether it waits for a person while the agent's task is kept."""
        return self._output is not None and self._output.waiting

    @property
    def parks(self) -> bool:
        return self._stop is PARK

    def stop(self, why: StopReason) -> None:
        """Cancel whatever the execution awaits; the first reason counts."""
        if self._stop is None:
            self._stop = why
            if not self._finishing:
                self._scope.cancel()

    def apply_intent(self, row: Run | None) -> None:
        """Stop if the run's row says so. A row of an earlier epoch belongs to an earlier execution."""
        if row is None or row.epoch > self.run.epoch:
            self.stop(LOST)
        elif row.epoch == self.run.epoch and row.intent is not None:
            self.stop(StopReason("end", recovery_rules.terminal_event(row)))

    def open_first(self) -> None:
        """A first epoch has no predecessor, so there is nothing to fence or read: subscribers can follow from the
        start."""
        if self.run.epoch == 1:
            self._record(0)
            self._deps.feed.open(self.run.id, 0)

    async def execute(self) -> None:
        ending: ev.RunEnded | None = None
        try:
            with self._scope:
                ending = await self._answer()
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                await self._finish(SHUTDOWN.ending)
                raise
            # Nobody cancelled this task: on asyncio, awaiting a future that somebody else cancelled raises the same.
            # If it were raised, it would cancel the task group, and with it every run and the engine.
            self.stop(self._stop_for(AgentError("internal", "A step of the agent was cancelled. Try again.")))
        except Exception as error:  # noqa: BLE001 - the task boundary: whatever an agent raises ends its run, not the server
            # An error while the engine is being cancelled is not the reason why the run ends.
            self.stop(SHUTDOWN if anyio.current_effective_deadline() == -math.inf else self._stop_for(error))
        self._finishing = True
        if ending is None and self._buffer is not None:
            ending = self._buffer.ending  # perhaps durable already, so that it can no longer be taken back
        if ending is None and self._stop is not None:
            ending = self._stop.ending
        await self._finish(ending)

    def _stop_for(self, error: Exception) -> StopReason:
        if isinstance(error, StorageError):
            return storage_broken(error)
        if isinstance(error, AppendRefusedError) and not isinstance(error, TooLargeError | NotJsonError):
            return LOST
        return StopReason("end", ev.RunEnded("failed", error=self._failure(error)))

    def _failure(self, error: Exception) -> ev.Failure:
        if isinstance(error, AgentError):
            return ev.Failure(error.code, error.message)
        if isinstance(error, OutputLimitError):
            limit = self._node.settings.max_output
            return ev.Failure(
                "limit", f"The answer was stopped at {size_text(limit)}, the most that one run may produce."
            )
        if isinstance(error, HoldfastError):
            return ev.Failure(error.code, str(error))
        log.exception("run %s failed", self.run.id, exc_info=error, extra=self.run.log_extra)
        return ev.Failure("internal", f"The agent failed unexpectedly ({type(error).__name__}: {error}). Try again.")

    # ---- answering ----

    async def _answer(self) -> ev.RunEnded:
        self._agent = self._node.agents.get(self.run.agent)
        if (sealed := await self._open()) is not None:
            return sealed
        turn, opening = await self._node.retry_storage(lambda: self._node.store.read(self._load))
        self.apply_intent(turn.run)  # its end may have been requested since the claim
        await anyio.lowlevel.checkpoint()
        self.run = turn.run
        if self._is_undecided(turn):
            self.stop(PARK)
            await anyio.sleep_forever()
        buffer = self._record(-delta_size(opening) or volume(self._begun.parts))
        for event in opening:
            buffer.add(event)
        if self._agent is None:
            raise AgentError("no-agent", f"There is no agent named {self.run.agent!r}. Choose another one.")
        park = self._park_for if self._agent.can_park else None
        now = self._node.clock.now()
        end_runs = self._deps.recovery.resolve_orphans
        self._output = RecordedOutput(self.run, buffer, self._node, park, self.apply_intent, end_runs, now)
        finish_reason = await self._agent.run(await self._recall(turn, buffer), self._output)
        if not buffer.has_output and not has_output(turn.transcript.parts):
            raise AgentError("empty-answer", "The model ended its answer without saying anything. Try again.")
        ending = ev.RunEnded("complete", finish_reason=finish_reason)
        buffer.add(ending)  # before the last output is durable: both are one commit
        await buffer.wait_until_durable()
        return ending

    async def _open(self) -> ev.RunEnded | None:
        """Become the journal's only writer; returns the ending if an earlier execution sealed it."""
        run, retry = self.run, self._node.retry_storage
        if run.epoch == 1:
            self._node.metrics.queue.observe((run.started_at or run.created_at) - run.created_at)
            return None
        await retry(lambda: self._node.journal.fence({run.id: run.epoch}))
        begun = self._begun = await retry(lambda: self._deps.settler.transcript(run.id))
        self._record(volume(begun.parts))
        self._deps.feed.open(run.id, begun.last_seq, sealed=begun.ended)
        if begun.status == "streaming":
            return None
        return ev.RunEnded(begun.status, begun.reason, begun.finish_reason, begun.error)

    def _record(self, spent: int) -> OutputBuffer:
        """Start recording. `spent` is output that already counts against the limit; negative allows that much more."""
        buffer = self._deps.writer.buffer(self.run.id, self.run.epoch, self._begun.last_seq, spent)
        buffer.on_refused = lambda why: self.stop(self._stop_for(why))
        if self.run.epoch == 1:
            buffer.on_output = self._note_first_output
        self._buffer = buffer
        return buffer

    def _note_first_output(self) -> None:
        queued = (self.run.started_at or self.run.created_at) - self.run.created_at
        self._node.metrics.first_token.observe(queued + anyio.current_time() - self._created_at)

    def _load(self, tx: Tx) -> tuple[Turn, list[ev.Event]]:
        """The turn, and the events that this execution writes first; its transcript is the fold including them."""
        run = tx.run(self.run.id)
        session = tx.session(self.run.session_id)
        if run is None or session is None:
            raise AgentError("session-gone", "The session was deleted.")
        asked = None if self._begun.approval is None else tx.approval(self._begun.approval.approval_id)
        opening: list[ev.Event] = []
        decisions: dict[str, ev.Decision] = dict.fromkeys(approvals.granted_calls(tx, run), "once")
        if self._begun.last_seq:
            opening.append(ev.RunResumed(run.epoch))
            if asked is not None and asked.decision is not None:
                decisions[asked.call_id] = asked.decision
                opening += approvals.resolution(asked, asked.decision)
        else:
            opening += self._first_events(tx, run)
        first = self._begun.last_seq + 1
        transcript = fold([ev.entry(first + n, event) for n, event in enumerate(opening)], self._begun)
        past, preferences = input_of_run(tx, run, session), tx.settings(run.owner)
        recalls = self._deps.memory is not None and not self._begun.last_seq and not transcript.parts
        self._memory = self._deps.memory.handle_of(tx, session, run) if recalls and self._deps.memory else None
        return Turn(run, session, past, transcript, decisions, preferences), opening

    def _first_events(self, tx: Tx, run: Run) -> list[ev.Event]:
        """The first events of an empty journal. If there was an earlier execution, its output was lost."""
        tracing = self._node.tracing
        request = None if tracing is None else tracing.traceparent_of(run.id)
        ids = run.id, run.session_id, run.message_id, run.user_message_id
        started = ev.RunStarted(*ids, run.model, run.agent, request)
        return [*run_endings.seed(tx, run, begun=self._may_have_written), started]

    def _is_undecided(self, turn: Turn) -> bool:
        """Whether an earlier execution asked a question and did not park: it is still open, and is not asked again."""
        asked = self._begun.approval
        if asked is None or asked.call_id in turn.decisions or self._agent is None:
            return False
        self._approval = asked.approval_id
        return self._agent.can_park

    def _park_for(self, approval: ApprovalId) -> None:
        self._approval = approval
        self.stop(PARK)

    async def _recall(self, turn: Turn, buffer: OutputBuffer) -> Turn:
        """Recall from memory once per run, before any output; a continued run has the earlier one's parts."""
        if self._deps.memory is None or self._memory is None:
            return turn
        recalled = await self._deps.memory.recall(turn, self._memory)
        if recalled is None:
            return turn
        buffer.add(recalled)
        transcript = fold([ev.entry(turn.transcript.last_seq + 1, recalled)], turn.transcript)
        return replace(turn, transcript=transcript)

    # ---- finishing ----

    async def _finish(self, ending: ev.RunEnded | None) -> None:
        """Seal and settle, park, or hand over, shielded; what is left undone is abandoned to recovery."""
        done = self._stop is LOST
        intent = None if self._stop is None else self._stop.intent
        with anyio.move_on_after(self._node.settings.final_save, shield=True):
            try:
                if self._stop is PARK and ending is None:
                    ending = await self._park()
                    done = ending is None
                if self._stop is HAND_OVER and ending is None:
                    await self.hand_over()
                    done = True
                if ending is not None and not done:
                    # Until the append is known to have succeeded, recovery would have to do it.
                    intent = _unsealed(ending, StorageUnavailableError("The journal did not answer in time."))
                    failure = await self._seal(ending)
                    intent = None if failure is None else _unsealed(ending, failure)
                    if failure is None:
                        folded = self._transcript()
                        await self._node.retry_storage(lambda: self._deps.settler.settle(self.run.id, folded))
                        self._node.outages.worked(_SETTLING)
                        done = True
            except AppendRefusedError:
                done = True  # fenced: the node that took the run over ends it
            except Exception as error:  # noqa: BLE001 - recovery settles it
                self._node.outages.failed(_SETTLING, error)
        if self._buffer is not None and (not done or self._stop is LOST):
            # What is still in the buffer must not be committed together with what a successor writes.
            self._buffer.refuse(StorageUnavailableError("This server stopped executing the run."))
        self._deps.feed.close(self.run.id, broken=not done)
        if not done:
            await self._deps.recovery.abandon(self._as_left(), intent)

    def _as_left(self) -> Run:
        """The run, as if it had not begun if nothing of it can be in the journal: an empty journal is then no loss."""
        wrote = self._may_have_written or (self._buffer is not None and self._buffer.committed > 0)
        return self.run if wrote else replace(self.run, started_at=None)

    def _transcript(self) -> Transcript | None:
        """The fold of the whole run, if its events are still in memory."""
        tail = self._deps.feed.tail(self.run.id)
        found = None if tail is None else tail.after(self._begun.last_seq)
        return None if not found else fold(found, self._begun)

    async def _seal(self, ending: ev.RunEnded) -> StorageError | None:
        """Append the terminal event; the error if it could not be stored."""
        if self._begun.ended:
            return None
        try:
            buffer = self._buffer
            if buffer is None:  # the execution stopped before it had opened the journal
                head = (await self._node.journal.heads([self.run.id]))[self.run.id]
                buffer = self._buffer = self._deps.writer.buffer(self.run.id, self.run.epoch, head.last_seq)
            buffer.allow_seal()
            if not buffer.writes and not buffer.committed:
                seed = partial(run_endings.seed, run=self.run, begun=self._may_have_written)
                for event in await self._node.retry_storage(lambda: self._node.store.read(seed)):
                    buffer.add(event)
            if buffer.ending is None:
                buffer.add(ending)
            await buffer.wait_until_durable()
        except StorageError as error:
            return error
        return None

    async def hand_over(self) -> None:
        """Requeue the run once everything it wrote is in the journal, and at least that it began: to the next execution
        an empty journal is a lost one."""
        buffer = self._record(0) if self._buffer is None and self.run.epoch == 1 else self._buffer
        if buffer is not None:
            if not buffer.writes and not buffer.committed:
                for event in await self._node.store.read(lambda tx: self._first_events(tx, self.run)):
                    buffer.add(event)
            await buffer.wait_until_durable()
        can_park = self._agent is None or self._agent.can_park
        unclaim = partial(run_queue.unclaim, claimed=self._as_left(), can_park=can_park)
        await self._node.retry_storage(lambda: self._node.store.transact(unclaim))
        await self._node.hub.announce(Wake("queue"), Wake("changed"))

    async def _park(self) -> ev.RunEnded | None:
        """None if the run now waits in the store and nobody holds it; its ending if that was requested meanwhile."""
        run, approval = self.run, self._approval
        assert approval is not None
        store, retry = self._node.store, self._node.retry_storage
        park = partial(approvals.park, rid=run.id, epoch=run.epoch, aid=approval, keep_lease=False)
        parked = await retry(lambda: store.transact(park))
        if parked is not None:
            await self._node.hub.announce(Wake("control", run.id), Wake("queue"), Wake("changed"))
            return None
        row = await retry(lambda: store.read(lambda tx: tx.run(run.id)))
        if row is None or row.epoch != run.epoch or row.intent is None:
            return None
        return recovery_rules.terminal_event(row)


def _unsealed(ending: ev.RunEnded, error: StorageError) -> Intent | None:
    """How recovery ends a run whose terminal event could not be stored; None: interrupted, as after a shutdown."""
    match ending.status:
        case "cancelled" | "failed":
            return Intent(ending.status, ending.reason, ending.error)
        case "interrupted":
            return None
        case _:
            return storage_failed(error)
