"""A program's turns as durable runs: its updates, its questions, its end, and what it is told after an interruption."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.acp.conftest import Program, open_session, play
from tests.chat.model_server import ScriptedModelServer
from tests.chat.questions import asked, decide
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until
from tests.tools.test_shell_sandbox import needs_bubblewrap

OPTIONS = [
    {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "allow_session", "name": "Allow for session", "kind": "allow_always"},
    {"optionId": "deny", "name": "Deny", "kind": "reject_once"},
    {"optionId": "deny_always", "name": "Deny always", "kind": "reject_always"},
]


def tool(call_id: str, update: str = "tool_call", **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": update, "toolCallId": call_id, **fields}}


def content(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def turn(served: Served, sid: str, *actions: dict[str, Any]) -> Any:
    return served.turn(sid, play(*actions))


def test_every_update_becomes_an_event(start: Start, program: Program) -> None:
    """C2, C3: text, thoughts, plans, tools with output, diffs and places, usage, cost and title are in the journal."""
    served = start()
    sid = served.session(agent="scripted")
    diff = [{"type": "diff", "path": "/w/a.txt", "oldText": "one", "newText": "two"}]
    entries = [{"content": "Look", "priority": "high", "status": "in_progress"}]
    rid = served.begin(
        sid,
        play(
            {"think": "hm"},
            {"say": "I look. "},
            {"update": {"sessionUpdate": "plan", "entries": entries}},
            tool(
                "t1", title="Run ls", kind="execute", rawInput={"command": "ls"}, locations=[{"path": "/w", "line": 3}]
            ),
            tool("t1", "tool_call_update", status="in_progress", content=content("a.txt")),
            tool("t1", "tool_call_update", content=content("a.txt\nb.txt")),
            tool("t1", "tool_call_update", status="completed"),
            tool("t2", title="Edit", kind="edit", status="pending", content=diff),
            tool("t2", "tool_call_update", status="failed", rawOutput={"why": "read-only"}),
            {"update": {"sessionUpdate": "plan", "entries": [{**entries[0], "status": "completed"}]}},
            {"update": {"sessionUpdate": "available_commands_update", "availableCommands": []}},
            {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "x"}},
            {"update": {"sessionUpdate": "session_info_update", "title": "Files"}},
            {
                "update": {
                    "sessionUpdate": "usage_update",
                    "used": 5,
                    "size": 10,
                    "cost": {"amount": 0.5, "currency": "USD"},
                }
            },
            {"say": "Done."},
            {"usage": [7, 3]},
        ),
    )
    run = served.ended(rid)
    assert (run["status"], run["error"]) == ("complete", None)
    parts = served.answer(sid)["parts"]
    assert [part["type"] for part in parts] == ["reasoning", "text", "plan", "tool", "tool", "text"]
    assert parts[2]["entries"] == [{"content": "Look", "status": "completed", "priority": "high"}]
    ls, edit = parts[3], parts[4]
    assert (ls["name"], ls["state"], ls["result"], ls["output"]) == ("execute", "done", "a.txt\nb.txt", "a.txt\nb.txt")
    assert ls["args"] == {"title": "Run ls", "command": "ls", "locations": ["/w:3"]}
    assert (edit["state"], edit["is_error"], edit["result"]) == ("done", True, {"why": "read-only"})
    assert {"old_text": "one", "new_text": "two", "path": "/w/a.txt"}.items() <= edit["args"].items()
    assert (run["usage"]["input_tokens"], run["usage"]["output_tokens"], run["usage"]["cost"]) == (7, 3, 0.5)
    assert until(lambda: served.look(sid)["title"]) == "Files"
    events = [frame.event for frame in served.events(rid)]
    assert events.index("tool.started") < events.index("tool.delta") < events.index("tool.finished")


def test_a_chat_of_a_program_is_titled_without_a_model(start: Start, up: ScriptedModelServer) -> None:
    """What a program read and said is not sent to a model that nobody chose for it."""
    served = start()
    sid = served.session(agent="scripted")
    served.turn(sid, "What is in my diary? " + play({"say": "Nothing of note."}))
    title = until(lambda: served.look(sid)["title"])
    assert title.startswith("What is in my diary?")
    assert up.count("default", job="title") == 0


def test_the_same_program_answers_the_next_turn(start: Start, program: Program) -> None:
    """One program per session: it is kept between turns, and another session has another one."""
    served = start()
    sid = open_session(served)
    assert turn(served, sid, {"say": "one"})["parts"][0]["text"] == "one"
    assert turn(served, sid, {"say": "two"})["parts"][0]["text"] == "two"
    turn(served, open_session(served), {"say": "three"})
    first, second, other = program.prompts
    assert first["pid"] == second["pid"] != other["pid"]
    assert first["session"] == second["session"] != other["session"]


def test_a_permission_request_is_an_approval_with_the_programs_options(start: Start, program: Program) -> None:
    """X5: the question has the program's options, the run keeps its program, and the program is told the chosen one, or
    one that allows no more."""
    served = start()
    sid = open_session(served)
    cases = [
        ("once", "Allow once", "allow_once"),
        ("session", "Allow for session", "allow_session"),
        ("deny", "Deny always", "deny_always"),
        ("deny", None, "deny"),
        ("always", None, "allow_once"),
    ]
    for number, (decision, option, chosen) in enumerate(cases):
        call_id, status = f"t{number}", "failed" if decision == "deny" else "completed"
        announced = tool(call_id, title="rm", kind="execute", rawInput={"command": "rm x"})
        question = {"ask": {"toolCallId": f"perm-{number}", "kind": "execute", "title": "rm"}, "options": OPTIONS}
        rid = served.begin(sid, play(announced, question, tool(call_id, "tool_call_update", status=status)))
        found = asked(served, rid)
        assert [item["name"] for item in found["options"]] == [item["name"] for item in OPTIONS]
        assert (found["call_id"], found["name"]) == (call_id, "execute")
        body = {"decision": decision, **({"option": option} if option else {})}
        served.post(f"/api/runs/{rid}/approvals/{found['approval_id']}", body)
        assert served.ended(rid)["status"] == "complete"
        assert program.lines("answers")[-1] == {"outcome": "selected", "optionId": chosen}
        (shown,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
        assert shown["state"] == ("denied" if decision == "deny" else "done")
    assert len({prompt["pid"] for prompt in program.prompts}) == 1


@pytest.mark.parametrize(
    ("before", "asked_id"),
    [
        ([tool("t1", title="ls", kind="read")], "unheard-of"),
        ([tool("t1", title="rm", kind="execute"), tool("t1", "tool_call_update", status="completed")], "t1"),
        ([tool("t1", title="ls", kind="read")], "long" * 100),
    ],
    ids=["unknown", "finished", "long"],
)
def test_a_question_about_no_open_call_is_a_call_of_its_own(
    start: Start, program: Program, before: list[dict[str, Any]], asked_id: str
) -> None:
    """X5: a question under an id that is unknown, finished, denied or too long is about a call of its own, never about
    another that is open."""
    served = start()
    sid = open_session(served)
    question = {"ask": {"toolCallId": asked_id, "kind": "execute", "title": "rm"}, "options": OPTIONS}
    rid = served.begin(sid, play(*before, question, question))
    for count, decision in enumerate(("deny", "once"), 1):
        found = decide(served, rid, decision)
        assert (found["call_id"], found["name"], found["args"]) == (asked_id[:200], "execute", {"title": "rm"})
        until(lambda: len(program.lines("answers")), count.__eq__)
    assert [answer["optionId"] for answer in program.lines("answers")] == ["deny", "allow_once"]
    assert served.ended(rid)["status"] == "complete"
    states = [part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert states[1:] == ["denied", "unknown"]


def test_a_question_that_the_program_denies_by_itself_is_denied_before(start: Start, program: Program) -> None:
    """X5: with a time limit of the program's, the question says when it ends, and the journal why it was denied."""
    served = start(section={"answer_within": 1.0})
    sid = open_session(served)
    rid = served.begin(sid, play(tool("t1", title="rm"), {"ask": {"toolCallId": "t1"}, "options": OPTIONS}))
    assert served.ended(rid)["status"] == "complete"
    (request,) = [frame.data for frame in served.events(rid) if frame.event == "approval.requested"]
    assert request["expires_at"] >= request["at"] - 1000
    (shown,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert (shown["state"], shown["result"]) == ("denied", "Nobody answered in time, so it was denied.")
    assert program.lines("answers") == [{"outcome": "selected", "optionId": "deny"}]


def test_cancel_tells_the_program_and_takes_what_it_still_says(start: Start, program: Program) -> None:
    """C6: the program is told, its late update is part of the answer, and it answers the next turn."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play({"say": "one "}, {"touch": "here"}, {"hang": 1}))
    program.reached("here")
    assert served.cancel(rid)["status"] == "cancelled"
    assert served.answer(sid)["parts"][0]["text"] == "one [late]"
    assert len(program.lines("cancelled")) == 1
    assert turn(served, sid, {"say": "two"})["parts"][0]["text"] == "two"
    assert program.prompts[0]["pid"] == program.prompts[1]["pid"]


def test_cancel_at_a_question_answers_it_with_cancelled_and_ends_the_program(start: Start, program: Program) -> None:
    """C6, X5: the question is answered with *cancelled*; the program is started again for the next turn and has its
    session back."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play({"say": "one "}, {"ask": {"toolCallId": "t1", "title": "rm"}, "options": OPTIONS}))
    asked(served, rid)
    assert served.cancel(rid)["status"] == "cancelled"
    (shown,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert shown["state"] == "denied"
    turn(served, sid, {"say": "two"})
    first, second = program.prompts
    assert first["pid"] != second["pid"]
    assert first["session"] == second["session"]
    assert "conversation" not in second["text"]


def test_a_program_that_ignores_cancel_is_ended(start: Start, program: Program) -> None:
    """C6, C7: after the grace period its process is gone, and the next turn resumes its session in a new one."""
    program.behave("deaf")
    served = start(program_limits={"cancel_grace": 0.1})
    sid = open_session(served)
    rid = served.begin(sid, play({"say": "one "}, {"touch": "here"}, {"hang": 1}))
    program.reached("here")
    assert served.cancel(rid)["status"] == "cancelled"
    until(lambda: not _lives(program.prompts[0]["pid"]))
    turn(served, sid, {"say": "two"})
    assert program.prompts[0]["session"] == program.prompts[1]["session"]


def test_the_program_dies_in_mid_answer_and_goes_on(start: Start, program: Program) -> None:
    """X3, X5: what was shown is kept, an announced tool is unknown, the error has the program's last words, and
    *continue* tells the next process what was shown and which tools finished."""
    served = start()
    sid = open_session(served)
    actions = (
        {"say": "Shown so far. "},
        tool("t1", title="First", kind="execute"),
        tool("t1", "tool_call_update", status="completed", content=content("all good")),
        tool("t2", title="Second", kind="execute"),
        {"die": "SIGKILL"},
    )
    rid = served.begin(sid, play(*actions))
    run = served.ended(rid)
    assert (run["status"], run["error"]["code"]) == ("failed", "agent-gone")
    assert "the scripted program breaks down" in run["error"]["message"]
    states = [part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert states == ["done", "unknown"]
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    texts = [part["text"] for part in served.answer(sid)["parts"] if part["type"] == "text"]
    assert texts == ["Shown so far. ", "Continued."]
    first, second = program.prompts
    assert first["session"] == second["session"]
    assert first["pid"] != second["pid"]
    for told in ("Shown so far.", "First) finished: all good", "Second) was started, and its outcome is unknown"):
        assert told in second["text"]


@pytest.mark.parametrize(
    ("stuck", "automatic"),
    [("tool.started", False), ("tool.finished", False), ("run.complete", False), ("tool.finished", True)],
)
def test_the_server_is_killed(start: Start, program: Program, stuck: str, automatic: bool) -> None:
    """X1, X5: killed at a named point of the journal, the server leaves no program behind; what was shown is stored, an
    announced tool is never *not run*, and the run goes on in the program's session."""
    served = start(stuck=stuck, auto_continue=automatic)
    sid = open_session(served)
    actions = (tool("t1", title="First"), tool("t1", "tool_call_update", status="completed"))
    rid = served.begin(sid, play({"say": "One. "}, {"wait": "go"}, *actions, {"say": "Two."}))
    with served.watch(rid) as stream:
        seen = stream.until("text.delta").data["text"]
        program.let("go")
    until((served.data_dir / "stuck").exists)
    pid = program.prompts[0]["pid"]
    served.kill()
    until(lambda: not _lives(pid))
    (served.data_dir / "stuck").unlink()
    served = start(auto_continue=automatic)
    if not automatic:
        run = until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
        before = served.answer(sid)["parts"]
        assert before[0]["text"].startswith(seen)
        tools = [part["state"] for part in before if part["type"] == "tool"]
        assert tools == {"tool.started": [], "tool.finished": ["unknown"], "run.complete": ["done"]}[stuck]
        rid = served.post(f"/api/runs/{run['id']}/continue", expect=202)["run"]["id"]
    assert served.ended(rid)["status"] == "complete"
    assert "Continued." in served.answer(sid)["parts"][-1]["text"]
    first, second = program.prompts
    assert first["session"] == second["session"]
    assert "One." in second["text"]


def asks(call_id: str, title: str) -> list[dict[str, Any]]:
    call = {"toolCallId": call_id, "kind": "execute", "title": title}
    return [tool(call_id, title=title, kind="execute"), {"ask": call, "options": OPTIONS, "quiet": True}]


@pytest.mark.parametrize("victim", ["program", "server"])
def test_what_the_user_decided_is_told(start: Start, program: Program, victim: str) -> None:
    """X5: interrupted after a denial and a permission, the program is told both; the next turn begins without them."""
    served = start()
    sid = open_session(served)
    rid = served.begin(sid, play(*asks("t1", "First"), *asks("t2", "Second"), {"touch": "here"}, {"hang": 1}))
    decide(served, rid, "deny")
    until(lambda: len(program.lines("answers")), (1).__eq__)
    decide(served, rid, "once")
    program.reached("here")
    if victim == "program":
        os.kill(program.prompts[0]["pid"], signal.SIGKILL)
        assert served.ended(rid)["error"]["code"] == "agent-gone"
    else:
        served.kill()
        served = start()
        until(lambda: served.run(rid)["status"], "interrupted".__eq__)
    again = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    assert served.ended(again)["status"] == "complete"
    told = program.prompts[1]["text"]
    assert "execute (First) was denied by the user" in told
    assert "execute (Second) was started, and its outcome is unknown; look before you do it again" in told
    assert told.count("The user had allowed it.") == 1
    rid = served.begin(sid, play(tool("t2", title="Third", kind="execute"), {"die": "SIGKILL"}))
    served.ended(rid)
    served.ended(served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"])
    assert "execute (Third) was started, and its outcome is unknown" in program.prompts[3]["text"]
    assert "had allowed" not in program.prompts[3]["text"]


def test_a_permission_that_was_not_journaled_is_told(start: Start, program: Program) -> None:
    """X1, X5: killed after it had stored the permission and before the program had it, the server continues by itself
    and tells that the call was allowed, and never that it was not run: it was announced."""
    served = start(stuck="approval.resolved", auto_continue=True)
    sid = open_session(served)
    rid = served.begin(sid, play(*asks("t1", "First")))
    question = asked(served, rid)
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", {"decision": "once"})
    until((served.data_dir / "stuck").exists)
    served.kill()
    (served.data_dir / "stuck").unlink()
    served = start(auto_continue=True)
    assert served.ended(rid)["status"] == "complete"
    told = program.prompts[1]["text"]
    assert "execute (First) was started, and its outcome is unknown" in told
    assert "The user had allowed it." in told
    assert program.lines("answers") == []


@pytest.mark.parametrize("mode", ["no-load", "forgets"])
def test_a_session_that_is_not_there_any_more_is_told_again(start: Start, program: Program, mode: str) -> None:
    """X5: a program that cannot load its session, or loads nothing, gets a new one with the conversation in it."""
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "The word is teapot."})
    program.behave(mode)
    _kill_idle(served, program.prompts[0]["pid"])
    turn(served, sid, {"say": "two"})
    first, second = program.prompts
    assert first["session"] != second["session"]
    assert "The word is teapot." in second["text"]


@pytest.mark.parametrize("mode", ["resumes", "resumes-unlisted", "resumes-list-fails", "resumes-endless-list"])
def test_a_program_that_cannot_load_resumes_its_session(start: Start, program: Program, mode: str) -> None:
    """X1, X5: the session is looked for in the program's list, page by page and if it has one, and resumed; what the
    program replays of it is not journaled."""
    program.behave(mode)
    served = start()
    others = [open_session(served) for _ in range(2)]
    sid = open_session(served)
    for each in (*others, sid):
        turn(served, each, {"say": "The word is teapot."})
    served.kill()
    served = start()
    assert [part.get("text") for part in turn(served, sid, {"say": "second"})["parts"]] == ["second"]
    before, after = program.prompts[-2:]
    assert before["session"] == after["session"]
    assert "teapot" not in after["text"]
    assert program.lines("resumed") == [after["session"]]
    asked = len(program.lines("listed"))
    assert asked == {"resumes": 3, "resumes-unlisted": 0, "resumes-list-fails": 1, "resumes-endless-list": 50}[mode]


def test_a_session_that_is_not_in_the_list_is_not_resumed(start: Start, program: Program) -> None:
    """X5: a program that would resume a session it has lost as an empty one gets a new one with the conversation."""
    program.behave("resumes")
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "The word is teapot."})
    (program.home / "session-1").rename(program.home / "lost")
    served.kill()
    served = start()
    turn(served, sid, {"say": "two"})
    first, second = program.prompts
    assert first["session"] != second["session"]
    assert "The word is teapot." in second["text"]
    assert program.lines("resumed") == []


