"""The other end of the pipe: starts, speaks to, kills and buries server processes, and keeps the ledger of all that it
was told. Waiting is on the pipe, with a guard; nothing here sleeps."""

import json
import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from tests.fork_server import Fresh, ServerForker

GUARD: Final = 30.0
"""Seconds after which a client that waits for something has failed."""

_TERMINAL: Final = re.compile(rb"^id: \d+\nevent: run\.(complete|cancelled|failed|interrupted)\n")


OPEN: Final = ("queued", "running", "waiting")


class DiedError(Exception):
    """The server is gone, and the pipe has been read to its end."""


class EnoughError(Exception):
    """The client has seen as much as it was to see before the kill."""


class RefusedError(Exception):
    """The server answered a command with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Violation:
    kind: Literal["lost", "doubled", "wrong"]
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


@dataclass(slots=True)
class Turn:
    """One turn as its client knows it. Without a run it was sent and never answered."""

    key: str
    session: str
    text: str
    continues: str | None = None
    on_busy: str = "queue"
    steers: str | None = None
    """The run that the text is added to, unless it becomes a turn of its own."""
    run: str | None = None
    message: str | None = None
    user_message: str | None = None
    created_at: float | None = None
    frames: list[bytes] = field(default_factory=list)
    """Received events; event n is at n - 1."""
    seen_in: int = 0
    """The life in which the last of them came."""
    ended: bool = False
    """The terminal event was received."""
    cancels: int = 0
    decides: int = 0


@dataclass(slots=True)
class Ledger:
    """What all clients of one directory know, over all lives of its server."""

    turns: dict[str, Turn] = field(default_factory=dict)
    """By idempotency key."""
    by_run: dict[str, Turn] = field(default_factory=dict)
    sessions: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Sessions that were cleared or deleted, or may have been."""
    settled: dict[str, Any] = field(default_factory=dict)
    """Messages of ended runs as they were read: they never change again (X4)."""
    violations: list[Violation] = field(default_factory=list)
    auto_continue: bool = False
    """In the current life, runs of an earlier one may go on by themselves."""
    lives: int = 0
    events: int = 0
    _numbers: int = 0

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def accept(self, turn: Turn, answer: dict[str, Any]) -> None:
        """A2: a second answer to the same key names the same run."""
        run, message = answer["run"], answer["message"]
        known = (run["id"], run["message_id"], message["id"], message["created_at"])
        if turn.run is None:
            turn.run, turn.message, turn.user_message, turn.created_at = known
            self.by_run[run["id"]] = turn
        elif known != (turn.run, turn.message, turn.user_message, turn.created_at):
            self.complain("doubled", f"key {turn.key} was answered with run {turn.run} and then with {run['id']}")

    def receive(self, run: str, seq: int, frame: bytes) -> None:
        turn = self.by_run[run]
        self.events += 1
        turn.seen_in = self.lives
        turn.ended = turn.ended or bool(_TERMINAL.search(frame))
        if seq == len(turn.frames) + 1:
            turn.frames.append(frame)
        elif seq > len(turn.frames):
            self.complain("lost", f"{run}: event {seq} was delivered after event {len(turn.frames)}")
        elif frame != turn.frames[seq - 1]:
            self.complain("wrong", f"{run}: event {seq} was {turn.frames[seq - 1]!r} and is now {frame!r}")

    def complain(self, kind: Literal["lost", "doubled", "wrong"], what: str) -> None:
        self.blame([Violation(kind, what)])

    def blame(self, found: Iterable[Violation]) -> None:
        """Each once: what is wrong stays wrong in later lives."""
        self.violations += [violation for violation in found if violation not in self.violations]


class Budget:
    """How much a client sees before it kills: a number of lines, or some seconds. None: no end."""

    def __init__(self, lines: int | None = None, seconds: float | None = None) -> None:
        self.lines = lines
        self.until = None if seconds is None else time.monotonic() + seconds

    def spend(self) -> None:
        if self.lines is not None:
            self.lines -= 1

    def left(self) -> float:
        """Seconds; raises Enough when there is nothing left."""
        if self.lines is not None and self.lines <= 0:
            raise EnoughError
        if self.until is None:
            return GUARD
        left = self.until - time.monotonic()
        if left <= 0:
            raise EnoughError
        return left


