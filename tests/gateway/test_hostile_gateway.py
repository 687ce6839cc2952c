"""Gateways that misbehave or are not there: the run ends, says why, keeps what was shown, and the server goes on."""

import gzip
import json
import subprocess
import sys
import time
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from holdfast.agents.gateway.client import AgentGateway, GatewayClient, GatewayLimits, parse
from holdfast.agents.gateway.events import GatewayTranslator
from holdfast.core.events import ToolFinished, ToolStarted
from holdfast.models.http_client import HttpClient
from tests.chat.questions import asked, decide
from tests.gateway.conftest import open_session
from tests.gateway.scripted_gateway import (
    KEY,
    ScriptedGateway,
    asks,
    completed,
    finished,
    plays,
    started,
    text,
)
from tests.http.client import Served
from tests.http.conftest import Start
from tests.upstream import Chunk, Close, End, Forever, Hang, Head, PauseAt, Raw, Reset, Script, answers, upstream

LIMITS: Final = {
    "silence": 0.5,
    "request": 2.0,
    "cancel_grace": 0.2,
    "max_event": 100_000,
    "max_answer": 200_000,
    "max_open_calls": 10,
}
EVENTS: Final = "/v1/runs/run_1/events"
SHOWN: Final = text("Half. ")
FLOOD: Final = b'data: {"event": "unknown"}\n\n' * 9_000
FAILS: Final[dict[str, tuple[Script, str, str]]] = {
    "garbage": (plays(SHOWN, Chunk(b"data: {garbage\n\n"), Hang()), "agent", "not a JSON object"),
    "a list": (plays(SHOWN, Chunk(b"data: [1]\n\n"), Hang()), "agent", "not a JSON object"),
    "deep": (plays(SHOWN, Chunk(b"data: " + b"[" * 50_000 + b"\n\n"), Hang()), "agent", "not a JSON object"),
    "huge line": (plays(SHOWN, Forever(Chunk(b"x" * 10_000))), "agent", "more than 100000 bytes"),
    "huge event": (plays(SHOWN, text("x" * 100_001), Hang()), "agent", "more than 100000 bytes"),
    "silence": (plays(SHOWN, Hang()), "agent-gone", "before the run ended"),
    "closed": (plays(SHOWN, Close()), "agent-gone", "before the run ended"),
    "reset": (plays(SHOWN, Reset()), "agent-gone", "before the run ended"),
    "ended early": (plays(SHOWN), "agent-gone", "before the run ended"),
    "half an event": (
        [*plays(SHOWN)[:-1], Chunk(b'data: {"event": "run.com'), Close()],
        "agent-gone",
        "before the run ended",
    ),
    "unknown events": (plays(SHOWN, Chunk(FLOOD), SHOWN, Chunk(FLOOD * 2), Hang()), "agent", "that mean nothing"),
    "open tools": (plays(SHOWN, *[started()] * 11, Hang()), "agent", "more than 10 tools"),
    "too much text": (plays(*[text("x" * 90_000)] * 60), "limit", "4 MB"),
    "fails": (plays(SHOWN, {"event": "run.failed", "error": "No credits."}), "agent", "No credits."),
    "fails badly": (plays(SHOWN, {"event": "run.failed", "error": {}}), "agent", "no reason"),
    "cancels itself": (plays(SHOWN, {"event": "run.cancelled"}), "agent-cancelled", "stopped by itself"),
}
REFUSES: Final[dict[str, tuple[str, str, Script, str, str]]] = {
    "no events": ("GET", EVENTS, answers(404, {"error": {"message": "Run not found"}}), "agent", "Run not found"),
    "a page": ("GET", EVENTS, answers(200, "<html>"), "agent", "instead of events"),
    "another type": ("GET", EVENTS, [Head(200, {"Content-Type": "text/html"}), Hang()], "agent", "instead of events"),
    "no HTTP": ("GET", EVENTS, [Raw(b"hello\r\n\r\n"), Close()], "agent-gone", "not valid HTTP"),
    "hangs": ("GET", EVENTS, [Hang()], "agent-timeout", "within 2 seconds"),
    "garbage": ("POST", "/v1/runs", answers(202, "garbage"), "agent", "not a JSON object"),
    "a flood": ("POST", "/v1/runs", [Head(202), Forever(Chunk(b" " * 10_000))], "agent", "more than 200000 bytes"),
    "no id": ("POST", "/v1/runs", answers(202, {"run_id": 7}), "agent", "did not start a run"),
    "a path as id": ("POST", "/v1/runs", answers(202, {"run_id": ".."}), "agent", "did not start a run"),
    "401": ("POST", "/v1/runs", answers(401, {"error": {"message": KEY}}), "agent-login", "rejected the API key"),
    "429": ("POST", "/v1/runs", answers(429, {"error": {"message": "Too many"}}), "agent-busy", "Too many"),
    "503": ("POST", "/v1/runs", answers(503, {"error": {"message": "Draining"}}), "agent-busy", "Draining"),
    "500": ("POST", "/v1/runs", answers(500, {"error": "Oops"}), "agent", "status 500): Oops"),
}


