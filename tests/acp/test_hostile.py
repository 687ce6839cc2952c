"""Programs that misbehave: the run ends, says why, keeps what was shown, and the server goes on."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.chat.conftest import settings
from tests.chat.stage import Stage
from tests.http.client import Served
from tests.http.streams import until
from tests.nursery import Nursery

PROGRAM: Final = Path(__file__).with_name("hostile_program.py")
GOES_WELL: Final = (
    "garbage",
    "garbage first",
    "bad updates",
    "half lines",
    "duplicate tools",
    "huge text",
    "huge tool",
    "flood",
    "deep",
    "large values",
    "many requests",
    "half characters",
    "ignores signals",
)
FAILS: Final = {
    "half line": ("agent-gone", "last words"),
    "dies": ("agent-gone", "status 5"),
    "dies in tool": ("agent-gone", "last words"),
    "dies at question": ("agent-gone", "last words"),
    "closes output": ("agent-gone", "ended unexpectedly"),
    "many values": ("agent-gone", "too many values"),
    "long line": ("agent-gone", "more than 2 MB"),
    "stderr flood": ("agent-gone", "eeee"),
    "dies at start": ("agent-gone", "last words"),
    "dies at new": ("agent-gone", "last words"),
    "silent": ("agent-gone", "did not answer within"),
    "another version": ("agent-version", "version 9"),
    "no session id": ("agent", "without an id"),
    "error": ("agent", "Internal error"),
    "too much text": ("limit", "4194304 bytes"),
    "cancels itself": ("agent-cancelled", "stopped by itself"),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chat_nursery: Nursery, up: Stage) -> Iterator[Served]:
    """One server for all of them: none may spoil it for the others."""
    names = (*GOES_WELL, *FAILS, "many questions", "question after cancel", "duplicate answers", "stops reading")
    names = (*names, "endless replay", "silent when tested")
    agents = {_slug(name): {"command": sys.executable, "args": ["-I", "-S", str(PROGRAM), name]} for name in names}
    limits = {
        "startup": 10.0,
        "load": 1.0,
        "cancel_grace": 0.3,
        "max_line": 2 * 2**20,
        "max_waiting": 50,
        "max_programs": 100,
    }
    directory = tmp_path_factory.mktemp("hostile") / "data"
    changes = settings(up, more={"agents": agents}, program_limits=limits, engine={"max_output": 4 * 2**20})
    with Served(chat_nursery, directory, **changes) as server:
        yield server.ready()
        assert "Traceback" not in server.complaints, server.complaints


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def begin(served: Served, behaviour: str) -> tuple[str, str]:
    sid = served.session(agent=_slug(behaviour), title="A person's")
    return sid, served.begin(sid, "go")


def shown(frames: list[Any]) -> str:
    return "".join(frame.data["text"] for frame in frames if frame.event == "text.delta")


def stored(served: Served, sid: str) -> str:
    return "".join(part["text"] for part in served.answer(sid)["parts"] if part["type"] == "text")


@pytest.mark.parametrize("behaviour", GOES_WELL)
def test_what_is_not_understood_is_skipped(served: Served, behaviour: str) -> None:
    """X1: the answer has what could be understood, to its end, and what was shown is what is stored."""
    sid, rid = begin(served, behaviour)
    frames = served.events(rid)
    run = served.run(rid)
    assert (run["status"], run["error"]) == ("complete", None)
    text = stored(served, sid)
    assert text == shown(frames)
    assert text.startswith("Hello. ")
    assert text.endswith("Bye.")


@pytest.mark.parametrize("behaviour", FAILS)
def test_a_failure_says_why_and_keeps_what_was_shown(served: Served, behaviour: str) -> None:
    """E1, X1: the run fails with a code and the program's last words; a tool that was announced is *unknown*."""
    sid, rid = begin(served, behaviour)
    frames = served.events(rid)
    run = served.run(rid)
    code, words = FAILS[behaviour]
    assert (run["status"], run["error"]["code"]) == ("failed", code), run["error"]
    assert words in run["error"]["message"]
    assert stored(served, sid) == shown(frames)
    states = [part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert states in ([], ["unknown"])


def test_requests_over_the_limit_are_refused(served: Served) -> None:
    """X5: a program with many open requests gets an error for the next one, and its answer is read to the end."""
    sid, rid = begin(served, "many requests")
    assert served.ended(rid)["status"] == "complete"
    assert stored(served, sid) == "Hello. 100: More than 200 requests are open. Bye."


def test_half_characters_are_replaced(served: Served) -> None:
    """X5: a name that UTF-8 cannot carry does not make the options of an agent unreadable, in no later chat either."""
    sid, rid = begin(served, "half characters")
    assert served.ended(rid)["status"] == "complete"
    for where in (f"?session_id={sid}", ""):
        (option,) = served.get(f"/api/agents/half-characters/options{where}")["options"]
        assert (option["name"], option["choices"][0]["name"]) == ("n?", "?A")


def test_large_values_of_a_call_are_not_kept(served: Served) -> None:
    """X5: arguments and results beyond the limit are replaced by a note."""
    sid, rid = begin(served, "large values")
    assert served.ended(rid)["status"] == "complete"
    (part,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert part["args"]["x"][0] == "y" * 10
    assert part["result"] == "The output is too large to be shown."


def test_tests_of_programs_are_limited_and_end_with_their_clients(served: Served) -> None:
    """X5: of many tests of a program that never answers a few are begun, the others are refused; when their clients
    leave, their programs end, and others can be tested."""
    path = "/api/agents/silent-when-tested/test"
    with ThreadPoolExecutor(10) as clients:
        tests = [clients.submit(httpx.post, served.url + path, timeout=2.0) for _ in range(10)]
        refused = [each.result() for each in tests if each.exception() is None]
    assert [answer.status_code for answer in refused] == [429] * 7
    until(lambda: served.http.post("/api/agents/garbage-first/test").status_code, lambda status: status == 200)
    assert not [line for line in _command_lines() if f"{PROGRAM}\0silent when tested".encode() in line]


def _command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(process.read_bytes())
    return found


def test_questions_are_asked_one_after_another_and_closed_by_cancel(served: Served) -> None:
    """X5, C6: of several questions at once one is shown; a cancel ends the run and the program that waits."""
    _, rid = begin(served, "many questions")
    until(lambda: served.run(rid)["status"], lambda status: status == "waiting")
    assert served.cancel(rid)["status"] == "cancelled"
    events = [frame.event for frame in served.events(rid)]
    assert events.count("approval.requested") == 1


@pytest.mark.parametrize("behaviour", ["stops reading", "question after cancel"])
def test_cancel_ends_a_program_that_does_not_answer(served: Served, behaviour: str) -> None:
    """C6, C7: a program that does not read, or asks when it is cancelled, is ended after the grace period."""
    sid, rid = begin(served, behaviour)
    with served.watch(rid) as stream:
        stream.until("text.delta")
    assert served.cancel(rid)["status"] == "cancelled"
    assert stored(served, sid) == "Hello. "
    assert "approval.requested" not in [frame.event for frame in served.events(rid)]


def test_an_endless_replay_is_given_up(served: Served) -> None:
    """X5: a session that does not stop loading is left for a new one, and nothing of the replay is in the journal."""
    sid, rid = begin(served, "endless replay")
    assert served.ended(rid)["status"] == "complete"
    again = served.begin(sid, "go on")
    assert served.ended(again)["status"] == "complete"
    assert stored(served, sid) == "Hello. Bye."


def test_a_second_answer_to_a_prompt_is_ignored(served: Served) -> None:
    """C6: the first answer ends the turn; what comes later changes no message."""
    sid, rid = begin(served, "duplicate answers")
    assert served.ended(rid)["status"] == "complete"
    assert stored(served, sid) == "Hello. "
