"""Counts the situations that histories reach. A simulation that never reaches one proves nothing."""

from collections import Counter

from holdfast.core import events as ev
from holdfast.core.errors import AppendRefusedError, FencedError, SealedError
from holdfast.core.run import Run
from holdfast.ports.journal import Append
from tests.sim.observed_storage import Commit, Story

EXPECTED = [
    name.strip()
    for line in """
        turn accepted; turn queued; turn ahead of the queue; queue joined; queued turn cancelled; key repeated
        key doubled at once; answer lost and asked again
        run complete; run cancelled; run failed; run interrupted; ended by a limit; ended by an empty answer
        ended by storage; ended by shutdown; ended by disconnecting; cancel while it streams; superseded
        tool ran; tool ran again, repeatable; tool ran again, allowed; parked; waits with its task; decided
        decided, kept its task; denied; decision came second
        node killed; node stopped; node cancelled; node started; taken over; taken over from another node
        put back to continue; put back after an outage; resumed; continued as a new run; parked again after a crash
        lease lost; append fenced; given up and let go
        recovery pending; recovery recovered; recovery none; recovery looked at again; settled late by its own node
        commit failed and had happened; commit failed and was repeated
        text offered to a run; text added; text left as the next message; text taken and released
        retried; edited; undone; cleared; deleted; session purged; journal purged
        watched to the end; watcher came back; watcher let go; handed to a watcher; watcher at another node
        attached client left; attached client left the queue; change feed followed; change feed reset
        memory: committed; memory: several turns in one commit; memory: commit failed; memory: commit in doubt
        memory: commit repeated; memory: session evicted
        refused by a budget
        fault: refuse; fault: doubt; fault: stall; fault: stall_after; fault: conflict; wake lost; wake doubled
    """.strip().splitlines()
    for name in line.split(";")
]
"""Accepting, ending, tools and people, crashes, recovery, sessions, watching, memory, faults: a line or two each."""

REASONS = {"superseded": "superseded", "disconnected": "ended by disconnecting", "shutdown": "ended by shutdown"}
CODES = {"limit": "ended by a limit", "empty-answer": "ended by an empty answer"}


def of_append(count: "Counter[str]", story: Story, events: list[ev.Event], item: Append) -> None:
    for event in events:
        match event:
            case ev.RunResumed():
                count["resumed"] += 1
            case ev.MessageSteered():
                count["text added"] += 1
            case ev.MessageSeeded():
                count["continued as a new run"] += 1
            case ev.RunEnded(status, reason, _, error):
                count[f"run {status}"] += 1
                if reason in REASONS:
                    count[REASONS[reason]] += 1
                if reason == "requested" and story.events:
                    count["cancel while it streams"] += 1
                if error is not None:
                    storage = error.code.startswith("storage")
                    count["ended by storage" if storage else CODES.get(error.code, "ended by an error")] += 1
            case _:
                pass


def of_refusal(count: "Counter[str]", why: AppendRefusedError) -> None:
    if isinstance(why, FencedError):
        count["append fenced"] += 1
    elif isinstance(why, SealedError):
        count["append after the seal"] += 1
    else:
        count[f"append refused: {why.code}"] += 1


def of_commit(count: "Counter[str]", commit: Commit) -> None:
    for old, run in commit.runs:
        if old is None and run is not None:
            _of_new(count, run)
        elif old is not None and run is not None:
            _of_changed(count, old, run)
    for _, approval in commit.approvals:
        if approval is not None and approval.decision == "deny":
            count["denied"] += 1
    for was, session in commit.sessions:
        if was is not None and session is None:
            count["session purged"] += 1
        elif was is not None and session is not None:
            if session.deleted_at is not None:
                count["deleted"] += 1
            elif session.id in commit.erased:
                count["cleared"] += 1
            elif len(session.redo) > len(was.redo):
                count["undone"] += 1


def _of_new(count: "Counter[str]", run: Run) -> None:
    count["turn accepted" if run.in_tree else "turn queued"] += 1


def _of_changed(count: "Counter[str]", old: Run, run: Run) -> None:
    match old.status, run.status:
        case "queued", "running" if not old.in_tree:
            count["queue joined"] += 1
        case "queued", "queued" if old.steers is not None and run.steers is None and run.intent is None:
            count["text taken and released" if old.is_taken else "text left as the next message"] += 1
        case "queued", "cancelled" if not old.in_tree:
            count["queued turn cancelled"] += 1
        case "running", "waiting":
            count["parked" if run.lease is None else "waits with its task"] += 1
        case "waiting", "queued":
            count["decided"] += 1
        case "waiting", "running":
            count["decided, kept its task"] += 1
        case "running", "queued" if old.intent is not None and old.intent.is_outage:
            count["put back after an outage"] += 1
        case "running", "queued":
            count["put back to continue" if run.resumes > old.resumes else "claim taken back"] += 1
        case _:
            pass
    if run.epoch > old.epoch and run.status == old.status and run.is_open:
        count["taken over"] += 1
        if old.lease is not None and run.lease is not None and old.lease.holder != run.lease.holder:
            count["taken over from another node"] += 1
    if run.epoch > old.epoch and run.is_pending:
        count["recovery looked at again"] += 1
    if old.lease is not None and run.lease is None and run.is_open and old.status == run.status:
        count["given up and let go"] += 1
    if run.recovery != old.recovery and run.recovery is not None:
        count[f"recovery {run.recovery.state}"] += 1
    if old.is_pending and run.recovery is None:
        count["settled late by its own node"] += 1
