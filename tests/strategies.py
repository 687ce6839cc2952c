"""Hypothesis strategies for a run's events, shared by all test directories.

`events()`    any event of the closed union, in any order: for what must hold whatever the journal says
`journals()`  entries as an agent, crashes and people would have left them, cut off anywhere, ended or not
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Final, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from holdfast.core import events as ev
from holdfast.core.ids import ApprovalId, FileId, MessageId, RunId, SessionId
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanEntry,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
    ToolState,
)

ODD: Final = '\0\n\r\t\x1b\x7f\x85\u2028\u2029\u200d\ufeff\uffff"\\/é\u0301😀'
"""Characters that framings, parsers and editors are known to trip over; all of them can be written as UTF-8."""
LONE_SURROGATES: Final = "\ud800\udbff\udc00\udfff"

CALL_IDS: Final = ("call_0", "call_1", "call_2")
"""Few, so that generated events meet: a provider that counts from zero in every step does the same."""
APPROVAL_IDS: Final = (ApprovalId("apr_0"), ApprovalId("apr_1"))


def numbered(events: Iterable[ev.Event], after: int = 0) -> list[ev.Entry]:
    """The events as the journal would hold them after `after`."""
    return [ev.entry(seq, event) for seq, event in enumerate(events, after + 1)]


# ---- values ----


def texts(*, min_size: int = 0, max_size: int = 8, lone_surrogates: bool = False) -> SearchStrategy[str]:
    whole = st.characters(exclude_categories=["Cs"]) | st.sampled_from(ODD)
    characters = st.characters() | st.sampled_from(ODD + LONE_SURROGATES) if lone_surrogates else whole
    return st.text(characters, min_size=min_size, max_size=max_size)


TEXTS: Final = texts()


def json_values(strings: SearchStrategy[str] = TEXTS) -> SearchStrategy[Json]:
    """What JSON can say: no NaN and no infinity, integers that a browser reads exactly."""
    numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    plain: SearchStrategy[Json] = st.one_of(st.none(), st.booleans(), numbers, strings)
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3), max_leaves=4
    )


def memories(strings: SearchStrategy[str] = TEXTS) -> SearchStrategy[tuple[Mapping[str, Json], ...]]:
    return st.lists(st.fixed_dictionaries({"text": strings, "source": strings}), max_size=2).map(tuple)


def plans(strings: SearchStrategy[str] = TEXTS) -> SearchStrategy[tuple[PlanEntry, ...]]:
    statuses = st.sampled_from(("pending", "in_progress", "completed"))
    return st.lists(st.builds(PlanEntry, strings, statuses, st.none() | strings), max_size=3).map(tuple)


TOOL_STATES: Final[tuple[ToolState, ...]] = ("pending", "waiting", "running", "done", "denied", "unknown", "not_run")


def parts(strings: SearchStrategy[str] = TEXTS, states: tuple[ToolState, ...] = TOOL_STATES) -> SearchStrategy[Part]:
    json = json_values(strings)
    return st.one_of(
        st.builds(TextPart, strings),
        st.builds(ReasoningPart, strings, st.none() | json, st.none() | st.integers(1, 10**6)),
        st.builds(
            ToolPart,
            st.sampled_from(CALL_IDS),
            strings,
            json,
            st.sampled_from(states),
            json,
            st.booleans(),
            strings,
            st.none() | st.integers(0, 10**6),
            st.none() | json,
            st.booleans(),
        ),
        st.builds(FilePart, st.builds(FileId, strings), strings, strings, st.integers(0, 2**40)),
        st.builds(RememberedPart, memories(strings)),
        st.builds(PlanPart, plans(strings)),
        st.builds(SteeredPart, st.builds(MessageId, strings), strings),
    )


SETTLED_STATES: Final[tuple[ToolState, ...]] = ("done", "denied", "unknown", "not_run")
"""What a run that has ended can leave of a tool, and so what `message.seeded` can carry."""


# ---- any event ----

_ENDINGS: Final[tuple[ev.Ending, ...]] = ("complete", "cancelled", "failed", "interrupted")
_DECISIONS: Final[tuple[ev.Decision, ...]] = ("once", "session", "always", "deny")
_KNOWN_TYPES: Final = ev.TERMINAL_TYPES | frozenset(
    [
        "run.started",
        "run.resumed",
        "message.seeded",
        "step.started",
        "step.retrying",
        "text.delta",
        "reasoning.delta",
        "tool.delta",
        "tool.started",
        "tool.finished",
        "approval.requested",
        "approval.resolved",
        "input.requested",
        "input.resolved",
        "memory.recalled",
        "plan.updated",
        "message.steered",
        "usage",
    ]
)


def unknown_types() -> SearchStrategy[str]:
    """Names that a later version might give an event."""
    name = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8})?", fullmatch=True)
    return name.filter(lambda found: found not in _KNOWN_TYPES)


def events_by_type(strings: SearchStrategy[str] = TEXTS) -> dict[type[ev.Event], SearchStrategy[ev.Event]]:
    """A strategy for each member of the union."""
    json = json_values(strings)
    files = st.builds(FilePart, st.builds(FileId, strings), strings, strings, st.integers(0, 2**40), st.just("call_0"))
    maybe, calls, approvals = st.none() | strings, st.sampled_from(CALL_IDS), st.sampled_from(APPROVAL_IDS)
    return {
        ev.RunStarted: st.builds(
            ev.RunStarted,
            st.builds(RunId, strings),
            st.builds(SessionId, strings),
            st.builds(MessageId, strings),
            st.builds(MessageId, strings),
            maybe,
            strings,
        ),
        ev.RunResumed: st.builds(ev.RunResumed, st.integers(2, 99)),
        ev.MessageSeeded: st.builds(
            ev.MessageSeeded, st.builds(RunId, strings), st.lists(parts(strings, SETTLED_STATES), max_size=3).map(tuple)
        ),
        ev.StepStarted: st.builds(ev.StepStarted, st.integers(0, 99), maybe),
        ev.StepRetrying: st.builds(ev.StepRetrying, st.integers(2, 9), st.integers(2, 9), st.integers(0, 99), strings),
        ev.TextDelta: st.builds(ev.TextDelta, strings),
        ev.ReasoningDelta: st.builds(ev.ReasoningDelta, strings, st.none() | json),
        ev.ToolDelta: st.builds(ev.ToolDelta, calls, maybe, maybe, maybe),
        ev.ToolStarted: st.builds(ev.ToolStarted, calls, strings, json, st.none() | json),
        ev.ToolFinished: st.builds(
            ev.ToolFinished,
            calls,
            json,
            st.booleans(),
            st.none() | st.integers(0, 10**6),
            st.lists(files, max_size=2).map(tuple),
        ),
        ev.ApprovalRequested: st.builds(
            ev.ApprovalRequested, approvals, calls, strings, json, strings, st.none() | json
        ),
        ev.ApprovalResolved: st.builds(
            ev.ApprovalResolved, approvals, st.sampled_from(_DECISIONS), st.none() | st.text(max_size=5)
        ),
        ev.InputRequested: st.builds(
            ev.InputRequested, approvals, calls, strings, st.sampled_from(get_args(ev.InputKind)), strings, json
        ),
        ev.InputResolved: st.builds(
            ev.InputResolved, approvals, st.sampled_from(get_args(ev.InputAction)), st.none() | st.text(max_size=5)
        ),
        ev.MemoryRecalled: st.builds(ev.MemoryRecalled, memories(strings)),
        ev.PlanUpdated: st.builds(ev.PlanUpdated, plans(strings)),
        ev.MessageSteered: st.builds(ev.MessageSteered, st.builds(MessageId, strings), strings),
        ev.Usage: usages(),
        ev.RunEnded: endings(strings),
        ev.UnknownEvent: st.builds(ev.UnknownEvent, unknown_types(), st.dictionaries(strings, json, max_size=3)),
    }


def usages() -> SearchStrategy[ev.Usage]:
    tokens = st.integers(0, 10**6)
    return st.builds(ev.Usage, tokens, tokens, st.none() | st.floats(0, 100, allow_nan=False))


def endings(strings: SearchStrategy[str] = TEXTS) -> SearchStrategy[ev.RunEnded]:
    maybe, failures = st.none() | strings, st.builds(ev.Failure, strings, strings)
    return st.builds(ev.RunEnded, st.sampled_from(_ENDINGS), maybe, maybe, st.none() | failures)


def events(strings: SearchStrategy[str] = TEXTS, *, terminal: bool = True) -> SearchStrategy[ev.Event]:
    """Any event; without the terminal ones if `terminal` is false."""
    found = events_by_type(strings).items()
    return st.one_of([strategy for kind, strategy in found if terminal or kind is not ev.RunEnded])


# ---- plausible journals ----
# Strategies that are drawn from many times are made once: making one costs more than drawing from it.


def _as_left(part: Part) -> Part:
    """A settled tool has a result only if it is done, and printed something only if it ran."""
    if not isinstance(part, ToolPart):
        return part
    if part.state == "done":
        return replace(part, may_have_run=False)
    printed = part.output if part.state == "unknown" else ""
    return ToolPart(part.call_id, part.name, part.args, part.state, output=printed, provider=part.provider)


_PIECES: Final = texts(min_size=1, max_size=5)
_FEW_PIECES: Final = st.lists(_PIECES, max_size=2)
_ARGS: Final[SearchStrategy[Json]] = st.none() | st.dictionaries(_PIECES, st.integers(0, 9) | _PIECES, max_size=1)
_RESULTS: Final[SearchStrategy[Json]] = _ARGS | _PIECES
_PLANS: Final = st.builds(ev.PlanUpdated, plans(_PIECES))
_STEERED: Final = st.builds(ev.MessageSteered, st.just(MessageId("msg_steered")), _PIECES)
_SPEECH: Final = st.lists(
    st.builds(ev.TextDelta, _PIECES) | st.builds(ev.ReasoningDelta, _PIECES) | _PLANS | _STEERED, max_size=4
)
_USAGES: Final = usages()
_SEEDS: Final = st.builds(
    ev.MessageSeeded,
    st.just(RunId("run_0")),
    st.lists(parts(_PIECES, SETTLED_STATES).map(_as_left), max_size=3).map(tuple),
)
_RECALLS: Final = events_by_type(_PIECES)[ev.MemoryRecalled]
_LAST: Final = endings(_PIECES)


@st.composite
def _calls(draw: st.DrawFn, call_id: str) -> list[ev.Event]:
    """From the question, if one is asked (the run is parked and resumes with the answer), to the result."""
    told: list[ev.Event] = []
    args = draw(_ARGS)
    if draw(st.booleans()):
        approval_id, decision = draw(st.sampled_from(APPROVAL_IDS)), draw(st.sampled_from(_DECISIONS))
        asked = ev.ApprovalRequested(approval_id, call_id, "tool", args, "It writes.")
        told += [asked, ev.RunResumed(0), ev.ApprovalResolved(approval_id, decision)]
        if decision == "deny":
            return told
    told.append(ev.ToolStarted(call_id, "tool", args))
    told += [ev.ToolDelta(call_id, output_delta=piece) for piece in draw(_FEW_PIECES)]
    told.append(ev.ToolFinished(call_id, draw(_RESULTS), draw(st.booleans()), draw(st.integers(0, 9999))))
    return told


_CALLS: Final = {call_id: _calls(call_id) for call_id in CALL_IDS}
_CALLED: Final = st.lists(st.sampled_from(CALL_IDS), unique=True, max_size=2)


@st.composite
def _steps(draw: st.DrawFn) -> list[ev.Event]:
    """What the model says, then the calls it writes, then the tools that run, side by side."""
    told: list[ev.Event] = list(draw(_SPEECH))
    if draw(st.booleans()):
        told.append(ev.ReasoningDelta("", {"signature": draw(_PIECES)}))
    runs: list[list[ev.Event]] = []
    for call_id in draw(_CALLED):
        pieces = draw(_FEW_PIECES)
        told += [ev.ToolDelta(call_id, None if at else "tool", piece) for at, piece in enumerate(pieces)]
        runs.append(draw(_CALLS[call_id]))
    if draw(st.booleans()):
        told.append(draw(_USAGES))
    return told + _interleaved(draw, runs)


def _interleaved(draw: st.DrawFn, runs: list[list[ev.Event]]) -> list[ev.Event]:
    """One after another if a question is among them (it parks the run), otherwise in any order of turns."""
    if any(isinstance(event, ev.ApprovalRequested) for run in runs for event in run):
        return [event for run in runs for event in run]
    turns = draw(st.permutations([which for which, run in enumerate(runs) for _ in run])) if len(runs) > 1 else ()
    left = [iter(run) for run in runs]
    return [next(left[which]) for which in turns] + [event for run in left for event in run]


_STEPS: Final = _steps()


@st.composite
def _openings(draw: st.DrawFn) -> list[ev.Event]:
    """`message.seeded` comes first where the run continues another."""
    told: list[ev.Event] = [draw(_SEEDS)] if draw(st.booleans()) else []
    told.append(ev.RunStarted(RunId("run_1"), SessionId("ses_1"), MessageId("msg_2"), MessageId("msg_1"), None, "chat"))
    if draw(st.booleans()):
        told.append(draw(_RECALLS))
    return told


_OPENINGS: Final = _openings()


@st.composite
def journals(draw: st.DrawFn, *, ended: bool | None = None) -> list[ev.Entry]:
    """One to three executions of one run, each cut off anywhere and the next one resuming; at the end a terminal event
    or none (`ended` says which, None: either). Has at least one entry."""
    history: list[ev.Event] = []
    for execution in range(draw(st.integers(1, 3))):
        told = [ev.RunResumed(0)] if execution else draw(_OPENINGS)
        for index in range(draw(st.sampled_from((1, 2, 0)))):
            told = [*told, ev.StepStarted(index), *draw(_STEPS)]
        lost = draw(st.integers(0, len(told) - 1))
        history += told[: len(told) - lost]
    if draw(st.booleans()) if ended is None else ended:
        history.append(draw(_LAST))
    return numbered(_with_rising_epochs(history))


def _with_rising_epochs(history: list[ev.Event]) -> list[ev.Event]:
    epochs = count(2)
    return [ev.RunResumed(next(epochs)) if isinstance(event, ev.RunResumed) else event for event in history]
