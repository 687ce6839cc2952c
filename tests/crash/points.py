"""Named moments at which a server process kills itself. They are put around the ports and around SQLite's own
connection, in the test's process: `src` has no hooks.

What a transaction or a commit is, is told from what it writes, not from who calls it: a put_run that makes a queued
run running is a claim, whatever function did it.
"""

import json
import os
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar, cast
from unittest.mock import patch

from holdfast.app import storage
from holdfast.core.edited_answers import EDITED
from holdfast.core.errors import AppendRefusedError
from holdfast.core.events import Entry
from holdfast.core.ids import RunId, SessionId, SubscriptionId
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.core.shares import Share
from holdfast.ports.agent import Agent, AgentOutput, Turn
from holdfast.ports.clock import Clock
from holdfast.ports.journal import Append
from holdfast.ports.push import PushResult
from holdfast.ports.store import Approval, PushMessage, PushSubscription, Store, Tx
from holdfast.storage.sqlite import DataDir, SqliteJournal, SqliteStore, journal_records, journal_writer
from tests.http.server import OutputWithEffects

T = TypeVar("T")

POINTS: Final[Mapping[str, str]] = {
    # transactions of the store; `before-commit`: all is written, nothing committed; `after-commit`: nobody knows yet
    **{
        f"{what}.{when}": meaning
        for what, meaning in {
            "session": "a session is made",
            "accept": "a turn is accepted",
            "claim": "a queued run becomes running",
            "ask": "a question is put where it can be answered",
            "park": "a run begins to wait for a person",
            "decide": "the person has answered",
            "intent": "somebody asks for a run to end",
            "offer": "a text is to be added to a run",
            "take": "the run takes the text, and has not journaled it",
            "added": "the journal has the text, and its turn may end",
            "takeover": "recovery raises the epoch of a dead run",
            "pending": "a run is shown as interrupted because its journal is away",
            "settle": "the sealed journal becomes the message",
            "fork": "a session is copied",
            "edited": "an edited answer is put beside the original",
            "share": "a snapshot that is complete gets its row",
            "clear": "what was said is erased",
            "delete": "a session is hidden",
            "erase": "the rows of a deleted session go",
            "purged": "the note about erased journals goes",
            "push.claimed": "a notification is about to be sent",
            "push.done": "a notification has been sent, and leaves the outbox",
        }.items()
        for when in ("before-commit", "after-commit")
    },
    # commits of the journal; `before-publish`: the engine is told, subscribers are not
    **{
        f"{what}.{when}": meaning
        for what, meaning in {
            "append": "events of any kind",
            "run.started": "the first event",
            "message.seeded": "the first event of a continuing run",
            "run.resumed": "a parked run goes on",
            "tool.started": "the effect may begin",
            "tool.finished": "the effect has a result",
            "approval.requested": "the question; the run is not parked yet",
            "approval.resolved": "the answer, journalled",
            "message.steered": "a text that was added to the run",
            "terminal": "the seal, whoever writes it; afterwards: between seal and settle",
        }.items()
        for when in ("before-commit", "after-commit", "before-publish")
    },
    **{
        f"{what}.{when}": meaning
        for what, meaning in {
            "fence": "recovery shuts out older writers; afterwards: fenced and not sealed",
            "archive": "a settled journal is put into segments",
            "sweep": "rows of settled journals leave the log",
            "purge": "journals are erased",
        }.items()
        for when in ("before-commit", "after-commit")
    },
    "archive.middle": "a segment is written, nothing committed",
    "sweep.middle": "rows are deleted, nothing committed",
    "purge.middle": "some of a journal is deleted, nothing committed",
    # the agent
    "tool.before-effect": "tool.started is durable, the effect has not begun",
    "tool.after-effect": "the effect has happened, tool.finished is not written",
    # the push service
    "push.before-send": "the push service has not got it",
    "push.after-send": "the push service has it, and nobody knows",
    # the pipe to the clients
    "answer.written": "an `accepted` has gone out",
    "event.shown": "an event has gone out",
}


class Points:
    """Counts how often each point is reached, and dies at one of them. Called from every thread."""

    def __init__(self, name: str | None = None, nth: int = 1) -> None:
        if name is not None and name not in POINTS:
            raise ValueError(f"no point {name!r}; there are: {', '.join(sorted(POINTS))}")
        self._name = name
        self._nth = nth
        self._reached: Counter[str] = Counter()
        self._lock = Lock()

    def hit(self, *names: str) -> None:
        with self._lock:
            for name in names:
                self._reached[name] += 1
                if name == self._name and self._reached[name] == self._nth:
                    os.kill(os.getpid(), signal.SIGKILL)

    def hits(self, whats: Iterable[str], when: str) -> None:
        self.hit(*(f"{what}.{when}" for what in sorted(whats)))


