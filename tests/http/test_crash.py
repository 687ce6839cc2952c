"""Section X over HTTP: `kill -9` while clients watch, and what the next process shows."""

import random
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import Frame, said, shown

MIXED: list[dict[str, Any]] = [
    {"think": "let me see "},
    {"tokens": 30, "rate": 400},
    {"call": "a", "args": {"q": 1}, "result": {"found": 2}},
    {"tokens": 30, "rate": 400},
    {"call": "b", "output": ["some ", "lines"], "repeatable": True},
    {"tokens": 100000, "rate": 400},
]
"""It never ends by itself within a test. (A second `tokens` goes on where the first one stopped only in a continue.)"""


def check_kept(server: Served, sid: str, rid: str, seen: list[list[Frame]]) -> Any:
    """X1: the journal has what each client was sent, byte for byte, and the message is what the journal says."""
    journal = server.events(rid)
    assert [frame.seq for frame in journal] == list(range(1, len(journal) + 1))
    for frames in seen:
        first = frames[0].seq - 1 if frames else 0
        assert [frame.raw for frame in frames] == [frame.raw for frame in journal[first : first + len(frames)]]
    (answer,) = [message for message in server.messages(sid) if message["run_id"] == rid and message["role"] != "user"]
    assert said(answer) == shown(journal)
    assert said(answer, "reasoning") == shown(journal, "reasoning.delta")
    for frame in journal:
        if frame.event == "tool.finished":
            (tool,) = [part for part in answer["parts"] if part.get("call_id") == frame.data["call_id"]]
            assert (tool["state"], tool["result"]) == ("done", frame.data["result"])
    assert answer["last_seq"] == len(journal)
    return answer


def check_interrupted(server: Served, sid: str, rid: str) -> None:
    """X3: one notice, and nothing says active."""
    run, session = server.run(rid), server.look(sid)
    assert (run["status"], run["reason"], run["recovery"]) == ("interrupted", "process-gone", None)
    assert session["active_run"] is None
    ends = [
        frame.event for frame in server.events(rid) if frame.event.startswith("run.") and frame.event != "run.started"
    ]
    assert ends == ["run.interrupted"]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 6))])
def test_killed_at_any_instant_nothing_that_was_shown_is_lost(start: Start, seed: int) -> None:
    """X1 X2 X3: several clients watch several runs when the process is killed; all that any of them had received is in
    the transcript, once and in order."""
    rng = random.Random(seed)
    server = start()
    sids = [server.session() for _ in range(3)]
    taken = [server.send(sid, MIXED) for sid in sids]
    rids = [one["run"]["id"] for one in taken]
    clients = [[server.follow(rid), server.follow(rid)] for rid in rids]
    clients[0][0].until("text.delta", rng.randrange(1, 60))
    for pair, rid in zip(clients, rids, strict=True):
        pair.append(server.follow(rid, after=len(pair[0].frames)))  # one that came late, or back
    clients[-1][1].until("text.delta", rng.randrange(1, 90))
    server.kill()
    seen = [[client.ended() for client in pair] for pair in clients]
    server = start()
    for sid, one, frames in zip(sids, taken, seen, strict=True):
        answer = check_kept(server, sid, one["run"]["id"], frames)
        assert answer["status"] == "interrupted"
        check_interrupted(server, sid, one["run"]["id"])
        assert server.messages(sid)[0] == one["message"]
    assert server.order(upstreams=True) == 0


def test_automatic_continue_leaves_what_cannot_go_on(start: Start) -> None:
    """X2 L3: a run whose agent cannot take it up, and one whose client went with the process, are ended."""
    server = start(auto_continue=True)
    stiff, sid = server.session(agent="stiff"), server.session()
    one = server.stand(stiff, [{"say": "half "}, {"meet": "here"}, {"hang": True}])
    with server.attached(sid, [{"say": "half "}, {"hang": True}]) as stream:
        stream.until("text.delta")
        other = stream.frames[0].data["run_id"]
        server.kill()
    server = start(auto_continue=True)
    assert [server.run(rid)["status"] for rid in (one, other)] == ["interrupted", "interrupted"]
    assert said(server.answer(stiff)) == said(server.answer(sid)) == "half "


# ---- X5 ----


def test_an_interrupted_run_is_continued_where_its_journal_ends(start: Start) -> None:
    """X5: finished tools are not run again, and the answer goes on in a message that takes the earlier one's place."""
    server = start()
    sid = server.session()
    script = [{"say": "one "}, {"call": "a", "result": 1}, {"say": "two "}, {"meet": "here"}, {"say": "three"}]
    rid = server.stand(sid, script)
    server.kill()
    server = start()
    before = server.answer(sid)
    server.order(open="here")
    taken = server.post(f"/api/runs/{rid}/continue", {}, 202)
    new = taken["run"]["id"]
    assert (server.ended(new)["status"], taken["run"]["continues"]) == ("complete", rid)
    frames = server.events(new)
    assert [frame.event for frame in frames[:2]] == ["message.seeded", "run.started"]
    assert (frames[0].data["from_run"], frames[0].data["parts"]) == (rid, before["parts"])
    answer = server.answer(sid)
    assert [part["type"] for part in answer["parts"]] == ["text", "tool", "text"]
    assert said(answer) == "one two three"
    assert answer["siblings"] == [before["id"], answer["id"]]
    assert server.effects == ["a"]
    server.call("PATCH", f"/api/sessions/{sid}", {"head": before["id"]}, 200)
    assert {**server.answer(sid), "siblings": []} == {**before, "siblings": []}
    server.refused("not-allowed", "POST", f"/api/runs/{new}/continue", {})
