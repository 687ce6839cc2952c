"""What reaches the model and what comes back beside words: files, summaries, titles, usage."""

import base64
import http.client
from typing import Any

import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer
from tests.chat.questions import begin, told
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import said, until
from tests.upstream import End, Hang, Head, Script, answers, delta, says, sse

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
PDF = b"%PDF-1.7 and so on"


def with_usage(read: int, written: int, cost: float | None, *events: Any) -> Script:
    usage = {"prompt_tokens": read, "completion_tokens": written, **({} if cost is None else {"cost": cost})}
    return [Head(), *sse(*events, {"choices": [], "usage": usage}, "[DONE]"), End()]


# ---- titles ----


def test_model_names_a_session_in_the_background(shared: Served, up: ScriptedModelServer) -> None:
    """P8: after the first turn the model is asked for a title; it is shown in the session and in the list."""
    up.play("titles", says("Dogs bark."), says("More."))
    up.play("titles", says('"Why dogs bark."\n'), job="title")
    sid = shared.session(model=f"{PROVIDER}/titles")
    assert shared.turn(sid, "Why do dogs bark?")["status"] == "complete"
    until(lambda: shared.look(sid)["title"], lambda title: title == "Why dogs bark")
    assert shared.listed(sid)["title"] == "Why dogs bark"
    asked = up.asked("titles", job="title")["messages"][-1]["content"]
    assert "Why do dogs bark?" in asked
    assert "Dogs bark." in asked
    shared.turn(sid, "And cats?")
    assert len(shared.messages(sid)) == 4  # asking for a title is no part of the conversation
    assert up.count("titles", job="title") == 1


def test_a_stopped_or_failed_first_turn_names_its_session(shared: Served, up: ScriptedModelServer) -> None:
    """P8: the first words of the question are the title as soon as it is stored, and the model that failed is not asked
    for one before it has completed an answer."""
    up.play("untitled", [Head(400, {"Content-Length": "0"}, chunked=False)])
    up.play("slow-title", [Head(), *sse(delta(content="Hm. ")), Hang()], says("Now."))
    up.play("slow-title", says("Cats and dogs"), job="title")
    failed = shared.session(model=f"{PROVIDER}/untitled")
    assert shared.turn(failed, "Why do dogs bark at the moon?")["status"] == "failed"
    assert shared.listed(failed)["title"] == "Why do dogs bark at the moon?"
    stopped = shared.session(model=f"{PROVIDER}/slow-title")
    rid = shared.begin(stopped, "Why do cats not?")
    up.asked("slow-title")
    assert shared.listed(stopped)["title"] == "Why do cats not?"
    shared.cancel(rid)
    assert shared.ended(rid)["status"] == "cancelled"
    assert up.count("untitled", job="title") == up.count("slow-title", job="title") == 0
    assert shared.turn(stopped, "Then tell me about both")["status"] == "complete"
    until(lambda: shared.look(stopped)["title"], lambda title: title == "Cats and dogs")


# ---- how an answer ends, and who gave it ----


def test_the_default_model_is_stored_with_its_answer(shared: Served) -> None:
    """A session and a run that name no model have the model's id in the answer and in the run once it has ended."""
    answer = shared.turn(shared.session(), "Who are you?")
    default = shared.get("/api/models")["default"]
    assert default
    assert answer["model"] == shared.run(answer["run_id"])["model"] == default


