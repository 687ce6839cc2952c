"""A server process with a pipe for a network: `python -m tests.crash.server <data-dir>`.

Commands come in on stdin, a JSON object a line: `{"id": 1, "do": "submit", …}`. On stdout goes, a line each, what a
client would see: `{"re": 1, "ok": …}` or `{"re": 1, "error": …}` for a command, `{"watch": 1, "run": …, "seq": …,
"frame": …}` for an event, written when the engine's subscription has delivered it and not before. Whatever the other
end has read was shown.
"""

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from holdfast.agents.scripted import AgentTable, ScriptedAgent
from holdfast.core.errors import DataDirInUse, HoldfastError, NotFound, StorageError
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, RunId, SessionId
from holdfast.core.parts import Text, all_to_json
from holdfast.core.recovery import Policy
from holdfast.core.run import Run
from holdfast.core.session import Message
from holdfast.engine.book.accept import Accepted
from holdfast.engine.settings import Settings
from holdfast.ports import SessionQuery, Tx
from holdfast.wiring import Node, open_node
from tests.crash import scripts
from tests.crash.points import EffectiveAgent, Points, installed

EXIT_STORAGE: Final = 2
EXIT_IN_USE: Final = 3

EFFECTS: Final = "effects"
"""File in the data directory with one line for each effect of a tool."""

_STDIN, _STDOUT = 0, 1
_ALL = 1_000_000


class Server:
    def __init__(self, node: Node, agent: ScriptedAgent, points: Points, tasks: TaskGroup) -> None:
        self._node = node
        self._service = node.engine.service
        self._agent = agent
        self._points = points
        self._tasks = tasks
        self._commands: Mapping[str, Callable[..., Awaitable[Any]]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }

    async def listen(self) -> None:
        """Until the other end closes the pipe, which is a request to stop. Commands do not wait for one another."""
        rest = b""
        while True:
            await anyio.wait_readable(_STDIN)
            got = os.read(_STDIN, 1 << 16)
            if not got:
                self._node.engine.stop()
                return
            *lines, rest = (rest + got).split(b"\n")
            for line in lines:
                self._tasks.start_soon(self._obey, json.loads(line))

    async def _obey(self, command: dict[str, Any]) -> None:
        number, name = command.pop("id"), command.pop("do")
        try:
            answer = {"re": number, "ok": await self._commands[name](**command)}
        except HoldfastError as error:
            answer = {"re": number, "error": {"code": error.code, "message": str(error)}}
        say(answer)
        if "ok" in answer and name in ("submit", "continue"):
            self._points.hit("answer.written")

    # ---- sessions ----

    async def do_create(self) -> Any:
        return (await self._service.create_session()).id

    async def do_fork(self, session: str, message: str) -> Any:
        return (await self._service.fork(SessionId(session), MessageId(message))).id

    async def do_clear(self, session: str) -> Any:
        return (await self._service.clear(SessionId(session))).id

    async def do_delete(self, session: str) -> Any:
        return (await self._service.delete(SessionId(session))).id

    # ---- runs ----

    async def do_submit(self, session: str, text: str, key: str, lifetime: Any, **how: Any) -> Any:
        sid = SessionId(session)
        accepted = await self._service.submit(sid, [Text(text)], key=key, lifetime=lifetime, **how)
        if lifetime == "attached":
            self._tasks.start_soon(self._stay, accepted.run.id)
        return _accepted(accepted)

    async def _stay(self, run: RunId) -> None:
        """The connection of an attached run: it goes with the server and not before."""
        async with self._service.attached(run):
            await anyio.sleep_forever()

    async def do_continue(self, run: str, key: str) -> Any:
        return _accepted(await self._service.continue_run(RunId(run), key=key))

    async def do_cancel(self, run: str) -> Any:
        return _run(await self._service.cancel(RunId(run)))

    async def do_decide(self, run: str, approval: str, decision: Any) -> Any:
        return _run(await self._service.decide(RunId(run), ApprovalId(approval), decision))

    async def do_run(self, run: str) -> Any:
        return _run(await self._service.run(RunId(run)))

    async def do_watch(self, number: int, run: str, after: int) -> Any:
        """Follow a run. Its events carry `number`."""
        self._tasks.start_soon(self._watch, number, RunId(run), after)

    async def _watch(self, number: int, run: RunId, after: int) -> None:
        cursor, ended = after, False
        try:
            async with self._service.watch(run, after) as subscription:
                while (entries := await subscription.next()) is not None:
                    for entry in entries:
                        say({"watch": number, "run": run, "seq": entry.seq, "frame": entry.frame.decode()})
                        self._points.hit("event.shown")
                cursor, ended = subscription.cursor, subscription.at_end
            say({"watch": number, "run": run, "closed": cursor, "ended": ended})
        except HoldfastError as error:
            say({"watch": number, "run": run, "closed": cursor, "ended": False, "error": error.code})

    # ---- reading ----

    async def do_dump(self, runs: list[str], messages: list[str]) -> Any:
        """All that a reader can see: every session as it is shown and as a whole tree, every run and its journal, the
        journals of `runs` even if they are gone, and `messages`. `moving` are sessions whose runs got on meanwhile."""
        before = await self._runs()
        sessions = {
            view.session.id: await self._session(view.session.id)
            for view in await self._service.sessions(SessionQuery(LOCAL, limit=_ALL))
        }
        journals = {rid: await self._journal(RunId(rid)) for rid in (*before, *runs)}
        found = {mid: await self._message(MessageId(mid)) for mid in messages}
        after = await self._runs()
        return {
            "node": self._node.engine.node,
            "sessions": sessions,
            "runs": before,
            "journals": journals,
            "messages": {mid: message for mid, message in found.items() if message is not None},
            "moving": sorted({run["session"] for rid, run in after.items() if before.get(rid) != run}),
        }

    async def _runs(self) -> dict[str, Any]:
        return {run.id: _run(run) for run in await self._service.runs(limit=_ALL)}

    async def _session(self, sid: SessionId) -> Any:
        view = await self._service.session(sid)
        shown = await self._service.messages(sid, limit=_ALL)
        return {
            "head": view.session.head,
            "active_run": None if view.active_run is None else view.active_run.id,
            "queued": [_message(message) for _, message in view.queued],
            "shown": [_message(item.message) for item in shown.items],
            "tree": [_message(message) for message in await self._node.store.read(lambda tx: _tree(tx, sid))],
        }

    async def _message(self, mid: MessageId) -> Any:
        try:
            return _message((await self._service.message(mid)).message)
        except NotFound:
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

    async def do_questions(self, run: str) -> Any:
        """Open approvals of a run."""
        found = await self._node.store.read(lambda tx: tx.open_approvals(RunId(run)))
        return [{"approval": item.id, "call": item.call_id, "reason": item.reason} for item in found]

    async def do_retries(self) -> Any:
        """How often a commit of the journal was tried again."""
        return self._node.engine.writer.retries

    # ---- control of the process ----

    async def do_reached(self, gate: str) -> Any:
        await self._agent.gate(gate).reached.wait()

    async def do_open(self, gate: str) -> Any:
        self._agent.gate(gate).open.set()

    async def do_tick(self) -> Any:
        await self._node.engine.sweeper.tick()

    async def do_stop(self) -> Any:
        self._node.engine.stop()


