"""Invariants of every commit, every append and the whole store. Each function yields violations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from holdfast.agents.scripted_agent import CallTool, Say, SayTokens, Think
from holdfast.core import events as ev
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import LOCAL, MessageId, RunId, SubscriptionId
from holdfast.core.parts import Part, ReasoningPart, RememberedPart, SteeredPart, TextPart, ToolPart
from holdfast.core.recovery_rules import RecoveryPolicy
from holdfast.core.run import TRANSITIONS, Recovery, Run
from holdfast.core.session import Message, Session
from holdfast.core.transcript import Transcript, fold, has_output
from holdfast.ports.store import Approval, Tx, UsageQuery
from tests.sim.observed_storage import Commit, Story

Stories = Mapping[RunId, Story]

SAID_BY_ENGINE = frozenset(
    {"provider", "broke", "limit", "empty-answer", "session-gone", "storage", "storage-unavailable"}
)
"""Codes of failures that a run may end with. `internal` only for the bug that a script plants."""


QUESTIONS = (ev.ApprovalRequested, ev.ApprovalResolved, ev.RunEnded)
"""Events that open or close a question."""


DEVICE = SubscriptionId("push_device")
"""A device with notifications in every history."""

_LONG_AFTER = 1e9  # Seconds: the clock may be put back

# ---- appends ----


def append_problems(story: Story, entries: Sequence[ev.Entry], events: Sequence[ev.Event], epoch: int) -> Iterator[str]:
    """`story` is as it was before. Seq, epoch and seal are the journal's to refuse; here it is held to that."""
    if epoch < story.epoch:
        yield f"epoch fell from {story.epoch} to {epoch}"
    if story.sealed:
        yield "an event after the terminal one"
    asked = next((event for event in reversed(story.events) if isinstance(event, QUESTIONS)), None)
    for number, (entry, event) in enumerate(zip(entries, events, strict=True), len(story.entries) + 1):
        if entry.seq != number:
            yield f"event {entry.seq} in place {number}"
        if isinstance(event, ev.RunEnded) and entry is not entries[-1]:
            yield "a terminal event that is not the last"
        is_open = isinstance(asked, ev.ApprovalRequested) and asked.call_id
        if isinstance(event, ev.ApprovalRequested) and is_open == event.call_id:
            yield f"tool {event.call_id} asked about twice without a decision"
        if isinstance(event, ev.RunEnded) and event.error is not None and not _expected(event.error):
            yield f"the run failed with {event.error}"
        asked = event if isinstance(event, QUESTIONS) else asked


def _expected(error: ev.Failure) -> bool:
    return error.code in SAID_BY_ENGINE or (error.code == "internal" and "a bug in the agent" in error.message)


def fold_problems(story: Story, chance: Random) -> Iterator[str]:
    """fold(rest, fold(prefix)) == fold(whole), at a random split."""
    at = chance.randint(0, len(story.entries))
    try:
        whole = fold(story.entries)
        if fold(story.entries[at:], fold(story.entries[:at])) != whole:
            yield f"folding in two at {at} differs from folding the whole"
    except HoldfastError as error:
        yield f"the journal cannot be folded: {error}"


def effect_problems(chain: Sequence[Story], call_id: str, repeatable: bool) -> Iterator[str]:
    """A tool has just had its effect, in the last run of a chain of continued ones."""
    story = chain[-1]
    starts = [n for n, e in enumerate(story.events) if isinstance(e, ev.ToolStarted) and e.call_id == call_id]
    if not starts:
        yield f"tool {call_id} ran without a committed tool.started"
        return
    here = [effect for effect in story.effects if effect.call_id == call_id]
    if here and here[-1].at_seq > starts[-1]:
        yield f"tool {call_id} ran twice for one tool.started"
    earlier = [e for other in chain for e in other.effects if e.call_id == call_id]
    if not earlier or repeatable:
        return
    since = here[-1].at_seq if here else 0
    asked: set[str] = set()
    allowed = False
    for number, event in enumerate(story.events, 1):
        if isinstance(event, ev.ApprovalRequested) and event.call_id == call_id:
            asked.add(event.approval_id)
        if isinstance(event, ev.ApprovalResolved) and event.approval_id in asked and number > since:
            allowed = event.decision != "deny"
    if not allowed:
        yield f"tool {call_id} ran again without a decision"


