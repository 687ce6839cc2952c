"""Whether an agent program is listed as available, and what the list says if it is not."""

from typing import Any

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.http.client import Served
from tests.http.conftest import Start


def listed(served: Served, name: str = "scripted") -> Any:
    return {item["name"]: item for item in served.get("/api/agents")["items"]}[name]


@pytest.mark.parametrize(("mode", "words"), [("dies-at-start", "ended unexpectedly"), ("login", "needs a login")])
def test_a_program_that_failed_its_test_is_not_available(start: Start, program: Program, mode: str, words: str) -> None:
    """E1: the list and `/v1` say what the test found, until another one succeeds."""
    served = start()
    assert (listed(served)["available"], listed(served)["test_failed"]) == (True, False)
    program.behave(mode)
    served.post("/api/agents/scripted/test")
    found = listed(served)
    assert (found["available"], found["test_failed"], found["npx_command"]) == (False, True, None)
    assert words in found["reason"]
    assert "agent:scripted" not in [item["id"] for item in served.get("/v1/models")["data"]]
    program.behave("")
    assert served.post("/api/agents/scripted/test")["session_problem"] is None
    found = listed(served)
    assert (found["available"], found["reason"], found["test_failed"]) == (True, None, False)


def test_a_program_that_answers_is_available_again(start: Start, program: Program) -> None:
    """E1: whoever logged in meanwhile, and goes on in a chat, need not test it."""
    served = start()
    program.behave("dies-at-start")
    assert not served.post("/api/agents/scripted/test")["ok"]
    program.behave("")
    assert served.ended(served.begin(open_session(served), play({"say": "Here."})))["status"] == "complete"
    assert listed(served)["available"]


def test_a_program_with_another_command_is_not_the_one_that_failed(start: Start, program: Program) -> None:
    """E1: what is found out about one command says nothing about another of the same name."""
    served = start(password="correct horse")
    served.post("/api/login", {"password": "correct horse"}, 204)
    section = program.section()
    body = {"command": section["command"], "args": section["args"]}
    served.call("PUT", "/api/agents/mine", body, 204)
    program.behave("dies-at-start")
    assert not served.post("/api/agents/mine/test")["ok"]
    assert not listed(served, "mine")["available"]
    assert listed(served)["available"]
    served.call("PUT", "/api/agents/mine", {**body, "args": ["other"]}, 204)
    assert listed(served, "mine")["available"]
