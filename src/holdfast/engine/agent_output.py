"""What an agent is given for its output: writes go to the run's journal, approval requests to a person. An agent waits
while more than `max_uncommitted` (`engine.settings`) of its output is not yet committed; questions to a person are rows
of `engine.transactions.approvals`."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

import anyio

from holdfast.core import user_questions
from holdfast.core.errors import AlreadyDecidedError, HoldfastError, NotAllowedError, StorageError
from holdfast.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    InputRequested,
    InputResolved,
    MessageSteered,
    ToolFinished,
)
from holdfast.core.ids import ApprovalId, MessageId
from holdfast.core.late_approvals import NO_ANSWER, NO_ANSWER_FINAL
from holdfast.core.run import Run
from holdfast.engine.node_context import NodeContext
from holdfast.engine.output_buffer import OutputBuffer
from holdfast.engine.signals import wait_for
from holdfast.engine.transactions import approvals, row_access, steering
from holdfast.ports.agent import ApprovalAnswer, InputAnswer
from holdfast.ports.store import Tx
from holdfast.ports.wakeups import Wake

_NO_INPUT: Final = "Nobody answered in time."
_WITHDRAWN: Final = "The call ended before an answer."
_WITHDRAW_TIME: Final = 0.5
"""Seconds by which storage may delay a cancelled agent. Settling denies a question that is still open then."""


@dataclass(slots=True, eq=False)
class RecordedOutput:
    """Implements `ports.agent.AgentOutput` over the run's buffer."""

    _run: Run
    _buffer: OutputBuffer
    _node: NodeContext
    _park: Callable[[ApprovalId], None] | None
    """Stops the execution until a person decides; None if the agent cannot park, so that `ask` waits."""
    _apply_intent: Callable[[Run | None], None]
    _end_runs: Callable[[Sequence[Run]], Awaitable[None]]
    """Ends runs that nobody executes, as their rows say."""
    _touched: float  # When the session's `updated_at` was last changed
    waiting: bool = False  # For a person, with the agent's task kept

    async def write(self, event: Event) -> None:
        if self._buffer.add(event):
            await self._buffer.wait_for_room()

    def write_nowait(self, event: Event) -> bool:
        return not self._buffer.add(event)

    async def wait_for_room(self) -> None:
        await self._buffer.wait_for_room()

    async def commit(self, event: Event) -> None:
        self._buffer.add(event)
        await self._buffer.wait_until_durable()
        if isinstance(event, ToolFinished):
            await self._touch_session()
        elif isinstance(event, MessageSteered):
            await self._finish_steering([event.id])

    async def take_steering(self, known: Collection[MessageId]) -> Sequence[MessageSteered]:
        run, store, retry = self._run, self._node.store, self._node.retry_storage
        if not await retry(lambda: store.read(lambda tx: steering.is_offered(tx, run.session_id, run.id))):
            return ()
        await retry(lambda: self._finish_steering(known))
        taken = await retry(lambda: store.transact(lambda tx: steering.take(tx, run.id, run.epoch, known)))
        await self._node.hub.announce(Wake("changed"))
        return taken

    async def _finish_steering(self, journaled: Collection[MessageId]) -> None:
        """End the turns of messages that the journal has. If that fails, the next step or the end of this run does it.
        Shielded: a cancel in between would leave them to the sweeper."""
        with anyio.move_on_after(self._node.settings.final_save, shield=True), suppress(StorageError):
            ended = await self._node.store.transact(lambda tx: steering.finish(tx, self._run.id, journaled))
            await self._node.hub.announce(Wake("changed"))
            await self._end_runs(ended)

    def new_approval_id(self) -> ApprovalId:
        return ApprovalId(self._node.ids.new("apr"))

    def new_question_id(self) -> ApprovalId:
        return ApprovalId(self._node.ids.new(approvals.QUESTION))

    def new_user_question_id(self) -> ApprovalId:
        return ApprovalId(self._node.ids.new(user_questions.ID_KIND))

    async def ask(
        self,
        question: ApprovalRequested,
        answer_within: float | None = None,
        *,
        announced: bool = False,
        can_allow_later: bool = True,
    ) -> ApprovalAnswer:
        run = self._run
        await self._publish(question, lambda tx: approvals.ask(tx, run.id, run.epoch, question))
        if self._park is not None:
            self._park(question.approval_id)
            await anyio.sleep_forever()
        aid = question.approval_id
        answer: ApprovalAnswer | None = None
        try:
            note = NO_ANSWER if can_allow_later else NO_ANSWER_FINAL
            answer = await self._wait_for_decision(aid, answer_within, note)
        finally:
            if answer is None:  # the run or the question was cancelled, or the storage failed
                with anyio.move_on_after(_WITHDRAW_TIME, shield=True), suppress(HoldfastError):
                    stored = await self._withdraw(aid, announced=announced)
                    if stored is not None:
                        self._buffer.add(ApprovalResolved(aid, *stored))
        await self.commit(ApprovalResolved(aid, *answer))
        return answer

    async def ask_during_call(self, question: InputRequested) -> InputAnswer:
        run, aid = self._run, question.request_id
        resolved = False
        try:
            await self._publish(question, lambda tx: approvals.ask_input(tx, run.id, run.epoch, question))
            await self._wait_for_decision(aid, question.expires_in, _NO_INPUT)
            answer, reason = await self._take_input(aid)
            resolved = True
        finally:
            if not resolved:  # the run or the call was cancelled, or the storage failed
                counts, reason = InputAnswer("cancel"), _WITHDRAWN
                with anyio.move_on_after(self._node.settings.final_save, shield=True), suppress(HoldfastError):
                    await self._withdraw(aid, _WITHDRAWN)
                    counts, reason = await self._take_input(aid)
                with suppress(Exception):  # whatever stopped the recording is raised elsewhere
                    self._buffer.add(InputResolved(aid, counts.action, reason))
        await self.commit(InputResolved(aid, answer.action, reason))
        return answer

    async def _publish(self, question: Event, ask: Callable[[Tx], bool]) -> None:
        """Store a question, then show it."""
        if not await self._node.retry_storage(lambda: self._node.store.transact(ask)):
            await self._stop_as_stored()
        await self._node.hub.announce(Wake("changed"))
        await self.commit(question)

    async def _wait_for_decision(self, aid: ApprovalId, within: float | None, note: str) -> ApprovalAnswer:
        """Wait with the task kept. After `within` seconds the answer is deny, for the reason `note`."""
        store, run, retry = self._node.store, self._run, self._node.retry_storage
        self.waiting = True
        self._node.hub.signals.fire(("queue", None))  # a waiting run leaves its place to others
        try:
            park = partial(approvals.park, rid=run.id, epoch=run.epoch, aid=aid, keep_lease=True)
            if await retry(lambda: store.transact(park)) is None:
                await self._stop_as_stored()
            await self._node.hub.announce(Wake("changed"))
            with anyio.move_on_after(within):
                return await self._next_decision(aid)
            try:
                await self._deny(aid, note)
            except NotAllowedError:
                await self._stop_as_stored()
            return await self._next_decision(aid)
        finally:
            self.waiting = False

    async def _deny(self, aid: ApprovalId, note: str) -> None:
        """Answer for a person who did not. An answer that came in the last instant counts."""
        store, run = self._node.store, self._run
        deny = partial(approvals.close, rid=run.id, aid=aid, owner=run.owner, decision="deny", note=note)
        with suppress(AlreadyDecidedError):
            await self._node.retry_storage(lambda: store.transact(deny))
        await self._node.hub.announce(Wake("changed"))

    async def _withdraw(
        self, aid: ApprovalId, note: str | None = None, *, announced: bool = False
    ) -> ApprovalAnswer | None:
        """Deny a question that nobody waits for any more, so that a later answer is refused. Returns what the journal
        must have of it: an answer that was accepted before counts."""
        store, run = self._node.store, self._run
        withdraw = partial(approvals.withdraw, rid=run.id, epoch=run.epoch, aid=aid, note=note, announced=announced)
        answer = await self._node.retry_storage(lambda: store.transact(withdraw))
        await self._node.hub.announce(Wake("changed"))
        return answer

    async def _take_input(self, aid: ApprovalId) -> tuple[InputAnswer, str | None]:
        """The stored answer, whose values are erased."""
        store, retry = self._node.store, self._node.retry_storage
        answer = await retry(lambda: store.read(partial(approvals.read_input, aid=aid)))
        await retry(lambda: store.transact(partial(approvals.erase_input, aid=aid)))
        return answer or (InputAnswer("cancel"), _WITHDRAWN)

    async def _next_decision(self, aid: ApprovalId) -> ApprovalAnswer:
        store, run, retry = self._node.store, self._run, self._node.retry_storage
        while True:
            signal = self._node.hub.signals.event_for(("control", run.id))
            approval = await retry(lambda: store.read(lambda tx: tx.approval(aid)))
            if approval is not None and approval.decision is not None:
                return ApprovalAnswer(approval.decision, approval.note)
            await wait_for(signal, self._node.settings.poll_interval)

    async def _stop_as_stored(self) -> NoReturn:
        """The store refused to let the run go on; its row says why."""
        read = partial(self._node.store.read, lambda tx: tx.run(self._run.id))
        self._apply_intent(await self._node.retry_storage(read))
        await anyio.sleep_forever()
        raise AssertionError

    async def _touch_session(self) -> None:
        now = self._node.clock.now()
        if abs(now - self._touched) >= self._node.settings.touch_every:
            self._touched = now
            with suppress(StorageError):  # output needs the journal alone; the next tool tries again
                await self._node.store.transact(lambda tx: row_access.touch_session(tx, self._run.session_id))
