"""The connection to one running agent program: starts it, opens its session, sends prompts and routes what comes back.
The time limits are in `agents.acp.program`.

It speaks protocol version 1. Another version needs another `open_session`, `prompt` and `UpdateTranslator`; process,
transport, inbox and pool stay as they are.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
from acp.connection import Connection
from acp.exceptions import RequestError
from anyio import to_thread
from anyio.abc import Process, TaskStatus

from holdfast import __version__
from holdfast.agents.acp.client_methods import ClientMethods
from holdfast.agents.acp.elicitation import FormRequest, read_form
from holdfast.agents.acp.inbox import PermissionRequest, SessionUpdate, TerminalOutput, TurnEnded, TurnInbox
from holdfast.agents.acp.problem_text import error_text, login_methods
from holdfast.agents.acp.program import AcpLimits, AgentProgram, ProgramStart
from holdfast.agents.acp.session_state import OptionValue, SessionOptions
from holdfast.agents.acp.transport import LineTransport
from holdfast.agents.acp.turn import StaleSessionError
from holdfast.agents.acp.updates import replayed_text
from holdfast.core.errors import first_error
from holdfast.ports.agent import AgentError
from holdfast.tools.shell_sandbox import CommandRules
from holdfast.tools.stderr_tail import StderrTail
from holdfast.tools.supervised_process import open_supervised_process
from holdfast.tools.workspace.private_directory import create_private_directory

log = logging.getLogger("holdfast.agents")

PROTOCOL_VERSION: Final = 1
_AUTH_REQUIRED: Final = -32000
_MAX_OPTIONS: Final = 20
_MAX_PAGES: Final = 50  # Of a program's list of sessions
_MAX_QUESTIONS: Final = 100  # Of one turn that are open at once


class AgentConnection:
    """One program and its one session. `closed` is set when the program is gone or is to go."""

    def __init__(
        self,
        program: AgentProgram,
        start: ProgramStart,
        cwd: Path,
        commands: CommandRules,
        limits: AcpLimits,
    ) -> None:
        self.program = program
        self.cwd = cwd
        self.closed = anyio.Event()
        self.ended = anyio.Event()  # The process is gone
        self.busy = False
        self.used_at = 0.0
        self.session_id: str | None = None
        self.info: Mapping[str, Any] = {}  # The answer to `initialize`
        self.usage_before: Sequence[int] = [0, 0, 0, 0]  # As it was last reported
        self.cost_before = 0.0
        self.options = SessionOptions()
        self.announced_commands = anyio.Event()
        self.has_called = False  # Whether the program has used a file or a terminal in this turn
        self._start = start
        self._limits = limits
        self._stderr = StderrTail()
        self._process: Process | None = None
        self._transport: LineTransport | None = None
        self._connection: Connection | None = None
        self._inbox: TurnInbox | None = None
        self._questions: list[PermissionRequest | FormRequest] = []
        self._replayed: list[str] | None = None  # Not None while a session is loaded
        self._methods = ClientMethods(cwd, commands, self._note_output)

    # ---- life ----

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Start the program, report started when it has answered `initialize`, and hold it until closed. Failures
        before that are raised to the starter; later ones end this program alone."""
        started = False
        try:
            with anyio.fail_after(self._limits.startup) as limit:
                await to_thread.run_sync(create_private_directory, self.cwd)
                command, environment = self._start.command, self._start.environment
                async with (
                    self._stderr.reading() as stderr,
                    open_supervised_process(command, self.cwd, environment, has_input=True, stderr=stderr) as child,
                    anyio.create_task_group() as tasks,
                ):
                    self._methods.start(tasks)
                    self._connect(child.process)
                    try:
                        await self._initialize()
                        limit.deadline = float("inf")
                        started = True
                        task_status.started()
                        await self.closed.wait()
                    finally:
                        await self._disconnect()
                    tasks.cancel_scope.cancel()
        except TimeoutError:
            raise self._failure(f"did not answer within {self._limits.startup:.0f} seconds of its start") from None
        except Exception as error:
            cause = first_error(error)
            if not started:
                raise cause from None
            log.warning("The connection to the agent %s failed", self.program.name, exc_info=cause)
        finally:
            self.closed.set()
            self.ended.set()

    def _connect(self, process: Process) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self._process = process
        streams = (process.stdout, process.stdin)
        self._transport = LineTransport(*streams, self._limits.max_line, self._wait_for_room, self.closed)
        self._connection = Connection(self._handle, self._transport)

    async def _disconnect(self) -> None:
        with anyio.CancelScope(shield=True):
            self._methods.close()
            if self._connection is not None:
                await self._connection.close()

    def close(self) -> None:
        self.closed.set()

    def _failure(self, what: str, code: str = "agent-gone") -> AgentError:
        """An error with the end of the program's error output, which usually says why."""
        tail = self._stderr.text
        printed = f" It printed: {tail[-1500:]}" if tail else ""
        return AgentError(code, f"The agent {self.program.name} {what}.{printed}")

    async def _request(self, method: str, params: Mapping[str, Any], within: float | None = None) -> Mapping[str, Any]:
        assert self._connection is not None
        try:
            with anyio.fail_after(within):
                result = await self._connection.send_request(method, dict(params))
        except TimeoutError:
            raise self._failure(f"did not answer {method} within {within:.0f} seconds", "agent-timeout") from None
        except ConnectionError:
            with anyio.move_on_after(1.0):
                if self._process is not None:
                    await self._process.wait()
            status = None if self._process is None else self._process.returncode
            why = self._transport.failure if self._transport is not None and self._transport.failure else ""
            self.closed.set()
            raise self._failure(f"ended unexpectedly (status {status}). {why}".rstrip(" .")) from None
        except RequestError as error:
            why = error_text(str(error), error.data)
            if error.code == _AUTH_REQUIRED:
                raise self._failure(f"needs a login: {why}. {self._login_help()}", "agent-login") from None
            raise self._failure(f"answered {method} with an error: {why}", "agent") from None
        return result if isinstance(result, dict) else {}

    def _login_help(self) -> str:
        names = ", ".join(login_methods(self.info))
        return f"Log in with the program itself ({names})" if names else "Log in with the program itself"

    # ---- sessions ----

    async def _initialize(self) -> None:
        files = {"readTextFile": True, "writeTextFile": True}
        capabilities = {"fs": files, "terminal": True, "elicitation": {"form": {}}}
        about = {"name": "holdfast", "title": "Holdfast", "version": __version__}
        self.info = await self._request(
            "initialize",
            {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities, "clientInfo": about},
        )
        version = self.info.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise self._failure(
                f"speaks version {str(version)[:50]} of the protocol, not {PROTOCOL_VERSION}", "agent-version"
            )

    def _can(self, name: str) -> bool:
        capabilities = self.info.get("agentCapabilities")
        session = capabilities.get("sessionCapabilities") if isinstance(capabilities, dict) else None
        if name == "load":
            return isinstance(capabilities, dict) and capabilities.get("loadSession") is True
        return isinstance(session, dict) and session.get(name) is not None

    @property
    def takes_images(self) -> bool:
        capabilities = self.info.get("agentCapabilities")
        prompt = capabilities.get("promptCapabilities") if isinstance(capabilities, dict) else None
        return isinstance(prompt, dict) and prompt.get("image") is True

    async def new_session(self) -> str:
        result = await self._request("session/new", self._where(), self._limits.startup)
        session_id = result.get("sessionId")
        if not isinstance(session_id, str):
            raise self._failure("opened a session without an id", "agent")
        self.session_id = session_id
        self.options = SessionOptions.of_new_session(self.options.state.opened(result))
        return session_id

    async def apply_options(self, chosen: Mapping[str, OptionValue]) -> None:
        """Set the options that the user chose, each until it was set once. Raises AgentError if the program refuses, or
        has no such choice; the next turn tries again."""
        options = self.options  # those of this session: another one may be opened meanwhile
        for option, value in options.to_apply(chosen):
            if not option.accepts(value):
                raise AgentError(
                    "agent-option", f"The agent {self.program.name} has no {option.name} {value!r}. Choose another one."
                )
            options.applied.pop(option.id, None)  # unknown until the program has answered
            method, params = option.request(value)
            result = await self._request(method, {"sessionId": self.session_id, **params}, self._limits.startup)
            options.applied[option.id] = value
            state = options.state.chosen(option.id, value)
            options.state = state.opened(result) if isinstance(result.get("configOptions"), list) else state

    async def load_session(self, session_id: str) -> bool:
        """Load or resume a session; returns whether the program has it. Loading replays the messages, so a session that
        replays none was not found; one that can only be resumed must be in the program's list. Raises StaleSessionError
        if the program ends meanwhile."""
        method = "session/load" if self._can("load") else "session/resume" if self._can("resume") else None
        if method is None or (method == "session/resume" and not await self._lists_session(session_id)):
            return False
        self._replayed = []
        result: Mapping[str, Any] = {}
        try:
            result = await self._request(method, {**self._where(), "sessionId": session_id}, self._limits.load)
            found = method == "session/resume" or bool(self._replayed)
        except AgentError as error:
            if error.code != "agent":
                raise StaleSessionError(error.code, error.message) from None
            found = False
        finally:
            self._replayed = None
        if found:
            self.session_id = session_id
            self.options = SessionOptions(self.options.state.opened(result))
        return found

    async def _lists_session(self, session_id: str) -> bool:
        """Whether the program's list has the session: some programs resume an unknown one as an empty one. A program
        without a list, or whose list does not end, is trusted."""
        if not self._can("list"):
            return True
        where = {"cwd": str(self.cwd)}
        with anyio.move_on_after(self._limits.load):
            for _ in range(_MAX_PAGES):
                try:
                    page = await self._request("session/list", where)
                except AgentError as error:
                    if error.code != "agent":
                        raise StaleSessionError(error.code, error.message) from None
                    return True
                listed, cursor = page.get("sessions"), page.get("nextCursor")
                items = listed if isinstance(listed, list) else []
                if any(isinstance(item, dict) and item.get("sessionId") == session_id for item in items):
                    return True
                if not isinstance(cursor, str) or not cursor:
                    return False
                where["cursor"] = cursor
        return True

    def _where(self) -> dict[str, Any]:
        return {"cwd": str(self.cwd), "mcpServers": []}

    # ---- turns ----

    def begin_turn(self) -> TurnInbox:
        self._inbox = TurnInbox(self._limits.max_waiting)
        self.has_called = False
        return self._inbox

    def end_turn(self) -> None:
        self._inbox = None
        self.cancel_questions()

    async def prompt(self, blocks: list[dict[str, Any]], inbox: TurnInbox) -> None:
        """Send a prompt; its end is put into the inbox after everything that came before it."""
        try:
            result = await self._request("session/prompt", {"sessionId": self.session_id, "prompt": blocks})
        except AgentError as error:
            inbox.put(TurnEnded({}, error))
        else:
            inbox.put(TurnEnded(result))

    async def cancel(self) -> None:
        assert self._connection is not None
        try:
            await self._connection.send_notification("session/cancel", {"sessionId": self.session_id})
        except ConnectionError:
            self.closed.set()
        self.cancel_questions()

    def cancel_questions(self) -> None:
        """Answer every open question with *cancelled*, as the protocol requires when a turn is cancelled."""
        for question in self._questions:
            question.answer(None)

    async def _wait_for_room(self) -> None:
        if self._inbox is not None:
            await self._inbox.wait_for_room()

    # ---- what the program sends ----

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        params = params if isinstance(params, dict) else {}
        if method == "session/update":
            if self.session_id is None or params.get("sessionId", self.session_id) == self.session_id:
                self._update(params.get("update"))  # those of a subagent's session are not this conversation
            return None
        if method == "session/request_permission":
            return await self._ask(_read_permission(params))
        if method == "elicitation/create":
            try:
                return await self._ask(read_form(params))
            except ValueError as error:
                raise RequestError.invalid_params({"details": str(error)}) from None
        found: Callable[[Mapping[str, Any]], Awaitable[Any]] | None = self._methods.get(method)
        if found is None:
            if is_notification:
                return None
            raise RequestError.method_not_found(method)
        self.has_called = True
        return await found(params)

    def _update(self, update: Any) -> None:
        if not isinstance(update, dict):
            return
        self.options.state = self.options.state.updated(update)
        if update.get("sessionUpdate") == "available_commands_update":
            self.announced_commands.set()
        if self._replayed is not None:
            text = replayed_text(update)
            if text is not None and len(self._replayed) < 10:
                self._replayed.append(text[:200])
        elif self._inbox is not None:
            self._inbox.put(SessionUpdate(update))

    def _note_output(self, terminal_id: str, text: str) -> None:
        if self._inbox is not None:
            self._inbox.put(TerminalOutput(terminal_id, text))

    async def _ask(self, question: PermissionRequest | FormRequest) -> Mapping[str, Any]:
        """The person's answer; outside of a turn nobody is asked."""
        if self._inbox is None or len(self._questions) >= _MAX_QUESTIONS:
            question.answer(None)
        else:
            self._questions.append(question)
            self._inbox.put(question)
        try:
            await question.answered.wait()
        finally:
            if question in self._questions:
                self._questions.remove(question)
        return question.response


def _read_permission(params: Mapping[str, Any]) -> PermissionRequest:
    call, offered = params.get("toolCall"), params.get("options")
    options = [item for item in (offered if isinstance(offered, list) else ()) if isinstance(item, dict)]
    return PermissionRequest(call if isinstance(call, dict) else {}, options[:_MAX_OPTIONS], anyio.current_time())
