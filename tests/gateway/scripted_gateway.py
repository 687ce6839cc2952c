"""A scripted gateway on a real socket: the API of Hermes' gateway as far as runs and sessions go."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.upstream import End, Exchange, Head, PauseAt, Script, Step, Upstream, answers, listening, sse

KEY: Final = "a-key-of-the-gateway-0123456789abcdef"
FEATURES: Final = (
    "run_submission",
    "run_events_sse",
    "run_stop",
    "run_approval_response",
    "session_resources",
)
ALL: Final = ["once", "session", "always", "deny"]


def text(piece: str) -> dict[str, Any]:
    return {"event": "message.delta", "delta": piece}


def started(tool: str = "terminal", preview: str = "ls") -> dict[str, Any]:
    return {"event": "tool.started", "tool": tool, "preview": preview}


def finished(tool: str = "terminal", error: bool = False) -> dict[str, Any]:
    return {"event": "tool.completed", "tool": tool, "duration": 0.1, "error": error}


def asks(command: str = "rm x", choices: Any = ALL) -> dict[str, Any]:
    return {"event": "approval.request", "command": command, "description": "deletes", "choices": choices}


def completed(output: str = "", **usage: int) -> dict[str, Any]:
    return {"event": "run.completed", "output": output, "usage": usage}


def plays(*steps: Step | dict[str, Any]) -> Script:
    """A stream of events; a step in between is itself."""
    found: list[Step] = [Head()]
    for step in steps:
        found += sse(step) if isinstance(step, dict) else [step]
    return [*found, End()]


class _Api(Upstream):
    """What the gateway does is set by the test before it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.plays: list[Script] = []  # The events of each run
        self.bodies: list[Any] = []  # Of the runs that were started
        self.answered: list[Any] = []  # Approvals
        self.stopped: list[str] = []
        self.readers: list[str] = []  # The runs whose events were read
        self.states: dict[str, list[Any]] = {}  # Of runs; the last one stays
        self.sessions: dict[str, tuple[str, list[Any]]] = {}  # Id -> the tip's, and its messages
        self.instead: dict[tuple[str, str], Script] = {}  # By method and path
        self.features: Sequence[str] = FEATURES

    def script(self, exchange: Exchange) -> Script:
        if (found := self.instead.get((exchange.method, exchange.path))) is not None:
            return found
        if exchange.path == "/health":
            return answers(200, {"status": "ok", "platform": "hermes-agent", "version": "9.9"})
        if exchange.headers.get("authorization") != f"Bearer {KEY}":
            return _problem(401, "Invalid API key")
        if exchange.path == "/v1/capabilities":
            return answers(200, {"features": dict.fromkeys(self.features, True)})
        match [exchange.method, *exchange.path.strip("/").split("/")]:
            case ["POST", "v1", "runs"]:
                self.bodies.append(exchange.json())
                return answers(202, {"run_id": f"run_{len(self.bodies)}", "status": "started"})
            case ["GET", "v1", "runs", run_id, "events"]:
                self.readers.append(run_id)
                return self.plays.pop(0)
            case ["GET", "v1", "runs", run_id] if run_id in self.states:
                states = self.states[run_id]
                return answers(200, {"status": states.pop(0) if len(states) > 1 else states[0]})
            case ["POST", "v1", "runs", run_id, "stop"]:
                self.stopped.append(run_id)
                self.gate("stopped").open.set()
                return answers(200, {"status": "stopping"})
            case ["POST", "v1", "runs", _, "approval"]:
                self.answered.append(exchange.json())
                self.gate(f"answered {len(self.answered)}").open.set()
                return answers(200, {"resolved": 1})
            case ["GET", "api", "sessions", sid, "messages"] if sid in self.sessions:
                tip, rows = self.sessions[sid]
                return answers(200, {"session_id": tip, "data": rows})
        return _problem(404, f"Not found: {exchange.path}")


def _problem(status: int, message: str) -> Script:
    return answers(status, {"error": {"message": message}})


class ScriptedGateway:
    """The test's end."""

    def __init__(self, portal: BlockingPortal, api: _Api) -> None:
        self._portal = portal
        self.api = api

    @property
    def url(self) -> str:
        return self.api.url

    def play(self, *steps: Step | dict[str, Any]) -> None:
        """The events of the next run."""
        self.api.plays.append(plays(*steps))

    def let(self, gate: str) -> None:
        self._portal.call(self.api.gate(gate).open.set)

    @property
    def asked_for(self) -> list[str]:
        return [f"{exchange.method} {exchange.path}" for exchange in self.api.exchanges]


def row(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def call_row(call_id: str, command: str, content: str = "") -> dict[str, Any]:
    function = {"name": "terminal", "arguments": json.dumps({"command": command})}
    return row("assistant", content, tool_calls=[{"id": call_id, "function": function}])


@contextmanager
def scripted_gateway() -> Iterator[ScriptedGateway]:
    with start_blocking_portal("asyncio") as portal, portal.wrap_async_context_manager(listening(_Api())) as api:
        yield ScriptedGateway(portal, api)


PAUSE: Final = PauseAt("here")
