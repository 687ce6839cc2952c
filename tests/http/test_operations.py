"""Section O over HTTP: what people do to a conversation, also while a run of it streams, saves or is cancelled."""

import itertools
from typing import Any

import pytest

from tests.http.client import OPEN, Served, summarize
from tests.http.streams import said, until

HALF: list[dict[str, Any]] = [{"say": "half "}, {"meet": "here"}, {"say": "whole"}]


def op(server: Served, sid: str, name: str, expect: int = 200, **body: Any) -> Any:
    return server.post(f"/api/sessions/{sid}/{name}", body or None, expect)


def show(server: Served, sid: str, mid: str) -> Any:
    return server.call("PATCH", f"/api/sessions/{sid}", {"head": mid}, 200)


def spoken(server: Served, sid: str) -> list[str]:
    return [said(message) for message in server.messages(sid)]


def two_turns(server: Served) -> tuple[str, list[dict[str, Any]]]:
    """A session with two turns, and its four messages."""
    sid = server.session()
    for text in ("one", "two"):
        server.turn(sid, text)
    return sid, server.messages(sid)


# ---- O2 ----


def test_undo_and_redo_walk_back_and_forth(server: Served) -> None:
    """O2: two steps back and two forth end where they began; a send in between makes a branch and forgets the redo."""
    sid, before = two_turns(server)
    assert op(server, sid, "undo")["head"] == before[1]["id"]
    session = op(server, sid, "undo")
    assert (session["head"], session["can_redo"], server.messages(sid)) == (None, True, [])
    server.refused("not-allowed", "POST", f"/api/sessions/{sid}/undo")
    op(server, sid, "redo")
    assert spoken(server, sid) == ["one", "one"]
    assert op(server, sid, "redo")["can_redo"] is False
    assert server.messages(sid) == before
    server.refused("not-allowed", "POST", f"/api/sessions/{sid}/redo")
    op(server, sid, "undo")
    server.turn(sid, "instead")
    server.refused("not-allowed", "POST", f"/api/sessions/{sid}/redo")
    assert spoken(server, sid) == ["one", "one", "instead", "instead"]
    assert show(server, sid, before[3]["id"])["head"] == before[3]["id"]
    assert [m["id"] for m in server.messages(sid)] == [m["id"] for m in before]


def test_retry_and_edit_leave_the_earlier_branch(server: Served) -> None:
    """O2: another answer, or question, is a sibling of the first; every branch can be shown again, unchanged."""
    sid, before = two_turns(server)
    again = op(server, sid, "retry", 202, message_id=before[3]["id"], model="other")
    assert again["message"]["id"] == before[2]["id"]
    server.ended(again["run"]["id"])
    retried = server.messages(sid)
    assert [m["id"] for m in retried[:3]] == [m["id"] for m in before[:3]]
    assert (retried[3]["siblings"], retried[3]["model"]) == ([before[3]["id"], retried[3]["id"]], "other")
    other = op(server, sid, "edit", 202, message_id=before[0]["id"], input="else")
    server.ended(other["run"]["id"])
    edited = server.messages(sid)
    assert spoken(server, sid) == ["else", "else"]
    assert edited[0]["siblings"] == [before[0]["id"], edited[0]["id"]]
    for branch in (before, retried, edited):
        show(server, sid, branch[-1]["id"])
        shown = server.messages(sid)
        assert [{**m, "siblings": 0} for m in shown] == [{**m, "siblings": 0} for m in branch]
    server.refused("not-allowed", "POST", f"/api/sessions/{sid}/edit", {"message_id": before[1]["id"], "input": "x"})
    for name in ("retry", "truncate", "fork"):
        server.refused("not-found", "POST", f"/api/sessions/{sid}/{name}", {"message_id": "msg_none"})


def test_truncate_moves_the_head_and_destroys_nothing(server: Served) -> None:
    """O2: only the beginning is shown; the rest is where it was. What is not shown cannot be cut."""
    sid, before = two_turns(server)
    assert op(server, sid, "truncate", message_id=before[1]["id"])["head"] == before[1]["id"]
    assert spoken(server, sid) == ["one", "one"]
    assert [item["id"] for item in server.get("/api/sessions", params={"query": "two"})["items"]] == [sid]
    server.refused("not-allowed", "POST", f"/api/sessions/{sid}/truncate", {"message_id": before[3]["id"]})
    show(server, sid, before[3]["id"])
    assert server.messages(sid) == before