def shown(served: Served, sid: str) -> str:
    return "".join(part.get("text", "") for part in served.answer(sid)["parts"])


def test_streams_that_end_badly(start: Start, gateway: ScriptedGateway) -> None:
    """E1: the run fails with a reason, keeps what was shown, and a gateway that is still there is told to stop it."""
    served = start(gateway_limits=LIMITS, engine={"max_output": 4 * 1024 * 1024})
    found = {}
    for name, (script, _, _) in FAILS.items():
        gateway.api.plays.append(script)
        count = len(gateway.api.bodies)
        sid = open_session(served)
        error = served.ended(served.begin(sid, "Hello"))["error"]
        found[name] = error
        assert len(gateway.api.bodies) == count + 1
        assert shown(served, sid).startswith("x" if name == "too much text" else "Half. "), name
    wrong = {
        name: error
        for name, error in found.items()
        if error["code"] != FAILS[name][1] or FAILS[name][2] not in error["message"]
    }
    assert wrong == {}
    lost = [n for n, (_, code, _) in enumerate(FAILS.values(), 1) if code == "agent-gone"]
    assert not {f"run_{n}" for n in lost} & set(gateway.api.stopped)
    assert "run_1" in gateway.api.stopped
    assert served.get("/healthz")


@pytest.mark.parametrize("name", REFUSES)
def test_calls_that_fail(start: Start, gateway: ScriptedGateway, name: str) -> None:
    """E1, E3: the run fails with a reason, and the next one works."""
    method, path, script, code, words = REFUSES[name]
    served = start(gateway_limits=LIMITS)
    gateway.api.instead[method, path] = script
    sid = open_session(served)
    error = served.ended(served.begin(sid, "Hello"))["error"]
    assert (error["code"], words in error["message"]) == (code, True), error
    assert KEY not in error["message"]
    gateway.api.instead.clear()
    gateway.api.states["run_1"] = ["completed"]
    gateway.api.sessions["run_1"] = ("run_1", [])
    gateway.play(text("Hi."), completed())
    assert served.ended(served.begin(sid, "Again"))["status"] == "complete"


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/runs/run_1/events", "/v1/runs/run_1/approval"])
def test_what_has_an_effect_is_sent_once(start: Start, gateway: ScriptedGateway, path: str) -> None:
    """X5: a gateway that takes a request and closes the kept connection without an answer gets no second one: it would
    start another run, or answer another question."""
    served = start(gateway_limits=LIMITS | {"probe_age": 0.0})
    request = f"{'GET' if path.endswith('events') else 'POST'} {path}"
    method, _, _ = request.partition(" ")
    gateway.api.instead[method, path] = [Close()]
    gateway.play(started(), asks(), Hang())
    assert listed(served)["available"]  # leaves a connection that can be used again
    rid = served.begin(open_session(served), "Hello")
    if path.endswith("approval"):
        asked(served, rid)
        assert listed(served)["available"]
        decide(served, rid, "once")
    assert served.ended(rid)["error"]["code"] == "agent-gone"
    assert gateway.asked_for.count(request) == 1


def test_a_redirect_is_not_followed(start: Start, gateway: ScriptedGateway) -> None:
    """The key is sent to the configured address alone."""
    served = start()
    head = {"Location": f"{gateway.url}/elsewhere", "Content-Length": "0"}
    gateway.api.instead["POST", "/v1/runs"] = [Head(307, head, chunked=False)]
    error = served.ended(served.begin(open_session(served), "Hello"))["error"]
    assert "redirect" in error["message"]
    assert not [path for path in gateway.asked_for if "elsewhere" in path]


@pytest.mark.anyio
async def test_json_of_too_many_values_is_not_parsed() -> None:
    """L6: the time to parse an answer goes with the number of its values, which is bounded."""
    assert await parse(b'{"data": [' + b"{}," * 30_000 + b"{}]}") is not None
    assert await parse(b'{"data": [' + b"{}," * 1_500_000 + b"{}]}") is None
    assert await parse(b'{"data": [' + b'"",' * 600_000 + b'""]}') is None


@pytest.mark.anyio
@pytest.mark.parametrize("packed", [False, True])
async def test_a_flood_of_events_lets_everything_else_run(packed: bool) -> None:
    """L6: the events of one piece are given out with pauses, and few bytes do not become many of them at once."""
    flood, turns = FLOOD * 20, 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    head = Head(200, {"Content-Type": "text/event-stream"} | ({"Content-Encoding": "gzip"} if packed else {}))
    http = HttpClient()
    async with upstream([head, Chunk(gzip.compress(flood) if packed else flood), End()]) as up:
        events = await GatewayClient(http, AgentGateway("g", up.url), GatewayLimits()).events("r")
        count = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count_turns)
            while await events.next() is not None:
                count += 1
            tasks.cancel_scope.cancel()
        await http.aclose()
    assert count == 180_000
    assert turns > 1_000


