"""Runs that ask a person, how a test answers them, and what the model was sent."""

from typing import Any

from tests.chat.model_server import PROVIDER
from tests.http.client import Served
from tests.http.streams import until


def begin(served: Served, model: str, text: str) -> tuple[str, str]:
    """Begins a turn in a new session; the ids of session and run."""
    sid = served.session(title="A person's", model=f"{PROVIDER}/{model}")
    return sid, served.begin(sid, text)


def asked(served: Served, rid: str) -> Any:
    """Wait until the run waits for a person; its newest question."""
    last = until(lambda: served.run(rid), lambda run: run["status"] == "waiting")["last_seq"]
    with served.watch(rid) as stream:
        while not stream.frames or stream.frames[-1].seq < last:
            assert stream.next() is not None
    return [frame.data for frame in stream.frames if frame.event == "approval.requested"][-1]


def decide(served: Served, rid: str, decision: str) -> Any:
    """Wait for the question and answer it; the question."""
    question = asked(served, rid)
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", {"decision": decision})
    return question


def effects(served: Served, sid: str) -> list[str]:
    """What commands have written, a line each."""
    file = served.data_dir / "workspaces" / sid / "effects"
    return file.read_text().splitlines() if file.exists() else []


def note(word: str, then: str = "true") -> dict[str, str]:
    """A command with an effect that can be counted."""
    return {"command": f"echo {word} >> effects; {then}"}


def results(body: Any) -> dict[str, str]:
    """The answers of tools that a request carries."""
    return {m["tool_call_id"]: m["content"] for m in body["messages"] if m["role"] == "tool"}


def told(body: Any) -> list[tuple[str, Any]]:
    """What the model was sent, without the system prompt: role and content, or the calls asked for."""
    return [
        (m["role"], m.get("content") or [call["function"]["name"] for call in m.get("tool_calls", ())])
        for m in body["messages"]
        if m["role"] != "system"
    ]
