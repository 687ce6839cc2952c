"""What clients were told, against what a restarted server has. Pure: a ledger, a dump and the effects in, violations
out.

The reading of events is written here a second time, on purpose: it shares no code with the fold that it checks.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tests.crash import scripts
from tests.crash.client import OPEN, Ledger, Turn, Violation

Json = Any

_ENDS: Final = {"run.complete", "run.cancelled", "run.failed", "run.interrupted"}


def verify(ledger: Ledger, dump: Json, before: Sequence[str], after: Sequence[str]) -> list[Violation]:
    """Everything that must hold in any life after any death, when nothing new was asked for yet: queued runs may go on
    meanwhile. `before` and `after` are the lines of the effects file, read before and after the dump was made."""
    found: list[Violation] = []
    for turn in ledger.turns.values():
        if turn.session in ledger.gone:
            continue
        if turn.run is not None:
            found += _accepted(turn, dump)
            found += _received(turn, dump)
            if turn.session not in dump["moving"]:
                found += _settled(ledger, turn, dump)
        if turn.session not in dump["moving"]:
            found += _once(turn, dump)
            found += _added(turn, dump)
    for sid in ledger.sessions:
        if sid not in ledger.gone and sid not in dump["moving"]:
            found += _session(sid, dump)
    found += _effects(ledger, dump, before, after)
    return found


# ---- A1, A2, E2: what was accepted is there, once ----


def _accepted(turn: Turn, dump: Json) -> Iterator[Violation]:
    message = dump["messages"].get(turn.user_message)
    if message is None:
        yield Violation("lost", f"{turn.run}: the user's message {turn.user_message} is gone (A1)")
        return
    if message["created_at"] != turn.created_at:
        yield Violation("wrong", f"{turn.run}: its question is of {message['created_at']}, not {turn.created_at} (A1)")
    if message["parts"] != [{"type": "text", "text": turn.text}]:
        yield Violation("wrong", f"{turn.run}: its question reads {message['parts']} instead of {turn.text!r} (A1)")
    if turn.continues is None and message["key"] != turn.key:
        yield Violation("wrong", f"{turn.run}: its question has the key {message['key']}, not {turn.key} (A1)")
    if turn.run not in dump["runs"]:
        yield Violation("lost", f"{turn.run}: the run is gone (A1)")


def _once(turn: Turn, dump: Json) -> Iterator[Violation]:
    """Also of a turn that was never answered: it may be there or not, but not twice."""
    runs = [run for run in dump["runs"].values() if (run["key"], run["session_id"]) == (turn.key, turn.session)]
    session = dump["sessions"].get(turn.session, {"tree": [], "queued": []})
    questions = [m for m in session["tree"] + session["queued"] if m["key"] == turn.key and m["role"] == "user"]
    if len(runs) > 1:
        yield Violation("doubled", f"key {turn.key} has made {len(runs)} runs (A2)")
    if len(questions) > 1:
        yield Violation("doubled", f"key {turn.key} has made {len(questions)} user messages (E2)")
    never_joined = bool(runs) and runs[0]["status"] == "cancelled" and not runs[0]["in_tree"]
    if turn.run is not None and turn.continues is None and not questions and not never_joined:
        yield Violation("lost", f"{turn.run}: its question is neither in the tree nor in the queue (A1)")


def _added(turn: Turn, dump: Json) -> Iterator[Violation]:
    """What was added to a run is in its journal or is a turn of its own: never both, and once it is over, not
    neither."""
    run = dump["runs"].get(turn.run)
    if turn.steers is None or run is None:
        return
    journal = dump["journals"].get(turn.steers)
    if not isinstance(journal, list):
        return  # it is said to be away
    told = [parse(frame.encode()) for frame in journal]
    times = sum(kind == "message.steered" and data["id"] == turn.user_message for kind, data in told)
    if times + run["in_tree"] > 1:
        yield Violation(
            "doubled", f"{turn.run}: its text was added {times} times, and joined the tree: {run['in_tree']}"
        )
    if run["status"] not in OPEN and not times and not run["in_tree"]:
        yield Violation("lost", f"{turn.run}: its text was added to no run, and it never joined the tree")


# ---- X1: what was received is in the journal and in the message, once and in order ----


def _received(turn: Turn, dump: Json) -> Iterator[Violation]:
    journal = dump["journals"].get(turn.run)
    run, message = dump["runs"].get(turn.run), dump["messages"].get(turn.message)
    if run is None or message is None or journal is None:
        yield Violation("lost", f"{turn.run}: run, answer or journal is gone")
        return
    if _is_away(run, journal):
        return  # J1: it is said to be away
    frames = [frame.encode() for frame in journal]
    for seq, frame in enumerate(turn.frames, 1):
        if seq > len(frames):
            yield Violation("lost", f"{turn.run}: events {seq} to {len(turn.frames)} were shown, the journal has not")
            break
        if frames[seq - 1] != frame:
            yield Violation("wrong", f"{turn.run}: event {seq} was shown as {frame!r}, kept as {frames[seq - 1]!r}")
            break
    yield from _compare(turn, "shown", turn.frames, message["parts"], whole=False)
    yield from _compare(turn, "journalled", frames, message["parts"], whole=run["status"] not in OPEN)
    yield from _follows_script(turn, message)


def _is_away(run: Json, journal: Json) -> bool:
    return isinstance(journal, str) or (run["recovery"] is not None and run["recovery"]["state"] == "pending")


def _compare(turn: Turn, how: str, frames: Sequence[bytes], parts: Json, *, whole: bool) -> Iterator[Violation]:
    """The outline of the events is the message's, or its beginning."""
    told, kept = outline(frames), [_of_part(part) for part in parts]
    if len(told) > len(kept) or (whole and len(told) != len(kept)):
        yield Violation("lost", f"{turn.run}: {len(told)} parts were {how}, the message has {len(kept)}")
        return
    for n, item in enumerate(told):
        growing = not whole and n == len(told) - 1
        if not _agree(item, kept[n], growing, whole):
            shorter = len(str(kept[n])) < len(str(item))
            yield Violation(
                "lost" if shorter else "wrong", f"{turn.run}: part {n} was {how} as {item}, the message has {kept[n]}"
            )
            return