def test_a_session_that_the_program_refuses_is_told_again(start: Start, program: Program) -> None:
    """X5: a refusal without a word, as of a session that the program lost, is prompted again in a new session."""
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "The word is teapot."})
    (program.home / "session-1").rename(program.home / "lost")
    answer = turn(served, sid, {"say": "two"})
    assert (answer["error"], [part["text"] for part in answer["parts"]]) == (None, ["two"])
    assert "The word is teapot." in program.prompts[-1]["text"]


def test_a_refusal_after_work_is_not_prompted_again(start: Start, program: Program) -> None:
    """X5: a program that has used a file knows the session: it would do its work twice."""
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "one"})
    path = served.data_dir / "workspaces" / sid / "a.txt"
    writes = {"call": "write_text_file", "params": {"path": str(path), "content": "x"}}
    rid = served.begin(sid, play(writes, {"stop": "refusal"}))
    assert served.ended(rid)["error"]["code"] == "refusal"
    assert path.read_text() == "x"
    assert len(program.prompts) == 2


def test_client_methods_stay_in_the_working_directory(start: Start, program: Program) -> None:
    """Files are read and written inside the working directory only, links are not followed, and commands end with their
    terminal."""
    served = start()
    sid = open_session(served)
    cwd = served.data_dir / "workspaces" / sid
    cwd.mkdir(parents=True)
    (cwd / "out").symlink_to("/etc")

    def call(method: str, **params: Any) -> dict[str, Any]:
        return {"call": method, "params": params}

    turn(
        served,
        sid,
        call("write_text_file", path=f"{cwd}/a/b.txt", content="one\ntwo\nthree\n"),
        call("read_text_file", path=f"{cwd}/a/b.txt", line=2, limit=1),
        call("read_text_file", path="/etc/passwd"),
        call("read_text_file", path=f"{cwd}/out/passwd"),
        call("write_text_file", path=f"{cwd}/../escaped", content="x"),
        call("create_terminal", command="sh", args=["-c", "echo from $PWD; exit 3"]),
        call("wait_for_terminal_exit", terminal_id="term_1"),
        call("terminal_output", terminal_id="term_1"),
        call("create_terminal", command="sleep 1000"),
        call("kill_terminal", terminal_id="term_2"),
        call("wait_for_terminal_exit", terminal_id="term_2"),
        call("release_terminal", terminal_id="term_2"),
        call("terminal_output", terminal_id="term_2"),
        {"say": "Done."},
    )
    results = program.lines("results")
    assert results[1] == {"content": "two\n"}
    assert "outside" in results[2]["error"]
    assert "error" in results[3]
    assert "outside" in results[4]["error"]
    assert results[6] == {"exitCode": 3}
    assert results[7] == {"output": f"from {cwd}\n", "truncated": False, "exitStatus": {"exitCode": 3}}
    assert "signal" in results[10]
    assert "no such terminal" in results[12]["error"]


