"""One data directory through many restarts: random work, kills at random, and the same checks after each start."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.crash import check
from tests.crash.client import Budget, EnoughError, Ledger, RefusedError, Server, Turn, Violation
from tests.crash.server import EFFECTS
from tests.fork_server import Fresh, ServerForker


class World:
    """A data directory, its servers one after another, and what their clients know."""

    def __init__(self, directory: Path, forker: ServerForker | Fresh) -> None:
        self.directory = directory
        self._forker = forker
        self.ledger = Ledger()

    def start(self, **how: Any) -> Server:
        self.ledger.auto_continue = how.get("recovery", {}).get("auto_continue", False)
        return Server(self.directory, self.ledger, self._forker, **how)

    @contextmanager
    def life(self, **how: Any) -> Iterator[Server]:
        """A server that is ready."""
        with self.start(**how) as server:
            yield server.ready()

    @contextmanager
    def next_life(self, **how: Any) -> Iterator[tuple[Server, Any]]:
        """A ready server and its dump, compared with what was shown before; in the end it stops in order, and nothing
        may have been lost."""
        with self.life(**how) as server:
            yield server, self.check(server)
            server.stop()
        assert not self.violations, self.violations

    @property
    def effects(self) -> list[str]:
        file = self.directory / EFFECTS
        return file.read_text().splitlines() if file.exists() else []

    @property
    def turns(self) -> list[Turn]:
        """Of sessions that are there."""
        return [turn for turn in self.ledger.turns.values() if turn.session not in self.ledger.gone]

    def dump(self, server: Server) -> Any:
        accepted = [turn for turn in self.turns if turn.run is not None]
        messages = [mid for turn in accepted for mid in (turn.user_message, turn.message)]
        return server.ask("dump", [turn.run for turn in accepted], messages)

    def check(self, server: Server) -> Any:
        """Compare with what was shown before; what was found is kept in the ledger."""
        before = self.effects
        dump = self.dump(server)
        self.ledger.blame(check.verify(self.ledger, dump, before, self.effects))
        return dump

    # ---- life goes on ----

    def repeat_all(self, server: Server) -> None:
        """A2: every client that did not hear of the end sends again with its key, and reconnects."""
        for turn in self.turns:
            try:
                server.resend(turn, watch=not turn.ended)
            except RefusedError as refused:
                if turn.run is None and turn.continues is not None:
                    del self.ledger.turns[turn.key]  # a continue may come too late, a send may not
                else:
                    self.ledger.complain("lost", f"key {turn.key} ({turn.run}) was sent again and refused: {refused}")

    def finish_all(self, server: Server, decision: str = "once") -> None:
        """Every accepted turn ends (A3); questions are answered on the way."""
        while going := [turn for turn in self.turns if turn.run is not None and not turn.ended]:
            asking = [turn for turn in going if asks(turn)]
            for turn in asking:  # until the answer shows, there may be another question
                server.decide(turn, decision)
            if not asking:
                server.step()
        for turn in self.turns:
            if turn.run is not None:
                server.until_ended(turn)

    def continue_all(self, server: Server, decision: str = "once") -> None:
        """X5: whatever was interrupted can be taken up, and then says exactly what it would have said."""
        while cut := self._cut():
            taken_up = [server.continue_run(turn) for turn in cut]
            self.finish_all(server, decision)
            for turn in taken_up:
                if not ended_as(turn, "complete"):
                    self.ledger.complain("wrong", f"{turn.run}: continued, and ended with {last(turn)}")

    def _cut(self) -> list[Turn]:
        """What can be continued at once: of each session one."""
        endless = ("hang", "hold", "empty")
        found: dict[str, Turn] = {}
        for turn in self.turns:
            if ended_as(turn, "interrupted") and not self.was_continued(turn) and turn.text.split()[0] not in endless:
                found[turn.session] = turn
        return list(found.values())

    def was_continued(self, turn: Turn) -> bool:
        """Also if nobody has said so yet."""
        return any(other.continues == turn.run for other in self.turns)

    def go_on(self, server: Server, decision: str = "once") -> None:
        """The whole aftermath: repeat, end, continue, and every session takes a new turn."""
        self.repeat_all(server)
        self.finish_all(server, decision)
        self.continue_all(server, decision)
        fresh = [
            server.submit(sid, f"tokens {self.label()} 3")
            for sid in self.ledger.sessions
            if sid not in self.ledger.gone
        ]
        self.finish_all(server, decision)
        for turn in fresh:
            if not ended_as(turn, "complete"):
                self.ledger.complain("wrong", f"{turn.session}: a new turn ended with {last(turn)}")
        self.check(server)

    def label(self) -> str:
        return f"L{self.ledger.number()}"

    @property
    def violations(self) -> list[Violation]:
        return self.ledger.violations


def last(turn: Turn) -> str:
    """Type of the last event received."""
    return check.parse(turn.frames[-1])[0] if turn.frames else "nothing"


def asks(turn: Turn) -> bool:
    return last(turn) == "approval.requested"


def ended_as(turn: Turn, status: str) -> bool:
    return last(turn) == f"run.{status}"


class RandomLives:
    """Twenty runs at a time, whatever happens. All chance comes from the seed; what the machine does with time does
    not, so that a seed gives the same work and a similar death."""

    def __init__(self, directory: Path, forker: ServerForker, seed: int, runs: int = 20) -> None:
        self.world = World(directory, forker)
        self._chance = Random(seed)
        self._runs = runs
        self._answered: set[str] = set()
        self._settings: dict[str, Any] = {"recovery": {"auto_continue": self._chance.random() < 0.25}}

    def live_and_die(self) -> None:
        """Start, compare with the life before, work, `kill -9`."""
        chance, world = self._chance, self.world
        lines, seconds = chance.randint(0, 600), chance.random() ** 2
        early, by_lines = chance.random() < 0.3, chance.random() < 0.5
        sweep_at = chance.choice((None, 1, 300))
        soon = Budget(seconds=seconds) if early else None
        with world.start(budget=soon, sweep_at=sweep_at, **self._settings) as server:
            try:
                server.ready()
                world.check(server)
                if not early:
                    server.budget = Budget(lines=lines) if by_lines else Budget(seconds=seconds)
                self._work(server)
            except EnoughError:
                pass
            server.kill()

    def finish(self) -> None:
        """Two more lives, both orderly: all that was begun ends, and the last one finds it as the other left it."""
        with self.world.life(**self._settings) as server:
            self.world.check(server)
            self.world.go_on(server)
            server.stop()
        with self.world.life(**self._settings) as server:
            self.world.check(server)
            server.stop()
            if "Traceback" in server.complaints():
                self.world.ledger.complain("wrong", f"something failed unnoticed: {server.complaints()}")

    def _work(self, server: Server) -> None:
        """Forever: the budget ends it."""
        world, ledger = self.world, self.world.ledger
        world.repeat_all(server)
        while True:
            going = [turn for turn in ledger.turns.values() if turn.run is not None and not turn.ended]
            for turn in going:
                if asks(turn) and turn.key not in self._answered:
                    self._answer(server, turn)
            if len(ledger.sessions) < self._runs:
                self._send(server, server.create())
            elif len(going) < self._runs:
                self._something(server)
            elif self._chance.random() < 0.02:
                self._politely(server.cancel, self._chance.choice(going))
            else:
                server.step()

    def _something(self, server: Server) -> None:
        cut = [t for t in self.world.turns if ended_as(t, "interrupted") and not self.world.was_continued(t)]
        if cut and self._chance.random() < 0.3:
            self._politely(server.continue_run, self._chance.choice(cut))
        else:
            self._send(server, self._chance.choice(self.world.ledger.sessions))

    def _send(self, server: Server, session: str) -> None:
        chance, label = self._chance, self.world.label()
        text = chance.choice((f"mixed {label} {chance.randrange(10**6)}", f"tokens {label} 200 400"))
        server.submit(session, text, on_busy=chance.choice(("queue", "queue", "interrupt")))

    def _answer(self, server: Server, turn: Turn) -> None:
        self._answered.add(turn.key)
        self._politely(server.decide, turn, self._chance.choice(("once", "deny")))

    def _politely(self, do: Any, *arguments: Any) -> None:
        with suppress(RefusedError):  # it came too late: the run has ended, or the session is busy
            do(*arguments)
