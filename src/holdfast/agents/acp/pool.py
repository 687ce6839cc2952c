"""The running agent programs: one per session and started on demand. An unused one is ended after `AcpLimits.idle`, and
at `max_programs` the least recently used idle one makes room; if all are busy, the turn fails (`agents.acp.program` has
the limits)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from holdfast.agents.acp.program import AcpLimits, AgentProgram, ProgramStart
from holdfast.core.errors import QuotaExceededError
from holdfast.core.ids import SessionId
from holdfast.ports.agent import AgentError
from holdfast.tools.shell_sandbox import CommandRules

if TYPE_CHECKING:
    from holdfast.agents.acp.connection import AgentConnection

_TICK: Final = 30.0  # Seconds between two checks for idle programs


@dataclass(slots=True)
class AgentPool:
    environment: Mapping[str, str]  # The server's, of which programs inherit the harmless part
    commands: CommandRules  # For what programs start in terminals of ours
    limits: AcpLimits = field(default_factory=AcpLimits)
    _tasks: TaskGroup | None = None
    _running: dict[SessionId, "AgentConnection"] = field(default_factory=dict)
    _tests: int = 0
    _problems: dict[str, tuple[AgentProgram, str]] = field(default_factory=dict)
    """Why the last test of a program failed, by its name: until it works, or another command has the name."""

    def problem(self, program: AgentProgram) -> str | None:
        """Why the last test of the program failed; None if it did not, or the program has worked since."""
        tested, problem = self._problems.get(program.name, (None, None))
        return problem if tested == program else None

    def note_problem(self, program: AgentProgram, problem: str | None) -> None:
        """`problem`: None if the program works."""
        self._problems.pop(program.name, None)
        if problem is not None:
            self._problems[program.name] = program, problem

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Holds the programs; they end with it."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            while True:
                await anyio.sleep(_TICK)
                self.tick(anyio.current_time())

    def tick(self, now: float) -> None:
        """End programs that nobody has used for a while."""
        for connection in self._running.values():
            if not connection.busy and now - connection.used_at >= self.limits.idle:
                connection.close()
        self._forget_ended()

    async def acquire(self, sid: SessionId, program: AgentProgram, cwd: Path) -> "AgentConnection":
        """The session's program, running and answering. It is busy until `release`."""
        found = self._running.get(sid)
        if found is not None and (found.closed.is_set() or found.program != program or found.cwd != cwd):
            found.close()
            await found.ended.wait()  # two programs would work in one directory, and on one session
            found = None
        if found is None:
            found = await self.start(program, cwd, sid)
        found.busy = True
        return found

    def running(self, sid: SessionId) -> "AgentConnection | None":
        """The session's program, if it is running, busy or not."""
        found = self._running.get(sid)
        return None if found is None or found.closed.is_set() else found

    def release(self, connection: "AgentConnection") -> None:
        connection.busy = False
        connection.used_at = anyio.current_time()

    async def start(self, program: AgentProgram, cwd: Path, sid: SessionId | None = None) -> "AgentConnection":
        """Starts a new program. One for a session counts towards the limit of programs; of others, which test a
        configuration, the caller limits the number. Raises AgentError."""
        if self._tasks is None:
            raise AgentError("agent-unavailable", "Agents cannot be started by this command. Start the server.")
        command = await to_thread.run_sync(program.find, self.environment)
        if command is None:
            raise AgentError("agent-unavailable", program.missing)
        process = ProgramStart(command, program.environment(self.environment))
        # The protocol's package is half a second of pure Python, so it is imported when it is first needed.
        module = await to_thread.run_sync(import_module, "holdfast.agents.acp.connection")
        if sid is not None:
            self._make_room()  # no await until the slot is taken
        connection: AgentConnection = module.AgentConnection(program, process, cwd, self.commands, self.limits)
        if sid is not None:
            connection.busy = True
            self._running[sid] = connection
        try:
            await self._tasks.start(connection.run)
        except BaseException:
            connection.close()
            if sid is not None:
                self._running.pop(sid, None)
            raise
        return connection

    @asynccontextmanager
    async def testing(self, program: AgentProgram, cwd: Path) -> AsyncIterator["AgentConnection"]:
        """A program that ends with the block, and is gone before the next one takes its place. Raises AgentError, or
        QuotaExceededError if too many are tested."""
        if self._tests >= self.limits.max_tests:
            raise QuotaExceededError("agents that are tested at once", self.limits.max_tests, "Try again in a minute.")
        self._tests += 1
        try:
            connection = await self.start(program, cwd)
            try:
                yield connection
            finally:
                connection.close()
                with anyio.CancelScope(shield=True):
                    await connection.ended.wait()
        finally:
            self._tests -= 1

    def _make_room(self) -> None:
        self._forget_ended()
        kept = {sid: connection for sid, connection in self._running.items() if not connection.closed.is_set()}
        if len(kept) < self.limits.max_programs:
            return
        idle = [(connection.used_at, sid) for sid, connection in kept.items() if not connection.busy]
        if not idle:
            raise AgentError(
                "too-many-agents",
                f"{self.limits.max_programs} agents are working, the most that run at once. Try again later.",
            )
        kept[min(idle)[1]].close()

    def _forget_ended(self) -> None:
        self._running = {sid: item for sid, item in self._running.items() if not item.ended.is_set()}
