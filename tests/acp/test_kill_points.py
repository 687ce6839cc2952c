"""`kill -9` of the program and of the server at every point of a turn that has every kind of update. What was shown is
stored, what the program did is done once, and the run continues."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.acp.test_forms import form
from tests.acp.test_turns import OPTIONS, _lives, content, tool
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import Follower, Frame, until

TURN: Final[list[dict[str, Any]]] = [
    {"think": "hm"},
    {"say": "One. "},
    {"update": {"sessionUpdate": "plan", "entries": [{"content": "Look", "priority": "high", "status": "pending"}]}},
    tool("t1", title="First", kind="read"),
    {"effect": "first"},
    tool("t1", "tool_call_update", status="in_progress", content=content("a.txt")),
    tool("t1", "tool_call_update", status="completed"),
    tool("t2", title="Second", kind="execute"),
    {"ask": {"toolCallId": "t2", "kind": "execute", "title": "Second"}, "options": OPTIONS, "effect": "second"},
    tool("t2", "tool_call_update", status="completed", content=content("done")),
    form(),
    {"update": {"sessionUpdate": "session_info_update", "title": "Files"}},
    {"say": "Two."},
    {"usage": [7, 3]},
]
EVENTS: Final = (
    "step.started",
    "reasoning.delta",
    "text.delta",
    "plan.updated",
    "tool.started",
    "tool.delta",
    "tool.finished",
    "approval.requested",
    "approval.resolved",
    "input.requested",
    "input.resolved",
    "usage",
    "run.complete",
)


def answer_until(served: Served, rid: str, follower: Follower, is_over: Callable[[], bool]) -> None:
    """Allows what the run asks and fills in its form, until it is over."""
    answered: set[str | None] = set()

    def step() -> bool:
        for frame in list(follower.frames):
            if frame.id not in answered:
                answered.add(frame.id)
                if frame.event == "approval.requested":
                    served.post(f"/api/runs/{rid}/approvals/{frame.data['approval_id']}", {"decision": "once"})
                elif frame.event == "input.requested":
                    values = {"action": "accept", "content": {"port": "bergen"}}
                    served.post(f"/api/runs/{rid}/inputs/{frame.data['request_id']}", values)
        return is_over()

    until(step)


def assert_stored(served: Served, rid: str, shown: list[Frame]) -> list[Frame]:
    """What was shown is what is stored, as far as it goes."""
    stored = served.events(rid)
    assert [(frame.id, frame.event, frame.data) for frame in stored[: len(shown)]] == [
        (frame.id, frame.event, frame.data) for frame in shown
    ]
    return stored


def tool_states(served: Served, sid: str) -> dict[str, str]:
    return {part["call_id"]: part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"}


def continue_run(served: Served, sid: str, rid: str, program: Program) -> None:
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert served.answer(sid)["parts"][-1]["text"].endswith("Continued.")
    first, second = program.prompts
    assert (first["session"], first["pid"] != second["pid"]) == (second["session"], True)


@pytest.mark.parametrize("point", EVENTS)
def test_the_server_is_killed_at(start: Start, program: Program, point: str) -> None:
    """X1, X3, X5: killed while it journals an event of this type, the server has stored what it showed; what needed
    permission ran only after the permission was stored, and nothing runs again."""
    served = start(stuck=point)
    sid = open_session(served)
    rid = served.begin(sid, play(*TURN))
    follower = served.follow(rid)
    answer_until(served, rid, follower, (served.data_dir / "stuck").exists)
    pid = until(lambda: program.prompts)[0]["pid"]
    served.kill()
    until(lambda: not _lives(pid))
    (served.data_dir / "stuck").unlink()
    served = start()
    until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    stored = assert_stored(served, rid, follower.frames)
    done = program.lines("effects")
    assert done in ([], ["first"], ["first", "second"])
    resolved = [frame.data["decision"] for frame in stored if frame.event == "approval.resolved"]
    assert "second" not in done or resolved == ["once"]
    assert not {"not_run", "pending", "running"} & set(tool_states(served, sid).values())
    continue_run(served, sid, rid, program)
    assert program.lines("effects") == done


@pytest.mark.parametrize("index", range(len(TURN)))
def test_the_program_is_killed_before(start: Start, program: Program, index: int) -> None:
    """X1, X3, X5: killed before this action, the program has done what came before; all of it was shown and is stored,
    what it had announced and not finished is *unknown*, and nothing runs again."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play(*TURN[:index], {"die": "SIGKILL"}))
    follower = served.follow(rid)
    answer_until(served, rid, follower, lambda: served.run(rid)["status"] == "failed")
    assert served.run(rid)["error"]["code"] == "agent-gone"
    assert len(assert_stored(served, rid, follower.ended())) == len(follower.frames)
    done = program.lines("effects")
    assert done == ["first", "second"][: (index > 4) + (index > 8)]
    announced = {"t1": "done" if index > 6 else "unknown"} if index > 3 else {}
    if index > 7:
        announced["t2"] = "done" if index > 9 else "unknown"
    assert tool_states(served, sid) == announced
    continue_run(served, sid, rid, program)
    assert program.lines("effects") == done
