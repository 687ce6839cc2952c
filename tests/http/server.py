"""The real server in a process of its own, with a scripted agent and storage that fails on request:
`python -m tests.http.server <settings as JSON>`.

Orders come in on stdin, a JSON object a line, and are answered on stdout the same way; the first line out is
`{"url": …}`. When stdin closes, the process goes at once.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from holdfast import app, logs
from holdfast.agents.scripted_agent import Gate, ScriptedAgent
from holdfast.app import lifecycle
from holdfast.app.agents import AgentServices
from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.memory import MemoryProviderTable
from holdfast.config import Config
from holdfast.core import memory_ledger
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Event, ToolStarted
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.ports.agent import AgentOutput, Turn
from holdfast.ports.journal import Journal
from holdfast.ports.keyring import KeyringStore
from holdfast.ports.store import Store
from holdfast.server import login_throttle
from holdfast.server.event_loop import ServerEventLoop
from holdfast.testing.faults import FaultyJournal, FaultyStore
from tests.fork_server import PATIENT, read_lines, write_line
from tests.http import scripts
from tests.http.held_calls import Held

EFFECTS = "effects"
"""File in the data directory with one line for each effect of a tool."""


class OutputWithEffects:
    """An agent's output that calls `effect` at the instant at which the effect of a tool may begin."""

    def __init__(self, out: AgentOutput, effect: Callable[[str], None]) -> None:
        self._out = out
        self._effect = effect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    async def commit(self, event: Event) -> None:
        await self._out.commit(event)
        if isinstance(event, ToolStarted):
            self._effect(event.call_id)


class Agent(ScriptedAgent):
    def __init__(self, file: Path, gates: dict[str, Gate], *, stiff: bool) -> None:
        super().__init__(scripts.of_turn, can_park=not stiff, can_resume=not stiff, _gates=gates)
        self._file = file

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        return await ScriptedAgent.run(self, turn, OutputWithEffects(out, self._note))

    def _note(self, call_id: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{call_id}\n")


class Server:
    """Settings beside those of `Config`: `engine` (fields of `Settings`; `memory` those of its policy), `policy` (of
    `Policy`), `remembers` (with memory), `journal_away` (from the start), `pauses` (the longest and the shortest one
    between wrong passwords, in seconds) and `files` (how many may be open; a quarter of them for connections)."""

    def __init__(self, settings: dict[str, Any]) -> None:
        settings["data_dir"] = Path(settings["data_dir"])
        self._journal_away = settings.pop("journal_away", False)
        self._remembers = settings.pop("remembers", False)
        engine, policy = settings.pop("engine", {}), settings.pop("policy", {})
        if "files" in settings:
            files = settings.pop("files")
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        if "pauses" in settings:
            login_throttle.MAX_PAUSE, login_throttle.MIN_PAUSE = settings.pop("pauses")  # type: ignore[misc]  # this process only
            login_throttle.WAITING_TIME = 2 * login_throttle.MAX_PAUSE  # type: ignore[misc]
        if "memory" in engine:
            engine["memory"] = memory_ledger.LedgerPolicy(**engine["memory"])
        self._config = Config(**settings)
        told = app.engine_settings(self._config)
        recovery: RecoveryPolicy = replace(told.recovery, **policy)
        self._settings = replace(told, recovery=recovery, **{**PATIENT, **engine})
        effects, self._gates = self._config.data_dir / EFFECTS, dict[str, Gate]()
        self._agents = {
            "chat": Agent(effects, self._gates, stiff=False),
            "stiff": Agent(effects, self._gates, stiff=True),
        }
        self._ports: dict[str, FaultyJournal | FaultyStore] = {}
        self._held: dict[str, Held] = {}

    def _around(self, store: Store, journal: Journal) -> tuple[Store, Journal]:
        self._held = {"store": Held(store), "journal": Held(journal)}
        faulty_store = FaultyStore(cast(Store, self._held["store"]))
        faulty_journal = FaultyJournal(cast(Journal, self._held["journal"]))
        faulty_journal.away = self._journal_away
        self._ports = {"store": faulty_store, "journal": faulty_journal}
        return faulty_store, faulty_journal

    async def run(self) -> None:
        refused: HoldfastError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._obey, tasks)
            try:
                await lifecycle.serve(
                    self._config, self._build_agents, lambda url: write_line({"url": url}), self._around, self._settings
                )
            except HoldfastError as error:
                refused = error
            tasks.cancel_scope.cancel()
        if refused is not None:
            raise refused

    def _build_agents(self, config: Config, keys: KeyringStore, engine: EngineProxy) -> AgentServices:
        memory = MemoryProviderTable(config, {}, engine) if self._remembers else None
        return AgentServices(self._agents, memory=memory)

    async def _obey(self, tasks: TaskGroup) -> None:
        async for order in read_lines():
            tasks.start_soon(self._do, order)
        os._exit(9)  # the test is gone

    async def _do(self, order: dict[str, Any]) -> None:
        write_line({"ok": await self._done(order)})

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
                self._ports["journal"].away = away
            case {"store_away": away}:
                self._ports["store"].away = away
            case {"free": free}:
                cast(FaultyStore, self._ports["store"]).free = free
            case {"hold": [port, call]}:
                self._held[port].hold(call)
            case {"held": [port, call]}:
                await self._held[port].reached(call)
            case {"release": [port, call]}:
                self._held[port].release(call)
            case {"reset": _}:
                self._gates.clear()
                for held in self._held.values():
                    held.reset()
                for port in self._ports.values():
                    port.away = False
                cast(FaultyStore, self._ports["store"]).free = None
                (self._config.data_dir / EFFECTS).unlink(missing_ok=True)
            case {"calls": [name, operation]}:
                return self._held[name].calls[operation]
            case _:
                raise ValueError(order)
        return None


def main(arguments: Sequence[str]) -> int:
    settings = json.loads(arguments[0])
    logs.configure(settings.get("log_level", "warning"), settings.get("log_format", "text"))
    try:
        anyio.run(Server(settings).run, backend_options={"loop_factory": ServerEventLoop})
    except HoldfastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