def test_a_fork_is_made_once_for_each_key(server: Served) -> None:
    """O1: a repetition, which a client sends when it does not know whether the first call worked, finds the copy."""
    sid, before = two_turns(server)
    path, body = f"/api/sessions/{sid}/fork", {"message_id": before[1]["id"]}
    first, second, other = (server.post(path, body, 201, headers={"Idempotency-Key": key}) for key in ("k", "k", "l"))
    server.turn(first["id"], "more")
    assert second["id"] == first["id"] != other["id"]
    assert server.post(path, body, 201, headers={"Idempotency-Key": "k"})["id"] == first["id"]
    elsewhere = {"message_id": before[3]["id"]}
    assert server.post(path, elsewhere, 201, headers={"Idempotency-Key": "k"})["id"] not in (first["id"], other["id"])


def test_fork_copies_what_is_settled(server: Served) -> None:
    """O1 O2: the copy has the branch up to the message, its own ids and life; the original is as it was."""
    sid, before = two_turns(server)
    rid = server.stand(sid, HALF)
    new = op(server, sid, "fork", 201, message_id=server.answer(sid)["id"])
    copied = server.messages(new["id"])
    assert spoken(server, new["id"])[:4] == ["one", "one", "two", "two"]
    assert all(message["status"] == "complete" for message in copied)
    assert not {m["id"] for m in copied} & {m["id"] for m in server.messages(sid)}
    assert new["active_run"] is None
    server.turn(new["id"], "other")
    server.order(open="here")
    assert server.ended(rid)["status"] == "complete"
    assert server.messages(sid)[:4] == before
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    assert spoken(server, new["id"])[-1] == "other"


def test_clear_and_delete_erase(server: Served) -> None:
    """O1: clear leaves an empty session that works; delete leaves nothing, neither to a reader nor to a search."""
    sid = server.session(title="kept")
    rid = server.turn(sid, "zebra")["run_id"]
    session = op(server, sid, "clear")
    assert (session["title"], session["head"], server.messages(sid)) == ("kept", None, [])
    server.refused("not-found", "GET", f"/api/runs/{rid}")
    assert server.get("/api/sessions", params={"query": "zebra"})["items"] == []
    more = server.turn(sid, "okapi")["run_id"]
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    for method, path in (
        ("GET", f"/api/sessions/{sid}"),
        ("GET", f"/api/sessions/{sid}/messages"),
        ("GET", f"/api/runs/{more}"),
        ("GET", f"/api/runs/{more}/events"),
        ("DELETE", f"/api/sessions/{sid}"),
        ("POST", f"/api/sessions/{sid}/undo"),
        ("POST", f"/api/runs/{more}/cancel"),
    ):
        server.refused("not-found", method, path)
    server.refused("not-found", "POST", f"/api/sessions/{sid}/runs", {"input": "hello"})
    assert server.get("/api/sessions", params={"query": "okapi"})["items"] == []
    assert server.get("/api/runs")["items"] == []


def test_runs_of_a_deleted_session_are_in_no_list(server: Served) -> None:
    """O1 P7: from the moment of the delete, also page by page, although they are erased later."""
    sids = [server.session() for _ in range(4)]
    rids = [server.turn(sid, "x")["run_id"] for sid in sids]
    for gone in sids[1:3]:
        server.call("DELETE", f"/api/sessions/{gone}", expect=204)
    found: list[str] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = server.get("/api/runs", params={"limit": 1, **({"cursor": page["next"]} if page["next"] else {})})
        found += [run["id"] for run in page["items"]]
    assert found == [rids[3], rids[0]]
    assert server.get("/api/runs", params={"session": sids[1]})["items"] == []


def test_compact_needs_a_model(server: Served) -> None:
    """O3: without one it is a 409, and the conversation is as it was."""
    sid, before = two_turns(server)
    server.refused("not-allowed", "POST", f"/api/sessions/{sid}/compact")
    assert server.messages(sid) == before


def test_a_message_tells_the_summary_that_stands_for_it(server: Served) -> None:
    """O3: where the conversation was compacted, the message carries what models are shown instead."""
    sid, before = two_turns(server)
    imported = summarize(server, sid, before[1]["id"], "They greeted each other.")
    assert [message["summary"] for message in server.messages(imported)] == [
        None,
        "They greeted each other.",
        None,
        None,
    ]


@pytest.mark.parametrize(("method", "name"), [("POST", "/undo"), ("POST", "/clear"), ("DELETE", "")])
def test_what_hides_a_streaming_run_ends_it_and_its_streams(server: Served, method: str, name: str) -> None:
    """O1 C7: its upstream call is aborted and its streams end; a hidden answer is kept as a cancelled partial."""
    sid = server.session()
    rid = server.stand(sid, HALF)
    answer, client = server.answer(sid)["id"], server.follow(rid)
    client.until("text.delta")
    server.call(method, f"/api/sessions/{sid}{name}")
    client.ended()
    until(lambda: server.order(upstreams=True), lambda count: count == 0)
    if name != "/undo":
        found = server.http.get(f"/api/sessions/{sid}/messages")
        assert (found.status_code, found.json().get("items")) == ((200, []) if name else (404, None))
        return
    run = until(lambda: server.run(rid), lambda run: run["status"] not in OPEN)
    assert (run["status"], run["reason"]) == ("cancelled", "superseded")
    show(server, sid, answer)
    assert said(server.answer(sid)) == "half "