def test_a_repeated_request_says_so(shared: Served, up: ScriptedModelServer) -> None:
    """E1: while the provider does not answer and is asked again, the run says which attempt comes and why."""
    up.play("busy", [Head(503, {"Content-Length": "0", "Retry-After": "0"}, chunked=False)], says("At last."))
    sid, rid = begin(shared, "busy", "Are you there?")
    shared.ended(rid)
    assert said(shared.answer(sid)) == "At last."
    (retry,) = [frame.data for frame in shared.events(rid) if frame.event == "step.retrying"]
    assert retry["attempt"] == 2 <= retry["attempts"]
    assert "503" in retry["message"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_was_cut_short_says_so_and_can_be_continued(
    shared: Served, up: ScriptedModelServer, reason: str
) -> None:
    """X5: the provider's reason is in the message, and Continue goes on from the text; a finished answer is refused."""
    name = f"cut-{reason}"
    up.play(name, [Head(), *sse(delta(content="One, two"), delta(finish=reason), "[DONE]"), End()], says(", three."))
    sid, rid = begin(shared, name, "Count.")
    assert shared.ended(rid)["finish_reason"] == reason
    assert (shared.answer(sid)["status"], shared.answer(sid)["reason"]) == ("complete", reason)
    more = shared.post(f"/api/runs/{rid}/continue", {}, 202)["run"]["id"]
    shared.ended(more)
    assert (said(shared.answer(sid)), shared.answer(sid)["reason"]) == ("One, two, three.", None)
    shared.refused("not-allowed", "POST", f"/api/runs/{more}/continue", {})


# ---- the context ----


def small(up: ScriptedModelServer, context: int) -> dict[str, Any]:
    return {"providers": {PROVIDER: {"base_url": up.url, "models": ["default"], "context": context}}}


def test_full_context_is_compacted(start: Start, up: ScriptedModelServer) -> None:
    """O3: near the limit the past is summarized by the model; the run goes on with the summary, and every message is
    still there to be read."""
    up.play("compacts", says("Noted. " * 200), says("A fox."))
    up.play("compacts", says("It is all about a fox."), job="summary")
    served = start(more=small(up, 6000))
    sid = served.session(title="A person's", model=f"{PROVIDER}/compacts")
    long = "The fox is quick. " * 1000
    served.turn(sid, long)
    assert said(served.turn(sid, "What is it about?")) == "A fox."
    assert "The fox is quick." in up.asked("compacts", job="summary")["messages"][-1]["content"]
    last = up.asked("compacts", 2)
    assert told(last) == [("user", "What is it about?")]
    assert "It is all about a fox." in last["messages"][0]["content"]
    assert [said(message) for message in served.messages(sid)] == [long, "Noted. " * 200, "What is it about?", "A fox."]


def test_a_summary_that_fails_or_does_not_end(shared: Served, up: ScriptedModelServer) -> None:
    """The failure of the model is told as such, and of an answer that ignores the token limit the beginning is kept."""
    up.play("summarizes", says("Woof."))
    up.play("summarizes", answers(401, {"error": {"message": "no such key"}}), says("x" * 200_000), job="summary")
    sid = shared.session(title="A person's", model=f"{PROVIDER}/summarizes")
    shared.turn(sid, "What do dogs say?")
    refused = shared.post(f"/api/sessions/{sid}/compact", None, 502)
    assert refused["type"] == "upstream-failed"
    assert "API key" in refused["detail"]
    shared.post(f"/api/sessions/{sid}/compact", None, 200)
    assert [len(message["summary"] or "") for message in shared.messages(sid)] == [0, 64 * 1024]


def test_a_summary_ends_when_nobody_waits_for_it(shared: Served, up: ScriptedModelServer) -> None:
    """The model's connection is closed as soon as the client has gone."""
    up.play("unread", says("Woof."))
    up.play("unread", [Head(), Hang()], job="summary")
    sid = shared.session(title="A person's", model=f"{PROVIDER}/unread")
    shared.turn(sid, "What do dogs say?")
    client = http.client.HTTPConnection(*shared.address)
    client.request("POST", f"/api/sessions/{sid}/compact", "", {"Content-Type": "application/json"})
    up.asked("unread", job="summary")
    client.close()
    up.closed("unread", job="summary")


def test_a_budget_keeps_calls_from_spending(start: Start, up: ScriptedModelServer) -> None:
    """Titles and summaries on demand, and embeddings, are refused like new messages: the model is not asked."""
    up.play("refused", says("Woof."))
    served = start()
    sid = served.session(title="A person's", model=f"{PROVIDER}/refused")
    served.turn(sid, "What do dogs say?")
    served.set_budgets({"limit": 0, "unit": "tokens", "period": "day", "action": "refuse"})
    for call in ("title", "compact"):
        served.refused("budget-reached", "POST", f"/api/sessions/{sid}/{call}")
    embedding = {"model": f"{PROVIDER}/refused", "input": "Hello"}
    assert served.http.post("/v1/embeddings", json=embedding).status_code == 429
    assert up.count("refused") == 1


# ---- usage ----


def test_usage_and_cost_are_the_providers_numbers(shared: Served, up: ScriptedModelServer) -> None:
    """L4: the steps of a run are added up, in the run and in its message."""
    step = {"index": 0, "id": "c1", "function": {"name": "list_files", "arguments": "{}"}}
    up.play(
        "costs",
        with_usage(100, 20, 0.25, delta(tool_calls=[step]), delta(finish="tool_calls")),
        with_usage(130, 5, 0.5, delta(content="Empty."), delta(finish="stop")),
    )
    sid, rid = begin(shared, "costs", "What is there?")
    run = shared.ended(rid)
    unsaid = {"cached_tokens": None, "reasoning_tokens": None}
    assert run["usage"] == {"input_tokens": 230, "output_tokens": 25, "cost": 0.75, **unsaid}
    assert shared.answer(sid)["usage"] == run["usage"]
    assert run["model"] == f"{PROVIDER}/costs"


def test_usage_of_a_run_that_failed_is_kept(shared: Served, up: ScriptedModelServer) -> None:
    """E1: what was paid for before the failure is said."""
    up.play(
        "costs and fails",
        with_usage(100, 20, None, delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "list_files"}}])),
        answers(400, {"error": {"message": "no"}}),
    )
    sid = shared.session(title="A person's", model=f"{PROVIDER}/costs and fails")
    run = shared.ended(shared.begin(sid, "What is there?"))
    assert run["status"] == "failed"
    assert (run["usage"]["input_tokens"], run["usage"]["output_tokens"]) == (100, 20)


