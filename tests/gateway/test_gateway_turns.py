"""Turns that a gateway answers: its events, its questions, its sessions, and what follows a crash."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.acp.test_late_approvals import NO_ANSWER
from tests.acp.test_real_hermes import import_home
from tests.chat.questions import asked
from tests.gateway.conftest import open_session
from tests.gateway.scripted_gateway import (
    KEY,
    PAUSE,
    ScriptedGateway,
    asks,
    call_row,
    completed,
    finished,
    row,
    started,
    text,
)
from tests.http.client import Served, import_lines
from tests.http.conftest import Start
from tests.http.streams import until
from tests.importers.hermes_home import SUMMARY, HermesHome
from tests.upstream import Close, Hang, PauseAt, answers


def parts(served: Served, sid: str) -> list[tuple[str, ...]]:
    """Texts, and tools with their state."""
    return [
        (part["name"], part["state"]) if part["type"] == "tool" else (part["type"], part["text"])
        for part in served.answer(sid)["parts"]
    ]


def answer(served: Served, rid: str, decision: str) -> Any:
    question = asked(served, rid)
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", {"decision": decision})
    return question


def test_every_kind_of_event(start: Start, gateway: ScriptedGateway) -> None:
    """C4: text, thoughts, tools and usage are shown in their order; what the gateway repeats of the answer is not; the
    run's events are read once."""
    served = start()
    sid = open_session(served, system="Be brief.")
    gateway.play(
        text("I will "),
        text("look."),
        {"event": "reasoning.available", "text": "I will look."},
        started("terminal", "ls"),
        started("terminal", "ls -a"),
        started("web_search", "tides"),
        finished("terminal"),
        finished("web_search", error=True),
        finished("terminal"),
        finished("never_started"),
        {"event": "reasoning.available", "text": "Something else."},
        {"event": "unknown", "delta": 1},
        {"event": "message.delta", "delta": None},
        text("Done."),
        completed("Done.", input_tokens=7, output_tokens=3, total_tokens=10),
    )
    run = served.ended(served.begin(sid, "Hello"))
    assert (run["status"], run["usage"]["input_tokens"], run["usage"]["output_tokens"]) == ("complete", 7, 3)
    assert parts(served, sid) == [
        ("text", "I will look."),
        ("terminal", "done"),
        ("terminal", "done"),
        ("web_search", "done"),
        ("reasoning", "Something else."),
        ("text", "Done."),
    ]
    tools = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert [part["is_error"] for part in tools] == [False, False, True]
    assert tools[1]["args"] == {"title": "ls -a"}
    assert gateway.api.bodies == [{"input": "Hello", "instructions": "Be brief."}]
    assert gateway.api.readers == ["run_1"]


def test_a_model_that_does_not_stream(start: Start, gateway: ScriptedGateway) -> None:
    """E4: an answer that comes only as the run's output is shown, and a run without any fails."""
    served = start()
    sid = open_session(served)
    gateway.play(completed("All at once."))
    served.ended(served.begin(sid, "Hello"))
    assert parts(served, sid) == [("text", "All at once.")]
    gateway.play(completed())
    assert served.ended(served.begin(sid, "Hello"))["error"]["code"] == "empty-answer"


def test_the_next_turn_goes_on_in_the_session(start: Start, gateway: ScriptedGateway) -> None:
    """X5: the gateway does not load a session by itself, so each run is told its messages; after a compaction it is the
    session that the gateway names."""
    served = start()
    sid = open_session(served)
    gateway.play(text("Hi."), completed())
    served.ended(served.begin(sid, "Hello"))
    rows = [row("user", "Hello"), call_row("c1", "ls"), row("tool", "a b", tool_call_id="c1"), row("assistant", "Hi.")]
    gateway.api.sessions["run_1"] = ("tip_1", [row("assistant", "before"), *rows, row("system", "no")])
    gateway.api.states["run_1"] = ["completed"]
    gateway.play(text("Again."), completed())
    served.ended(served.begin(sid, "And now?"))
    assert gateway.api.bodies[1] == {
        "input": "And now?",
        "session_id": "tip_1",
        "conversation_history": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": '[terminal({"command": "ls"}) → a b]\nHi.'},
        ],
    }


