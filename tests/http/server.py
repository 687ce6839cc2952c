"""The real server in a process of its own, with a scripted agent and storage that fails on request:
`python -m tests.http.server <settings as JSON>`.

Orders come in on stdin, a JSON object a line, and are answered on stdout the same way; the first line out is
`{"url": …}`. When stdin closes, the process goes at once.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from holdfast import logs, wiring
from holdfast.agents.scripted import ScriptedAgent
from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Event, ToolStarted
from holdfast.ports import Journal, Out, Store, Turn
from holdfast.testing.faults import FaultyJournal, FaultyStore
from tests.http import scripts

EFFECTS = "effects"
"""File in the data directory with one line for each effect of a tool."""


class _Noted:
    """`Out` that notes an effect at the instant at which it may begin."""

    def __init__(self, out: Out, file: Path) -> None:
        self._out = out
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    async def commit(self, event: Event) -> None:
        await self._out.commit(event)
        if isinstance(event, ToolStarted):
            with self._file.open("a") as file:
                file.write(f"{event.call_id}\n")


class Agent(ScriptedAgent):
    def __init__(self, file: Path, *, can_continue: bool) -> None:
        super().__init__(scripts.of_turn, can_continue=can_continue)
        self._file = file

    async def run(self, turn: Turn, out: Out) -> str | None:
        return await ScriptedAgent.run(self, turn, _Noted(out, self._file))


class Server:
    def __init__(self, settings: dict[str, Any]) -> None:
        settings["data_dir"] = Path(settings["data_dir"])
        self._journal_away = settings.pop("journal_away", False)
        self._config = Config(**settings)
        effects = self._config.data_dir / EFFECTS
        self._agents = {
            "chat": Agent(effects, can_continue=True),
            "stiff": Agent(effects, can_continue=False),
        }
        self._journal: FaultyJournal | None = None
        self._store: FaultyStore | None = None

    def _around(self, store: Store, journal: Journal) -> tuple[Store, Journal]:
        self._store, self._journal = FaultyStore(store), FaultyJournal(journal)
        self._journal.away = self._journal_away
        return self._store, self._journal

    async def run(self) -> None:
        refused: HoldfastError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._obey)
            try:
                await wiring.serve(self._config, self._agents, lambda url: say({"url": url}), self._around)
            except HoldfastError as error:
                refused = error
            tasks.cancel_scope.cancel()
        if refused is not None:
            raise refused

    async def _obey(self) -> None:
        rest = b""
        while True:
            await anyio.wait_readable(0)
            got = os.read(0, 1 << 16)
            if not got:
                os._exit(9)  # the test is gone
            *lines, rest = (rest + got).split(b"\n")
            async with anyio.create_task_group() as orders:
                for line in lines:
                    orders.start_soon(self._do, json.loads(line))

    async def _do(self, order: dict[str, Any]) -> None:
        assert self._journal is not None
        assert self._store is not None
        match order:
            case {"open": gate}:
                for agent in self._agents.values():
                    agent.gate(gate).open.set()
                say({"ok": None})
            case {"journal_away": away}:
                self._journal.away = away
                say({"ok": None})
            case {"store_away": away}:
                self._store.away = away
                say({"ok": None})
            case {"free": free}:
                self._store.free = free
                say({"ok": None})
            case {"upstreams": _}:
                say({"ok": sum(agent.upstreams for agent in self._agents.values())})
            case {"reached": gate}:
                await self._agents["chat"].gate(gate).reached.wait()
                say({"ok": None})
            case _:
                raise ValueError(order)


def say(thing: Any) -> None:
    os.write(1, json.dumps(thing).encode() + b"\n")


def main(arguments: Sequence[str]) -> int:
    settings = json.loads(arguments[0])
    logs.configure(settings.get("log_level", "warning"), settings.get("log_format", "text"))
    try:
        anyio.run(Server(settings).run, backend_options={"use_uvloop": True})
    except HoldfastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
