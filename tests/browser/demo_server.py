"""A demo server for screenshots and for tests that need several models: it answers some questions from a script.

`python -m tests.browser.demo_server SETTINGS` takes the settings as JSON."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from holdfast import logs
from holdfast.agents.acp.program import AcpLimits
from holdfast.agents.gateway.client import GatewayLimits
from holdfast.agents.scripted_agent import Action, CallTool, Fail, Hang, Say, ScriptedAgent, Think
from holdfast.app import lifecycle
from holdfast.app.agent_programs import AgentTable, AppAgentPrograms
from holdfast.app.agents import AgentServices
from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.memory import MemoryProviderTable
from holdfast.config import Config
from holdfast.core.events import StepStarted, Usage
from holdfast.core.ids import SessionId
from holdfast.core.parts import plain_text
from holdfast.ports.agent import Turn
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.model import Ability, ModelInfo, ProviderCheck, ProviderStatus
from holdfast.server.event_loop import ServerEventLoop
from holdfast.server.schemas.settings import (
    McpPromptArgumentResponse,
    McpPromptResponse,
    McpServerRequest,
    McpServerResponse,
    ToolResponse,
)
from holdfast.tools.shell_sandbox import CommandRules, ShellSandbox
from tests.fork_server import write_line

ANSWER: Final = """High water follows the moon, so the table needs **one phase a day**. I changed `tide()` to use it:

```python
def tide(hour: float, phase: float = 0.0) -> float:
    \"\"\"Height in metres above chart datum.\"\"\"
    return 2.5 * math.cos((hour - phase) * math.tau / 12.42)
```

| time | height |
|---|---|
| 06:12 | 2.5 m |
| 12:25 | −2.4 m |
| 18:38 | 2.5 m |

