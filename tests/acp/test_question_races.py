"""An answer and a cancel at the same time: the journal has one outcome of the question, the acknowledged one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.acp.conftest import open_session, play
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import until

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
ROUNDS = 6


def question(served: Served, rid: str) -> str:
    until(lambda: served.run(rid)["status"], "waiting".__eq__)
    with served.watch(rid) as stream:
        asked: dict[str, Any] = stream.until("approval.requested").data
    return str(asked["approval_id"])


def test_an_acknowledged_answer_is_the_journals(start: Start) -> None:
    """C6: whichever comes first, a run has one `approval.resolved`; an answer of 200 is its decision, and a refused
    one is not."""
    served = start()
    asking = {"ask": {"toolCallId": "t1", "kind": "execute", "title": "rm"}, "options": OPTIONS}
    with ThreadPoolExecutor(2) as clients:
        for _ in range(ROUNDS):
            rid = served.begin(open_session(served), play(asking, {"say": "done"}))
            path = f"/api/runs/{rid}/approvals/{question(served, rid)}"
            answer = clients.submit(served.http.post, path, json={"decision": "once"})
            cancel = clients.submit(served.http.post, f"/api/runs/{rid}/cancel")
            status, _ = answer.result().status_code, cancel.result()
            assert served.ended(rid)["status"] in ("cancelled", "complete")
            outcomes = [frame.data["decision"] for frame in served.events(rid) if frame.event == "approval.resolved"]
            assert outcomes == (["once"] if status == 200 else ["deny"])
            assert status in (200, 409)
