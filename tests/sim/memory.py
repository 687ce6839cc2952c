"""A memory provider shared by all nodes of a history, which checks the rules of section M."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import anyio

from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.parts import Json
from holdfast.engine.transactions.memory import named_provider
from holdfast.ports.memory import MemoryBatch
from tests.sim.observed_storage import Commit
from tests.sim.plan import MemoryPlan


class SimMemory:
    """`blame` is told what must not be. It outlives nodes, as a server elsewhere does."""

    def __init__(self, plan: MemoryPlan, blame: Callable[[str], None], situations: "Counter[str]") -> None:
        self._plan = plan
        self._blame = blame
        self._situations = situations
        self._calls = 0
        self._under_way: set[SessionId] = set()
        self._batches: dict[str, tuple[RunId, ...]] = {}
        self._told: Counter[RunId] = Counter()
        self._taken: dict[SessionId, dict[str, tuple[int, int]]] = {}
        self._completed: dict[RunId, SessionId] = {}
        self._forgotten: set[SessionId] = set()
        self._let_go: set[SessionId] = set()
        self._incognito: set[SessionId] = set()

    # ---- ports.MemoryProvider ----

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        """Without items: what agents are held to elsewhere does not know of any."""
        if sid in self._incognito:
            self._blame(f"{sid} is without memory and was asked about")
        await anyio.lowlevel.checkpoint()
        return ()

    async def commit(self, batch: MemoryBatch) -> None:
        self._check(batch)
        sid = batch.session_id
        self._under_way.add(sid)
        try:
            await self._do(lambda: self._take(batch))
        finally:
            self._under_way.discard(sid)

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        await self._do(lambda: self._forgotten.add(sid))

    async def release(self, sid: SessionId) -> None:
        self._situations["memory: session evicted"] += 1
        await anyio.lowlevel.checkpoint()

    async def health(self) -> str | None:
        return None

    async def close(self) -> None:
        pass

    async def _do(self, take: Callable[[], object]) -> None:
        self._calls += 1
        call = self._calls
        await anyio.sleep(self._plan.takes)
        if call in self._plan.fails:
            self._situations["memory: commit failed"] += 1
            raise ConnectionError("failed as planned")
        take()
        if call in self._plan.doubts:
            self._situations["memory: commit in doubt"] += 1
            raise ConnectionError("done, and reported as failed as planned")

    # ---- rules ----

    def _check(self, batch: MemoryBatch) -> None:
        """M4, M5, M7, M11: one commit of a session at a time; an id always has the same turns, which are complete."""
        sid, runs = batch.session_id, tuple(turn.run_id for turn in batch.turns)
        if sid in self._under_way:
            self._blame(f"{batch.id} was begun while another commit of the session is under way")
        if self._batches.setdefault(batch.id, runs) != runs:
            self._blame(f"{batch.id} had the turns {self._batches[batch.id]} before, and now {runs}")
        if not runs:
            self._blame(f"{batch.id} has no turns")
        for turn in batch.turns:
            if turn.run_id not in self._completed:
                self._blame(f"{batch.id} tells of {turn.run_id}, which did not complete")
            if not turn.user:
                self._blame(f"{batch.id}: what was asked in {turn.run_id} is lost")
        if sid in self._incognito:
            self._blame(f"{batch.id}: the session is without memory")
        if len(runs) > 1:
            self._situations["memory: several turns in one commit"] += 1

    def _take(self, batch: MemoryBatch) -> None:
        taken = self._taken.setdefault(batch.session_id, {})
        span = (batch.turns[0].n, batch.turns[-1].n)
        if batch.id in taken:
            self._situations["memory: commit repeated"] += 1
        for other, (first, last) in taken.items():
            if other != batch.id and first <= span[1] and span[0] <= last:
                self._blame(f"{batch.id} was taken, and so was {other}: some turns have two commits")
        taken[batch.id] = span
        self._told.update(turn.run_id for turn in batch.turns)
        self._situations["memory: committed"] += 1

    def may_be_forgotten(self, sid: SessionId) -> None:
        """Somebody is about to ask for it: what was not told yet need not be."""
        self._let_go.add(sid)

    def committed(self, commit: Commit) -> None:
        """M1: what the store says has completed, in the very transaction that says so."""
        for _, session in commit.sessions:
            if session is not None and named_provider(session.settings) == "none":
                self._incognito.add(session.id)
        messages = {message.id: message for _, message in commit.messages if message is not None}
        for old, run in commit.runs:
            ended = run is not None and old is not None and run.status == "complete" != old.status
            if run is not None and ended and run.message_id in messages and run.session_id not in self._incognito:
                self._completed[run.id] = run.session_id

    def look_back(self) -> None:
        """M11: once all is quiet, each completed turn was told, and none that was not to be."""
        for rid, sid in self._completed.items():
            if not self._told[rid] and sid not in self._let_go:
                self._blame(f"{rid} of {sid} completed and was never committed")
