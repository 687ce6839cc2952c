"""Writes a varied data directory with the code it is run with, and what that code's API answers about it.

    python -m tests.compat.write_fixture tests/fixtures/data-dir-VERSION.tar.xz

The archive has the directory as `data/` and the answers as `answers.json`. Write one for each release that changes what
is on disk, and keep the older ones.
"""

import json
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.chat.conftest import settings
from tests.chat.model_server import ScriptedModelServer, calls, serve_model
from tests.chat.questions import asked, decide
from tests.compat.answers import UNREMEMBERED, read_all, settle
from tests.fork_server import Fresh
from tests.http.client import Served
from tests.http.streams import until
from tests.upstream import End, Hang, Head, PauseAt, answers, delta, says, sse

RULES = {"tools": {"write_file": "allow"}}
PASSWORD = "correct horse battery"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


def start(up: ScriptedModelServer, data_dir: Path, token: str | None = None) -> Served:
    served = Served(Fresh("tests.chat.server"), data_dir, **settings(up, RULES, retention_days=0)).ready()
    if token is not None:
        served.http.headers["Authorization"] = f"Bearer {token}"
    return served


def write_conversations(served: Served, up: ScriptedModelServer) -> None:
    """Branches, edits, files, reasoning, tools, failures, compaction and memory: all settled."""
    tides = served.session(title="Tides", model=up.play("tides", says("At six. "), says("At seven."), says("Two.")))
    served.turn(tides, "When is high tide in Lisbon?")
    answer = served.answer(tides)
    served.ended(served.post(f"/api/sessions/{tides}/retry", {"message_id": answer["id"]}, 202)["run"]["id"])
    question = served.messages(tides)[0]
    edit = {"message_id": question["id"], "input": "How many tides are there in a day?"}
    served.ended(served.post(f"/api/sessions/{tides}/edit", edit, 202)["run"]["id"])
    served.call("PATCH", f"/api/sessions/{tides}", {"head": answer["id"], "pinned": True, "tags": ["sea", "moon"]})
    fork = served.post(f"/api/sessions/{tides}/fork", {"message_id": answer["id"]}, 201)["id"]
    served.call("PATCH", f"/api/sessions/{fork}", {"archived": True, "title": "Tides, forked"})
    undone = served.session(title="Undone", project="Harbor", model=up.play("undone", says("One."), says("Two.")))
    served.turn(undone, "Count.")
    served.turn(undone, "Go on.")
    served.post(f"/api/sessions/{undone}/undo")

    thinking = [delta(reasoning_content="The moon pulls. "), delta(reasoning_content="So…"), delta(content="The moon.")]
    usage = {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
    script = [Head(), *sse(*thinking, delta(finish="stop"), usage, "[DONE]"), End()]
    served.turn(served.session(model=up.play("thinks", script), system="Be brief."), "Why are there tides? Ünïcödé ✓")

    files = [("notes.txt", b"The tide is high.\n", "text/plain"), ("dot.png", PICTURE, "image/png")]
    ids = [served.http.post("/api/files", files={"file": file}).json()["id"] for file in files]
    parts = [{"type": "text", "text": "Read these."}, *({"type": "file", "file_id": id} for id in ids)]
    reader = served.session(title="Files", model=up.play("reads", says("It says that the tide is high.")))
    served.ended(served.post(f"/api/sessions/{reader}/runs", {"input": parts}, 202)["run"]["id"])

    model = up.play(
        "tools",
        calls(("c1", "write_file", {"path": "a.txt", "content": "a\n"}), text="Writing. "),
        calls(("c2", "shell", {"command": "echo two"})),
        calls(("c3", "shell", {"command": "echo three"}), ("c4", "no_such_tool", {})),
        calls(("c5", "edit_file", {"path": "a.txt", "old": "a", "new": "b"})),
        says("All done."),
    )
    tools = served.session(title="Tools", model=model)
    rid = served.begin(tools, "Use them all.", key="tools-1")
    for decision in ("deny", "session", "always"):
        decide(served, rid, decision)
    served.ended(rid)

    refused = served.session(title="Refused", model=up.play("refuses", answers(401, {"error": {"message": "No key."}})))
    served.turn(refused, "Hello?")
    stopped = [Head(), *sse(delta(content="One, two, ")), PauseAt("stopped"), Hang()]
    counts = served.session(title="Stopped", model=up.play("counts", stopped))
    rid = served.begin(counts, "Count to a million.")
    up.reached("stopped")
    until(lambda: served.answer(counts)["parts"])
    served.cancel(rid)
    served.ended(rid)

    long = served.session(title="Long", model=up.play("long", says("First."), says("Second."), says("Third.")))
    up.play("long", says("They counted."), job="summary")
    served.turn(long, "One")
    served.turn(long, "Two")
    served.post(f"/api/sessions/{long}/compact")
    served.turn(long, "Three")

    fact = json.dumps([{"turn": 1, "about": "home", "fact": "The person lives in Lisbon."}])
    learns = up.play("learns", says("How nice."))
    up.play("learns", says(fact), job="memory")
    told = served.session(title="About me", model=learns)
    served.turn(told, "I live in Lisbon.")
    served.post(f"/api/sessions/{told}/memory/commit", {})
    (stored,) = served.get("/api/memory")["items"]
    served.call("PATCH", f"/api/memory/{stored['id']}", {"pinned": True})
    served.turn(served.session(title="Recalls", model=learns), "Where do I live? I also have a dog called Rex.")
    served.turn(served.session(title="Private", model=learns, memory="none"), "Forget this.")


def write_compared_and_openai(served: Served, up: ScriptedModelServer) -> None:
    panes = [{"input": "Which?", "model": up.play(f"pane{n}", says(f"Pane {n}."))} for n in (1, 2)]
    with served.stream("POST", "/api/compare", json={"runs": panes}) as stream:
        stream.rest()
    function = {"type": "function", "name": "tide", "parameters": {"type": "object", "properties": {}}}
    model = up.play("openai", calls(("t1", "tide", {})), says("At six."))
    first = served.post("/v1/responses", {"model": model, "input": "When?", "tools": [function]})
    output = {"type": "function_call_output", "call_id": "t1", "output": "six"}
    then = {"model": model, "previous_response_id": first["id"], "input": [output], "tools": [function]}
    served.post("/v1/responses", then)
    chat = {"model": up.play("chat", says("Hi.")), "messages": [{"role": "user", "content": "Hi"}]}
    served.post("/v1/chat/completions", chat)


def write_settings(served: Served) -> str:
    """Settings, keys, an MCP server, a password and a token; the token."""
    served.call("PATCH", "/api/settings", {"default_model": "testing/default", "tools": {"fetch": "deny"}}, 200)
    served.call("PUT", "/api/settings/keys/testing", {"key": "sk-typed-into-the-settings"}, 200)
    served.call("PUT", "/api/mcp/search", {"url": "http://127.0.0.1:9/mcp", "token": "secret"}, 204)
    served.post("/api/password", {"new": PASSWORD}, 204)
    token: str = served.post("/api/tokens", {"name": "laptop"}, 201)["token"]
    served.http.cookies.clear()
    served.http.headers["Authorization"] = f"Bearer {token}"
    return token


def leave_unknown_tool(served: Served, up: ScriptedModelServer) -> str:
    """A run whose shell command is running; the run's id."""
    model = up.play("unknown", calls(("u1", "shell", {"command": "echo begun; sleep 1000"})), says("Done."))
    rid = served.begin(served.session(title="Unknown", model=model), "Sleep.")
    decide(served, rid, "once")
    with served.watch(rid) as stream:
        while not stream.until("tool.delta").data.get("output_delta"):
            pass
    return rid


def leave_open_runs(served: Served, up: ScriptedModelServer) -> None:
    """An open approval, two runs in mid-answer, two queued behind one of them, and a turn not yet remembered."""
    model = up.play("asks", calls(("a1", "shell", {"command": "echo allowed"}), text="May I? "), says("Thank you."))
    asked(served, served.begin(served.session(title="Asks", model=model), "Run it."))
    leave_half_answered(served, up, "cut")
    busy = leave_half_answered(served, up, "busy", memory="none")  # turns in its queue race M11
    dirty = up.play("listens", says("I see."))
    served.turn(served.session(title=UNREMEMBERED, model=dirty), "I play the cello.")
    for n in (1, 2):
        served.begin(busy, f"Queued {n}", key=f"queued-{n}")


def leave_half_answered(served: Served, up: ScriptedModelServer, name: str, **fields: Any) -> str:
    """A session whose run is in mid-answer; the session's id."""
    script = [Head(), *sse(delta(content="The quick "), delta(content="brown fox ")), PauseAt(name), Hang()]
    model = up.play(name, script, says("jumps over the lazy dog."))
    sid = served.session(title=f"Open: {name}", model=model, **fields)
    rid = served.begin(sid, "Tell me.")
    up.reached(name)
    with served.watch(rid) as stream:
        text = ""
        while text != "The quick brown fox ":
            text += stream.until("text.delta").data["text"]
    return sid


def write(up: ScriptedModelServer, data_dir: Path) -> dict[str, Any]:
    with start(up, data_dir) as served:
        write_conversations(served, up)
        write_compared_and_openai(served, up)
        token = write_settings(served)
        served.terminate()
    with start(up, data_dir, token) as served:
        rid = leave_unknown_tool(served, up)
        served.kill()
    with start(up, data_dir, token) as served:
        until(lambda: served.run(rid), lambda run: run["status"] == "interrupted")
        leave_open_runs(served, up)
        served.kill()
    for left in (data_dir / "server.json", *data_dir.glob("*-shm")):
        left.unlink(missing_ok=True)
    return {"written_at": time.time(), "token": token, "password": PASSWORD}


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch, serve_model() as up:
        data_dir = Path(scratch) / "data"
        found = write(up, data_dir)
        copy = Path(scratch) / "copy"
        shutil.copytree(data_dir, copy)
        with start(up, copy, found["token"]) as served:
            settle(served)
            found["answers"] = read_all(served, found["written_at"])
        recorded = Path(scratch) / "answers.json"
        recorded.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        with tarfile.open(target, "w:xz") as archive:
            for path in (data_dir, recorded):
                archive.add(path, path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
