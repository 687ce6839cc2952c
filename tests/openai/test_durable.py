"""Runs of OpenAI clients are durable: clients disconnect, resume, and survive a killed server. Times are printed
(`pytest -s`); the asserted limits are generous, because the machine may be busy."""

import json
import socket
import sqlite3
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from openai import APIError, NotFoundError, OpenAI

from tests.chat.model_server import ScriptedModelServer
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, said, until
from tests.openai.conftest import client_of
from tests.openai.scripts import TOOL, named
from tests.upstream import Hang, Head, PauseAt, Script, delta, says, sse

CLOSE_LIMIT = GUARD / 2
"""Seconds. An upstream call that is not cancelled takes much longer."""
HALF: Script = [Head(), *sse(delta(content="Half an ")), Hang()]


def plain(events: list[Any]) -> list[dict[str, Any]]:
    return [event.to_dict() for event in events]


def read_first_text(stream: Any) -> list[Any]:
    """The events up to the first text delta."""
    seen: list[Any] = []
    while not seen or seen[-1].type != "response.output_text.delta":
        seen.append(next(stream))
    return seen


def last_run(served: Served) -> tuple[str, str]:
    """Status and reason of the newest run, once it has ended."""
    run = until(
        lambda: served.get("/api/runs", params={"limit": 1})["items"][0], lambda run: run["status"] != "running"
    )
    return run["status"], run["reason"]


def test_background_continues_without_its_client(client: OpenAI, up: ScriptedModelServer) -> None:
    """L1 L5: a client that disconnects and resumes after its last number gets exactly the rest."""
    first = sse(delta(reasoning_content="Hm. "), delta(content="One "))
    up.play("leaves", [Head(), *first, PauseAt("left"), *says("two ", "three.")[1:]])
    stream = client.responses.create(model=named("leaves"), input="Count", background=True, stream=True)
    seen = read_first_text(stream)
    stream.close()
    rid = seen[0].response.id
    assert seen[0].response.status == "queued"
    assert client.responses.retrieve(rid).status == "in_progress"
    up.let("left")
    rest = list(client.responses.retrieve(rid, stream=True, starting_after=seen[-1].sequence_number))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "One two three."
    assert plain(seen + rest) == plain(list(client.responses.retrieve(rid, stream=True)))
    assert [event.sequence_number for event in seen + rest] == list(range(len(seen + rest)))
    with client.responses.stream(response_id=rid, starting_after=seen[-1].sequence_number) as helper:
        assert helper.get_final_response().output_text == "One two three."
    assert list(client.responses.retrieve(rid, stream=True, starting_after=rest[-1].sequence_number)) == []


@pytest.mark.parametrize("automatic", [False, True], ids=["interrupted", "continued"])
def test_background_survives_kill_9_of_the_server(automatic: bool, start: Start, up: ScriptedModelServer) -> None:
    """X1 L5: after the kill, the stream has the events that the client has seen under the same numbers, and can be
    resumed after any of them."""
    model = f"killed {automatic}"
    up.play(model, [Head(), *sse(delta(content="One "), delta(content="two ")), Hang()], says("three."))
    served = start(auto_continue=automatic)
    with client_of(served) as client:
        stream = client.responses.create(model=named(model), input="Count", background=True, stream=True)
        seen: list[Any] = []
        while "".join(e.delta for e in seen if e.type == "response.output_text.delta") != "One two ":
            seen.append(next(stream))
        served.kill()
        stream.close()
    served = start(auto_continue=automatic)
    with client_of(served) as client:
        rid = seen[0].response.id
        whole = list(client.responses.retrieve(rid, stream=True))
        assert plain(whole[: len(seen)]) == plain(seen)
        for cursor in (0, len(seen) - 2, len(seen) - 1):
            rest = list(client.responses.retrieve(rid, stream=True, starting_after=cursor))
            assert plain(rest) == plain(whole[cursor + 1 :])
        last: Any = whole[-1]
        if automatic:
            assert (last.response.status, last.response.output_text) == ("completed", "One two three.")
        else:
            assert (last.type, last.response.status) == ("response.failed", "failed")
            assert last.response.output_text == "One two "
        saved = client.responses.retrieve(rid)
        assert saved.to_dict() == last.response.to_dict()


