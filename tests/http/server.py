"""The real server in a process of its own, with a scripted agent and storage that fails on request:
`python -m tests.http.server <settings as JSON>`.

Orders come in on stdin, a JSON object a line, and are answered on stdout the same way; the first line out is
`{"url": …}`. When stdin closes, the process goes at once.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio

from holdfast import logs, wiring
from holdfast.agents.scripted import Gate, ScriptedAgent
from holdfast.config import Config
from holdfast.core import ledger
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Event, ToolStarted
from holdfast.core.recovery import Policy
from holdfast.ports import Journal, Keys, Out, Store, Turn
from holdfast.testing.faults import FaultyJournal, FaultyStore
from holdfast.wiring.bridge import Bridge
from holdfast.wiring.crew import Fixed
from holdfast.wiring.memories import Memories
from tests.http import scripts
from tests.http.held import Held

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
    def __init__(self, file: Path, gates: dict[str, Gate], *, can_continue: bool) -> None:
        super().__init__(scripts.of_turn, can_continue=can_continue, _gates=gates)
        self._file = file

    async def run(self, turn: Turn, out: Out) -> str | None:
        return await ScriptedAgent.run(self, turn, _Noted(out, self._file))


class Server:
    """Settings beside those of `Config`: `engine` (fields of `Settings`; `memory` those of its policy), `policy` (of
    `Policy`), `remembers` (with memory, as `more` configures it), and what storage does from the start: `journal_away`,
    `faults` ([[port, call, how], …])."""

    def __init__(self, settings: dict[str, Any]) -> None:
        settings["data_dir"] = Path(settings["data_dir"])
        self._journal_away = settings.pop("journal_away", False)
        self._faults = settings.pop("faults", [])
        self._remembers = settings.pop("remembers", False)
        engine, policy = settings.pop("engine", {}), settings.pop("policy", {})
        if "memory" in engine:
            engine["memory"] = ledger.Policy(**engine["memory"])
        self._config = Config(**settings)
        told = wiring.engine_settings(self._config)
        recovery: Policy = replace(told.recovery, **policy)
        self._settings = replace(told, recovery=recovery, **engine)
        effects, gates = self._config.data_dir / EFFECTS, dict[str, Gate]()
        self._agents = {
            "chat": Agent(effects, gates, can_continue=True),
            "stiff": Agent(effects, gates, can_continue=False),
        }
        self._ports: dict[str, FaultyJournal | FaultyStore] = {}
        self._held: dict[str, Held] = {}

    def _around(self, store: Store, journal: Journal) -> tuple[Store, Journal]:
        self._held = {"store": Held(store), "journal": Held(journal)}
        faulty_store = FaultyStore(cast(Store, self._held["store"]))
        faulty_journal = FaultyJournal(cast(Journal, self._held["journal"]))
        faulty_journal.away = self._journal_away
        self._ports = {"store": faulty_store, "journal": faulty_journal}
        for port, call, how in self._faults:
            self._held[port].fail(call, how)
        return faulty_store, faulty_journal

    async def run(self) -> None:
        refused: HoldfastError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._obey)
            try:
                await wiring.serve(
                    self._config, self._hire, lambda url: say({"url": url}), self._around, self._settings
                )
            except HoldfastError as error:
                refused = error
            tasks.cancel_scope.cancel()
        if refused is not None:
            raise refused

    def _hire(self, config: Config, keys: Keys, bridge: Bridge) -> Fixed:
        return Fixed(self._agents, Memories(config, {}, bridge) if self._remembers else None)

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
        say({"ok": await self._done(order)})

    async def _done(self, order: dict[str, Any]) -> Any:
        chat = self._agents["chat"]
        match order:
            case {"open": gate}:
                chat.gate(gate).open.set()
            case {"reached": gate}:
                await chat.gate(gate).reached.wait()
            case {"upstreams": _}:
                return sum(agent.upstreams for agent in self._agents.values())
            case {"journal_away": away}:
                self._ports["journal"].faults.away = away
            case {"store_away": away}:
                self._ports["store"].faults.away = away
            case {"free": free}:
                cast(FaultyStore, self._ports["store"]).free = free
            case {"fail": [port, call, how]}:
                self._held[port].fail(call, how)
            case {"hold": [port, call]}:
                self._held[port].hold(call)
            case {"held": [port, call]}:
                await self._held[port].reached(call)
            case {"release": [port, call]}:
                self._held[port].release(call)
            case {"calls": [port, operation]}:
                return self._held[port].calls[operation]
            case _:
                raise ValueError(order)
        return None


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