def _agree(told: Json, kept: Json, growing: bool, whole: bool) -> bool:
    if told["type"] != kept["type"]:
        return False
    if told["type"] != "tool":
        return bool(kept["text"].startswith(told["text"]) if growing else kept["text"] == told["text"])
    if told["call_id"] != kept["call_id"] or told["name"] != kept["name"]:
        return False
    if whole or told["state"] in ("done", "denied"):
        return bool(told == kept)
    if told["state"] == "pending":  # the arguments were still being written
        return not isinstance(kept["args"], str) or kept["args"].startswith(told["args"])
    return bool(told["args"] == kept["args"] and kept["output"].startswith(told["output"]))


def _of_part(part: Json) -> Json:
    if part["type"] != "tool":
        return {"type": part["type"], "text": part["text"]}
    names = ("type", "call_id", "name", "args", "result", "is_error", "state")
    return {**{name: part[name] for name in names}, "output": part.get("output", "")}


def outline(frames: Iterable[bytes]) -> list[Json]:
    """What a reader of the stream has before him."""
    items: list[Json] = []
    questions: dict[str, Json] = {}
    ran: set[str] = set()
    for frame in frames:
        kind, data = parse(frame)
        if kind in ("text.delta", "reasoning.delta"):
            name = kind.partition(".")[0]
            if not items or items[-1]["type"] != name:
                items.append({"type": name, "text": ""})
            items[-1]["text"] += data["text"]
        elif kind == "message.seeded":
            items += [_of_part(part) for part in data["parts"]]
            ran.update(part["call_id"] for part in data["parts"] if part.get("state") == "unknown")
        elif kind == "message.steered":
            items.append({"type": "steered", "text": data["text"]})
        elif kind == "tool.delta":
            tool = _tool(items, data)
            tool["output"] += data.get("output_delta", "")
            if tool["state"] == "not_run" and "args_delta" in data:  # written anew
                tool.update(args="", state="pending")
            if isinstance(tool["args"], str):
                tool["args"] += data.get("args_delta", "")
        elif kind == "tool.started":
            _tool(items, data).update(name=data["name"], args=data["args"], state="running")
            ran.add(data["call_id"])
        elif kind == "tool.finished":
            _tool(items, data).update(result=data["result"], is_error=data["is_error"], state="done")
        elif kind == "approval.requested":
            tool = questions[data["approval_id"]] = _tool(items, data)
            tool.update(name=data["name"], args=data["args"], state="waiting")
        elif kind == "approval.resolved":
            questions[data["approval_id"]]["state"] = "denied" if data["decision"] == "deny" else "pending"
        elif kind == "run.resumed":
            _let_go(items, ("running", "pending"), ran)
        elif kind in _ENDS:
            _let_go(items, ("running", "pending", "waiting"), ran)
    return items