@contextmanager
def installed(points: Points, sweep_at: int | None = None) -> Iterator[None]:
    """Within it, `open_node` builds its engine on watched ports. `sweep_at`: how many dead rows of the log make
    a sweep, which a short test would never see otherwise."""
    opened: Any = vars(storage)["open_embedded"]
    connect: Any = sqlite3.connect
    watched = _connection_type(points)

    def open_watched(path: Path, clock: Clock) -> tuple[DataDir, SqliteStore, SqliteJournal]:
        directory, store, journal = opened(path, clock)
        watched_store = cast(SqliteStore, WatchedStore(store, points))
        return directory, watched_store, cast(SqliteJournal, WatchedJournal(journal, points))

    def connect_watched(database: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        if "journal.db" in str(database):
            kwargs["factory"] = watched
        connection: sqlite3.Connection = connect(database, *args, **kwargs)
        return connection

    with ExitStack() as patches:
        patches.enter_context(patch.object(storage, "open_embedded", open_watched))
        patches.enter_context(patch.object(sqlite3, "connect", connect_watched))
        if sweep_at is not None:
            patches.enter_context(patch.object(journal_writer, "_MIN_DEAD", sweep_at))
        yield


# ------------------------------------------------------------------------------------------------ the store


class WatchedStore:
    def __init__(self, inner: Store, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def transact(self, work: Callable[[Tx], T]) -> T:
        whats: set[str] = set()

        def watched(tx: Tx) -> T:
            whats.clear()
            result = work(cast(Tx, _Spy(tx, whats)))
            self._points.hits(whats, "before-commit")
            return result

        result = await self._inner.transact(watched)
        self._points.hits(whats, "after-commit")
        return result


class _Spy:
    """A `Tx` that notes what is written through it."""

    def __init__(self, tx: Tx, whats: set[str]) -> None:
        self._tx = tx
        self._whats = whats

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def put_session(self, session: Session) -> None:
        before = self._tx.session(session.id)
        if before is None:
            self._whats.add("session")
        elif before.deleted_at is None and session.deleted_at is not None:
            self._whats.add("delete")
        self._tx.put_session(session)

    def add_message(self, message: Message) -> None:
        if message.run_id is None:  # only copies and edited answers belong to no run
            self._whats.add("edited" if message.reason == EDITED else "fork")
        self._tx.add_message(message)

    def put_run(self, run: Run) -> None:
        self._whats.update(_changed(self._tx.run(run.id), run))
        self._tx.put_run(run)

    def put_approval(self, approval: Approval) -> None:
        self._whats.add("ask" if approval.decision is None else "decide")
        self._tx.put_approval(approval)

    def add_share(self, share: Share) -> None:
        self._whats.add("share")
        self._tx.add_share(share)

    def put_push(self, message: PushMessage) -> None:
        self._whats.add("push.claimed")
        self._tx.put_push(message)

    def drop_push(self, pid: SubscriptionId, tag: str) -> None:
        self._whats.add("push.done")
        self._tx.drop_push(pid, tag)

    def drop_messages(self, sid: SessionId) -> None:
        self._whats.add("clear")
        self._tx.drop_messages(sid)

    def drop_session(self, sid: SessionId) -> None:
        self._whats.add("erase")
        self._tx.drop_session(sid)

    def drop_purges(self, rids: Collection[RunId]) -> None:
        self._whats.add("purged")
        self._tx.drop_purges(rids)


def _changed(before: Run | None, after: Run) -> Iterator[str]:
    if before is None:
        yield "accept"
        return
    match before.status, after.status:
        case "queued", "running":
            yield "claim"
        case "running", "waiting":
            yield "park"
        case _:
            pass
    if after.is_pending and not before.is_pending:
        yield "pending"
    elif not after.is_open and not after.is_pending and (before.is_open or before.is_pending):
        yield "settle"
    elif after.epoch > before.epoch and after.status == before.status:
        yield "takeover"
    if before.steers is None and after.steers is not None:
        yield "offer"
    if before.is_taken and after.steers is None and after.intent is not None:
        yield "added"
    if before.intent is None and after.intent is not None:
        yield "take" if after.is_taken else "intent"


# ------------------------------------------------------------------------------------------------ the journal


class WatchedJournal:
    """The engine's side of the journal. What happens on the disk's side is seen by the connection."""

    def __init__(self, inner: SqliteJournal, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append(self, batch: Sequence[Append]) -> Sequence[AppendRefusedError | None]:
        refusals = await self._inner.append(batch)
        frames = [item.frame for each in batch for item in each.entries]
        self._points.hits(_kinds(frames), "before-publish")
        return refusals


_OWN_NAME: Final = {name.rpartition(".")[0] for name in POINTS}


def _kinds(frames: Iterable[bytes]) -> set[str]:
    """What these events are, as far as there are points for them."""
    entries = [Entry(0, frame) for frame in frames]
    found = {"append"} if entries else set()
    found.update(entry.type for entry in entries if entry.type in _OWN_NAME)
    if any(entry.ends for entry in entries):
        found.add("terminal")
    return found


def _connection_type(points: Points) -> type[sqlite3.Connection]:
    class Watched(sqlite3.Connection):
        """A connection to the journal's file. The moments are those of its commits, on the thread that makes them."""

        kinds: frozenset[str] = frozenset()

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                self.kinds = frozenset()
            if sql == "COMMIT":
                return self._committing(lambda: super(Watched, self).execute(sql, parameters))
            return self._doing(sql, [parameters], lambda: super(Watched, self).execute(sql, parameters))

        def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
            rows = list(parameters)
            return self._doing(sql, rows, lambda: super(Watched, self).executemany(sql, rows))

        def _doing(self, sql: str, rows: list[Any], do: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
            kinds = _written(sql, rows)
            if not kinds:
                return do()
            if not self.in_transaction:  # a statement that is its own commit
                self.kinds = frozenset(kinds)
                return self._committing(do)
            self.kinds |= kinds
            cursor = do()
            points.hits(kinds & {"archive", "sweep", "purge"}, "middle")
            return cursor

        def _committing(self, do: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
            kinds = self.kinds
            if "append" in kinds:
                kinds -= {"fence"}  # a first append raises the epoch as well
            if "purge" in kinds:
                kinds -= {"sweep"}  # what is purged may still have rows in the log
            points.hits(kinds, "before-commit")
            cursor = do()
            points.hits(kinds, "after-commit")
            self.kinds = frozenset()
            return cursor

    return Watched


def _frames(blob: bytes) -> Iterator[bytes]:
    for some in journal_records.ranges(blob):
        yield from some.frames


_WRITES: Final = re.compile(r"(INSERT|UPDATE|DELETE)\b.*?\b(log|segments|runs)\b", re.DOTALL)


def _written(sql: str, rows: list[Any]) -> set[str]:
    """What a statement is a part of. Only tables and verbs count, not how it is written."""
    statement = _WRITES.match(sql.strip())
    if statement is None or not rows:
        return set()
    match statement.groups():
        case "INSERT", "log":
            return _kinds(frame for _, blob in rows for frame in _frames(blob))
        case "DELETE", "log":
            return {"sweep"}
        case "INSERT", "segments":
            return {"archive"}
        case "DELETE", "segments":
            return {"purge"}
        case "INSERT" | "UPDATE", "runs" if "epoch" in sql and "pruned" not in sql:
            return {"fence"}
        case _:
            return set()


# ------------------------------------------------------------------------------------------------ the agent


class EffectiveAgent:
    """An agent whose tools leave something behind: each effect is one durable line of a file that no crash takes
    back."""

    def __init__(self, inner: Agent, effects: Path, points: Points) -> None:
        self._inner = inner
        self._effects = effects
        self._points = points

    @property
    def can_park(self) -> bool:
        return self._inner.can_park

    @property
    def can_resume(self) -> bool:
        return self._inner.can_resume

    @property
    def can_steer(self) -> bool:
        return self._inner.can_steer

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        def effect(call_id: str) -> None:
            self._points.hit("tool.before-effect")
            _add_line(self._effects, f"{call_id} {turn.run.id}\n")
            self._points.hit("tool.after-effect")

        return await self._inner.run(turn, OutputWithEffects(out, effect))


class FilePush:
    """A push service that keeps what it gets: each message is one durable line of a file, with its tag and kind."""

    def __init__(self, file: Path, points: Points) -> None:
        self._file = file
        self._points = points

    async def public_key(self) -> str:
        return "key"

    def check(self, endpoint: str, p256dh: str, auth: str) -> None: ...

    def accepts_credential(self, credential: str) -> bool:
        return True

    async def send(self, subscription: PushSubscription, payload: bytes, *, tag: str, ttl: float) -> PushResult:
        self._points.hit("push.before-send")
        _add_line(self._file, f"{tag} {json.loads(payload)['kind']}\n")
        self._points.hit("push.after-send")
        return PushResult("sent")


def _add_line(path: Path, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line.encode())
        os.fsync(fd)
    finally:
        os.close(fd)
