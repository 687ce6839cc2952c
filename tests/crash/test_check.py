"""The checks bite: each thing that could go wrong, done by hand to a dump of a healthy server, is noticed."""

from collections.abc import Callable
from copy import deepcopy
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
    blank: dict[str, Any] = {
        "session": "ses",
        "run": "run",
        "reason": None,
        "error": None,
        "recovery": None,
        "created_at": 1.5,
    }
    question = {**blank, "id": "question", "role": "user", "parent": None, "status": "complete", "key": "key"}
    question["parts"] = [{"type": "text", "text": QUESTION}]
    answer = {**blank, "id": "answer", "role": "assistant", "parent": "question", "status": "complete", "key": None}
    answer["parts"] = check.outline(frames)
    run: dict[str, Any] = {
        "id": "run",
        "session": "ses",
        "message": "answer",
        "user_message": "question",
        "status": "complete",
    }
    run |= {"key": "key", "in_tree": True, "epoch": 1, "holder": None, "recovery": None, "continues": None}
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


def drop_event(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    del dump["journals"]["run"][3:]


def change_event(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["journals"]["run"][2] = dump["journals"]["run"][2].replace("before", "Before")


def drop_part(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["messages"]["answer"]["parts"].pop()


def shorten_text(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    part = dump["messages"]["answer"]["parts"][-1]
    part["text"] = part["text"][:-1]


def double_text(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["messages"]["answer"]["parts"][-1]["text"] *= 2


def swap_parts(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    parts = dump["messages"]["answer"]["parts"]
    parts[1], parts[2] = parts[2], parts[1]


def lose_result(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["messages"]["answer"]["parts"][2]["result"] = None


def drop_question(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    del dump["messages"]["question"]


def double_question(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["sessions"]["ses"]["tree"].append(dict(dump["messages"]["question"], id="other"))


def change_time(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["messages"]["question"]["created_at"] = 1.6


def double_run(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["runs"]["other"] = dict(dump["runs"]["run"], id="other")


def drop_run(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    del dump["runs"]["run"]


def still_running(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["runs"]["run"].update(status="running", holder="node_1")


def wrong_status(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["messages"]["answer"]["status"] = "interrupted"


def second_end(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["journals"]["run"].append("id: 12\nevent: run.interrupted\ndata: {}\n\n")


def stay_active(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["sessions"]["ses"]["active_run"] = "run"


def move_head(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    dump["sessions"]["ses"]["head"] = "question"


def change_later(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    ledger.settled["answer"] = dict(deepcopy(dump["messages"]["answer"]), reason="another")


def effect_twice(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    effects.append("L1-a run")


def no_effect(ledger: Ledger, dump: Any, effects: list[str]) -> None:
    effects.clear()


@pytest.mark.parametrize(
    "damage",
    [
        drop_event,
        change_event,
        drop_part,
        shorten_text,
        double_text,
        swap_parts,
        lose_result,
        drop_question,
        double_question,
        change_time,
        double_run,
        drop_run,
        still_running,
        wrong_status,
        second_end,
        stay_active,
        move_head,
        change_later,
        effect_twice,
        no_effect,
    ],
)
def test_every_loss_is_noticed(damage: Callable[[Ledger, Any, list[str]], None]) -> None:
    """A1, A2, E2, X1, X2, X3, X4, X5: a test that could not fail would prove nothing."""
    ledger, dump, effects = healthy()
    damage(ledger, dump, effects)
    assert check.verify(ledger, dump, effects, effects) != []