# ---- commits ----


def commit_problems(
    commit: Commit, tx: Tx, stories: Stories, policy: RecoveryPolicy, put_back: float = 0.0
) -> Iterator[str]:
    """`put_back`: seconds by which the clock was put back a moment ago, so that a look may have begun before that."""
    for old_run, run in commit.runs:
        if run is not None:
            yield from _run_problems(old_run, run, commit, stories)
            yield from _ended_in_one_step(run, tx)
        if run is not None and old_run is not None:
            yield from _takeover_problems(old_run, run, commit.now)
            story = stories.get(run.id, _NO_STORY)
            yield from _recovery_problems(old_run.recovery, run.recovery, commit.now + put_back, story, policy)
    for old_message, message in commit.messages:
        if message is not None:
            yield from _message_problems(old_message, message, stories)
    for old_session, session in commit.sessions:
        if session is not None:
            yield from _session_problems(old_session, session)
    for old_approval, approval in commit.approvals:
        if approval is not None:
            yield from _approval_problems(old_approval, approval)
    touched = {session.id: session for _, session in commit.sessions if session is not None}
    for _, run in commit.runs:
        if run is not None and run.session_id not in touched:
            session = tx.session(run.session_id)
            if session is None:
                yield f"run {run.id} has no session"
            else:
                touched[session.id] = session
    for session in touched.values():
        yield from session_tree_problems(session, tx)


def usage_problems(
    commit: Commit, tx: Tx, stories: Stories, used: dict[RunId, int], budget: int | None
) -> Iterator[str]:
    """What runs used is what their journals say, also when they are erased; no run is accepted beyond the budget.
    `used` is as it was before and is brought up to date."""
    accepted = [run for old, run in commit.runs if old is None and run is not None]
    before = sum(used.values())
    if accepted and budget is not None and before >= budget:
        yield f"{accepted[0].id} was accepted, though {before} tokens of {budget} are used"
    changed = [run for _, run in commit.runs if run is not None and run.usage is not None]
    erased = any(run is None for _, run in commit.runs) or commit.erased
    for run in changed:
        given_up = run.recovery is not None and run.recovery.state == "none"
        told = [event for event in stories.get(run.id, _NO_STORY).events if isinstance(event, ev.Usage)]
        counted = [run.usage] if given_up and run.usage is not None else told
        used[run.id] = sum(each.input_tokens + each.output_tokens for each in counted)
    if changed or erased:
        sums = tx.usage(UsageQuery(LOCAL, 0.0, commit.now + _LONG_AFTER))
        total = sum(each.input_tokens + each.output_tokens for each in sums)
        if total != sum(used.values()):
            yield f"{total} tokens are counted; the runs used {sum(used.values())}"


def outbox_problems(commit: Commit, tx: Tx) -> Iterator[str]:
    """A message about a run is stored in the transaction that ends it, and one about a question in the one that asks.
    Nobody sends them here."""
    for old, run in commit.runs:
        if run is None or run.session_id in commit.erased:
            continue
        if not run.is_open and tx.message(run.message_id) is None:
            continue  # the chat was cleared: there is no answer to tell about
        message = tx.push(DEVICE, run.id)
        session = tx.session(run.session_id)
        has_ended = not run.is_open and (old is None or old.is_open or (old.is_pending and not run.is_pending))
        if run.is_open and message is not None:
            yield f"{run.id} is {run.status} and was reported as {message.kind}"
        if has_ended and session is not None and session.deleted_at is None:
            wanted = {"complete": "done", "failed": "failed", "interrupted": "failed"}.get(run.status)
            told = None if message is None else message.kind
            if run.lifetime == "attached":
                wanted = None
            if wanted is not None and told != wanted:
                yield f"{run.id} ended as {run.status} and was reported as {told}"
            if wanted is None and told is not None and not (old is not None and old.is_pending):
                yield f"{run.id} ended as {run.status}, {run.lifetime}, and was reported as {told}"
    for old_approval, approval in commit.approvals:
        is_new = old_approval is None and approval is not None and approval.decision is None
        if approval is None or not is_new:
            continue
        run = tx.run(approval.run_id)
        is_told, has_client = tx.push(DEVICE, approval.id) is not None, run is not None and run.lifetime == "attached"
        if is_told == has_client:
            yield f"{approval.id} was asked and {'a client and a device are' if is_told else 'nobody is'} told"