# ---- files ----


@pytest.fixture
def seeing(start: Start, up: ScriptedModelServer) -> Served:
    providers = {
        "seeing": {"kind": "openai", "base_url": up.url, "models": ["sees"]},
        "blind": {"base_url": up.url, "models": ["blind"]},
    }
    return start(more={"providers": providers})


def attach(served: Served, name: str, content: bytes, kind: str) -> dict[str, str]:
    file = served.http.post("/api/files", files={"file": (name, content, kind)}).json()
    return {"type": "file", "file_id": file["id"]}


def test_files_reach_the_model(seeing: Served, up: ScriptedModelServer) -> None:
    """A1: an image and a document as such, a text file as its text; a model that cannot see is told what it misses,
    and a file is shown again with the next question."""
    parts = [
        {"type": "text", "text": "Compare."},
        attach(seeing, "a.png", PNG, "image/png"),
        attach(seeing, "b.txt", "Grüße aus Łódź".encode(), "text/plain"),
        attach(seeing, "c.pdf", PDF, "application/pdf"),
    ]
    sid = seeing.session(title="A person's", model="seeing/sees")
    rid = seeing.post(f"/api/sessions/{sid}/runs", {"input": parts}, 202)["run"]["id"]
    assert seeing.ended(rid)["status"] == "complete"
    (question,) = [m for m in up.asked("sees")["messages"] if m["role"] == "user"]
    words, image, text, document = question["content"]
    assert words == {"type": "text", "text": "Compare."}
    assert image["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert "b.txt" in text["text"]
    assert "Grüße aus Łódź" in text["text"]
    assert document["file"] == {
        "filename": "c.pdf",
        "file_data": "data:application/pdf;base64," + base64.b64encode(PDF).decode(),
    }
    seeing.ended(seeing.begin(sid, "Again", model="blind/blind"))
    shown = up.asked("blind")["messages"]
    assert "cannot see images" in shown[1]["content"]
    assert "Grüße aus Łódź" in shown[1]["content"]
    assert [m["content"] for m in shown[2:]] == ["Fine.", "Again"]


# ---- the list of models ----


def test_provider_that_is_down_is_shown_as_such(start: Start, up: ScriptedModelServer) -> None:
    """E1: one that refuses and one that answers nonsense are listed with the reason, beside those that are well and one
    that is silent, which may be busy; a run with one of them ends with the reason."""
    providers = {
        "well": {"base_url": up.url, "models": ["a", "b"]},
        "closed": {"base_url": "http://127.0.0.1:1/v1", "default": "x"},
        "silent": {"base_url": up.url.replace("/v1", "/hangs/v1"), "default": "y"},
        "odd": {"base_url": up.url, "default": "z"},
    }
    served = start(more={"providers": providers})
    found = {model["id"]: model for model in served.get("/api/models")["items"]}
    assert [found[f"well/{name}"]["available"] for name in "ab"] == [True, True]
    assert found["silent/y"]["available"]
    down = {name: found[f"{name}"] for name in ("closed/x", "odd/z")}
    assert not any(model["available"] for model in down.values())
    assert "(127.0.0.1:1). Check that it is running." in down["closed/x"]["reason"]
    assert "odd" in down["odd/z"]["reason"]
    sid = served.session(title="A person's")
    run = served.ended(served.begin(sid, "Hello", model="closed/x"))
    assert (run["status"], run["error"]["code"]) == ("failed", "unavailable")
    assert "(127.0.0.1:1). Check that it is running." in run["error"]["message"]
    unknown = served.ended(served.begin(sid, "Hello", model="nobody/x"))
    assert unknown["status"] == "failed"
    assert "There is no model" in unknown["error"]["message"]
    assert said(served.turn(sid, "Hello")) == "Fine."
