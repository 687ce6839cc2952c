"""The spans of a run, derived from its journal: the run, its steps, and the model and tool calls in them. When they are
exported: `engine.run_tracing`.

A run that was interrupted and resumed in another process has the same spans as one that was not. They contain names,
times, counts and outcomes, never what people, models or tools wrote.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, assert_never

from holdfast.core import events as ev
from holdfast.core.run import Run

SpanKind = Literal["run", "step", "model", "tool"]
AttributeValue = str | int | float | bool

MAX_SPANS: Final = 1000  # Of one run; what is beyond is counted
_OUTPUT: Final = frozenset({"text.delta", "reasoning.delta"})


@dataclass(slots=True)
class SpanRecord:
    """Times are milliseconds since the epoch. `parent` is its index among the spans of the run."""

    kind: SpanKind
    name: str
    start: int
    end: int
    parent: int | None = None
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    notes: list[tuple[str, int, Mapping[str, AttributeValue]]] = field(default_factory=list)
    """Things that happened within it: name, time and attributes."""
    error: str | None = None  # A code


class RunSpans:
    """Folds the entries of one settled run, page by page."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.traceparent: str | None = None
        start, end = _ms(run.created_at), _ms(run.created_at if run.ended_at is None else run.ended_at)
        attributes: dict[str, AttributeValue] = {
            "holdfast.run.id": run.id,
            "holdfast.session.id": run.session_id,
            "holdfast.run.status": run.status,
            "gen_ai.agent.name": run.agent,
            "gen_ai.operation.name": "invoke_agent",
            **_model(run.model),
            **_usage(run.usage),
        }
        error = None if run.error is None else run.error.code
        whole = SpanRecord("run", f"invoke_agent {run.agent}", start, end, None, attributes, error=error)
        self.spans = [whole]
        self._last = start
        self._step: int | None = None
        self._model: int | None = None
        self._tools: dict[str, int] = {}
        self._dropped = 0

    def add(self, entries: Iterable[ev.Entry]) -> None:
        for entry in entries:
            at = self._last = max(self._last, entry.at or 0)
            if entry.type in _OUTPUT:
                self._note_output(at)
            else:
                self._apply(entry.event(), at)

    def finish(self) -> list[SpanRecord]:
        """All spans; one that is still open ends with the run."""
        run = self.spans[0]
        run.end = max(run.end, self._last)
        self._close_step(run.end)
        for index in self._tools.values():
            self.spans[index].end, self.spans[index].error = run.end, "unfinished"
        self._tools.clear()
        if self._dropped:
            run.attributes["holdfast.run.dropped_spans"] = self._dropped
        return self.spans

    def _apply(self, event: ev.Event, at: int) -> None:
        match event:
            case ev.RunStarted():
                self.traceparent = event.traceparent
                self.spans[0].notes.append(("started", at, {}))
            case ev.RunResumed(epoch):
                self.spans[0].notes.append(("resumed", at, {"holdfast.run.epoch": epoch}))
            case ev.StepStarted(index, model):
                self._close_step(at)
                self._step = self._open("step", f"step {index}", at, {"holdfast.step.index": index})
                self._open_model(model or self.run.model, at)
            case ev.StepRetrying(attempt):
                self._innermost().notes.append(("retrying", at, {"holdfast.attempt": attempt}))
            case ev.ToolDelta():
                if event.output_delta is None:
                    self._note_output(at)
            case ev.Usage():
                self._note_output(at)
                if self._model is not None:
                    self.spans[self._model].attributes |= _usage(event)
            case ev.ToolStarted(call_id, name):
                self._model = None
                attributes: dict[str, AttributeValue] = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
                attributes["gen_ai.operation.name"] = "execute_tool"
                opened = self._open("tool", f"execute_tool {name}", at, attributes)
                if opened is not None:
                    self._tools[call_id] = opened
            case ev.ToolFinished(call_id, _, is_error):
                finished = self._tools.pop(call_id, None)
                if finished is not None:
                    self.spans[finished].end = at
                    self.spans[finished].error = "tool" if is_error else None
            case ev.ApprovalRequested(_, _, name) | ev.InputRequested(_, _, name):
                self._model = None
                self._innermost().notes.append(("waiting for a person", at, {"holdfast.question": name}))
            case ev.ApprovalResolved() | ev.InputResolved():
                self._innermost().notes.append(("answered", at, {}))
            case ev.TextDelta() | ev.ReasoningDelta():
                self._note_output(at)
            case ev.MessageSteered():
                self._innermost().notes.append(("steered", at, {}))
            case ev.MessageSeeded() | ev.MemoryRecalled() | ev.PlanUpdated() | ev.RunEnded() | ev.UnknownEvent():
                pass
            case _:
                assert_never(event)

    def _note_output(self, at: int) -> None:
        """A model's call lasts until its last output. An agent without steps calls a model once."""
        if self._step is None and self._model is None and not self._dropped:
            self._open_model(self.run.model, self.spans[0].notes[-1][1] if self.spans[0].notes else at)
        if self._model is not None:
            self.spans[self._model].end = at

    def _open_model(self, model: str | None, at: int) -> None:
        attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": "chat", **_model(model)}
        self._model = self._open("model", f"chat {model or 'default'}", at, attributes)

    def _open(self, kind: SpanKind, name: str, at: int, attributes: dict[str, AttributeValue]) -> int | None:
        if len(self.spans) >= MAX_SPANS:
            self._dropped += 1
            return None
        parent = 0 if kind == "step" or self._step is None else self._step
        self.spans.append(SpanRecord(kind, name[:200], at, at, parent, attributes))
        return len(self.spans) - 1

    def _close_step(self, at: int) -> None:
        if self._step is not None:
            self.spans[self._step].end = at
        self._step = self._model = None

    def _innermost(self) -> SpanRecord:
        return self.spans[self._step or 0]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _model(name: str | None) -> dict[str, AttributeValue]:
    return {} if name is None else {"gen_ai.request.model": name}


def _usage(usage: ev.Usage | None) -> dict[str, AttributeValue]:
    if usage is None:
        return {}
    return {"gen_ai.usage.input_tokens": usage.input_tokens, "gen_ai.usage.output_tokens": usage.output_tokens}