def _run_problems(old: Run | None, new: Run, commit: Commit, stories: Stories) -> Iterator[str]:
    name = new.id
    if old is None:
        queued = new.status == "queued" and new.epoch == 0 and new.lease is None
        claimed = new.status == "running" and new.epoch == 1 and new.lease is not None and new.in_tree
        if not queued and not claimed:
            yield f"{name} was made as {new.status} in epoch {new.epoch}, lease {new.lease}"
    else:
        if new.epoch < old.epoch:
            yield f"{name}: epoch fell from {old.epoch} to {new.epoch}"
        if old.status != new.status:
            if new.status not in TRANSITIONS[old.status].values() or (
                old.status == "interrupted" and not old.is_pending
            ):
                yield f"{name} went from {old.status} to {new.status}"
        elif _is_final(old) and replace(new, pruned=old.pruned) != old:
            yield f"{name} had ended and was changed: {old} -> {new}"
        if new.in_tree and not old.in_tree and (new.status != "running" or new.intent is not None):
            yield f"{name} joined the tree as {new.status}, intent {new.intent}"
        if old.in_tree and not new.in_tree:
            yield f"{name} left the tree"
        ended_so = (old.status, new.status, old.lifetime) == ("queued", "interrupted", "detached")
        # an owner that shut down and whose settling came late: the journal has the last word
        ending = stories.get(name, _NO_STORY).ending
        by_itself = ending is not None and ending.reason == "shutdown"
        if ended_so and old.intent is None and not by_itself:
            yield f"{name} waited its turn, nobody asked it to end, and it was ended"
        released = old.is_taken and new.steers is None  # the journal of the other run does not have its text
        goes_on = new.status == "queued" if new.intent is None else new.intent.status == "cancelled"
        if (
            old.intent is not None
            and new.intent != old.intent
            and not released
            and not (old.intent.is_outage and goes_on)
        ):
            yield f"{name}: the first intent was overwritten"
    if (old is None or old.status != new.status) and (
        ("run.changed", new.session_id, new.id, new.status) not in commit.changes
    ):
        yield f"{name} became {new.status} and the change feed does not say so"
    if not new.is_open and (old is None or old.is_open or old.is_pending) and not new.is_pending:
        given_up = new.recovery is not None and new.recovery.state == "none"
        story = stories.get(name, _NO_STORY)
        if story.ending is None:
            if not given_up:
                yield f"{name} ended as {new.status} and its journal is not sealed"
        elif (story.ending.status, len(story.entries)) != (new.status, new.last_seq) and not given_up:
            yield f"{name} ended as {new.status} at {new.last_seq}, its journal as {story.ending.status}"


def steering_problems(old: Run | None, new: Run, target: Run | None, stories: Stories, deleted: bool) -> Iterator[str]:
    """Text that was added to the run `target` is in its journal, or it is a turn of its own, or somebody removed it:
    never two of these, and never none."""
    journaled = new.user_message_id in steered_in(stories)
    if new.in_tree and journaled:
        yield f"{new.id} joined the tree, and its text is in the journal of another run"
    ended = not (new.is_open or new.is_pending) and (old is None or old.is_open or old.is_pending)
    if not ended or new.in_tree:
        return
    if new.reason == "steered" and not journaled and not deleted:
        given_up = target is None or (target.recovery is not None and target.recovery.state == "none")
        if not given_up:
            yield f"{new.id} has ended as steered, and no journal has its text"
    is_unread = new.recovery is not None and new.recovery.state == "none"  # its own journal, which says why it ended
    if new.reason != "steered" and journaled and not is_unread:
        yield f"{new.id} has ended as {new.status}/{new.reason}, and its text is in the journal of another run"


def steered_in(stories: Stories) -> list[MessageId]:
    """The messages whose text journals have as their own, in no order."""
    return [e.id for story in stories.values() for e in story.events if isinstance(e, ev.MessageSteered)]


