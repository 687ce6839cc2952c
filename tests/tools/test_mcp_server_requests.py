"""What MCP servers ask of their client while a tool runs, by real processes: the newest SDK over stdio and HTTP, whose
calls return for more input, and an older protocol, which asks in the middle of the call."""

import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import CreateMessageRequestParams, ImageContent, SamplingMessage

from holdfast.ports.agent import AgentError, InputAnswer
from holdfast.ports.model import ModelRequest, UserMessage
from holdfast.ports.tool import PersonQuestion, SampledAnswer, Tool, ToolContext
from holdfast.tools.mcp import sampling
from holdfast.tools.mcp.client import McpLimits
from holdfast.tools.mcp.server_config import HttpServer
from holdfast.tools.mcp.server_requests import ActiveCall
from tests.harness import GUARD
from tests.tools.conftest import Bench
from tests.tools.test_mcp import GOOD, address, connected, listening, on_http, on_stdio, raw, tools_of

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@dataclass
class Person:
    """Answers questions in turn; without an answer the question stays open."""

    answers: Sequence[InputAnswer] = ()
    questions: list[PersonQuestion] = field(default_factory=list)
    asked: anyio.Event = field(default_factory=anyio.Event)
    withdrawn: anyio.Event = field(default_factory=anyio.Event)

    async def ask(self, question: PersonQuestion) -> InputAnswer:
        self.questions.append(question)
        self.asked.set()
        if len(self.questions) <= len(self.answers):
            return self.answers[len(self.questions) - 1]
        try:
            await anyio.sleep_forever()
        finally:
            self.withdrawn.set()
        raise AssertionError


@dataclass
class Poet:
    requests: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: ModelRequest) -> SampledAnswer:
        self.requests.append(request)
        if "fail" in str(request.messages):
            raise AgentError("unavailable", "The model is away.")
        return SampledAnswer("Low tide.", "test/poet", "stop")


def answers(bench: Bench, person: Person | None = None, poet: Poet | None = None) -> ToolContext:
    return replace(
        bench.context,
        ask_person=None if person is None else person.ask,
        ask_model=None if poet is None else poet.ask,
    )


async def call(tool: Tool, context: ToolContext, args: Mapping[str, Any] | None = None) -> Any:
    with anyio.fail_after(GUARD):
        return (await tool.run(args or {}, context)).content


@asynccontextmanager
async def tools_over(transport: str, effects: Path) -> AsyncIterator[dict[str, Tool]]:
    if transport == "stdio":
        async with connected(on_stdio(effects)) as servers:
            yield await tools_of(servers)
        return
    with listening() as listener, on_http(effects, listener):
        async with connected(HttpServer("t", address(listener))) as servers:
            yield await tools_of(servers)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_can_ask_the_person_the_model_and_for_the_workspace(
    bench: Bench, tmp_path: Path, transport: str
) -> None:
    """E1: a form is filled in, declined or cancelled; the model writes only after the person agreed, without tools and
    within our limit; the root is the workspace of the session that calls."""
    yes = InputAnswer("accept", {"name": "North 4", "nights": 2})
    person, poet = Person([yes, InputAnswer("decline"), InputAnswer("accept"), InputAnswer("decline")]), Poet()
    async with tools_over(transport, tmp_path / "effects") as tools:
        context = answers(bench, person, poet)
        assert json.loads(await call(tools["t__book"], context)) == {"name": "North 4", "nights": 2}
        assert await call(tools["t__book"], context) == "decline"
        assert await call(tools["t__recite"], context) == "Low tide. (test/poet, endTurn)"
        with pytest.raises(Exception, match="rejected the sampling request"):
            await call(tools["t__recite"], context)
        assert await call(tools["t__where"], context) == bench.workspace.as_uri()
        assert await call(tools["t__book"], bench.context) == "cancel", "nobody can be asked"
    form, _, sample, _ = person.questions
    assert (form.server, form.kind, form.message) == ("t", "form", "Which berth?")
    assert form.schema is not None
    assert list(form.schema["properties"]) == ["name", "nights"]
    assert sample.kind == "sampling"
    assert "A haiku about tides." in sample.message
    (request,) = poet.requests
    assert (request.system, request.messages, request.tools) == (
        "Be brief.",
        (UserMessage(("A haiku about tides.",)),),
        (),
    )
    assert request.settings == {"max_tokens": sampling.MAX_TOKENS, "temperature": 0.5}