def test_cancel_keeps_the_partial(client: OpenAI, up: ScriptedModelServer, shared: Served) -> None:
    """C2 C7 C8: a cancelled response keeps its output, its streams end, and the upstream call is closed."""
    up.play("cancelled", HALF)
    stream = client.responses.create(model=named("cancelled"), input="Go", background=True, stream=True)
    seen = read_first_text(stream)
    cancelled = client.responses.cancel(seen[0].response.id)
    assert (cancelled.status, cancelled.output_text) == ("cancelled", "Half an ")
    last: Any = list(stream)[-1]
    assert (last.type, last.response.status) == ("response.incomplete", "cancelled")
    assert last.response.to_dict() == cancelled.to_dict()
    up.closed("cancelled")
    run = shared.run(f"run_{cancelled.id.removeprefix('resp_')}")
    assert (run["status"], run["reason"]) == ("cancelled", "requested")
    assert client.responses.cancel(cancelled.id).status == "cancelled"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["responses", "chat/completions"])
def test_disconnecting_from_a_plain_call_closes_the_upstream(
    path: str, stream: bool, shared: Served, up: ScriptedModelServer
) -> None:
    """L3 C7: a plain call, streamed or not, is attached: disconnecting closes the upstream call at once."""
    model = f"leaving {path} {stream}"
    up.play(model, [Head(), *sse(delta(content="Half an ")), PauseAt(model), Hang()])
    asked: Any = {"input": "Go"} if path == "responses" else {"messages": [{"role": "user", "content": "Go"}]}
    body = json.dumps({"model": named(model), "stream": stream, **asked}).encode()
    where = urlsplit(shared.url)
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((where.hostname or "", where.port or 0), GUARD) as connection:
        connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        up.reached(model)
        left = time.monotonic()
    took = up.closed(model) - left
    print(f"\nupstream closed after leaving {path}, stream={stream}: {took * 1000:.1f} ms")
    assert took < CLOSE_LIMIT
    assert last_run(shared) == ("cancelled", "disconnected")
    up.let(model)


def test_detached_chat_survives_its_client(shared: Served, client: OpenAI, up: ScriptedModelServer) -> None:
    """L1: with `Holdfast-Lifetime: detached` a chat continues; the headers name the run, which the native API resumes
    after any event."""
    up.play("detached", [Head(), *sse(delta(content="One ")), PauseAt("detached"), *says("two.")[1:]])
    raw = client.chat.completions.with_raw_response.create(
        model=named("detached"),
        messages=[{"role": "user", "content": "Count"}],
        stream=True,
        extra_headers={"Holdfast-Lifetime": "detached"},
    )
    rid, sid = raw.headers["holdfast-run"], raw.headers["holdfast-session"]
    stream = raw.parse()
    while next(stream).choices[0].delta.content != "One ":
        pass
    stream.close()
    with shared.watch(rid, after=1) as native:
        up.let("detached")
        native.until("run.complete")
    assert said(shared.answer(sid)) == "One two."


@pytest.mark.parametrize("path", ["responses", "chat"])
def test_the_same_key_is_the_same_run(path: str, client: OpenAI, up: ScriptedModelServer) -> None:
    """A2: a call that is repeated with its idempotency key gets the same run; another body is refused."""
    model = f"key {path}"
    up.play(model, says("Once."))

    def send(text: str) -> Any:
        headers = {"Idempotency-Key": f"key {path}"}
        if path == "responses":
            return client.responses.create(model=named(model), input=text, extra_headers=headers)
        return client.chat.completions.create(
            model=named(model), messages=[{"role": "user", "content": text}], extra_headers=headers
        )

    first, second = send("Go"), send("Go")
    assert first.to_dict() == second.to_dict()
    assert up.count(model) == 1
    with pytest.raises(APIError) as refused:
        send("Go on")
    assert refused.value.code == "idempotency_key_reused"


def test_the_same_key_in_a_chain_is_the_same_run(client: OpenAI, up: ScriptedModelServer) -> None:
    """A2: the same below an earlier response, also while its session is busy with another branch."""
    up.play("key chain", says("Root."), [Head(), PauseAt("chain"), *says("Left.")[1:]], says("Right."))
    model = named("key chain")
    root = client.responses.create(model=model, input="One")
    left = client.responses.create(model=model, input="Two", previous_response_id=root.id, background=True)
    up.reached("chain")

    def send() -> Any:
        headers = {"Idempotency-Key": "in a chain"}
        return client.responses.create(model=model, input="Three", previous_response_id=root.id, extra_headers=headers)

    beside = send()
    up.let("chain")
    assert list(client.responses.retrieve(left.id, stream=True))[-1].type == "response.completed"
    assert send().to_dict() == beside.to_dict()
    assert up.count("key chain") == 3