def _takeover_problems(old: Run, new: Run, now: float) -> Iterator[str]:
    """Where leases lapse, nobody takes a run from a node whose lease has not."""
    before, after = old.lease, new.lease
    if new.epoch == old.epoch or before is None or before.until is None or now >= before.until:
        return
    if after is None or after.holder != before.holder:
        yield f"{new.id} was taken from {before} by {after} at {now}"


def _recovery_problems(
    old: Recovery | None, new: Recovery | None, now: float, story: Story, policy: RecoveryPolicy
) -> Iterator[str]:
    """Section J: what uses up attempts, when they are spent, and that no bookkeeping stays."""
    if new is None or new == old:
        return
    if new.state != "pending":
        if new != Recovery(new.state):
            yield f"recovery is {new.state} and its bookkeeping is still there: {new}"
        if new.state == "none" and old is not None and old.state == "pending":
            empty = story.sealed and not has_output(fold(story.entries).parts)
            spent = empty and old.attempts + 1 >= policy.max_attempts
            if not spent and now - old.since < policy.give_up_after:
                yield f"recovery was given up too early: {old}, {policy}"
    elif new.attempts >= policy.max_attempts:
        yield f"recovery has spent its attempts and goes on: {new}, {policy}"
    elif old is not None and new.attempts > old.attempts and not story.sealed:
        yield "a journal that is still arriving used up an attempt"


def _is_final(run: Run) -> bool:
    return not run.is_open and (run.recovery is None or run.recovery.state == "recovered")


def _ended_in_one_step(run: Run, tx: Tx) -> Iterator[str]:
    """P5."""
    if run.is_open:
        return
    if run.lease is not None and not run.is_pending:
        yield f"{run.id} is {run.status} and has a lease"
    session = tx.session(run.session_id)
    message = tx.message(run.message_id)
    if message is not None and message.status == "streaming" and session is not None and session.deleted_at is None:
        yield f"{run.id} is {run.status} and its message streams"
    if tx.open_approvals(run.id):
        yield f"{run.id} is {run.status} and has an open question"


def _message_problems(old: Message | None, new: Message, stories: Stories) -> Iterator[str]:
    if old is None:
        if new.role == "assistant" and new.run_id is not None and (new.status != "streaming" or new.parts):
            yield f"{new.id} was made as {new.status}"
        return
    same = ("owner", "session_id", "role", "created_at", "run_id", "key", "model")
    for field in (*same, "parent_id", "in_tree") if old.in_tree else same:
        if getattr(old, field) != getattr(new, field):
            yield f"{new.id}: {field} changed from {getattr(old, field)} to {getattr(new, field)}"
    if new.role == "user":
        if old.in_tree and (old.parts, old.status) != (new.parts, new.status):
            yield f"{new.id}: what the user said was changed"
        return
    if new.status == "streaming":
        if old.status != "streaming":
            yield f"{new.id} was {old.status} and streams again"
        return
    if old.status != "streaming" and old.recovery in (None, "recovered"):
        if new != old:
            yield f"{new.id} was settled and changed: {old} -> {new}"
        return
    if new.recovery in ("pending", "none"):
        if new.parts != old.parts and not _says_what_the_journal_says(new, stories):
            yield f"{new.id}: parts changed while recovery is {new.recovery}"
        return
    if not _says_what_the_journal_says(new, stories):
        yield f"{new.id} was settled unlike its journal: {new}"


_NO_STORY = Story()


def _says_what_the_journal_says(message: Message, stories: Stories) -> bool:
    assert message.run_id is not None
    told = fold(stories.get(message.run_id, _NO_STORY).entries)
    return shows(message, told) and told.ended


def shows(message: Message, told: Transcript) -> bool:
    shown = (message.parts, message.status, message.reason, message.error, message.usage, message.last_seq)
    return shown == (told.parts, told.status, told.reason, told.error, told.usage, told.last_seq)


def _session_problems(old: Session | None, new: Session) -> Iterator[str]:
    if old is None:
        return
    if new.version < old.version:
        yield f"{new.id}: version fell from {old.version} to {new.version}"
    if old.deleted_at is not None and new.deleted_at != old.deleted_at:
        yield f"{new.id} was deleted and came back"
    no_activity = ["pinned", "archived", "tags", "project"]
    if new.titled_by != "nobody" or old.head == new.head:  # otherwise its first message titled it
        no_activity.append("title")
    if any(getattr(old, f) != getattr(new, f) for f in no_activity) and new.updated_at != old.updated_at:
        yield f"{new.id}: a rename or pin moved updated_at"
    if old.titled_by == "person" and (new.titled_by != "person"):
        yield f"{new.id}: a person's title was overwritten"


