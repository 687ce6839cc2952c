"""Observes everything that is committed in a history and checks it at once."""

from collections import Counter
from collections.abc import Callable, Iterable

import anyio

from holdfast.core import events as ev
from holdfast.core.errors import AppendRefusedError
from holdfast.core.ids import ApprovalId, MessageId, RunId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.run import Run
from holdfast.core.session import Message, Session
from holdfast.ports.journal import Append
from holdfast.ports.store import Approval, ChangeKind, Tx
from tests.sim import invariants
from tests.sim.memory import SimMemory
from tests.sim.observed_storage import Commit, Effect, Story
from tests.sim.plan import Moment, Plan, Port
from tests.sim.situations import of_append, of_commit, of_refusal


class Trace:
    """What happened, line by line, if somebody wants to read it (`on`)."""

    def __init__(self, now: Callable[[], float], *, on: bool) -> None:
        self.now = now
        self.on = on
        self.lines: list[str] = []

    def __call__(self, text: str) -> None:
        if self.on:
            self.lines.append(f"{self.now():9.3f} {text}")


class Ledger:
    def __init__(self, plan: Plan, note: Trace) -> None:
        settings = plan.settings
        self.plan = plan
        self.calm = not plan.troubled
        self.now = note.now
        self.note = note
        self.findings: list[str] = []
        self.situations: Counter[str] = Counter()
        self.stories: dict[RunId, Story] = {}
        self.runs: dict[RunId, Run] = {}
        """Every run there ever was, as it was last."""
        self.erased: set[RunId] = set()
        self.used: dict[RunId, int] = {}
        """Tokens of every run that was ever settled."""
        self.sessions: dict[SessionId, Session] = {}
        self.approvals: dict[ApprovalId, Approval] = {}
        self.asked: dict[MessageId, str] = {}
        """What each user message says; also of those that were erased."""
        self.messages: dict[SessionId, list[MessageId]] = {}
        """Every message there ever was, by session."""
        self.intended: dict[RunId, float] = {}
        """When a run was first asked to end, or a request to end it was taken up again."""
        self.anew: dict[RunId, float] = {}
        """When a recovery that had been given up was begun anew (J6)."""
        self.steered: dict[RunId, RunId] = {}
        """Queued runs whose text was to be added to another, and that one."""
        self.keys: dict[tuple[SessionId, str], RunId] = {}
        self.feed: list[tuple[ChangeKind, SessionId, RunId | None, str | None]] = []
        """The change feed: number n is at place n - 1."""
        self._texts: dict[tuple[SessionId, str], MessageId] = {}
        self._moments: dict[str, anyio.Event] = {}
        self.memory: SimMemory | None = None
        self.trouble_at = 0.0
        """When storage last failed, or may have."""
        self.fault_at = -1000.0
        self.store_trouble_at = -1.0
        self.put_back: list[tuple[float, float]] = []
        """When the clock was put back, and how far."""
        limits = settings.final_save + settings.fence_wait + settings.poll_interval + settings.sweep_interval
        self.patience = 1.0 if self.calm else settings.lease_time * 4 / 3 + limits + 2.0
        """How long after a request and the last trouble a run may take to end."""
        self.reach = 1.0 if self.calm or plan.mode == "embedded" else settings.lease_time + 1.0
        """How long after a request and the last trouble of the store its agent may go on."""

    def blame(self, problem: str) -> None:
        self.findings.append(f"[{self.now():.2f}] {problem}")
        self.note(f"!!! {problem}")

    def trouble(self, port: Port = "store", *, fault: bool = True) -> None:
        """`fault`: something failed; otherwise it only takes time."""
        self.trouble_at = self.now()
        self.fault_at = self.now() if fault else self.fault_at
        if port == "store":
            self.store_trouble_at = self.now()

    def reached(self, rid: RunId) -> None:
        """The agent of a run has let go of its upstream."""
        asked_at = self.intended.get(rid)
        if asked_at is None:
            return
        reach = self.reach if self.store_trouble_at < asked_at else self.patience  # then the sweeper tells it
        if self.now() - max(asked_at, self.store_trouble_at) > reach:
            self.blame(f"{rid} was asked to end at {asked_at:.2f} and its agent went on until now")

    def moment(self, which: Moment) -> anyio.Event:
        """Set when that is next committed."""
        return self._moments.setdefault(which, anyio.Event())

    def _now_is(self, which: str) -> None:
        event = self._moments.pop(which, None)
        if event is not None:
            event.set()

    # ---- the journal ----

    def appended(self, item: Append) -> None:
        story = self.stories.get(item.run)
        if story is None:
            story = self.stories[item.run] = Story()
        if story.purged:
            self.blame(f"{item.run}: an append after its journal was erased")
        events = [entry.event() for entry in item.entries]
        for event in events:
            if isinstance(event, ev.MessageSteered) and event.id in invariants.steered_in(self.stories):
                self.blame(f"{item.run}: {event.id} is added a second time")
        for problem in invariants.append_problems(story, item.entries, events, item.epoch):
            self.blame(f"{item.run}: {problem}")
        known = self.runs.get(item.run)
        if known is None or known.epoch < item.epoch:
            self.blame(f"{item.run}: the journal is in epoch {item.epoch}, the store is not")
        of_append(self.situations, story, events, item)
        if self._moments:
            for entry in item.entries:
                self._now_is("sealed" if entry.ends else entry.type)
        story.entries.extend(item.entries)
        story.events.extend(events)
        story.epoch = item.epoch
        if isinstance(events[-1], ev.RunEnded):
            story.sealed_at = self.now()
            self._check_ending(item.run, events[-1])
            self._ended_in_time(item.run)
        if self.note.on:
            self.note(f"    journal {item.run} epoch {item.epoch}: " + ", ".join(_brief(e) for e in events))

    def _check_ending(self, rid: RunId, ending: ev.RunEnded) -> None:
        if self.calm and ending.reason == "process-gone":
            self.blame(f"{rid} was ended as {ending} though nothing failed")
        broke = ending.error is not None and ending.error.code == "broke"
        if broke:
            self.blame(f"{rid} was stopped, and what broke then was taken for the reason")

    def _ended_in_time(self, rid: RunId) -> None:
        asked_at = self.intended.get(rid)
        if asked_at is not None and self.now() - max(asked_at, self.trouble_at) > self.patience:
            self.blame(f"{rid} was asked to end at {asked_at:.2f} and took until now")

    def refused(self, item: Append, why: AppendRefusedError) -> None:
        of_refusal(self.situations, why)
        self.note(f"    journal {item.run} epoch {item.epoch} refused: {why.code}")

    def purged(self, runs: Iterable[RunId]) -> None:
        for rid in runs:
            self.situations["journal purged"] += 1
            run = self.runs.get(rid)
            if run is not None and rid not in self.erased and (run.is_open or run.is_pending):
                self.blame(f"{rid} is {run.status} and its journal is being erased")
            self.stories.setdefault(rid, Story()).purged = True

    # ---- the store ----

    def committed(self, node: str, commit: Commit, tx: Tx) -> None:
        for _, message in commit.messages:
            if message is not None:
                self._know(message, tx)
        self.feed += commit.changes
        if tx.change_bounds()[1] != len(self.feed):
            self.blame(f"the change feed ends at {tx.change_bounds()[1]} and should at {len(self.feed)}")
        settings = self.plan.settings
        lately = self.now() - settings.fence_wait
        put_back = sum(seconds for at, seconds in self.put_back if at >= lately)
        for problem in invariants.commit_problems(commit, tx, self.stories, settings.recovery, put_back):
            self.blame(problem)
        for problem in invariants.outbox_problems(commit, tx):
            self.blame(problem)
        for problem in invariants.usage_problems(commit, tx, self.stories, self.used, self.plan.budget):
            self.blame(problem)
        of_commit(self.situations, commit)
        if self.memory is not None:
            self.memory.committed(commit)
        for _, session in commit.sessions:
            if session is not None:
                self.sessions[session.id] = session
        for _, approval in commit.approvals:
            if approval is not None:
                self.approvals[approval.id] = approval
        for old, run in commit.runs:
            if run is None:
                self.erased |= {old.id} if old is not None else set()
            else:
                self.runs[run.id] = run
                self._check_steering(old, run, tx)
                self._count_parked(old, run)
                if self._moments:
                    self._tell_moments(old, run)
                self._time_intent(old, run)
                self._check_key(run, tx)
        if self.note.on:
            for line in _brief_commit(commit):
                self.note(f"    {node}: {line}")

    def _know(self, message: Message, tx: Tx) -> None:
        of_session = self.messages.setdefault(message.session_id, [])
        if message.id not in of_session:
            of_session.append(message.id)
        if message.role == "user":
            text = self.asked[message.id] = "".join(part.text for part in message.parts if isinstance(part, TextPart))
            first = self._texts.setdefault((message.session_id, text), message.id)
            if first != message.id:  # every request of a plan has its own words
                if tx.message(first) is not None:
                    self.blame(f"{message.id} says again what {first} says: {text!r}")
                self._texts[message.session_id, text] = message.id

    def _check_steering(self, old: Run | None, run: Run, tx: Tx) -> None:
        if run.steers is not None:
            self.steered[run.id] = run.steers
        target = self.steered.get(run.id)
        if target is None:
            return
        session = tx.session(run.session_id)
        deleted = session is None or session.deleted_at is not None
        known = None if target in self.erased else self.runs.get(target)
        for problem in invariants.steering_problems(old, run, known, self.stories, deleted):
            self.blame(problem)

    def _time_intent(self, old: Run | None, run: Run) -> None:
        if run.is_taken:
            return  # it ends when the journal of the other run is known
        if run.intent is None:
            self.intended.pop(run.id, None)
        anew = old is not None and run.is_pending and old.recovery is not None and old.recovery.state == "none"
        if anew:  # what was given up ends when somebody has it looked at again
            self.anew[run.id] = self.now()
        if run.intent is not None and (anew or old is None or old.intent is None or old.is_taken):
            self.intended[run.id] = self.now()

    def _tell_moments(self, old: Run | None, run: Run) -> None:
        if old is None:
            return
        if run.status != old.status:
            match run.status:
                case "running":
                    self._now_is("claimed")
                case "waiting":
                    self._now_is("parked")
                case "queued":
                    self._now_is("decided")
                case _:
                    self._now_is("pending" if run.is_pending else "settled")
        elif run.intent != old.intent:
            self._now_is("asked to end")

    def _count_parked(self, old: Run | None, run: Run) -> None:
        if run.status == "waiting" and old is not None and old.status == "running":
            story = self.stories.get(run.id)
            if story is not None and story.epoch < run.epoch:
                self.situations["parked again after a crash"] += 1

    def _check_key(self, run: Run, tx: Tx) -> None:
        if run.key is None:
            return
        first = self.keys.setdefault((run.session_id, run.key), run.id)
        if first != run.id:
            if tx.run(first) is not None:
                self.blame(f"key {run.key} made {first} and {run.id}")
            self.keys[run.session_id, run.key] = run.id

    # ---- effects ----

    def chain(self, rid: RunId) -> list[RunId]:
        """The run and those it continues, the first one first."""
        rids = [rid]
        while (run := self.runs.get(rids[0])) is not None and run.continues is not None:
            rids.insert(0, run.continues)
        return rids

    def effect(self, rid: RunId, call_id: str, repeatable: bool) -> None:
        stories = [self.stories.setdefault(each, Story()) for each in self.chain(rid)]
        for problem in invariants.effect_problems(stories, call_id, repeatable):
            self.blame(f"{rid}: {problem}")
        self.situations["tool ran"] += 1
        if any(effect.call_id == call_id for story in stories for effect in story.effects):
            self.situations["tool ran again, repeatable" if repeatable else "tool ran again, allowed"] += 1
        stories[-1].effects.append(Effect(call_id, len(stories[-1].events)))
        self.note(f"    effect of {call_id} in {rid}")


def _brief(event: ev.Event) -> str:
    match event:
        case ev.TextDelta(text) | ev.ReasoningDelta(text):
            return f"{type(event).__name__}({text!r})"
        case _:
            return str(event)


def _brief_commit(commit: Commit) -> Iterable[str]:
    for old, run in commit.runs:
        if run is None:
            yield f"run {old.id if old else '?'} erased"
        else:
            parts = [f"run {run.id} {old.status if old else 'new'} -> {run.status}", f"epoch {run.epoch}"]
            parts += [f"lease {run.lease}"] if run.lease else []
            parts += [f"intent {run.intent.status}/{run.intent.reason}"] if run.intent else []
            parts += [f"recovery {run.recovery}"] if run.recovery else []
            yield ", ".join(parts)
    for old_message, message in commit.messages:
        if message is not None and (old_message is None or old_message.status != message.status):
            yield f"message {message.id} ({message.role}) {message.status}, recovery {message.recovery}"
    for _, session in commit.sessions:
        if session is not None:
            yield f"session {session.id} head {session.head} version {session.version}"
    for _, approval in commit.approvals:
        if approval is not None:
            yield f"approval {approval.id} of {approval.run_id}: {approval.decision}"
    for sid in commit.erased:
        yield f"session {sid} erased"