# ---- If-Match ----

CONDITIONAL: list[tuple[str, str, dict[str, Any] | None]] = [
    ("PATCH", "", {"title": "x"}),
    ("PATCH", "", {"head": "{first}"}),
    ("POST", "/undo", None),
    ("POST", "/redo", None),
    ("POST", "/truncate", {"message_id": "{first}"}),
    ("POST", "/retry", {"message_id": "{first}"}),
    ("POST", "/edit", {"message_id": "{first}", "input": "x"}),
    ("POST", "/clear", None),
    ("DELETE", "", None),
]


def test_if_match_lets_only_the_seen_version_be_changed(server: Served) -> None:
    """O1: with a version that is past each call is a 412 that names the present one and changes nothing; with the right
    one it is done."""
    sid, before = two_turns(server)
    session = server.http.get(f"/api/sessions/{sid}")
    version = session.json()["version"]
    assert session.headers["etag"] == f'"{version}"'
    for (method, name, body), tag in itertools.product(CONDITIONAL, ('"1"', 'W/"1"', "1")):
        filled = None if body is None else {key: str(v).format(first=before[0]["id"]) for key, v in body.items()}
        headers = {"If-Match": tag}
        stale = server.refused("version-mismatch", method, f"/api/sessions/{sid}{name}", filled, headers=headers)
        assert stale["version"] == version
    assert server.look(sid) == session.json()
    assert server.messages(sid) == before
    right = {"If-Match": f'"{version}"'}
    undone = server.call("POST", f"/api/sessions/{sid}/undo", None, 200, headers=right)
    assert undone["version"] == version + 1
    server.refused("version-mismatch", "POST", f"/api/sessions/{sid}/undo", headers=right)
    server.call("POST", f"/api/sessions/{sid}/redo", None, 200, headers={"If-Match": "*"})
    server.refused("invalid", "POST", f"/api/sessions/{sid}/undo", headers={"If-Match": '"seven"'})


# ---- O4 ----


def test_a_slow_turn_locks_nobody_out(server: Served) -> None:
    """O4: while a run waits for its upstream, a tool or a person, every other call on its session is answered."""
    sid = server.session()
    for script in (HALF, [{"say": "x"}, {"call": "a", "takes": 3600}], [{"say": "x"}, {"call": "b", "asks": True}]):
        rid = server.begin(sid, script)
        with server.watch(rid) as stream:
            stream.until("text.delta")
        assert server.call("PATCH", f"/api/sessions/{sid}", {"title": "x"}, 200)["active_run"] == rid
        assert len(server.look(sid)["queued_runs"]) == 0
        queued = server.begin(sid, "later")
        server.cancel(queued)
        op(server, sid, "fork", 201, message_id=server.messages(sid)[0]["id"])
        assert server.cancel(rid)["status"] == "cancelled"


def test_the_outline_of_a_chat_and_where_a_text_is(server: Served) -> None:
    """Questions are listed by their first words; a text is found in questions and answers, ignoring case and spaces;
    an answer tells how long it took."""
    sid = server.session()
    for text in ("Plant the  beans", "and\nthe (peas)", "x" * 300):
        server.turn(sid, text)
    asked = server.messages(sid)[0::2]
    outline = server.get(f"/api/sessions/{sid}/outline")
    assert [(item["id"], item["role"]) for item in outline["items"]] == [(item["id"], "user") for item in asked]
    assert [item["text"] for item in outline["items"]] == ["Plant the beans", "and the (peas)", "x" * 140 + "…"]
    path = f"/api/sessions/{sid}/outline"
    found = server.get(path, params={"query": "THE (p"})
    assert [item["role"] for item in found["items"]] == ["user", "assistant"]
    assert server.get(path, params={"query": "the beans"})["items"][0]["text"] == "Plant the beans"
    assert server.get(path, params={"query": "turnips"}) == {"items": [], "next": None}
    newest = server.get(path, params={"limit": 1})
    assert [item["text"][0] for item in newest["items"]] == ["x"]
    older = server.get(path, params={"limit": 2, "cursor": newest["next"]})
    assert ([item["text"] for item in older["items"]], older["next"]) == (["Plant the beans", "and the (peas)"], None)
    assert [item["duration_ms"] is None for item in server.messages(sid)] == [True, False] * 3