class Server:
    """A server process and the connection to it. Leaving the context kills it if it is still there."""

    def __init__(
        self,
        directory: Path,
        ledger: Ledger,
        forker: ServerForker | Fresh,
        *,
        die: str | None = None,
        sweep_at: int | None = None,
        budget: Budget | None = None,
        **settings: Any,
    ) -> None:
        self.ledger = ledger
        self.log = directory.with_name(directory.name + ".log")
        self.refused: dict[str, Any] | None = None
        self.node: str | None = None
        self.said_bye = False
        self.budget = budget or Budget()
        order = {"directory": str(directory), "die": die, "sweep_at": sweep_at, "settings": settings}
        stdin, self._in = os.pipe()
        self._out, stdout = os.pipe()
        with self.log.open("ab") as log:
            self._process = forker.spawn([json.dumps(order)], stdin, stdout, log.fileno())
        os.close(stdin)
        os.close(stdout)
        self._code: int | None = None
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._rest = b""
        self._open = True
        self._sent = self._lines = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._cursors: dict[int, int] = {}
        self.watching: dict[int, str] = {}
        """Open streams: number to run."""
        ledger.lives += 1

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self._in)
        os.close(self._out)

    # ---- life and death ----

    def ready(self) -> "Server":
        self.pump(lambda: self.node is not None)
        return self

    def kill(self) -> int:
        """`kill -9`, and what was still in the pipe counts: a network would have delivered it too."""
        if self._code is not None:
            return self._code
        os.kill(self.pid, signal.SIGKILL)
        code = self.buried()
        if code != -signal.SIGKILL:
            self.ledger.complain("wrong", f"the server had ended by itself, with exit code {code}: {self.complaints()}")
        return code

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def buried(self) -> int:
        """Read until the process is gone; its exit code."""
        self.budget = Budget()
        with suppress(DiedError):
            self.pump(lambda: False)
        if self._code is None:
            self._code = self._process.wait()
        return self._code

    def stop(self) -> None:
        """The orderly way."""
        self.send("stop")
        code = self.buried()
        if code != 0 or not self.said_bye:
            self.ledger.complain("wrong", f"an orderly stop ended with exit code {code}: {self.complaints()}")

    def complaints(self) -> str:
        """The end of what the server wrote to stderr, in all lives."""
        return self.log.read_text(errors="replace")[-4000:]

    # ---- reading ----

    def pump(self, until: Callable[[], bool], seconds: float = GUARD) -> None:
        """Read until `until` holds. Died: it ended before. Enough: the budget did."""
        give_up_at = time.monotonic() + seconds
        while not until():
            if not self._open:
                raise DiedError
            left = min(self.budget.left(), give_up_at - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"it did not come in {seconds} s; the server wrote: {self.complaints()}")
            self._read(left)

    def step(self) -> None:
        """Read what comes next."""
        before = self._lines
        self.pump(lambda: self._lines > before)

    def _read(self, seconds: float) -> None:
        if not self._poll.poll(seconds * 1000):
            return
        got = os.read(self._out, 1 << 16)
        if not got:
            self._open = False  # what is in self._rest is torn: it was not received
            return
        *lines, self._rest = (self._rest + got).split(b"\n")
        for line in lines:
            self._lines += 1
            self.budget.spend()
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "frame" in line:
            self._take_event(line)
        elif "re" in line:
            self._answers[line["re"]] = line
        elif "closed" in line:
            del self.watching[line["watch"]]
        elif "ready" in line:
            self.node = line["ready"]
        elif "bye" in line:
            self.said_bye = True
        elif "refused" in line:
            self.refused = line["refused"]

    def _take_event(self, line: dict[str, Any]) -> None:
        """L5: a stream has neither gap nor duplicate, whatever others of the same run have."""
        number, run, seq = line["watch"], line["run"], line["seq"]
        due = self._cursors[number] + 1
        if seq != due:
            kind: Literal["lost", "doubled"] = "lost" if seq > due else "doubled"
            self.ledger.complain(kind, f"{run}: a stream delivered event {seq} when event {due} was next")
        self._cursors[number] = seq
        self.ledger.receive(run, seq, line["frame"].encode())

    # ---- speaking ----

    def send(self, name: str, *arguments: Any, **options: Any) -> int:
        self._sent += 1
        line = json.dumps([self._sent, name, arguments, options]).encode() + b"\n"
        try:
            os.write(self._in, line)
        except BrokenPipeError:
            self.buried()
            raise DiedError from None
        return self._sent

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        number = self.send(name, *arguments, **options)
        self.pump(lambda: number in self._answers)
        found = self._answers.pop(number)
        if "error" in found:
            raise RefusedError(**found["error"])
        return found["ok"]

    # ---- what clients do ----

    def create(self) -> str:
        sid: str = self.ask("create")["id"]
        self.ledger.sessions.append(sid)
        return sid

    def submit(self, session: str, text: str, *, watch: bool = True, **how: Any) -> Turn:
        """`how` is on_busy, as `Turn` has it."""
        key = f"key-{self.ledger.number()}"
        return self._begin(Turn(key, session, text, **how), watch)

    def continue_run(self, earlier: Turn) -> Turn:
        key = f"key-{self.ledger.number()}"
        return self._begin(Turn(key, earlier.session, earlier.text, continues=earlier.run), watch=True)

    def steer(self, active: Turn, text: str) -> Turn:
        key = f"key-{self.ledger.number()}"
        return self._begin(Turn(key, active.session, text, steers=active.run), watch=True)

    def _begin(self, turn: Turn, watch: bool) -> Turn:
        """In the ledger before it is sent: without an answer it may have been accepted or not. Refused, it was not."""
        self.ledger.turns[turn.key] = turn
        try:
            self.resend(turn, watch=watch)
        except RefusedError:
            del self.ledger.turns[turn.key]
            raise
        return turn

    def resend(self, turn: Turn, *, watch: bool = True) -> None:
        """Send, or send again with the same key."""
        if turn.continues is not None:
            answer = self.ask("continue", turn.continues, key=turn.key)
        elif turn.steers is not None:
            answer = self.ask("steer", turn.steers, turn.text, key=turn.key)
        else:
            answer = self.ask("submit", turn.session, turn.text, key=turn.key, on_busy=turn.on_busy)
        self.ledger.accept(turn, answer)
        if watch and turn.run not in self.watching.values():
            self.watch(turn)

    def watch(self, turn: Turn) -> None:
        """From where the client is: a reconnect."""
        number, after = len(self._cursors) + 1, len(turn.frames)
        assert turn.run is not None
        self._cursors[number], self.watching[number] = after, turn.run
        self.ask("watch", number, turn.run, after)

    def cancel(self, turn: Turn) -> Any:
        turn.cancels += 1
        return self.ask("cancel", turn.run)

    def decide(self, turn: Turn, decision: str) -> None:
        for question in self.ask("questions", turn.run):
            turn.decides += 1
            if not question["id"].startswith("ask_"):
                self.ask("decide", turn.run, question["id"], decision)
            elif decision == "deny":
                self.ask("answer", turn.run, question["id"], "decline", {})
            else:
                self.ask("answer", turn.run, question["id"], "accept", {"answer": "443"})

    def until(self, turn: Turn, kind: str) -> None:
        """Until an event of this type has been received."""
        mark = f"\nevent: {kind}\n".encode()
        self.pump(lambda: any(mark in frame for frame in turn.frames))

    def until_ended(self, turn: Turn) -> None:
        """Until its end was received, and the store says so too."""
        self.pump(lambda: turn.ended)
        self.until_status(turn, "complete", "cancelled", "failed", "interrupted")

    def until_status(self, turn: Turn, *statuses: str) -> None:
        while self.ask("run", turn.run)["status"] not in statuses:
            pass
