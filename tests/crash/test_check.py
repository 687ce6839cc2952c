"""The checks bite: each thing that could go wrong, done by hand to a dump of a healthy server, is noticed."""

from collections.abc import Callable
from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from holdfast.core import events as ev
from holdfast.core.ids import MessageId, RunId, SessionId
from tests.crash import check, scripts
from tests.crash.client import Ledger, Turn

QUESTION = "tool L1"


def healthy() -> tuple[Ledger, Any, list[str]]:
    """A turn that was shown to its end and is as it was shown."""
    calls = scripts.calls(QUESTION)
    first, second = calls["L1-a"], calls["L1-b"]
    said = scripts.words(QUESTION)
    told: tuple[ev.Event, ...] = (
        ev.RunStarted(RunId("run"), SessionId("ses"), MessageId("answer"), MessageId("question"), None, "chat"),
        ev.ReasoningDelta(scripts.thoughts(QUESTION)),
        ev.TextDelta(said[:10]),
        ev.ToolStarted("L1-a", first.name, first.args),
        ev.ToolFinished("L1-a", first.result, False, 0),
        ev.TextDelta(said[10:20]),
        ev.ToolStarted("L1-b", second.name, second.args),
        ev.ToolDelta("L1-b", output_delta="one\ntwo\n"),
        ev.ToolFinished("L1-b", second.result, False, 0),
        ev.TextDelta(said[20:]),
        ev.RunEnded("complete", finish_reason="stop"),
    )
    frames = [ev.entry(seq, event).frame for seq, event in enumerate(told, 1)]
    turn = Turn("key", "ses", QUESTION, run="run", message="answer", user_message="question", created_at=1.5)
    turn.frames, turn.ended, turn.seen_in = frames, True, 1
    ledger = Ledger(turns={"key": turn}, by_run={"run": turn}, sessions=["ses"], lives=2)
    shared: dict[str, Any] = {
        "session_id": "ses",
        "run_id": "run",
        "status": "complete",
        "recovery": None,
        "created_at": 1.5,
    }
    question = {**shared, "id": "question", "role": "user", "parent_id": None, "key": "key"}
    question["parts"] = [{"type": "text", "text": QUESTION}]
    answer = {**shared, "id": "answer", "role": "assistant", "parent_id": "question", "key": None}
    answer["parts"] = check.outline(frames)
    run = {"id": "run", "session_id": "ses", "status": "complete", "key": "key", "in_tree": True, "recovery": None}
    session = {"head": "answer", "active_run": None, "queued": [], "shown": [question, answer]}
    dump = {
        "node": "node_2",
        "sessions": {"ses": {**session, "tree": [question, answer]}},
        "runs": {"run": run},
        "journals": {"run": [frame.decode() for frame in frames]},
        "messages": {"question": question, "answer": answer},
        "moving": [],
    }
    return ledger, deepcopy(dump), ["L1-a run", "L1-b run"]


def test_healthy_server_passes() -> None:
    """Nothing is noticed where nothing is wrong."""
    ledger, dump, effects = healthy()
    assert check.verify(ledger, dump, effects, effects) == []


ANSWER = ("messages", "answer")
DAMAGES: dict[str, tuple[tuple[str | int, ...], Callable[[Any], Any]]] = {
    "an event is lost": (("journals", "run"), lambda frames: frames[:3]),
    "an event is changed": (("journals", "run", 2), lambda frame: frame.replace("before", "Before")),
    "a part is lost": ((*ANSWER, "parts"), lambda parts: parts[:-1]),
    "a text is shorter": ((*ANSWER, "parts", -1, "text"), lambda text: text[:-1]),
    "a text is doubled": ((*ANSWER, "parts", -1, "text"), lambda text: text * 2),
    "parts are swapped": ((*ANSWER, "parts"), lambda parts: [parts[0], parts[2], parts[1], *parts[3:]]),
    "a result is lost": ((*ANSWER, "parts", 2, "result"), lambda _: None),
    "a question is lost": (("messages",), lambda messages: {"answer": messages["answer"]}),
    "a question is doubled": (("sessions", "ses", "tree"), lambda tree: [*tree, {**tree[0], "id": "other"}]),
    "a time is changed": (("messages", "question", "created_at"), lambda _: 1.6),
    "a run is doubled": (("runs",), lambda runs: {**runs, "other": {**runs["run"], "id": "other"}}),
    "a run is lost": (("runs",), lambda _: {}),
    "a dead run is running": (("runs", "run"), lambda run: {**run, "status": "running", "lease": {"holder": "node_1"}}),
    "run and message disagree": ((*ANSWER, "status"), lambda _: "interrupted"),
    "a run ends twice": (("journals", "run"), lambda f: [*f, "id: 12\nevent: run.interrupted\ndata: {}\n\n"]),
    "an ended run is active": (("sessions", "ses", "active_run"), lambda _: "run"),
    "the head has moved": (("sessions", "ses", "head"), lambda _: "question"),
    "a settled message changes": (("settled",), lambda _: {"answer": {"reason": "another"}}),
    "an effect happens twice": (("effects",), lambda effects: [*effects, "L1-a run"]),
    "no effect has happened": (("effects",), lambda _: []),
}


@pytest.mark.parametrize(("path", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_every_loss_is_noticed(path: tuple[str | int, ...], damage: Callable[[Any], Any]) -> None:
    """A1, A2, E2, X1, X2, X3, X4, X5: a test that could not fail would prove nothing."""
    ledger, dump, effects = healthy()
    everything = {**dump, "effects": effects, "settled": ledger.settled}
    *above, last = path
    place: Any = reduce(getitem, above, everything)
    place[last] = damage(place[last])
    effects, ledger.settled = everything.pop("effects"), everything.pop("settled")
    assert check.verify(ledger, everything, effects, effects) != []