def asking(method: str, **params: Any) -> Any:
    return raw(results={"tools/list": {"tools": [GOOD]}}, asks={"method": method, "params": params})


def test_images_of_a_sampling_request_count_together() -> None:
    """A request has a limit for all of its images, not only for each."""
    block = ImageContent(data=base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3_000_000)).decode(), mime_type="image/png")
    messages = [SamplingMessage(role="user", content=[block, block])] * 2
    assert sampling.read_request(CreateMessageRequestParams(messages=messages[:1], max_tokens=10)).messages
    with pytest.raises(ValueError, match=r"images have 12\.00 MB in total"):
        sampling.read_request(CreateMessageRequestParams(messages=messages, max_tokens=10))


async def test_older_servers_ask_in_the_middle_of_a_call(bench: Bench) -> None:
    """E1: the same over the protocol of 2025; an answer that does not fit the form is not passed on."""
    person = Person([InputAnswer("accept", {"name": "x"}), InputAnswer("accept", {"name": 7})])
    async with connected(asking("elicitation/create", message="Who?", requestedSchema=FORM)) as servers:
        tool = (await tools_of(servers))["raw__good"]
        first = json.loads(await call(tool, answers(bench, person)))
        assert (first["action"], first["content"]) == ("accept", {"name": "x"})
        assert json.loads(await call(tool, answers(bench, person)))["action"] == "cancel"
    async with connected(asking("roots/list")) as servers:
        tool = (await tools_of(servers))["raw__good"]
        (root,) = json.loads(await call(tool, bench.context))["roots"]
        assert root["uri"] == bench.workspace.as_uri()


NESTED = {"type": "object", "properties": {"a": {"type": "object"}}}
LONG = {"role": "user", "content": {"type": "text", "text": "x" * 110_000}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", {"message": "x", "requestedSchema": NESTED}),
        ("elicitation/create", {"mode": "url", "message": "x", "url": "https://evil.example", "elicitationId": "1"}),
        ("sampling/createMessage", {"messages": [], "maxTokens": 10}),
        ("sampling/createMessage", {"messages": [LONG], "maxTokens": 10}),
    ],
)
async def test_what_cannot_be_shown_or_is_too_large_is_refused(bench: Bench, method: str, params: Any) -> None:
    """E1: nested forms, links to open, empty and oversized requests to the model reach nobody."""
    person, poet = Person(), Poet()
    async with connected(asking(method, **params)) as servers:
        tool = (await tools_of(servers))["raw__good"]
        assert "code" in json.loads(await call(tool, answers(bench, person, poet)))
    assert (person.questions, poet.requests) == ([], [])


async def test_a_failure_of_the_model_is_told_to_the_server(bench: Bench) -> None:
    """E1: a sampling request that the model cannot answer is an error of that request alone."""
    person = Person([InputAnswer("accept")])
    message = {"role": "user", "content": {"type": "text", "text": "fail"}}
    async with connected(asking("sampling/createMessage", messages=[message], maxTokens=5)) as servers:
        tool = (await tools_of(servers))["raw__good"]
        assert json.loads(await call(tool, answers(bench, person, Poet())))["message"] == "The model is away."


@pytest.mark.parametrize("transport", ["stdio", "older"])
async def test_the_question_ends_with_its_call(bench: Bench, tmp_path: Path, transport: str) -> None:
    """L4: cancelling a run withdraws what its tool's server asks, and the connection stays usable."""
    server = (
        on_stdio(tmp_path / "effects")
        if transport == "stdio"
        else asking("elicitation/create", message="?", requestedSchema=FORM)
    )
    name = "t__book" if transport == "stdio" else "raw__good"
    person = Person()
    async with connected(server) as servers:
        tool = (await tools_of(servers))[name]
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(call, tool, answers(bench, person))
                await person.asked.wait()
                tg.cancel_scope.cancel()
            await person.withdrawn.wait()
        assert servers.states()[name.partition("__")[0]].connected


