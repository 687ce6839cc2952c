"""A server process with a pipe for a network: `python -m tests.crash.server <settings as JSON>`.

Commands come in on stdin, a JSON array a line: `[1, "submit", [arguments …], {options …}]`. On stdout goes, a line
each, what a client would see: `{"re": 1, "ok": …}` or `{"re": 1, "error": …}` for a command, `{"watch": 1, "run": …,
"seq": …, "frame": …}` for an event, written when the engine's subscription has delivered it and not before. Whatever
the other end has read was shown.
"""

import json
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from holdfast.agents.scripted_agent import ScriptedAgent
from holdfast.app import Node, open_node
from holdfast.core.budgets import Budget
from holdfast.core.errors import HoldfastError, NotFoundError, StorageError
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.engine.notifications import PushChoices
from holdfast.engine.settings import EngineSettings
from holdfast.engine.shares import ShareRequest
from holdfast.engine.transactions.accept import Accepted
from holdfast.ports.store import RunQuery, SessionQuery, Tx
from tests.crash import scripts
from tests.crash.points import EffectiveAgent, FilePush, Points, installed
from tests.fork_server import PATIENT, read_lines, write_line

EXIT_STORAGE: Final = 2

EFFECTS: Final = "effects"
"""File in the data directory with one line for each effect of a tool."""
PUSHES: Final = "pushes"
"""One with a line for each notification that was sent."""

_ALL = 1_000_000


class Server:
    def __init__(self, node: Node, agent: ScriptedAgent, points: Points, tasks: TaskGroup) -> None:
        engine = node.engine
        self._node = node
        self._engine = engine
        self._points = points
        self._tasks = tasks
        self._commands: Mapping[str, Callable[..., Any]] = {
            "create": engine.sessions.create,
            "fork": engine.sessions.fork,
            "clear": engine.sessions.clear,
            "delete": engine.sessions.delete,
            "submit": self._submit,
            "continue": engine.runs.continue_run,
            "steer": engine.runs.steer,
            "answer": engine.runs.answer_input,
            "cancel": engine.runs.cancel,
            "decide": engine.runs.decide,
            "run": engine.runs.get,
            "questions": lambda run: node.store.read(lambda tx: tx.open_approvals(run)),
            "watch": self._watch,
            "dump": self._dump,
            "retries": lambda: engine.writer.retries,
            "subscribe": lambda: engine.notifications.subscribe("x", "p", "a", PushChoices(), device="Phone"),
            "outbox": lambda: node.store.read(lambda tx: tx.due_pushes(float("inf"), 9)),
            "budget": self._set_budget,
            "used": self._used,
            "share": lambda sid, token: engine.shares.create(sid, ShareRequest(), token),
            "shared": self._shared,
            "edit answer": engine.sessions.edit_answer,
            "open": lambda gate: agent.gate(gate).open.set(),
            "tick": engine.sweeper.tick,
            "stop": engine.stop,
        }

    async def listen(self) -> None:
        """Until the other end closes the pipe, which is a request to stop. Commands do not wait for one another."""
        async for command in read_lines():
            self._tasks.start_soon(self._obey, *command)
        self._engine.stop()

    async def _obey(self, number: int, name: str, arguments: list[Any], options: dict[str, Any]) -> None:
        try:
            done = self._commands[name](*arguments, **options)
            answer = {"re": number, "ok": await done if isawaitable(done) else done}
        except HoldfastError as error:
            answer = {"re": number, "error": {"code": error.code, "message": str(error)}}
        write_line(answer)
        if "ok" in answer and name in ("submit", "continue", "steer"):
            self._points.hit("answer.written")

    async def _submit(self, sid: SessionId, text: str, **options: Any) -> Accepted:
        return await self._engine.runs.submit(sid, [TextPart(text)], **options)

    async def _set_budget(self, tokens: int) -> None:
        """The only budget: of a month, which a midnight during a test does not reset."""
        for budget in (await self._engine.usage.budgets())[0].items:
            await self._engine.usage.remove_budget(budget.id)
        await self._engine.usage.add_budget(Budget("month", "tokens", tokens, "refuse"))

    async def _used(self) -> int:
        """The tokens of all answers that count in the budget."""
        _, states = await self._engine.usage.budgets()
        return round(states[0].used)

    async def _shared(self, token: str) -> Any:
        """What the link with this token shows, if it works, and how many links there are."""
        file = await self._engine.shares.find(token, is_opened=True)
        page = None
        if file is not None:
            with await self._engine.shares.open(file) as content:
                page = (await to_thread.run_sync(content.read)).decode()
        return page, len(await self._engine.shares.list())

    async def _watch(self, number: int, run: RunId, after: int) -> None:
        """Follow a run in the background. Its events carry `number`."""
        self._tasks.start_soon(self._follow, number, run, after)

    async def _follow(self, number: int, run: RunId, after: int) -> None:
        cursor, ended = after, False
        try:
            async with self._engine.subscriptions.watch(run, after) as subscription:
                while (entries := await subscription.next()) is not None:
                    for entry in entries:
                        write_line({"watch": number, "run": run, "seq": entry.seq, "frame": entry.frame.decode()})
                        self._points.hit("event.shown")
                cursor, ended = subscription.cursor, subscription.at_end
            write_line({"watch": number, "run": run, "closed": cursor, "ended": ended})
        except HoldfastError as error:
            write_line({"watch": number, "run": run, "closed": cursor, "ended": False, "error": error.code})

    async def _dump(self, runs: list[RunId], messages: list[MessageId]) -> Any:
        """All that a reader can see: every session as it is shown and as a whole tree, every run and its journal, the
        journals of `runs` even if they are gone, and `messages`. `moving` are sessions whose runs got on meanwhile."""
        before = await self._runs()
        sessions = {
            view.session.id: await self._session(view.session.id)
            for view in await self._engine.sessions.list(SessionQuery(LOCAL, limit=_ALL))
        }
        journals = {rid: await self._journal(rid) for rid in (*before, *runs)}
        found = {mid: await self._message(mid) for mid in messages}
        after = await self._runs()
        return {
            "node": self._engine.node,
            "sessions": sessions,
            "runs": before,
            "journals": journals,
            "messages": {mid: message for mid, message in found.items() if message is not None},
            "moving": sorted({run.session_id for rid, run in after.items() if before.get(rid) != run}),
        }

    async def _runs(self) -> dict[RunId, Run]:
        listed = await self._engine.runs.list(RunQuery(LOCAL, limit=_ALL))
        return {run.id: replace(run, settings=None) for run in listed}  # they are not read in lists

    async def _session(self, sid: SessionId) -> Any:
        view = await self._engine.sessions.get(sid)
        shown = await self._engine.messages.page(sid, limit=_ALL)
        return {
            "head": view.session.head,
            "active_run": None if view.active_run is None else view.active_run.id,
            "queued": [message for _, message in view.queued],
            "shown": [item.message for item in shown.items],
            "tree": await self._node.store.read(lambda tx: _tree(tx, sid)),
        }

    async def _message(self, mid: MessageId) -> Message | None:
        try:
            return (await self._engine.messages.get(mid)).message
        except NotFoundError:
            return None

    async def _journal(self, run: RunId) -> Any:
        """Frames in order, or the code of the error. Numbers are checked here: they are not in the answer."""
        frames: list[str] = []
        try:
            while page := await self._node.journal.read(run, len(frames)):
                for entry in page:
                    assert entry.seq == len(frames) + 1, f"{run}: event {entry.seq} follows event {len(frames)}"
                    frames.append(entry.frame.decode())
        except HoldfastError as error:
            return error.code
        return frames


