"""Section L over HTTP: connecting, disconnecting and slow clients, and their effect on a run and on others."""

import errno
import json
import signal
import socket
from contextlib import suppress
from typing import Any

import pytest

from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, said, shown, until

HALF: list[dict[str, Any]] = [{"say": "half "}, {"meet": "here"}, {"say": "whole"}]
CHAT: list[dict[str, Any]] = [{"think": "hm"}, {"say": "an answer"}]
COMPARE = ("/api/compare", {"runs": [{"input": "x"}, {"input": "y"}]})
AGENT: list[dict[str, Any]] = [{"say": "let me look "}, {"call": "a", "result": 1}, {"say": "done"}]


def upstreams(server: Served, count: int) -> None:
    until(lambda: server.order(upstreams=True), lambda found: found == count)


def ended_once(server: Served, sid: str, rid: str, status: str, reason: str | None = None) -> Any:
    """One end, one message, nothing active; the answer."""
    run = until(lambda: server.run(rid), lambda run: run["status"] == status)
    assert run["reason"] == reason
    frames = [frame.event for frame in server.events(rid)]
    assert [event for event in frames if event.startswith("run.")].count(f"run.{status}") == 1
    assert frames[-1] == f"run.{status}"
    (answer,) = [item for item in server.messages(sid) if item["run_id"] == rid and item["role"] == "assistant"]
    assert (answer["status"], answer["reason"], answer["last_seq"]) == (status, reason, len(frames))
    assert server.look(sid)["active_run"] is None
    return answer


# ---- L1, L2 ----


def test_a_detached_run_goes_on_when_every_client_has_left(server: Served) -> None:
    """L1: two clients watch and go; the run is saved once, whole."""
    sid = server.session()
    rid = server.begin(sid, HALF)
    for _ in range(2):
        with server.watch(rid) as stream:
            stream.until("text.delta")
    until(lambda: server.metric("holdfast_subscribers"), lambda count: count == 0)
    assert server.order(upstreams=True) == 1
    server.order(open="here")
    assert said(ended_once(server, sid, rid, "complete")) == "half whole"


def test_shutdown_saves_the_partial_once_and_ends_streams(start: Start) -> None:
    """L2: told to stop, the server seals what does not end by itself, streams see it, and the next finds it settled."""
    server = start(drain=0.1)
    sid = server.session()
    rid = server.stand(sid, HALF)
    client, changes = server.follow(rid), server.follow_changes()
    client.until("text.delta")
    assert server.terminate() == 0
    assert client.ended()[-1].event == "run.interrupted"
    changes.ended()
    server = start()
    answer = ended_once(server, sid, rid, "interrupted", "shutdown")
    assert (said(answer), answer["recovery"]) == ("half ", None)


def is_closed(server: Served) -> bool:
    with socket.socket() as line:
        return line.connect_ex(server.address) == errno.ECONNREFUSED


def test_shutdown_lets_a_run_end_by_itself(start: Start) -> None:
    """L2: it completes while the server drains and its client sees that; new connections are refused."""
    server = start(drain=30.0)
    sid = server.session()
    rid = server.stand(sid, HALF)
    client = server.follow(rid)
    client.until("text.delta")
    server.tell(signal.SIGTERM)
    until(lambda: is_closed(server))
    server.order(open="here")
    assert client.ended()[-1].event == "run.complete"
    assert server.buried() == 0
    server = start()
    assert said(ended_once(server, sid, rid, "complete")) == "half whole"


# ---- L3 ----


@pytest.mark.parametrize("agent", ["chat", "stiff"])
def test_an_attached_run_ends_the_moment_its_client_goes(server: Served, agent: str) -> None:
    """L3: the upstream call is aborted in the middle of an await; the partial is saved once, with the reason."""
    sid = server.session(agent=agent)
    with server.attached(sid, HALF) as stream:
        rid = stream.until("run.started").data["run_id"]
        stream.until("text.delta")
        assert server.run(rid)["lifetime"] == "attached"
        assert server.order(upstreams=True) == 1
    upstreams(server, 0)
    assert said(ended_once(server, sid, rid, "cancelled", "disconnected")) == "half "


