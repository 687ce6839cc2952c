"""The spans of a run, as the fold of its journal."""

from collections.abc import Sequence

from holdfast.core import events as ev
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, RunId, SessionId
from holdfast.core.run import Run
from holdfast.core.run_spans import MAX_SPANS, RunSpans, SpanRecord

RUN = Run(
    RunId("run_1"),
    LOCAL,
    SessionId("ses_1"),
    MessageId("m2"),
    MessageId("m1"),
    "chat",
    "house/atlas",
    None,
    "detached",
    1.0,
    0,
    in_tree=True,
    status="complete",
    ended_at=2.0,
)
STARTED = ev.RunStarted(RUN.id, RUN.session_id, RUN.message_id, RUN.user_message_id, RUN.model, RUN.agent, "00-a-b-01")


def spans_of(*events: tuple[int, ev.Event], run: Run = RUN) -> Sequence[SpanRecord]:
    spans = RunSpans(run)
    spans.add([ev.entry(n, event, at) for n, (at, event) in enumerate(events, 1)])
    return spans.finish()


def test_a_model_call_ends_with_its_last_output() -> None:
    """Not with the tools that follow it, which have spans of their own within the step."""
    run, step, model, tool = spans_of(
        (1100, STARTED),
        (1200, ev.StepStarted(0, "house/atlas")),
        (1300, ev.TextDelta("a")),
        (1350, ev.Usage(5, 6)),
        (1400, ev.ToolStarted("c1", "shell", {})),
        (1700, ev.ToolFinished("c1", "done")),
        (2000, ev.RunEnded("complete")),
    )
    assert (run.start, run.end, run.parent) == (1000, 2000, None)
    assert (step.kind, step.start, step.end, step.parent) == ("step", 1200, 2000, 0)
    assert (model.kind, model.start, model.end, model.parent) == ("model", 1200, 1350, 1)
    assert model.attributes["gen_ai.usage.output_tokens"] == 6
    assert (tool.name, tool.start, tool.end, tool.parent, tool.error) == ("execute_tool shell", 1400, 1700, 1, None)


def test_an_agent_without_steps_has_a_model_call() -> None:
    """The direct agent asks a model once, and reports no step."""
    run, model = spans_of((1100, STARTED), (1500, ev.TextDelta("a")), (1900, ev.TextDelta("b")))
    assert (model.name, model.start, model.end, model.parent) == ("chat house/atlas", 1100, 1900, 0)
    assert run.name == "invoke_agent chat"


def test_questions_failures_and_unfinished_tools_are_told() -> None:
    """Waiting for a person is part of the step; a tool that never ended is marked."""
    _, step, _, first, second = spans_of(
        (1100, STARTED),
        (1200, ev.StepStarted(0)),
        (1250, ev.StepRetrying(2, 3, 10, "secret")),
        (1300, ev.ApprovalRequested(ApprovalId("a1"), "c1", "shell", {})),
        (1600, ev.ApprovalResolved(ApprovalId("a1"), "once")),
        (1600, ev.ToolStarted("c1", "shell", {})),
        (1700, ev.ToolFinished("c1", "no", is_error=True)),
        (1700, ev.ToolStarted("c2", "fetch", {})),
    )
    assert [name for name, _, _ in step.notes] == ["retrying", "waiting for a person", "answered"]
    assert (first.error, second.error, second.end) == ("tool", "unfinished", 2000)


def test_spans_are_bounded() -> None:
    """A run of very many steps says how many spans are missing."""
    spans = spans_of((1100, STARTED), *((1100 + n, ev.StepStarted(n)) for n in range(MAX_SPANS)))
    assert len(spans) == MAX_SPANS
    assert spans[0].attributes["holdfast.run.dropped_spans"] == 2 * MAX_SPANS - (MAX_SPANS - 1)
