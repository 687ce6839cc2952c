"""A server for pictures, and for tests that need models to choose from: questions that a person might ask, answered
from a script. `python -m tests.browser.story` is started with settings as JSON."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from holdfast import logs, wiring
from holdfast.agents.scripted import Action, Call, Fail, Hang, Say, ScriptedAgent, Spend, Step, Think
from holdfast.config import Config
from holdfast.core.ids import SessionId
from holdfast.core.parts import plain_text
from holdfast.faces.http.api import McpInfo, ToolInfo
from holdfast.ports import Turn
from holdfast.wiring.bridge import Bridge
from holdfast.wiring.crew import Crew
from holdfast.wiring.memories import Memories

PLAN: Final = """High water follows the moon, so the table needs **one phase a day**. I changed `tide()` to use it:

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

STORY: Final[dict[str, Sequence[Action]]] = {
    "The tide table for Brest is off by an hour each day. Can you fix it?": [
        *(Think(word + " ", after=0.02) for word in THOUGHT.split(" ")),
        Step(0),
        Call("c1", "read_file", {"path": "tides/table.py"}, result=OLD, takes=0.08),
        Call(
            "c2",
            "edit_file",
            {"path": "tides/table.py", "old_string": OLD, "new_string": NEW},
            result="1 change",
            takes=0.12,
        ),
        Step(1),
        Call("c3", "shell", {"command": "pytest -q tides"}, result="4 passed in 0.12s", takes=0.9, output=("....\n",)),
        Step(2),
        *(Say(word + " ", after=0.012) for word in PLAN.split(" ")),
        Spend(1834, 312),
    ],
    "Clean the build directory and publish the site.": [
        Say("The build directory has 214 files from earlier builds. I would remove them first."),
        Call("c1", "shell", {"command": "rm -rf build/* && make publish"}, asks=True),
    ],
    "Summarise the minutes of the last three meetings.": [
        Say("The three meetings agree on the new pier, and disagree about who pays for it. In May the council"),
        Fail("provider", "The provider answered 503: too many requests. Wait a minute, then continue."),
    ],
    "Translate the brochure into Breton.": [Say("Setu amañ al levrig: "), Say("**Kêr-Vrest**, porzh ar bed "), Hang()],
    "What is a good knot for a wet rope?": [
        Say("A **double fisherman's bend**: it tightens in the wet and still opens.")
    ],
    "Write one sentence about the sea.": [],
}


def script(turn: Turn) -> Sequence[Action]:
    asked = plain_text(turn.input.messages[-1].parts)
    if asked == "Write one sentence about the sea.":
        text = SEA["storm" if "b" in (turn.run.model or "") else "calm"]
        return [Say(word + " ", after=0.01) for word in text.split(" ")]
    return STORY.get(asked, [Say(asked)])


@dataclass(frozen=True)
class Shown:
    id: str
    name: str
    provider: str
    context: int | None = 128_000
    abilities: frozenset[str] = frozenset({"tools"})
    available: bool = True
    reason: str | None = None


class Models:
    async def list(self) -> Sequence[Shown]:
        away = "no key; set one in the settings"
        return [
            Shown("house/atlas-large", "Atlas Large", "house"),
            Shown("house/breeze-small", "Breeze Small", "house"),
            Shown("far/comet", "Comet", "far", available=False, reason=away),
        ]

    async def default(self) -> str | None:
        return "house/atlas-large"

    def providers(self) -> Sequence[tuple[str, bool]]:
        return [("anthropic", False), ("house", True), ("openai", False)]

    async def knows(self, model: str) -> frozenset[str]:
        return frozenset()

    async def set_key(self, provider: str, key: str | None) -> None:
        raise AssertionError("pictures need no keys")


class Bench:
    """Tools and servers as a person might have them."""

    def __init__(self) -> None:
        self._servers = {
            "charts": McpInfo("charts", "http", "https://charts.example/mcp", True, True, None),
            "library": McpInfo("library", "stdio", "library-mcp --catalogue /srv/books", False, False, None),
        }

    async def try_model(self, model: str) -> str:
        return "Hello!"

    async def tools(self) -> Sequence[ToolInfo]:
        return [
            ToolInfo("read_file", "Read a text file of the workspace.", "allow", None),
            ToolInfo("edit_file", "Replace a passage of a file.", "ask", None),
            ToolInfo("shell", "Run a command in the workspace.", "ask", None),
            ToolInfo("charts__soundings", "Depths around a position.", "ask", "charts"),
        ]

    async def servers(self) -> Sequence[McpInfo]:
        return list(self._servers.values())

    async def try_server(self, name: str) -> Sequence[str]:
        return [f"{name}__soundings"]

    async def put_server(self, name: str, *, url: str | None, **_: Any) -> None:
        self._servers[name] = McpInfo(name, "http", url or "", True, False, None)

    async def drop_server(self, name: str) -> None:
        del self._servers[name]


class Cast:
    def __init__(self, config: Config, bridge: Bridge) -> None:
        self._memory = Memories(config, {}, bridge)

    async def __aenter__(self) -> Crew:
        agents = {"chat": ScriptedAgent(script)}
        return Crew(agents, Models(), meter=self.meter, memory=self._memory, workshop=Bench())

    async def meter(self, sid: SessionId) -> tuple[str, int, int | None]:
        return "house/atlas-large", 2146, 128_000

    async def __aexit__(self, *_: object) -> None:
        return None


def main(arguments: Sequence[str]) -> int:
    settings = json.loads(arguments[0])
    logs.configure("warning", "text")
    config = Config(**{**settings, "data_dir": Path(settings["data_dir"])})

    async def serve() -> None:
        await wiring.serve(config, lambda config, _, bridge: Cast(config, bridge), lambda url: _say({"url": url}))

    anyio.run(serve, backend_options={"use_uvloop": True})
    return 0


def _say(thing: object) -> None:
    os.write(1, json.dumps(thing).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