def rows(served: Served) -> int:
    """The number of rows of sessions, messages, runs and journals."""
    total = 0
    for file, tables in (("holdfast.db", ("sessions", "messages", "runs")), ("journal.db", ("log", "segments"))):
        with sqlite3.connect(f"file:{served.data_dir / file}?mode=ro", uri=True) as database:
            total += sum(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        database.close()
    return total


def test_store_false_leaves_nothing_behind(start: Start, up: ScriptedModelServer) -> None:
    """A run with `store: false` is erased when it has ended: whole, streamed, disconnected, or killed with the
    server."""
    up.play("unstored", says("Gone."), says("Gone."), says("Gone."), HALF, HALF)
    served = start()
    model: Any = {"model": named("unstored"), "store": False}
    with client_of(served) as client:
        answer = client.responses.create(input="Hello", **model)
        assert answer.output_text == "Gone."
        with pytest.raises(NotFoundError):
            client.responses.retrieve(answer.id)
        assert list(client.responses.create(input="Hello", stream=True, **model))[-1].type == "response.completed"
        client.chat.completions.create(messages=[{"role": "user", "content": "Hello"}], **model)
        stream = client.responses.create(input="Hello", stream=True, **model)
        read_first_text(stream)
        stream.close()
        assert served.get("/api/sessions")["items"] == [] or until(lambda: not served.get("/api/sessions")["items"])
        until(lambda: rows(served), lambda count: count == 0)
        stream = client.responses.create(input="Hello", stream=True, **model)
        seen = read_first_text(stream)
        assert rows(served) > 0
        served.kill()
        stream.close()
    served = start()
    assert served.get("/api/sessions")["items"] == []  # hidden until the next tick erases it
    with client_of(served) as client, pytest.raises(NotFoundError):
        client.responses.retrieve(seen[0].response.id)


def test_it_can_be_continued_by_a_person(client: OpenAI, shared: Served, up: ScriptedModelServer) -> None:
    """The session of a program's call names its source, and a person can continue it with the same model."""
    up.play("continued", says("One."), says("Two."))
    answer = client.responses.create(model=named("continued"), input="First", instructions="Be brief.")
    sid = answer.to_dict()["holdfast"]["session"]  # type: ignore[index]
    session = until(lambda: shared.look(sid), lambda session: session["title"])
    assert (session["settings"], session["title"]) == ({"source": "openai", "memory": "none"}, "First")
    shared.turn(sid, "Second")
    assert said(shared.answer(sid)) == "Two."
    assert [m["content"] for m in up.asked("continued", 2)["messages"]] == ["Be brief.", "First", "One.", "Second"]
    assert up.count("continued", "title") == 0


def test_continued_run_keeps_its_parameters(start: Start, up: ScriptedModelServer) -> None:
    """X5: a person continues an interrupted run: with the same instructions and tools, and as a new response that
    begins with the output so far."""
    up.play("taken up", [Head(), *sse(delta(content="One ")), Hang()], says("two."))
    served = start()
    with client_of(served) as client:
        stream = client.responses.create(
            model=named("taken up"), input="Count", instructions="Slowly.", tools=[TOOL], background=True, stream=True
        )
        first = read_first_text(stream)[0].response.id
        served.kill()
        stream.close()
    served = start()
    rid = served.post(f"/api/runs/run_{first.removeprefix('resp_')}/continue", expect=202)["run"]["id"]
    served.ended(rid)
    with client_of(served) as client:
        events = list(client.responses.retrieve(f"resp_{rid.removeprefix('run_')}", stream=True))
        last: Any = events[-1]
        assert (last.response.status, last.response.output_text) == ("completed", "One two.")
        assert client.responses.retrieve(last.response.id).to_dict() == last.response.to_dict()
    asked = up.asked("taken up", 2)
    assert asked["messages"][0] == {"role": "system", "content": "Slowly."}
    assert asked["tools"][0]["function"]["name"] == "get_weather"


def test_fork_of_an_unstored_session_is_kept(start: Start, up: ScriptedModelServer) -> None:
    """A fork of a session with `store: false` is not erased with it."""
    up.play("forked", [Head(), *sse(delta(content="Half")), Hang()], says("Whole."))
    served = start()
    past: Any = [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}]
    messages = [*past, {"role": "user", "content": "Three"}]
    with client_of(served) as client:
        stream = client.chat.completions.create(model=named("forked"), messages=messages, stream=True, store=False)
        next(stream)
        (session,) = served.get("/api/sessions")["items"]
        last = served.messages(session["id"])[1]["id"]
        copy = served.post(f"/api/sessions/{session['id']}/fork", {"message_id": last}, 201)["id"]
        stream.close()
    until(lambda: [item["id"] for item in served.get("/api/sessions")["items"]], lambda found: found == [copy])
    served.turn(copy, "Three again")
    assert [said(message) for message in served.messages(copy)] == ["One", "Two", "Three again", "Whole."]