def test_an_imported_chat_goes_on_in_its_session(start: Start, gateway: ScriptedGateway, tmp_path: Path) -> None:
    """X5: the chat is linked to the first session of its chain, and the run goes to the tip; a retry, which leaves out
    what the session has, gets a session of its own."""
    home = HermesHome(tmp_path / "hermes")
    first = home.session(end_reason="compression")
    home.say(first, "Hello", "Hi.")
    second = home.session("20260102_000000_bbbbbb", parent_session_id=first)
    home.say(second, SUMMARY.format("A greeting."), "Go on.", "Which way?", "North.")
    home.database.close()
    gateway.api.sessions[first] = (second, [row("user", "Which way?"), row("assistant", "North.")])
    served = start()
    (sid,) = import_home(served, home.path)["sessions"]
    served.call("PATCH", f"/api/sessions/{sid}", {"agent": "gateway"}, expect=200)
    gateway.play(text("West."), completed())
    mid = served.send(sid, "And then?")["message"]["id"]
    until(lambda: served.answer(sid)["status"], "complete".__eq__)
    assert gateway.api.bodies[0]["session_id"] == second
    assert [item["content"] for item in gateway.api.bodies[0]["conversation_history"]] == ["Which way?", "North."]

    gateway.api.states["run_1"] = ["completed"]
    gateway.play(text("East."), completed())
    rid = served.post(f"/api/sessions/{sid}/retry", {"message_id": mid}, expect=202)["run"]["id"]
    assert served.ended(rid)["status"] == "complete"
    assert "session_id" not in gateway.api.bodies[1]
    assert "North." in gateway.api.bodies[1]["input"]


@pytest.mark.parametrize("failure", ["refused", "no answer", "not listed", "fails"])
@pytest.mark.parametrize("then", ["retry", "another message"])
def test_a_failure_does_not_leave_the_session(
    start: Start, gateway: ScriptedGateway, tmp_path: Path, failure: str, then: str
) -> None:
    """E1, X5: after a turn without output, a retry and a new message go on in the session that the chat was imported
    from; a message that did not reach it is told with the next one."""
    home = HermesHome(tmp_path / "hermes")
    original = home.session()
    home.say(original, "Hello", "Hi.")
    home.database.close()
    rows = [row("user", "Hello"), row("assistant", "Hi.")]
    gateway.api.sessions[original] = (original, rows)
    gateway.api.states["run_1"] = ["failed"]
    served = start()
    (sid,) = import_home(served, home.path)["sessions"]
    served.call("PATCH", f"/api/sessions/{sid}", {"agent": "gateway"}, expect=200)
    busy = answers(503, {"error": {"message": "Draining"}})
    match failure:
        case "refused":
            gateway.api.instead["POST", "/v1/runs"] = busy
        case "no answer":
            gateway.api.instead["POST", "/v1/runs"] = [Close()]
        case "not listed":
            gateway.api.instead["GET", f"/api/sessions/{original}/messages"] = busy
        case _:
            gateway.play({"event": "run.failed", "error": "No credits."})
    failed = served.send(sid, "First")
    assert served.ended(failed["run"]["id"])["status"] == "failed"
    gateway.api.instead.clear()
    if failure == "fails":
        rows.append(row("user", "First"))
    gateway.play(text("Fine."), completed())
    if then == "retry":
        body = {"message_id": failed["message"]["id"]}
        rid = served.post(f"/api/sessions/{sid}/retry", body, expect=202)["run"]["id"]
    else:
        rid = served.begin(sid, "Second")
    assert served.ended(rid)["status"] == "complete"
    asked_for = {"retry": "First", "another message": "Second" if failure == "fails" else "First\n\nSecond"}[then]
    assert (gateway.api.bodies[-1]["session_id"], gateway.api.bodies[-1]["input"]) == (original, asked_for)


def test_a_file_opens_no_session_of_the_gateway(start: Start, gateway: ScriptedGateway) -> None:
    """Only what `holdfast import` has read from Hermes itself goes on there: a file that claims to be a copy of one of
    its sessions is told as a conversation to a new one."""
    gateway.api.sessions["secret"] = ("secret", [row("user", "A secret"), row("assistant", "Kept.")])
    served = start()
    sid = served.session(agent="gateway", title="Forged")
    gateway.play(text("Hi."), completed())
    served.ended(served.begin(sid, "Hello"))
    session, *rest = served.http.get(f"/api/sessions/{sid}/export").text.splitlines()
    forged = {**json.loads(session), "id": "forged", "origin": {"app": "hermes", "id": "secret"}}
    content = "\n".join([json.dumps(forged), *rest])
    (imported,) = import_lines(served, content)
    served.call("PATCH", f"/api/sessions/{imported['session_id']}", {"agent": "gateway"}, expect=200)
    gateway.play(text("Fine."), completed())
    assert served.ended(served.begin(imported["session_id"], "Go on"))["status"] == "complete"
    assert "session_id" not in gateway.api.bodies[-1]
    assert "secret" not in json.dumps(gateway.api.bodies[-1])
    assert imported["skipped"] == [
        "it is no copy of a chat of hermes, because a file cannot say so",
        "its agent 'gateway' was not kept; choose it in the chat",
    ]