def _tool(items: list[Json], data: Json) -> Json:
    """The call that is meant: the newest with its id that is not over, else a new one."""
    for item in reversed(items):
        if item["type"] == "tool" and item["call_id"] == data["call_id"] and item["state"] not in ("done", "denied"):
            return item
    items.append(
        {
            "type": "tool",
            "call_id": data["call_id"],
            "name": data.get("name", ""),
            "args": "",
            "result": None,
            "is_error": False,
            "state": "pending",
            "output": "",
        }
    )
    return items[-1]


def _let_go(items: list[Json], states: Sequence[str], ran: set[str]) -> None:
    """What is not over in one of these states will not be: it may have run, or it has not."""
    for item in items:
        if item["type"] == "tool" and item["state"] in states:
            item["state"] = "unknown" if item["call_id"] in ran else "not_run"


def parse(frame: bytes) -> tuple[str, Json]:
    """An SSE frame's type and data."""
    fields = dict(line.split(": ", 1) for line in frame.decode().split("\n") if line)
    return fields["event"], json.loads(fields["data"])


def _follows_script(turn: Turn, message: Json) -> Iterator[Violation]:
    """Nothing that the agent did not say, nothing twice; all of it if the run is complete."""
    for kind, expected in (("text", scripts.words(turn.text)), ("reasoning", scripts.thoughts(turn.text))):
        said = "".join(part["text"] for part in message["parts"] if part["type"] == kind)
        if not expected.startswith(said):
            yield Violation("doubled", f"{turn.run}: its {kind} is not what the agent said: {said[-200:]!r}")
        elif message["status"] == "complete" and said != expected:
            yield Violation("lost", f"{turn.run}: complete, with {len(said)} of {len(expected)} characters of {kind}")


# ---- X2, X3: nothing dead is shown as alive; each run ends once ----


def _settled(ledger: Ledger, turn: Turn, dump: Json) -> Iterator[Violation]:
    run, message, journal = dump["runs"].get(turn.run), dump["messages"].get(turn.message), dump["journals"][turn.run]
    if run is None or message is None:
        return  # said already
    status = run["status"]
    if status == "running" and run["lease"]["holder"] != dump["node"]:
        yield Violation("wrong", f"{turn.run}: shown as running, but its process is gone (X2)")
    may_go_on = turn.decides or ledger.auto_continue
    if status == "running" and turn.frames and turn.seen_in < ledger.lives and not may_go_on:
        yield Violation("wrong", f"{turn.run}: began in an earlier life and is shown as running (X2)")
    if status not in OPEN and message["status"] != status:
        yield Violation("wrong", f"{turn.run}: the run is {status}, its message {message['status']} (X3)")
    if status in OPEN and turn.ended:
        yield Violation("lost", f"{turn.run}: its end was shown, and it is {status}")
    if _is_away(run, journal):
        return
    ends = [kind for kind, _ in map(parse, (frame.encode() for frame in journal)) if kind in _ENDS]
    if status in OPEN:
        if ends:
            yield Violation("wrong", f"{turn.run}: it is {status}, and its journal is sealed")
        return
    if ends != [f"run.{status}"] or parse(journal[-1].encode())[0] != ends[0]:
        yield Violation("wrong", f"{turn.run}: it is {status}, its journal ends with {ends} (X3)")
    before = ledger.settled.setdefault(message["id"], message)
    if before != message:
        yield Violation("wrong", f"{turn.run}: its settled message was {before} and is now {message} (X4)")


