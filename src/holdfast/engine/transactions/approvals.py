"""Questions of runs to a person: ask, park while waiting, decide, expire. Each function is one transaction. The first
answer counts; a later one raises AlreadyDecidedError. When their run ends, `run_endings.settle` denies what is open;
when an unanswered one is denied: `answer_within` in `engine.settings`; whether a call asks: `tools.approval_policy`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from holdfast.core import user_questions
from holdfast.core.errors import AlreadyDecidedError, InvalidInputError, NotAllowedError, NotFoundError
from holdfast.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Decision,
    Event,
    InputAction,
    InputRequested,
    ToolFinished,
)
from holdfast.core.form_schema import answer_problem
from holdfast.core.ids import ApprovalId, OwnerId, RunId
from holdfast.core.parts import Json
from holdfast.core.run import Run, step
from holdfast.engine.transactions import notifications
from holdfast.engine.transactions.row_access import get_run, put_approval, put_run
from holdfast.ports.agent import ApprovalAnswer, InputAnswer
from holdfast.ports.store import Approval, Tx

QUESTION: Final = "inp"
"""The kind of the ids of running tools' questions. An id is the engine's; a program can write anything into `args`."""
_INPUT: Final = "holdfast.input"  # The question in the `args` of its row
_CALLS: Final = "holdfast.calls"  # Those of a grant
RESTARTED: Final = "The agent was restarted before anybody answered."


WaitsFor = Literal["approval", "answer"]


def waits_for(tx: Tx, run: Run) -> WaitsFor | None:
    """What a waiting run needs of a person: to allow a call, or to answer the model or a running tool."""
    if run.status != "waiting":
        return None
    asked = tx.open_approvals(run.id)
    return "answer" if asked and all(wants_answer(each.id) for each in asked) else "approval"


def wants_answer(aid: str) -> bool:
    """Whether a person answers this question in words; otherwise by allowing or denying."""
    return _is_question(ApprovalId(aid)) or user_questions.is_user_question(aid)


def ask(tx: Tx, rid: RunId, epoch: int, asked: ApprovalRequested) -> bool:
    """Store a question before anybody is shown it. False if the run is to end or is no longer ours. A repeat changes
    nothing: the question may have been answered since."""
    if _is_question(asked.approval_id):
        raise ValueError(f"{asked.approval_id} is the id of a running tool's question, not of an approval")
    return _ask(tx, rid, epoch, asked)


def _ask(tx: Tx, rid: RunId, epoch: int, asked: ApprovalRequested) -> bool:
    run = tx.run(rid)
    if run is None or run.epoch != epoch or run.intent is not None or run.status != "running":
        return False
    if tx.approval(asked.approval_id) is not None:
        return True
    for old in tx.open_approvals(rid):  # stored by an execution that crashed before journalling it
        put_approval(tx, replace(old, decision="deny", decided_at=tx.now))
    question = (asked.call_id, asked.name, asked.args, asked.reason)
    put_approval(tx, Approval(asked.approval_id, run.owner, run.id, run.session_id, *question, tx.now))
    notifications.note_question(tx, run, asked.approval_id)
    return True


def ask_input(tx: Tx, rid: RunId, epoch: int, asked: InputRequested) -> bool:
    """`ask` for a question of a running tool."""
    if not _is_question(asked.request_id):
        raise ValueError(f"{asked.request_id} is not the id of a question")
    args = {_INPUT: {"schema": asked.schema}}
    return _ask(tx, rid, epoch, ApprovalRequested(asked.request_id, asked.call_id, asked.server, args, asked.message))


def answer_input(
    tx: Tx, rid: RunId, aid: ApprovalId, owner: OwnerId, action: InputAction, content: Mapping[str, Json]
) -> Run:
    """Answer the question of a running tool or of the model; the first answer counts. The values for a tool stay in the
    row until they are read."""
    approval = tx.approval(aid)
    if approval is None or approval.run_id != rid or not (_is_question(aid) or user_questions.is_user_question(aid)):
        raise NotFoundError("question", aid)
    if user_questions.is_user_question(aid):
        return _answer_user_question(tx, approval, owner, action, content)
    schema = approval.args[_INPUT]["schema"]
    if action == "accept" and schema is not None and (problem := answer_problem(schema, content)) is not None:
        raise InvalidInputError(f"content.{problem[0]}"[:200], problem[1])
    run = close(tx, rid, aid, owner, "once" if action == "accept" else "deny")
    values = content if action == "accept" and schema is not None else {}
    args = {_INPUT: {"schema": schema, "action": action, "content": dict(values)}}
    decided = tx.approval(aid)
    assert decided is not None
    tx.put_approval(replace(decided, args=args))
    return run


def _answer_user_question(
    tx: Tx, asked: Approval, owner: OwnerId, action: InputAction, content: Mapping[str, Json]
) -> Run:
    """The answer is the note of the row."""
    if action != "accept":
        return close(tx, asked.run_id, asked.id, owner, "deny")
    answer = content.get(user_questions.ANSWER)
    if (problem := user_questions.answer_problem(asked.args, answer)) is not None:
        raise InvalidInputError(f"content.{user_questions.ANSWER}", problem)
    return close(tx, asked.run_id, asked.id, owner, "once", answer)


def resolution(asked: Approval, decision: Decision) -> list[Event]:
    """What the journal says of an answer that a parked run finds. Of a question to the user, the result of the call is
    in the same commit: it is never asked twice."""
    if not user_questions.is_user_question(asked.id):
        return [ApprovalResolved(asked.id, decision, asked.note)]
    result = user_questions.result_of(decision, asked.note)
    return [ApprovalResolved(asked.id, decision), ToolFinished(asked.call_id, result)]


def read_input(tx: Tx, aid: ApprovalId) -> tuple[InputAnswer, str | None] | None:
    """The answer, and the reason if no person gave it; None as long as there is no answer."""
    approval = tx.approval(aid)
    if approval is None or approval.decision is None:
        return None
    stored = approval.args[_INPUT]
    if approval.decision == "deny":
        return InputAnswer(stored.get("action", "cancel")), approval.note
    return InputAnswer("accept", stored.get("content", {})), approval.note


def erase_input(tx: Tx, aid: ApprovalId) -> None:
    """Erase the values of an answer that was read. Not in one transaction with reading: if its commit is in doubt, it
    is repeated, and would find nothing."""
    approval = tx.approval(aid)
    if approval is not None:
        tx.put_approval(replace(approval, args={_INPUT: {"schema": approval.args[_INPUT]["schema"]}}))


def park(tx: Tx, rid: RunId, epoch: int, aid: ApprovalId, *, keep_lease: bool) -> Run | None:
    """Let the run wait for a person, or go on if the answer is there. None if it is to end or is no longer ours."""
    run, approval = tx.run(rid), tx.approval(aid)
    if run is None or approval is None:
        return None
    if run.epoch != epoch or run.intent is not None:
        return None
    if run.status == "waiting" and keep_lease:
        return run  # a repeat: the commit before was in doubt
    if run.status != "running":
        return None
    if approval.decision is None:
        return put_run(tx, replace(step(run, "park"), lease=run.lease if keep_lease else None))
    return run if keep_lease else put_run(tx, replace(step(run, "requeue"), lease=None))


def decide(tx: Tx, rid: RunId, aid: ApprovalId, owner: OwnerId, decision: Decision, note: str | None = None) -> Run:
    """Answer an approval; the first answer counts. A parked run is requeued; one that kept its task goes on."""
    if _is_question(aid) or user_questions.is_user_question(aid):
        raise NotFoundError("approval", aid)
    return close(tx, rid, aid, owner, decision, note)


def _is_question(aid: ApprovalId) -> bool:
    return aid.startswith(f"{QUESTION}_")


def close(tx: Tx, rid: RunId, aid: ApprovalId, owner: OwnerId, decision: Decision, note: str | None = None) -> Run:
    """`decide` for either kind."""
    run = get_run(tx, rid, owner)
    approval = tx.approval(aid)
    if approval is None or approval.run_id != rid:
        raise NotFoundError("approval", aid)
    if approval.decision is not None:
        raise AlreadyDecidedError(aid, approval.decision)
    if run.intent is not None:
        raise NotAllowedError("answer", "the run is being cancelled")
    put_approval(tx, replace(approval, decision=decision, decided_at=tx.now, note=note))
    if run.status != "waiting":
        return run
    return put_run(tx, step(run, "decide" if run.lease is None else "answer"))


def withdraw(
    tx: Tx, rid: RunId, epoch: int, aid: ApprovalId, note: str | None = None, *, announced: bool = False
) -> ApprovalAnswer | None:
    """Deny a question whose asker no longer waits, unless it is answered. Returns what the journal must have of it: a
    person's answer, or if the call was `announced` the denial of a run that is to end. Otherwise None: the end of the
    run closes the question, or the next execution finds the denial."""
    run, approval = tx.run(rid), tx.approval(aid)
    if run is None or approval is None or run.epoch != epoch or not run.is_open:
        return None
    if approval.decision is not None:
        return ApprovalAnswer(approval.decision, approval.note)
    put_approval(tx, replace(approval, decision="deny", decided_at=tx.now, note=note))
    if run.status == "waiting" and run.intent is None:
        put_run(tx, step(run, "decide" if run.lease is None else "answer"))
    return ApprovalAnswer("deny", note) if announced and run.intent is not None else None


def grant(tx: Tx, run: Run, calls: frozenset[str]) -> None:
    """Store which denied calls of the earlier run a continuing run may make after all."""
    row = Approval(_grant_id(run.id), run.owner, run.id, run.session_id, "", "", {_CALLS: sorted(calls)}, "", tx.now)
    tx.put_approval(replace(row, decision="once", decided_at=tx.now))


def granted_calls(tx: Tx, run: Run) -> frozenset[str]:
    row = None if run.continues is None else tx.approval(_grant_id(run.id))
    return frozenset() if row is None else frozenset(row.args[_CALLS])


def _grant_id(rid: RunId) -> ApprovalId:
    return ApprovalId(f"grant_{rid}")


def deny_open(tx: Tx, run: Run, note: str | None = None) -> None:
    """Deny the open questions of a run whose asker is gone."""
    for approval in tx.open_approvals(run.id):
        put_approval(tx, replace(approval, decision="deny", decided_at=tx.now, note=note))


def expire(tx: Tx, asked_before: float, note: str, limit: int) -> list[Run]:
    """Deny questions asked before `asked_before`, with `note` as the reason."""
    denied = []
    for approval in tx.undecided_approvals(asked_before, limit):
        run = tx.run(approval.run_id)
        if run is None or not run.is_open:
            put_approval(tx, replace(approval, decision="deny", decided_at=tx.now))
        elif run.intent is None:
            denied.append(close(tx, run.id, approval.id, run.owner, "deny", note))
    return denied