def test_the_end_of_a_tool_is_found_by_its_name() -> None:
    """L6: the oldest open call of that name ends, however many others are open; a denied one is passed over."""
    translator = GatewayTranslator("r", lambda: 0.0)
    for _ in range(50_000):
        translator.translate(started("busy"))
    (first, second, third) = [translator.translate(started("terminal"))[0] for _ in range(3)]
    assert isinstance(first, ToolStarted)
    assert isinstance(second, ToolStarted)
    assert isinstance(third, ToolStarted)
    translator.close(first.call_id)
    began = time.process_time()
    for _ in range(1_000):
        assert translator.translate(finished("never begun")) == []
    ended = [event for _ in range(3) for event in translator.translate(finished("terminal"))]
    assert time.process_time() - began < 1.0
    assert [event.call_id for event in ended if isinstance(event, ToolFinished)] == [second.call_id, third.call_id]
    assert translator.open_calls == 50_000


def test_many_small_events_and_repeated_ones(start: Start, gateway: ScriptedGateway) -> None:
    """L6: a flood of events is taken at the pace of the journal; calls of one name are told apart, and the end of one
    that never began changes nothing."""
    served = start()
    flood = [event for _ in range(300) for event in (started(), text("."), finished())]
    gateway.play(*flood, finished(), finished(), {"event": ["a"]}, {"event": "tool.started"}, completed())
    sid = open_session(served)
    assert served.ended(served.begin(sid, "Hello"))["status"] == "complete"
    tools = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert [tool["state"] for tool in tools] == ["done"] * 300 + ["unknown"]
    assert len({tool["call_id"] for tool in tools}) == 301


def test_a_question_that_is_too_long(start: Start, gateway: ScriptedGateway) -> None:
    """X5: of a long command the beginning and the end are shown."""
    served = start()
    gateway.play(asks("echo " + "x" * 50_000 + "; rm -rf /"), PauseAt("answered 1"), completed("."))
    rid = served.begin(open_session(served), "Hello")
    question = decide(served, rid, "deny")
    served.ended(rid)
    command = question["args"]["command"]
    assert len(command) < 21_000
    assert command.endswith("rm -rf /")


# ---- whether it is there ----


def listed(served: Served) -> Any:
    return {item["name"]: item for item in served.get("/api/agents")["items"]}["gateway"]


def test_a_gateway_says_whether_it_is_available(start: Start, gateway: ScriptedGateway) -> None:
    """The list, the test and the command line say why a gateway cannot be used; its key is not among it."""
    served = start(gateway_limits={"probe": 1.0, "probe_age": 0.0, "request": 1.0})
    found = listed(served)
    assert (found["available"], found["reason"], found["url"]) == (True, None, gateway.url)
    tested = served.post("/api/agents/gateway/test")
    assert (tested["ok"], tested["program"], tested["version"]) == (True, "hermes-agent", "9.9")
    assert "sessions" in tested["capabilities"]
    assert served.get("/api/agents/gateway/options") == {"options": [], "commands": []}
    command = [sys.executable, "-m", "holdfast", "agents", "test", "gateway", "--data-dir", str(served.data_dir)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "hermes-agent 9.9 answered" in done.stdout + done.stderr

    gateway.api.features = gateway.api.features[:-1]
    assert "does not support sessions" in listed(served)["reason"]
    for script, words in (
        (answers(401, {"error": {"message": "Invalid API key"}}), "rejected the API key"),
        (answers(200, "garbage"), "not a JSON object"),
        ([Hang()], "did not answer within 1 seconds"),
        (answers(302, "", Location="/elsewhere"), "redirect"),
    ):
        gateway.api.instead["GET", "/v1/capabilities"] = script
        assert words in listed(served)["reason"]
    tested = served.post("/api/agents/gateway/test")
    assert (tested["ok"], "redirect" in tested["reason"]) == (False, True)
    assert KEY not in json.dumps([listed(served), tested]) + served.complaints


def test_a_gateway_is_not_asked_for_each_list(start: Start, gateway: ScriptedGateway) -> None:
    """L6: a list of agents or models does not wait for a gateway that was looked at just now; a test looks again."""
    served = start(gateway_limits={"probe_age": 600.0})
    for _ in range(3):
        assert listed(served)["available"]
        assert "agent:gateway" in [item["id"] for item in served.get("/v1/models")["data"]]
    assert gateway.asked_for.count("GET /v1/capabilities") == 1
    gateway.api.features = ()
    assert not served.post("/api/agents/gateway/test")["ok"]
    assert gateway.asked_for.count("GET /v1/capabilities") == 2
    assert not listed(served)["available"]


def test_a_gateway_that_is_not_there(start: Start) -> None:
    """E1: nothing listens at the address: the list says so, and a run fails with that reason."""
    served = start(section={"url": "http://127.0.0.1:9"})
    found = listed(served)
    assert (found["available"], "cannot be reached" in found["reason"]) == (False, True)
    error = served.ended(served.begin(open_session(served), "Hello"))["error"]
    assert (error["code"], "cannot be reached" in error["message"]) == ("agent-gone", True)