@needs_bubblewrap
def test_commands_of_a_program_follow_the_rules_of_the_shell(start: Start, program: Program) -> None:
    """X5: the server's sandbox and `[shell]` settings hold for terminals, which have no keys of the program."""
    environment = {"JAVA_HOME": "/java", "OPENAI_API_KEY": "sk-secret"}
    section = {"env": {"AGENT_KEY": "s3cret"}}
    served = start(section=section, environment=environment, shell={"sandbox": "required", "env": ["JAVA_HOME"]})
    sid = open_session(served)
    url = served.url.removeprefix("http://").replace(":", "/")
    command = f"env; ls -A {served.data_dir}; bash -c 'exec 3<>/dev/tcp/{url}' && echo connected"
    turn(
        served,
        sid,
        {"call": "create_terminal", "params": {"command": command}},
        {"call": "wait_for_terminal_exit", "params": {"terminal_id": "term_1"}},
        {"call": "terminal_output", "params": {"terminal_id": "term_1"}},
    )
    output = program.lines("results")[-1]["output"]
    assert "JAVA_HOME=/java\n" in output
    assert not [hidden for hidden in ("KEY", "s3cret", "holdfast.db", "connected\n") if hidden in output]


def test_agents_are_listed_and_tested(start: Start, program: Program) -> None:
    """The list says which programs can be started and why others cannot; a test starts one and asks who it is; `/v1`
    offers those that can be started."""
    served = start(environment={"PATH": "/nowhere"})
    agents = {item["name"]: item for item in served.get("/api/agents")["items"]}
    assert (agents["scripted"]["available"], agents["scripted"]["is_program"]) == (True, True)
    assert (agents["chat"]["available"], agents["chat"]["is_program"]) == (True, False)
    assert agents["hermes"]["available"] is False
    assert "hermes was not found on the PATH" in agents["hermes"]["reason"]
    tested = served.post("/api/agents/scripted/test")
    assert (tested["ok"], tested["program"], tested["version"]) == (True, "Scripted", "1.2.3")
    assert served.post("/api/agents/goose/test")["ok"] is False
    served.refused("not-found", "POST", "/api/agents/nobody/test")
    models = [item["id"] for item in served.get("/v1/models")["data"]]
    assert "agent:scripted" in models
    assert "agent:hermes" not in models
    body = {"model": "agent:scripted", "messages": [{"role": "user", "content": play({"say": "Over /v1."})}]}
    assert served.post("/v1/chat/completions", body)["choices"][0]["message"]["content"] == "Over /v1."