def _approval_problems(old: Approval | None, new: Approval) -> Iterator[str]:
    if old is None and new.decision is not None:
        yield f"{new.id} was made already decided"
    if old is not None and old.decision is not None and new != old:
        yield f"{new.id}: the first decision was overwritten"


def session_tree_problems(session: Session, tx: Tx) -> Iterator[str]:
    """The head and everything above it exist, in this session, in the tree; one run at most is being answered."""
    seen: set[MessageId] = set()
    for end in (session.head, *session.redo):
        at = end
        while at is not None and at not in seen:
            seen.add(at)
            message = tx.message(at)
            if message is None or message.session_id != session.id or not message.in_tree:
                yield f"{session.id}: {at} is on a branch and is not in the tree"
                break
            at = message.parent_id
    open_runs = tx.open_runs(session.id)
    active = [run.id for run in open_runs if run.status != "queued"]
    if len(active) > 1:
        yield f"{session.id}: {active} are all being answered"
    for run in open_runs:
        message = tx.message(run.message_id)
        if message is not None and (message.status != "streaming" or message.in_tree != run.in_tree):
            yield f"{run.id} is {run.status} and its message {message.status}, in_tree {message.in_tree}"


# ---- what was said ----


def said_problems(run: Run, parts: Sequence[Part], script: Sequence[object]) -> Iterator[str]:
    """An answer says what its script says, in its order: a beginning of it while it is not complete, all of it once it
    is, nothing twice."""
    said, whole = _said(parts), _scripted(script)
    last = len(said) - 1
    if len(said) > len(whole) or (said and (said[:last] != whole[:last] or not _begins(said[last], whole[last]))):
        yield f"{run.id} says {said}; its script: {whole}"
    elif run.status == "complete" and said != whole:
        yield f"{run.id} is complete and says {said}; its script: {whole}"
    calls = {action.call_id: action for action in script if isinstance(action, CallTool)}
    for part in parts:
        if not isinstance(part, ToolPart):
            continue
        call = calls[part.call_id]
        if run.status == "complete" and part.state not in ("done", "denied"):
            yield f"{run.id} is complete and its tool is {part}"
        if part.state == "done" and (part.result, part.is_error) != (call.result, call.is_error):
            yield f"{run.id}: {part} is done unlike {call}"


def _said(parts: Sequence[Part]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for at, part in enumerate(parts):
        match part:
            case RememberedPart() if at == 0:
                pass  # before anything is said, and once
            case SteeredPart():
                pass  # said by somebody else
            case TextPart(text, begins_step=True) if found and found[-1][0] == "text":
                found[-1] = ("text", found[-1][1] + text)  # a script does not tell steps apart
            case TextPart(text) | ReasoningPart(text) if at and isinstance(parts[at - 1], SteeredPart) and found:
                kind = "text" if isinstance(part, TextPart) else "reasoning"
                found += [(kind, found.pop()[1] + text if found[-1][0] == kind else text)]
            case TextPart(text):
                found.append(("text", text))
            case ReasoningPart(text):
                found.append(("reasoning", text))
            case ToolPart(call_id):
                found.append(("tool", call_id))
            case _:
                found.append(("?", str(part)))
    return found


def _scripted(script: Sequence[object]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for action in script:
        match action:
            case Say(text):
                kind = "text"
            case SayTokens(count):
                kind, text = "text", "".join(f"t{n} " for n in range(count))
            case Think(text):
                kind = "reasoning"
            case CallTool(text):
                kind = "tool"
            case _:
                continue
        if found and kind == found[-1][0] != "tool":
            text = found.pop()[1] + text
        found.append((kind, text))
    return found


def _begins(said: tuple[str, str], whole: tuple[str, str]) -> bool:
    return said[0] == whole[0] and whole[1].startswith(said[1]) and (said[0] != "tool" or said == whole)