@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_the_end_of_a_run_that_asks(start: Start, gateway: ScriptedGateway, how: str) -> None:
    """C3, X3: cancelled at a question, the call is denied; killed, it may have run. Both end the gateway's run before
    another begins."""
    served = start()
    sid = open_session(served)
    gateway.play(started(), asks(), PauseAt("stopped"), {"event": "run.cancelled"})
    rid = served.begin(sid, "Remove it")
    asked(served, rid)
    gateway.api.states["run_1"] = ["waiting_for_approval", "cancelled"]
    gateway.api.sessions["run_1"] = ("run_1", [row("user", "Remove it")])
    if how == "cancel":
        assert served.cancel(rid)["status"] == "cancelled"
    else:
        served.kill()
        served = start()
        until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    assert parts(served, sid) == [("terminal", "denied" if how == "cancel" else "unknown")]
    gateway.play(text("Fine."), completed())
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert set(gateway.api.stopped) == {"run_1"}
    assert gateway.api.answered == []


def test_an_unknown_session_is_told_the_conversation(start: Start, gateway: ScriptedGateway) -> None:
    """X5: if the gateway has lost the session, a new one gets the conversation in its first message."""
    served = start()
    sid = open_session(served)
    gateway.play(text("Hi."), completed())
    served.ended(served.begin(sid, "Hello"))
    gateway.play(text("Again."), completed())
    assert served.ended(served.begin(sid, "And now?"))["status"] == "complete"
    body = gateway.api.bodies[1]
    assert set(body) == {"input"}
    assert all(piece in body["input"] for piece in ("Hello", "Hi.", "And now?"))


# ---- questions ----


@pytest.mark.parametrize("decision", ["once", "session", "always", "deny"])
def test_a_question(start: Start, gateway: ScriptedGateway, decision: str) -> None:
    """X5: the person chooses among the gateway's options; the call is journaled as started before it is allowed."""
    served = start()
    sid = open_session(served)
    after = (finished(), text("Done."), completed())
    gateway.play(text("So: "), started("terminal", "rm x"), asks(), PauseAt("answered 1"), *after)
    rid = served.begin(sid, "Remove it")
    question = answer(served, rid, decision)
    assert question["args"] == {"title": "rm x", "command": "rm x", "description": "deletes"}
    assert [option["id"] for option in question["options"]] == ["once", "session", "always", "deny"]
    assert question["expires_at"] is not None
    assert served.ended(rid)["status"] == "complete"
    assert gateway.api.answered == [{"choice": decision}]
    state = "denied" if decision == "deny" else "done"
    assert parts(served, sid) == [("text", "So: "), ("terminal", state), ("text", "Done.")]


def test_options_that_are_not_offered(start: Start, gateway: ScriptedGateway) -> None:
    """X5: a decision that the gateway has no option for becomes *once*; without usable options there are two."""
    served = start()
    sid = open_session(served)
    gateway.play(
        asks(choices=["once", "deny"]), PauseAt("answered 1"), asks(choices=7), PauseAt("answered 2"), completed(".")
    )
    rid = served.begin(sid, "Remove it")
    first = answer(served, rid, "always")
    until(lambda: len(gateway.api.answered), (1).__eq__)
    until(lambda: asked(served, rid)["approval_id"], first["approval_id"].__ne__)
    assert [option["id"] for option in answer(served, rid, "deny")["options"]] == ["once", "deny"]
    assert served.ended(rid)["status"] == "complete"
    assert gateway.api.answered == [{"choice": "once"}, {"choice": "deny"}]


