"""Approvals of an agent's tools with the official client."""

from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from tests.chat.model_server import ScriptedModelServer, calls
from tests.http.conftest import Start
from tests.openai.conftest import client_of
from tests.openai.scripts import named
from tests.upstream import Hang, Head, Script, delta, says, sse


def write(call_id: str, path: str) -> Script:
    return calls((call_id, "write_file", {"path": path, "content": "1"}), text=f"I write {path}. ")


def answer(question: Any, *, approve: bool) -> Any:
    return [{"type": "mcp_approval_response", "approval_request_id": question.id, "approve": approve}]


def question_of(response: Any) -> Any:
    """The request at the end of a complete response."""
    assert response.status == "completed"
    question = response.output[-1]
    assert (question.type, question.name) == ("mcp_approval_request", "write_file")
    return question


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_that_needs_approval_completes_the_response(
    streamed: bool, start: Start, up: ScriptedModelServer
) -> None:
    """X5: the response ends with the request instead of waiting, its run waits, and an answer continues it, as often
    as it asks."""
    model = f"asks {streamed}"
    served = start(more={"models": {"default": named(model)}})
    up.play(model, write("c1", "a.txt"), write("c2", "b.txt"), says("Done."))

    def respond(client: OpenAI, **call: Any) -> Any:
        if not streamed:
            return client.responses.create(model="agent:chat", **call)
        with client.responses.stream(model="agent:chat", **call) as stream:
            stream.until_done()
            return stream.get_final_response()

    with client_of(served) as client:
        first = respond(client, input="Write")
        question = question_of(first)
        run = served.run("run_" + first.id.removeprefix("resp_"))
        assert run["status"] in ("running", "waiting")
        workspace = served.data_dir / "workspaces" / run["session_id"]
        assert not (workspace / "a.txt").exists()
        assert question_of(client.responses.retrieve(first.id)).id == question.id
        second = respond(client, input=answer(question, approve=True), previous_response_id=first.id)
        again = question_of(second)
        assert again.id != question.id
        assert (workspace / "a.txt").exists()
        third = respond(client, input=answer(again, approve=False), previous_response_id=second.id)
        assert third.status == "completed"
        kinds = ["message", "mcp_call", "message", "mcp_call", "message"]
        assert [item.type for item in third.output] == kinds
        assert third.output[-1].content[0].text == "Done."
        assert not (workspace / "b.txt").exists()
        stored = client.responses.retrieve(first.id)
        assert [item.id for item in stored.output] == [item.id for item in third.output]
        assert stored.output[3].to_dict() == third.output[3].to_dict()
        replay: Any = list(client.responses.retrieve(first.id, stream=True))
        assert replay[-1].response.to_dict() == stored.to_dict()
        assert [event.sequence_number for event in replay] == list(range(len(replay)))


def test_a_wrong_answer_is_refused(start: Start, up: ScriptedModelServer) -> None:
    """An answer to no request, or beside other input, is an error that names it."""
    served = start(more={"models": {"default": named("asked wrong")}})
    up.play("asked wrong", write("c1", "a.txt"), says("Done."))
    with client_of(served) as client:
        first = client.responses.create(model="agent:chat", input="Write")
        item = {"type": "mcp_approval_response", "approval_request_id": "mcpr_none", "approve": True}
        with pytest.raises(BadRequestError) as refused:
            client.responses.create(model="agent:chat", input=[item], previous_response_id=first.id)  # type: ignore[list-item]
        assert refused.value.param == "input[0].approval_request_id"
        mixed: Any = [item, {"role": "user", "content": "Hello"}]
        with pytest.raises(BadRequestError) as refused:
            client.responses.create(model="agent:chat", input=mixed)
        assert refused.value.param == "input[0]"


def test_an_agent_stops_when_its_client_leaves(start: Start, up: ScriptedModelServer) -> None:
    """L3: a response that is not complete is cancelled with its connection, although its run could wait."""
    served = start(more={"models": {"default": named("left")}})
    up.play("left", [Head(), *sse(delta(content="Half")), Hang()])
    with client_of(served) as client:
        stream = client.responses.create(model="agent:chat", input="Hello", stream=True)
        rid = ""
        for event in stream:
            if event.type == "response.created":
                rid = "run_" + event.response.id.removeprefix("resp_")
            if event.type == "response.output_text.delta":
                break
        stream.close()
        ended = served.ended(rid)
        assert (ended["status"], ended["reason"]) == ("cancelled", "disconnected")