async def test_questions_in_the_queue_end_with_the_call(bench: Bench) -> None:
    """L4: when a call ends, what waits behind an open question is told so too."""
    person, over = Person(), anyio.Event()
    active = ActiveCall(bench.context, GUARD)
    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            tg.start_soon(active.run, over.wait)
            for _ in range(3):
                tg.start_soon(active.ask, partial(person.ask, PersonQuestion("t", "form", "?")))
            await person.asked.wait()
            over.set()
    assert len(person.questions) == 1


async def test_the_model_answers_for_the_call_whose_person_agreed(bench: Bench, tmp_path: Path) -> None:
    """E1: a call of another session that begins while the person thinks does not take the answer away."""

    class Slow(Person):
        async def ask(self, question: PersonQuestion) -> InputAnswer:
            self.asked.set()
            await self.withdrawn.wait()
            return InputAnswer("accept")

    person = Slow()
    message = {"role": "user", "content": {"type": "text", "text": "Sing."}}
    said: list[Any] = []
    async with connected(asking("sampling/createMessage", messages=[message], maxTokens=5)) as servers:
        tool = (await tools_of(servers))["raw__good"]
        requests = servers._clients["raw"]._connection.requests  # type: ignore[union-attr]

        async def sing() -> None:
            said.append(json.loads(await call(tool, answers(bench, person, Poet()))))

        async with anyio.create_task_group() as tg:
            tg.start_soon(sing)
            with anyio.fail_after(GUARD):
                await person.asked.wait()
            other = ActiveCall(replace(bench.context, workspace=tmp_path / "other"), GUARD)

            async def until_said() -> None:
                person.withdrawn.set()
                while not said:
                    await anyio.lowlevel.checkpoint()

            with requests.active(other):
                await other.run(until_said)
    assert said[0]["content"]["text"] == "Low tide."


async def test_a_person_may_think_longer_than_a_call_may_take(bench: Bench) -> None:
    """E1: the time limit of a call does not run while its question is open."""

    class Slow(Person):
        async def ask(self, question: PersonQuestion) -> InputAnswer:
            began = anyio.current_time()
            while anyio.current_time() < began + 1.0:  # twice the limit
                await anyio.lowlevel.checkpoint()
            return InputAnswer("accept", {"name": "x"})

    limits = McpLimits(connect=60.0, call=0.5)
    async with connected(asking("elicitation/create", message="?", requestedSchema=FORM), limits=limits) as servers:
        tool = (await tools_of(servers))["raw__good"]
        assert json.loads(await call(tool, answers(bench, Slow())))["action"] == "accept"


async def test_calls_of_two_sessions_are_not_confused(bench: Bench, tmp_path: Path) -> None:
    """E1: while two sessions call the same server, no question of it is shown to either, and no root is named."""
    person = Person()
    async with connected(asking("elicitation/create", message="?", requestedSchema=FORM)) as servers:
        tool = (await tools_of(servers))["raw__good"]
        other = replace(answers(bench, person), workspace=tmp_path / "other")
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as tg:
                tg.start_soon(call, tool, answers(bench, person))
                await person.asked.wait()
                refused = json.loads(await call(tool, other))
                assert "several sessions" in refused["message"]
                tg.cancel_scope.cancel()


async def test_prompts_are_listed_and_filled_in(tmp_path: Path) -> None:
    """E1: prompts with their arguments, as text; one without a required argument, or that does not exist, says so."""
    async with connected(on_stdio(tmp_path / "effects"), raw(results={"tools/list": {"tools": [GOOD]}})) as servers:
        with anyio.fail_after(GUARD):
            (prompt,) = await servers.prompts()
            assert (prompt.server, prompt.name, prompt.description) == ("t", "passage", "Plan a passage.")
            assert [(each.name, each.required) for each in prompt.arguments] == [("port", True), ("boat", False)]
            text = await servers.get_prompt("t", "passage", {"port": "Brest"})
            assert text == "From Brest by dinghy.\n\nAssistant: Which day?"
            for name in ("passage", "unknown"):
                with pytest.raises(Exception, match="t: "):
                    await servers.get_prompt("t", name, {})
