"""A chat session over the API: sends each message once and shows its run to the end, across lost connections. Repeats
are recognized by their idempotency key (`engine.transactions.accept`)."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from holdfast.cli import rendering
from holdfast.cli.exit_codes import CommandError, ConnectionLostError, ExitCode, ServerRefusedError
from holdfast.cli.run_follower import FollowedEvent, follow_run
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import Terminal
from holdfast.core.events import TERMINAL_TYPES
from holdfast.core.user_questions import ANSWER

_SEND_ATTEMPTS: Final = 20


@dataclass(slots=True)
class ShownRun:
    """A run and how far it has been shown. `approval` is the open request, once all events before it are shown."""

    id: str
    replay_until: int = 0  # Approvals up to this event may be resolved already
    after: int = 0
    approval: dict[str, Any] | None = None
    status: str | None = None  # Set when the run has ended
    cancelled: bool = False

    @property
    def exit_code(self) -> ExitCode:
        if self.status == "complete":
            return ExitCode.OK
        return ExitCode.INTERRUPTED if self.cancelled else ExitCode.FAILED


@dataclass(slots=True)
class ChatClient:
    connection: ServerConnection
    terminal: Terminal
    model: str | None = None
    sid: str | None = None
    session_model: str | None = None  # Of an existing session

    async def find_model(self) -> str | None:
        """The model that will answer, or None if the server has no list of models. Raises CommandError for a model of
        an unknown provider; a known provider may have more models than it lists."""
        found = await self.connection.client.call("GET", api_path("models"))
        names = [str(item["id"]) for item in found["items"]]
        providers = {name.partition("/")[0] for name in names}
        model = self.model
        if model is None or not names:
            return model or found["default"]
        listed = model in names or any(name.partition("/")[2] == model for name in names)
        if not listed and ("/" not in model or model.partition("/")[0] not in providers):
            raise CommandError(f"Unknown model {model}. See `holdfast models list`.", ExitCode.USAGE)
        return model

    async def open_session(self) -> ShownRun | None:
        """Shows the latest messages of an existing session and returns its active run."""
        assert self.sid is not None
        call = self.connection.client.call
        session = await call("GET", api_path("sessions", self.sid))
        self.session_model = session["model"]
        page = await call("GET", api_path("sessions", self.sid, "messages"), params={"limit": 20})
        if page["next"] is not None:
            self.terminal.note("(earlier messages are not shown)")
        for item in page["items"]:
            if item["status"] == "streaming":
                break  # the active run is shown from its events
            rendering.print_message(self.terminal, item)
        if session["active_run"] is None:
            return None
        run = await call("GET", api_path("runs", session["active_run"]))
        return ShownRun(run["id"], replay_until=run["last_seq"])

    async def send(self, text: str) -> ShownRun:
        """Returns once the message is stored. All attempts share an idempotency key, so there is one turn."""
        choice = {} if self.model is None else {"model": self.model}
        if self.sid is None:
            self.sid = (await self._post(api_path("sessions"), choice))["id"]
        path, body = api_path("sessions", self.sid, "runs"), {"input": text, **choice}
        return ShownRun((await self._post(path, body))["run"]["id"])

    async def continue_run(self, rid: str) -> ShownRun:
        return ShownRun((await self._post(api_path("runs", rid, "continue"), {}))["run"]["id"])

    async def _post(self, path: str, body: Any) -> Any:
        headers = {"Idempotency-Key": f"cli-{secrets.token_hex(12)}"}
        for attempt in range(_SEND_ATTEMPTS):
            try:
                return await self.connection.client.call("POST", path, body=body, headers=headers)
            except (ConnectionLostError, ServerRefusedError) as error:
                refused = isinstance(error, ServerRefusedError) and error.problem != "draining"
                if refused or attempt == _SEND_ATTEMPTS - 1:
                    raise
                await self.connection.reconnect(ConnectionLostError(str(error)))
        raise AssertionError("unreachable")

    async def show(self, run: ShownRun) -> None:
        """Shows the run until it ends or needs approval."""
        answer = rendering.AnswerPrinter(self.terminal)

        def on_event(event: FollowedEvent) -> bool:
            run.after = event.seq
            answer.print_event(event)
            if event.type == "approval.requested":
                run.approval = event.data
            elif event.type == "approval.resolved":
                run.approval = None
            elif event.type in TERMINAL_TYPES:
                run.status, run.approval = event.type.removeprefix("run."), None
                answer.finish()
                self._print_notice(run.status, event.data.get("error"))
            return run.approval is not None and event.seq >= run.replay_until

        run.approval = None
        await follow_run(self.connection, run.id, on_event, run.after)
        answer.finish()
        if run.status is None and run.approval is None:
            # The journal was lost and has no terminal event; the run's row has its status.
            found = await self.connection.client.call("GET", api_path("runs", run.id))
            run.status = str(found["status"])
            self._print_notice(run.status, found["error"], found["recovery"])

    def _print_notice(self, status: str, error: Any, recovery: Any = None) -> None:
        notice = rendering.status_notice(status, error, recovery)
        if notice is not None:
            self.terminal.note(f"({notice})", "yellow")

    async def cancel(self, rid: str) -> None:
        await self.connection.client.call("POST", api_path("runs", rid, "cancel"))

    async def decide(self, run: ShownRun, decision: str) -> None:
        await self._settle_question(run, "approvals", {"decision": decision})

    async def answer(self, run: ShownRun, text: str | None) -> None:
        """Answers a question of the model; None skips it."""
        body = {"action": "decline"} if text is None else {"action": "accept", "content": {ANSWER: text}}
        await self._settle_question(run, "inputs", body)

    async def _settle_question(self, run: ShownRun, kind: str, body: Any) -> None:
        assert run.approval is not None
        path = api_path("runs", run.id, kind, str(run.approval["approval_id"]))
        try:
            await self.connection.client.call("POST", path, body=body)
        except ServerRefusedError as error:
            if error.status != 409:
                raise
            self.terminal.note(str(error))  # already decided elsewhere
