"""X5 with a journal that was moved away: what its runs had done is unknown, and no tool repeats it without asking."""

from pathlib import Path

import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import asked, decide
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.upstream import Hang, PauseAt, says

FREE = {"tools": {"edit_file": "allow"}}
EDIT = {"path": "a", "old": "b", "new": "bb"}


def session(served: Served, model: str) -> tuple[str, Path]:
    """A session, and the file that its model edits."""
    sid = served.session(title="A person's", model=f"{PROVIDER}/{model}")
    file = served.data_dir / "workspaces" / sid / "a"
    file.parent.mkdir(parents=True)
    file.write_text("b")
    return sid, file


def lose_journal(served: Served) -> None:
    served.kill()
    for file in served.data_dir.glob("journal.db*"):
        file.unlink()


@pytest.mark.parametrize("automatic", [False, True], ids=["by a person", "by itself"])
def test_a_finished_tool_asks_before_it_runs_again(automatic: bool, start: Start, up: ScriptedModelServer) -> None:
    """X5: its result was lost with the journal; continued, the run shows the loss and asks before the allowed call."""
    model = f"lost {automatic}"
    up.play(
        model, calls(("c1", "edit_file", EDIT)), [PauseAt(model), Hang()], calls(("c1", "edit_file", EDIT)), says(".")
    )
    served = start(more=FREE, auto_continue=automatic)
    sid, file = session(served, model)
    rid = served.begin(sid, "Do it")
    up.reached(model)
    assert file.read_text() == "bb"
    lose_journal(served)
    served = start(more=FREE, auto_continue=automatic)
    if not automatic:
        run = until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
        assert run["recovery"]["state"] == "none"
        rid = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert "was lost" in decide(served, rid, "deny")["reason"]
    assert served.ended(rid)["status"] == "complete"
    assert served.run(rid)["recovery"]["state"] == "none"
    assert file.read_text() == "bb"


def test_a_tool_that_ran_before_the_question_asks_too(start: Start, up: ScriptedModelServer) -> None:
    """X5: the run waited for an answer when its journal was lost; answered, it starts over and its tools ask."""
    model = "lost while waiting"
    shell = ("c2", "shell", {"command": "true"})
    up.play(model, calls(("c1", "edit_file", EDIT)), calls(shell), calls(("c1", "edit_file", EDIT)), says("."))
    served = start(more=FREE)
    sid, file = session(served, model)
    rid = served.begin(sid, "Do it")
    question = asked(served, rid)
    assert question["call_id"] == "c2"
    lose_journal(served)
    served = start(more=FREE)
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", {"decision": "once"})
    until(lambda: up.count(model), lambda count: count == 3)
    assert "was lost" in decide(served, rid, "deny")["reason"]
    assert served.ended(rid)["status"] == "complete"
    assert file.read_text() == "bb"


def test_the_loss_stays_known(start: Start, up: ScriptedModelServer) -> None:
    """X5: a run continued after a loss is killed and continued once more: its tools still ask."""
    model = "lost and continued"
    up.play(
        model, [PauseAt(model), Hang()], [PauseAt(f"{model} 2"), Hang()], calls(("c1", "edit_file", EDIT)), says(".")
    )
    served = start(more=FREE)
    sid, _ = session(served, model)
    rid = served.begin(sid, "Do it")
    up.reached(model)
    lose_journal(served)
    served = start(more=FREE)
    rid = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    up.reached(f"{model} 2")
    served.kill()
    served = start(more=FREE)
    rid = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert "was lost" in decide(served, rid, "deny")["reason"]
    assert served.ended(rid)["status"] == "complete"
