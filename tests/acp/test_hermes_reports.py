"""How Hermes reports what a turn used, and that it failed: a scripted program in its place does the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acp.conftest import Program, play
from tests.acp.test_turns import content, tool
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting

FAILS: Final = {"usage": None}  # As a turn of Hermes ends that failed, after the text with the reason


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker, program: Program) -> Iterator[Start]:
    def make(**changes: Any) -> Served:
        return Served(chat_forker, tmp_path / "data", agents={"hermes": program.section()}, **changes)

    with starting(make) as begin:
        yield begin


def open_session(served: Served) -> str:
    return served.session(agent="hermes", title="A person's")


def end(served: Served, sid: str, *actions: dict[str, Any], prompt: str = "") -> Any:
    return served.ended(served.begin(sid, prompt or play(*actions)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Error: no such model", "failed: no such model"),
        ("API call failed after 3 retries", "failed. It said: API call failed after 3 retries"),
    ],
)
def test_a_failure_that_ends_like_an_answer_is_a_failed_run(
    start: Start, program: Program, text: str, reason: str
) -> None:
    """E4: the run failed for the reason that the program gave, which stays readable; the next turn, in a new process
    because the old one may take no other prompt, goes on in the program's session."""
    served = start()
    sid = open_session(served)
    assert end(served, sid, {"say": "one"}, {"usage": [1, 1]})["status"] == "complete"
    run = end(served, sid, {"say": text}, FAILS)
    assert (run["status"], run["error"]["code"]) == ("failed", "agent")
    assert run["error"]["message"] == f"The agent hermes {reason}"
    assert [part["text"] for part in served.answer(sid)["parts"]] == [text]
    assert end(served, sid, {"say": "two"}, {"usage": [1, 1]})["status"] == "complete"
    _, failed, after = program.prompts
    assert failed["session"] == after["session"]
    assert failed["pid"] != after["pid"]


def test_a_failure_in_the_middle_is_a_failed_run_that_can_be_continued(start: Start, program: Program) -> None:
    """E4, X5: the program says nothing more, so the run says that there is no reason; what was shown stays, a tool that
    it left open is unknown, and *continue* tells the program both."""
    served = start()
    sid = open_session(served)
    done = tool("t1", "tool_call_update", status="completed", content=content("all good"))
    tools = (tool("t1", title="First"), done, tool("t2", title="Second"))
    rid = served.begin(sid, play({"say": "I look. "}, *tools, FAILS))
    run = served.ended(rid)
    assert (run["status"], run["error"]["code"]) == ("failed", "agent")
    assert "gave no reason" in run["error"]["message"]
    states = [part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert states == ["done", "unknown"]
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    told = program.prompts[1]["text"]
    assert all(piece in told for piece in ("I look.", "First) finished: all good", "Second) was started"))


def test_an_error_after_a_tool_is_a_failed_run(start: Start) -> None:
    """E4: text that was not streamed is the reason, whatever the program did before."""
    served = start()
    sid = open_session(served)
    done = tool("t1", "tool_call_update", status="completed")
    run = end(served, sid, tool("t1", title="First"), done, {"say": "Error: the model is gone"}, FAILS)
    assert (run["status"], run["error"]["message"]) == ("failed", "The agent hermes failed: the model is gone")


def test_a_turn_that_ends_without_a_word_is_a_failed_run(start: Start) -> None:
    """E4: as a session does that is stuck."""
    served = start()
    assert end(served, open_session(served), FAILS)["error"]["code"] == "agent"


def test_an_answer_about_an_error_is_an_answer(start: Start) -> None:
    """A model may begin with any word; a turn with usage has not failed, and a command of the program has none."""
    served = start()
    sid = open_session(served)
    text = "Error: that is what the log says."
    assert end(served, sid, {"say": text}, {"usage": [5, 2]})["status"] == "complete"
    assert end(served, sid, prompt="/help " + play({"say": "Error: unknown"}, FAILS))["status"] == "complete"


def test_usage_that_adds_up_is_journaled_as_the_difference(start: Start, program: Program) -> None:
    """X4: each run has the tokens of its own turn, also after a command without usage, a cancelled turn, and in a new
    process, which counts from zero; the report of a person has their sum."""
    served = start()
    sid = open_session(served)

    def used(run: Any) -> tuple[int, int] | None:
        usage = run["usage"]
        return usage and (usage["input_tokens"], usage["output_tokens"])

    def turn(*tokens: int) -> tuple[int, int] | None:
        return used(end(served, sid, {"say": "ok"}, {"usage": tokens}))

    assert turn(100, 10) == (100, 10)
    assert turn(250, 25) == (150, 15)
    assert used(end(served, sid, prompt="/help " + play({"say": "Commands: /help"}, FAILS))) is None
    assert turn(300, 26) == (50, 1)
    assert turn(300, 26) is None  # no tokens
    rid = served.begin(sid, play({"say": "long "}, {"usage": [320, 30]}, {"touch": "here"}, {"hang": 1}))
    program.reached("here")
    assert used(served.cancel(rid)) == (20, 4)
    assert turn(330, 31) == (10, 1)
    served.kill()
    served = start()
    assert turn(70, 7) == (70, 7)
    assert turn(71, 9) == (1, 2)
    assert len({prompt["pid"] for prompt in program.prompts}) == 2
    report = served.get("/api/usage?by=model")["total"]
    assert (report["input_tokens"], report["output_tokens"]) == (401, 40)