def say(thing: Any) -> None:
    """One whole line to the client. Blocks while the pipe is full: nobody here is a slow client by design."""
    line = json.dumps(thing, separators=(",", ":")).encode() + b"\n"
    while line:
        line = line[os.write(_STDOUT, line) :]


def _run(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "session": run.session_id,
        "message": run.message_id,
        "user_message": run.user_message_id,
        "status": run.status,
        "reason": run.reason,
        "error": None if run.error is None else run.error.code,
        "complaint": None if run.error is None else run.error.message,
        "recovery": None if run.recovery is None else run.recovery.state,
        "key": run.key,
        "continues": run.continues,
        "in_tree": run.in_tree,
        "epoch": run.epoch,
        "holder": None if run.lease is None else run.lease.holder,
        "cancel_requested": run.cancel_requested,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "last_seq": run.last_seq,
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "session": message.session_id,
        "role": message.role,
        "parent": message.parent_id,
        "run": message.run_id,
        "status": message.status,
        "reason": message.reason,
        "parts": all_to_json(message.parts),
        "error": None if message.error is None else message.error.code,
        "recovery": message.recovery,
        "key": message.key,
        "created_at": message.created_at,
        "last_seq": message.last_seq,
    }


def _accepted(accepted: Accepted) -> dict[str, Any]:
    return {"run": _run(accepted.run), "message": _message(accepted.message), "fresh": accepted.fresh}


def _tree(tx: Tx, sid: SessionId) -> list[Message]:
    found: list[Message] = []
    below = list(tx.children(sid, None))
    while below:
        message = tx.message(below.pop())
        assert message is not None
        found.append(message)
        below += tx.children(sid, message.id)
    return found


async def serve(options: argparse.Namespace, points: Points) -> int:
    settings = Settings(**{"drain": 0.0, "sweep": 3600.0, "disk_reserve": 0, **_settings(options.settings)})
    script = ScriptedAgent(scripts.of_turn)
    effects = options.directory / EFFECTS
    agents = {
        "chat": EffectiveAgent(script, effects, points),
        "keeper": EffectiveAgent(ScriptedAgent(scripts.of_turn, can_continue=False), effects, points),
    }
    try:
        node = await open_node(options.directory, AgentTable(agents), settings)
    except StorageError as error:
        say({"refused": {"code": error.code, "message": str(error)}})
        print(f"holdfast: {error}", file=sys.stderr)
        return EXIT_IN_USE if isinstance(error, DataDirInUse) else EXIT_STORAGE
    async with anyio.create_task_group() as outer:
        outer.start_soon(_stop_on_signal, node)
        async with anyio.create_task_group() as tasks:
            await tasks.start(node.engine.run)
            say({"ready": node.engine.node})
            outer.start_soon(Server(node, script, points, tasks).listen)
        outer.cancel_scope.cancel()
    with suppress(BrokenPipeError):
        say({"bye": node.engine.node})
    await node.close()
    return 0


async def _stop_on_signal(node: Node) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            node.engine.stop()


def _settings(text: str) -> dict[str, Any]:
    changes = json.loads(text)
    if "recovery" in changes:
        changes["recovery"] = Policy(**changes["recovery"])
    return dict(changes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.server")
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--die", metavar="POINT[:N]", help="kill -9 this process when it gets to POINT for the Nth time"
    )
    parser.add_argument("--sweep-at", type=int, help="dead rows in the journal's log that are worth removing")
    parser.add_argument("--settings", default="{}", help="engine settings, as a JSON object")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING)
    name, _, nth = (options.die or "").partition(":")
    points = Points(name or None, int(nth or 1))
    with installed(points, options.sweep_at):
        return anyio.run(serve, options, points, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    sys.exit(main())
