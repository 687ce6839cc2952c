"""A conversation with a server: send once, watch to the end, whatever becomes of the line."""

import secrets
from dataclasses import field
from typing import Any

from holdfast.core.values import dataclass
from holdfast.faces.cli import show
from holdfast.faces.cli.client import path
from holdfast.faces.cli.exits import CommandError, Exit, Lost, Refused
from holdfast.faces.cli.follow import TERMINAL, Event, Follower
from holdfast.faces.cli.reach import Line
from holdfast.faces.cli.screen import Screen

_SENDS = 20


@dataclass(slots=True)
class Watched:
    """A run that is being shown. `asks` is its open question, once everything before it has been seen."""

    rid: str
    caught_up: int = 0
    after: int = 0
    asks: dict[str, Any] | None = None
    ended: str | None = None
    cancelled: bool = False


@dataclass(slots=True)
class Talk:
    line: Line
    screen: Screen
    model: str | None = None
    sid: str | None = None
    runs: list[str] = field(default_factory=list)

    async def opened(self) -> Watched | None:
        """Show what was said in a session that is taken up, and find the run that is going on in it."""
        assert self.sid is not None
        call = self.line.client.call
        session = await call("GET", path("sessions", self.sid))
        page = await call("GET", path("sessions", self.sid, "messages"), params={"limit": 20})
        if page["next"] is not None:
            self.screen.note("(earlier messages are not shown)")
        for item in page["items"]:
            if item["status"] == "streaming":
                break  # what follows is shown as it comes
            show.message(self.screen, item)
        if session["active_run"] is None:
            return None
        run = await call("GET", path("runs", session["active_run"]))
        return Watched(run["id"], caught_up=run["last_seq"])

    async def send(self, text: str) -> Watched:
        """Stored when this returns. One key for all attempts: however often it is tried, it is one turn."""
        if self.sid is None:
            # If the answer is lost, an empty session may be left behind: nothing that anybody said is doubled.
            body = {} if self.model is None else {"model": self.model}
            self.sid = (await self._post(path("sessions"), body))["id"]
        body = {"input": text} if self.model is None else {"input": text, "model": self.model}
        return self._watched(await self._post(path("sessions", self.sid, "runs"), body))

    async def go_on(self, rid: str) -> Watched:
        return self._watched(await self._post(path("runs", rid, "continue"), {}))

    def _watched(self, answer: Any) -> Watched:
        self.runs.append(answer["run"]["id"])
        return Watched(answer["run"]["id"])

    async def _post(self, where: str, body: Any) -> Any:
        key = f"cli-{secrets.token_hex(12)}"
        for attempt in range(_SENDS):
            try:
                return await self.line.client.call("POST", where, body=body, headers={"Idempotency-Key": key})
            except (Lost, Refused) as error:
                if isinstance(error, Refused) and error.problem != "draining":
                    raise
                if attempt == _SENDS - 1:
                    raise
                await self.line.found_again(Lost(str(error)))
        raise AssertionError

    async def watch(self, watched: Watched) -> None:
        """Show the run until it has ended or asks something."""
        answer = show.Answer(self.screen)

        def see(event: Event) -> bool:
            watched.after = event.seq
            answer.show(event)
            if event.type == "approval.requested":
                watched.asks = event.data
            elif event.type == "approval.resolved":
                watched.asks = None
            elif event.type in TERMINAL:
                watched.ended, watched.asks = event.type.removeprefix("run."), None
                self._say_how(event, answer)
            return watched.asks is not None and event.seq >= watched.caught_up

        watched.asks = None
        await Follower(self.line, watched.rid, see, watched.after).run()
        answer.end()
        if watched.ended is None and watched.asks is None:
            await self._say_end_without_event(watched)

    def _say_how(self, event: Event, answer: show.Answer) -> None:
        said = show.notice(event.type.removeprefix("run."), event.data.get("error"))
        answer.end()
        if said is not None:
            self.screen.note(f"({said})", "yellow")

    async def _say_end_without_event(self, watched: Watched) -> None:
        """A run whose output was given up: its journal has no last event, the run knows how it ended."""
        run = await self.line.client.call("GET", path("runs", watched.rid))
        watched.ended = run["status"]
        said = show.notice(run["status"], run["error"], run["recovery"])
        if said is not None:
            self.screen.note(f"({said})", "yellow")

    async def cancel(self, rid: str) -> None:
        await self.line.client.call("POST", path("runs", rid, "cancel"))

    async def decide(self, watched: Watched, decision: str) -> None:
        assert watched.asks is not None
        where = path("runs", watched.rid, "approvals", str(watched.asks["approval_id"]))
        try:
            await self.line.client.call("POST", where, body={"decision": decision})
        except Refused as error:
            if error.status != 409:
                raise
            self.screen.note(str(error))  # somebody else was first


def exit_code(watched: Watched) -> Exit:
    if watched.ended == "complete":
        return Exit.OK
    return Exit.INTERRUPTED if watched.cancelled else Exit.FAILED


def nobody_to_ask(watched: Watched, sid: str | None) -> CommandError:
    return CommandError(
        f"The run asks for permission, and there is no terminal to ask at. It waits: answer with `holdfast chat "
        f"--session {sid}`.",
        Exit.WAITING,
    )
