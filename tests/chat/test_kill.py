"""X5 with a server that is killed: what happened is not done again, what is not known is asked, words go on."""

import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import begin, decide, effects, note, results, told
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, shown, until
from tests.upstream import Hang, Head, PauseAt, delta, says, sse

FREE = {"tools": {"write_file": "allow", "edit_file": "allow"}}


def go_on(served: Served, rid: str) -> str:
    """Continue; the new run's id."""
    found: str = served.post(f"/api/runs/{rid}/continue", expect=202)["run"]["id"]
    return found


@pytest.fixture(params=[False, True], ids=["by a person", "by itself"])
def automatic(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def taken_up(served: Served, rid: str, automatic: bool) -> str:
    """The run that goes on after the restart: the same one, or a new one that a person asked for."""
    if automatic:
        return rid
    run = until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
    assert run["error"] is None
    return go_on(served, rid)


def test_killed_between_two_tools(start: Start, up: ScriptedModelServer, automatic: bool) -> None:
    """X5: the first tool's result goes to the model again, and its effect does not happen again."""
    model = f"kill between {automatic}"
    up.play(
        model,
        calls(("c1", "write_file", {"path": "one.txt", "content": "1"}), text="First. "),
        [PauseAt(model), Hang()],
        calls(("c2", "edit_file", {"path": "one.txt", "old": "1", "new": "12"}), text="Then. "),
        says("Done."),
    )
    served = start(more=FREE, auto_continue=automatic)
    sid, rid = begin(served, model, "Do both")
    up.reached(model)
    served.kill()
    served = start(more=FREE, auto_continue=automatic)
    rid = taken_up(served, rid, automatic)
    assert served.ended(rid)["status"] == "complete"
    assert (served.data_dir / "workspaces" / sid / "one.txt").read_text() == "12"
    answer = served.answer(sid)
    assert [p.get("text") or p["call_id"] for p in answer["parts"]] == ["First. ", "c1", "Then. ", "c2", "Done."]
    assert told(up.asked(model, 3)) == told(up.asked(model, 2))
    assert set(results(up.asked(model, 4))) == {"c1", "c2"}
    assert up.count(model) == 4
    assert len(served.messages(sid)) == 2


@pytest.mark.parametrize("decision", ["once", "deny"])
def test_killed_after_the_effect_and_before_the_result(
    decision: str, start: Start, up: ScriptedModelServer, automatic: bool
) -> None:
    """X5: nobody knows whether it took effect, so a person is asked, although the tool was allowed for the session; it
    runs again only if they say so."""
    model = f"kill effect {decision} {automatic}"
    up.play(model, calls(("c1", "shell", note("one", "echo there; test -e stop || sleep 1000"))), says("Done."))
    served = start(auto_continue=automatic)
    sid, rid = begin(served, model, "Do it")
    decide(served, rid, "session")
    with served.watch(rid) as stream:
        while not (stream.until("tool.delta").data.get("output_delta") or ""):
            pass
    assert effects(served, sid) == ["one"]
    served.kill()
    (served.data_dir / "workspaces" / sid / "stop").touch()
    served = start(auto_continue=automatic)
    rid = taken_up(served, rid, automatic)
    assert "may already have taken effect" in decide(served, rid, decision)["reason"]
    assert served.ended(rid)["status"] == "complete"
    assert effects(served, sid) == (["one", "one"] if decision == "once" else ["one"])
    result = results(up.asked(model, 2))["c1"]
    assert ("exit code 0" if decision == "once" else "denied") in result
    tool, text = served.answer(sid)["parts"]
    assert (tool["state"], text["text"]) == ("done" if decision == "once" else "denied", "Done.")


@pytest.mark.parametrize("repeats", ["", "brown fox ", "The quick brown fox "], ids=["not", "a little", "all"])
def test_killed_in_mid_text(repeats: str, start: Start, up: ScriptedModelServer, automatic: bool) -> None:
    """X5 X1: the answer goes on where it was cut, as one text, whatever of it the model says again."""
    model = f"kill text {len(repeats)} {automatic}"
    up.play(
        model,
        [Head(), *sse(delta(content="The quick "), delta(content="brown fox ")), PauseAt(model), Hang()],
        says(repeats[:7], repeats[7:] + "jumps over ", "the lazy dog."),
    )
    served = start(auto_continue=automatic)
    sid, rid = begin(served, model, "Tell me")
    up.reached(model)
    with served.watch(rid) as stream:
        while shown(stream.frames) != "The quick brown fox ":
            assert stream.next() is not None
    served.kill()
    served = start(auto_continue=automatic)
    rid = taken_up(served, rid, automatic)
    assert served.ended(rid)["status"] == "complete"
    answer = served.answer(sid)
    assert [part["type"] for part in answer["parts"]] == ["text"]
    assert said(answer) == "The quick brown fox jumps over the lazy dog."
    question, partial, instruction = told(up.asked(model, 2))
    assert (question, partial) == (("user", "Tell me"), ("assistant", "The quick brown fox "))
    assert instruction[0] == "user"
    assert "cut off" in instruction[1]
    if automatic:
        assert "run.resumed" in [frame.event for frame in served.events(rid)]
    assert up.count(model) == 2


def test_a_continued_answer_is_part_of_the_next_question(start: Start, up: ScriptedModelServer) -> None:
    """X5: the turn after a continued answer sees one answer, with its finished tool, and no trace of the break."""
    model = "kill then ask"
    up.play(
        model,
        calls(("c1", "write_file", {"path": "a.txt", "content": "a"})),
        [Head(), *sse(delta(content="Half ")), PauseAt(model), Hang()],
        says("and half."),
        says("Sure."),
    )
    served = start(more=FREE)
    sid, rid = begin(served, model, "First")
    up.reached(model)
    with served.watch(rid) as stream:
        stream.until("text.delta")
    served.kill()
    served = start(more=FREE)
    served.ended(taken_up(served, rid, automatic=False))
    assert said(served.turn(sid, "Second")) == "Sure."
    roles = [(role, content) for role, content in told(up.asked(model, 4)) if role != "tool"]
    assert roles == [
        ("user", "First"),
        ("assistant", ["write_file"]),
        ("assistant", "Half and half."),
        ("user", "Second"),
    ]
    assert set(results(up.asked(model, 4))) == {"c1"}


@pytest.mark.parametrize(
    ("tool", "args", "asks"),
    [
        ("write_file", {"path": "a", "content": "b"}, False),
        ("edit_file", {"path": "a", "old": "b", "new": "bb"}, True),
    ],
)
def test_killed_when_the_effect_was_there_and_the_result_was_not(
    tool: str, args: dict[str, str], asks: bool, start: Start, up: ScriptedModelServer, automatic: bool
) -> None:
    """X5: a tool that is safe to repeat is repeated; another one asks, and denied, its effect stays what it was."""
    model = f"kill before the result {tool} {automatic}"
    up.play(model, calls(("c1", tool, args)), says("Done."))
    served = start(more=FREE, auto_continue=automatic, stuck="tool.finished")
    sid = served.session(title="A person's", model=f"{PROVIDER}/{model}")
    file = served.data_dir / "workspaces" / sid / "a"
    file.parent.mkdir(parents=True)
    file.write_text("b" if asks else "")
    rid = served.begin(sid, "Do it")
    until((served.data_dir / "stuck").exists)
    assert file.read_text() == ("bb" if asks else "b")
    served.kill()
    served = start(more=FREE, auto_continue=automatic)
    rid = taken_up(served, rid, automatic)
    if asks:
        assert "may already have taken effect" in decide(served, rid, "deny")["reason"]
    assert served.ended(rid)["status"] == "complete"
    assert file.read_text() == ("bb" if asks else "b")
    part = served.answer(sid)["parts"][0]
    assert part["state"] == ("denied" if asks else "done")
    assert up.count(model) == 2