def _tree(tx: Tx, sid: SessionId) -> list[Message]:
    found: list[Message] = []
    below = list(tx.children(sid, None))
    while below:
        message = tx.message(below.pop())
        assert message is not None
        found.append(message)
        below += tx.children(sid, message.id)
    return found


async def serve(directory: Path, settings: dict[str, Any], points: Points) -> int:
    if "recovery" in settings:
        settings["recovery"] = RecoveryPolicy(**settings["recovery"])
    script = ScriptedAgent(scripts.of_turn)
    agents = {"chat": EffectiveAgent(script, directory / EFFECTS, points)}
    quick = {"drain_time": 0.0, "sweep_interval": 3600.0, "disk_reserve": 0, **PATIENT}
    try:
        push = FilePush(directory / PUSHES, points)
        node = await open_node(directory, agents, EngineSettings(**{**quick, **settings}), push=push)
    except StorageError as error:
        write_line({"refused": {"code": error.code, "message": str(error)}})
        print(f"holdfast: {error}", file=sys.stderr)
        return EXIT_STORAGE
    async with anyio.create_task_group() as outer:
        outer.start_soon(_stop_on_signal, node)
        async with anyio.create_task_group() as tasks:
            await tasks.start(node.engine.run)
            write_line({"ready": node.engine.node})
            outer.start_soon(Server(node, script, points, tasks).listen)
        outer.cancel_scope.cancel()
    with suppress(BrokenPipeError):
        write_line({"bye": node.engine.node})
    await node.close()
    return 0


async def _stop_on_signal(node: Node) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            node.engine.stop()


def main(arguments: Sequence[str]) -> int:
    """`die` is the point at which this process kills itself, as `POINT` or `POINT:N` for the Nth time."""
    order = json.loads(arguments[0])
    logging.basicConfig(level=logging.WARNING)
    name, _, nth = (order["die"] or "").partition(":")
    points = Points(name or None, int(nth or 1))
    with installed(points, order["sweep_at"]):
        options = {"use_uvloop": True}
        return anyio.run(serve, Path(order["directory"]), order["settings"], points, backend_options=options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
