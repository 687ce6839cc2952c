"""One transaction of the in-process store."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import islice
from typing import TypeVar

from holdfast.core.errors import StorageError
from holdfast.core.ids import ApprovalId, FileId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import File, Json
from holdfast.core.run import Lease, Run
from holdfast.core.session import Compaction, Message, Session
from holdfast.core.values import replace
from holdfast.ports import Approval, Change, ChangeKind, Grant, Hit, SessionQuery, StoredFile
from holdfast.storage.memory.data import Data, UndoLog
from holdfast.storage.memory.remembering import Remembering
from holdfast.storage.memory.search import search

K = TypeVar("K")


class MemoryTx(Remembering):
    """Values are kept, not copied: nobody may change what is inside them (a tool's arguments) afterwards."""

    def __init__(self, data: Data, log: UndoLog, now: float) -> None:
        self._data = data
        self._log = log
        self._now = now

    @property
    def now(self) -> float:
        return self._now

    def _count(self, counter: str) -> int:
        value = self._data.counters[counter] + 1
        self._log.set(self._data.counters, counter, value)
        return value

    def _index(self, places: dict[K, int], which: K, wanted: bool) -> None:
        """Make something findable or not. What stays so keeps its place."""
        if not wanted:
            self._log.remove(places, which)
        elif which not in places:
            self._log.set(places, which, self._count("found"))

    # sessions

    def session(self, sid: SessionId) -> Session | None:
        return self._data.sessions.get(sid)

    def put_session(self, session: Session) -> None:
        self._log.set(self._data.sessions, session.id, session)
        self._index(self._data.titles, session.id, bool(session.title))

    def sessions(self, query: SessionQuery) -> Sequence[Session]:
        found = [
            session
            for session in self._data.sessions.values()
            if session.owner == query.owner
            and session.deleted_at is None
            and session.archived == query.archived
            and (query.project is None or session.project == query.project)
            and (query.before is None or (session.updated_at, session.id) < query.before)
        ]
        return nlargest(query.limit, found, key=lambda session: (session.updated_at, session.id))

    def deleted_sessions(self, limit: int) -> Sequence[SessionId]:
        deleted = (session.id for session in self._data.sessions.values() if session.deleted_at is not None)
        return nsmallest(limit, deleted)

    def drop_session(self, sid: SessionId) -> None:
        for mid in list(self._data.session_messages.get(sid, ())):
            self._drop_message(mid)
        for rid in list(self._data.session_runs.get(sid, ())):
            self.drop_run(rid)
        self._drop_approvals([each for each in self._data.approvals.values() if each.session_id == sid])
        self._log.remove(self._data.compactions, sid)
        for key in [key for key in self._data.grants if key[1] == sid]:
            self._log.remove(self._data.grants, key)
        self.drop_ledger(sid)
        self._log.remove(self._data.titles, sid)
        self._log.remove(self._data.sessions, sid)

    # messages

    def message(self, mid: MessageId) -> Message | None:
        return self._data.messages.get(mid)

    def put_message(self, message: Message) -> None:
        data, log = self._data, self._log
        old = data.messages.get(message.id)
        if old is not None:
            self._unlink_message(old)
        log.set(data.messages, message.id, message)
        log.add_to(data.session_messages, message.session_id, message.id)
        if message.in_tree:
            log.add_to(data.children, (message.session_id, message.parent_id), message.id)
        for fid in _file_ids(message):
            log.add_to(data.file_users, fid, message.id)
        self._index(data.texts, message.id, message.in_tree and message.status != "streaming")

    def _unlink_message(self, message: Message) -> None:
        data, log = self._data, self._log
        log.take_from(data.session_messages, message.session_id, message.id)
        log.take_from(data.children, (message.session_id, message.parent_id), message.id)
        for fid in _file_ids(message):
            log.take_from(data.file_users, fid, message.id)

    def _drop_message(self, mid: MessageId) -> None:
        self._unlink_message(self._data.messages[mid])
        self._log.remove(self._data.texts, mid)
        self._log.remove(self._data.messages, mid)

    def children(self, sid: SessionId, parent: MessageId | None) -> Sequence[MessageId]:
        messages = self._data.messages
        found = self._data.children.get((sid, parent), ())
        return sorted(found, key=lambda mid: (messages[mid].created_at, mid))

    def drop_messages(self, sid: SessionId) -> None:
        queued = [run for run in self.open_runs(sid) if run.status == "queued" and not run.in_tree]
        spared = {mid for run in queued for mid in (run.message_id, run.user_message_id)}
        for mid in list(self._data.session_messages.get(sid, ())):
            if mid not in spared:
                self._drop_message(mid)
        self._log.remove(self._data.compactions, sid)

    # runs

    def run(self, rid: RunId) -> Run | None:
        return self._data.runs.get(rid)

    def put_run(self, run: Run) -> None:
        old = self._data.runs.get(run.id)
        if old is None or _places(old) != _places(run):  # most writes of a run move it nowhere
            self._unlink_run(old)
            self._link_run(run)
        self._log.set(self._data.runs, run.id, run)

    def renew(self, lease: Lease, held: Collection[RunId], connections: Collection[RunId]) -> Sequence[Run]:
        named = [run for rid in {*held, *connections} if (run := self.run(rid)) is not None and run.is_open]
        for run in named:
            ours = run.id in held and run.lease is not None and run.lease.holder == lease.holder
            connection = lease if run.id in connections else run.connection
            self.put_run(replace(run, lease=lease if ours else run.lease, connection=connection))
        return self._runs(run.id for run in named)

    def _link_run(self, run: Run) -> None:
        data, log = self._data, self._log
        log.add_to(data.session_runs, run.session_id, run.id)
        if run.is_open:
            log.add_to(data.open_runs, run.session_id, run.id)
        if run.is_pending:
            log.set(data.pending_runs, run.id, None)
        if run.key is not None:
            key = run.owner, run.session_id, run.key
            if key in data.keys:
                raise StorageError(f"Run {run.id}: its key is that of run {data.keys[key]}.")
            log.set(data.keys, key, run.id)

    def _unlink_run(self, run: Run | None) -> None:
        if run is None:
            return
        data, log = self._data, self._log
        log.take_from(data.session_runs, run.session_id, run.id)
        log.take_from(data.open_runs, run.session_id, run.id)
        log.remove(data.pending_runs, run.id)
        if run.key is not None:
            log.remove(data.keys, (run.owner, run.session_id, run.key))

    def drop_run(self, rid: RunId) -> None:
        self._unlink_run(self._data.runs.get(rid))
        self._drop_approvals(self._approvals(rid))
        self._log.remove(self._data.runs, rid)

    def run_with_key(self, owner: OwnerId, sid: SessionId, key: str) -> Run | None:
        rid = self._data.keys.get((owner, sid, key))
        return None if rid is None else self._data.runs[rid]

    def open_runs(self, sid: SessionId) -> Sequence[Run]:
        return sorted(self._runs(self._data.open_runs.get(sid, ())), key=lambda run: (run.rank, run.id))

    def all_open_runs(self, limit: int, after: RunId | None = None) -> Sequence[Run]:
        rids = (rid for open_ones in self._data.open_runs.values() for rid in open_ones if after is None or rid > after)
        return self._runs(nsmallest(limit, rids))

    def pending_runs(self, limit: int, sid: SessionId | None = None) -> Sequence[Run]:
        found = [run for run in self._runs(self._data.pending_runs) if sid is None or run.session_id == sid]
        return nsmallest(limit, found, key=lambda run: (run.recovery.since if run.recovery else 0.0, run.id))

    def claimable_runs(self, limit: int) -> Sequence[Run]:
        found = []
        for rids in self._data.open_runs.values():
            first = min(self._runs(rids), key=lambda run: (run.status == "queued", not run.in_tree, run.rank, run.id))
            if first.status == "queued" and first.intent is None:
                found.append(first)
        return nsmallest(limit, found, key=lambda run: (run.rank, run.id))

    def runs(
        self,
        owner: OwnerId,
        *,
        status: Collection[str] | None = None,
        sid: SessionId | None = None,
        limit: int = 50,
        before: tuple[float, RunId] | None = None,
    ) -> Sequence[Run]:
        found = [
            run
            for run in self._runs(self._data.runs if sid is None else self._data.session_runs.get(sid, ()))
            if run.owner == owner
            and (status is None or run.status in status)
            and (before is None or (run.created_at, run.id) < before)
        ]
        return nlargest(limit, found, key=lambda run: (run.created_at, run.id))

    def prunable_runs(self, ended_before: float, limit: int) -> Sequence[RunId]:
        found = (
            (run.ended_at, run.id)
            for run in self._data.runs.values()
            if not (run.is_open or run.pruned)
            and (run.recovery is None or run.recovery.state == "recovered")
            and run.ended_at is not None
            and run.ended_at < ended_before
        )
        return [rid for _, rid in nsmallest(limit, found)]

    def _runs(self, rids: Iterable[RunId]) -> list[Run]:
        return [self._data.runs[rid] for rid in rids]

    # approvals and compactions

    def approval(self, aid: ApprovalId) -> Approval | None:
        return self._data.approvals.get(aid)

    def put_approval(self, approval: Approval) -> None:
        self._log.set(self._data.approvals, approval.id, approval)
        self._log.add_to(self._data.run_approvals, approval.run_id, approval.id)

    def open_approvals(self, rid: RunId) -> Sequence[Approval]:
        return [approval for approval in self._approvals(rid) if approval.decision is None]

    def _approvals(self, rid: RunId) -> Sequence[Approval]:
        found = [self._data.approvals[aid] for aid in self._data.run_approvals.get(rid, ())]
        return sorted(found, key=lambda approval: (approval.created_at, approval.id))

    def _drop_approvals(self, approvals: Iterable[Approval]) -> None:
        for approval in approvals:
            self._log.take_from(self._data.run_approvals, approval.run_id, approval.id)
            self._log.remove(self._data.approvals, approval.id)

    def old_approvals(self, created_before: float, limit: int) -> Sequence[Approval]:
        found = (a for a in self._data.approvals.values() if a.decision is None and a.created_at < created_before)
        return nsmallest(limit, found, key=lambda approval: (approval.created_at, approval.id))

    def grants(self, owner: OwnerId, sid: SessionId | None) -> Sequence[Grant]:
        found = [g for g in self._data.grants.values() if g.owner == owner and g.session_id in (None, sid)]
        return sorted(found, key=lambda grant: (grant.created_at, grant.tool, grant.scope))

    def put_grant(self, grant: Grant) -> None:
        key = (grant.owner, grant.session_id, grant.tool, grant.scope)
        if key not in self._data.grants:
            self._log.set(self._data.grants, key, grant)

    def drop_grant(self, owner: OwnerId, sid: SessionId | None, tool: str, scope: str) -> None:
        self._log.remove(self._data.grants, (owner, sid, tool, scope))

    def settings(self, owner: OwnerId) -> Mapping[str, Json]:
        return {name: value for (whose, name), value in sorted(self._data.settings.items()) if whose == owner}

    def put_setting(self, owner: OwnerId, name: str, value: Json) -> None:
        if value is None:
            self._log.remove(self._data.settings, (owner, name))
        else:
            self._log.set(self._data.settings, (owner, name), value)

    def compactions(self, sid: SessionId) -> Mapping[MessageId, Compaction]:
        return dict(self._data.compactions.get(sid, {}))

    def put_compaction(self, compaction: Compaction) -> None:
        of_session = self._data.compactions.get(compaction.session_id)
        if of_session is None:
            self._log.set(self._data.compactions, compaction.session_id, {compaction.message_id: compaction})
        else:
            self._log.set(of_session, compaction.message_id, compaction)

    # files and purges

    def file(self, fid: FileId) -> StoredFile | None:
        return self._data.files.get(fid)

    def put_file(self, file: StoredFile) -> None:
        self._log.set(self._data.files, file.id, file)

    def orphan_files(self, created_before: float, limit: int) -> Sequence[StoredFile]:
        found = (
            file
            for file in self._data.files.values()
            if file.created_at < created_before and file.id not in self._data.file_users
        )
        return nsmallest(limit, found, key=lambda file: (file.created_at, file.id))

    def drop_file(self, fid: FileId) -> None:
        self._log.remove(self._data.files, fid)

    def digest_in_use(self, sha256: str) -> bool:
        return any(file.sha256 == sha256 for file in self._data.files.values())

    def add_purge(self, rids: Iterable[RunId]) -> None:
        for rid in rids:
            self._log.set(self._data.purges, rid, None)

    def purges(self, limit: int) -> Sequence[RunId]:
        return nsmallest(limit, self._data.purges)

    def drop_purges(self, rids: Iterable[RunId]) -> None:
        for rid in rids:
            self._log.remove(self._data.purges, rid)

    # changes

    def add_change(
        self,
        kind: ChangeKind,
        owner: OwnerId,
        session_id: SessionId,
        run_id: RunId | None = None,
        approval_id: ApprovalId | None = None,
        status: str | None = None,
    ) -> None:
        n = self._count("change")
        self._log.set(self._data.changes, n, Change(n, kind, owner, session_id, run_id, approval_id, status))

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        low, high = self.change_bounds()
        return [self._data.changes[n] for n in islice(range(max(after, low) + 1, high + 1), limit)]

    def change_bounds(self) -> tuple[int, int]:
        return self._data.counters["trimmed"], self._data.counters["change"]

    def changes_held_back(self) -> bool:
        return False

    def trim_changes(self, keep: int) -> None:
        low, high = self.change_bounds()
        for n in range(low + 1, high - keep + 1):
            self._log.remove(self._data.changes, n)
            self._log.set(self._data.counters, "trimmed", n)

    def search(self, owner: OwnerId, text: str, limit: int, before: int | None) -> Sequence[Hit]:
        return search(self._data, owner, text, limit, before)


def _places(run: Run) -> tuple[object, ...]:
    """All that the indexes go by."""
    return run.owner, run.session_id, run.key, run.is_open, run.is_pending


def _file_ids(message: Message) -> list[FileId]:
    return [part.file_id for part in message.parts if isinstance(part, File)]