def test_two_questions_at_once_are_denied(start: Start, gateway: ScriptedGateway) -> None:
    """X5: the gateway cannot be told which of several questions an answer is for, so none is allowed."""
    served = start()
    sid = open_session(served)
    one, two = (started("terminal", command) for command in ("rm x", "rm y"))
    gateway.play(
        one, asks("rm x"), PAUSE, two, asks("rm y"), PauseAt("answered 1"), finished(), finished(), completed(".")
    )
    rid = served.begin(sid, "Remove both")
    question = asked(served, rid)
    gateway.let("here")
    assert served.ended(rid)["status"] == "complete"
    assert gateway.api.answered == [{"choice": "deny", "all": True}]
    path = f"/api/runs/{rid}/approvals/{question['approval_id']}"
    assert served.call("POST", path, {"decision": "once"}, expect=409)
    tools = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert [(tool["state"], tool["is_error"]) for tool in tools] == [("done", True), ("done", True)]
    assert all("several questions at once" in tool["result"] for tool in tools)


def test_an_answer_after_the_end(start: Start, gateway: ScriptedGateway) -> None:
    """C6: a question that the gateway has closed takes no answer, and one that is open when the run ends is closed."""
    served = start()
    sid = open_session(served)
    gateway.api.instead["POST", "/v1/runs/run_1/approval"] = answers(409, {"error": {"message": "not pending"}})
    gateway.play(started(), asks(), PAUSE, text("I went on."), completed())
    rid = served.begin(sid, "Remove it")
    answer(served, rid, "once")
    gateway.let("here")
    assert served.ended(rid)["status"] == "complete"
    gateway.play(started(), asks(), PauseAt("again"), text("I did not wait."), completed())
    rid = served.begin(sid, "Remove it")
    question = asked(served, rid)
    gateway.let("again")
    assert served.ended(rid)["status"] == "complete"
    path = f"/api/runs/{rid}/approvals/{question['approval_id']}"
    assert served.call("POST", path, {"decision": "once"}, expect=409)
    assert parts(served, sid)[0] == ("terminal", "unknown")