def test_an_attached_run_ends_while_a_tool_is_at_work(server: Served) -> None:
    """L3: also while nothing is being sent because a tool takes its time."""
    sid = server.session()
    with server.attached(sid, [{"say": "x"}, {"call": "a", "takes": 3600}]) as stream:
        stream.until("tool.started")
        rid = stream.frames[0].data["run_id"]
    upstreams(server, 0)
    assert ended_once(server, sid, rid, "cancelled", "disconnected")["parts"][1]["state"] == "unknown"


def test_an_attached_run_ends_while_it_is_queued(server: Served) -> None:
    """L3: its client goes before its turn: it never runs and never joins the branch, and the run before it goes on."""
    sid = server.session()
    first = server.stand(sid, HALF)
    with server.attached(sid, "second"):
        (queued,) = until(lambda: server.look(sid)["queued_runs"])
        rid = queued["run"]["id"]
    run = until(lambda: server.run(rid), lambda run: run["status"] == "cancelled")
    assert (run["reason"], run["started_at"]) == ("disconnected", None)
    assert server.look(sid)["queued_runs"] == []
    server.order(open="here")
    server.ended(first)
    assert [said(message) for message in server.messages(sid)][1:] == ["half whole"]


def test_a_client_that_goes_before_the_answer_is_one_that_went(server: Served) -> None:
    """L3: it sends and closes without reading anything: its run does not go on without it. Its token says whose it is:
    a closed connection does not."""
    sid = server.session()
    token = json.loads((server.data_dir / "server.json").read_text())["token"]
    body = b'{"input": "[{\\"say\\": \\"x\\"}, {\\"hang\\": true}]", "lifetime": "attached"}'
    host, port = server.address
    head = f"POST /api/sessions/{sid}/runs HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(server.address) as line:
        line.sendall(f"{head}Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    runs = until(lambda: server.get("/api/runs", params={"session": sid})["items"])
    run = until(lambda: server.run(runs[0]["id"]), lambda run: run["status"] == "cancelled")
    assert run["reason"] == "disconnected"
    upstreams(server, 0)


# ---- L4 ----


@pytest.mark.parametrize("script", [CHAT, AGENT], ids=["chat", "agent"])
@pytest.mark.parametrize("lifetime", ["detached", "attached"])
def test_a_run_that_completes_is_saved_once_as_complete(server: Served, lifetime: str, script: Any) -> None:
    """L4: never as a partial, also if its client goes right after the end."""
    sid = server.session()
    if lifetime == "attached":
        with server.attached(sid, script) as stream:
            assert stream.response.headers["content-type"].startswith("text/event-stream")
            frames = stream.rest()
        rid = frames[0].data["run_id"]
        assert stream.response.headers["location"] == f"/api/runs/{rid}"
    else:
        rid = server.begin(sid, script)
        frames = server.events(rid)
    assert frames[-1].event == "run.complete"
    answer = ended_once(server, sid, rid, "complete")
    assert said(answer) == shown(frames)
    assert server.run(rid)["finish_reason"] == "stop"


def test_a_client_that_has_had_everything_has_cancelled_nothing(server: Served) -> None:
    """L4: however soon after the end the client of an attached run disconnects, the run is not cancelled."""
    for _ in range(15):
        with server.attached(server.session(), "whole") as stream:
            rid = stream.rest()[0].data["run_id"]
        run = server.ended(rid)
        assert (run["status"], run["reason"], run["cancel_requested"]) == ("complete", None, False)


# ---- L5 ----


def test_from_every_cursor_exactly_the_rest(server: Served) -> None:
    """L5: `?after=` and `Last-Event-ID`, which goes before it; 204 at the end and 409 beyond it."""
    rid = server.turn(server.session(), [*CHAT, *AGENT, *CHAT])["run_id"]
    whole = server.events(rid)
    assert [frame.seq for frame in whole] == list(range(1, len(whole) + 1))
    for after in range(len(whole)):
        assert server.events(rid, after) == whole[after:]
        with server.watch(rid, after=0, last_id=str(after)) as stream:
            assert stream.rest() == whole[after:]
    path, last = f"/api/runs/{rid}/events", len(whole)
    at_end: list[dict[str, Any]] = [{"params": {"after": last}}, {"headers": {"Last-Event-ID": str(last)}}]
    for how in at_end:
        answer = server.http.get(path, **how)
        assert (answer.status_code, answer.content) == (204, b"")
    assert server.refused("cursor-ahead", "GET", path, params={"after": last + 1})["last_seq"] == last
    server.refused("invalid", "GET", path, headers={"Last-Event-ID": "soon"})
    server.refused("invalid", "GET", path, params={"after": -1})
    server.refused("not-found", "GET", "/api/runs/run_none/events")


def test_events_can_be_read_without_a_stream(server: Served) -> None:
    """L5: page by page, from every cursor, they are those of the stream; an open run has none after its last."""
    sid = server.session()
    rid = server.stand(sid, [{"say": "one "}, {"think": "hm"}, {"meet": "here"}, {"say": "two"}])
    path = f"/api/runs/{rid}/events/page"
    last = server.get(path)["next"]
    assert server.get(f"{path}?after={last}") == {"items": [], "next": None}
    server.order(open="here")
    frames = server.events(rid)
    for after in range(len(frames) + 1):
        items = server.get(f"{path}?after={after}")["items"]
        assert [(item["seq"], item["type"], item["data"]) for item in items] == [
            (frame.seq, frame.event, frame.data) for frame in frames[after:]
        ]
    server.refused("cursor-ahead", "GET", f"{path}?after={len(frames) + 1}")


def test_late_clients_get_everything_and_what_is_shown_is_a_cursor(server: Served) -> None:
    """L5: many watch one run, from its beginning, from the middle, and from the `last_seq` of its message."""
    sid = server.session()
    rid = server.stand(sid, HALF)
    early = [server.follow(rid) for _ in range(8)]
    answer = server.answer(sid)
    assert answer["last_seq"] == server.run(rid)["last_seq"] == 2
    from_message = server.follow(rid, after=answer["last_seq"])
    server.refused("cursor-ahead", "GET", f"/api/runs/{rid}/events", params={"after": 9})
    server.order(open="here")
    server.ended(rid)
    whole = server.events(rid)
    assert all(client.ended() == whole for client in early)
    assert said(answer) + shown(from_message.ended()) == "half whole"


def test_a_pruned_journal_is_gone_and_its_message_is_not(start: Start) -> None:
    """L5: past its retention the events are a 410 from every cursor; the message is as it was."""
    server = start(retention_days=1e-9, engine={"sweep_interval": 0.05})
    sid = server.session()
    answer = server.turn(sid, "whole")
    path = f"/api/runs/{answer['run_id']}/events"
    until(lambda: server.http.get(path).status_code, lambda status: status == 410)
    for after in (0, 1, 99):
        server.refused("journal-pruned", "GET", path, params={"after": after})
    assert server.answer(sid) == answer


def test_a_stream_whose_journal_goes_away_ends_and_can_be_resumed(start: Start) -> None:
    """L5: a stream whose events are not in memory ends when the journal cannot be read; the client resumes later."""
    server = start(engine={"poll_interval": 0.05})
    sid = server.session()
    server.stand(sid, HALF)
    queued = server.begin(sid, "second")  # nothing of it is in memory: its stream reads the journal
    client = server.follow(queued)
    until(lambda: client.status, lambda status: status == 200)
    server.order(journal_away=True)
    assert client.ended() == []
    server.refused("storage-unavailable", "GET", f"/api/runs/{queued}/events")
    server.order(journal_away=False)
    server.order(open="here")
    server.ended(queued)
    assert [frame.event for frame in server.events(queued)] == ["run.started", "text.delta", "run.complete"]


def test_an_attached_client_is_not_taken_for_gone_when_storage_is(start: Start) -> None:
    """L3: the journal cannot be read for a while: the client is still connected, so its run is not cancelled."""
    server = start(engine={"poll_interval": 0.05})
    sid = server.session()
    server.stand(sid, HALF)
    with server.attached(sid, "second") as stream:
        server.order(journal_away=True)
        until(lambda: server.complaints, lambda text: "cannot read the events" in text)
        server.order(journal_away=False)
        server.order(open="here")
        assert [frame.event for frame in stream.rest()] == ["run.started", "text.delta", "run.complete"]
    assert said(server.answer(sid)) == "second"


def test_an_attached_send_that_cannot_be_streamed_uses_up_no_key(server: Served) -> None:
    """A2 L3: the journal is away: a 503, and the same send with its key is answered when it is back."""
    sid = server.session()
    server.order(journal_away=True)
    for path, body in ((f"/api/sessions/{sid}/runs", {"input": "x", "lifetime": "attached"}), COMPARE):
        server.refused("storage-unavailable", "POST", path, body, headers={"Idempotency-Key": "k"})
    server.order(journal_away=False)
    assert server.get("/api/runs")["items"] == []
    with server.attached(sid, "x", key="k") as stream:
        assert stream.rest()[-1].event == "run.complete"
    assert said(server.answer(sid)) == "x"


# ---- L6 ----


def dead_client(server: Served, rid: str) -> socket.socket:
    """Asks for a stream and never reads it."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(server.address)
    line.sendall(f"GET /api/runs/{rid}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return line


@pytest.mark.parametrize("lifetime", ["detached", "attached"])
def test_a_second_request_behind_a_stream_does_not_keep_it_open(start: Start, lifetime: str) -> None:
    """L3 L6: a client that pipelines a request behind its stream and leaves has left all the same."""
    server = start(heartbeat=3600.0)
    sid = server.session()
    head, body = f"GET /api/runs/{server.stand(sid, HALF)}/events HTTP/1.1\r\n", ""
    if lifetime == "attached":
        body = json.dumps({"input": json.dumps(HALF), "lifetime": "attached", "on_busy": "interrupt"})
        fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head = f"POST /api/sessions/{sid}/runs HTTP/1.1\r\n{fields}"
    with socket.create_connection(server.address, GUARD) as line:
        line.sendall(f"{head}Host: localhost\r\n\r\n{body}".encode())
        got = b""
        while b"text.delta" not in got:
            got += line.recv(65536)
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with suppress(TimeoutError):  # until the second request has arrived
            line.settimeout(1.0)
            line.recv(65536)
    until(lambda: server.metric("holdfast_subscribers"), lambda count: count == 0)
    upstreams(server, 0 if lifetime == "attached" else 1)


def test_dead_clients_slow_nobody_and_cost_bounded_memory(start: Start) -> None:
    """L6: thirty that never read: others see the run to its end, memory does not grow with what they leave unread, and
    they are dropped."""
    server = start(write_deadline=1.0)
    sid = server.session()
    rid = server.stand(sid, [{"say": "begin"}, {"meet": "here"}, *[{"say": "x" * 30_000}] * 30, {"tokens": 500_000}])
    lines = [dead_client(server, rid) for _ in range(30)]
    until(lambda: server.metric("holdfast_subscribers"), lambda count: count == len(lines))
    before = server.resident
    server.order(open="here")
    size = sum(len(frame.raw) for frame in server.all_events(rid))
    assert size > 3_000_000
    assert server.resident - before < len(lines) * size / 3
    until(lambda: server.metric("holdfast_subscribers"), lambda count: count == 0)
    for line in lines:
        line.close()
    assert said(server.turn(server.session(), "fine")) == "fine"


def test_a_slow_client_gets_everything(start: Start) -> None:
    """L6 L5: one that reads late is given all from the journal, once and in order."""
    server = start()
    rid = server.begin(server.session(), [*[{"say": "x" * 30_000}] * 30, {"tokens": 20_000}])
    with server.watch(rid) as stream:
        stream.until("run.started")
        server.ended(rid)  # the run is over, and this one has read one frame
        frames = stream.rest()
    assert frames == server.events(rid)