The period is $T = 12.42\\,\\mathrm{h}$: half a lunar day."""
THOUGHT: Final = "Tides repeat after 12.42 hours, not 12. Let me look at how the table is made."
OLD: Final = "def tide(hour):\n    return 2.5 * math.cos(hour)"
NEW: Final = "def tide(hour, phase=0.0):\n    return 2.5 * math.cos((hour - phase) * math.tau / 12.42)"
SEA: Final = {
    "calm": "The harbour holds its breath; a **lone gull** writes one line across the glass and leaves it unsigned.",
    "storm": "All night the breakwater argued with the dark. By morning both had lost their voices.",
}

ANSWERS: Final[dict[str, Sequence[Action]]] = {
    "The tide table for Brest is off by an hour each day. Can you fix it?": [
        *(Think(word + " ", after=0.02) for word in THOUGHT.split(" ")),
        StepStarted(0),
        CallTool("c1", "read_file", {"path": "tides/table.py"}, result=OLD, takes=0.08),
        CallTool(
            "c2",
            "edit_file",
            {"path": "tides/table.py", "old_string": OLD, "new_string": NEW},
            result="1 change",
            takes=0.12,
        ),
        StepStarted(1),
        CallTool(
            "c3", "shell", {"command": "pytest -q tides"}, result="4 passed in 0.12s", takes=0.9, output=("....\n",)
        ),
        StepStarted(2),
        *(Say(word + " ", after=0.012) for word in ANSWER.split(" ")),
        Usage(1834, 312),
    ],
    "Clean the build directory and publish the site.": [
        Say("The build directory has 214 files from earlier builds. I would remove them first."),
        CallTool("c1", "shell", {"command": "rm -rf build/* && make publish"}, asks=True),
    ],
    "Summarize the minutes of the last three meetings.": [
        Say("The three meetings agree on the new pier, and disagree about who pays for it. In May the council"),
        Fail("provider", "The provider answered 503: too many requests. Wait a minute, then continue."),
    ],
    "Translate the brochure into Breton.": [Say("Setu amañ al levrig: "), Say("**Kêr-Vrest**, porzh ar bed "), Hang()],
    "What is a good knot for a wet rope?": [
        Say("A **double fisherman's bend**: it tightens in the wet and still opens.")
    ],
    "Write one sentence about the sea.": [],
}


BERTH: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Berth", "maxLength": 20},
        "nights": {"type": "integer", "title": "Nights", "minimum": 1, "default": 1},
        "side": {"type": "string", "title": "Side", "enum": ["port", "starboard"], "description": "Of the quay"},
        "power": {"type": "boolean", "title": "Shore power"},
    },
    "required": ["name", "nights"],
}


def script(turn: Turn) -> Sequence[Action]:
    asked = plain_text(turn.input.messages[-1].parts)
    if asked == "Book a berth.":
        return [Say("I will ask. "), CallTool("c1", "harbour__book", {}, form=BERTH), Say("Booked.")]
    if asked == "Write one sentence about the sea.":
        text = SEA["storm" if "b" in (turn.run.model or "") else "calm"]
        return [Say(word + " ", after=0.01) for word in text.split(" ")]
    return ANSWERS.get(asked, [Say(asked)])


class FakeModels:
    async def list(self, *, refresh: bool = False) -> Sequence[ModelInfo]:
        reason = "No API key. Set one in the settings."
        taken = frozenset({"temperature", "top_p", "max_tokens"})
        tools: frozenset[Ability] = frozenset({"tools"})
        return [
            ModelInfo(
                "house/atlas-large", "Atlas Large", "house", 128_000, tools, settings=taken | {"reasoning_effort"}
            ),
            ModelInfo("house/breeze-small", "Breeze Small", "house", 128_000, tools, settings=taken),
            ModelInfo("far/comet", "Comet", "far", 128_000, tools, available=False, reason=reason),
        ]

    async def default(self) -> str | None:
        return "house/atlas-large"

    def providers(self) -> Sequence[ProviderStatus]:
        return [
            ProviderStatus("anthropic", "https://api.anthropic.com"),
            ProviderStatus("house", "https://models.house.example/v1", "settings"),
            ProviderStatus("openai", "https://gateway.example/v1", "environment", "OPENAI_API_KEY"),
        ]

    async def knows(self, model: str) -> frozenset[str]:
        return frozenset()

    async def embed(self, model: str, body: Mapping[str, Any]) -> bytes:
        raise NotImplementedError

    async def set_key(self, provider: str, key: str | None) -> str | None:
        return "Can't reach Anthropic (api.anthropic.com)."

    async def discover(self) -> Sequence[ProviderCheck]:
        return []

    async def connect(
        self, provider: str | None, address: str | None, key: str | None, name: str | None
    ) -> ProviderCheck:
        raise NotImplementedError

    async def remove(self, name: str) -> None: ...

    async def set_images(self, name: str, images: bool) -> None: ...

    @property
    def download_size(self) -> int | None:
        return None

    async def download(self, report: Callable[[int, int], None]) -> None: ...


def _mcp_server(
    name: str, kind: Any, target: str, *, editable: bool = True, connected: bool = False
) -> McpServerResponse:
    state = {"connected": connected, "can_sign_in": kind == "http", "failure": None}
    return McpServerResponse(name=name, kind=kind, target=target, editable=editable, **state)


class FakeTools:
    """Some tools and MCP servers."""

    def __init__(self) -> None:
        self._servers = {
            "charts": _mcp_server("charts", "http", "https://charts.example/mcp", connected=True),
            "library": _mcp_server("library", "stdio", "library-mcp --catalogue /srv/books", editable=False),
            "harbour": McpServerResponse(
                name="harbour",
                kind="stdio",
                target="harbour-mcp --port Brest",
                command="harbour-mcp",
                args=["--port", "Brest"],
                cwd="/srv/harbour",
                env=["HARBOUR_KEY"],
                editable=True,
                connected=False,
                failure=None,
            ),
        }

    async def try_model(self, model: str) -> str:
        return "Hello!"

    async def tools(self) -> Sequence[ToolResponse]:
        found: Any = [
            ("read_file", "Read a text file of the workspace.", "allow", None),
            ("edit_file", "Replace a passage of a file.", "ask", None),
            ("shell", "Run a command in the workspace.", "ask", None),
            ("charts__soundings", "Depths around a position.", "ask", "charts"),
        ]
        return [ToolResponse(name=name, description=text, rule=rule, server=at) for name, text, rule, at in found]

    async def servers(self) -> Sequence[McpServerResponse]:
        return list(self._servers.values())

    async def try_server(self, name: str) -> Sequence[str]:
        return [f"{name}__soundings"]

    async def prompts(self) -> Sequence[McpPromptResponse]:
        port = McpPromptArgumentResponse(name="port", description="Where from", required=True)
        passage = McpPromptResponse(server="charts", name="passage", description="Plan a passage.", arguments=[port])
        return [passage, McpPromptResponse(server="charts", name="tides", description="Tides today.", arguments=[])]

    async def get_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> str:
        return f"Plan a passage from {arguments['port']}." if arguments else "When is high water today?"

    async def start_sign_in(self, server: str, redirect_uri: str) -> str:
        return "https://charts.example/authorize"

    async def finish_sign_in(self, state: str, code: str | None, issuer: str | None, error: str | None) -> str:
        return "charts"

    async def sign_out(self, server: str) -> None: ...

    async def put_server(self, name: str, server: McpServerRequest) -> None:
        info = _mcp_server(name, "http" if server.command is None else "stdio", server.url or server.command or "")
        info.env, info.headers, info.cwd = sorted(server.env or {}), sorted(server.headers or {}), server.cwd
        self._servers[name] = info

    async def drop_server(self, name: str) -> None:
        del self._servers[name]


def build_agents(config: Config, keys: KeyringStore, engine: EngineProxy) -> AgentServices:
    async def context_usage(sid: SessionId) -> tuple[str, int, int | None]:
        return "house/atlas-large", 2146, 128_000

    environment, home = {"PATH": os.environ["PATH"]}, config.data_dir / "no-home"
    commands = CommandRules(environment, ShellSandbox(mode="off"))
    programs = AppAgentPrograms.build(config, keys, engine, environment, home, commands, AcpLimits(), GatewayLimits())

    async def measure(sid: SessionId) -> tuple[str, int, int | None]:
        session = (await engine.engine.sessions.get(sid)).session
        return await (context_usage(sid) if session.agent == "chat" else programs.context(session))

    return AgentServices(
        AgentTable({"chat": ScriptedAgent(script)}, programs),
        FakeModels(),
        context_usage=measure,
        memory=MemoryProviderTable(config, {}, engine),
        tool_admin=FakeTools(),
        programs=programs,
        run=programs.pool.run,
    )


def main(arguments: Sequence[str]) -> int:
    settings = json.loads(arguments[0])
    logs.configure("warning", "text")
    config = Config(**{**settings, "data_dir": Path(settings["data_dir"])})

    async def serve() -> None:
        await lifecycle.serve(config, build_agents, lambda url: write_line({"url": url}))

    anyio.run(serve, backend_options={"loop_factory": ServerEventLoop})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