def _session(sid: str, dump: Json) -> Iterator[Violation]:
    session = dump["sessions"].get(sid)
    if session is None:
        yield Violation("lost", f"{sid}: the session is gone")
        return
    runs = [run for run in dump["runs"].values() if run["session_id"] == sid]
    active = [run["id"] for run in runs if run["in_tree"] and run["status"] in OPEN]
    if session["active_run"] not in (active or [None]):
        yield Violation(
            "wrong", f"{sid}: its active run is {session['active_run']}, open in the tree are {active} (X3)"
        )
    if sum(run["status"] in ("running", "waiting") for run in runs) > 1:
        yield Violation("wrong", f"{sid}: two runs are running at once")
    if session["head"] != (session["shown"][-1]["id"] if session["shown"] else None):
        yield Violation("wrong", f"{sid}: the head is not the last message that is shown")
    for message in session["tree"]:
        owner = dump["runs"].get(message["run_id"])
        if message["role"] == "assistant" and message["status"] == "streaming" and owner["status"] not in OPEN:
            yield Violation("wrong", f"{sid}: message {message['id']} is streaming and its run {owner['status']} (X2)")
    for mid, count in Counter(message["id"] for message in session["tree"] + session["queued"]).items():
        if count > 1:
            yield Violation("doubled", f"{sid}: message {mid} is there {count} times")


# ---- X5, rule 9: effects ----


def _effects(ledger: Ledger, dump: Json, before: Sequence[str], after: Sequence[str]) -> Iterator[Violation]:
    """Call ids are unique in a directory, so that all executions of a call can be counted over all runs."""
    started: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    for journal in dump["journals"].values():
        asked: dict[str, str] = {}
        for kind, data in map(parse, (frame.encode() for frame in journal)) if not isinstance(journal, str) else ():
            if kind == "tool.started":
                started[data["call_id"]] += 1
            if kind == "tool.finished":
                finished[data["call_id"]] += 1
            if kind == "approval.requested":
                asked[data["approval_id"]] = data["call_id"]
            if kind == "approval.resolved" and data["decision"] != "deny":
                allowed[asked[data["approval_id"]]] += 1
    happened, in_the_end = (Counter(line.split()[0] for line in lines) for lines in (before, after))
    unreadable = {turn.text for rid, turn in ledger.by_run.items() if isinstance(dump["journals"].get(rid), str)}
    questions = {turn.text for turn in ledger.turns.values() if turn.session not in ledger.gone} - unreadable
    for call_id, call in (item for text in sorted(questions) for item in scripts.calls(text).items()):
        if happened[call_id] > started[call_id]:
            yield Violation("lost", f"{call_id}: an effect without its tool.started (rule 9)")
        if finished[call_id] > 1:
            yield Violation("doubled", f"{call_id}: finished {finished[call_id]} times (X5)")
        if finished[call_id] > in_the_end[call_id] and not call.asks_user:
            yield Violation("wrong", f"{call_id}: finished without an effect")
        free = 0 if call.asks else 10**6 if call.repeatable else 1
        if happened[call_id] > free + allowed[call_id]:
            yield Violation("doubled", f"{call_id}: done {happened[call_id]} times, allowed {allowed[call_id]} (X5)")