def test_a_call_that_nobody_answered_is_allowed_later(start: Start, gateway: ScriptedGateway) -> None:
    """X5: denied before the gateway does so by itself, and allowed later: the same command runs without a question."""
    served = start(section={"answer_within": 2.5})
    sid = open_session(served)
    gateway.play(started(), asks("rm x"), PauseAt("answered 1"), text("No."), completed())
    rid = served.begin(sid, "Remove it")
    assert served.ended(rid)["status"] == "complete"
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert (tool["state"], tool["result"]) == ("denied", NO_ANSWER)
    gateway.api.states["run_1"] = ["completed"]
    gateway.api.sessions["run_1"] = ("run_1", [row("user", "Remove it"), row("assistant", "No.")])
    gateway.play(started(), asks("rm x"), PauseAt("answered 2"), finished(), text("Yes."), completed())
    again = served.post(f"/api/runs/{rid}/continue", {"allow": [tool["call_id"]]}, expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert gateway.api.answered == [{"choice": "deny"}, {"choice": "once"}]
    assert parts(served, sid) == [("terminal", "denied"), ("text", "No."), ("terminal", "done"), ("text", "Yes.")]
    assert "The user now allows it" in gateway.api.bodies[1]["input"]


def test_an_answer_that_is_too_late_is_not_sent(start: Start, gateway: ScriptedGateway) -> None:
    """X5: once the gateway has denied a question by itself, an answer would be given to the next one. The run is
    stopped, and it is unknown whether the call was made."""
    served = start(section={"answer_within": 2.5})
    sid = open_session(served)
    gateway.play(started(), asks("rm x"), PauseAt("answered 1"), text("No."), completed())
    rid = served.begin(sid, "Remove it")
    assert served.ended(rid)["status"] == "complete"
    (tool,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    served.kill()
    served = start(section={"answer_within": 0.1})  # over before the call is journaled as started
    gateway.api.states["run_1"] = ["completed"]
    gateway.api.sessions["run_1"] = ("run_1", [row("user", "Remove it"), row("assistant", "No.")])
    gateway.play(started(), asks("rm x"), Hang())
    again = served.post(f"/api/runs/{rid}/continue", {"allow": [tool["call_id"]]}, expect=202)["run"]["id"]
    error = served.ended(again)["error"]
    assert (error["code"], "came too late" in error["message"]) == ("agent-timeout", True)
    assert gateway.api.answered == [{"choice": "deny"}]
    assert gateway.api.stopped == ["run_2"]
    assert parts(served, sid)[-1] == ("terminal", "unknown")


def test_a_command_with_a_masked_secret_cannot_be_allowed_later(start: Start, gateway: ScriptedGateway) -> None:
    """X5: two commands whose secrets the gateway masks look the same, so none is allowed in advance."""
    served = start(section={"answer_within": 2.5})
    sid = open_session(served)
    gateway.play(started(), asks("rm x; KEY=***"), PauseAt("answered 1"), text("No."), completed())
    rid = served.begin(sid, "Remove it")
    assert served.ended(rid)["status"] == "complete"
    tool = served.answer(sid)["parts"][0]
    assert "cannot be allowed later" in tool["result"]
    served.refused("not-allowed", "POST", f"/api/runs/{rid}/continue", {"allow": [tool["call_id"]]})


# ---- cancel, crash, continue ----


def test_a_cancel_stops_the_run(start: Start, gateway: ScriptedGateway) -> None:
    """C7, C8: the gateway's run is stopped, what was shown and what it still says is kept, and the next turn waits for
    its end."""
    served = start()
    sid = open_session(served)
    gateway.play(text("Half an "), PauseAt("stopped"), text("answer."), {"event": "run.cancelled"})
    rid = served.begin(sid, "Hello")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    assert served.cancel(rid)["status"] == "cancelled"
    assert parts(served, sid) == [("text", "Half an answer.")]
    assert gateway.api.stopped == ["run_1"]
    gateway.api.states["run_1"] = ["stopping", "stopping", "cancelled"]
    gateway.api.sessions["run_1"] = ("run_1", [row("user", "Hello")])
    gateway.play(text("Now."), completed())
    assert served.ended(served.begin(sid, "Again"))["status"] == "complete"
    asked_for = gateway.asked_for
    assert asked_for.index("POST /v1/runs", asked_for.index("POST /v1/runs") + 1) > max(
        n for n, item in enumerate(asked_for) if item == "GET /v1/runs/run_1"
    )


def test_a_cancel_while_the_run_starts(start: Start, gateway: ScriptedGateway) -> None:
    """C7: the gateway has taken the request, but its answer with the run's id is still under way: the turn waits for
    it, so that the run can be stopped, and the next turn knows of it."""
    served = start(gateway_limits={"cancel_grace": 30.0})
    sid = open_session(served)
    gateway.api.instead["POST", "/v1/runs"] = [PauseAt("starting"), *answers(202, {"run_id": "run_1"})]
    rid = served.begin(sid, "Hello")
    until(lambda: "POST /v1/runs" in gateway.asked_for)
    with ThreadPoolExecutor(1) as clients:
        cancelling = clients.submit(served.cancel, rid)
        until(lambda: served.run(rid)["cancel_requested"])
        gateway.let("starting")
        assert cancelling.result()["id"] == rid
    assert served.ended(rid)["status"] == "cancelled"
    assert gateway.api.stopped == ["run_1"]
    gateway.api.instead.clear()
    gateway.api.states["run_1"] = ["cancelled"]
    gateway.api.sessions["run_1"] = ("run_1", [])
    gateway.play(text("Now."), completed())
    assert served.ended(served.begin(sid, "Again"))["status"] == "complete"
    assert gateway.api.bodies[-1]["session_id"] == "run_1"


def test_a_run_whose_start_is_not_answered(start: Start, gateway: ScriptedGateway) -> None:
    """C7: a cancelled turn waits for the id of its run for a moment only."""
    served = start(gateway_limits={"cancel_grace": 0.1})
    gateway.api.instead["POST", "/v1/runs"] = [Hang()]
    rid = served.begin(open_session(served), "Hello")
    until(lambda: "POST /v1/runs" in gateway.asked_for)
    served.cancel(rid)
    assert served.ended(rid)["status"] == "cancelled"
    assert gateway.api.stopped == []


def test_a_run_that_does_not_stop(start: Start, gateway: ScriptedGateway) -> None:
    """C7: a cancel waits for the gateway for a moment only, and no second run begins in the session meanwhile."""
    served = start(gateway_limits={"cancel_grace": 0.2, "stop": 0.5})
    sid = open_session(served)
    gateway.play(text("Half."), Hang())
    rid = served.begin(sid, "Hello")
    with served.watch(rid) as stream:
        stream.until("text.delta")
    assert served.cancel(rid)["status"] == "cancelled"
    gateway.api.states["run_1"] = ["running"]
    run = served.ended(served.begin(sid, "Again"))
    assert (run["error"]["code"], len(gateway.api.bodies)) == ("agent-busy", 1)


@pytest.mark.parametrize("how", ["killed", "stream lost"])
def test_what_was_lost_is_asked_for(start: Start, gateway: ScriptedGateway, how: str) -> None:
    """X1, X3, X5: after `kill -9` or a lost stream what was shown is stored; the stream is not opened again. If the run
    has completed meanwhile, the rest comes from the session's messages, and nothing is prompted."""
    served = start()
    sid = open_session(served)
    shown = (started("terminal", "ls"), finished(), text("Half an "), started("terminal", "make"))
    gateway.play(*shown, Close() if how == "stream lost" else Hang())
    rid = served.begin(sid, "Hello")
    with served.watch(rid) as stream:
        while stream.until("tool.started").data["args"].get("title") != "make":
            pass
    if how == "killed":
        served.kill()
        served = start()
        assert until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    else:
        assert served.ended(rid)["error"]["code"] == "agent-gone"
    assert parts(served, sid) == [("terminal", "done"), ("text", "Half an "), ("terminal", "unknown")]
    gateway.api.states["run_1"] = ["completed"]
    gateway.api.sessions["run_1"] = (
        "run_1",
        [
            row("user", "Hello"),
            call_row("c1", "ls"),
            row("tool", "a b", tool_call_id="c1"),
            call_row("c2", "make", "Half an"),
            row("tool", "built", tool_call_id="c2"),
            call_row("c3", "make test"),
            row("tool", "passed", tool_call_id="c3"),
            row("assistant", "answer."),
        ],
    )
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    assert parts(served, sid) == [
        ("terminal", "done"),
        ("text", "Half an "),
        ("terminal", "done"),
        ("terminal", "done"),
        ("text", "answer."),
    ]
    results = [part["result"] for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert results == [None, "built", "passed"]
    assert (len(gateway.api.bodies), gateway.api.readers, gateway.api.stopped) == (1, ["run_1"], [])


def test_the_rest_of_a_text_that_was_half_shown(start: Start, gateway: ScriptedGateway) -> None:
    """X1: no letter is shown twice, and none is left out."""
    served = start()
    sid = open_session(served)
    gateway.play(text("Half an "), Close())
    rid = served.begin(sid, "Hello")
    served.ended(rid)
    gateway.api.states["run_1"] = ["completed"]
    gateway.api.sessions["run_1"] = ("run_1", [row("user", "Hello"), row("assistant", "Half an answer.")])
    served.ended(served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"])
    assert parts(served, sid) == [("text", "Half an answer.")]


@pytest.mark.parametrize("state", [("running", "cancelled"), ("failed",), None])
def test_an_unfinished_run_is_ended_and_prompted_again(
    start: Start, gateway: ScriptedGateway, state: tuple[str, ...] | None
) -> None:
    """X5: killed in mid-answer, the run continues by itself: an earlier run that still works is stopped first, and the
    new one is told what was shown and which tool may have run."""
    served = start()
    sid = open_session(served)
    gateway.play(text("Half an "), started("terminal", "make"), Hang())
    rid = served.begin(sid, "Hello")
    with served.watch(rid) as stream:
        stream.until("tool.started")
    served.kill()
    gateway.api.sessions["run_1"] = ("run_1", [row("user", "Hello")])
    if state is not None:
        gateway.api.states["run_1"] = [*state]
    gateway.play(text("answer."), completed())
    served = start(auto_continue=True)
    assert until(lambda: served.run(rid)["status"], "complete".__eq__)
    assert parts(served, sid) == [("text", "Half an "), ("terminal", "unknown"), ("text", "answer.")]
    body = gateway.api.bodies[1]
    assert body["session_id"] == "run_1"
    assert all(piece in body["input"] for piece in ("was interrupted", "Half an", "outcome is unknown"))
    assert gateway.api.stopped == (["run_1"] if state and state[0] == "running" else [])


def test_the_key_is_nowhere(start: Start, gateway: ScriptedGateway) -> None:
    """The key of a gateway is sent to it alone: it is in no answer of the API, no error that quotes the gateway, no
    export and no log."""
    served = start(log_level="debug")
    sid = open_session(served)
    gateway.play(text("So."), {"event": "run.failed", "error": f"the key {KEY} is wrong"})
    run = served.ended(served.begin(sid, "Hello"))
    assert "the key … is wrong" in run["error"]["message"]
    texts = [served.http.get(f"{served.url}{path}").text for path in ("/api/agents", f"/api/sessions/{sid}/messages")]
    texts.append(served.http.get(f"{served.url}/api/export").text)
    assert gateway.api.exchanges
    assert not [found for found in [*texts, served.complaints] if KEY in found]
