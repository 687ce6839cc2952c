"""`holdfast chat`. The event loop has a thread of its own; the main thread is the person's: it reads lines and gets
Ctrl-C, which is the only way to have both line editing and a prompt stop."""

import contextlib
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import anyio
import typer
from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from holdfast.config import Config
from holdfast.faces.cli.desk import ConfigFile, DataDir, Desk
from holdfast.faces.cli.exits import CommandError, Exit
from holdfast.faces.cli.reach import Line, Needs, reach
from holdfast.faces.cli.talk import Talk, Watched, exit_code, nobody_to_ask

T = TypeVar("T")

DECISIONS: Final = {"o": "once", "s": "session", "a": "always", "d": "deny"}
HELP: Final = """/continue  go on with an answer that was stopped or interrupted
/new       begin another conversation
/quit      leave (Ctrl-D does, too)
Ctrl-C     stop the answer; at the prompt: leave"""


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command()
    def chat(
        question: Annotated[str | None, typer.Argument(help="Ask this, print the answer, and leave.")] = None,
        session: Annotated[str | None, typer.Option(help="Go on with this conversation.", metavar="ID")] = None,
        model: Annotated[str | None, typer.Option(help="Ask this model.", metavar="M")] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Talk. Ctrl-C stops an answer and keeps what was said; at the prompt, it leaves.

        \b
        Examples:
          holdfast chat
          holdfast chat --session ses_01h…
          holdfast chat "When is high tide?"
          git diff | holdfast chat "Review this."
        """
        settings = desk.config(data_dir, config)
        with desk.reporting():
            text = _given(question)
            talking = Talking(desk, settings, session, model)
            code = talking.run(text)
        raise typer.Exit(code)


def _given(question: str | None) -> str | None:
    """What was asked on the command line, with what was piped in; None: a person is at a terminal."""
    if sys.stdin.isatty():
        return question
    piped = sys.stdin.read().strip()
    text = "\n\n".join(part for part in (question, piped) if part)
    if not text:
        raise CommandError("There is nothing to ask: stdin is empty.", Exit.USAGE)
    return text


class Talking:
    def __init__(self, desk: Desk, config: Config, sid: str | None, model: str | None) -> None:
        self._desk = desk
        self._screen = desk.screen
        self._config = config
        self._sid = sid
        self._model = model

    def run(self, text: str | None) -> Exit:
        with start_blocking_portal() as portal:
            leave: anyio.Event = portal.call(anyio.Event)
            held, line = portal.start_task(partial(self._hold, leave))
            try:
                talk = Talk(line, self._screen, self._model, self._sid)
                return Conversation(portal, talk).run(text)
            finally:
                portal.call(leave.set)
                held.result()

    async def _hold(self, leave: anyio.Event, *, task_status: TaskStatus[Line]) -> None:
        async def work(line: Line) -> None:
            task_status.started(line)
            await leave.wait()

        await reach(self._config, self._desk.own, work, self._screen.note, makes=True, needs=Needs.RUNS)


class Conversation:
    def __init__(self, portal: BlockingPortal, talk: Talk) -> None:
        self._portal = portal
        self._talk = talk
        self._screen = talk.screen
        self._last: Watched | None = None

    def run(self, text: str | None) -> Exit:
        if self._talk.sid is not None and text is None:
            open_run = self._do(self._talk.opened)
            if open_run is not None:
                self._show(open_run)
        if text is not None:
            return self._once(text)
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  from now on `input` has line editing and a history
        self._screen.note("Ctrl-C stops an answer, Ctrl-D leaves, /help shows more.")
        while (said := self._ask("you> ")) is not None:
            if not self._obey(said.strip()):
                break
        if self._talk.sid is not None:
            self._screen.note(f"To go on: holdfast chat --session {self._talk.sid}")
        return Exit.OK

    def _once(self, text: str) -> Exit:
        watched = self._do(self._talk.send, text)
        self._show(watched)
        return exit_code(watched)

    def _obey(self, said: str) -> bool:
        """Whether to go on."""
        match said:
            case "":
                pass
            case "/quit" | "/exit":
                return False
            case "/help":
                self._screen.note(HELP)
            case "/new":
                self._talk.sid = self._last = None
                self._screen.note("A new conversation.")
            case "/continue":
                self._continue()
            case _:
                self._try(self._talk.send, said)
        return True

    def _continue(self) -> None:
        if self._last is None or self._last.ended in (None, "complete"):
            self._screen.note("There is no answer that was stopped here.")
        else:
            self._try(self._talk.go_on, self._last.rid)

    def _try(self, begin: Callable[[str], Awaitable[Watched]], what: str) -> None:
        """A refusal ends the turn and not the conversation; a server that stays away ends both."""
        try:
            self._show(self._do(begin, what))
        except CommandError as error:
            if error.exit is not Exit.FAILED:
                raise
            self._screen.error(str(error))

    def _show(self, watched: Watched) -> None:
        self._last = watched
        while watched.ended is None:
            self._do(self._talk.watch, watched, stops=watched)
            if watched.asks is not None:
                self._answer(watched)

    def _answer(self, watched: Watched) -> None:
        if not self._screen.is_terminal:
            raise nobody_to_ask(watched, self._talk.sid)
        while True:
            said = self._ask("allow? [o]nce, [s]ession, [a]lways, [d]eny: ")
            if said is None:  # Ctrl-C or Ctrl-D: neither yes nor no, so stop
                self._stop(watched)
                return
            decision = DECISIONS.get(said.strip().lower()[:1])
            if decision is not None:
                self._do(self._talk.decide, watched, decision)
                return

    def _ask(self, prompt: str) -> str | None:
        try:
            return input(prompt)
        except (EOFError, KeyboardInterrupt):
            self._screen.line()
            return None

    def _stop(self, watched: Watched) -> None:
        watched.cancelled = True
        self._screen.note("\nStopping; what was said is kept …")
        self._do(self._talk.cancel, watched.rid)

    def _do(self, work: Callable[..., Awaitable[T]], *args: Any, stops: Watched | None = None) -> T:
        """On the loop's thread. Ctrl-C stops the run that is watched, once; a second one leaves it to itself."""
        future: Future[T] = self._portal.start_task_soon(work, *args)
        try:
            return future.result()
        except KeyboardInterrupt:
            if stops is None or stops.cancelled:
                future.cancel()
                raise
        try:
            self._stop(stops)
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
