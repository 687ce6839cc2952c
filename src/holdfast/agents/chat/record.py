"""What this run has written, as everybody else will read it: the loop looks at the same fold as the saved message, so a
run that goes on and one that is taken up cannot differ."""

from holdfast.agents.chat.calls import step_marks
from holdfast.agents.chat.history import ABANDONED
from holdfast.core.events import Event, ReasoningDelta, StepStarted, TextDelta, entry
from holdfast.core.parts import Part, Reasoning, Tool
from holdfast.core.transcript import Transcript, fold
from holdfast.ports import Out


class Record:
    def __init__(self, out: Out, transcript: Transcript) -> None:
        self._out = out
        self._transcript = transcript
        self._events: list[Event] = []
        self._pieces: list[str] = []  # text deltas that follow self._events
        self.marks = step_marks(transcript.parts)
        """Where each step begins, as an index of parts."""

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

    @property
    def steps(self) -> int:
        return len(self.marks)

    def call_ids(self) -> set[str]:
        return {part.call_id for part in self.parts if isinstance(part, Tool)}

    async def begin_step(self, *, goes_on: bool) -> None:
        """`goes_on`: the step takes up the words that the one before was cut off in."""
        if not goes_on and len(self.parts) not in self.marks:
            self.marks.append(len(self.parts))
        await self.write(StepStarted(max(0, len(self.marks) - 1)))

    async def close_reasoning(self) -> None:
        """Thoughts that were cut off stay as they are: the model thinks anew, and no provider takes half a thought."""
        last = self.parts[-1] if self.parts else None
        if isinstance(last, Reasoning) and last.provider is None:
            await self.write(ReasoningDelta("", ABANDONED))

    async def write(self, event: Event) -> None:
        self._keep(event)
        await self._out.write(event)

    def put(self, event: Event) -> bool:
        """Whether there is room for more; otherwise `room` is to be awaited."""
        if type(event) is TextDelta:
            self._pieces.append(event.text)
        else:
            self._keep(event)
        return self._out.put(event)

    async def room(self) -> None:
        await self._out.room()

    async def commit(self, event: Event) -> None:
        self._keep(event)
        await self._out.commit(event)

    def _keep(self, event: Event) -> None:
        if type(event) is TextDelta:
            self._pieces.append(event.text)
        else:
            self._close_text()
            self._events.append(event)

    def _close_text(self) -> None:
        if self._pieces:
            self._events.append(TextDelta("".join(self._pieces)))
            self._pieces.clear()
