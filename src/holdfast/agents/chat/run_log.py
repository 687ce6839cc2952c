"""The run's own output as a folded transcript: the loop reads the same fold that is saved, so a live run and a resumed
one cannot differ. It is written to the journal through `ports.agent.AgentOutput`; logging is `logs`."""

from holdfast.agents.chat.model_messages import ABANDONED
from holdfast.core.events import Event, ReasoningDelta, StepStarted, TextDelta, entry
from holdfast.core.parts import Part, ReasoningPart
from holdfast.core.steps import open_step, step_starts
from holdfast.core.transcript import Transcript, fold, steered_ids
from holdfast.ports.agent import AgentOutput


class RunLog:
    def __init__(self, out: AgentOutput, transcript: Transcript) -> None:
        self._out = out
        self._transcript = transcript
        self._events: list[Event] = []
        self._pieces: list[str] = []  # text deltas that follow self._events

    @property
    def transcript(self) -> Transcript:
        self._close_text()
        if self._events:
            seq = self._transcript.last_seq
            entries = [entry(seq + n, event) for n, event in enumerate(self._events, 1)]
            self._events.clear()
            self._transcript = fold(entries, self._transcript)
        return self._transcript

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.transcript.parts

    async def begin_step(self, model: str) -> None:
        await self.write(StepStarted(len(step_starts(self.parts)) - bool(open_step(self.parts)), model))

    async def take_steering(self) -> None:
        """Journal what the user has added to the run since the last step."""
        for event in await self._out.take_steering(steered_ids(self.parts)):
            await self.close_reasoning()
            await self.commit(event)

    async def close_reasoning(self) -> None:
        """Close reasoning that was cut off: the model reasons anew, and no provider accepts half a block."""
        last = self.parts[-1] if self.parts else None
        if isinstance(last, ReasoningPart) and last.provider is None:
            await self.write(ReasoningDelta("", ABANDONED))

    async def write(self, event: Event) -> None:
        self._record(event)
        await self._out.write(event)

    def write_nowait(self, event: Event) -> bool:
        """Add a delta without waiting. False: await `wait_for_room` before the next."""
        self._record(event)
        return self._out.write_nowait(event)

    async def wait_for_room(self) -> None:
        await self._out.wait_for_room()

    async def commit(self, event: Event) -> None:
        self._record(event)
        await self._out.commit(event)

    def _record(self, event: Event) -> None:
        if type(event) is TextDelta:
            self._pieces.append(event.text)
        else:
            self._close_text()
            self._events.append(event)

    def _close_text(self) -> None:
        if self._pieces:
            self._events.append(TextDelta("".join(self._pieces)))
            self._pieces.clear()
