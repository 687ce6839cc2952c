"""`holdfast chat`. The event loop runs in its own thread; the main thread reads input and receives Ctrl-C, so that
line editing works and Ctrl-C stops an answer at once."""

import contextlib
import shlex
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import anyio
import typer
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from holdfast.cli.context import CliContext, ConfigFile, DataDir
from holdfast.cli.conversation import ChatClient, ShownRun
from holdfast.cli.exit_codes import CommandError, ExitCode
from holdfast.cli.server_connection import CommandServerPurpose, ServerConnection, run_with_connection
from holdfast.core import user_questions

if TYPE_CHECKING:
    from holdfast.config import Config

T = TypeVar("T")

DECISIONS: Final = {"o": "once", "y": "once", "s": "session", "a": "always", "d": "deny", "n": "deny"}
HELP: Final = """/continue  continue an answer that was stopped or interrupted
/new       start a new session
/quit      quit (or press Ctrl-D)
Ctrl-C     stop the answer; at the prompt: quit"""


def add(app: typer.Typer, context: CliContext) -> None:
    @app.command()
    def chat(
        question: Annotated[
            str | None, typer.Argument(metavar="QUESTION", help="Ask this, print the answer and exit.")
        ] = None,
        session: Annotated[str | None, typer.Option(help="Continue this session.", metavar="ID")] = None,
        model: Annotated[str | None, typer.Option(help="Model to use.", metavar="MODEL")] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Chat with a model. Ctrl-C stops an answer and saves the partial text; at the prompt, it quits.

        \b
        Examples:
          holdfast chat
          holdfast chat --session ses_01h…
          holdfast chat "When is high tide?"
          git diff | holdfast chat "Review this."
        """
        settings = context.config(data_dir, config)
        with context.report_errors():
            flags = {"--data-dir": data_dir, "--config": config}
            again = ["holdfast", "chat", *(str(word) for item in flags.items() if item[1] for word in item)]
            code = _run_chat(context, settings, session, model, _read_question(question), again)
        raise typer.Exit(code)


def _read_question(question: str | None) -> str | None:
    """The question with any piped input, or None to chat interactively."""
    if sys.stdin.isatty():
        return question
    piped = sys.stdin.read().strip()
    text = "\n\n".join(part for part in (question, piped) if part)
    if not text:
        raise CommandError("No question given, and stdin is empty.", ExitCode.USAGE)
    return text


def _run_chat(
    context: CliContext,
    config: "Config",
    sid: str | None,
    model: str | None,
    question: str | None,
    command: Sequence[str],
) -> ExitCode:
    async def hold_connection(stop: anyio.Event, *, task_status: TaskStatus[ServerConnection]) -> None:
        async def work(connection: ServerConnection) -> None:
            task_status.started(connection)
            await stop.wait()

        note, purpose = context.terminal.note, CommandServerPurpose.RUNS
        await run_with_connection(config, context.build_agents, work, note, creates=True, purpose=purpose)

    with start_blocking_portal() as portal:
        stop: anyio.Event = portal.call(anyio.Event)
        finished, connection = portal.start_task(partial(hold_connection, stop))
        try:
            return ChatPrompt(portal, ChatClient(connection, context.terminal, model, sid), command).run(question)
        finally:
            portal.call(stop.set)
            finished.result()


class ChatPrompt:
    def __init__(self, portal: BlockingPortal, client: ChatClient, command: Sequence[str]) -> None:
        self._portal = portal
        self._command = command  # Opens this prompt again
        self._client = client
        self._terminal = client.terminal
        self._last_run: ShownRun | None = None

    def run(self, question: str | None) -> ExitCode:
        model = self._await(self._client.find_model) if question is None or self._client.model is not None else None
        if question is not None:
            run = self._await(self._client.send, question)
            self._show(run)
            return run.exit_code
        if self._client.sid is not None:
            active_run = self._await(self._client.open_session)
            if active_run is not None:
                self._show(active_run)
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  gives `input` line editing and a history
        model = self._client.model or self._client.session_model or model
        if model is not None:
            self._terminal.note(f"Model: {model}")
        self._terminal.note("Ctrl-C stops an answer, Ctrl-D quits, /help lists commands.")
        while (text := self._input("you> ")) is not None:
            if not self._handle_input(text.strip()):
                break
        if self._client.sid is not None:
            again = shlex.join([*self._command, "--session", self._client.sid])
            self._terminal.note(f"To continue this session: {again}")
        return ExitCode.OK

    def _handle_input(self, text: str) -> bool:
        """Returns False to quit."""
        match text:
            case "":
                pass
            case "/quit" | "/exit":
                return False
            case "/help":
                self._terminal.note(HELP)
            case "/new":
                self._client.sid = self._last_run = None
                self._terminal.note("Started a new session.")
            case "/continue":
                if self._last_run is None or self._last_run.status in (None, "complete"):
                    self._terminal.note("There is no stopped or interrupted answer to continue.")
                else:
                    self._show_or_report(self._client.continue_run, self._last_run.id)
            case _:
                self._show_or_report(self._client.send, text)
        return True

    def _show_or_report(self, start: Callable[[str], Awaitable[ShownRun]], argument: str) -> None:
        """A refused message ends the turn; a lost server ends the chat."""
        try:
            self._show(self._await(start, argument))
        except CommandError as error:
            if error.exit is not ExitCode.FAILED:
                raise
            self._terminal.error(str(error))

    def _show(self, run: ShownRun) -> None:
        self._last_run = run
        while run.status is None:
            self._await(self._client.show, run, cancel_on_interrupt=run)
            if run.approval is not None:
                self._ask_approval(run)

    def _ask_approval(self, run: ShownRun) -> None:
        if not self._terminal.is_terminal:
            raise CommandError(
                f"Waiting for an answer. Give it with `holdfast chat --session {self._client.sid}`.",
                ExitCode.WAITING,
            )
        if run.approval is not None and user_questions.is_user_question(str(run.approval["approval_id"])):
            self._answer_question(run, run.approval["args"])
            return
        while True:
            always = "" if run.approval is not None and run.approval.get("always") is False else "[a]lways, "
            text = self._input(f"Allow? [y]es once, [s]ession, {always}[n]o: ")
            if text is None:  # Ctrl-C or Ctrl-D instead of a decision stops the run
                self._cancel(run)
                return
            decision = DECISIONS.get(text.strip().lower()[:1])
            if decision is not None and (always or decision != "always"):
                self._await(self._client.decide, run, decision)
                return

    def _answer_question(self, run: ShownRun, question: dict[str, Any]) -> None:
        options = user_questions.options(question)
        hint = "number or text" if options else "text"
        while True:
            text = self._input(f"Answer ({hint}; empty to skip): ")
            if text is None:
                self._cancel(run)
                return
            answer: str | None = text.strip()
            if options and text.strip().isdecimal() and 1 <= int(text) <= len(options):
                answer = options[int(text) - 1]
            problem = user_questions.answer_problem(question, answer) if answer else None
            if problem is None:
                self._await(self._client.answer, run, answer or None)
                return
            self._terminal.note(f"The answer {problem}.")

    def _input(self, prompt: str) -> str | None:
        try:
            return input(prompt)
        except (EOFError, KeyboardInterrupt):
            self._terminal.line()
            return None

    def _cancel(self, run: ShownRun) -> None:
        run.cancelled = True
        self._terminal.note("\nStopping …")
        self._await(self._client.cancel, run.id)

    def _await(
        self, function: Callable[..., Awaitable[T]], *args: Any, cancel_on_interrupt: ShownRun | None = None
    ) -> T:
        """Runs the function on the event loop. The first Ctrl-C cancels the run that is shown; a second one quits and
        leaves the run alone."""
        early = threading.Event()  # a Ctrl-C before the future is known: the function may have begun to show the answer
        default = signal.signal(signal.SIGINT, lambda *_: early.set())
        future: Future[T] = self._portal.start_task_soon(function, *args)
        try:
            signal.signal(signal.SIGINT, default)
            if early.is_set():
                raise KeyboardInterrupt
            return future.result()
        except KeyboardInterrupt:
            if cancel_on_interrupt is None or cancel_on_interrupt.cancelled:
                future.cancel()
                raise
        try:
            self._cancel(cancel_on_interrupt)
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