def test_another_branch_is_another_session(start: Start, program: Program) -> None:
    """O1: after an undo the program's session knows too much; the next turn has a new one, told what is left."""
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "kept"})
    turn(served, sid, {"say": "secret"})
    served.post(f"/api/sessions/{sid}/undo")
    turn(served, sid, {"say": "three"})
    assert program.prompts[1]["session"] != program.prompts[2]["session"]
    assert "kept" in program.prompts[2]["text"]
    assert "secret" not in program.prompts[2]["text"]


def test_a_replay_is_not_journaled(start: Start, program: Program) -> None:
    """X1: loading a session replays it; the answer has only what came after the prompt."""
    served = start()
    sid = open_session(served)
    turn(served, sid, {"say": "first"})
    served.kill()
    served = start()
    assert [part.get("text") for part in turn(served, sid, {"say": "second"})["parts"]] == ["second"]
    assert program.prompts[0]["session"] == program.prompts[1]["session"]


def _kill_idle(served: Served, pid: int) -> None:
    """Kills a program between turns, and waits until the server has collected a process."""
    before = _children(served)
    os.kill(pid, signal.SIGKILL)
    until(lambda: _children(served) < before)


def _children(served: Served) -> set[str]:
    tasks = Path(f"/proc/{served.process.pid}/task").iterdir()
    return {child for task in tasks for child in (task / "children").read_text().split()}


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
